// SPDX-License-Identifier: Apache-2.0
// Finds what a scenario wants to see of flows and links, and puts names to what the network model saw.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "sim/core/diagnostics.hpp"
#include "sim/run/executor.hpp"
#include "sim/run/jobs.hpp"
#include "sim/run/report.hpp"
#include "sim/run/scenario.hpp"

namespace weft {

// The links that `observe.links` selects: all of a tier ("tier:leaf-spine"), or those whose names match a pattern.
std::vector<LinkId> watched_links(const Fabric& fabric, const Scenario& scenario, Diagnostics& out);

// Has the model record the flows that `observe.flows` selects, the largest ones.
void watch_flows(const JobBuilder& builder, const Scenario& scenario, NetworkModel& network,
                 Diagnostics& out);

// Looks at links every so often, for models that do not record by themselves. When there would be more than kMost windows, they
// become twice as long.
class LinkSampler {
 public:
  static constexpr std::size_t kMost = 4096;
  LinkSampler(std::vector<LinkId> links, Time every, const NetworkModel& network,
              const JobBuilder& builder)
      : links_(std::move(links)),
        every_(every),
        network_(network),
        builder_(builder),
        before_(links_.size(), 0.0),
        bytes_(links_.size()) {}
  // At the end of a window; when the next one ends.
  Time look(Time now);
  std::map<std::uint32_t, LinkSeries> finish(Time end);

 private:
  void take();
  std::vector<LinkId> links_;
  Time every_, last_{0};
  const NetworkModel& network_;
  const JobBuilder& builder_;
  std::vector<double> before_;
  std::vector<std::vector<double>> bytes_;  // by link, by window
};

class Observer {
 public:
  Observer(const Fabric& fabric, const JobBuilder& builder, const Executor& executor,
           Observation seen)
      : fabric_(fabric),
        builder_(builder),
        executor_(executor),
        seen_(std::move(seen)),
        tree_(seen_.pauses) {}

  // Time of a flow if it were alone: its latency, and its bytes at the rate of the narrowest link. The copies of a staged
  // transfer one after the other, queue pairs side by side.
  double ideal_s(const FlowPlan& flow) const;
  FlowObserved seen_of(const FlowPlan& flow) const;
  // What happened to links, and which of the flows are victims; at most `top` of each.
  ObservedReport report(std::size_t top) const;

 private:
  std::string name_of(std::uint64_t tag) const;
  std::vector<NamedShare> names_of(std::uint32_t cause) const;
  void add_flow_series(ObservedReport& out) const;
  bool crosses(const FlowPlan& flow, std::uint32_t link) const;

  const Fabric& fabric_;
  const JobBuilder& builder_;
  const Executor& executor_;
  Observation seen_;
  PauseTree tree_;
};

}  // namespace weft
