// SPDX-License-Identifier: Apache-2.0
// Floating-point operations of one training step, forward and backward. TFLOP/s and MFU mean nothing without saying which of
// these was counted: the same run of Llama 3 8B at 8,192 tokens is 12 % faster by one than by another.
//
//   palm      6 N + 12 L d s per token: all of attention, no recompute (arXiv 2204.02311, appendix B)
//   causal    6 N + 6 L d s: the half of attention that a causal mask leaves; prediction layers and Mamba's scan count
//             (Megatron-Bridge, flop_utils)
//   megatron  96 B s L h^2 (1 + s / 6h + V / 16 L h) with full recompute (arXiv 2104.04473, eq. 3), 72 ... V / 12 L h without,
//             and the same for layers of other shapes: 8 or 6 per weight of a layer, 16 or 12 L d s, 6 per weight of the output
//   6n        6 N per token
//
// N: parameters that a token uses. palm leaves out an embedding that is only looked up (not tied); causal and megatron count
// matrices alone, 6n all.
//
// Behind an encoder N is what the encoder's tokens use, for each of them, and what the decoder's use: keys and values of the
// attention between the two belong to the encoder's tokens. That attention, like the encoder's own, has no mask. The
// embedding, where it counts, counts with the decoder's tokens.
#pragma once

#include <cstdint>

#include "models/llm/architecture.hpp"
#include "sim/run/training_spec.hpp"

namespace weft {

// Tokens of one sequence. Behind an encoder `seq` is what the encoder reads, `decoder` what the decoder writes; 0: as many.
struct Lengths {
  std::int64_t seq = 0, decoder = 0;
  Lengths(std::int64_t tokens, std::int64_t written = 0) : seq(tokens), decoder(written) {}
};

// `sequences` of `seq` tokens each. `recompute` matters to megatron alone. `frozen`: weights get no gradient (LoRA), which
// leaves two thirds of what they cost.
double training_flops(const Architecture& model, FlopsConvention convention, Lengths lengths,
                      std::int64_t sequences, bool recompute, bool frozen = false);
// What the hardware really multiplies: causal attention within its window, recompute included.
double hardware_flops(const Architecture& model, Lengths lengths, std::int64_t sequences,
                      Recompute recompute, bool frozen = false);

}  // namespace weft
