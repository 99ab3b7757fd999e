// SPDX-License-Identifier: Apache-2.0
// Senders and receivers of the naive engine.
#include <algorithm>
#include <utility>

#include "tests/packet/reference.hpp"

namespace weft::test {

using packet::kNone;
using packet::Recovery;

void Reference::start(Index f) {
  Flow& flow = flows_[f];
  flow.plan = &plan_.flows[f];
  flow.path = flow.plan->path;
  flow.back = flow.plan->back;
  const packet::FlowSpec& spec = flow.plan->spec;
  const std::int64_t grain = plan_.options.grain;
  flow.packets = static_cast<Index>((spec.bytes + grain - 1) / grain);
  flow.last_bytes = spec.bytes - (std::int64_t{flow.packets} - 1) * grain;
  flow.next_time = flow.progress = now_;
  flow.listed.assign(flow.plan->path_first, false);
  flow.received.assign(flow.packets, false);
  flow.known.assign(flow.packets, false);
  flow.tried.assign(flow.packets, false);
  if (flow.plan->halves) flow.congestion = make_halves(plan_.ports[flow.path.front().port].wire);
  pace(flow);
  if (flow.packets == 0) {
    if (spec.tell_left) outcome_.flows[f].left = now_;
    outcome_.flows[f].finish = now_;
    return;
  }
  if (spec.recovery != Recovery::none && spec.timeout.ps > 0)
    push(now_ + spec.timeout, kEffects, (std::uint64_t{1} << 48) | f, kTimeout, 0, 0, f);
  list(f);
}

// ---- sending

bool Reference::may_send(const Flow& flow) const {
  if (flow.resend.empty() && flow.next == flow.packets) return false;
  if (flow.window == 0) return true;
  Index answered = flow.acked + static_cast<Index>(flow.resend.size());
  for (Index seq = flow.acked; seq < flow.known.size(); ++seq) answered += flow.known[seq] ? 1 : 0;
  return flow.next < answered + flow.window;
}

void Reference::settle_sources(const Flow& flow) {
  for (Index i = 0; i < flow.plan->path_first; ++i) settle(flow.path[i].port);
}

void Reference::list(Index f) {
  Flow& flow = flows_[f];
  for (Index i = 0; i < flow.plan->path_first && may_send(flow); ++i) {
    if (flow.listed[i]) continue;
    flow.listed[i] = true;
    const Index p = flow.path[i].port;
    settle(p);
    Class& line = ports_[p].classes[flow.plan->spec.traffic_class];
    if (flow.next_time > now_) {
      line.paced.insert({flow.next_time, f});
    } else {
      line.flows.push_back(f);
    }
    settle(p);
  }
}

std::optional<Reference::Packet> Reference::next_packet(Index p, Index c) {
  Class& line = ports_[p].classes[c];
  while (!line.paced.empty() && line.paced.begin()->first <= now_) {
    line.flows.push_back(line.paced.begin()->second);
    line.paced.erase(line.paced.begin());
  }
  const auto leave_line = [&](Flow& flow) {
    for (Index i = 0; i < flow.listed.size(); ++i) {
      if (flow.path[i].port == p) flow.listed[i] = false;
    }
  };
  while (!line.flows.empty()) {
    const Index f = line.flows.front();
    Flow& flow = flows_[f];
    line.flows.pop_front();
    if (!may_send(flow)) {
      leave_line(flow);
      continue;
    }
    if (flow.next_time > now_) {
      line.paced.insert({flow.next_time, f});
      continue;
    }
    Packet packet;
    if (flow.resend.empty()) {
      if (flow.next == flow.acked) flow.progress = now_;
      packet.seq = flow.next++;
    } else {
      packet.seq = flow.resend.front();
      flow.resend.pop_front();
      if (packet.seq == flow.acked) flow.head_sent = now_;
    }
    packet.flow = f;
    packet.traffic_class = c;
    packet.sent = packet.may_leave = now_;
    packet.bytes = packet.seq + 1 == flow.packets ? flow.last_bytes : plan_.options.grain;
    if (flow.tried[packet.seq]) outcome_.flows[f].retransmitted += packet.bytes;
    flow.tried[packet.seq] = true;
    packet.charge = charge_of(packet.bytes);
    packet.hop = flow.path.data();
    while (packet.hop->port != p) ++packet.hop;
    outcome_.counters.injected += packet.bytes;
    if (flow.congestion) {
      flow.congestion->on_send(now_, static_cast<std::uint32_t>(packet.bytes));
      pace(flow);
    }
    if (flow.ps_per_byte > 0) {
      const auto size = static_cast<double>(packet.bytes + plan_.options.header);
      flow.next_time = now_ + Time{static_cast<std::int64_t>(flow.ps_per_byte * size)};
    }
    if (!may_send(flow)) {
      leave_line(flow);
    } else if (flow.next_time > now_) {
      line.paced.insert({flow.next_time, f});
    } else {
      line.flows.push_back(f);
    }
    return packet;
  }
  return std::nullopt;
}

void Reference::pace(Flow& flow) {
  Bandwidth rate = flow.plan->spec.cap;
  if (flow.congestion) {
    flow.window = flow.congestion->window();
    const Bandwidth own = flow.congestion->rate(now_);
    if (rate.bps == 0 || own < rate) rate = own;
  }
  flow.ps_per_byte = rate.bps > 0 ? 8e12 / static_cast<double>(rate.bps) : 0;
}

void Reference::told_left(Index f, Time when) {
  if (!flows_[f].plan->spec.tell_left || std::exchange(flows_[f].left, true)) return;
  push(when, kEffects, (std::uint64_t{1} << 49) | f, kLeft, 0, 0, f);
}

// ---- the receiving NIC

bool Reference::receive(Index in, const Packet& packet) {
  const Index f = packet.flow;
  Flow& flow = flows_[f];
  const packet::FlowSpec& spec = flow.plan->spec;
  const auto discard = [&] {
    outcome_.counters.discarded += packet.bytes;
    if (ports_[in].spec.guard == packet::Guard::credit)
      push(now_, kCredits, in, kCreditLeaves, in, packet.traffic_class, packet.charge);
    return false;
  };
  if (packet.marked) {
    flow.echo = true;
    if (spec.cnp_interval.ps > 0 &&
        (flow.last_cnp.ps < 0 || now_ - flow.last_cnp >= spec.cnp_interval)) {
      flow.last_cnp = now_;
      ++outcome_.counters.cnps;
      reply(f, packet::Kind::cnp, 0, 0, Time{0});
    }
  }
  const auto nak = [&](Index beyond) {
    ++outcome_.counters.naks;
    reply(f, packet::Kind::nak, flow.expected, beyond, packet.sent);
  };
  if (spec.recovery == Recovery::none) {
    ++flow.expected;
  } else {
    const bool old = spec.recovery == Recovery::selective ? flow.received[packet.seq]
                                                          : packet.seq < flow.expected;
    if (old) {
      reply(f, packet::Kind::ack, flow.expected, 0, Time{0});
      return discard();
    }
    if (spec.recovery == Recovery::go_back_n) {
      if (packet.seq > flow.expected) {
        if (!std::exchange(flow.nak_sent, true)) nak(0);
        return discard();
      }
      flow.nak_sent = false;
      ++flow.expected;
    } else {
      flow.received[packet.seq] = true;
      while (flow.expected < flow.packets && flow.received[flow.expected]) ++flow.expected;
      if (packet.seq > flow.expected) {
        nak(packet.seq);
        return true;
      }
    }
  }
  if (spec.ack_every == 0) return true;
  if (++flow.since_ack >= spec.ack_every || flow.expected == flow.packets) {
    flow.since_ack = 0;
    reply(f, packet::Kind::ack, flow.expected, 0, packet.sent, std::exchange(flow.echo, false));
  }
  return true;
}

void Reference::reply(Index f, packet::Kind kind, Index seq, Index beyond, Time sent, bool marked) {
  const Flow& flow = flows_[f];
  if (flow.back.empty()) return;
  Packet packet;
  packet.kind = kind;
  packet.flow = f;
  packet.seq = seq;
  packet.beyond = beyond;
  packet.marked = marked;
  packet.sent = sent;
  packet.may_leave = now_;
  packet.charge = charge_of(0);
  packet.hop = flow.back.data();
  if (flow.plan->back_first > 1) packet.hop += choose(packet.hop, flow.plan->back_first, packet);
  settle(packet.hop->port);
  enqueue(packet.hop->port, packet);
}

void Reference::take_in(const Packet& packet) {
  Flow& flow = flows_[packet.flow];
  outcome_.counters.delivered += packet.bytes;
  if (++flow.arrived < flow.packets) return;
  outcome_.flows[packet.flow].finish = now_;
}

// ---- the sending NIC listens

void Reference::hear(const Packet& packet) {
  const Index f = packet.flow;
  Flow& flow = flows_[f];
  settle_sources(flow);
  if (packet.kind == packet::Kind::cnp) {
    if (!flow.congestion) return;
    flow.congestion->on_cnp(now_);
    pace(flow);
    return;
  }
  const Index newly = packet.seq > flow.acked ? packet.seq - flow.acked : 0, next = flow.next;
  bool twice = false;
  flow.acked += newly;
  if (newly > 0) flow.head_sent = flow.acked < flow.searched ? now_ : Time{-1};
  flow.next = std::max(flow.next, flow.acked);
  if (newly > 0) flow.progress = now_;
  if (packet.kind == packet::Kind::nak) {
    if (flow.plan->spec.recovery == Recovery::go_back_n) {
      again(flow.next - flow.acked);
      flow.next = flow.acked;
    } else if (flow.plan->spec.recovery == Recovery::selective) {
      flow.known[packet.beyond] = true;
      flow.progress = now_;
      for (Index seq = std::max(flow.acked, flow.searched); seq < packet.beyond; ++seq) {
        if (flow.known[seq]) continue;
        flow.resend.push_back(seq);
        again(1);
      }
      flow.searched = std::max(flow.searched, packet.beyond);
      twice = flow.head_sent.ps >= 0 && flow.resend.empty() && packet.seq == flow.acked &&
              packet.sent > flow.head_sent;
      if (twice) {
        flow.head_sent = Time{-1};
        flow.resend.push_back(flow.acked);
        again(1);
      }
    }
  }
  if (flow.congestion) {
    if (packet.kind == packet::Kind::ack && packet.sent.ps > 0 && newly > 0)
      flow.congestion->on_ack(
          {now_, now_ - packet.sent, newly, packet.marked, flow.acked, next, {}});
    if (packet.kind == packet::Kind::nak)
      flow.congestion->on_loss({now_, false, twice, flow.acked, next});
    pace(flow);
  }
  list(f);
}

void Reference::again(Index packets) { outcome_.counters.retransmitted += packets; }

void Reference::timeout(Index f) {
  Flow& flow = flows_[f];
  if (flow.acked == flow.packets) return;
  settle_sources(flow);
  const Time limit = flow.plan->spec.timeout;
  Time next = (flow.next > flow.acked ? flow.progress : now_) + limit;
  if (now_ - flow.progress >= limit && flow.next > flow.acked) {
    ++outcome_.counters.timeouts;
    flow.progress = now_;
    const Index sent = flow.next;
    if (flow.plan->spec.recovery == Recovery::go_back_n) {
      again(flow.next - flow.acked);
      flow.next = flow.acked;
    } else {
      flow.resend.clear();
      for (Index seq = flow.acked; seq < flow.next; ++seq) {
        if (!flow.known[seq]) flow.resend.push_back(seq);
      }
      flow.searched = flow.next;
      flow.head_sent = Time{-1};
      again(static_cast<Index>(flow.resend.size()));
    }
    if (flow.congestion) {
      flow.congestion->on_loss({now_, true, false, flow.acked, sent});
      pace(flow);
    }
    next = now_ + limit;
    list(f);
  }
  push(next, kEffects, (std::uint64_t{1} << 48) | f, kTimeout, 0, 0, f);
}

}  // namespace weft::test
