// SPDX-License-Identifier: Apache-2.0
// Parameters on one rank, before data parallel ranks divide them: what it holds, and what of that it trains.
//
//   pre-training   all of it has gradients and optimizer state
//   LoRA           a pair of narrow matrices, in x rank and rank x out, beside every matrix of the attention and the MLPs is
//                  trained and held as well; the model itself is frozen (arXiv 2106.09685). Fused matrices (queries, keys and
//                  values; gate and input) have one pair, every expert has its own. A pair is divided over tp as its matrix.
//
// Example:  Llama 2 7B with rank 16 trains 33.7e6 beside 6.74e9 parameters.
#pragma once

#include <vector>

#include "models/llm/architecture.hpp"
#include "models/llm/plan.hpp"
#include "sim/run/training_spec.hpp"

namespace weft {

// Experts have replicas of their own.
struct StageParameters {
  double dense = 0, experts = 0;
  double total() const { return dense + experts; }
  void add(const StageParameters& more, double times = 1) {
    dense += times * more.dense;
    experts += times * more.experts;
  }
};

// Of the model alone.
StageParameters layer_parameters(const Architecture& model, const PlanSpec& plan, LayerKind kind);
// Of the embedding and output on a chunk, and of what predicts further tokens. A tied output, and the embedding of a
// decoder behind an encoder, are copies on a stage without the embedding.
StageParameters end_parameters(const Architecture& model, const PlanSpec& plan, const Chunk& chunk,
                               bool stage_has_embedding);
StageParameters stage_parameters(const Architecture& model, const PlanSpec& plan,
                                 const std::vector<Chunk>& chunks);

// With what `training` adds. Without adapters everything held is trained.
struct RankParameters {
  StageParameters held, trained;
  void add(const RankParameters& more, double times = 1) {
    held.add(more.held, times);
    trained.add(more.trained, times);
  }
};
RankParameters layer_parameters(const Architecture& model, const TrainingSpec& training,
                                LayerKind kind);
RankParameters end_parameters(const Architecture& model, const TrainingSpec& training,
                              const Chunk& chunk, bool stage_has_embedding);
RankParameters stage_parameters(const Architecture& model, const TrainingSpec& training,
                                const std::vector<Chunk>& chunks);

// All ranks' together, prediction layers left out as in Architecture::total().
double trained_parameters(const Architecture& model, const TrainingSpec& training);

}  // namespace weft
