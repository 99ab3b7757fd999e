// SPDX-License-Identifier: Apache-2.0
// Collectives that many groups run at the same time, as one. Replicas of a model do the same work at the same instants, so the
// ring of replica 0 and those of all others move at one rate; a flow of the one stands for all of them and crosses what they all
// cross. With ResourceClasses the rest collapses: a step of 16,384 GPUs costs what one pipeline costs.
//
//   Lockstep lockstep(routes, workload, plan);
//   const auto gather = lockstep.collective(CollectiveKind::all_gather, 1_MiB, groups);   // register
//   lockstep.fold(capacities, changed);                                             // once, after the last
//   OpId done = lockstep.append(gather, after, label);                              // as often as needed
//
// Exact where the members really move at one rate; under ECMP hashing the unluckiest member sets the pace of all, which is what a
// step that waits for everybody sees. At packet level nothing is folded: every group sends packets of its own.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "sim/fabric/routing.hpp"
#include "sim/run/collective_ops.hpp"
#include "sim/run/library.hpp"
#include "sim/run/resource_classes.hpp"
#include "sim/workload/workload.hpp"

namespace weft {

// Who plans the collectives of a group.
using CollectivePlanner =
    std::function<std::shared_ptr<const GroupPlanner>(std::span<const NodeId> gpus)>;

class Lockstep {
 public:
  using Group = std::vector<NodeId>;
  using Pair = std::pair<NodeId, NodeId>;

  Lockstep(Routes& routes, Workload& workload, CollectivePlanner planner, bool packets)
      : routes_(routes), workload_(workload), planner_(std::move(planner)), packets_(packets) {}

  // Of who takes part, in order.
  static std::uint64_t members_of(const std::vector<Group>& groups);

  // Groups of one rank do nothing. The same call again is the same pattern. Throws InputError, LimitReached.
  std::uint32_t collective(CollectiveKind kind, Bytes size, const std::vector<Group>& groups);
  // A message of `size` for every pair at once.
  std::uint32_t sends(Bytes size, const std::vector<Pair>& pairs);
  // `size` between every GPU and the memory of its host, by copy engines.
  std::uint32_t host_copies(Bytes size, std::span<const NodeId> gpus, HostWay way);
  bool empty(std::uint32_t pattern) const { return patterns_[pattern].ops.size() == 1; }
  const std::string& algorithm(std::uint32_t pattern) const { return patterns_[pattern].algorithm; }

  // What every resource stands for, from the ways of the patterns and those that the workload has already. Nothing may be
  // registered after it.
  void fold(std::span<const Bandwidth> capacities, std::span<const std::uint32_t> changing);
  // The resource whose load is this one's too.
  std::uint32_t representative(std::uint32_t resource) const {
    return classes_ ? classes_->representative(resource) : resource;
  }

  // Appends the pattern and returns the operation that ends it; `after` when it is empty.
  OpId append(std::uint32_t pattern, OpId after, std::uint32_t label);

 private:
  struct Op {
    Operation operation;
    std::vector<Share> shares;  // flow, until fold()
    std::size_t room = 0;       // shares before those of one resource are added up
    Time latency{0}, wire{0};
    Bandwidth cap{0};
    std::uint32_t tree = Way::kNoTree;
    std::uint32_t use = 0;
    std::vector<std::uint32_t> after;  // operations of the pattern; 0 is what came before it
  };
  struct Pattern {
    std::vector<Op> ops;  // 0: a barrier that stands for what came before
    std::string algorithm;
  };
  using Shape = std::vector<std::uint32_t>;
  Shape shape_of(std::span<const NodeId> gpus) const;
  PlannedCollective& planned(const Group& group, const Shape& shape, CollectiveKind kind,
                             Bytes size, bool one_way);
  std::uint32_t add(CollectiveKind kind, Bytes size, const std::vector<Group>& groups,
                    bool one_way);
  using Form = std::vector<std::int64_t>;
  Form form() const;
  // Operations of one group behind operation 0 of the pattern; added onto those of a group of the same form.
  void take(Pattern& pattern, const PlannedCollective& plan, const Group& group,
            std::map<Form, std::size_t>& branches);
  void merge_equal(Pattern& pattern);
  void combine(std::vector<Share>& shares);

  Routes& routes_;
  Workload& workload_;
  CollectivePlanner planner_;
  bool packets_;
  Workload scratch_;
  std::unique_ptr<CollectiveBuilder> builder_;
  std::vector<Pattern> patterns_;
  std::vector<std::uint32_t> slot_;  // by resource: its place while shares are added up
  std::map<Shape, std::shared_ptr<const GroupPlanner>> planners_;  // of the first group of a shape
  std::map<std::tuple<Shape, CollectiveKind, std::int64_t, bool>, PlannedCollective> plans_;
  std::map<std::tuple<CollectiveKind, std::int64_t, bool, std::uint64_t>, std::uint32_t> known_;
  std::unique_ptr<ResourceClasses> classes_;
};

}  // namespace weft
