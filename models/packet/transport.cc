// SPDX-License-Identifier: Apache-2.0
// Senders and receivers: segmentation, pacing, windows, acknowledgements, retransmission.
//
//   none       Reliable connections over a lossless network, and links inside a server: nothing is kept for a second try.
//   go-back-N  The NIC takes packets in order. One NAK per gap; the sender starts again at the first missing packet.
//   selective  The NIC takes packets in any order and reports each beyond a gap; the sender repeats what is missing
//              (Mittal et al., Revisiting Network Support for RDMA, SIGCOMM 2018).
//
// The NIC answers and listens; memory counts what arrives. Control packets travel the fabric in class 0.
#include <algorithm>
#include <utility>

#include "models/packet/bits.hpp"
#include "models/packet/packet_engine.hpp"
#include "sim/core/check.hpp"

namespace weft::packet {

std::uint32_t Engine::take_flow() {
  if (free_flows_.empty()) {
    flows_.emplace_back();
    return static_cast<std::uint32_t>(flows_.size() - 1);
  }
  const std::uint32_t f = free_flows_.back();
  free_flows_.pop_back();
  flows_[f] = Flow{};
  return f;
}

std::uint32_t Engine::start(FlowSpec spec, Time now) {
  come_to(now);
  const std::uint32_t f = take_flow();
  Flow& flow = flows_[f];
  const std::int64_t grain = options_.grain;
  const std::int64_t packets = (spec.bytes + grain - 1) / grain;
  WEFT_CHECK(packets < std::int64_t{kNone}, spec.bytes, grain);
  flow.path = spec.path;
  flow.back = spec.back;
  flow.packets = static_cast<std::uint32_t>(packets);
  flow.last_bytes = static_cast<std::uint32_t>(spec.bytes - (packets - 1) * grain);
  flow.ack_every = spec.ack_every;
  flow.serial = serial_++;
  flow.traffic_class = spec.traffic_class;
  flow.lane = spec.lane != 0 ? spec.lane : spec.traffic_class;
  flow.recovery = spec.recovery;
  flow.in_use = true;
  flow.progress = flow.next_time = now_;
  flow.timeout = spec.timeout;
  flow.cnp_interval = spec.cnp_interval;
  flow.cap = spec.cap;
  flow.most_under_way = spec.window;
  flow.label = spec.label;
  flow.tag = spec.tag;
  flow.account = spec.account;
  flow.congestion = std::move(spec.congestion);
  flow.telemetry = spec.telemetry;
  flow.pulled = spec.pulled > 0 || spec.waits;
  flow.granted = spec.pulled;
  if (spec.watch.ps > 0)
    flow.series = &flow_series_.try_emplace(spec.account, Series(spec.watch)).first->second;
  flow.tell_left = spec.tell_left;
  // Ports that share the packets of one flow must not take them ahead of each other.
  flow.prompt = flow.tell_left || flow.path.count > 1;
  if (flow.prompt) {
    for (std::uint32_t i = 0; i < flow.path.count; ++i)
      ++sources_[ports_[hops_[flow.path.first + i].port].source][flow.lane].prompt;
  }
  if (flow.recovery == Recovery::selective) {
    flow.received.assign(flow.packets / 64 + 1, 0);
    flow.known.assign(flow.packets / 64 + 1, 0);
  }
  pace(flow);
  if (flow.packets == 0) {
    flow.ended = true;
    if (flow.prompt) last_left(f, now_);
    ended_.push_back({f, flow.tag, now_});
    retire(f);
    return f;
  }
  if (flow.recovery != Recovery::none && flow.timeout.ps > 0) {
    Event event;
    event.when = now_ + flow.timeout;
    event.order = (std::uint64_t{1} << 48) | flow.serial;
    event.target = f;
    event.kind = kTimeout;
    event.arg = flow.serial;
    controls_.push(event);
  }
  list(f);
  if (!deferred_.empty()) send_pauses();
  return f;
}

// ---- sending

bool Engine::may_send(const Flow& flow) const {
  if (!flow.in_use || (flow.next == flow.packets && flow.resent == flow.resend.size()))
    return false;
  if (flow.pulled) return flow.used < flow.granted;
  if (flow.window == 0) return true;
  // Under way: neither acknowledged, reported as arrived, nor given up (RFC 6675, "pipe").
  const auto waiting = static_cast<std::uint32_t>(flow.resend.size() - flow.resent);
  const std::uint32_t answered = flow.acked + flow.beyond + waiting;
  return flow.next < answered + flow.window;
}

// What was sent before now was decided by what the flow knew then.
void Engine::catch_up(std::uint32_t f) {
  const Path path = flows_[f].path;
  for (std::uint32_t i = 0; i < path.count; ++i) {
    const std::uint32_t p = hops_[path.first + i].port;
    if (ports_[p].busy_until > now_) continue;
    advance(p, now_);
    rearm(p);
  }
}

// Puts the flow in line at the ports where it starts.
void Engine::list(std::uint32_t f) {
  if (!may_send(flows_[f])) return;
  const Path path = flows_[f].path;
  for (std::uint32_t i = 0; i < path.count; ++i) {
    Flow& flow = flows_[f];
    if ((flow.listed >> i & 1) != 0) continue;
    flow.listed |= std::uint64_t{1} << i;
    const std::uint32_t p = hops_[path.first + i].port;
    Port& port = ports_[p];
    advance(p, now_);
    Ring& ring = sources_[port.source][flow.lane];
    if (flow.next_time > now_) {
      ring.later.push({flow.next_time, f, flow.serial});
    } else {
      ring.flows.push_back(f);
    }
    port.ready |= bit(flow.lane);
    if (port.busy_until < now_) port.busy_until = now_;
    advance(p, now_);
    rearm(p);
  }
}

// The last packet of the flow has been committed for the first time.
void Engine::last_left(std::uint32_t f, Time when) {
  Flow& flow = flows_[f];
  flow.prompt = false;
  for (std::uint32_t i = 0; i < flow.path.count; ++i)
    --sources_[ports_[hops_[flow.path.first + i].port].source][flow.lane].prompt;
  if (!flow.tell_left) return;
  Event event;
  event.when = when;
  event.order = (std::uint64_t{1} << 49) | flow.serial;
  event.target = f;
  event.kind = kLeft;
  event.arg = flow.tag;
  controls_.push(event);
}

void Engine::unlist(std::uint32_t f, std::uint32_t p) {
  Flow& flow = flows_[f];
  for (std::uint32_t i = 0; i < flow.path.count; ++i) {
    if (hops_[flow.path.first + i].port == p) flow.listed &= ~(std::uint64_t{1} << i);
  }
}

Time Engine::next_send(std::uint32_t p, std::uint8_t c) const {
  const Ring& ring = sources_[ports_[p].source][c];
  if (ring.head < ring.flows.size()) return Time{0};
  return ring.later.empty() ? Time::never() : ring.later.top().when;
}

std::uint32_t Engine::next_packet(std::uint32_t p, std::uint8_t c, Time start) {
  Ring& ring = sources_[ports_[p].source][c];
  while (!ring.later.empty() && ring.later.top().when <= start) {
    ring.flows.push_back(ring.later.top().flow);
    ring.later.pop();
  }
  while (ring.head < ring.flows.size()) {
    const std::uint32_t f = ring.flows[ring.head];
    Flow& flow = flows_[f];
    const auto leave = [&] {
      if (++ring.head == ring.flows.size()) {
        ring.flows.clear();
        ring.head = 0;
      } else if (ring.head > 1024 && ring.head * 2 > ring.flows.size()) {
        ring.flows.erase(ring.flows.begin(),
                         ring.flows.begin() + static_cast<std::ptrdiff_t>(ring.head));
        ring.head = 0;
      }
    };
    if (!may_send(flow)) {
      unlist(f, p);
      leave();
      continue;
    }
    if (flow.next_time > start) {
      ring.later.push({flow.next_time, f, flow.serial});
      leave();
      continue;
    }
    std::uint32_t seq = 0;
    bool again = true;
    if (flow.resent < flow.resend.size()) {
      seq = flow.resend[flow.resent++];
      if (seq == flow.acked) flow.head_sent = start;
      if (flow.resent == flow.resend.size()) {
        flow.resend.clear();
        flow.resent = 0;
      }
    } else {
      if (flow.next == flow.acked) flow.progress = start;  // nothing was on its way
      seq = flow.next++;
      again = seq < flow.tried;
      flow.tried = std::max(flow.tried, flow.next);
    }
    const std::uint32_t k = packets_.take();
    Packet& packet = packets_[k];
    packet.when = packet.sent = start;
    packet.next = kNone;
    packet.flow = f;
    packet.seq = seq;
    packet.hop = flow.path.first;
    while (hops_[packet.hop].port != p) ++packet.hop;
    packet.ingress = kNone;
    packet.lag = 0;
    packet.bytes = seq + 1 == flow.packets ? flow.last_bytes : options_.grain;
    packet.charge = charge_of(packet.bytes);
    packet.kind = Kind::data;
    packet.traffic_class = packet.came = c;
    packet.flags = seq + 1 == flow.packets ? kLast : 0;
    if (options_.spread == Spread::flowlet && start - flow.last_sent > options_.flowlet_gap)
      ++flow.turn;
    packet.turn = flow.turn;
    packet.telemetry = flow.telemetry ? telemetry_.take() : kNone;
    ++flow.alive;
    ++flow.used;
    flow.last_sent = start;
    counters_.injected += packet.bytes;
    if (again) flow.ledger.retransmitted += packet.bytes;
    in_network_ += packet.bytes;
    if (flow.congestion) {
      flow.congestion->on_send(start, packet.bytes);
      pace_at(flow, start);
    }
    if (flow.ps_per_byte > 0) {
      const Time gap{static_cast<std::int64_t>(
          flow.ps_per_byte * static_cast<double>(packet.bytes + options_.header))};
      // A member of a collective makes up for a turn in which the port served another flow of it.
      const Time from = flow.collective == kNone ? start : std::max(flow.next_time, start - gap);
      flow.next_time = from + gap;
    }
    if (!may_send(flow)) {
      unlist(f, p);
      leave();
    } else if (flow.next_time > start) {
      ring.later.push({flow.next_time, f, flow.serial});
      leave();
    } else if (ring.head + 1 < ring.flows.size()) {
      ring.flows.push_back(f);
      leave();
    }
    return k;
  }
  return kNone;
}

void Engine::pace_at(Flow& flow, Time now) {
  Bandwidth rate = flow.cap;
  flow.window = flow.most_under_way;
  if (flow.congestion) {
    const std::uint32_t window = flow.congestion->window();
    if (window > 0 && (flow.window == 0 || window < flow.window))
      flow.window = std::max(window, flow.ack_every);  // what is acknowledged together fits
    const Bandwidth own = flow.congestion->rate(now);
    if (rate.bps == 0 || own < rate) rate = own;
  }
  flow.ps_per_byte = rate.bps > 0 ? 8e12 / static_cast<double>(rate.bps) : 0;
}

void Engine::pace(Flow& flow) { pace_at(flow, now_); }

// ---- the receiving NIC

bool Engine::receive(std::uint32_t in, std::uint32_t k) {
  const Packet packet = packets_[k];  // a copy: replies may move the slab
  if (packet.kind == Kind::trimmed) {
    receive_trimmed(in, k);
    return false;
  }
  if (packet.kind != Kind::data) return true;
  const std::uint32_t f = packet.flow;
  Flow& flow = flows_[f];
  const auto discard = [&](std::uint32_t ack) {
    counters_.discarded += packet.bytes;
    in_network_ -= packet.bytes;
    give_back_buffer(in, packet);
    if (ack != kNone) reply(f, Kind::ack, ack, 0, Time{0});
    free_packet(k);
    return false;
  };
  if (flow.pulled) pull_for(f, in);
  if ((packet.flags & kMarked) != 0) {
    flow.echo = kMarked;
    if (flow.cnp_interval.ps > 0 &&
        (flow.last_cnp.ps < 0 || now_ - flow.last_cnp >= flow.cnp_interval)) {
      flow.last_cnp = now_;
      ++counters_.cnps;
      reply(f, Kind::cnp, 0, 0, Time{0});
    }
  }
  switch (flow.recovery) {
    case Recovery::none:
      ++flow.expected;
      break;
    case Recovery::go_back_n:
      if (packet.seq < flow.expected) return discard(flow.expected);
      if (packet.seq > flow.expected) {
        if (!flow.nak_sent) {
          flow.nak_sent = true;
          ++counters_.naks;
          reply(f, Kind::nak, flow.expected, 0, packet.sent);
        }
        return discard(kNone);
      }
      flow.nak_sent = false;
      ++flow.expected;
      break;
    case Recovery::selective:
      if (has(flow.received, packet.seq)) return discard(flow.expected);
      set(flow.received, packet.seq);
      while (flow.expected < flow.packets && has(flow.received, flow.expected)) ++flow.expected;
      if (packet.seq > flow.expected && !flow.pulled) {
        ++counters_.naks;
        reply(f, Kind::nak, flow.expected, packet.seq, packet.sent);
        return true;
      }
      break;
  }
  if (flow.ack_every == 0) return true;
  if (++flow.since_ack >= flow.ack_every || flow.expected == flow.packets) {
    flow.since_ack = 0;
    const std::uint8_t flags = std::exchange(flow.echo, 0);
    const std::uint32_t telemetry = std::exchange(packets_[k].telemetry, kNone);
    reply(f, Kind::ack, flow.expected, 0, packet.sent, flags, telemetry);
  }
  return true;
}

void Engine::reply(std::uint32_t f, Kind kind, std::uint32_t seq, std::uint32_t beyond, Time sent,
                   std::uint8_t flags, std::uint32_t telemetry) {
  Flow& flow = flows_[f];
  if (flow.back.count == 0) {
    telemetry_.give_back(telemetry);
    return;
  }
  const std::uint32_t k = packets_.take();
  Packet& packet = packets_[k];
  packet = Packet{};
  packet.when = now_;
  packet.sent = sent;
  packet.next = kNone;
  packet.flow = f;
  packet.seq = seq;
  packet.ingress = kNone;
  packet.bytes = beyond;
  packet.charge = charge_of(0);
  packet.kind = kind;
  packet.flags = flags;
  packet.telemetry = telemetry;
  packet.hop = flow.back.first;
  if (flow.back.count > 1) packet.hop += choose(&hops_[flow.back.first], flow.back.count, packet);
  ++flow.alive;
  const std::uint32_t q = hops_[packet.hop].port;
  advance(q, now_);
  if (ports_[q].down == kCut) return drop(q, k);
  enqueue(q, k);
}

void Engine::take_in(std::uint32_t k) {
  const Packet& packet = packets_[k];
  const std::uint32_t f = packet.flow;
  Flow& flow = flows_[f];
  if (flow.collective != kNone) return take_in_part(k);
  counters_.delivered += packet.bytes;
  in_network_ -= packet.bytes;
  if (flow.series != nullptr) flow.series->add(now_, packet.bytes);
  if (++flow.arrived == flow.packets) {
    flow.ended = true;
    ended_.push_back({f, flow.tag, now_});
  }
  free_packet(k);
}

// ---- the sending NIC listens

void Engine::hear(std::uint32_t k) {
  const Packet packet = packets_[k];
  const std::uint32_t f = packet.flow;
  catch_up(f);
  Flow& flow = flows_[f];
  if (packet.kind == Kind::cnp) {
    if (flow.congestion) {
      flow.congestion->on_cnp(now_);
      pace(flow);
    }
  } else if (packet.kind == Kind::pull) {
    hear_pull(f);
  } else if (packet.kind == Kind::trimmed) {
    hear_trimmed(f, packet.bytes);
  } else {
    const std::uint32_t newly = packet.seq > flow.acked ? packet.seq - flow.acked : 0;
    const std::uint32_t next = flow.next;
    for (std::uint32_t seq = flow.acked; flow.beyond > 0 && seq < flow.acked + newly; ++seq) {
      if (has(flow.known, seq)) --flow.beyond;
    }
    flow.acked += newly;
    // The next gap has been sent again by now, or is about to be.
    if (newly > 0) flow.head_sent = flow.acked < flow.searched ? now_ : Time{-1};
    flow.next = std::max(flow.next, flow.acked);
    if (newly > 0) flow.progress = now_;
    const bool twice = packet.kind == Kind::nak && lost(f, packet);
    if (flow.congestion) {
      if (packet.kind == Kind::ack && packet.sent.ps > 0 && newly > 0)
        flow.congestion->on_ack({now_, now_ - packet.sent, newly, (packet.flags & kMarked) != 0,
                                 flow.acked, next, telemetry_.hops(packet.telemetry)});
      if (packet.kind == Kind::nak)
        flow.congestion->on_loss({now_, false, twice, flow.acked, next});
      pace(flow);
    }
    list(f);
  }
  free_packet(k);
}

// ---- ends

void Engine::free_packet(std::uint32_t k) {
  const std::uint32_t f = packets_[k].flow;
  telemetry_.give_back(packets_[k].telemetry);
  packets_.give_back(k);
  if (--flows_[f].alive == 0) retire(f);
}

// Forgets a flow of which nothing is left, neither at its ends nor on the way.
void Engine::retire(std::uint32_t f) {
  Flow& flow = flows_[f];
  if (!flow.in_use || !flow.ended || flow.alive > 0 || flow.listed != 0) return;
  if (flow.recovery != Recovery::none && flow.acked < flow.packets) return;
  flow.in_use = false;
  book(flow);
  flow.congestion.reset();
  free_flows_.push_back(f);
}

}  // namespace weft::packet
