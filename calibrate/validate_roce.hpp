// SPDX-License-Identifier: Apache-2.0
// Records of congested networks: read, and predicted by running their scenarios.
#pragma once

#include "calibrate/validate.hpp"

namespace weft {

void read_roce_case(const Json& ask, const std::string& pointer, RoceCase& out,
                    Diagnostics& diagnostics);

// Fills `record.rows` from the record `json` at `pointer`. False after an error.
bool read_roce_rows(const Json& json, const std::string& pointer, ValidationRecord& record,
                    Diagnostics& diagnostics);

// Each row is one run. What cannot be run, or a number that the report lacks, is in `failure`.
RecordResult predict_roce(const ValidationRecord& record, const ValidationContext& context);

}  // namespace weft
