// SPDX-License-Identifier: Apache-2.0
#include "models/packet/connections.hpp"

namespace weft::packet {
namespace {

constexpr std::int64_t kQueuePair = 375, kTcp = 44 + 12 + 10;

}  // namespace

ConnectionState connection_state(Transport transport, const CongestionEntry& congestion) {
  ConnectionState out;
  out.control = static_cast<std::int64_t>(congestion.state_bytes);
  if (transport != Transport::tcp) out.queue_pair = kQueuePair;
  if (transport == Transport::tcp || transport == Transport::iwarp) out.tcp = kTcp;
  return out;
}

Bytes all_to_all_state(std::int64_t nodes, std::int64_t queue_pairs, const ConnectionState& each) {
  return Bytes{each.total()} * (nodes - 1) * queue_pairs;
}

}  // namespace weft::packet
