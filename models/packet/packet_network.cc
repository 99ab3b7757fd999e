// SPDX-License-Identifier: Apache-2.0
#include "models/packet/packet_network.hpp"

#include <algorithm>
#include <set>

#include <fmt/format.h>

#include "sim/core/check.hpp"
#include "sim/core/diagnostics.hpp"
#include "sim/core/hash.hpp"
#include "sim/run/packet_check.hpp"

namespace weft {
namespace {

using packet::kNone;

// Alarms between two looks at the caller (progress, interrupts).
constexpr std::uint64_t kAlarmsPerLook = 1 << 20;

std::int64_t header_of(const Fabric& fabric) {
  for (const NodeId nic : fabric.nics()) {
    for (const LinkId l : fabric.out_links(nic)) {
      const Link& link = fabric.link(l);
      if (link.tier == Tier::access) return fabric.laws()[link.law].overhead.count;
    }
  }
  return 0;
}

bool leaves_server(const Fabric& fabric, const Link& link) {
  const Node &from = fabric.node(link.from), &to = fabric.node(link.to);
  return !from.server.valid() || !to.server.valid() || from.server != to.server;
}

// The virtual lanes of the network, or the most ports that a NIC has, as far as there are classes for them.
std::uint8_t lanes_of(const Fabric& fabric, std::uint8_t traffic_classes) {
  std::size_t most = uses_lanes(fabric.routing()) ? kDragonflyLanes : 1;
  for (const NodeId nic : fabric.nics()) {
    most = std::max<std::size_t>(most, std::ranges::count_if(fabric.out_links(nic), [&](LinkId l) {
                                   return leaves_server(fabric, fabric.link(l));
                                 }));
  }
  return static_cast<std::uint8_t>(
      std::min<std::size_t>(most, static_cast<std::size_t>(kMostClasses) / traffic_classes));
}

}  // namespace

packet::EngineOptions PacketNetwork::engine_options(const NetworkOptions& given) {
  const Fabric& fabric = *given.fabric;
  const PacketSpec& spec = *given.packet;
  packet::EngineOptions options;
  const std::uint8_t lanes = lanes_of(fabric, given.traffic_classes);
  options.classes = lanes * given.traffic_classes + 1U;
  for (std::size_t c = 0; c < options.classes - 1; ++c) {
    const std::size_t own = c % given.traffic_classes;
    options.weights.push_back(
        own < spec.weights.size() ? static_cast<std::uint32_t>(spec.weights[own]) : 1);
  }
  options.stride = given.traffic_classes;
  options.grain = static_cast<std::uint32_t>(packet_grain(fabric, spec));
  options.header = static_cast<std::uint32_t>(header_of(fabric));
  options.cell = static_cast<std::uint32_t>(spec.cell.count);
  options.flowlet_gap = spec.flowlet_gap;
  options.seed = given.seed;
  switch (fabric.routing()) {
    case Routing::spray:
    case Routing::minimal:
    case Routing::valiant:
    case Routing::ugal:
      options.spread = packet::Spread::spray;
      break;
    case Routing::flowlet:
      options.spread = packet::Spread::flowlet;
      break;
    default:
      options.spread = packet::Spread::backlog;  // also the planes inside a server
  }
  return options;
}

PacketNetwork::PacketNetwork(const NetworkOptions& options)
    : fabric_(*options.fabric),
      spec_(*options.packet),
      cuts_(options.cuts),
      uses_lanes_(uses_lanes(fabric_.routing())),
      traffic_classes_(options.traffic_classes),
      lanes_(lanes_of(fabric_, options.traffic_classes)),
      grain_(packet_grain(fabric_, spec_)),
      header_(header_of(fabric_)),
      engine_(engine_options(options)) {
  setting("grain", to_text(Bytes{grain_}), spec_.grain ? "given" : "MTU of the NICs");
  choose_congestion_control();
  build(options);
}

void PacketNetwork::setting(std::string name, std::string value, std::string source) {
  for (const Setting& known : settings_) {
    if (known.name == name && known.value == value) return;
  }
  settings_.push_back({std::move(name), std::move(value), std::move(source)});
}

// ---- ways

bool PacketNetwork::crosses_network(LinkId id) const {
  return leaves_server(fabric_, fabric_.link(id));
}

// Whether what comes by this link is received there: the NIC at the end of the way of data.
bool PacketNetwork::answers(LinkId l, Bound bound) const {
  return bound == Bound::out && crosses_network(l) &&
         fabric_.node(fabric_.link(l).to).kind == NodeKind::nic;
}

// Records of a graph of links from the node where it begins: a block per node, in order of distance.
packet::Path PacketNetwork::add_path(const std::vector<LinkId>& links, Bound bound) {
  std::map<std::uint32_t, std::vector<LinkId>> out;
  std::set<std::uint32_t> heads;
  for (const LinkId l : links) {
    out[fabric_.link(l).from.v].push_back(l);
    heads.insert(fabric_.link(l).to.v);
  }
  // A way that passes a node twice is a chain: its order is that of the links.
  bool chain = true;
  for (std::size_t i = 0; i + 1 < links.size(); ++i)
    chain = chain && fabric_.link(links[i]).to == fabric_.link(links[i + 1]).from;
  std::vector<packet::PathHop> records;
  if (chain) {
    for (std::uint32_t i = 0; i < links.size(); ++i)
      records.push_back({links[i].v, i + 1, static_cast<std::uint16_t>(i + 1 < links.size()),
                         answers(links[i], bound)});
    return engine_.add_path(std::move(records), 1);
  }
  std::vector<std::uint32_t> begins;
  for (const auto& [node, unused] : out) {
    if (!heads.contains(node)) begins.push_back(node);
  }
  if (begins.size() != 1) {
    throw LimitReached(
        "not yet: several senders in one flow at packet level; use an algorithm of weft's own, "
        "expanded");
  }
  std::map<std::uint32_t, std::uint32_t> block;  // node -> first record
  std::vector<std::uint32_t> order = begins;
  std::uint32_t size = 0;
  for (std::size_t i = 0; i < order.size(); ++i) {
    if (block.contains(order[i]) || !out.contains(order[i])) continue;
    block[order[i]] = size;
    size += static_cast<std::uint32_t>(out[order[i]].size());
    for (const LinkId l : out[order[i]]) order.push_back(fabric_.link(l).to.v);
  }
  records.resize(size);
  for (const auto& [node, first] : block) {
    for (std::uint32_t i = 0; i < out[node].size(); ++i) {
      const LinkId l = out[node][i];
      const std::uint32_t to = fabric_.link(l).to.v;
      packet::PathHop& record = records[first + i];
      record.port = l.v;
      record.transport = answers(l, bound);
      if (const auto next = block.find(to); next != block.end()) {
        record.next = next->second;
        record.count = static_cast<std::uint16_t>(out[to].size());
      }
    }
  }
  return engine_.add_path(std::move(records),
                          static_cast<std::uint32_t>(out[begins.front()].size()));
}

// Which port of its NIC this is.
std::uint8_t PacketNetwork::lane_of(LinkId out_of_the_nic) const {
  std::uint8_t port = 0;
  for (const LinkId other : fabric_.out_links(fabric_.link(out_of_the_nic).from)) {
    if (other == out_of_the_nic) break;
    if (crosses_network(other)) ++port;
  }
  return lanes_ > 1 ? static_cast<std::uint8_t>(port % lanes_) : 0;
}

PacketNetwork::Way PacketNetwork::make_way(std::span<const Share> shares) {
  Way way;
  std::vector<LinkId> links, back;
  for (const Share& share : shares) {
    if (share.resource < fabric_.link_count()) links.emplace_back(share.resource);
  }
  for (const LinkId l : links) {
    if (!crosses_network(l)) continue;
    const Link& link = fabric_.link(l);
    if (way.line_rate.bps == 0) {
      way.line_rate = Bandwidth{engine_.spec(l.v).wire};
      way.nic = link.from.v;
      way.lane = lane_of(l);
    }
    back.push_back(link.reverse);
    way.lossy = way.lossy || link.link_class == LinkClass::ethernet;
  }
  for (const LinkId l : links) {
    if (engine_.spec(l.v).guard == packet::Guard::pause) way.pausable.push_back(l.v);
  }
  way.transport = !back.empty();
  const auto between_switches = [&](LinkId l) {
    return fabric_.node(fabric_.link(l).from).kind == NodeKind::network_switch &&
           fabric_.node(fabric_.link(l).to).kind == NodeKind::network_switch;
  };
  const bool laned = uses_lanes_ && std::ranges::any_of(links, between_switches);
  way.path =
      laned ? add_lane_path(links, fabric_.routing(), Bound::out) : add_path(links, Bound::out);
  way.round_trip = round_trip_of(way.path);
  if (way.transport) {
    std::ranges::reverse(back);
    way.back =
        laned ? add_lane_path(back, Routing::minimal, Bound::back) : add_path(back, Bound::back);
  }
  return way;
}

PacketNetwork::Way& PacketNetwork::way_of(const FlowRequest& request) {
  const auto [found, fresh] = ways_.try_emplace(request.way);
  if (fresh) found->second = make_way(request.shares);
  return found->second;
}

// ---- flows

FlowId PacketNetwork::start(const FlowRequest& request, Time now) {
  std::uint32_t id = 0;
  if (free_slots_.empty()) {
    id = static_cast<std::uint32_t>(slots_.size());
    slots_.emplace_back();
  } else {
    id = free_slots_.back();
    free_slots_.pop_back();
  }
  Slot& slot = slots_[id];
  slot.connection = slot.engine_flow = kNone;
  slot.tag = request.tag;
  slot.left_tag = request.left_tag.value_or(0);
  slot.extra = request.latency > request.wire ? request.latency - request.wire : Time{0};
  if (request.shares.empty() || request.size.count <= 0) {
    if (request.left_tag) late_.push({now, order_++, *request.left_tag, id});
    late_.push({now + request.latency, order_++, request.tag, id});
    free_slots_.push_back(id);
    return FlowId{id};
  }
  slot.way = nullptr;
  if (request.tree != nullptr) {
    start_tree(request, id, now);
    return FlowId{id};
  }
  Way& way = way_of(request);
  packet::FlowSpec flow;
  flow.bytes = request.size.count;
  flow.path = way.path;
  flow.cap = request.cap;
  flow.label = mix64(request.way + 1);
  flow.tag = id;
  flow.account = request.tag;
  if (!watched_flows_.empty()) {
    const auto watched = watched_flows_.find(request.tag);
    if (watched != watched_flows_.end()) flow.watch = watched->second;
  }
  slot.way = &way;
  flow.traffic_class = slot.traffic_class = request.traffic_class;
  flow.lane = static_cast<std::uint8_t>(request.traffic_class + way.lane * traffic_classes_);
  remember_pauses(slot);
  flow.tell_left = request.left_tag.has_value();
  if (way.transport) {
    flow.back = way.back;
    flow.ack_every = static_cast<std::uint32_t>(spec_.ack_every);
    const bool lossy = way.lossy;
    switch (spec_.recovery) {
      case LossRecovery::automatic:
        // Packets that overtake each other keep go-back-N from getting on.
        if (cuts_ || (lossy && !spec_.pfc.enabled)) {
          flow.recovery = uses_lanes_ ? packet::Recovery::selective : packet::Recovery::go_back_n;
        }
        break;
      case LossRecovery::none:
        break;
      case LossRecovery::go_back_n:
        flow.recovery = packet::Recovery::go_back_n;
        break;
      case LossRecovery::selective:
        flow.recovery = packet::Recovery::selective;
        break;
    }
    flow.timeout = spec_.timeout;
    if (spec_.window) {
      // One that is smaller than what is acknowledged together would never move.
      const std::int64_t least = std::max<std::int64_t>(1, spec_.ack_every);
      flow.window = static_cast<std::uint32_t>(
          std::clamp<std::int64_t>(spec_.window->count / grain_, least, packet::kNone / 2));
    }
    slot.connection = control(flow, way, now);
  } else {
    flow.ack_every = 0;
  }
  slot.engine_flow = engine_.start(std::move(flow), now);
  return FlowId{id};
}

// Takes over what has ended in the engine.
void PacketNetwork::gather() {
  for (const packet::FlowEnd& end : engine_.ended()) {
    const auto id = static_cast<std::uint32_t>(end.tag);
    Slot& slot = slots_[id];
    if (end.left) {
      done_.push_back({FlowId{id}, slot.left_tag, end.when});
      continue;
    }
    if (slot.connection != kNone) connections_[slot.connection].busy = false;
    note_pauses(slot);
    slot.engine_flow = kNone;
    if (slot.extra.ps > 0) {
      late_.push({end.when + slot.extra, order_++, slot.tag, id});
    } else {
      done_.push_back({FlowId{id}, slot.tag, end.when});
    }
    free_slots_.push_back(id);
  }
  if (!engine_.ended().empty()) engine_.check_conservation();
  if (engine_.hopeless()) {
    throw LimitReached(
        fmt::format("all that some flow sends is lost, hundreds of times in a row, in front of {}: "
                    "give a larger "
                    "\"buffer\", \"xoff\" or \"headroom\" there, or a smaller \"grain\"",
                    most_lost_at()));
  }
  engine_.ended().clear();
}

Time PacketNetwork::run_until(Time horizon) {
  while (true) {
    gather();
    if (!done_.empty()) return done_.front().when;
    const Time late = late_.empty() ? Time::never() : late_.top().when;
    const Time next = engine_.next_event();
    if (std::min(late, next) > horizon || std::min(late, next) == Time::never() || late < next)
      return std::min(late, next);
    const std::uint64_t before = engine_.counters().alarms;
    engine_.run(std::min(horizon, late), kAlarmsPerLook);
    if (engine_.ended().empty() && engine_.counters().alarms - before >= kAlarmsPerLook)
      return engine_.now();
  }
}

Time PacketNetwork::next_event() {
  gather();
  if (!done_.empty()) return done_.front().when;
  return std::min(late_.empty() ? Time::never() : late_.top().when, engine_.next_event());
}

void PacketNetwork::advance(Time until, std::vector<FlowDone>& done) {
  while (engine_.ended().empty() && done_.empty() && engine_.next_event() <= until)
    engine_.run(until, kAlarmsPerLook);
  gather();
  for (const FlowDone& flow : done_) done.push_back(flow);
  done_.clear();
  while (!late_.empty() && late_.top().when <= until) {
    done.push_back({FlowId{late_.top().flow}, late_.top().tag, late_.top().when});
    late_.pop();
  }
}

void PacketNetwork::set_capacity(std::uint32_t resource, Bandwidth capacity, Time now) {
  if (resource >= fabric_.link_count()) return;
  if (cuts_ && capacity.bps == 0) return engine_.cut(resource, now);
  const Link& link = fabric_.link(LinkId{resource});
  const packet::PortSpec whole = port_spec(LinkId{resource});
  engine_.set_wire(
      resource,
      scaled(whole.wire, static_cast<double>(capacity.bps) / static_cast<double>(link.rate.bps)),
      now);
}

void PacketNetwork::reroute(FlowId id, const FlowRequest& request, Time now) {
  Slot& slot = slots_[id.v];
  if (slot.engine_flow == kNone || request.shares.empty()) return;
  const Way& way = way_of(request);
  if (!engine_.reroute(slot.engine_flow, way.path, way.back, now)) return;
  slot.way = &way;
  remember_pauses(slot);
}

// ---- what happened

double PacketNetwork::carried_bytes(std::uint32_t resource) const {
  return resource < engine_.port_count() ? static_cast<double>(engine_.stats(resource).bytes) : 0;
}

Time PacketNetwork::busy_time(std::uint32_t resource) const {
  return resource < engine_.port_count() ? engine_.stats(resource).busy : Time{0};
}

Time PacketNetwork::paused_of(const packet::PortStats& stats) const {
  return stats.paused + (stats.paused_since.ps < 0 ? Time{0} : engine_.now() - stats.paused_since);
}

const NetworkCounters& PacketNetwork::counters() const {
  const packet::EngineCounters& counted = engine_.counters();
  counters_.events = counted.alarms + counted.controls;
  counters_.packet_hops = counted.hops;
  counters_.control_hops = counted.control_hops;
  counters_.retransmitted = counted.retransmitted;
  counters_.timeouts = counted.timeouts;
  counters_.dropped_bytes = counted.dropped;
  counters_.dropped = counters_.marks = counters_.pauses = counters_.stalls = 0;
  counters_.paused = Time{0};
  for (std::uint32_t p = 0; p < engine_.port_count(); ++p) {
    const packet::PortStats& stats = engine_.stats(p);
    counters_.dropped += stats.drops;
    counters_.marks += stats.marks;
    counters_.pauses += stats.pauses;
    counters_.stalls += stats.stalls;
    counters_.paused += paused_of(stats);
  }
  return counters_;
}

std::optional<QueueReport> PacketNetwork::queue_report(std::uint32_t resource) const {
  if (resource >= engine_.port_count()) return std::nullopt;
  const packet::PortStats& stats = engine_.stats(resource);
  return QueueReport{Bytes{stats.peak_queue}, paused_of(stats), stats.marks, stats.drops};
}

std::string PacketNetwork::most_lost_at() const {
  std::uint32_t most = 0;
  for (std::uint32_t p = 1; p < engine_.port_count(); ++p) {
    if (engine_.stats(p).drops > engine_.stats(most).drops) most = p;
  }
  return fabric_.name(LinkId{most});
}

std::string PacketNetwork::why_stuck() const {
  const std::vector<std::uint32_t> cycle = engine_.waiting_cycle();
  if (cycle.empty()) {
    const std::uint64_t dropped = counters().dropped;
    if (dropped == 0) return {};
    return fmt::format(
        "{} packets were lost, most of them in front of {}, and are not sent again: give a larger "
        "\"buffer\", \"xoff\" or \"headroom\", or a \"recovery\"",
        dropped, most_lost_at());
  }
  std::string text = "a deadlock: each waits for buffer that the next one holds:";
  for (const std::uint32_t p : cycle) {
    text +=
        fmt::format(" {} ({} queued)", fabric_.name(LinkId{p}), to_text(Bytes{engine_.queued(p)}));
  }
  return text;
}

}  // namespace weft
