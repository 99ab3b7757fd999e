// SPDX-License-Identifier: Apache-2.0
#include "tools/cli/scenario_times.hpp"

#include <algorithm>

#include "sim/run/jobs.hpp"

namespace weft {
namespace {

// Whether what belongs together, a group or the two ends of a flow, lies in several servers.
bool across(const Fabric& fabric, const JobPlan& job) {
  const auto server = [&](NodeId node) { return fabric.node(node).server; };
  const auto spread = [&](const std::vector<NodeId>& gpus) {
    return std::ranges::any_of(gpus, [&](NodeId gpu) { return server(gpu) != server(gpus[0]); });
  };
  return spread(job.modelled_on) || std::ranges::any_of(job.groups, spread, &GroupPlan::gpus) ||
         std::ranges::any_of(
             job.flows, [&](const FlowPlan& flow) { return server(flow.src) != server(flow.dst); });
}

std::vector<PredictedThing> things_of(const RunTrail& trail) {
  std::vector<PredictedThing> out;
  bool any_across = false;
  for (const JobPlan& job : trail.jobs) {
    PredictedThing& thing = out.emplace_back();
    thing.bytes = Bytes{static_cast<std::int64_t>(job.bytes)};
    thing.across = across(trail.fabric, job);
    any_across = any_across || thing.across;
    if (job.spec->training)
      thing.kind = PredictedKind::step;
    else if (job.spec->collective)
      thing.kind = PredictedKind::collective;
    else if (job.spec->p2p)
      thing.kind = PredictedKind::copy;
  }
  // The first is the whole run.
  out.insert(out.begin(), out.size() == 1 ? out[0] : PredictedThing{.across = any_across});
  return out;
}

}  // namespace

ScenarioTimes::ScenarioTimes(std::string path, RunOptions options)
    : path_(std::move(path)),
      options_(std::move(options)),
      context_(run_models()),
      scenario_(load_scenario(path_, options_, diagnostics_)) {
  context_.explain = false;
}

std::vector<double> ScenarioTimes::at(const ValueChanges& changes) {
  RunOptions changed = options_;
  for (const auto& [pointer, value] : changes)
    changed.sets.emplace_back("/fabric" + pointer, value);
  context_.show = [this](const RunTrail& trail) {
    if (things_.empty()) things_ = things_of(trail);
  };
  const Report report =
      run_timed(load_scenario(path_, changed, diagnostics_), context_, diagnostics_);
  std::vector<double> out{report.time_s};
  for (const JobReport& job : report.jobs) out.push_back(job.time_s);
  return out;
}

}  // namespace weft
