// SPDX-License-Identifier: Apache-2.0
// What the engine saw, in the terms of those who started the flows.
#include "models/packet/packet_network.hpp"

namespace weft {
namespace {

constexpr std::size_t kMostCulprits = 8;  // of a queue that are told

}  // namespace

bool PacketNetwork::watch(std::uint32_t resource, Time every) {
  if (resource < engine_.port_count()) engine_.watch(resource, every);
  return true;
}

bool PacketNetwork::watch_flow(std::uint64_t tag, Time every) {
  watched_flows_[tag] = every;
  return true;
}

// Of the virtual lane that was stopped longest.
Time PacketNetwork::paused(std::uint32_t port, std::uint8_t traffic_class) const {
  Time most{0};
  for (std::uint8_t lane = 0; lane < (uses_lanes_ ? kDragonflyLanes : 1); ++lane) {
    const auto own = static_cast<std::uint8_t>(traffic_class + lane * traffic_classes_);
    most = std::max(most, engine_.paused(port, own));
  }
  return most;
}

void PacketNetwork::remember_pauses(Slot& slot) const {
  slot.paused_before.clear();
  if (engine_.pauses().empty()) return;
  for (const std::uint32_t p : slot.way->pausable)
    slot.paused_before.push_back(paused(p, slot.traffic_class));
}

// How long the links of its way were stopped while the flow ran.
void PacketNetwork::note_pauses(const Slot& slot) {
  if (engine_.pauses().empty() || slot.way == nullptr) return;
  const Way& way = *slot.way;
  FlowObserved seen;
  for (std::size_t i = 0; i < way.pausable.size(); ++i) {
    const Time before = slot.paused_before.empty() ? Time{0} : slot.paused_before[i];
    const Time paused = this->paused(way.pausable[i], slot.traffic_class) - before;
    if (paused <= seen.paused) continue;
    seen.paused = paused;
    seen.paused_at = way.pausable[i];
  }
  if (seen.paused.ps > 0) {
    paused_flows_[slot.tag] = seen;
  } else {
    paused_flows_.erase(slot.tag);
  }
}

Observation PacketNetwork::observation() {
  Observation out;
  out.flows = paused_flows_;
  for (const auto& [tag, sum] : engine_.ledgers()) {
    FlowObserved& flow = out.flows[tag];
    flow.retransmitted = sum.retransmitted;
    flow.dropped = sum.dropped;
    flow.marks = sum.marks;
  }
  for (const auto& [link, edge] : engine_.pause_edges())
    out.pauses.push_back({link.first, link.second, edge.pauses, edge.time});
  for (const auto& [cause, hitters] : engine_.pauses().culprits()) {
    for (const auto& [tag, count] : hitters.ranked()) {
      if (out.culprits[cause].size() == kMostCulprits) break;
      out.culprits[cause].push_back(
          {tag, static_cast<double>(count) / static_cast<double>(hitters.total())});
    }
  }
  for (const auto& [tag, watched] : engine_.flow_series()) {
    packet::Series series = watched;
    series.finish(engine_.now());
    FlowSeries& flow = out.flow_series[tag];
    flow.every = series.window();
    for (std::size_t i = 0; i < series.size(); ++i) flow.bytes.push_back(series.sum(i));
  }
  for (const auto& [port, watched] : engine_.watched()) {
    packet::PortSeries series = watched;
    LinkSeries& link = out.series[port];
    series.sent.finish(engine_.now());
    series.queue.finish(engine_.now());
    series.paused.finish(engine_.now());
    link.every = series.queue.window();
    for (std::size_t i = 0; i < series.queue.size(); ++i) {
      link.bytes.push_back(series.sent.sum(i));
      link.queue_mean.push_back(series.queue.mean(i));
      link.queue_most.push_back(series.queue.most(i));
      link.paused.push_back(series.paused.mean(i));
    }
  }
  return out;
}

}  // namespace weft
