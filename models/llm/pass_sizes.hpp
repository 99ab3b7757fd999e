// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "models/llm/architecture.hpp"
#include "sim/run/training_spec.hpp"

namespace weft {

// What one rank works on in one pass of a micro-batch.
struct PassSizes {
  PassSizes(const Architecture& model, const TrainingSpec& training);
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
};

}  // namespace weft
