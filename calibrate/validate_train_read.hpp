// SPDX-License-Identifier: Apache-2.0
// Reads training records and turns them into scenarios.
#pragma once

#include "calibrate/validate_case.hpp"

namespace weft {

// The case `ask` at `pointer`; problems go to `diagnostics`.
void read_train_case(const Json& ask, const std::string& pointer, TrainCase& out,
                     Diagnostics& diagnostics);

// What was measured: `value`, or the column of a table whose rows differ in n_gpus or global_batch. False after an error.
bool read_train_rows(const Json& json, const std::string& pointer, ValidationRecord& record,
                     Diagnostics& diagnostics);

// As many servers as the GPUs of a job fill, the same number of GPUs on each, as schedulers deal them out: 256 GPUs of racks of
// 72 are 4 x 64.
struct JobServers {
  std::int64_t servers = 1, gpus_per_server = 1;
};
JobServers spread_evenly(std::int64_t gpus, std::int64_t most_per_server);

// The scenario that weft runs for one row: one training job on the case's fabric.
Json train_scenario(const ValidationRecord& record, const CaseRow& row, JobServers servers);

}  // namespace weft
