// SPDX-License-Identifier: Apache-2.0
// One record predicted: its rows are grouped by the GPUs that took part, each group is one table of NCCL or one walk over
// pairs of GPUs.
#pragma once

#include "calibrate/validate.hpp"

namespace weft {

// What the fabric does not have (a pair, a number of GPUs) is in `failure`; other exceptions pass.
RecordResult predict_record(const ValidationRecord& record, const ValidationContext& context);

}  // namespace weft
