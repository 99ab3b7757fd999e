// SPDX-License-Identifier: Apache-2.0
// Weights and gradients of a step: gathered before they are needed, reduced when they are there.
#include <algorithm>

#include "models/llm/step.hpp"
#include "sim/run/run.hpp"

namespace weft {

double StepBuilder::shard_ranks(bool experts) const {
  const PlanSpec& plan = in_.training.plan;
  return real(plan.shard_ranks(experts ? expert_replicas(plan) : *plan.dp * plan.cp));
}

RankParameters StepBuilder::parameters_of(std::int64_t layer) const {
  return layer_parameters(in_.model, in_.training, in_.model.layer(layer));
}

RankParameters StepBuilder::parameters_of(std::int64_t stage, const Chunk& chunk) const {
  RankParameters out = ends_of(stage, chunk);
  for (std::int64_t layer = chunk.first; layer < chunk.first + chunk.count; ++layer)
    out.add(parameters_of(layer));
  return out;
}

RankParameters StepBuilder::ends_of(std::int64_t stage, const Chunk& chunk) const {
  return end_parameters(
      in_.model, in_.training, chunk,
      std::ranges::any_of(in_.layout[static_cast<std::size_t>(stage)], &Chunk::embedding));
}

// Fully sharded: the weights of what runs next, prefetched.
void StepBuilder::gather(std::int64_t stage, StageParameters parameters, std::uint32_t label) {
  if (!in_.training.plan.sharded()) return;
  const FsdpSpec fsdp = in_.training.plan.fsdp.value_or(FsdpSpec{});
  const std::vector<OpId> computed = ready(stage, label);
  std::vector<OpId> start;
  for (std::size_t c = 0; c < classes_.size(); ++c) {
    Streams& streams = streams_[timeline(c, stage)];
    // So many layers ahead, and no more: memory.
    streams.layers.push_back(computed[c]);
    const auto back = static_cast<std::size_t>(fsdp.prefetch);
    while (streams.layers.size() > back + 1) streams.layers.pop_front();
    start.push_back(barrier({streams.layers.front(), streams.gather}, label_of(Dimension::dp)));
  }
  const OpId done = gather_now(stage, parameters, start);
  for (std::size_t c = 0; c < classes_.size(); ++c) {
    Streams& streams = streams_[timeline(c, stage)];
    streams.gather = done;
    streams.compute = barrier({computed[c], done}, label_of(Dimension::dp));
  }
}

OpId StepBuilder::gather_now(std::int64_t stage, StageParameters parameters,
                             const std::vector<OpId>& start) {
  const double bytes = bytes_of(in_.training.dtype.gathered());
  const auto over = in_.training.plan.fsdp ? Call::Over::shard : Call::Over::all;
  std::vector<OpId> done;
  for (const bool experts : {false, true}) {
    const double count = experts ? parameters.experts : parameters.dense;
    if (count <= 0) continue;
    done.push_back(over_replicas(stage, experts, over, CollectiveKind::all_gather, count * bytes,
                                 done.empty() ? start : std::vector<OpId>{done.back()}));
  }
  return done.empty() ? barrier(start, label_of(Dimension::dp)) : done.back();
}

OpId StepBuilder::over_replicas(std::int64_t stage, bool experts, Call::Over over,
                                CollectiveKind kind, double bytes, const std::vector<OpId>& start) {
  const Dimension dimension = experts ? Dimension::edp : Dimension::dp;
  const double ranks =
      over == Call::Over::copies
          ? static_cast<double>(*in_.training.plan.dp * in_.training.plan.cp) / shard_ranks(experts)
          : shard_ranks(experts);
  bytes_[label_of(dimension)] +=
      bytes * busbw_factor(kind, static_cast<std::size_t>(ranks)) / static_cast<double>(stages_);
  return communicate({0, true, stage, dimension, over, kind, bytes}, start);
}

// Zero 1 and 2: the weights that the optimizer left on their owners, under the first forward pass.
void StepBuilder::gather_early(std::int64_t stage) {
  const PlanSpec& plan = in_.training.plan;
  if (in_.training.plan.sharded() || plan.zero == 0 || !plan.overlap.param_gather) return;
  for (std::int64_t c = 0; c < chunks_; ++c) {
    const Chunk& chunk = in_.layout[static_cast<std::size_t>(stage)][static_cast<std::size_t>(c)];
    std::vector<OpId> start;
    for (std::size_t k = 0; k < classes_.size(); ++k)
      start.push_back(streams_[timeline(k, stage)].gather);
    const OpId done = gather_now(stage, parameters_of(stage, chunk).trained, start);
    for (std::size_t k = 0; k < classes_.size(); ++k) streams_[timeline(k, stage)].gather = done;
    early_[{stage, c}] = done;
  }
}

void StepBuilder::reduce(std::int64_t stage, StageParameters parameters, bool last) {
  const PlanSpec& plan = in_.training.plan;
  StageParameters& sum = unreduced_[static_cast<std::size_t>(stage)];
  sum.add(parameters);
  const double bytes = sum.total() * bytes_of(in_.training.dtype.reduced());
  const bool bucket = plan.overlap.grad_reduce && bytes >= plan.bucket.value();
  if (plan.sharded() || bucket) flush_reduce(stage, last);
}

void StepBuilder::flush_reduce(std::int64_t stage, bool last) {
  const PlanSpec& plan = in_.training.plan;
  StageParameters& sum = unreduced_[static_cast<std::size_t>(stage)];
  if (sum.total() <= 0) return;
  std::vector<OpId> start = ready(stage, kBackward);
  for (std::size_t c = 0; c < classes_.size(); ++c)
    start[c] = barrier({start[c], streams_[timeline(c, stage)].reduce}, label_of(Dimension::dp));
  const double bytes = bytes_of(in_.training.dtype.reduced());
  const bool scatter = in_.training.plan.sharded() || plan.zero > 0;
  const auto over = plan.fsdp ? Call::Over::shard : Call::Over::all;
  OpId done;
  for (const bool experts : {false, true}) {
    const double count = experts ? sum.experts : sum.dense;
    if (count <= 0) continue;
    done = over_replicas(stage, experts, over,
                         scatter ? CollectiveKind::reduce_scatter : CollectiveKind::all_reduce,
                         count * bytes, start);
    start = {done};
    const double copies = static_cast<double>(*plan.dp * plan.cp) / shard_ranks(false);
    if (plan.fsdp && !experts && copies > 1) {
      done = over_replicas(stage, experts, Call::Over::copies, CollectiveKind::all_reduce,
                           count * bytes / shard_ranks(false), start);
      start = {done};
    }
  }
  if (plan.offload && last) offload_gradients(stage, sum, done);
  sum = {};
  for (std::size_t c = 0; c < classes_.size(); ++c) {
    Streams& streams = streams_[timeline(c, stage)];
    streams.reduce = done;
    if (!plan.overlap.grad_reduce)
      streams.compute = barrier({streams.compute, done}, label_of(Dimension::dp));
  }
}

StageParameters StepBuilder::own_part(const StageParameters& all) const {
  if (!in_.training.plan.sharded() && in_.training.plan.zero == 0) return all;
  return {all.dense / shard_ranks(false), all.experts / shard_ranks(true)};
}

// Stages that hold a copy of tied embeddings. Frozen ones have no gradient.
void StepBuilder::reduce_embeddings() {
  if (embedding_stages_.size() < 2 || in_.training.lora_rank) return;
  std::vector<OpId> start;
  for (std::size_t c = 0; c < classes_.size(); ++c) {
    std::vector<OpId> computed;
    for (const std::int64_t s : embedding_stages_)
      computed.push_back(streams_[timeline(c, s)].compute);
    start.push_back(barrier(computed, label_of(Dimension::embed)));
  }
  const double bytes = in_.model.embedding() / static_cast<double>(in_.training.plan.tp) *
                       bytes_of(in_.training.dtype.reduced());
  bytes_[label_of(Dimension::embed)] +=
      2 * real(std::ssize(embedding_stages_) - 1) * bytes / static_cast<double>(stages_);
  const OpId done = communicate(
      {0, true, 0, Dimension::embed, Call::Over::all, CollectiveKind::all_reduce, bytes}, start);
  for (std::size_t c = 0; c < classes_.size(); ++c) {
    for (const std::int64_t s : embedding_stages_) {
      OpId& compute = streams_[timeline(c, s)].compute;
      compute = barrier({compute, done}, label_of(Dimension::embed));
    }
  }
}

void StepBuilder::finish_step() {
  const PlanSpec& plan = in_.training.plan;
  for (std::int64_t s = 0; s < stages_; ++s) {
    flush_reduce(s, true);
    const std::vector<OpId> computed = ready(s, kBackward);
    for (std::size_t c = 0; c < classes_.size(); ++c) {
      Streams& streams = streams_[timeline(c, s)];
      streams.compute = barrier({computed[c], streams.reduce}, label_of(Dimension::dp));
      if (plan.offload)
        streams.compute = barrier({streams.compute, streams.host}, label_of(Dimension::host));
    }
  }
  reduce_embeddings();
  // The norm of all gradients is known when every stage is there.
  std::vector<OpId> all;
  for (const Streams& streams : streams_) all.push_back(streams.compute);
  const OpId norm = barrier(all, kAllStages);
  for (std::int64_t s = 0; s < stages_; ++s) {
    StageParameters trained;
    for (const Chunk& chunk : in_.layout[static_cast<std::size_t>(s)])
      trained.add(parameters_of(s, chunk).trained);
    const double updated = own_part(trained).total();
    for (std::size_t c = 0; c < classes_.size(); ++c) {
      Streams& streams = streams_[timeline(c, s)];
      streams.compute = norm;
      streams.pending += in_.passes.optimizer_s(updated);
    }
    if (plan.offload) step_on_host(s, updated, norm);
    const std::vector<OpId> stepped = ready(s, kOptimizer);
    if (plan.sharded() || plan.zero == 0 || plan.overlap.param_gather) continue;
    const OpId done = gather_now(s, trained, stepped);
    for (std::size_t c = 0; c < classes_.size(); ++c) streams_[timeline(c, s)].compute = done;
  }
  write_checkpoint();
}

}  // namespace weft
