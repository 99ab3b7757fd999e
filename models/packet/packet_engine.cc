// SPDX-License-Identifier: Apache-2.0
#include "models/packet/packet_engine.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <utility>

#include "sim/core/check.hpp"

namespace weft::packet {
Engine::Engine(EngineOptions options) : options_(std::move(options)), wheel_(0, 1_us) {
  WEFT_CHECK(options_.classes >= 2 && options_.classes <= 8, options_.classes);
  options_.weights.resize(options_.classes - 1, 1);
}
Engine::~Engine() = default;

// ---- the machine

std::uint32_t Engine::add_node(const NodeSpec& spec) {
  Node node;
  node.pool = spec.buffer;
  node.alpha = spec.alpha;
  node.endpoint = spec.endpoint;
  node.trims = spec.trims;
  nodes_.push_back(node);
  return static_cast<std::uint32_t>(nodes_.size() - 1);
}

std::uint32_t Engine::add_port(const PortSpec& spec) {
  specs_.push_back(spec);
  return static_cast<std::uint32_t>(specs_.size() - 1);
}

void Engine::join(std::uint32_t port, std::uint32_t reverse) {
  specs_[port].reverse = reverse;
  specs_[reverse].reverse = port;
}

Path Engine::add_path(const std::vector<std::uint32_t>& ports, std::uint32_t transport_at) {
  std::vector<PathHop> records;
  for (std::uint32_t i = 0; i < ports.size(); ++i)
    records.push_back(
        {ports[i], i + 1, static_cast<std::uint16_t>(i + 1 < ports.size()), i == transport_at});
  return add_path(std::move(records), 1);
}

Path Engine::add_path(std::vector<PathHop> records, std::uint32_t first_count) {
  const auto base = static_cast<std::uint32_t>(hops_.size());
  for (PathHop& record : records) {
    record.next += base;
    hops_.push_back(record);
  }
  for (std::uint32_t i = 0; i < first_count; ++i) {
    Port& port = ports_[hops_[base + i].port];
    if (port.source != kNone || !nodes_[specs_[hops_[base + i].port].from].endpoint) continue;
    port.source = static_cast<std::uint32_t>(sources_.size());
    sources_.emplace_back(options_.classes);
  }
  return {base, first_count};
}

void Engine::finish_build() {
  const std::size_t count = specs_.size();
  ports_.resize(count);
  stats_.resize(count);
  queues_.resize(count * options_.classes);
  gates_.resize(count * options_.classes);
  pauses_.size(gates_.size());
  Time reach{0};
  for (std::uint32_t p = 0; p < count; ++p) {
    const PortSpec& spec = specs_[p];
    Port& port = ports_[p];
    port.reach = spec.delay + spec.processing;
    port.from = spec.from;
    port.to = spec.to;
    port.guard = spec.guard;
    port.cut_through = spec.cut_through;
    port.marks = spec.ecn.kmax > 0;
    port.lanes = spec.lanes;
    set_wire(p, spec.wire, {});
    reach = std::max(reach, port.reach + port.full_time);
    if (spec.guard == Guard::credit) {
      for (std::uint8_t c = 0; c < options_.classes; ++c)
        gate(p, c).charge = static_cast<std::int32_t>(spec.credit);
    } else {
      // Without a pool only the threshold counts; without that nothing does.
      std::int64_t limit = kMostBuffer;
      if (spec.guard != Guard::endpoint && nodes_[spec.to].pool > 0) {
        limit = 0;
      } else if (spec.guard == Guard::pause && spec.xoff > 0) {
        limit = std::min(kMostBuffer, spec.reserve + spec.xoff);
      }
      for (std::uint8_t c = 0; c < options_.classes; ++c)
        gate(p, c).limit = static_cast<std::int32_t>(limit);
    }
    ++nodes_[spec.from].count;
  }
  std::uint32_t first = 0;
  for (Node& node : nodes_) {
    node.first = std::exchange(first, first + node.count);
    node.count = 0;
  }
  node_ports_.resize(count);
  for (std::uint32_t p = 0; p < count; ++p) {
    Node& node = nodes_[specs_[p].from];
    node_ports_[node.first + node.count++] = p;
  }
  wheel_ = TimingWheel(2 * count, reach);
}

void Engine::set_wire(std::uint32_t p, Bandwidth wire, Time now) {
  Port& port = ports_[p];
  come_to(now);
  advance(p, now_);
  if (wire.bps == 0) {
    port.down = 1;
  } else {
    specs_[p].wire = wire;
    if (std::exchange(port.down, 0) != 0) port.busy_until = std::max(port.busy_until, now_);
    Packet full{};
    full.bytes = options_.grain;
    full.kind = Kind::data;
    port.full_time = Time::never();
    port.full_time = wire_time(p, full);
    port.control_time = static_cast<std::uint32_t>(
        std::min<std::int64_t>(transfer_time(Bytes{kControlBytes}, wire).ps, 0xFFFF'FFFF));
    advance(p, now_);
  }
  if (wheel_.size() > 0) rearm(p);
}

Time Engine::wire_time(std::uint32_t p, const Packet& packet) const {
  const Port& port = ports_[p];
  if (packet.kind != Kind::data) return {port.control_time};
  if (packet.bytes == options_.grain && port.full_time < Time::never()) return port.full_time;
  const PortSpec& spec = specs_[p];
  std::int64_t wire = packet.bytes;
  if (spec.payload > 0) wire += (packet.bytes + spec.payload - 1) / spec.payload * spec.overhead;
  return transfer_time(Bytes{wire}, spec.wire);
}

std::uint32_t Engine::charge_of(std::uint32_t bytes) const {
  const std::uint32_t whole = bytes == 0 ? kControlBytes : bytes + options_.header;
  return (whole + options_.cell - 1) / options_.cell * options_.cell;
}

// ---- ports

void Engine::make_up(std::uint32_t p, Time until) {
  Port& port = ports_[p];
  while (port.busy_until <= until) {
    if (port.leaving_ingress != kNone) {
      release(port);
      continue;  // the release may have had this port go on
    }
    const auto classes = static_cast<std::uint8_t>(port.ready & ~port.held);
    if (classes == 0 || port.down != 0 || !start_next(p, port, classes, until)) return;
  }
}

// When the next packet of this class may leave.
Time Engine::ready_at(std::uint32_t p, std::uint8_t c) const {
  const std::uint32_t k = queues_[p * options_.classes + c].head;
  return std::max(ports_[p].busy_until, k != kNone ? packets_[k].when : next_send(p, c));
}

// Commits the next packet if it can start by `until`. False when nothing more happens at this port until then.
bool Engine::start_next(std::uint32_t p, Port& port, std::uint8_t classes, Time until) {
  const std::uint8_t c = (classes & (classes - 1)) == 0
                             ? static_cast<std::uint8_t>(std::countr_zero(classes))
                             : pick_class(p, classes);
  Queue& from = queue(p, c);
  const Time start = ready_at(p, c);
  if (start > until) {
    if (start < Time::never()) {
      wake(p, start);
    } else {
      port.ready &= static_cast<std::uint8_t>(~bit(c));
    }
    return false;
  }
  if (from.head == kNone) {
    const std::uint32_t made = next_packet(p, c, start);
    if (made == kNone) {  // no flow may send now
      if (sources_[port.source][c].empty()) port.ready &= static_cast<std::uint8_t>(~bit(c));
      return true;
    }
    // It joins the queue, so that one without credit waits there.
    from.head = from.tail = made;
    from.charge += packets_[made].charge;
  }
  const std::uint32_t k = from.head;
  if (port.guard == Guard::credit && !take_credit(p, c, packets_[k].charge, start)) return true;
  const Packet& packet = packets_[k];
  from.head = packet.next;
  if (from.head == kNone) {
    from.tail = kNone;
    if (port.source == kNone || sources_[port.source][c].empty())
      port.ready &= static_cast<std::uint8_t>(~bit(c));
  }
  from.charge -= packet.charge;
  if (c != 0 && options_.classes > 2) take_turn(p, c);
  commit(p, port, k, start);
  return true;
}

void Engine::commit(std::uint32_t p, Port& port, std::uint32_t k, Time start) {
  Packet& packet = packets_[k];
  const Time wire = wire_time(p, packet);
  Time head = wire;
  if (port.cut_through && wire.ps > port.control_time) head = Time{port.control_time};
  packet.when = Time{start.ps + head.ps + port.reach.ps};
  packet.lag = static_cast<std::uint32_t>(wire.ps - head.ps);
  port.busy_until = Time{start.ps + wire.ps};
  leave_buffer(port, packet, port.busy_until);
  packet.came = packet.traffic_class;
  packet.next = kNone;
  if (port.flight_head == kNone) {
    port.flight_head = k;
  } else {
    packets_[port.flight_tail].next = k;
  }
  port.flight_tail = k;
  if ((packet.flags & kLast) != 0 && port.source != kNone && flows_[packet.flow].prompt)
    last_left(packet.flow, port.busy_until);
  PortStats& stats = stats_[p];
  stats.busy.ps += wire.ps;
  if (packet.kind == Kind::data) {
    ++stats.packets;
    stats.bytes += packet.bytes;
    ++counters_.hops;
    if (packet.telemetry != kNone && packet.ingress != kNone)
      telemetry_.add(packet.telemetry,
                     {p, queue(p, packet.traffic_class).charge, start, stats.busy, specs_[p].wire});
  } else {
    ++stats.control_packets;
    ++counters_.control_hops;
  }
  if (port.watched) {
    note_queue(p, start);
    if (packet.kind == Kind::data) port_series_.at(p).sent.add(start, packet.bytes);
  }
}

// Of the classes whose packets may leave first: control, else weighted round robin. In a round a class sends up to its weight
// of packets, those that are furthest behind their weight first; a new round begins when nobody who may send has a turn left.
std::uint8_t Engine::pick_class(std::uint32_t p, std::uint8_t classes) const {
  std::array<Time, 8> at{};
  Time first = Time::never();
  for (std::uint8_t c = 0; c < options_.classes; ++c) {
    if ((classes & bit(c)) == 0) continue;
    at[c] = ready_at(p, c);
    first = std::min(first, at[c]);
  }
  const Queue* queues = &queues_[p * options_.classes];
  std::uint8_t best = 0, any = 0;
  for (std::uint8_t c = 0; c < options_.classes; ++c) {
    if ((classes & bit(c)) == 0 || at[c] > first) continue;
    if (c == 0) return 0;
    if (any == 0) any = c;
    const std::uint64_t weight = options_.weights[c - 1U];
    if (queues[c].turns >= weight) continue;
    if (best == 0 ||
        queues[c].turns * std::uint64_t{options_.weights[best - 1U]} < queues[best].turns * weight)
      best = c;
  }
  return best != 0 ? best : any;
}

void Engine::take_turn(std::uint32_t p, std::uint8_t c) {
  if (queue(p, c).turns >= options_.weights[c - 1U]) {
    for (std::uint8_t each = 1; each < options_.classes; ++each) queue(p, each).turns = 0;
  }
  ++queue(p, c).turns;
}

// The alarm of what a port does next, no later than this.
void Engine::wake(std::uint32_t p, Time when) {
  when = std::max(when, now_);
  if (when < wheel_.time_of(p)) wheel_.set(p, when);
}

// Whether somebody waits for what this port commits.
bool Engine::tells(const Port& port) const {
  if (port.source == kNone) return false;
  return std::ranges::any_of(sources_[port.source],
                             [](const Ring& ring) { return ring.prompt > 0; });
}

// The alarms that this port needs now.
void Engine::rearm(std::uint32_t p) {
  Port& port = ports_[p];
  const bool more = (port.ready & ~port.held) != 0 && port.down == 0;
  // What comes next has an event to be found by while something is in flight.
  bool early = false;
  if (port.flight_head != kNone) {
    wheel_.set(arrival_alarm(p), packets_[port.flight_head].when);
  } else {
    wheel_.cancel(arrival_alarm(p));
    early = more;
  }
  if (port.urgent) {
    port.urgent = nodes_[port.from].eager > 0 && (port.ready != 0 || port.leaving_ingress != kNone);
    early = early || (port.urgent && (more || port.leaving_ingress != kNone));
  }
  if (port.source != kNone && more && tells(port)) early = true;
  if (early && port.busy_until > now_) wake(p, port.busy_until);
}

void Engine::on_arrival(std::uint32_t p) {
  advance(p, now_);
  Port& port = ports_[p];
  while (port.flight_head != kNone && packets_[port.flight_head].when <= now_) {
    const std::uint32_t k = port.flight_head;
    port.flight_head = packets_[k].next;
    if (port.flight_head == kNone) port.flight_tail = kNone;
    deliver(p, k);
  }
  rearm(p);
}

void Engine::on_start(std::uint32_t p) {
  advance(p, now_);
  rearm(p);
}

void Engine::deliver(std::uint32_t p, std::uint32_t k) {
  const PathHop hop = hops_[packets_[k].hop];
  if (hop.transport && !receive(p, k)) return;
  if (hop.count == 0) {
    give_back_buffer(p, packets_[k]);
    if (packets_[k].kind == Kind::data) {
      take_in(k);
    } else {
      hear(k);
    }
    return;
  }
  if (ports_[p].lanes) packets_[k].traffic_class = flows_[packets_[k].flow].traffic_class;
  std::uint32_t record = hop.next;
  if (hop.count != 1) {
    if (hop.fan) return replicate(p, k, hop.next, hop.count);
    record += hop.minimal != 0 ? inject(&hops_[hop.next], hop, packets_[k])
                               : choose(&hops_[hop.next], hop.count, packets_[k]);
  }
  const std::uint32_t q = hops_[record].port;
  advance(q, now_);
  Packet& packet = packets_[k];
  if (const std::uint32_t lane = hops_[record].lane; lane != 0 && packet.kind == Kind::data) {
    packet.traffic_class =
        static_cast<std::uint8_t>(flows_[packet.flow].traffic_class + (lane - 1) * options_.stride);
  }
  packet.hop = record;
  packet.ingress = p;
  if (ports_[q].down == kCut) {
    give_back_buffer(p, packet);
    return drop(q, k);
  }
  if (ports_[p].guard != Guard::credit && !admit(p, q, packet) && !trim(p, q, k)) return drop(q, k);
  packet.when = now_;
  if (packet.lag > 0) {
    // Behind the header, but not so that the wire runs out of bits.
    packet.when = std::max(now_, now_ + Time{packet.lag} - wire_time(q, packet));
  }
  enqueue(q, k);
}

void Engine::enqueue(std::uint32_t q, std::uint32_t k) {
  Packet& packet = packets_[k];
  Port& port = ports_[q];
  const std::uint8_t c = packet.traffic_class;
  Queue& to = queue(q, c);
  to.charge += packet.charge;
  if (to.charge > stats_[q].peak_queue) stats_[q].peak_queue = to.charge;
  if (port.marks && packet.kind == Kind::data) mark(q, packet);
  packet.next = kNone;
  if (to.head == kNone) {
    to.head = k;
  } else {
    packets_[to.tail].next = k;
  }
  to.tail = k;
  port.ready |= bit(c);
  if (!port.urgent && packet.ingress != kNone && nodes_[port.from].eager > 0) {
    const std::uint32_t in = came_by(packet.ingress);
    port.urgent = in != kNone && waited_for(in, packet.came);
  }
  if (port.watched) note_queue(q, now_);
  advance(q, now_);
  if (port.urgent || wheel_.time_of(arrival_alarm(q)) == Time::never()) rearm(q);
}

// ---- time

// From outside: what was due until then has been done.
void Engine::come_to(Time now) {
  if (now <= now_) return;
  now_ = now;
  ended_below_ = kNone;
}

Time Engine::next_event() { return std::min(wheel_.next(), controls_.next_time()); }

// The state of all ports and packets does not fit the near caches; what the next events touch is asked for early, a step at a
// time: the port of the one after next, the packet of the next but one, where that packet goes.
void Engine::fetch_ahead() {
  const auto ports = static_cast<std::uint32_t>(ports_.size());
  const auto arrival = [&](int ahead) { return wheel_.peek(ahead) - ports; };
  if (const std::uint32_t p = arrival(3); p < ports) __builtin_prefetch(&ports_[p]);
  if (const std::uint32_t p = arrival(2); p < ports) packets_.fetch(ports_[p].flight_head);
  if (const std::uint32_t p = arrival(1); p < ports) {
    const std::uint32_t k = ports_[p].flight_head;
    if (k == kNone) return;
    __builtin_prefetch(&gates_[p * options_.classes + packets_[k].traffic_class]);
    __builtin_prefetch(&hops_[packets_[k].hop]);
    const PathHop& hop = hops_[packets_[k].hop];
    if (hop.count == 1) {
      const std::uint32_t q = hops_[hop.next].port;
      __builtin_prefetch(&ports_[q]);
      __builtin_prefetch(&queues_[q * options_.classes]);
      __builtin_prefetch(&stats_[q]);
    }
  }
}

void Engine::run(Time until, std::uint64_t most_alarms) {
  const std::uint64_t last = most_alarms > ~std::uint64_t{0} - counters_.alarms
                                 ? ~std::uint64_t{0}
                                 : counters_.alarms + most_alarms;
  const auto ports = static_cast<std::uint32_t>(ports_.size());
  while (ended_.empty() && counters_.alarms < last) {
    const Time control = controls_.next_time();
    const Time alarm = wheel_.next();
    if (std::min(control, alarm) > until || std::min(control, alarm) == Time::never()) break;
    if (control <= alarm) {
      const Event event = controls_.pop();
      if (event.when > now_) ended_below_ = 0;
      now_ = event.when;
      ++counters_.controls;
      handle_control(event);
    } else {
      const std::uint32_t id = wheel_.pop();
      ended_below_ = alarm > now_ ? id : std::max(ended_below_, id);
      now_ = alarm;
      fetch_ahead();
      ++counters_.alarms;
      if (id >= ports) {
        on_arrival(id - ports);
      } else {
        on_start(id);
      }
    }
    if (!deferred_.empty()) send_pauses();
  }
}

}  // namespace weft::packet
