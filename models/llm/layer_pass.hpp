// SPDX-License-Identifier: Apache-2.0
// One pass of one micro-batch through one layer on one rank: kernels and collectives in order. The simulated step and the
// analytic estimate are both made of these.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>
#include <vector>

#include "models/compute/kernels.hpp"
#include "models/llm/architecture.hpp"
#include "models/llm/pass_sizes.hpp"
#include "sim/run/training_spec.hpp"
#include "sim/workload/schedule.hpp"

namespace weft {

// Dimensions of parallelism, as reports name them. edp: replicas of experts; embed: tied embeddings of the first and last stage;
// host: an offloaded optimizer, its copies included.
enum class Dimension : std::uint8_t { tp, pp, dp, edp, ep, cp, embed, host, other };
inline constexpr std::size_t kDimensions = 9;
constexpr std::string_view dimension_name(Dimension dimension) {
  constexpr std::array<std::string_view, kDimensions> kNames{"tp", "pp",    "dp",   "edp",  "ep",
                                                             "cp", "embed", "host", "other"};
  return kNames[static_cast<std::size_t>(dimension)];
}

struct CollectiveCall {
  Dimension dimension = Dimension::tp;
  CollectiveKind kind = CollectiveKind::all_reduce;
  double bytes = 0;  // as nccl-tests counts them
  // Share of the step's computing that the call may run beside, chunk by chunk (TP overlap, ring attention); 0: after it.
  double beside = 0;
  double rounds = 1;  // ring attention: so many exchanges of `bytes` one after the other
};

// Computes, then communicates (unless beside).
struct PassStep {
  double compute_s = 0;
  double kernels = 0;  // launches; a pass takes at least what its host needs for them
  double flops =
      0;  // multiplied and added, causal attention; a backward pass of attention counts twice
  std::vector<CollectiveCall> calls;
};

struct LayerPass {
  std::vector<PassStep> steps;
  double compute_s() const;
  double flops() const;
};

enum class PassKind : std::uint8_t {
  forward,
  backward,         // gradients of inputs and weights, recompute included
  backward_inputs,  // zero-bubble schedules split the two
  backward_weights
};

// Everything that the time of a layer depends on besides its kind.
class LayerPasses {
 public:
  LayerPasses(const Architecture& model, const TrainingSpec& training, const KernelTimes& kernels);

  // Layers of one kind are alike; `recomputes`: this layer is one of those that recompute.
  LayerPass layer(LayerKind kind, PassKind pass, bool recomputes) const;
  LayerPass embedding(PassKind pass) const;  // of the tokens that the first layer reads
  LayerPass loss(PassKind pass) const;       // output matrix, softmax, cross entropy
  // The optimizer's step over so many parameters of one rank, its gradient norm included; nothing when the host does it.
  double optimizer_s(double parameters) const;
  double beside_collectives() const { return kernels_.slowdown_beside_collectives(); }

 private:
  const Architecture& model_;
  const TrainingSpec& training_;
  const KernelTimes& kernels_;
  PassSizes sizes_, encoder_sizes_;
};

}  // namespace weft
