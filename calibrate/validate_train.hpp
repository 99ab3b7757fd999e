// SPDX-License-Identifier: Apache-2.0
// Training records predicted, and what their errors are compared with.
#pragma once

#include "calibrate/validate.hpp"

namespace weft {

// Each row is run as a scenario on as many servers as its GPUs fill. What cannot be run is in `failure`.
RecordResult predict_training(const ValidationRecord& record, const ValidationContext& context);

// Fills `baseline_error` of all training rows from the rows of records that are not held out.
void add_baseline(std::vector<RecordResult>& records);

// Figures of training rows: held out and not, by GPU generation, precision and framework; the held-out ones also by set, small
// sets pooled by GPU generation.
std::vector<GroupResult> training_groups(const std::vector<RecordResult>& records);

// Rows that were not predicted are left out.
RatioResult training_ratio(const RatioSpec& spec, const std::vector<RecordResult>& records);

}  // namespace weft
