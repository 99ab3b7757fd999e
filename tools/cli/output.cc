// SPDX-License-Identifier: Apache-2.0
#include "tools/cli/output.hpp"

#include <filesystem>
#include <fstream>

#include <fmt/format.h>
#include <unistd.h>

#include "sim/core/diagnostics.hpp"

namespace weft {

void make_folder(const std::string& path) {
  std::error_code error;
  std::filesystem::create_directories(path, error);
  if (error || !std::filesystem::is_directory(path)) {
    throw InputError(fmt::format("{}: error: cannot make this folder{}\n", path,
                                 error ? ": " + error.message() : ""));
  }
}

void write_file(const std::string& path, std::string_view text) {
  const std::string temporary = fmt::format("{}.{}.part", path, getpid());
  {
    std::ofstream file(temporary, std::ios::binary);
    file.write(text.data(), static_cast<std::streamsize>(text.size()));
    file.flush();
    if (!file) {
      std::error_code ignored;
      std::filesystem::remove(temporary, ignored);
      throw InputError(fmt::format("{}: error: cannot write this file\n", path));
    }
  }
  std::error_code error;
  std::filesystem::rename(temporary, path, error);
  if (error) {
    std::error_code ignored;
    std::filesystem::remove(temporary, ignored);
    throw InputError(fmt::format("{}: error: {}\n", path, error.message()));
  }
}

}  // namespace weft
