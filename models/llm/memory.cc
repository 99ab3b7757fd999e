// SPDX-License-Identifier: Apache-2.0
#include "models/llm/memory.hpp"

#include <algorithm>
#include <limits>

#include <fmt/format.h>

#include "models/llm/activations.hpp"
#include "models/llm/pipeline/pipeline.hpp"

namespace weft {
namespace {

// assumed: the context with its libraries, NCCL's buffers per dimension of parallelism, what the allocator rounds up and
// cannot reuse. Together they make the runs of LLM Foundry fit that did fit.
constexpr double kContext = 1e9, kCommunicator = 0.5e9, kFragmentation = 0.07;

}  // namespace

double optimizer_bytes(const TrainingSpec& training) {
  if (training.optimizer == Optimizer::none) return 0;
  const double number = bytes_of(training.dtype.optimizer);
  const double moments = training.optimizer == Optimizer::sgd ? 1 : 2;
  const double master = bytes_of(training.dtype.param) < number ? 1 : 0;
  return (moments + master) * number;
}

namespace {

// Narrower gradients are widened for the optimizer's step, when no activations are left.
double widened_bytes(const TrainingSpec& training) {
  const double number = bytes_of(training.dtype.optimizer);
  const bool steps = training.optimizer != Optimizer::none && !training.plan.offload;
  return steps && bytes_of(training.dtype.grad) < number ? number : 0;
}

// Over how many ranks each kind of state is divided.
struct Shards {
  double weights = 1, gradients = 1, optimizer = 1;
};

Shards shards_of(const PlanSpec& plan, std::int64_t replicas) {
  if (plan.fsdp) {
    const double over = real(plan.shard_ranks(replicas));
    return {over, over, over};
  }
  const double all = real(replicas);
  return {plan.zero >= 3 ? all : 1, plan.zero >= 2 ? all : 1, plan.zero >= 1 ? all : 1};
}

class StageMemory {
 public:
  StageMemory(const Architecture& model, const TrainingSpec& training, const StageLayout& layout,
              std::size_t stage)
      : model_(model),
        training_(training),
        plan_(training.plan),
        chunks_(layout[stage]),
        stages_(static_cast<std::int64_t>(layout.size())),
        stage_(static_cast<std::int64_t>(stage)),
        activations_(model, training) {
    replicas_ = plan_.dp.value_or(1) * plan_.cp;
    expert_replicas_ = std::max<std::int64_t>(expert_replicas(plan_), 1);
    groups_ = count_layers(model, chunks_);
    parameters_ = stage_parameters(model, training, chunks_);
  }

  MemoryUse use() {
    states();
    activations();
    buffers();
    const double dimensions = (plan_.tp > 1) + (plan_.pp > 1) + (plan_.cp > 1) + (plan_.ep > 1) +
                              (plan_.dp.value_or(1) > 1);
    use_.reserve = kContext + kCommunicator * dimensions + kFragmentation * use_.total();
    return use_;
  }

 private:
  void states() {
    const Shards dense = shards_of(plan_, replicas_), experts = shards_of(plan_, expert_replicas_);
    const DtypeSpec& dtype = training_.dtype;
    const auto& [held, trained] = parameters_;
    use_.weights =
        bytes_of(dtype.param) * (held.dense / dense.weights + held.experts / experts.weights);
    use_.gradients = bytes_of(dtype.grad) *
                     (trained.dense / dense.gradients + trained.experts / experts.gradients);
    const double stepped = trained.dense / dense.optimizer + trained.experts / experts.optimizer;
    if (!plan_.offload) use_.optimizer = optimizer_bytes(training_) * stepped;
    widened_ = widened_bytes(training_) * stepped;
  }

  // In chunks' worth.
  double in_flight() const {
    const auto chunks = static_cast<std::int64_t>(chunks_.size());
    if (stages_ == 1) return real(chunks);
    const PipelineShape shape{stages_, chunks, std::max(micro_batches(training_), std::int64_t{1})};
    return real(most_in_flight(pipeline_entry(plan_.schedule), shape, stage_));
  }

  bool holds(bool Chunk::*end) const { return std::ranges::any_of(chunks_, end); }

  void activations() {
    double kept = 0, at_work = 0;
    std::int64_t left = 0;  // layers that still recompute
    if (plan_.recompute != Recompute::none)
      left = plan_.recompute_layers.value_or(std::numeric_limits<std::int64_t>::max());
    for (const auto& [kind, count] : groups_) {
      const std::int64_t again = std::min(left, count);
      left -= again;
      const double whole = activations_.layer(kind, Recompute::none);
      kept += real(again) * activations_.layer(kind, plan_.recompute) + real(count - again) * whole;
      at_work = std::max(at_work, activations_.gradients(kind) + (again > 0 ? whole : 0));
    }
    if (holds(&Chunk::embedding)) kept += activations_.embedding();
    if (std::ranges::any_of(groups_, [](const LayerCount& group) { return group.kind.cross; }))
      kept += activations_.encoded();
    const double loss = holds(&Chunk::loss) ? activations_.loss() : 0;
    const double passes = in_flight() * kept / real(static_cast<std::int64_t>(chunks_.size())) +
                          std::max(at_work, loss) + (holds(&Chunk::loss) ? prediction() : 0);
    use_.activations = std::max(passes, widened_);
  }

  double prediction() const {
    double out = 0;
    for (const LayerKind kind : model_.prediction_kinds())
      out += activations_.layer(kind, plan_.recompute);
    return out * real(model_.spec().prediction_layers);
  }

  void buffers() {
    if (plan_.sharded()) use_.buffers += gathered();
    if (replicas_ > 1) use_.buffers += 2 * plan_.bucket.value();
    if (stages_ > 1) use_.buffers += 4 * activations_.boundary(chunks_.back());
    if (plan_.tp > 1 && plan_.sp)
      use_.buffers +=
          2 * activations_.boundary(chunks_.back()) * real(plan_.tp);  // gathered sequences
    if (plan_.cp > 1)
      use_.buffers += 2 * model_.kv_bytes_per_token(2) / real(model_.layers()) *
                      real(training_.seq * plan_.micro_batch) / real(plan_.cp * plan_.tp);
  }

  // Weights of FSDP that are whole for a while, and gradients before they are scattered.
  double gathered() const {
    const double gather = bytes_of(training_.dtype.gathered()),
                 reduce = bytes_of(training_.dtype.reduced());
    const FsdpSpec fsdp = plan_.fsdp.value_or(FsdpSpec{});
    double largest = 0, most_trained = 0;
    RankParameters layers;
    for (const auto& [kind, count] : groups_) {
      const RankParameters one = layer_parameters(model_, training_, kind);
      largest = std::max(largest, one.held.total());
      most_trained = std::max(most_trained, one.trained.total());
      layers.add(one, real(count));
    }
    const double all = layers.held.total(), ends = parameters_.held.total() - all;
    const double weights = fsdp.reshard ? std::min(largest * real(1 + fsdp.prefetch), all) : all;
    const bool whole = !fsdp.reduce_every_micro_batch && micro_batches(training_) > 1;
    const double gradients = whole ? parameters_.trained.total() : 2 * most_trained;
    return gather * (weights + ends) + reduce * gradients;
  }

  const Architecture& model_;
  const TrainingSpec& training_;
  const PlanSpec& plan_;
  const std::vector<Chunk>& chunks_;
  std::int64_t stages_, stage_;
  Activations activations_;
  std::int64_t replicas_ = 1, expert_replicas_ = 1;
  double widened_ = 0;
  std::vector<LayerCount> groups_;
  RankParameters parameters_;
  MemoryUse use_;
};

}  // namespace

std::vector<MemoryUse> training_memory(const Architecture& model, const TrainingSpec& training,
                                       const StageLayout& layout) {
  std::vector<MemoryUse> out;
  for (std::size_t stage = 0; stage < layout.size(); ++stage)
    out.push_back(stage_memory(model, training, layout, stage));
  return out;
}

MemoryUse stage_memory(const Architecture& model, const TrainingSpec& training,
                       const StageLayout& layout, std::size_t stage) {
  return StageMemory(model, training, layout, stage).use();
}

std::string explain(const MemoryUse& use, double capacity_bytes) {
  std::string out;
  const auto part = [&](std::string_view name, double bytes) {
    if (bytes <= 0) return;
    out += fmt::format("{}{} {:.1f} GB", out.empty() ? "" : " + ", name, bytes / 1e9);
  };
  part("weights", use.weights);
  part("gradients", use.gradients);
  part("optimizer", use.optimizer);
  part("activations", use.activations);
  part("buffers", use.buffers);
  part("cache", use.kv_cache);
  part("reserve", use.reserve);
  return out + fmt::format(" = {:.1f} GB of {:.1f} GB", use.total() / 1e9, capacity_bytes / 1e9);
}

}  // namespace weft
