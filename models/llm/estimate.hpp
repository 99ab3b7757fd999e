// SPDX-License-Identifier: Apache-2.0
// The time of a training step without events, for searches: the passes of layers summed up, and what a schedule, the sends
// between stages and the exchange of gradients add to them.
//
//   pipeline   m (F + B) of the slowest stage, and the schedule's idle time with the mean of the others
//   sends      2 (p - 1) hops fill and drain the pipeline; in 1F1B a micro-batch comes back only after 2 (p - 1) hops and p others,
//              so that each of them waits for 2 (p - 1) / p hops more
//   gradients  what their reduction takes beyond the last backward pass, under which it runs bucket by bucket
//   host       copies of an offloaded optimizer beyond the passes under which they run, its step, weights on their way back
//   pace       where computing is slower beside collectives, both run together and the longer one is left alone
//   weights    gathered before the first pass (ZeRO-1, ZeRO-2), or layer by layer beside the passes (FSDP): the longer counts
//
// The simulated step (models/llm/step) is made of the same passes; `weft plan` checks its best plans with it.
#pragma once

#include <array>
#include <compare>
#include <cstdint>
#include <map>
#include <tuple>
#include <vector>

#include "models/llm/layer_pass.hpp"
#include "models/llm/memory.hpp"
#include "models/llm/plan.hpp"

namespace weft {

// Ranks i, i + stride, i + 2 stride ...: a group, and beside it those of i + 1, i + 2 up to the next member.
struct GroupSpan {
  std::int64_t ranks = 1, stride = 1;
  auto operator<=>(const GroupSpan&) const = default;
};

// Seconds of a collective that all groups of a span run at once.
class CollectiveTimes {
 public:
  virtual ~CollectiveTimes() = default;
  virtual double collective(GroupSpan span, CollectiveKind kind, double bytes) = 0;
  // From every rank to the one `distance` after it.
  virtual double send(std::int64_t distance, double bytes) = 0;
};

struct StepEstimate {
  double step_s = 0, compute_s = 0, bubble_s = 0;
  std::array<double, kDimensions> exposed_s{};
};

class Estimator {
 public:
  Estimator(const Architecture& model, const KernelTimes& kernels, CollectiveTimes& times);

  // The plan must be legal (check_plan). Passes are remembered by what of the plan they depend on: everything else of
  // `training` must be the same from call to call.
  StepEstimate step(const TrainingSpec& training, const StageLayout& layout);

 private:
  struct Cost {
    double compute = 0, total = 0;
    std::array<double, kDimensions> exposed{};
    void add(const Cost& more, double times);
  };
  static constexpr std::size_t kPasses = 4;
  using ByPass = std::array<Cost, kPasses>;
  struct Passes {
    std::vector<std::array<ByPass, 2>> layers;  // by kind and whether it recomputes
    ByPass embedding, loss;
  };
  struct Stage {
    std::vector<std::int64_t> counts;  // layers by kind, twice: those that recompute behind
    std::int64_t embeddings = 0, losses = 0, joins = 0;
    Cost forward, backward, weights;
    RankParameters parameters;
    // Fully sharded: what the first pass of all waits for more than later ones, and the last for its gradients.
    double begin = 0, end = 0;
    bool operator==(const Stage& other) const {
      return counts == other.counts && embeddings == other.embeddings && losses == other.losses &&
             joins == other.joins;
    }
  };

  const Passes& passes(const TrainingSpec& training);
  Cost cost(const LayerPass& pass, const PlanSpec& plan);
  double call(const CollectiveCall& one, const PlanSpec& plan);
  void shape(Stage& stage, const TrainingSpec& training, const std::vector<Chunk>& chunks) const;
  void fill(Stage& stage, const TrainingSpec& training, const Passes& passes, bool split,
            double share);
  void shard(Stage& stage, const TrainingSpec& training);
  double over_replicas(const TrainingSpec& training, StageParameters parameters,
                       CollectiveKind kind, double bytes);
  double reduction(const TrainingSpec& training, StageParameters parameters);
  double layer_bytes(const TrainingSpec& training) const;
  double mean_hop(const TrainingSpec& training, const StageLayout& layout);
  double finish(const TrainingSpec& training, StepEstimate& out);
  // How much longer `computing` takes beside `busy` seconds of collectives.
  double slowed(double computing, double busy) const;

  const Architecture& model_;
  const KernelTimes& kernels_;
  CollectiveTimes& times_;
  std::vector<LayerKind> kinds_;
  std::vector<std::size_t> kind_of_;  // by layer
  using Key = std::tuple<std::int64_t, std::int64_t, std::int64_t, std::int64_t, std::int64_t, bool,
                         Recompute, ContextParallel, Dispatcher>;
  std::map<Key, Passes> passes_;
  // Of the last call.
  std::vector<Stage> stages_;
  std::vector<std::int64_t> copies_;  // stages with the embedding
};

}  // namespace weft
