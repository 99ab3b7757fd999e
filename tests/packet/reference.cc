// SPDX-License-Identifier: Apache-2.0
#include "tests/packet/reference.hpp"

#include <algorithm>
#include <utility>

#include "sim/core/check.hpp"
#include "sim/core/hash.hpp"

namespace weft::test {

using packet::Guard;
using packet::kControlBytes;
using packet::kNone;
using packet::PathHop;

namespace {

constexpr std::uint64_t kGolden = 0x9E37'79B9'7F4A'7C15ULL;
constexpr std::uint64_t kMostEvents = 3'000'000;

}  // namespace

Reference::Reference(const Plan& plan) : plan_(plan) {
  for (const packet::NodeSpec& spec : plan.nodes) nodes_.push_back({spec, 0});
  for (const packet::PortSpec& spec : plan.ports) {
    Port& port = ports_.emplace_back();
    port.spec = spec;
    port.down = spec.wire.bps == 0;
    port.classes.resize(plan.options.classes);
    for (Class& each : port.classes) each.credit = spec.credit;
  }
  flows_.resize(plan.flows.size());
  outcome_.flows.resize(plan.flows.size());
}

Outcome Reference::run() {
  std::size_t f = 0, c = 0;
  while (f < plan_.flows.size() || c < plan_.changes.size()) {
    const Time flow = f < plan_.flows.size() ? plan_.flows[f].start : Time::never();
    const Time change_at = c < plan_.changes.size() ? plan_.changes[c].when : Time::never();
    run_until(std::min(flow, change_at));
    if (change_at <= flow) {
      change(plan_.changes[c++]);
    } else {
      start(static_cast<Index>(f++));
    }
    send_frames();
  }
  run_until(Time::never());
  for (Port& port : ports_) outcome_.ports.push_back(port.stats);
  return std::move(outcome_);
}

void Reference::push(Time when, Rank rank, std::uint64_t order, Kind kind, Index port,
                     Index traffic_class, std::int64_t amount, const Packet* packet) {
  events_.push({when, rank, order, stamp_++, kind, port, traffic_class, amount,
                packet != nullptr ? *packet : Packet{}});
  WEFT_CHECK(stamp_ < kMostEvents, stamp_);
}

void Reference::run_until(Time until) {
  while (!events_.empty() && events_.top().when <= until) {
    const Event event = events_.top();
    events_.pop();
    now_ = event.when;
    handle(event);
    send_frames();
  }
  if (until < Time::never()) now_ = std::max(now_, until);
}

void Reference::handle(const Event& event) {
  Port& port = ports_[std::min<std::size_t>(event.port, ports_.size() - 1)];
  switch (event.kind) {
    case kCreditLeaves:
      push(now_ + port.spec.delay + port.spec.processing, kCredits, event.port, kCredit, event.port,
           event.traffic_class, event.amount);
      break;
    case kCredit: {
      Class& gate = port.classes[event.traffic_class];
      gate.credit += event.amount;
      if (gate.held && gate.queue.front().charge <= gate.credit) gate.held = false;
      push(now_, kPorts, event.port, kTick, event.port, 0);
      break;
    }
    case kControl: {
      settle(event.port);
      Class& gate = port.classes[event.traffic_class];
      const auto paused = [&] {
        return std::ranges::any_of(port.classes, [](const Class& each) { return each.held; });
      };
      gate.held = event.amount != 0;
      if (gate.held) {
        ++port.stats.pauses;
        if (port.stats.paused_since.ps < 0) port.stats.paused_since = now_;
      } else if (!paused() && port.stats.paused_since.ps >= 0) {
        port.stats.paused += now_ - port.stats.paused_since;
        port.stats.paused_since = Time{-1};
      }
      settle(event.port);
      break;
    }
    case kLeft:
      outcome_.flows[static_cast<Index>(event.amount)].left = now_;
      break;
    case kTimeout:
      timeout(static_cast<Index>(event.amount));
      break;
    case kTick:
      settle(event.port);
      break;
    case kArrival:
      arrive(event.port, event.packet);
      break;
  }
}

// ---- ports

// Ends what has left and begins what may leave, now.
void Reference::settle(Index p) {
  Port& port = ports_[p];
  if (port.busy_until > now_) return;
  if (port.sending) end(p);
  while (!port.down && port.busy_until <= now_ && begin(p)) {
  }
}

// True when it should be tried again.
bool Reference::begin(Index p) {
  Port& port = ports_[p];
  const std::vector<std::uint32_t>& weights = plan_.options.weights;
  const auto weight = [&](Index c) { return c <= weights.size() ? weights[c - 1] : 1U; };
  Time earliest = Time::never();
  std::vector<Index> may;  // leave now
  for (Index c = 0; c < port.classes.size(); ++c) {
    const Class& each = port.classes[c];
    if (each.held) continue;
    Time when = Time::never();
    if (!each.queue.empty()) {
      when = each.queue.front().may_leave;
    } else if (!each.flows.empty()) {
      when = now_;
    } else if (!each.paced.empty()) {
      when = each.paced.begin()->first;
    }
    earliest = std::min(earliest, when);
    if (when <= now_) may.push_back(c);
  }
  if (may.empty()) {
    if (earliest < Time::never()) push(earliest, kPorts, p, kTick, p, 0);
    return false;
  }
  Index best = may.front();
  bool new_round = false;
  if (best != 0) {
    std::vector<Index> left;  // with turns of this round
    for (const Index c : may) {
      if (port.classes[c].turns < weight(c)) left.push_back(c);
    }
    new_round = left.empty();
    if (!new_round) {
      best = left.front();
      for (const Index c : left) {
        if (port.classes[c].turns * weight(best) < port.classes[best].turns * weight(c)) best = c;
      }
    }
  }
  Class& from = port.classes[best];
  if (from.queue.empty()) {
    const std::optional<Packet> made = next_packet(p, best);
    if (!made) return true;
    from.queue.push_back(*made);
    from.queued += made->charge;
  }
  if (port.spec.guard == Guard::credit) {
    if (from.credit < from.queue.front().charge) {
      from.held = from.stalled = true;
      ++port.stats.stalls;
      return true;
    }
    from.credit -= from.queue.front().charge;
    from.waited = std::exchange(from.stalled, false);
  }
  if (best != 0) {
    if (new_round) {
      for (Class& each : port.classes) each.turns = 0;
    }
    ++from.turns;
  }
  transmit(p, from);
  return false;
}

void Reference::transmit(Index p, Class& from) {
  Port& port = ports_[p];
  Packet packet = from.queue.front();
  from.queue.pop_front();
  from.queued -= packet.charge;
  const Time wire = wire_time(port, packet);
  const Time header = transfer_time(Bytes{kControlBytes}, port.spec.wire);
  const Time head = port.spec.cut_through ? std::min(wire, header) : wire;
  port.on_wire = packet;
  port.sending = true;
  port.busy_until = now_ + wire;
  push(port.busy_until, kPorts, p, kTick, p, 0);
  if (packet.ingress != kNone && ports_[packet.ingress].spec.guard == Guard::credit) {
    push(port.busy_until, kCredits, packet.ingress, kCreditLeaves, packet.ingress, packet.came,
         packet.charge);
  }
  packet.came = packet.traffic_class;
  packet.lag = wire - head;
  push(now_ + head + port.spec.delay + port.spec.processing, kArrivals, p, kArrival, p,
       packet.traffic_class, 0, &packet);
  port.stats.busy += wire;
  if (packet.kind == packet::Kind::data) {
    ++port.stats.packets;
    port.stats.bytes += packet.bytes;
    ++outcome_.counters.hops;
    if (packet.ingress == kNone && packet.seq + 1 == flows_[packet.flow].packets)
      told_left(packet.flow, port.busy_until);
  } else {
    ++port.stats.control_packets;
    ++outcome_.counters.control_hops;
  }
}

// The tail has left: its buffer is free, and XON goes out when there is room again.
void Reference::end(Index p) {
  Port& port = ports_[p];
  port.sending = false;
  const Packet& packet = port.on_wire;
  if (packet.ingress == kNone) return;
  const packet::PortSpec& in = ports_[packet.ingress].spec;
  if (in.guard == Guard::credit) return;
  Class& gate = ports_[packet.ingress].classes[packet.came];
  Node& node = nodes_[port.spec.from];
  const std::int64_t from_headroom = std::min(gate.headroom, packet.charge);
  gate.headroom -= from_headroom;
  gate.held_bytes -= packet.charge - from_headroom;
  node.used -= packet.charge - from_headroom;
  if (!gate.paused || gate.headroom > 0) return;
  const std::int64_t limit = in.xoff > 0 ? in.xoff : free_share(node);
  if (gate.held_bytes - in.reserve > std::max<std::int64_t>(0, limit - in.xon)) return;
  gate.paused = false;
  frames_.push_back({packet.ingress, packet.came, false});
}

void Reference::change(const PlannedChange& change) {
  Port& port = ports_[change.port];
  settle(change.port);
  port.down = change.wire.bps == 0;
  if (!port.down) port.spec.wire = change.wire;
  settle(change.port);
}

// ---- the far end

void Reference::arrive(Index p, Packet packet) {
  settle(p);
  const PathHop* hop = packet.hop;
  if (hop->transport && packet.kind == packet::Kind::data && !receive(p, packet)) return;
  if (hop->count == 0) {
    if (ports_[p].spec.guard == Guard::credit) {
      push(now_, kCredits, p, kCreditLeaves, p, packet.traffic_class, packet.charge);
    }
    packet.kind == packet::Kind::data ? take_in(packet) : hear(packet);
    return;
  }
  const Flow& flow = flows_[packet.flow];
  const PathHop* records = packet.kind == packet::Kind::data ? flow.path.data() : flow.back.data();
  const PathHop* next = records + hop->next;
  packet.hop = next + (hop->count == 1     ? 0
                       : hop->minimal != 0 ? inject(next, *hop, packet)
                                           : choose(next, hop->count, packet));
  packet.ingress = p;
  if (packet.hop->lane != 0 && packet.kind == packet::Kind::data) {
    packet.traffic_class =
        flow.plan->spec.traffic_class + (packet.hop->lane - 1U) * plan_.options.stride;
  }
  const Index q = packet.hop->port;
  settle(q);
  if (ports_[p].spec.guard != Guard::credit && !admit(p, q, packet)) {
    ++ports_[q].stats.drops;
    outcome_.counters.dropped += packet.bytes;
    outcome_.flows[packet.flow].dropped += packet.bytes;
    return;
  }
  packet.may_leave = std::max(now_, now_ + packet.lag - wire_time(ports_[q], packet));
  enqueue(q, packet);
}

void Reference::enqueue(Index q, Packet packet) {
  Port& port = ports_[q];
  Class& to = port.classes[packet.traffic_class];
  to.queued += packet.charge;
  port.stats.peak_queue = std::max(port.stats.peak_queue, static_cast<std::uint32_t>(to.queued));
  if (packet.kind == packet::Kind::data) mark(q, packet);
  to.queue.push_back(packet);
  settle(q);
}

std::int64_t Reference::free_share(const Node& node) const {
  if (node.spec.buffer == 0) return Time::never().ps;
  return static_cast<std::int64_t>(node.spec.alpha * static_cast<double>(std::max<std::int64_t>(
                                                         0, node.spec.buffer - node.used)));
}

bool Reference::admit(Index in, Index out, const Packet& packet) {
  const packet::PortSpec& spec = ports_[in].spec;
  Node& node = nodes_[spec.to];
  Class& gate = ports_[in].classes[packet.came];
  const bool unlimited = node.spec.buffer == 0 && spec.xoff == 0;
  const bool counted = spec.guard != Guard::endpoint && !unlimited;
  const bool room = node.spec.buffer == 0 || node.used + packet.charge <= node.spec.buffer;
  const bool data = packet.kind == packet::Kind::data;
  bool fits = true;
  if (counted && spec.guard == Guard::pause && data) {
    const std::int64_t shared = gate.held_bytes + packet.charge - spec.reserve;
    fits = shared <= 0 || (room && shared <= (spec.xoff > 0 ? spec.xoff : free_share(node)));
    if (!fits) {
      if (gate.headroom + packet.charge > spec.headroom) return false;
      gate.headroom += packet.charge;
      if (!std::exchange(gate.paused, true)) frames_.push_back({in, packet.came, true});
      return true;
    }
  } else if (counted) {
    const std::int64_t queued = ports_[out].classes[packet.traffic_class].queued;
    if (!room || (data && queued > free_share(node))) return false;
  }
  gate.held_bytes += packet.charge;
  node.used += packet.charge;
  return true;
}

void Reference::mark(Index q, Packet& packet) {
  const packet::EcnSpec& ecn = ports_[q].spec.ecn;
  if (ecn.kmax == 0) return;
  const std::int64_t queued = ports_[q].classes[packet.traffic_class].queued;
  if (queued <= ecn.kmin) return;
  const Class& from = ports_[q].classes[packet.traffic_class];
  if (ecn.roots && ports_[q].spec.guard == Guard::credit && (from.held || from.waited)) return;
  if (queued < ecn.kmax) {
    const double chance = ecn.pmax * static_cast<double>(queued - ecn.kmin) /
                          static_cast<double>(ecn.kmax - ecn.kmin);
    const std::uint64_t draw = mix64(
        mix64(plan_.options.seed ^ (std::uint64_t{packet.flow} << 32 | q)) + packet.seq * kGolden);
    if (static_cast<double>(draw >> 11) * 0x1p-53 >= chance) return;
  }
  packet.marked = true;
  ++ports_[q].stats.marks;
  ++outcome_.flows[packet.flow].marks;
}

// PAUSE and XON, behind what the reverse port sends.
void Reference::send_frames() {
  while (!frames_.empty()) {
    const Frame frame = frames_.front();
    frames_.pop_front();
    const Index back = ports_[frame.port].spec.reverse;
    Port& port = ports_[back];
    settle(back);
    const Time time = transfer_time(Bytes{kControlBytes}, port.spec.wire);
    port.busy_until = std::max(port.busy_until, now_) + time;
    push(port.busy_until, kPorts, back, kTick, back, 0);
    port.stats.busy += time;
    ++port.stats.control_packets;
    ++outcome_.counters.control_hops;
    push(port.busy_until + port.spec.delay + ports_[frame.port].spec.response, kEffects,
         (std::uint64_t{frame.port} << 8) | frame.traffic_class, kControl, frame.port,
         frame.traffic_class, frame.pause ? 1 : 0);
  }
}

Reference::Index Reference::choose(const PathHop* first, Index count, const Packet& packet) {
  const std::uint64_t label = plan_.flows[packet.flow].spec.label;
  const std::uint64_t own = label + packet.seq * kGolden;
  if (plan_.options.spread == packet::Spread::backlog) {
    const auto turn = static_cast<Index>(mix64(own) % count);
    Index best = 0;
    Time least = Time::never();
    for (Index i = 0; i < count; ++i) {
      const Index at = (turn + i) % count;
      settle(first[at].port);
      const Port& port = ports_[first[at].port];
      if (port.down) continue;
      Packet full;
      full.bytes = plan_.options.grain;
      const double queued = static_cast<double>(port.classes[packet.traffic_class].queued);
      const Time wait =
          std::max(Time{0}, port.busy_until - now_) +
          Time{static_cast<std::int64_t>(queued * static_cast<double>(wire_time(port, full).ps) /
                                         plan_.options.grain)};
      if (wait < least) {
        least = wait;
        best = at;
      }
    }
    return best;
  }
  const std::uint64_t by = plan_.options.spread == packet::Spread::hash ? label : own;
  return static_cast<Index>(mix64(by ^ (std::uint64_t{first->port} << 32)) % count);
}

Reference::Index Reference::inject(const PathHop* first, const PathHop& hop, const Packet& packet) {
  const std::uint64_t draw = mix64(plan_.flows[packet.flow].spec.label + packet.seq * kGolden);
  const auto direct = static_cast<Index>(draw % hop.minimal);
  const auto around = static_cast<Index>(hop.minimal + (draw >> 32) % (hop.count - hop.minimal));
  if (ports_[first[direct].port].down) return around;
  if (ports_[first[around].port].down) return direct;
  const auto weight = [&](const PathHop& record) {
    settle(record.port);
    const auto& classes = ports_[record.port].classes;
    std::int64_t queued = 0;
    for (std::size_t c = 1; c < classes.size(); ++c) queued += classes[c].queued;
    return queued * record.length;
  };
  return weight(first[direct]) <= weight(first[around]) ? direct : around;
}

// ---- numbers

Time Reference::wire_time(const Port& port, const Packet& packet) const {
  std::int64_t bytes = packet.bytes;
  if (packet.kind != packet::Kind::data) {
    bytes = kControlBytes;
  } else if (port.spec.payload > 0) {
    bytes += (bytes + port.spec.payload - 1) / port.spec.payload * port.spec.overhead;
  }
  return transfer_time(Bytes{bytes}, port.spec.wire);
}

std::int64_t Reference::charge_of(std::int64_t bytes) const {
  const std::int64_t cell = plan_.options.cell;
  const std::int64_t whole = bytes == 0 ? kControlBytes : bytes + plan_.options.header;
  return (whole + cell - 1) / cell * cell;
}

}  // namespace weft::test
