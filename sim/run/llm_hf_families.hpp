// SPDX-License-Identifier: Apache-2.0
// What config.json means in each family of models. A new family is a function and a line of the table in llm_hf_families.cc.
#pragma once

#include <span>
#include <string_view>

#include "sim/run/llm_hf_config.hpp"
#include "sim/run/llm_spec.hpp"

namespace weft {

struct HfFamily {
  std::string_view type, architecture;
  void (*read)(const HfConfig&, LlmSpec&);
};

// By model_type; one with several architectures stands in several lines, one behind the other.
std::span<const HfFamily> hf_families();

}  // namespace weft
