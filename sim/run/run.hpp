// SPDX-License-Identifier: Apache-2.0
// From a scenario to its report.
#pragma once

#include <functional>
#include <memory>
#include <span>

#include "sim/fabric/fabric.hpp"
#include "sim/run/library.hpp"
#include "sim/run/network_model.hpp"
#include "sim/run/report.hpp"
#include "sim/run/scenario.hpp"

namespace weft {

class Executor;
class Workload;
struct JobPlan;

// All that a run leaves behind, for who draws or traces it; valid only while it is shown.
struct RunTrail {
  const Fabric& fabric;
  const Workload& workload;
  const Executor& executor;
  const NetworkModel& network;
  std::span<const JobPlan> jobs;
  // The resource that carries what this one does, see ResourceClasses.
  std::function<std::uint32_t(std::uint32_t)> representative;
};

// What the caller plugs in: sim itself knows no model by name.
struct RunContext {
  LinkClasses link_classes;
  std::span<const AlgorithmEntry* const> algorithms;
  std::function<std::unique_ptr<NetworkModel>(Fidelity, std::span<const Bandwidth> capacities,
                                              NetworkOptions)>
      make_network;
  CollectiveLibrary library;  // of scenarios with the key `nccl`; may be empty
  JobLibrary models;          // of training and inference jobs; may be empty
  std::string version;
  std::function<void(Time now, std::uint64_t events)> progress;  // may be empty
  std::function<void(const RunTrail&)> show;                     // may be empty
  bool explain = true;  // bottlenecks by running again without each; costs a run per tier
};

// Throws InputError (the scenario asks for what the fabric does not have), LimitReached, or Bug.
Report run_scenario(const Scenario& scenario, const RunContext& context, Diagnostics& out);

// The same on a fabric that is already built, for callers that ask many questions of one machine.
Report run_on(const Fabric& fabric, const Scenario& scenario, const RunContext& context,
              Diagnostics& out);

// bus bandwidth over algorithm bandwidth, as nccl-tests counts it.
double busbw_factor(CollectiveKind kind, std::size_t ranks);

}  // namespace weft
