// SPDX-License-Identifier: Apache-2.0
// The square tables of copy benchmarks: a line of column numbers, then one line per row with its number in front.
//
//      D\D      0      1
//        0 2841.07  37.53
//        1   37.11 2888.00
//
// A row counts only when it is whole: its number is the next one, it has one cell per column, and each cell is "N/A" or a number
// with two decimals, as the tools print them, so that a cell that lost its end is seen.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "calibrate/import/lines.hpp"
#include "calibrate/measurement.hpp"

namespace weft {

using CopyCells = std::vector<std::vector<std::optional<double>>>;  // [row][column]

class CopyMatrixReader {
 public:
  // Whether the line heads a table; `corner` is the word before the column numbers, if any.
  bool take_head(const LogLine& line);
  // Whether the line is a row of the open table; one that cannot be trusted is reported and ends it. Lines of other programs
  // may stand between rows: the numbers of the rows say what belongs together.
  bool take_row(const LogLine& line, IgnoredLines& ignored);
  void close() { open_ = false; }

  bool open() const { return open_; }
  const std::string& corner() const { return corner_; }
  std::size_t columns() const { return columns_; }
  const CopyCells& cells() const { return cells_; }

 private:
  bool open_ = false;
  std::string corner_;
  std::size_t columns_ = 0;
  CopyCells cells_;
};

// One summary per matrix: name, pairs, median, least and most, in GB/s or us.
Json facts_of_matrices(const Measurement& measurement);

}  // namespace weft
