// SPDX-License-Identifier: Apache-2.0
#include "sim/run/collective_timer.hpp"

#include <algorithm>
#include <cmath>

#include "sim/core/check.hpp"
#include "sim/core/hash.hpp"
#include "sim/run/executor.hpp"

namespace weft {

std::string default_algorithm(CollectiveKind kind, const GroupShape& shape) {
  switch (kind) {
    case CollectiveKind::all_reduce:
      return shape.switch_reduces ? "in_switch" : "ring";
    case CollectiveKind::all_gather:
    case CollectiveKind::reduce_scatter:
    case CollectiveKind::broadcast:
    case CollectiveKind::reduce:
      return "ring";
    case CollectiveKind::all_to_all:
    case CollectiveKind::gather:
    case CollectiveKind::scatter:
    case CollectiveKind::send_recv:
      return "direct";
  }
  return "ring";
}

PlannedCollective plan_own(const AlgorithmEntry& algorithm, const GroupShape& shape,
                           const CollectiveRequest& request, const Scenario& scenario,
                           Routing routing) {
  PlannedCollective out;
  out.schedule = algorithm.build(request, shape);
  out.algorithm = out.schedule.algorithm;
  // Only rings and trees run side by side; what an algorithm does not split counts as one.
  std::size_t most = 1;
  for (const Phase& phase : out.schedule.phases) most = std::max(most, phase.channels.size());
  out.channels = static_cast<std::uint32_t>(std::min<std::size_t>(request.channels, most));
  out.options.costs = scenario.models.collective;
  out.options.routing = routing;
  out.options.packets = scenario.fidelity == Fidelity::packet;
  out.options.expand = out.options.packets;
  return out;
}

namespace {

class OwnAlgorithms : public GroupPlanner {
 public:
  OwnAlgorithms(GroupShape shape, std::span<const AlgorithmEntry* const> algorithms,
                const Scenario& scenario, Routing routing)
      : shape_(std::move(shape)), algorithms_(algorithms), scenario_(scenario), routing_(routing) {}

  PlannedCollective plan(CollectiveKind kind, Bytes bytes, std::uint32_t root) const override {
    const auto found =
        std::ranges::find(algorithms_, default_algorithm(kind, shape_), &AlgorithmEntry::name);
    WEFT_CHECK(found != algorithms_.end(), algorithms_.size());
    CollectiveRequest request{.kind = kind, .size = bytes, .root = root};
    request.channels =
        static_cast<std::uint32_t>(std::clamp<std::size_t>(shape_.orders.size(), 1, 64));
    return plan_own(**found, shape_, request, scenario_, routing_);
  }

 private:
  GroupShape shape_;
  std::span<const AlgorithmEntry* const> algorithms_;
  const Scenario& scenario_;
  Routing routing_;
};

// What another plans, for a network of packets or of flows.
class PlannedFor : public GroupPlanner {
 public:
  PlannedFor(std::shared_ptr<const GroupPlanner> plans, bool packets)
      : plans_(std::move(plans)), packets_(packets) {}

  PlannedCollective plan(CollectiveKind kind, Bytes bytes, std::uint32_t root) const override {
    PlannedCollective out = plans_->plan(kind, bytes, root);
    if (out.options.packets && !packets_) out.options.expand = false;
    out.options.packets = packets_;
    return out;
  }

 private:
  std::shared_ptr<const GroupPlanner> plans_;
  bool packets_;
};

}  // namespace

CollectivePlanner collective_planner(const Fabric& fabric, const Scenario& scenario,
                                     std::span<const AlgorithmEntry* const> algorithms,
                                     const CollectiveLibrary& library, const NcclSpec& unnamed) {
  struct Known {
    std::map<std::vector<NodeId>, std::shared_ptr<const GroupPlanner>> groups;
    std::unique_ptr<Routes> routes;
  };
  const auto known = std::make_shared<Known>();
  const auto join = [&fabric, &scenario, algorithms, &library, unnamed,
                     known](std::span<const NodeId> gpus) -> std::shared_ptr<const GroupPlanner> {
    const bool packets = scenario.fidelity == Fidelity::packet;
    if (library && (!packets || scenario.nccl)) {
      try {
        auto joined = library.join(fabric, gpus, scenario.nccl.value_or(unnamed));
        if (packets) return std::make_shared<PlannedFor>(std::move(joined), true);
        return joined;
      } catch (const InputError&) {
        if (scenario.nccl) throw;  // asked for by name
      }
    }
    if (!known->routes) known->routes = std::make_unique<Routes>(fabric);
    return std::make_shared<OwnAlgorithms>(group_shape(*known->routes, gpus), algorithms, scenario,
                                           fabric.routing());
  };
  return [known, join](std::span<const NodeId> gpus) {
    auto& group = known->groups[{gpus.begin(), gpus.end()}];
    if (!group) group = join(gpus);
    return group;
  };
}

CollectiveTimer::CollectiveTimer(const Fabric& fabric, Routes& routes, CollectivePlanner planner,
                                 MakeNetwork make_network)
    : routes_(routes),
      planner_([planner = std::move(planner)](std::span<const NodeId> gpus) {
        return std::make_shared<PlannedFor>(planner(gpus), false);
      }),
      make_network_(std::move(make_network)),
      capacities_(fabric.capacities()) {}

double CollectiveTimer::seconds(CollectiveKind kind, double bytes,
                                const std::vector<Lockstep::Group>& groups) {
  const Bytes size{static_cast<std::int64_t>(std::ceil(bytes))};
  const auto [known, fresh] =
      known_.try_emplace({kind, size.count, Lockstep::members_of(groups)}, 0);
  if (fresh) {
    known->second =
        run([&](Lockstep& lockstep) { return lockstep.collective(kind, size, groups); });
  }
  return known->second;
}

double CollectiveTimer::send_seconds(double bytes, const std::vector<Lockstep::Pair>& pairs) {
  const Bytes size{static_cast<std::int64_t>(std::ceil(bytes))};
  std::uint64_t members = mix64(~pairs.size());
  for (const auto& [src, dst] : pairs) members = mix64(mix64(members ^ src.v) ^ dst.v);
  const auto [known, fresh] =
      known_.try_emplace({CollectiveKind::send_recv, size.count, members}, 0);
  if (fresh) known->second = run([&](Lockstep& lockstep) { return lockstep.sends(size, pairs); });
  return known->second;
}

// Capacities of the resources that the workload uses, renumbered: a machine has a million, a collective needs a few.
std::vector<Bandwidth> CollectiveTimer::compact(Workload& workload) const {
  std::vector<std::uint32_t> used;
  for (const Share& share : workload.shares) used.push_back(share.resource);
  std::ranges::sort(used);
  used.erase(std::unique(used.begin(), used.end()), used.end());
  for (Share& share : workload.shares) {
    share.resource =
        static_cast<std::uint32_t>(std::ranges::lower_bound(used, share.resource) - used.begin());
  }
  std::vector<Bandwidth> out;
  for (const std::uint32_t resource : used) out.push_back(capacities_[resource]);
  return out;
}

double CollectiveTimer::run(const std::function<std::uint32_t(Lockstep&)>& pattern) {
  Workload workload;
  Lockstep lockstep(routes_, workload, planner_, false);
  const std::uint32_t id = pattern(lockstep);
  lockstep.fold(capacities_, {});
  lockstep.append(id, workload.add_barrier(), 0);
  const auto network = make_network_(compact(workload));
  Executor executor(workload, *network);
  ExecutorJob job;
  job.end_op = static_cast<std::uint32_t>(workload.operations.size());
  executor.run({job}, {});
  return executor.makespan().seconds();
}

}  // namespace weft
