// SPDX-License-Identifier: Apache-2.0
// Files that weft writes appear whole or not at all, and so do files that belong together: each text goes to a temporary file in
// the folder where it shall be; when all are written they are renamed. Devices and pipes are written last.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace weft {

struct OutputFile {
  std::string path, text;
  bool make_folders =
      false;  // those that are missing on the way; gone again when something cannot be written
};

// Throw InputError when something cannot be written.
void write_files(std::span<const OutputFile> files);
void write_file(const std::string& path, std::string_view text);

// Throws InputError at once where the file could not be written now: for before long work. Leaves nothing behind; an empty path
// is none.
void expect_writable(const std::string& path, bool make_folders = false);

bool same_file(const std::string& a, const std::string& b);  // false when one of them is empty
// Throws InputError when the output is one of the files that are read.
void refuse_overwriting(const std::string& output, const std::vector<std::string>& inputs);

}  // namespace weft
