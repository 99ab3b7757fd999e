// SPDX-License-Identifier: Apache-2.0
// Lines of a matrix as words that know where they stand: by tabs, and by the column that a screen would show.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace weft {

struct TopoWord {
  std::string text;
  std::uint32_t line = 0, column = 0;  // in the file, from 1
  std::uint32_t tabs = 0;              // tab characters before it
  std::uint32_t shown_at = 0;          // with tab stops every eight columns
};

struct TopoLine {
  std::uint32_t number = 0;
  std::vector<TopoWord> words;
  bool damaged = false;  // holds a broken escape code or a control character
};

// Without escape codes and the tags of launchers.
std::vector<TopoLine> topo_lines(std::string_view text);

}  // namespace weft
