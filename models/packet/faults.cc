// SPDX-License-Identifier: Apache-2.0
// A link that is cut while packets are on it, and flows that take another way.
//
// What is on the wire or queued in front of a cut port is lost, and so is what is still sent there, until set_wire() mends it.
// The buffers it held are freed, the credit it took comes back. A flow that is given another way sends what is next by it; what
// was lost comes again by the flow's recovery.
#include <utility>

#include "models/packet/packet_engine.hpp"
#include "sim/core/check.hpp"

namespace weft::packet {

// The buffer of a packet that never leaves by the port it was queued for.
void Engine::free_buffer(std::uint32_t p, const Packet& packet) {
  if (packet.ingress == kNone) return;
  if (ports_[packet.ingress].guard == Guard::credit) {
    give_credit(packet.ingress, packet.traffic_class, packet.charge, now_);
    return;
  }
  Port& port = ports_[p];
  port.leaving_ingress = packet.ingress;
  port.leaving_charge = packet.charge;
  port.leaving_class = packet.traffic_class;
  release(port);
}

void Engine::cut(std::uint32_t p, Time now) {
  now_ = std::max(now_, now);
  advance(p, now_);
  Port& port = ports_[p];
  port.down = kCut;
  port.busy_until = now_;
  if (port.leaving_ingress != kNone) release(port);
  for (std::uint8_t c = 0; c < options_.classes && port.guard == Guard::credit; ++c) {
    if (std::exchange(gate(p, c).starved, std::uint8_t{0}) == 0) continue;
    --nodes_[port.to].eager;
    port.held &= static_cast<std::uint8_t>(~bit(c));
  }
  std::uint32_t k = std::exchange(port.flight_head, kNone);
  port.flight_tail = kNone;
  while (k != kNone) {
    const std::uint32_t next = packets_[k].next;
    give_back_buffer(p, packets_[k]);
    drop(p, k);
    k = next;
  }
  for (std::uint8_t c = 0; c < options_.classes; ++c) {
    Queue& from = queue(p, c);
    k = std::exchange(from.head, kNone);
    from.tail = kNone;
    from.charge = 0;
    while (k != kNone) {
      const std::uint32_t next = packets_[k].next;
      free_buffer(p, packets_[k]);
      drop(p, k);
      k = next;
    }
    if (port.source == kNone || sources_[port.source][c].empty())
      port.ready &= static_cast<std::uint8_t>(~bit(c));
  }
  if (port.watched) note_queue(p, now_);
  if (!deferred_.empty()) send_pauses();
  rearm(p);
}

// False where the new way begins at other ports than the old one: then the flow stays on it.
bool Engine::reroute(std::uint32_t f, Path path, Path back, Time now) {
  now_ = std::max(now_, now);
  Flow& flow = flows_[f];
  if (path.count != flow.path.count) return false;
  for (std::uint32_t i = 0; i < path.count; ++i) {
    if (hops_[path.first + i].port != hops_[flow.path.first + i].port) return false;
  }
  flow.path = path;
  flow.back = back;
  ++flow.turn;
  return true;
}

}  // namespace weft::packet
