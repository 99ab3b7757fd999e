// SPDX-License-Identifier: Apache-2.0
#include "tools/cli/file_source.hpp"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <utility>

#include <fmt/format.h>

#include "tools/cli/cli.hpp"

#ifndef WEFT_SOURCE_DIR
#define WEFT_SOURCE_DIR ""
#endif

namespace weft {
namespace {

namespace fs = std::filesystem;

constexpr std::pair<std::string_view, std::string_view> kFolders[] = {
    {"gpu", "gpus"},       {"nic", "nics"},        {"switch", "switches"}, {"link", "links"},
    {"server", "servers"}, {"fabric", "fabrics"},  {"llm", "llms"},        {"kernels", "kernels"},
    {"proxy", "proxies"},  {"compute", "compute"},
};

thread_local std::map<std::string, std::string> memory_files;
std::string configs_root;  // set before any thread reads it

bool is_folder(const fs::path& path) {
  std::error_code ignored;
  return fs::is_directory(path, ignored);
}

}  // namespace

const std::vector<std::string_view>& Configs::kinds() {
  static const std::vector<std::string_view> kinds = [] {
    std::vector<std::string_view> out;
    for (const auto& [kind, folder] : kFolders) out.push_back(kind);
    return out;
  }();
  return kinds;
}

std::string Configs::folder_of(std::string_view kind) const {
  for (const auto& [known, folder] : kFolders) {
    if (known == kind) return fmt::format("{}/{}", root_, folder);
  }
  return {};
}

MemoryFile::MemoryFile(std::string path, std::string text) : path_(std::move(path)) {
  memory_files[path_] = std::move(text);
}

MemoryFile::~MemoryFile() { memory_files.erase(path_); }

void set_configs_root(std::string root) { configs_root = std::move(root); }

std::optional<std::string> Configs::read(const std::string& path) {
  if (const auto found = memory_files.find(path); found != memory_files.end()) return found->second;
  std::error_code error;
  if (!fs::is_regular_file(path, error)) return std::nullopt;
  const std::uintmax_t size = fs::file_size(path, error);
  if (error || size > kLargestFile) return std::nullopt;
  std::ifstream file(path, std::ios::binary);
  std::string text(static_cast<std::size_t>(size), '\0');
  file.read(text.data(), static_cast<std::streamsize>(size));
  if (!file) return std::nullopt;
  return text;
}

std::optional<std::string> read_capture(FileSource& files, const std::string& path,
                                        Diagnostics& diagnostics) {
  std::optional<std::string> text = files.read(path);
  const bool utf16 = text && (text->starts_with("\xFF\xFE") || text->starts_with("\xFE\xFF"));
  if (text && !utf16) return text;
  const Place place{diagnostics.add_file(path), 0, 0};
  if (utf16)
    diagnostics.error(place, {}, "the text is UTF-16", "save it as UTF-8");
  else
    diagnostics.error(place, {}, "cannot read this file");
  return std::nullopt;
}

std::optional<std::string> Configs::find(std::string_view kind, const std::string& name) {
  const std::vector<std::string> known = names(kind);
  if (!std::ranges::binary_search(known, name)) return std::nullopt;
  return fmt::format("{}/{}.json", folder_of(kind), name);
}

std::vector<std::string> Configs::names(std::string_view kind) {
  if (const auto cached = names_.find(kind); cached != names_.end()) return cached->second;
  std::vector<std::string> out;
  std::error_code error;
  for (fs::directory_iterator entry(folder_of(kind), error), end; !error && entry != end;
       entry.increment(error)) {
    if (entry->path().extension() == ".json" && entry->is_regular_file(error))
      out.push_back(entry->path().stem().string());
  }
  std::ranges::sort(out);
  names_.emplace(kind, out);
  return out;
}

std::string find_configs_root() {
  if (!configs_root.empty()) return configs_root;
  std::error_code error;
  const fs::path program = fs::read_symlink("/proc/self/exe", error);
  const fs::path installed =
      (program.parent_path().parent_path() / "share/weft/configs").lexically_normal();
  if (!error && is_folder(installed)) return installed.string();
  const std::string source = fmt::format("{}/configs", WEFT_SOURCE_DIR);
  if (is_folder(source)) return source;
  throw Missing(fmt::format("the hardware catalogue is missing: neither {} nor {} is a folder",
                            installed.string(), source));
}

}  // namespace weft
