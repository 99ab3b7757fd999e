// SPDX-License-Identifier: Apache-2.0
#include "tools/cli/output.hpp"

#include <filesystem>
#include <fstream>
#include <system_error>
#include <vector>

#include <fmt/format.h>
#include <unistd.h>

#include "sim/core/diagnostics.hpp"

namespace weft {
namespace {

namespace fs = std::filesystem;

bool put(const std::string& path, std::string_view text) {
  std::ofstream file(path, std::ios::binary);
  file.write(text.data(), static_cast<std::streamsize>(text.size()));
  file.flush();
  return file.good();
}

// A device, a pipe: written as it is, never replaced.
bool special(const fs::file_status& status) {
  return fs::exists(status) && !fs::is_regular_file(status) && !fs::is_directory(status);
}

[[noreturn]] void cannot(const std::string& what, const std::string& path,
                         const std::error_code& error) {
  throw InputError(
      fmt::format("{}: error: {}{}\n", path, what, error ? ": " + error.message() : ""));
}

// Files under names of their own beside their places, and the folders made for them; gone unless they are moved there.
class Draft {
 public:
  Draft() = default;
  Draft(const Draft&) = delete;
  Draft& operator=(const Draft&) = delete;
  ~Draft() {
    std::error_code ignored;
    for (const Part& part : parts_) fs::remove(part.temporary, ignored);
    for (auto folder = folders_.rbegin(); folder != folders_.rend(); ++folder)
      fs::remove(*folder, ignored);
  }

  // With all that are missing above it.
  void add_folder(const fs::path& path) {
    std::error_code error;
    if (make(path, error)) return;
    cannot("cannot make this folder", path.string(), error);
  }

  void add(const std::string& path, std::string_view text) {
    std::error_code error;
    const fs::file_status status = fs::status(path, error);
    if (fs::is_directory(status)) cannot("this is a folder, not a file", path, {});
    // A link stays one: what it points to is replaced.
    Part part{path, fs::exists(status) ? fs::canonical(path, error) : fs::path(path), {}};
    part.temporary = fmt::format("{}.{}.part", part.target.string(), getpid());
    parts_.push_back(part);
    if (!put(part.temporary.string(), text)) cannot("cannot write this file", path, {});
  }

  void keep() {
    for (const Part& part : parts_) {
      std::error_code error;
      fs::rename(part.temporary, part.target, error);
      if (error) cannot("cannot write this file", part.path, error);
    }
    parts_.clear();
    folders_.clear();
  }

 private:
  bool make(const fs::path& path, std::error_code& error) {
    if (path.empty() || fs::is_directory(path, error)) return true;
    if (!make(path.parent_path(), error)) return false;
    if (fs::is_directory(path, error)) return true;  // "made/.." or "made/"
    error.clear();
    // Neither made nor an error: another process has made it since.
    if (fs::create_directory(path, error)) folders_.push_back(path);
    return !error;
  }

  struct Part {
    std::string path;
    fs::path target, temporary;
  };
  std::vector<Part> parts_;
  std::vector<fs::path> folders_;
};

}  // namespace

void write_files(std::span<const OutputFile> files) {
  Draft draft;
  std::vector<const OutputFile*> devices;
  for (const OutputFile& file : files) {
    std::error_code error;
    if (special(fs::status(file.path, error))) {
      devices.push_back(&file);
      continue;
    }
    if (file.make_folders) draft.add_folder(fs::path(file.path).parent_path());
    draft.add(file.path, file.text);
  }
  draft.keep();
  for (const OutputFile* file : devices) {
    if (!put(file->path, file->text)) cannot("cannot write this file", file->path, {});
  }
}

void write_file(const std::string& path, std::string_view text) {
  const OutputFile files[] = {{.path = path, .text = std::string(text)}};
  write_files(files);
}

void expect_writable(const std::string& path, bool make_folders) {
  std::error_code error;
  if (path.empty() || special(fs::status(path, error))) return;
  // Nothing is made on trial: others may write there at this moment.
  fs::path folder = fs::path(path).parent_path(), there = folder;
  while (make_folders && !there.empty() && !fs::exists(there, error)) there = there.parent_path();
  if (!there.empty() && !fs::is_directory(there, error)) {
    const bool taken = fs::exists(there, error);
    cannot(fmt::format("{} {}",
                       taken ? "this is no folder:" : "there is no such folder:", there.string()),
           path, {});
  }
  if (there == folder) return Draft().add(path, {});
  try {
    Draft().add((there / fs::path(path).filename()).string(), {});
  } catch (const InputError&) {
    cannot("cannot write here", path, {});
  }
}

bool same_file(const std::string& a, const std::string& b) {
  if (a.empty() || b.empty()) return false;
  std::error_code failed;
  const auto x = std::filesystem::weakly_canonical(a, failed),
             y = std::filesystem::weakly_canonical(b, failed);
  return a == b || (!failed && x == y) || std::filesystem::equivalent(a, b, failed);
}

void refuse_overwriting(const std::string& output, const std::vector<std::string>& inputs) {
  for (const std::string& input : inputs) {
    if (same_file(output, input))
      throw InputError(fmt::format(
          "{}: error: it is read, too, and would be lost\n    give another name\n", output));
  }
}

}  // namespace weft
