// SPDX-License-Identifier: Apache-2.0
// The numbers of a record: its table, its matrix of pairs or its one value, in microseconds or GB/s.
#pragma once

#include "calibrate/validate_case.hpp"

namespace weft {

// Fills `record.rows` from the record `json` at `pointer`, whose case is known. False after an error.
bool read_rows(const Json& json, const std::string& pointer, ValidationRecord& record,
               Diagnostics& diagnostics);

}  // namespace weft
