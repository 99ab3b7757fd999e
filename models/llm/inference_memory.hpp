// SPDX-License-Identifier: Apache-2.0
// What an inference engine keeps on a GPU: weights, the workspace of an iteration, and pages of keys and values in the rest.
//
//   weights     of the stage, split over tp (experts over ep and etp); a key or value head that tp does not divide is copied
//   workspace   of the largest iteration: the residual stream twice, the widest inner activation, logits in FP32
//   cache       Latent vectors are kept whole by every rank of tp; heads are split, at least one each
#pragma once

#include <cstdint>
#include <vector>

#include "models/llm/architecture.hpp"
#include "models/llm/plan.hpp"
#include "sim/run/inference_spec.hpp"

namespace weft {

class InferenceMemory {
 public:
  InferenceMemory(const Architecture& model, const InferenceSpec& spec, const StageLayout& layout);

  // Bytes on one GPU of the stage that has most.
  double weights() const { return weights_; }
  double workspace() const { return workspace_; }
  // Of one sequence of `tokens`. Behind an encoder the decoder's and those of the prompt, which it attends to, alike.
  double cache(double tokens) const;
  // Tokens of sequences about as long as `typical` whose caches fit in `bytes`.
  std::int64_t tokens_in(double bytes, double typical) const;

 private:
  double weights_ = 0, workspace_ = 0;
  double full_ = 0, windowed_ = 0, window_ = 0, state_ = 0;  // bytes per token; per sequence
};

}  // namespace weft
