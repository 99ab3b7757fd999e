// SPDX-License-Identifier: Apache-2.0
#include "models/llm/step.hpp"

#include <algorithm>
#include <numeric>
#include <set>

#include <fmt/format.h>

#include "models/llm/activations.hpp"
#include "sim/core/check.hpp"
#include "sim/core/seconds.hpp"
#include "sim/run/run.hpp"

namespace weft {
namespace {

constexpr std::array<std::string_view, kLabels - kDimensions> kWorkNames{"forward", "backward",
                                                                         "optimizer", "all stages"};

constexpr std::uint64_t kProgressEvery = 1 << 6;  // slots

std::size_t index(std::int64_t value) { return static_cast<std::size_t>(value); }
Bytes whole(double bytes) { return {static_cast<std::int64_t>(bytes + 0.5)}; }

}  // namespace

StepBuilder::StepBuilder(StepInputs inputs)
    : in_(std::move(inputs)),
      stages_(in_.training.plan.pp),
      chunks_(static_cast<std::int64_t>(in_.layout.front().size())),
      micro_batches_(micro_batches(in_.training)),
      entry_(pipeline_entry(in_.training.plan.schedule)),
      shape_{stages_, chunks_, micro_batches_} {
  const Activations activations(in_.model, in_.training);
  for (const std::vector<Chunk>& chunks : in_.layout)
    boundaries_.push_back(activations.boundary(chunks.back()));
  embedding_stages_ = embedding_stages(in_.model, in_.layout);
  split_classes();
  for (const auto& members : classes_) {
    for (std::int64_t stage = 0; stage < stages_; ++stage) {
      Timeline& made = timelines_.emplace_back();
      made.stage = stage;
      made.replicas = members;
      for (const std::int64_t replica : members)
        made.slowness = std::max(made.slowness, slowness_of(replica, stage));
    }
  }
}

// Of the slowest GPU.
double StepBuilder::slowness_of(std::int64_t replica, std::int64_t stage) const {
  double out = 1;
  for (std::int64_t cp = 0; cp < in_.training.plan.cp && !in_.slowness.empty(); ++cp) {
    for (std::int64_t tp = 0; tp < in_.training.plan.tp; ++tp)
      out = std::max(out, in_.slowness[index(in_.ranks.rank({tp, cp, replica, stage}))]);
  }
  return out;
}

// Replicas are told apart by the slowest GPU of each of their stages; those that share experts stay together.
void StepBuilder::split_classes() {
  const PlanSpec& plan = in_.training.plan;
  const std::int64_t replicas = *plan.dp;
  std::vector<std::int64_t> block(static_cast<std::size_t>(replicas));
  std::iota(block.begin(), block.end(), 0);
  if (plan.ep > 1) {
    // An expert group is a run of replicas: the first of them names the block.
    for (std::int64_t d = 0; d < replicas; ++d) {
      for (std::int64_t cp = 0; cp < plan.cp; ++cp) {
        for (const std::int64_t rank : in_.ranks.ep_group({0, cp, d, 0})) {
          auto& other = block[index(in_.ranks.at(rank).dp)];
          other = block[index(d)] = std::min(other, block[index(d)]);
        }
      }
    }
  }
  std::map<std::int64_t, std::vector<double>> pace;  // by block: of each stage
  for (std::int64_t d = 0; d < replicas; ++d) {
    std::vector<double>& stages = pace[block[static_cast<std::size_t>(d)]];
    stages.resize(static_cast<std::size_t>(stages_), 1);
    for (std::int64_t s = 0; s < stages_; ++s)
      stages[index(s)] = std::max(stages[index(s)], slowness_of(d, s));
  }
  std::map<std::pair<std::vector<double>, std::int64_t>, std::vector<std::int64_t>> alike;
  for (std::int64_t d = 0; d < replicas; ++d) {
    const std::int64_t of = block[static_cast<std::size_t>(d)];
    alike[{pace[of], in_.fold ? 0 : of}].push_back(d);
  }
  for (auto& [key, members] : alike) classes_.push_back(std::move(members));
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
      std::vector<std::int64_t> copies;
      for (const std::int64_t stage : embedding_stages_)
        copies.push_back(in_.ranks.rank({tp, cp, dp, stage}));
      return add(copies);
    }
    std::vector<std::int64_t> ranks = call.dimension == Dimension::tp   ? in_.ranks.tp_group(at)
                                      : call.dimension == Dimension::cp ? in_.ranks.cp_group(at)
                                      : call.dimension == Dimension::ep ? in_.ranks.ep_group(at)
                                      : call.dimension == Dimension::edp
                                          ? in_.ranks.edp_group(at)
                                          : in_.ranks.dp_group(at, true);
    if (ranks.front() != in_.ranks.rank(at)) return;  // named by its first member
    if (call.over == Call::Over::all) return add(ranks);
    const auto shard =
        static_cast<std::size_t>(plan.shard_ranks(static_cast<std::int64_t>(ranks.size())));
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

OpId StepBuilder::delay(double seconds, OpId after, std::uint32_t label) {
  const OpId op = workload_->add_delay(time_from_seconds(seconds));
  workload_->operations[op].label = first_label_ + label;
  workload_->depend(after, op);
  return op;
}

OpId StepBuilder::flush(std::size_t t, std::uint32_t label) {
  Streams& streams = streams_[t];
  if (workload_ == nullptr || streams.pending <= 0) return streams.compute;
  const OpId op = delay(streams.pending * timelines_[t].slowness, streams.compute, label);
  if (!paces_.empty()) workload_->operations[op].way = paces_[t];
  if (measured_) timelines_[t].computing.push_back(op);
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
  std::vector<std::size_t> busy;
  for (std::size_t c = 0; c < classes_.size() && !paces_.empty(); ++c) {
    if (!call.all_classes && c != call.replica_class) continue;
    if (call.dimension != Dimension::embed) {
      busy.push_back(timeline(c, call.stage));
      continue;
    }
    for (const std::int64_t stage : embedding_stages_) busy.push_back(timeline(c, stage));
  }
  return append_slowing(found->second, start, label_of(call.dimension), busy);
}

// Slows the timelines down while it runs.
OpId StepBuilder::append_slowing(std::uint32_t pattern, OpId start, std::uint32_t label,
                                 const std::vector<std::size_t>& timelines) {
  if (paces_.empty() || lockstep_->empty(pattern))
    return lockstep_->append(pattern, start, first_label_ + label);
  const auto spells = [&](bool opens, OpId at) {
    for (const std::size_t t : timelines) {
      const OpId op = workload_->add_spell(paces_[t], opens);
      workload_->operations[op].label = first_label_ + label;
      workload_->depend(at, op);
      at = op;
    }
    return at;
  };
  return spells(false, lockstep_->append(pattern, spells(true, start), first_label_ + label));
}

// ---- a step

void StepBuilder::register_patterns(Lockstep& lockstep) {
  lockstep_ = &lockstep;
  workload_ = nullptr;
  run_step();
}

OpId StepBuilder::append(Workload& workload, Lockstep& lockstep, OpId start, bool measured) {
  lockstep_ = &lockstep;
  measured_ = measured;
  if (workload_ != &workload) {
    workload_ = &workload;
    first_label_ = static_cast<std::uint32_t>(workload.labels.size());
    const auto label = [&](std::string_view name) {
      workload.labels.push_back(in_.name + ": " + std::string(name));
    };
    for (std::size_t d = 0; d < kDimensions; ++d) label(dimension_name(static_cast<Dimension>(d)));
    for (const std::string_view name : kWorkNames) label(name);
    const double factor = in_.passes.beside_collectives();
    paces_.clear();
    for (std::size_t t = 0; t < timelines_.size() && factor > 1; ++t)
      paces_.push_back(workload.add_pace(factor));
  }
  streams_.assign(timelines_.size(), {start, start, start, start, start, start, {}, 0});
  run_step();
  std::vector<OpId> ends;
  for (const Streams& streams : streams_) ends.push_back(streams.compute);
  return barrier(ends, kAllStages);
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
  consumers_.clear();
  for (std::int64_t s = 0; s < stages_; ++s) {
    for (const PipelineSlot& slot : order[index(s)]) {
      const auto source = source_of(entry_, shape_, {s, slot});
      if (source && source->stage != s) consumers_[*source] = s;
    }
  }
  std::set<SlotAt> done;
  bool moved = true;
  while (moved) {
    moved = false;
    for (std::int64_t s = 0; s < stages_; ++s) {
      auto& next = at[static_cast<std::size_t>(s)];
      const auto& slots = order[static_cast<std::size_t>(s)];
      for (; next < slots.size(); ++next) {
        const SlotAt slot{s, slots[next]};
        const auto source = source_of(entry_, shape_, slot);
        if (source && !done.contains(*source)) break;
        run_slot(slot);
        if (++slots_ % kProgressEvery == 0 && in_.progress) in_.progress(slots_);
        if (workload_ != nullptr && std::ssize(workload_->operations) > kMostOperations) {
          throw LimitReached(
              fmt::format("{}: steps of {} micro-batches are more than {} operations: take larger "
                          "micro-batches "
                          "or a smaller global_batch",
                          in_.name, micro_batches_, kMostOperations));
        }
        done.insert(slot);
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

void StepBuilder::run_forward(const SlotAt& at, const Chunk& chunk) {
  if (const auto early = early_.find({at.stage, at.slot.chunk}); early != early_.end()) {
    const std::vector<OpId> computed = ready(at.stage, kForward);
    for (std::size_t c = 0; c < classes_.size(); ++c) {
      streams_[timeline(c, at.stage)].compute =
          barrier({computed[c], early->second}, label_of(Dimension::dp));
    }
    early_.erase(early);
  }
  if (chunk.embeds() || chunk.loss) gather(at.stage, ends_of(at.stage, chunk).held, kForward);
  if (chunk.embedding) run_pass(at.stage, in_.passes.embedding(PassKind::forward), kForward);
  for (std::int64_t layer = chunk.first; layer < chunk.first + chunk.count; ++layer) {
    gather(at.stage, parameters_of(layer).held, kForward);
    run_pass(at.stage,
             in_.passes.layer(in_.model.layer(layer), PassKind::forward,
                              in_.training.plan.recomputes(layer - chunk.first)),
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
  const bool reduces =
      weights && (done == passes || (in_.training.plan.sharded() && fsdp.reduce_every_micro_batch));
  const bool gathers = kind != PassKind::backward_weights && fsdp.reshard;
  if (chunk.loss) run_pass(at.stage, in_.passes.loss(kind), kBackward);
  for (std::int64_t layer = chunk.first + chunk.count - 1; layer >= chunk.first; --layer) {
    if (gathers) gather(at.stage, parameters_of(layer).held, kBackward);
    run_pass(at.stage,
             in_.passes.layer(in_.model.layer(layer), kind,
                              in_.training.plan.recomputes(layer - chunk.first)),
             kBackward);
    if (reduces) reduce(at.stage, parameters_of(layer).trained, done == passes);
  }
  if (chunk.embedding) run_pass(at.stage, in_.passes.embedding(kind), kBackward);
  if (!reduces) return;
  reduce(at.stage, ends_of(at.stage, chunk).trained, done == passes);
  // Without overlap they wait for the end of the backward pass: the stage before is not held up.
  if (done == passes && in_.training.plan.overlap.grad_reduce) flush_reduce(at.stage, true);
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
  if (!source || source->stage == at.stage) return;
  for (std::size_t c = 0; c < classes_.size(); ++c) {
    OpId& stream = streams_[timeline(c, at.stage)].compute;
    if (workload_ != nullptr) {
      const OpId arrived = arrivals_.at({c, source->stage, source->slot});
      const OpId ready = flush(timeline(c, at.stage), kForward);
      stream = barrier({ready, arrived}, label_of(Dimension::pp));
    }
    if (!in_.training.plan.scatters()) continue;
    const double bytes = boundary(source->stage, at.stage);
    count(Dimension::tp, CollectiveKind::all_gather, bytes);
    stream = communicate(
        {c, false, at.stage, Dimension::tp, Call::Over::all, CollectiveKind::all_gather, bytes},
        {stream});
  }
}

void StepBuilder::send(const SlotAt& at) {
  const auto next = consumers_.find(at);
  if (next == consumers_.end()) return;
  const PlanSpec& plan = in_.training.plan;
  const double bytes = boundary(at.stage, next->second) / (plan.scatters() ? real(plan.tp) : 1);
  const bool forward = at.slot.work == PipelineSlot::Work::forward;
  for (std::size_t c = 0; c < classes_.size(); ++c) {
    const std::size_t t = timeline(c, at.stage);
    Streams& streams = streams_[t];
    const auto key = std::tuple{c, at.stage, next->second};
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
            pairs.emplace_back(rank(at.stage), rank(next->second));
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
    stream = append_slowing(found->second, start, label_of(Dimension::pp),
                            {t, timeline(c, next->second)});
    arrivals_[{c, at.stage, at.slot}] = stream;
    if (!plan.overlap.pp) streams.compute = stream;
  }
}

}  // namespace weft
