// SPDX-License-Identifier: Apache-2.0
// Files that weft writes appear whole or not at all: the text goes to a temporary file in the same folder, which is renamed.
#pragma once

#include <string>
#include <string_view>

namespace weft {

// Throws InputError when the folder or the file cannot be written.
void write_file(const std::string& path, std::string_view text);
void make_folder(const std::string& path);

}  // namespace weft
