// SPDX-License-Identifier: Apache-2.0
#include "models/llm/step.hpp"

#include <algorithm>
#include <numeric>

#include "sim/core/check.hpp"
#include "sim/run/run.hpp"

namespace weft {
namespace {

// Labels beyond those of the dimensions.
enum : std::uint32_t { kForward = kDimensions, kBackward, kOptimizer, kAllStages, kLabels };

constexpr std::array<std::string_view, kLabels - kDimensions> kWorkNames{"forward", "backward",
                                                                         "optimizer", "all stages"};

std::uint32_t label_of(Dimension dimension) { return static_cast<std::uint32_t>(dimension); }

Bytes whole(double bytes) { return {static_cast<std::int64_t>(bytes + 0.5)}; }
Time picoseconds(double seconds) { return {static_cast<std::int64_t>(seconds * 1e12 + 0.5)}; }

bool same_or_backward(PassKind kind) {
  return kind == PassKind::backward || kind == PassKind::backward_inputs;
}

}  // namespace

StepBuilder::StepBuilder(StepInputs inputs)
    : in_(std::move(inputs)),
      stages_(in_.training.plan.pp),
      chunks_(static_cast<std::int64_t>(in_.layout.front().size())),
      micro_batches_(micro_batches(in_.training)),
      entry_(pipeline_entry(in_.training.plan.schedule)),
      shape_{stages_, chunks_, micro_batches_} {
  split_classes();
  for (const auto& members : classes_) {
    for (std::int64_t stage = 0; stage < stages_; ++stage) {
      Timeline& made = timelines_.emplace_back();
      made.stage = stage;
      made.replicas = members;
      for (const std::int64_t replica : members) {
        for (std::int64_t tp = 0; tp < in_.training.plan.tp && !in_.slowness.empty(); ++tp) {
          for (std::int64_t cp = 0; cp < in_.training.plan.cp; ++cp) {
            const auto rank = static_cast<std::size_t>(in_.ranks.rank({tp, cp, replica, stage}));
            made.slowness = std::max(made.slowness, in_.slowness[rank]);
          }
        }
      }
    }
  }
}

// Replicas are told apart by the slowest GPU of each of their stages; those that share experts stay together.
void StepBuilder::split_classes() {
  const PlanSpec& plan = in_.training.plan;
  const std::int64_t replicas = *plan.dp;
  std::vector<std::int64_t> block(static_cast<std::size_t>(replicas));
  std::iota(block.begin(), block.end(), 0);
  const std::int64_t per_stage = plan.tp * plan.cp * replicas;
  if (plan.ep > 1) {
    // An expert group is a run of replicas: the first of them names the block.
    std::vector<std::int64_t> replica_of(static_cast<std::size_t>(per_stage * plan.pp), 0);
    for (std::int64_t d = 0; d < replicas; ++d) {
      for (std::int64_t cp = 0; cp < plan.cp; ++cp) {
        for (std::int64_t tp = 0; tp < plan.tp; ++tp)
          replica_of[static_cast<std::size_t>(in_.ranks.rank({tp, cp, d, 0}))] = d;
      }
    }
    for (std::int64_t d = 0; d < replicas; ++d) {
      for (std::int64_t cp = 0; cp < plan.cp; ++cp) {
        for (const std::int64_t rank : in_.ranks.ep_group({0, cp, d, 0})) {
          auto& other = block[static_cast<std::size_t>(replica_of[static_cast<std::size_t>(rank)])];
          const std::int64_t least = std::min(other, block[static_cast<std::size_t>(d)]);
          other = block[static_cast<std::size_t>(d)] = least;
        }
      }
    }
  }
  std::map<std::int64_t, std::vector<double>> pace;  // by block: of each stage
  for (std::int64_t d = 0; d < replicas; ++d) {
    std::vector<double>& stages = pace[block[static_cast<std::size_t>(d)]];
    stages.resize(static_cast<std::size_t>(stages_), 1);
    for (std::int64_t s = 0; s < stages_ && !in_.slowness.empty(); ++s) {
      for (std::int64_t cp = 0; cp < plan.cp; ++cp) {
        for (std::int64_t tp = 0; tp < plan.tp; ++tp) {
          double& slowest = stages[static_cast<std::size_t>(s)];
          slowest = std::max(
              slowest, in_.slowness[static_cast<std::size_t>(in_.ranks.rank({tp, cp, d, s}))]);
        }
      }
    }
  }
  std::map<std::vector<double>, std::vector<std::int64_t>> alike;
  for (std::int64_t d = 0; d < replicas; ++d)
    alike[pace[block[static_cast<std::size_t>(d)]]].push_back(d);
  for (auto& [stages, members] : alike) classes_.push_back(std::move(members));
}

std::vector<Lockstep::Group> StepBuilder::groups(const Call& call) const {
  const PlanSpec& plan = in_.training.plan;
  std::vector<Lockstep::Group> out;
  const auto add = [&](const std::vector<std::int64_t>& ranks) {
    Lockstep::Group group;
    group.reserve(ranks.size());
    for (const std::int64_t rank : ranks) group.push_back(in_.gpus[static_cast<std::size_t>(rank)]);
    out.push_back(std::move(group));
  };
  const auto visit = [&](std::int64_t tp, std::int64_t cp, std::int64_t dp) {
    const RankLayout::At at{tp, cp, dp, call.stage};
    if (call.dimension == Dimension::embed) {
      add({in_.ranks.rank(at), in_.ranks.rank({tp, cp, dp, stages_ - 1})});
      return;
    }
    std::vector<std::int64_t> ranks = call.dimension == Dimension::tp   ? in_.ranks.tp_group(at)
                                      : call.dimension == Dimension::cp ? in_.ranks.cp_group(at)
                                      : call.dimension == Dimension::ep ? in_.ranks.ep_group(at)
                                      : call.dimension == Dimension::edp
                                          ? in_.ranks.edp_group(at)
                                          : in_.ranks.dp_group(at, true);
    if (ranks.front() != in_.ranks.rank(at)) return;  // named by its first member
    if (call.over == Call::Over::all) return add(ranks);
    const auto shard = static_cast<std::size_t>(std::min<std::int64_t>(
        plan.fsdp->shard.value_or(*plan.dp * plan.cp), static_cast<std::int64_t>(ranks.size())));
    if (call.over == Call::Over::shard) {
      for (std::size_t i = 0; i + shard <= ranks.size(); i += shard) {
        add({ranks.begin() + static_cast<std::ptrdiff_t>(i),
             ranks.begin() + static_cast<std::ptrdiff_t>(i + shard)});
      }
    } else {
      for (std::size_t k = 0; k < shard; ++k) {
        std::vector<std::int64_t> copies;
        for (std::size_t i = k; i < ranks.size(); i += shard) copies.push_back(ranks[i]);
        add(copies);
      }
    }
  };
  const auto all_of = [&](const std::vector<std::int64_t>& members) {
    for (const std::int64_t dp : members) {
      for (std::int64_t cp = 0; cp < plan.cp; ++cp) {
        for (std::int64_t tp = 0; tp < plan.tp; ++tp) visit(tp, cp, dp);
      }
    }
  };
  if (call.all_classes) {
    for (const auto& members : classes_) all_of(members);
  } else {
    all_of(classes_[call.replica_class]);
  }
  return out;
}

// ---- operations

OpId StepBuilder::flush(std::size_t t, std::uint32_t label) {
  Streams& streams = streams_[t];
  if (workload_ == nullptr || streams.pending <= 0) return streams.compute;
  const OpId op = workload_->add_delay(picoseconds(streams.pending * timelines_[t].slowness));
  workload_->operations[op].label = first_label_ + label;
  workload_->depend(streams.compute, op);
  timelines_[t].computing.push_back(op);
  streams.pending = 0;
  return streams.compute = op;
}

void StepBuilder::wait(OpId before, OpId after) {
  if (workload_ != nullptr && before.valid() && before != after) workload_->depend(before, after);
}

OpId StepBuilder::barrier(const std::vector<OpId>& before, std::uint32_t label) {
  if (workload_ == nullptr) return {};
  const OpId op = workload_->add_barrier();
  workload_->operations[op].label = first_label_ + label;
  for (const OpId b : before) wait(b, op);
  return op;
}

std::vector<OpId> StepBuilder::ready(std::int64_t stage, std::uint32_t label) {
  std::vector<OpId> out;
  for (std::size_t c = 0; c < classes_.size(); ++c) out.push_back(flush(timeline(c, stage), label));
  return out;
}

OpId StepBuilder::communicate(const Call& call, const std::vector<OpId>& ready) {
  auto found = patterns_.find(call);
  if (found == patterns_.end()) {
    WEFT_CHECK(workload_ == nullptr, patterns_.size());
    found =
        patterns_.emplace(call, lockstep_->collective(call.kind, whole(call.bytes), groups(call)))
            .first;
  }
  auto& [most, largest] = largest_[call.dimension];
  if (call.bytes > most) {
    most = call.bytes;
    largest = found->second;
  }
  if (workload_ == nullptr) return {};
  const OpId start = ready.size() == 1 ? ready.front() : barrier(ready, label_of(call.dimension));
  return lockstep_->append(found->second, start, first_label_ + label_of(call.dimension));
}

// ---- a step

void StepBuilder::register_patterns(Lockstep& lockstep) {
  lockstep_ = &lockstep;
  workload_ = nullptr;
  run_step();
}

void StepBuilder::append(Workload& workload, Lockstep& lockstep, OpId start) {
  lockstep_ = &lockstep;
  workload_ = &workload;
  first_label_ = static_cast<std::uint32_t>(workload.labels.size());
  const auto label = [&](std::string_view name) {
    workload.labels.push_back(in_.name + ": " + std::string(name));
  };
  for (std::size_t d = 0; d < kDimensions; ++d) label(dimension_name(static_cast<Dimension>(d)));
  for (const std::string_view name : kWorkNames) label(name);
  for (Timeline& t : timelines_) t.computing.clear();
  streams_.assign(timelines_.size(), {start, start, start, start, start, {}, 0});
  run_step();
}

void StepBuilder::run_step() {
  if (workload_ == nullptr) streams_.assign(timelines_.size(), {});
  bytes_ = {};
  arrivals_.clear();
  early_.clear();
  backwards_.clear();
  unreduced_.assign(static_cast<std::size_t>(stages_), {});
  for (std::int64_t s = 0; s < stages_; ++s) gather_early(s);
  // Stages in turn, each as far as what it works on exists.
  std::vector<std::vector<PipelineSlot>> order;
  for (std::int64_t s = 0; s < stages_; ++s) order.push_back(entry_.order(shape_, s));
  std::vector<std::size_t> at(static_cast<std::size_t>(stages_), 0);
  std::map<std::pair<std::int64_t, PipelineSlot>, bool> done;
  bool moved = true;
  while (moved) {
    moved = false;
    for (std::int64_t s = 0; s < stages_; ++s) {
      auto& next = at[static_cast<std::size_t>(s)];
      const auto& slots = order[static_cast<std::size_t>(s)];
      for (; next < slots.size(); ++next) {
        const SlotAt slot{s, slots[next]};
        const auto source = source_of(entry_, shape_, slot);
        if (source && !done.contains({source->stage, source->slot})) break;
        run_slot(slot);
        done[{s, slot.slot}] = true;
        moved = true;
      }
    }
  }
  finish_step();
}

void StepBuilder::run_slot(const SlotAt& at) {
  const Chunk& chunk =
      in_.layout[static_cast<std::size_t>(at.stage)][static_cast<std::size_t>(at.slot.chunk)];
  receive(at);
  switch (at.slot.work) {
    case PipelineSlot::Work::forward:
      run_forward(at, chunk);
      break;
    case PipelineSlot::Work::backward:
      run_backward(at, chunk, PassKind::backward);
      break;
    case PipelineSlot::Work::backward_inputs:
      run_backward(at, chunk, PassKind::backward_inputs);
      break;
    case PipelineSlot::Work::backward_weights:
      run_backward(at, chunk, PassKind::backward_weights);
      break;
  }
  if (at.slot.work != PipelineSlot::Work::backward_weights) send(at);
}

bool StepBuilder::sharded() const {
  return in_.training.plan.fsdp.has_value() || in_.training.plan.zero == 3;
}

bool StepBuilder::recomputes(const Chunk& chunk, std::int64_t layer) const {
  const PlanSpec& plan = in_.training.plan;
  if (plan.recompute == Recompute::none) return false;
  return !plan.recompute_layers || layer - chunk.first < *plan.recompute_layers;
}

void StepBuilder::run_forward(const SlotAt& at, const Chunk& chunk) {
  if (const auto early = early_.find({at.stage, at.slot.chunk}); early != early_.end()) {
    const std::vector<OpId> computed = ready(at.stage, kForward);
    for (std::size_t c = 0; c < classes_.size(); ++c) {
      streams_[timeline(c, at.stage)].compute =
          barrier({computed[c], early->second}, label_of(Dimension::dp));
    }
    early_.erase(early);
  }
  if (chunk.embedding || chunk.loss) gather(at.stage, end_parameters(chunk), kForward);
  if (chunk.embedding) run_pass(at.stage, in_.passes.embedding(PassKind::forward), kForward);
  for (std::int64_t layer = chunk.first; layer < chunk.first + chunk.count; ++layer) {
    gather(at.stage, layer_parameters(layer), kForward);
    run_pass(at.stage,
             in_.passes.layer(in_.model.layer(layer), PassKind::forward, recomputes(chunk, layer)),
             kForward);
  }
  if (chunk.loss) run_pass(at.stage, in_.passes.loss(PassKind::forward), kForward);
}

void StepBuilder::run_backward(const SlotAt& at, const Chunk& chunk, PassKind kind) {
  const bool weights = kind != PassKind::backward_inputs;
  std::int64_t& done = backwards_[{at.stage, at.slot.chunk}];
  if (weights) ++done;
  const FsdpSpec fsdp = in_.training.plan.fsdp.value_or(FsdpSpec{});
  const std::int64_t passes = entry_.bidirectional ? micro_batches_ / 2 : micro_batches_;
  const bool reduces = weights && (done == passes || (sharded() && fsdp.reduce_every_micro_batch));
  const bool gathers = same_or_backward(kind) && fsdp.reshard;
  if (chunk.loss) run_pass(at.stage, in_.passes.loss(kind), kBackward);
  for (std::int64_t layer = chunk.first + chunk.count - 1; layer >= chunk.first; --layer) {
    if (gathers) gather(at.stage, layer_parameters(layer), kBackward);
    run_pass(at.stage, in_.passes.layer(in_.model.layer(layer), kind, recomputes(chunk, layer)),
             kBackward);
    if (reduces) reduce(at.stage, layer_parameters(layer));
  }
  if (chunk.embedding) run_pass(at.stage, in_.passes.embedding(kind), kBackward);
  if (!reduces) return;
  reduce(at.stage, end_parameters(chunk));
  if (done == passes) flush_reduce(at.stage);
}

void StepBuilder::count(Dimension dimension, CollectiveKind kind, double bytes) {
  const PlanSpec& plan = in_.training.plan;
  const std::int64_t ranks = dimension == Dimension::tp   ? plan.tp
                             : dimension == Dimension::cp ? plan.cp
                                                          : plan.ep;
  bytes_[label_of(dimension)] += bytes * busbw_factor(kind, static_cast<std::size_t>(ranks)) /
                                 static_cast<double>(timelines_.size());
}

void StepBuilder::run_pass(std::int64_t stage, const LayerPass& pass, std::uint32_t label) {
  for (std::size_t c = 0; c < classes_.size(); ++c) {
    const std::size_t t = timeline(c, stage);
    Streams& streams = streams_[t];
    for (const PassStep& step : pass.steps) {
      std::vector<OpId> beside;
      double under = 0;
      const bool together = std::ranges::any_of(
          step.calls, [](const CollectiveCall& call) { return call.beside > 0; });
      const OpId before = together ? flush(t, label) : OpId{};
      const auto run = [&](const CollectiveCall& one, OpId after) {
        count(one.dimension, one.kind, one.bytes * one.rounds);
        for (double round = 0; round < one.rounds; ++round) {
          after = communicate(
              {c, false, stage, one.dimension, Call::Over::all, one.kind, one.bytes}, {after});
        }
        return after;
      };
      for (const CollectiveCall& one : step.calls) {
        if (one.beside <= 0) continue;
        beside.push_back(run(one, before));
        under = std::max(under, one.beside);
      }
      streams.pending += step.compute_s * (together ? under : 1);
      if (together) {
        beside.push_back(flush(t, label));
        streams.compute = barrier(beside, label_of(step.calls.front().dimension));
        streams.pending += step.compute_s * (1 - under);
      }
      for (const CollectiveCall& one : step.calls) {
        if (one.beside <= 0) streams.compute = run(one, flush(t, label));
      }
    }
  }
}

// ---- between stages

void StepBuilder::receive(const SlotAt& at) {
  const auto source = source_of(entry_, shape_, at);
  if (!source || source->stage == at.stage || workload_ == nullptr) return;
  for (std::size_t c = 0; c < classes_.size(); ++c) {
    const std::size_t t = timeline(c, at.stage);
    const OpId arrived = arrivals_.at({c, source->stage, source->slot});
    const OpId ready = flush(t, kForward);
    streams_[t].compute = barrier({ready, arrived}, label_of(Dimension::pp));
  }
}

void StepBuilder::send(const SlotAt& at) {
  const auto next = next_of(at);
  if (!next) return;
  const TrainingSpec& training = in_.training;
  const PlanSpec& plan = training.plan;
  const double elements = static_cast<double>(plan.micro_batch * training.seq / plan.cp) *
                          static_cast<double>(in_.model.spec().hidden) /
                          static_cast<double>(plan.sp ? plan.tp : 1);
  const double bytes = elements * std::max(2.0, bytes_of(training.dtype.compute));
  const bool forward = at.slot.work == PipelineSlot::Work::forward;
  for (std::size_t c = 0; c < classes_.size(); ++c) {
    const std::size_t t = timeline(c, at.stage);
    Streams& streams = streams_[t];
    const auto key = std::tuple{c, at.stage, *next};
    auto found = sends_.find(key);
    if (found == sends_.end()) {
      WEFT_CHECK(workload_ == nullptr, sends_.size());
      std::vector<Lockstep::Pair> pairs;
      for (const std::int64_t dp : classes_[c]) {
        for (std::int64_t cp = 0; cp < plan.cp; ++cp) {
          for (std::int64_t tp = 0; tp < plan.tp; ++tp) {
            const auto rank = [&](std::int64_t stage) {
              return in_.gpus[static_cast<std::size_t>(in_.ranks.rank({tp, cp, dp, stage}))];
            };
            pairs.emplace_back(rank(at.stage), rank(*next));
          }
        }
      }
      found = sends_.emplace(key, lockstep_->sends(whole(bytes), pairs)).first;
    }
    bytes_[label_of(Dimension::pp)] += bytes / static_cast<double>(timelines_.size());
    auto& [most, largest] = largest_[Dimension::pp];
    most = bytes;
    largest = found->second;
    if (workload_ == nullptr) continue;
    OpId& stream = forward ? streams.forward_sends : streams.backward_sends;
    const OpId ready = flush(t, forward ? kForward : kBackward);
    const OpId start = barrier({ready, stream}, label_of(Dimension::pp));
    stream = lockstep_->append(found->second, start, first_label_ + label_of(Dimension::pp));
    arrivals_[{c, at.stage, at.slot}] = stream;
    if (!plan.overlap.pp) streams.compute = stream;
  }
}

// The stage that works on the result of a slot, when it is another one.
std::optional<std::int64_t> StepBuilder::next_of(const SlotAt& at) const {
  const bool forward = at.slot.work == PipelineSlot::Work::forward;
  for (std::int64_t stage = 0; stage < stages_; ++stage) {
    if (stage == at.stage) continue;
    for (std::int32_t chunk = 0; chunk < chunks_; ++chunk) {
      const auto work = forward                  ? PipelineSlot::Work::forward
                        : entry_.splits_backward ? PipelineSlot::Work::backward_inputs
                                                 : PipelineSlot::Work::backward;
      const SlotAt other{stage, {work, at.slot.micro_batch, chunk}};
      if (source_of(entry_, shape_, other) == at) return stage;
    }
  }
  return std::nullopt;
}

// ---- weights and gradients

double StepBuilder::shard_ranks(bool experts) const {
  const PlanSpec& plan = in_.training.plan;
  const double all = static_cast<double>(*plan.dp * plan.cp);
  const double group = experts ? std::max(1.0, all * static_cast<double>(plan.tp) /
                                                   static_cast<double>(plan.ep * expert_tp()))
                               : all;
  if (!plan.fsdp || !plan.fsdp->shard) return group;
  return std::min(group, static_cast<double>(*plan.fsdp->shard));
}

std::int64_t StepBuilder::expert_tp() const {
  const PlanSpec& plan = in_.training.plan;
  return plan.etp > 0 ? plan.etp : plan.tp;
}

StepBuilder::Parameters StepBuilder::layer_parameters(std::int64_t layer) const {
  const LayerParameters all = in_.model.parameters(in_.model.layer(layer));
  const auto tp = static_cast<double>(in_.training.plan.tp);
  return {(all.mixer + all.dense + all.shared) / tp + all.router + all.norms,
          all.experts / static_cast<double>(in_.training.plan.ep * expert_tp())};
}

StepBuilder::Parameters StepBuilder::end_parameters(const Chunk& chunk) const {
  const auto tp = static_cast<double>(in_.training.plan.tp);
  double out = 0;
  if (chunk.embedding) out += in_.model.embedding() / tp;
  if (chunk.loss) {
    const bool copy = in_.model.output() == 0 && !chunk.embedding;  // tied: the last stage's own
    out += (copy ? in_.model.embedding() : in_.model.output()) / tp + in_.model.final_norm();
  }
  return {out, 0};
}

// Fully sharded: the weights of what runs next, prefetched.
void StepBuilder::gather(std::int64_t stage, Parameters parameters, std::uint32_t label) {
  if (!sharded()) return;
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

OpId StepBuilder::gather_now(std::int64_t stage, Parameters parameters,
                             const std::vector<OpId>& start) {
  const DtypeSpec& dtype = in_.training.dtype;
  const double bytes = bytes_of(dtype.gather.value_or(dtype.param));
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
  if (sharded() || plan.zero == 0 || !plan.overlap.param_gather) return;
  for (std::int64_t c = 0; c < chunks_; ++c) {
    const Chunk& chunk = in_.layout[static_cast<std::size_t>(stage)][static_cast<std::size_t>(c)];
    Parameters all = end_parameters(chunk);
    for (std::int64_t layer = chunk.first; layer < chunk.first + chunk.count; ++layer) {
      const Parameters more = layer_parameters(layer);
      all.dense += more.dense;
      all.experts += more.experts;
    }
    std::vector<OpId> start;
    for (std::size_t k = 0; k < classes_.size(); ++k)
      start.push_back(streams_[timeline(k, stage)].gather);
    const OpId done = gather_now(stage, all, start);
    for (std::size_t k = 0; k < classes_.size(); ++k) streams_[timeline(k, stage)].gather = done;
    early_[{stage, c}] = done;
  }
}

void StepBuilder::reduce(std::int64_t stage, Parameters parameters) {
  Parameters& sum = unreduced_[static_cast<std::size_t>(stage)];
  sum.dense += parameters.dense;
  sum.experts += parameters.experts;
  const double bytes = bytes_of(reduce_precision());
  if (sharded() || (sum.dense + sum.experts) * bytes >= in_.training.plan.bucket.value())
    flush_reduce(stage);
}

Precision StepBuilder::reduce_precision() const {
  return in_.training.dtype.reduce.value_or(in_.training.dtype.grad);
}

void StepBuilder::flush_reduce(std::int64_t stage) {
  const PlanSpec& plan = in_.training.plan;
  Parameters& sum = unreduced_[static_cast<std::size_t>(stage)];
  if (sum.dense + sum.experts <= 0) return;
  std::vector<OpId> start = ready(stage, kBackward);
  for (std::size_t c = 0; c < classes_.size(); ++c)
    start[c] = barrier({start[c], streams_[timeline(c, stage)].reduce}, label_of(Dimension::dp));
  const double bytes = bytes_of(reduce_precision());
  const bool scatter = sharded() || plan.zero > 0;
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
  sum = {};
  for (std::size_t c = 0; c < classes_.size(); ++c) {
    Streams& streams = streams_[timeline(c, stage)];
    streams.reduce = done;
    if (!plan.overlap.grad_reduce)
      streams.compute = barrier({streams.compute, done}, label_of(Dimension::dp));
  }
}

void StepBuilder::finish_step() {
  const PlanSpec& plan = in_.training.plan;
  for (std::int64_t s = 0; s < stages_; ++s) {
    flush_reduce(s);
    const std::vector<OpId> computed = ready(s, kBackward);
    for (std::size_t c = 0; c < classes_.size(); ++c) {
      Streams& streams = streams_[timeline(c, s)];
      streams.compute = barrier({computed[c], streams.reduce}, label_of(Dimension::dp));
    }
  }
  if (in_.model.spec().tied && stages_ > 1) {
    std::vector<OpId> start;
    for (std::size_t c = 0; c < classes_.size(); ++c)
      start.push_back(
          barrier({streams_[timeline(c, 0)].compute, streams_[timeline(c, stages_ - 1)].compute},
                  label_of(Dimension::embed)));
    const double bytes =
        in_.model.embedding() / static_cast<double>(plan.tp) * bytes_of(reduce_precision());
    bytes_[label_of(Dimension::embed)] += 2 * bytes / static_cast<double>(stages_);
    const OpId done = communicate(
        {0, true, 0, Dimension::embed, Call::Over::all, CollectiveKind::all_reduce, bytes}, start);
    for (std::size_t c = 0; c < classes_.size(); ++c) {
      for (const std::int64_t s : {std::int64_t{0}, stages_ - 1}) {
        OpId& compute = streams_[timeline(c, s)].compute;
        compute = barrier({compute, done}, label_of(Dimension::embed));
      }
    }
  }
  // The norm of all gradients is known when every stage is there.
  std::vector<OpId> all;
  for (const Streams& streams : streams_) all.push_back(streams.compute);
  const OpId norm = barrier(all, kAllStages);
  for (std::int64_t s = 0; s < stages_; ++s) {
    Parameters own;
    for (const Chunk& chunk : in_.layout[static_cast<std::size_t>(s)]) {
      own.dense += end_parameters(chunk).dense;
      for (std::int64_t layer = chunk.first; layer < chunk.first + chunk.count; ++layer) {
        own.dense += layer_parameters(layer).dense;
        own.experts += layer_parameters(layer).experts;
      }
    }
    const bool spread = sharded() || plan.zero > 0;
    const double updated = spread ? own.dense / shard_ranks(false) + own.experts / shard_ranks(true)
                                  : own.dense + own.experts;
    for (std::size_t c = 0; c < classes_.size(); ++c) {
      Streams& streams = streams_[timeline(c, s)];
      streams.compute = norm;
      streams.pending += in_.passes.optimizer_s(updated);
    }
    const std::vector<OpId> stepped = ready(s, kOptimizer);
    if (sharded() || plan.zero == 0 || plan.overlap.param_gather) continue;
    const OpId done = gather_now(s, own, stepped);
    for (std::size_t c = 0; c < classes_.size(); ++c) streams_[timeline(c, s)].compute = done;
  }
}

// ---- afterwards

StreamTimes StepBuilder::times(const Executor& executor, const Timeline& timeline, Time start,
                               Time end) const {
  StreamTimes out;
  Time reached = start;
  // A gap belongs to the dimension of what ended it, as far as that was under way; the rest was waiting for others.
  const auto attribute = [&](Time until, OpId cause) {
    const double gap = (until - reached).seconds();
    if (gap <= 0) return;
    const auto label = [&](OpId op) {
      return cause.valid() ? workload_->operations[op].label - first_label_ : kAllStages;
    };
    const std::uint32_t what = label(cause);
    if (what >= kDimensions) {
      out.bubble += gap;
      return;
    }
    Time began = executor.times(cause).started;
    for (OpId op = cause; op.valid() && label(op) == what; op = executor.times(op).cause)
      began = executor.times(op).started;
    const double under_way = std::min(gap, (until - began).seconds());
    out.exposed[what] += under_way;
    out.bubble += gap - under_way;
  };
  for (const OpId op : timeline.computing) {
    const OperationTimes& times = executor.times(op);
    attribute(times.started, times.cause);
    out.compute += (times.finished - times.started).seconds();
    reached = times.finished;
  }
  const double rest = (end - reached).seconds();
  // What is left behind the optimizer is weights on their way, or other stages' optimizers.
  const bool gathers = in_.training.plan.zero > 0 && !in_.training.plan.overlap.param_gather;
  (gathers ? out.exposed[label_of(Dimension::dp)] : out.bubble) += std::max(0.0, rest);
  return out;
}

std::string StepBuilder::algorithm(Dimension dimension) const {
  const auto found = largest_.find(dimension);
  return found == largest_.end() ? std::string{} : lockstep_->algorithm(found->second.second);
}

}  // namespace weft
