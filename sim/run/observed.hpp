// SPDX-License-Identifier: Apache-2.0
// What a report says of queues, pauses and the distribution of flows, with names instead of numbers.
//
//   Victim   A flow that PFC stopped although its own way is not where the load is too high. The explanation follows the
//            pauses from the link where the flow was stopped to the queue where they begin:
//
//              victim/0 was paused 41 % of the time at spine0:leaf1 by leaf1, because of hog/3 (52 %) and hog/1 (48 %),
//              which fill the queue to leaf1:server4/nic0
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "sim/core/json.hpp"
#include "sim/run/observation.hpp"

namespace weft {

// A quantity over the flows of a job; percentiles are the smallest value that so many per cent do not exceed.
struct Distribution {
  double mean = 0, p50 = 0, p90 = 0, p99 = 0, most = 0;
};
Distribution distribution_of(std::vector<double> values);

struct NamedShare {
  std::string name;
  double share = 0;
};

struct PauseReport {
  std::string paused, by, cause;  // link, node at its far end, link whose queue made it
  std::uint64_t pauses = 0;
  double time_s = 0;
  std::vector<NamedShare> flows;  // in that queue
};

struct VictimReport {
  std::string flow;
  double share = 0;               // of its time
  std::string paused, by, cause;  // cause: where the pauses begin
  std::vector<NamedShare> flows;  // that fill it
  std::string text() const;
};

struct SeriesReport {
  std::string link;
  LinkSeries windows;
};

struct FlowSeriesReport {
  std::string flow;
  FlowSeries windows;
};

struct ObservedReport {
  std::vector<PauseReport> pauses;
  std::vector<VictimReport> victims;
  std::vector<SeriesReport> series;
  std::vector<FlowSeriesReport> flow_series;
  std::size_t pauses_cut = 0, victims_cut = 0;
};

Json to_json(const Distribution& distribution);
// Adds its keys to the report, those that have something to say.
void add_json(const ObservedReport& observed, Json& report);
// Lines for people; empty when there is nothing to tell.
std::string summary(const ObservedReport& observed);

// ---- from one pause to where it begins

struct PauseTree {
  explicit PauseTree(const std::vector<PauseEdge>& edges);
  // The queue that stopped this link longest; the link itself when none did.
  std::uint32_t cause_of(std::uint32_t paused) const;
  // Where the pauses of this link begin: causes are followed while they are stopped at least half as long themselves.
  std::uint32_t root_of(std::uint32_t paused) const;

 private:
  struct Stop {
    std::uint32_t cause = 0;
    Time longest{0}, total{0};
  };
  std::map<std::uint32_t, Stop> stops_;
};

}  // namespace weft
