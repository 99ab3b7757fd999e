// SPDX-License-Identifier: Apache-2.0
// The catalogue on disk: kind "gpu" is folder gpus, "switch" is switches, and so on; a component's name is its file's stem.
//
// Refused: anything but a regular file (a folder, a pipe, a device) and files above kLargestFile.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "sim/core/loader.hpp"

namespace weft {

class Configs final : public FileSource {
 public:
  static constexpr std::uintmax_t kLargestFile = std::uintmax_t{64} << 20;

  // `root` holds the folders of the kinds; a folder that is missing is an empty one.
  explicit Configs(std::string root) : root_(std::move(root)) {}

  std::optional<std::string> read(const std::string& path) override;
  std::optional<std::string> find(std::string_view kind, const std::string& name) override;
  std::vector<std::string> names(std::string_view kind) override;

  static const std::vector<std::string_view>& kinds();
  const std::string& root() const { return root_; }

 private:
  std::string folder_of(std::string_view kind) const;  // empty for a kind that there is not

  std::string root_;
  std::map<std::string, std::vector<std::string>, std::less<>> names_;  // by kind, read once
};

// While it lives, this thread reads `text` where it asks for the file `path`: for documents that are on no disk.
class MemoryFile {
 public:
  MemoryFile(std::string path, std::string text);
  MemoryFile(const MemoryFile&) = delete;
  MemoryFile& operator=(const MemoryFile&) = delete;
  ~MemoryFile();

 private:
  std::string path_;
};

// A capture as somebody else's tool wrote it. What cannot be read, and UTF-16, which some shells write into files, is reported.
std::optional<std::string> read_capture(FileSource& files, const std::string& path,
                                        Diagnostics& diagnostics);

// The catalogue of this installation: ../share/weft/configs beside the program, else configs of the source tree it was built
// from. Throws Missing when neither exists.
std::string find_configs_root();
// Another place for it, from now on: for hosts whose program is not weft. To be called before threads read it.
void set_configs_root(std::string root);

}  // namespace weft
