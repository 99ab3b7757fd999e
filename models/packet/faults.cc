// SPDX-License-Identifier: Apache-2.0
// A link that is cut while packets are on it, and flows that take another way.
//
// What is on the wire or queued in front of a cut port is lost, and so is what is still sent there, until set_wire() mends it.
// The buffers it held are freed, the credit it took comes back. A flow that is given another way sends what is next by it; what
// was lost comes again by the flow's recovery.
#include <algorithm>
#include <utility>

#include "models/packet/packet_engine.hpp"

namespace weft::packet {

void Engine::cut(std::uint32_t p, Time now) {
  come_to(now);
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
  const auto lose = [&](std::uint32_t k, auto free_buffer) {
    while (k != kNone) {
      const std::uint32_t next = packets_[k].next;
      free_buffer(packets_[k]);
      drop(p, k);
      k = next;
    }
  };
  port.flight_tail = kNone;
  lose(std::exchange(port.flight_head, kNone),
       [&](const Packet& packet) { give_back_buffer(p, packet); });
  for (std::uint8_t c = 0; c < options_.classes; ++c) {
    Queue& from = queue(p, c);
    from.tail = kNone;
    from.charge = 0;
    // These never leave by the port they were queued for.
    lose(std::exchange(from.head, kNone), [&](const Packet& packet) {
      leave_buffer(port, packet, now_);
      if (port.leaving_ingress != kNone) release(port);
    });
    if (port.source == kNone || sources_[port.source][c].empty())
      port.ready &= static_cast<std::uint8_t>(~bit(c));
  }
  if (port.watched) note_queue(p, now_);
  if (!deferred_.empty()) send_pauses();
  rearm(p);
}

// False where the new way begins at other ports than the old one: then the flow stays on it.
bool Engine::reroute(std::uint32_t f, Path path, Path back, Time now) {
  come_to(now);
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
