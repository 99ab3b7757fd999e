// SPDX-License-Identifier: Apache-2.0
// config.json of a language model as Hugging Face publishes it: how many parameters it has, how many of them one token uses, what
// its cache of keys and values takes, and the file of kind llm that `weft run` takes for it. The counting is Architecture's.
//
// Example:  Llama 3 8B has 8,030,261,248 parameters and 131,072 B of cache per token at 16 bit.
//
// Facts:  model_type, layers, hidden, heads, kv_heads, head_dim, vocabulary, context, dtype, experts, experts_per_token,
//         parameters, active_parameters, kv_bytes_per_token (16 bit). Counts are null for a model_type that is not known.
#pragma once

#include "calibrate/import/import.hpp"

namespace weft {

extern const Importer kHfConfigImporter;

}  // namespace weft
