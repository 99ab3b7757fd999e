// SPDX-License-Identifier: Apache-2.0
// Which of several ways a packet takes. Each choice is a function of the packet and of the queues it may look at.
#include <algorithm>

#include "models/packet/packet_engine.hpp"
#include "sim/core/hash.hpp"

namespace weft::packet {

std::uint32_t Engine::choose(const PathHop* records, std::uint32_t count, const Packet& packet) {
  const Flow& flow = flows_[packet.flow];
  if (options_.spread == Spread::backlog) {
    std::uint32_t best = 0;
    Time least = Time::never();
    const auto turn = static_cast<std::uint32_t>(mix64(flow.label + packet.seq * kGolden) % count);
    for (std::uint32_t i = 0; i < count && least.ps > 0; ++i) {
      const std::uint32_t at = turn + i < count ? turn + i : turn + i - count;
      const std::uint32_t p = records[at].port;
      const Port& port = ports_[p];
      if (port.down != 0) continue;
      if (port.ready != 0 && port.busy_until <= now_) {
        advance(p, now_);
        rearm(p);
      }
      const std::uint32_t queued = queue(p, packet.traffic_class).charge;
      Time wait = std::max(Time{0}, port.busy_until - now_);
      if (queued > 0) {
        wait += Time{static_cast<std::int64_t>(queued * static_cast<double>(port.full_time.ps) /
                                               options_.grain)};
      }
      if (wait < least) {
        least = wait;
        best = at;
      }
    }
    return best;
  }
  std::uint64_t label = flow.label;
  std::uint64_t which = 0;
  if (options_.spread == Spread::spray) which = packet.seq | std::uint64_t{packet.turn} << 32;
  if (options_.spread == Spread::flowlet) which = packet.turn;
  label += which * kGolden;
  return static_cast<std::uint32_t>(mix64(label ^ (std::uint64_t{records->port} << 32)) % count);
}

// Where a packet enters the network: minimal, or by a detour (UGAL-L; Kim, Dally, Scott and Abts, "Technology-Driven,
// Highly-Scalable Dragonfly Topology", ISCA 2008, section 4). One of each is drawn; the detour is taken when the queue in front
// of the minimal way, times its length, is the larger.
std::uint32_t Engine::inject(const PathHop* records, const PathHop& hop, const Packet& packet) {
  const std::uint64_t which = packet.seq | std::uint64_t{packet.turn} << 32;
  const std::uint64_t draw = mix64(flows_[packet.flow].label + which * kGolden);
  const auto minimal = static_cast<std::uint32_t>(draw % hop.minimal);
  const auto detour = static_cast<std::uint32_t>(
      hop.minimal + (draw >> 32) % static_cast<std::uint32_t>(hop.count - hop.minimal));
  const PathHop &direct = records[minimal], &around = records[detour];
  if (ports_[direct.port].down != 0) return detour;
  if (ports_[around.port].down != 0) return minimal;
  return load(direct.port) * direct.length <= load(around.port) * around.length ? minimal : detour;
}

// Bytes of data that wait in front of a port now.
std::int64_t Engine::load(std::uint32_t p) {
  if (ports_[p].ready != 0 && ports_[p].busy_until <= now_) {
    advance(p, now_);
    rearm(p);
  }
  return queued(p) - queue(p, 0).charge;
}

}  // namespace weft::packet
