// SPDX-License-Identifier: Apache-2.0
// The shared buffer of a switch, PFC, ECN and credits.
//
//   admit      A packet goes to the reserve of its ingress or to the shared pool while that ingress holds less than its
//              threshold (fixed, or alpha times what is free), else to the headroom, and PAUSE is sent. Without PFC the
//              threshold is that of the egress queue, and what is beyond is lost.
//   release    When the tail has left: headroom first, then the pool. XON at `xon` below the threshold.
//   credit     Bytes come back when the tail has left and the update has travelled.
#include <algorithm>
#include <utility>

#include "models/packet/packet_engine.hpp"
#include "sim/core/check.hpp"
#include "sim/core/hash.hpp"

namespace weft::packet {
// ---- the shared pool

std::int64_t Engine::dynamic_threshold(const Node& node) const {
  if (node.pool == 0) return Time::never().ps;
  const std::int64_t left = std::max<std::int64_t>(0, node.pool - node.used);
  return static_cast<std::int64_t>(node.alpha * static_cast<double>(left));
}

std::int64_t Engine::threshold(const Node& node, const PortSpec& spec) const {
  return spec.xoff > 0 ? spec.xoff : dynamic_threshold(node);
}

// More than may be there without a look at the pool.
bool Engine::admit_beyond(std::uint32_t in, std::uint32_t out, const Packet& packet) {
  const Port& from = ports_[in];
  Node& node = nodes_[from.to];
  Gate& held = gate(in, packet.came);
  const PortSpec& spec = specs_[in];
  const bool lossless = from.guard == Guard::pause && packet.kind == Kind::data;
  const auto fits = [&] {
    const bool room = node.pool == 0 || node.used + packet.charge <= node.pool;
    if (!lossless) {
      const std::int64_t queued = queue(out, packet.traffic_class).charge;
      return room && (packet.kind != Kind::data || queued <= dynamic_threshold(node));
    }
    return held.charge + packet.charge <= spec.reserve ||
           (room && held.charge - spec.reserve + packet.charge <= threshold(node, spec));
  };
  if (std::int64_t{held.charge} + packet.charge > kMostBuffer) return false;
  if (!fits()) {
    advance_all(from.to, now_);
    if (!fits()) {
      if (!lossless || std::int64_t{held.headroom} + packet.charge > spec.headroom) return false;
      held.headroom += packet.charge;
      if (held.paused == 0) {
        held.paused = 1;
        const std::uint32_t cause = blame(in, packet.traffic_class, out, packet);
        deferred_.push_back({in, cause, packet.came, true});
        become_eager(in);
      }
      return true;
    }
  }
  held.charge += packet.charge;
  node.used += packet.charge;
  return true;
}

void Engine::release_shared(Port& port, std::uint32_t shared) {
  if (const std::uint32_t in = freed_by_last(shared); in != kNone) release_above(port, in);
}

// Also right for a link that has headroom in use or was paused.
void Engine::release_above(Port& port, std::uint32_t in) {
  Gate& held = gate(in, port.leaving_class);
  Node& node = nodes_[port.from];
  auto left = static_cast<std::int32_t>(port.leaving_charge);
  const std::int32_t from_headroom = std::min(held.headroom, left);
  held.headroom -= from_headroom;
  left -= from_headroom;
  held.charge -= left;
  node.used -= left;
  if (held.paused != 0 && held.headroom == 0) {
    const PortSpec& spec = specs_[in];
    if (node.pool > 0 && spec.xoff == 0) advance_others(port);
    if (held.paused == 0) return;
    const std::int64_t limit = threshold(node, spec);
    if (held.charge - spec.reserve <= std::max<std::int64_t>(0, limit - spec.xon)) {
      held.paused = 0;
      --node.eager;
      deferred_.push_back({in, kNone, port.leaving_class, false});
    }
  }
}

// A packet that the NIC discards never leaves by a port: its credit goes back at once.
void Engine::give_back_buffer(std::uint32_t in, const Packet& packet) {
  if (ports_[in].guard == Guard::credit) give_credit(in, packet.came, packet.charge, now_);
}

// What has left the switch by all ports until then.
void Engine::advance_all(std::uint32_t n, Time until) {
  const Node& node = nodes_[n];
  for (std::uint32_t i = node.first; i < node.first + node.count; ++i) {
    const std::uint32_t p = node_ports_[i];
    advance(p, until);
    rearm(p);
  }
}

// What has left the switch by its other ports when this one is at the end of its packet. Of this very instant, what is by then.
void Engine::advance_others(const Port& port) {
  const Node& node = nodes_[port.from];
  const Time end = port.busy_until;
  const auto self = static_cast<std::uint32_t>(&port - ports_.data());
  const std::uint32_t before = end < now_ ? self : ended_below_;
  for (std::uint32_t i = node.first; i < node.first + node.count; ++i) {
    const std::uint32_t p = node_ports_[i];
    if (p == self) continue;
    advance(p, p < before ? end : end - Time{1});
    rearm(p);
  }
}

// Somebody waits for the buffer behind the port `in`: ports that may hold its packets tell at once when one leaves.
void Engine::become_eager(std::uint32_t in) {
  Node& node = nodes_[ports_[in].to];
  ++node.eager;
  for (std::uint32_t i = node.first; i < node.first + node.count; ++i) {
    const std::uint32_t p = node_ports_[i];
    advance(p, now_);
    Port& port = ports_[p];
    port.urgent = port.urgent || port.ready != 0 || came_by(port.leaving_ingress) == in;
    rearm(p);
  }
}

// PAUSE and XON leave behind what the reverse port has committed and take effect after the response time. The buffer of the
// packet before them is freed with the end of the frame.
void Engine::send_pauses() {
  for (std::size_t i = 0; i < deferred_.size(); ++i) {
    const Deferred frame = deferred_[i];
    const std::uint32_t back = specs_[frame.port].reverse;
    Port& port = ports_[back];
    advance(back, now_);
    port.busy_until = std::max(port.busy_until, now_) + Time{port.control_time};
    stats_[back].busy += Time{port.control_time};
    ++stats_[back].control_packets;
    ++counters_.control_hops;
    Event event;
    event.when = port.busy_until + specs_[back].delay + specs_[frame.port].response;
    event.order = (std::uint64_t{frame.port} << 8) | frame.traffic_class;
    event.target = frame.port;
    event.kind = frame.pause ? kPause : kResume;
    event.arg = (std::uint64_t{frame.cause} << 8) | frame.traffic_class;
    controls_.push(event);
    rearm(back);
  }
  deferred_.clear();
}

void Engine::hold(std::uint32_t p, std::uint8_t c, bool on, std::uint32_t cause) {
  Port& port = ports_[p];
  advance(p, now_);
  PortStats& stats = stats_[p];
  if (on) {
    port.held |= bit(c);
    ++stats.pauses;
    pauses_.begin(p, p * options_.classes + c, cause, now_);
    if (stats.paused_since.ps < 0) stats.paused_since = now_;
  } else {
    port.held &= static_cast<std::uint8_t>(~bit(c));
    pauses_.end(p, p * options_.classes + c, now_);
    port.busy_until = std::max(port.busy_until, now_);
    if (port.held == 0 && stats.paused_since.ps >= 0) {
      stats.paused += now_ - stats.paused_since;
      stats.paused_since = Time{-1};
    }
    advance(p, now_);
  }
  if (port.watched) port_series_.at(p).paused.hold(now_, port.held != 0 ? 1 : 0);
  rearm(p);
}

void Engine::handle_control(const Event& event) {
  if (event.kind == kTimeout) {
    on_timeout(event);
  } else if (event.kind == kPull) {
    on_pull_due(event);
  } else if (event.kind == kGrant) {
    on_grant(event);
  } else if (event.kind == kLeft) {
    ended_.push_back({event.target, event.arg, now_, true});
  } else {
    hold(event.target, static_cast<std::uint8_t>(event.arg), event.kind == kPause,
         static_cast<std::uint32_t>(event.arg >> 8));
  }
}

void Engine::drop(std::uint32_t p, std::uint32_t k) {
  ++stats_[p].drops;
  if (packets_[k].kind == Kind::data) {
    counters_.dropped += packets_[k].bytes;
    flows_[packets_[k].flow].ledger.dropped += packets_[k].bytes;
    in_network_ -= packets_[k].bytes;
  }
  free_packet(k);
}

// ---- ECN

void Engine::mark(std::uint32_t q, Packet& packet) {
  const EcnSpec& ecn = specs_[q].ecn;
  const auto queued = static_cast<std::int64_t>(queue(q, packet.traffic_class).charge);
  if (queued <= ecn.kmin) return;
  if (ecn.roots && waits_for_credit(q, packet.traffic_class)) return;
  if (queued < ecn.kmax) {
    const double chance = ecn.pmax * static_cast<double>(queued - ecn.kmin) /
                          static_cast<double>(ecn.kmax - ecn.kmin);
    // By what the packet is, not by a stream of numbers: the order of handling does not matter.
    std::uint64_t draw =
        mix64(options_.seed ^ (std::uint64_t{flows_[packet.flow].serial} << 32 | q));
    draw = mix64(draw + packet.seq * kGolden);
    if (static_cast<double>(draw >> 11) * 0x1p-53 >= chance) return;
  }
  packet.flags |= kMarked;
  ++flows_[packet.flow].ledger.marks;
  ++stats_[q].marks;
}

// ---- credits

// For what it sent last, or for what is next: its credit is not back by now, be it known when it will be or not.
bool Engine::waits_for_credit(std::uint32_t p, std::uint8_t c) const {
  const Gate& far = gates_[p * options_.classes + c];
  if (far.waited != 0) return true;
  if (far.starved == 0) return false;
  return (ports_[p].held & bit(c)) != 0 ||
         packets_[queues_[p * options_.classes + c].head].when > now_;
}

void Engine::collect(Gate& gate, Time when) {
  while (gate.returns != kNone && returns_[gate.returns].when <= when) {
    const std::uint32_t r = gate.returns;
    gate.charge += returns_[r].bytes;
    gate.returns = returns_[r].next;
    returns_[r].next = free_return_;
    free_return_ = r;
  }
  if (gate.returns == kNone) gate.returns_tail = kNone;
}

// When so much credit is there, as far as known; Time::never() when nothing on its way suffices.
Time Engine::credit_at(const Gate& gate, std::int64_t needed) const {
  std::int64_t sum = gate.charge;
  for (std::uint32_t r = gate.returns; r != kNone; r = returns_[r].next) {
    sum += returns_[r].bytes;
    if (sum >= needed) return returns_[r].when;
  }
  return Time::never();
}

bool Engine::take_credit(std::uint32_t p, std::uint8_t c, std::uint32_t charge, Time start) {
  Gate& far = gate(p, c);
  const auto needed = static_cast<std::int32_t>(charge);
  const auto take = [&] {
    collect(far, start);
    if (far.charge < needed) return false;
    far.charge -= needed;
    if (far.starved != 0) --nodes_[ports_[p].to].eager;
    far.waited = std::exchange(far.starved, std::uint8_t{0});
    return true;
  };
  if (take()) return true;
  // What the far node has sent until then may not be known yet. Only earlier commits matter, so ports that wait for each
  // other in a ring ask for ever earlier times.
  Port& port = ports_[p];
  advance_all(port.to, start - port.reach - Time{1});
  if (take()) return true;
  far.starved = 1;
  port.held |= bit(c);
  ++stats_[p].stalls;
  feed(p, c);  // before the ports of the far node, which may have this one go on
  become_eager(p);
  return false;
}

// The tail of a packet leaves at `end`; its credit goes back.
void Engine::give_credit(std::uint32_t in, std::uint8_t c, std::uint32_t charge, Time end) {
  Gate& far = gate(in, c);
  const Time when = end + ports_[in].reach;
  std::uint32_t r = free_return_;
  if (r == kNone) {
    r = static_cast<std::uint32_t>(returns_.size());
    returns_.push_back({});
  } else {
    free_return_ = returns_[r].next;
  }
  returns_[r] = {when, charge, kNone};
  if (far.returns == kNone) {
    far.returns = far.returns_tail = r;
  } else if (returns_[far.returns_tail].when <= when) {
    returns_[far.returns_tail].next = r;
    far.returns_tail = r;
  } else {
    std::uint32_t* at = &far.returns;
    while (*at != kNone && returns_[*at].when <= when) at = &returns_[*at].next;
    returns_[r].next = *at;
    *at = r;
  }
  if (far.starved != 0) feed(in, c);
}

// The packet that waits for credit leaves when enough is back, as far as known: what the far node sends next may be back sooner.
void Engine::feed(std::uint32_t p, std::uint8_t c) {
  Packet& packet = packets_[queue(p, c).head];
  const Time when = credit_at(gate(p, c), packet.charge);
  if (when == Time::never()) return;
  packet.when = when;
  ports_[p].held &= static_cast<std::uint8_t>(~bit(c));
  wake(p, std::max(when, ports_[p].busy_until));
}

// ---- deadlock

std::vector<std::uint32_t> Engine::waiting_cycle() const {
  // A port that waits for the buffer behind it waits for the ports of that node that hold its packets and wait themselves.
  std::vector<std::uint8_t> colour(ports_.size(), 0);
  std::vector<std::uint32_t> path;
  const auto waits = [&](std::uint32_t p) { return ports_[p].held != 0 && queued(p) > 0; };
  const std::function<bool(std::uint32_t)> visit = [&](std::uint32_t p) {
    colour[p] = 1;
    path.push_back(p);
    const Node& node = nodes_[ports_[p].to];
    for (std::uint32_t i = node.first; i < node.first + node.count; ++i) {
      const std::uint32_t q = node_ports_[i];
      if (!waits(q) || !holds_packets_of(q, p)) continue;
      if (colour[q] == 1) {
        path.erase(path.begin(), std::ranges::find(path, q));
        return true;
      }
      if (colour[q] == 0 && visit(q)) return true;
    }
    path.pop_back();
    colour[p] = 2;
    return false;
  };
  for (std::uint32_t p = 0; p < ports_.size(); ++p) {
    if (colour[p] == 0 && waits(p) && visit(p)) return path;
  }
  return {};
}

bool Engine::holds_packets_of(std::uint32_t q, std::uint8_t c, std::uint32_t in,
                              std::uint32_t deepest) const {
  for (std::uint32_t k = queues_[q * options_.classes + c].head; k != kNone && deepest > 0;
       k = packets_[k].next, --deepest) {
    if (came_by(packets_[k].ingress) == in) return true;
  }
  return false;
}

bool Engine::holds_packets_of(std::uint32_t q, std::uint32_t in) const {
  for (std::uint8_t c = 0; c < options_.classes; ++c) {
    if (holds_packets_of(q, c, in, kNone)) return true;
  }
  return false;
}

}  // namespace weft::packet
