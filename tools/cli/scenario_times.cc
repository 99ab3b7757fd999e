// SPDX-License-Identifier: Apache-2.0
#include "tools/cli/scenario_times.hpp"

namespace weft {
namespace {

PredictedThing thing_of(const JobReport& job, bool several) {
  PredictedThing out{
      .kind = {}, .bytes = Bytes{static_cast<std::int64_t>(job.bytes)}, .across = several};
  if (!job.collective.empty())
    out.kind = PointKind::collective;
  else if (job.kind == "p2p")
    out.kind = PointKind::copy;
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
    changed.sets.push_back("/fabric" + pointer + "=" + to_text(value, 0));
  const Report report =
      run_timed(load_scenario(path_, changed, diagnostics_), context_, diagnostics_);
  if (things_.empty()) {
    std::int64_t servers = 0;
    for (const ServerGroup& group : scenario_.fabric.groups) servers += group.count;
    const bool several = servers > 1;
    for (const JobReport& job : report.jobs) things_.push_back(thing_of(job, several));
    things_.insert(things_.begin(),
                   things_.size() == 1
                       ? things_[0]
                       : PredictedThing{.kind = {}, .bytes = {}, .across = several});
  }
  std::vector<double> out{report.time_s};
  for (const JobReport& job : report.jobs) out.push_back(job.time_s);
  return out;
}

}  // namespace weft
