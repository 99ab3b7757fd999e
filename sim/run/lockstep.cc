// SPDX-License-Identifier: Apache-2.0
#include "sim/run/lockstep.hpp"

#include <algorithm>
#include <optional>
#include <tuple>

#include "sim/core/check.hpp"
#include "sim/core/hash.hpp"

namespace weft {
namespace {

constexpr std::size_t kRoom = 4096;
constexpr std::uint32_t kNoSlot = ~0U;

}  // namespace

// Shares of one resource added up, in the order in which resources first occur.
void Lockstep::combine(std::vector<Share>& shares) {
  std::size_t kept = 0;
  for (const Share& share : shares) {
    if (share.resource >= slot_.size()) slot_.resize(share.resource + std::size_t{1}, kNoSlot);
    std::uint32_t& slot = slot_[share.resource];
    if (slot == kNoSlot) {
      slot = static_cast<std::uint32_t>(kept);
      shares[kept++] = share;
    } else {
      shares[slot].weight += share.weight;
    }
  }
  shares.resize(kept);
  for (const Share& share : shares) slot_[share.resource] = kNoSlot;
}

// Groups of one shape are planned alike: the kinds of servers in order, and the place of every rank in its own.
Lockstep::Shape Lockstep::shape_of(std::span<const NodeId> gpus) const {
  const Fabric& fabric = routes_.fabric();
  Shape shape;
  std::map<std::uint32_t, std::uint32_t> servers;
  for (const NodeId gpu : gpus) {
    const auto& node = fabric.node(gpu);
    const auto seen = static_cast<std::uint32_t>(servers.size());
    shape.push_back(servers.try_emplace(node.server.v, seen).first->second);
    shape.push_back(fabric.server(node.server).type);
    shape.push_back(node.index);
  }
  return shape;
}

PlannedCollective& Lockstep::planned(const Group& group, const Shape& shape, CollectiveKind kind,
                                     Bytes size, bool one_way) {
  auto found = plans_.find({shape, kind, size.count, one_way});
  if (found != plans_.end()) return found->second;
  auto& planner = planners_[shape];
  if (!planner) planner = planner_(group);
  PlannedCollective plan = planner->plan(kind, size, 0);
  if (one_way) {
    for (Phase& phase : plan.schedule.phases) {
      for (Channel& channel : phase.channels) {
        std::vector<Edge> kept;
        channel.for_each_edge([&](const Edge& edge) {
          if (edge.src == 0) kept.push_back(edge);
        });
        channel.edges = std::move(kept);
        channel.generate = nullptr;
        if (channel.same_as != 0) channel.same_as = mix64(channel.same_as) | 1;
      }
    }
    if (const auto all = plan.schedule.steps) {
      plan.schedule.steps = [all](const StepSink& sink) {
        all([&](const Step& step) {
          if (step.src == 0) sink(step);
        });
      };
    }
  }
  return plans_.emplace(std::tuple{shape, kind, size.count, one_way}, std::move(plan))
      .first->second;
}

// What moves alike in time: kinds, sizes, delays, limits and order of the scratch operations.
Lockstep::Form Lockstep::form() const {
  Form form;
  for (const Operation& operation : scratch_.operations) {
    const bool flow = operation.kind == Operation::Kind::flow;
    const Way way = flow ? scratch_.ways[operation.way] : Way{};
    form.insert(form.end(), {static_cast<std::int64_t>(operation.kind), operation.size.count,
                             operation.time.ps, way.latency.ps, way.cap.bps});
    for (std::uint32_t e = operation.first_edge; e != Operation::kNoEdge;
         e = scratch_.edges[e].next)
      form.push_back(scratch_.edges[e].to);
  }
  return form;
}

void Lockstep::take(Pattern& pattern, const PlannedCollective& plan, const Group& group,
                    std::map<Form, std::size_t>& branches) {
  scratch_.operations.resize(0);
  scratch_.edges.clear();
  scratch_.ways.clear();
  scratch_.shares.clear();
  scratch_.trees.clear();
  if (!builder_) {
    builder_ = std::make_unique<CollectiveBuilder>(routes_, scratch_);
    if (!packets_) builder_->keep_journeys();
  }
  builder_->append(plan.schedule, group, plan.options, scratch_.add_barrier());
  const std::size_t count = scratch_.operations.size();  // the start included
  const std::size_t next = pattern.ops.size();
  const std::size_t first = packets_ ? next : branches.try_emplace(form(), next).first->second;
  for (std::uint32_t i = 1; i < count; ++i) {
    const Operation& operation = scratch_.operations[OpId{i}];
    if (first == next) pattern.ops.push_back({.operation = operation});
    if (operation.kind != Operation::Kind::flow) continue;
    Op& op = pattern.ops[first + i - 1];
    const Way& way = scratch_.ways[operation.way];
    const auto shares = scratch_.shares_of(operation.way);
    op.shares.insert(op.shares.end(), shares.begin(), shares.end());
    if (op.shares.size() > op.room) {  // not as many as groups times links
      combine(op.shares);
      op.room = std::max(kRoom, 2 * op.shares.size());
    }
    op.latency = way.latency;
    op.wire = way.wire;
    op.cap = way.cap;
    if (way.tree == Way::kNoTree) continue;
    op.tree = static_cast<std::uint32_t>(workload_.trees.size());
    workload_.trees.push_back(scratch_.trees[way.tree]);
  }
  if (first != next) return;
  for (std::uint32_t i = 0; i < count; ++i) {
    for (std::uint32_t e = scratch_.operations[OpId{i}].first_edge; e != Operation::kNoEdge;
         e = scratch_.edges[e].next) {
      pattern.ops[first + scratch_.edges[e].to - 1].after.push_back(
          i == 0 ? 0 : static_cast<std::uint32_t>(first + i - 1));
    }
  }
}

std::uint64_t Lockstep::members_of(const std::vector<Group>& groups) {
  std::uint64_t members = mix64(groups.size());
  for (const Group& group : groups) {
    members = mix64(members ^ group.size());
    for (const NodeId gpu : group) members = mix64(members ^ gpu.v);
  }
  return members;
}

std::uint32_t Lockstep::collective(CollectiveKind kind, Bytes size,
                                   const std::vector<Group>& groups) {
  return add(kind, size, groups, false);
}

std::uint32_t Lockstep::sends(Bytes size, const std::vector<Pair>& pairs) {
  std::vector<Group> groups;
  groups.reserve(pairs.size());
  for (const auto& [src, dst] : pairs) groups.push_back({src, dst});
  return add(CollectiveKind::send_recv, size, groups, true);
}

std::uint32_t Lockstep::add(CollectiveKind kind, Bytes size, const std::vector<Group>& groups,
                            bool one_way) {
  WEFT_CHECK(!classes_, patterns_.size());
  const std::uint64_t members = members_of(groups);
  const auto next = static_cast<std::uint32_t>(patterns_.size());
  const auto [known, fresh] = known_.try_emplace({kind, size.count, one_way, members}, next);
  if (!fresh) return known->second;
  Pattern& pattern = patterns_.emplace_back();
  pattern.ops.push_back({.operation = {.kind = Operation::Kind::barrier}});
  if (size.count <= 0) return next;
  std::map<Form, std::size_t> branches;  // where those of one form begin: they move together
  for (const Group& group : groups) {
    if (group.size() < 2) continue;
    PlannedCollective& plan = planned(group, shape_of(group), kind, size, one_way);
    pattern.algorithm = plan.algorithm;
    plan.options.hash = mix64(group.front().v ^ mix64(group.back().v));
    plan.options.label = 0;
    take(pattern, plan, group, branches);
  }
  if (builder_) builder_->forget();
  for (Op& op : pattern.ops) {
    combine(op.shares);
    if (builder_) builder_->expand_journeys(op.shares);
    op.shares.shrink_to_fit();
  }
  return next;
}

// Those of one latency move together.
std::uint32_t Lockstep::host_copies(Bytes size, std::span<const NodeId> gpus, HostWay way) {
  WEFT_CHECK(!classes_, patterns_.size());
  Pattern& pattern = patterns_.emplace_back();
  pattern.ops.push_back({.operation = {.kind = Operation::Kind::barrier}});
  std::map<std::int64_t, std::size_t> branches;
  for (const NodeId gpu : gpus) {
    if (size.count <= 0) break;
    const std::optional<Leg> leg = routes_.host_copy(gpu, way);
    if (!leg) continue;
    const Time latency = leg->route.latency + leg->startup;
    const std::size_t next = pattern.ops.size();
    const std::size_t at = packets_ ? next : branches.try_emplace(latency.ps, next).first->second;
    if (at == next) {
      Op& op = pattern.ops.emplace_back();
      op.operation = {.kind = Operation::Kind::flow, .size = size};
      op.latency = latency;
      op.wire = leg->route.latency;
      op.cap = leg->cap;
    }
    Op& op = pattern.ops[at];
    op.shares.insert(op.shares.end(), leg->route.shares.begin(), leg->route.shares.end());
    if (op.shares.size() > op.room) {
      combine(op.shares);
      op.room = std::max(kRoom, 2 * op.shares.size());
    }
  }
  for (Op& op : pattern.ops) combine(op.shares);
  return static_cast<std::uint32_t>(patterns_.size() - 1);
}

void Lockstep::fold(std::span<const Bandwidth> capacities,
                    std::span<const std::uint32_t> changing) {
  WEFT_CHECK(!classes_, patterns_.size());
  if (packets_) {
    for (Pattern& pattern : patterns_) {
      for (Op& op : pattern.ops) {
        if (op.operation.kind == Operation::Kind::flow) {
          op.operation.way = workload_.add_way(op.shares, op.latency, op.cap, op.wire);
          workload_.ways.back().tree = op.tree;
        }
        op.shares = {};
      }
    }
    return;
  }
  classes_ = std::make_unique<ResourceClasses>(capacities, changing);
  std::vector<std::uint32_t> uses;
  for (std::uint32_t way = 0; way < workload_.ways.size(); ++way)
    uses.push_back(classes_->add(workload_.shares_of(way)));
  for (Pattern& pattern : patterns_) {
    for (Op& op : pattern.ops) {
      if (op.operation.kind == Operation::Kind::flow) op.use = classes_->add(op.shares);
      op.shares = {};
    }
  }
  std::vector<Share> shares;
  for (std::uint32_t way = 0; way < workload_.ways.size(); ++way) {
    const std::vector<Share> fewer = classes_->shares(uses[way]);
    workload_.ways[way].first = static_cast<std::uint32_t>(shares.size());
    workload_.ways[way].count = static_cast<std::uint32_t>(fewer.size());
    shares.insert(shares.end(), fewer.begin(), fewer.end());
  }
  workload_.shares = std::move(shares);
  for (Pattern& pattern : patterns_) {
    for (Op& op : pattern.ops) {
      if (op.operation.kind == Operation::Kind::flow) op.shares = classes_->shares(op.use);
    }
    merge_equal(pattern);
    for (Op& op : pattern.ops) {
      if (op.operation.kind != Operation::Kind::flow) continue;
      op.operation.way = workload_.add_way(op.shares, op.latency, op.cap, op.wire);
      op.shares = {};
    }
  }
}

// Flows that start and end together and cross the same are one with their weights added: the channels of a ring.
void Lockstep::merge_equal(Pattern& pattern) {
  const std::size_t count = pattern.ops.size();
  std::vector<std::vector<std::uint32_t>> next(count);
  for (std::uint32_t i = 0; i < count; ++i) {
    for (const std::uint32_t before : pattern.ops[i].after) next[before].push_back(i);
  }
  using Key = std::tuple<std::vector<std::uint32_t>, std::vector<std::uint32_t>,
                         std::vector<std::pair<std::uint32_t, double>>, std::int64_t, std::int64_t,
                         std::int64_t, std::int64_t>;
  std::map<Key, std::uint32_t> first;
  std::vector<double> times(count, 0);
  std::vector<std::uint32_t> moved(count);
  std::vector<Op> kept;
  for (std::uint32_t i = 0; i < count; ++i) {
    Op& op = pattern.ops[i];
    moved[i] = static_cast<std::uint32_t>(kept.size());
    if (op.operation.kind == Operation::Kind::flow) {
      std::vector<std::pair<std::uint32_t, double>> shares;
      for (const Share& share : op.shares) shares.emplace_back(share.resource, share.weight);
      std::ranges::sort(op.after);
      const auto [known, fresh] =
          first.try_emplace(Key{op.after, next[i], std::move(shares), op.latency.ps, op.cap.bps,
                                op.operation.size.count, op.operation.time.ps},
                            moved[i]);
      if (!fresh) {
        ++times[known->second];
        moved[i] = 0;  // nobody but `next` names it, and they wait for the one that stays
        continue;
      }
    }
    times[kept.size()] = 1;
    kept.push_back(std::move(op));
  }
  for (std::size_t i = 0; i < kept.size(); ++i) {
    Op& op = kept[i];
    for (Share& share : op.shares) share.weight *= times[i];
    for (std::uint32_t& before : op.after) before = before == 0 ? 0 : moved[before];
    std::ranges::sort(op.after);
    op.after.erase(std::unique(op.after.begin(), op.after.end()), op.after.end());
    if (op.after.size() > 1 && op.after.front() == 0) op.after.erase(op.after.begin());
  }
  pattern.ops = std::move(kept);
}

OpId Lockstep::append(std::uint32_t index, OpId after, std::uint32_t label) {
  const Pattern& pattern = patterns_[index];
  if (pattern.ops.size() == 1) return after;
  const std::size_t base = workload_.operations.size();
  std::vector<std::uint8_t> ends(pattern.ops.size(), 1);
  // What the network model ends by itself, behind the flow that has left.
  const auto arrives = [&](std::size_t i) { return pattern.ops[i - 1].operation.arrives_next; };
  for (std::size_t i = 1; i < pattern.ops.size(); ++i) {
    Operation operation = pattern.ops[i].operation;
    operation.waits_for = arrives(i) ? 1 : 0;
    operation.first_edge = Operation::kNoEdge;
    operation.label = label;
    workload_.operations.push_back(operation);
  }
  for (std::size_t i = 1; i < pattern.ops.size(); ++i) {
    const OpId self{base + i - 1};
    for (const std::uint32_t before : pattern.ops[i].after) {
      ends[before] = 0;
      workload_.depend(before == 0 ? after : OpId{base + before - 1}, self);
    }
    if (pattern.ops[i].after.empty() && !arrives(i)) workload_.depend(after, self);
  }
  OpId last;
  std::size_t open = 0;
  for (std::size_t i = 1; i < pattern.ops.size(); ++i) {
    if (ends[i] == 0) continue;
    ++open;
    last = OpId{base + i - 1};
  }
  if (open == 1) return last;
  const OpId done = workload_.add_barrier();
  workload_.operations[done].label = label;
  for (std::size_t i = 1; i < pattern.ops.size(); ++i) {
    if (ends[i] != 0) workload_.depend(OpId{base + i - 1}, done);
  }
  return done;
}

}  // namespace weft
