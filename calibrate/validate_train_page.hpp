// SPDX-License-Identifier: Apache-2.0
// The part of the validation page on training runs: errors beside those of a constant rate, ratios, the worst rows.
#pragma once

#include <string>

#include "calibrate/validate.hpp"

namespace weft {

// Empty when no training row was predicted.
std::string training_section(const ValidationResult& result, const std::string& folder);
// Predicted against measured time of a step; empty likewise.
std::string training_plot(const ValidationResult& result);

}  // namespace weft
