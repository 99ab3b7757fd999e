// SPDX-License-Identifier: Apache-2.0
// Senders that are pulled by their receiver, and switches that trim (Handley et al., "Re-architecting datacenter networks and
// stacks for low latency and high performance" (NDP), SIGCOMM 2017, sections 3.1 and 3.2).
//
//   Trim   What does not fit loses its payload; the header goes on in class 0, before all data, and tells the receiver what it
//          has to ask for. A header that does not fit is lost.
//   Pull   A sender begins with a window of its own. Each packet or header that arrives entitles it to one more; the receiver
//          hands these out no faster than its link takes packets, in order of arrival. A packet that was trimmed goes first.
//   Lost   Only what is lost without a header waits for the timeout.
#include <algorithm>

#include "models/packet/packet_engine.hpp"

namespace weft::packet {

// True when the packet goes on as a header.
bool Engine::trim(std::uint32_t in, std::uint32_t out, std::uint32_t k) {
  Packet& packet = packets_[k];
  if (!nodes_[ports_[in].to].trims || packet.kind != Kind::data) return false;
  const Packet whole = packet;
  packet.kind = Kind::trimmed;
  packet.traffic_class = packet.came = 0;
  packet.bytes = packet.lag = 0;
  packet.charge = charge_of(0);
  if (!admit(in, out, packet)) {
    packet = whole;
    return false;
  }
  ++stats_[out].trims;
  counters_.dropped += whole.bytes;
  flows_[whole.flow].ledger.dropped += whole.bytes;
  in_network_ -= whole.bytes;
  return true;
}

// At the receiving NIC: something of a pulled flow has come by port `in`.
void Engine::pull_for(std::uint32_t f, std::uint32_t in) {
  Time& free = pull_free_.try_emplace(in, Time{0}).first->second;
  const Time when = std::max(now_, free);
  free = when + ports_[in].full_time;
  Event event;
  event.when = when;
  event.order = (std::uint64_t{1} << 50) | pull_serial_++;
  event.target = f;
  event.kind = kPull;
  event.arg = flows_[f].serial;
  controls_.push(event);
}

void Engine::on_pull_due(const Event& event) {
  const std::uint32_t f = event.target;
  if (flows_[f].in_use && flows_[f].serial == event.arg) reply(f, Kind::pull, 0, 0, Time{0});
}

void Engine::receive_trimmed(std::uint32_t in, std::uint32_t k) {
  const Packet packet = packets_[k];
  give_back_buffer(in, packet);
  free_packet(k);
  const std::uint32_t f = packet.flow;
  if (!flows_[f].in_use) return;
  reply(f, Kind::trimmed, flows_[f].expected, packet.seq, packet.sent);
  pull_for(f, in);
}

// At the sender.
void Engine::hear_pull(std::uint32_t f) {
  ++flows_[f].granted;
  list(f);
}

void Engine::hear_trimmed(std::uint32_t f, std::uint32_t seq) {
  Flow& flow = flows_[f];
  flow.progress = now_;
  if (seq < flow.acked) return;
  flow.resend.push_back(seq);
  ++counters_.retransmitted;
  list(f);
}

}  // namespace weft::packet
