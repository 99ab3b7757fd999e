// SPDX-License-Identifier: Apache-2.0
// The answer of `weft validate`: for scripts, with the keys that they rely on, and for a terminal.
#pragma once

#include <string>

#include "calibrate/validate.hpp"
#include "sim/core/json.hpp"

namespace weft {

Json validation_json(const ValidationResult& result);
std::string validation_text(const ValidationResult& result);

}  // namespace weft
