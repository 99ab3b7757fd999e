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
  namespace fs = std::filesystem;
  const auto write = [&](const std::string& to) {
    std::ofstream file(to, std::ios::binary);
    file.write(text.data(), static_cast<std::streamsize>(text.size()));
    file.flush();
    return file.good();
  };
  std::error_code error;
  const fs::file_status status = fs::status(path, error);
  if (fs::exists(status) && !fs::is_regular_file(status) && !fs::is_directory(status)) {
    if (!write(path)) throw InputError(fmt::format("{}: error: cannot write this file\n", path));
    return;
  }
  // A link stays one: what it points to is replaced.
  const fs::path target = fs::exists(status) ? fs::canonical(path, error) : fs::path(path);
  const std::string temporary = fmt::format("{}.{}.part", target.string(), getpid());
  if (!write(temporary)) {
    fs::remove(temporary, error);
    throw InputError(fmt::format("{}: error: cannot write this file\n", path));
  }
  fs::rename(temporary, target, error);
  if (error) {
    std::error_code ignored;
    fs::remove(temporary, ignored);
    throw InputError(fmt::format("{}: error: {}\n", path, error.message()));
  }
}

}  // namespace weft
