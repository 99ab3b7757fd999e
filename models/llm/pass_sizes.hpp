// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "models/llm/architecture.hpp"
#include "sim/run/training_spec.hpp"

namespace weft {

// What one rank works on in one pass of a micro-batch.
struct PassSizes {
  // Of the encoder's layers, or of all others.
  PassSizes(const Architecture& model, const TrainingSpec& training, bool encoder = false);
  double batch, seq, hidden;
  double tp, cp, ep, etp;
  bool sp;
  double tokens;    // of the micro-batch on a context parallel rank
  double local;     // of them where the residual stream is: 1/tp with sp
  double bytes;     // of an activation in memory and on the wire
  double gathered;  // of one that is gathered for a product: FP8 when computing in it
  double micro_batches;
  Precision compute;  // of the layers' products
  Precision exact;    // of the router, the output matrix, attention
  double lora;        // rank of the adapters; 0: all weights are trained
  OverlapSpec overlap;
  double gradient_bytes;  // moved per element of a weight's gradient
  double encoder_seq;     // of the encoder before these layers; 0: none
  double encoder_tokens() const { return batch * encoder_seq; }
  double encoder_local() const { return sp ? encoder_tokens() / tp : encoder_tokens(); }
};

}  // namespace weft
