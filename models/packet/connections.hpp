// SPDX-License-Identifier: Apache-2.0
// What a NIC keeps for each of its connections. A NIC's own memory is small (about 2 MB); beyond it contexts are fetched from the
// host, packet by packet. So an all-to-all of N nodes, N - 1 connections at every NIC, is where transports differ.
//
//   queue pair   375 B: context of a reliable connection of a ConnectX NIC (Kalia, Kaminsky and Andersen, "Datacenter RPCs can be
//                general and fast", NSDI 2019)
//   TCP          66 B below RDMA over TCP: the eleven sequence variables of RFC 9293, section 3.3.1, 44 B; round trip and timer of
//                RFC 6298, 12 B; time stamps and window scales of RFC 7323, 10 B. Segments that wait for a gap are not in it.
//   control      the variables of the congestion control as models/packet/congestion keeps them
//
// Example:     4,096 nodes, one queue pair each way: RoCE with DCQCN (72 B) 4,095 x 447 B = 1.83 MB per NIC.
#pragma once

#include <cstdint>

#include "models/packet/congestion/catalog.hpp"
#include "sim/fabric/spec.hpp"

namespace weft::packet {

struct ConnectionState {
  std::int64_t queue_pair = 0, tcp = 0, control = 0;  // bytes
  std::int64_t total() const { return queue_pair + tcp + control; }
};

ConnectionState connection_state(Transport transport, const CongestionEntry& congestion);

// Of one NIC, when every node of an all-to-all has so many queue pairs to each of the others.
Bytes all_to_all_state(std::int64_t nodes, std::int64_t queue_pairs, const ConnectionState& each);

}  // namespace weft::packet
