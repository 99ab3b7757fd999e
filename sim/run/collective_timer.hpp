// SPDX-License-Identifier: Apache-2.0
// How a machine would carry out a collective, and how long that takes when nothing else runs.
//
//   CollectiveTimer timer(fabric, routes, collective_planner(...), make_network);
//   double s = timer.seconds(CollectiveKind::all_reduce, 32_MiB, groups);    // all groups at once
//
// What was asked before is remembered; that is what makes estimates of thousands of plans cheap.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <tuple>
#include <vector>

#include "sim/run/library.hpp"
#include "sim/run/lockstep.hpp"
#include "sim/run/network_model.hpp"

namespace weft {

// What weft runs when the scenario names no algorithm.
std::string default_algorithm(CollectiveKind kind, const GroupShape& shape);

// One of weft's own algorithms under the scenario's costs.
PlannedCollective plan_own(const AlgorithmEntry& algorithm, const GroupShape& shape,
                           const CollectiveRequest& request, const Scenario& scenario,
                           Routing routing);

// What jobs of models send with: the scenario's library where the machine's kernels are known, else weft's own algorithms. The
// arguments outlive the planner; groups are remembered. `unnamed`: how the library runs where the scenario does not say.
CollectivePlanner collective_planner(const Fabric& fabric, const Scenario& scenario,
                                     std::span<const AlgorithmEntry* const> algorithms,
                                     const CollectiveLibrary& library,
                                     const NcclSpec& unnamed = {});

class CollectiveTimer {
 public:
  using MakeNetwork =
      std::function<std::unique_ptr<NetworkModel>(std::span<const Bandwidth> capacities)>;

  CollectiveTimer(const Fabric& fabric, Routes& routes, CollectivePlanner planner,
                  MakeNetwork make_network);

  // Until the last group has finished; 0 for groups of one. Throws InputError, LimitReached.
  double seconds(CollectiveKind kind, double bytes, const std::vector<Lockstep::Group>& groups);
  // A message for every pair at once.
  double send_seconds(double bytes, const std::vector<Lockstep::Pair>& pairs);

 private:
  double run(const std::function<std::uint32_t(Lockstep&)>& pattern);
  std::vector<Bandwidth> compact(Workload& workload) const;

  Routes& routes_;
  CollectivePlanner planner_;
  MakeNetwork make_network_;
  std::vector<Bandwidth> capacities_;
  std::map<std::tuple<CollectiveKind, std::int64_t, std::uint64_t>, double> known_;
};

}  // namespace weft
