// SPDX-License-Identifier: Apache-2.0
// What a network model saw happen to flows and links, beyond when they finished. Plain data; flows go by the tag they were
// started with, links by their resource number.
#pragma once

#include <cstdint>
#include <map>
#include <unordered_map>
#include <vector>

#include "sim/core/units.hpp"

namespace weft {

// A flow, over all its runs; the pause is that of the last.
struct FlowObserved {
  std::int64_t retransmitted = 0, dropped = 0;  // bytes
  std::uint64_t marks = 0;
  Time paused{0};               // by PFC, at the link of its way that was stopped longest
  std::uint32_t paused_at = 0;  // that link, when paused > 0
};

// PFC stopped the link `paused`, because of the queue in front of the link `cause` at its far end.
struct PauseEdge {
  std::uint32_t paused = 0, cause = 0;
  std::uint64_t pauses = 0;
  Time time{0};
};

// How much of a queue that caused pauses a flow made up, sampled at each pause.
struct QueueShare {
  std::uint64_t tag = 0;
  double share = 0;
};

// A link in windows of equal length from 0 on.
struct LinkSeries {
  Time every{0};
  std::vector<double> bytes;                   // payload that began to leave
  std::vector<double> queue_mean, queue_most;  // bytes in front of it
  std::vector<double> paused;                  // share of the time that PFC stopped it
};

// What arrived of a flow, likewise.
struct FlowSeries {
  Time every{0};
  std::vector<double> bytes;

  // Adds another one, in windows of the longer of the two; lengths are a power of 2 apart.
  void merge(FlowSeries other);
};

struct Observation {
  std::unordered_map<std::uint64_t, FlowObserved> flows;      // those that something happened to
  std::vector<PauseEdge> pauses;                              // by paused link, then cause
  std::map<std::uint32_t, std::vector<QueueShare>> culprits;  // by cause, the largest share first
  std::map<std::uint32_t, LinkSeries> series;                 // of watched links
  std::map<std::uint64_t, FlowSeries> flow_series;            // of watched flows, by tag
};

}  // namespace weft
