// SPDX-License-Identifier: Apache-2.0
// Measurements as questions that weft can answer: which ranks took part, which NCCL, started how; and which rows say nothing
// about the machine and are therefore not fitted.
//
//   warm-up            the first size takes longer than the next: it pays for the start
//   slower than larger a size takes longer than the next larger one: something else was running
//   cliff              bandwidth falls to 60 % or less: that size and all beyond it are another regime, and a fault until
//                      somebody explains it
//   dent               bandwidth falls to 80 % or less and is above what it was at the next size
//   fixed cost         sizes that differ by 8 and more up to 4 MiB and beyond take the same: a time-out or a stuck path
//   wrong data         the benchmark's own check failed: refused as a whole
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "calibrate/fit/measured_file.hpp"
#include "calibrate/fit/predict.hpp"
#include "calibrate/log_facts.hpp"
#include "calibrate/validate_case.hpp"

namespace weft {

// What the file does not say, or says wrongly. The release and how the test was started come from the file where they are absent.
struct FitAnswers {
  std::string collective;
  std::optional<std::int64_t> ranks, nodes, per_node;
  std::optional<NcclVersion> release;
  std::optional<NcclHarness> harness;
  NcclEnvironment environment;
  std::string algorithm, protocol;
  bool force = false;       // keeps what failed its own check
  bool other_gpus = false;  // fits what was measured on other GPUs than the fabric's
};

// Adds what the file holds to `data`. The GPUs of a server of `fabric` decide where a table does not tell its servers.
void add_measurement(const MeasuredFile& file, const Fabric& fabric, const FitAnswers& answers,
                     FitData& data, std::vector<std::string>& notes, Diagnostics& out);

// The tables of a validation record, one per set of ranks.
std::vector<FitTable> tables_of(const ValidationRecord& record, std::size_t gpus_per_server);

// Marks the rows of a table that are not to be fitted, by the anomalies of the run that it came from.
void refuse_rows(FitTable& table, const MeasuredRun& run);
void refuse_rows(FitTable& table);  // by its own rows

}  // namespace weft
