// SPDX-License-Identifier: Apache-2.0
// config.json of a language model as Hugging Face publishes it: how many parameters it has, how many of them one token uses, and
// what its cache of keys and values takes.
//
// Counted:  embedding and output (one matrix when tied), per layer two norms, attention (grouped heads, biases of Qwen2, norms of
//           Qwen3, or the latent attention of DeepSeek), a gated MLP of three matrices, or router and experts; the last norm.
// Example:  Llama 3 8B has 8,030,261,248 parameters and 131,072 B of cache per token at 16 bit.
//
// Facts:  model_type, layers, hidden, heads, kv_heads, head_dim, vocabulary, context, dtype, experts, experts_per_token,
//         parameters, active_parameters, kv_bytes_per_token (16 bit). Counts are null for a model_type that is not known.
#pragma once

#include "calibrate/import/import.hpp"

namespace weft {

extern const Importer kHfConfigImporter;

}  // namespace weft
