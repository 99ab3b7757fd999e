// SPDX-License-Identifier: Apache-2.0
// One line of the table of nccl-tests: the columns a header names, and a row read as these columns.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "calibrate/import/nccl_log.hpp"

namespace weft {

enum class NcclColumn {
  size,
  count,
  type,
  operation,
  root,
  time,
  cpu_time,
  algbw,
  busbw,
  wrong,
  error,
  shortest,
  longest,
  percentile_99,
  variation,
  timestamp,
  remark  // of `weft nccl-tests`: what it chose and why, to the end of the line
};
using NcclColumns = std::vector<NcclColumn>;

// The columns a line names, if it names nothing else. A terminal may have wrapped the header: see is_complete_header().
std::optional<NcclColumns> nccl_header_of(std::string_view text);
// The size first, then one or two groups of time, algbw, busbw and the count of wrong values, in this order: a header without the
// last would hide that data were wrong.
bool is_complete_header(const NcclColumns& columns);

// Reads the words of a line as `columns`; without a complete header, by its shape. The row parses to its last cell, and its
// numbers agree with each other; otherwise `why` says what is wrong. An unfinished line must not end in a number that may have
// lost digits.
std::optional<NcclLogRow> read_nccl_row(std::string_view text, bool finished,
                                        const NcclColumns& columns, std::string& why);

}  // namespace weft
