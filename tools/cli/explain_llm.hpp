// SPDX-License-Identifier: Apache-2.0
// What `weft explain` adds to the values of a language model: parameters, kinds of layers, cache and FLOPs per token.
#pragma once

#include <string>

#include "sim/core/diagnostics.hpp"
#include "sim/core/json.hpp"

namespace weft {

// The lines for people; the same facts go to `entry` under "llm".
std::string explain_llm(const Json& document, Diagnostics& diagnostics, Json& entry);

}  // namespace weft
