// SPDX-License-Identifier: Apache-2.0
// config.json of a language model as Hugging Face publishes it, by family. A family is known when its layers are: two families
// may share every key and still differ in a bias, so a model_type that is not listed is refused, never counted as its neighbour.
#pragma once

#include <string>

#include "sim/run/llm_spec.hpp"

namespace weft {

bool is_hf_config(const Json& document);
// Why the layers of this config.json are not known; empty when they are.
std::string unknown_in_hf_config(const Json& document);
// Reads the keys alone: read_llm adds what holds for every model.
LlmSpec read_hf_config(const Json& document, const std::string& pointer, Diagnostics& out);

}  // namespace weft
