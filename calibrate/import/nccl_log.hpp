// SPDX-License-Identifier: Apache-2.0
// The output of nccl-tests as it was printed, before anything is concluded from it. Two readers fill it: the text table and
// the JSON report.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "calibrate/import/lines.hpp"
#include "calibrate/measurement.hpp"

namespace weft {

// One of the two groups of columns.
struct NcclHalf {
  PrintedNumber time, algbw, busbw;                               // us, GB/s, GB/s
  std::optional<double> wrong;                                    // absent: not validated
  std::optional<PrintedNumber> shortest, longest, percentile_99;  // us, with -I
};

struct NcclLogRow {
  std::int64_t bytes = 0, count = 0;  // count 0: the table has no such column
  std::string type, operation;        // operation empty: none
  std::optional<int> root;
  std::array<std::optional<NcclHalf>, 2> halves;  // out-of-place, in-place
  Place place;
};

// Rows in which every size occurs once, with what was printed below them.
struct NcclTable {
  std::string program;  // "all_reduce"
  std::vector<NcclLogRow> rows;
  std::optional<PrintedNumber> average;
  std::optional<std::int64_t> out_of_bounds;
  Place below;                                     // of the two
  std::map<std::string, std::string> environment;  // "NCCL_ALGO" -> "Ring"
};

struct NcclLog {
  std::string version, nccl;                 // "2.18.0", "2.10.3+cuda11.6"
  std::map<std::string, std::string> setup;  // "nGpus" -> "8"
  std::vector<MeasuredDevice> devices;
  std::optional<int> stated_ranks, stated_nodes;  // of NCCL's own lines
  std::vector<NcclTable> tables;
  std::string failure;  // "illegal memory access"
  Place failure_place;
  bool header = false, cpu_time = false, old_error = false;
  bool predicted = false;  // printed by `weft nccl-tests`
};

// Column names may come glued to a '#'; the size of an element of a type, 0 when it is not known.
int element_size(std::string_view type);
// "all_reduce" of "./build/all_reduce_perf_mpi"; empty when it is no program of nccl-tests.
std::string collective_of_program(std::string_view text);
// Nothing when the numbers of a half agree with each other within their rounding, otherwise what does not.
std::string disagreement(std::int64_t bytes, const NcclHalf& half, bool cpu_time);

// Keeps NCCL_ALGO=Ring, a value in quotes or before a full stop; false when it is no variable of NCCL.
bool keep_nccl_variable(std::map<std::string, std::string>& into, std::string_view name,
                        std::string_view value);

NcclLog read_nccl_text(std::string_view text, std::uint32_t file, IgnoredLines& ignored);
NcclLog read_nccl_json(std::string_view text, const std::string& file, IgnoredLines& ignored,
                       Diagnostics& out);

}  // namespace weft
