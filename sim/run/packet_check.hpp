// SPDX-License-Identifier: Apache-2.0
// What the packet level asks of a scenario as a whole: that its parts fit each other, and that the work can be done.
#pragma once

#include <cstdint>
#include <vector>

#include "sim/core/diagnostics.hpp"
#include "sim/fabric/fabric.hpp"
#include "sim/run/scenario.hpp"
#include "sim/workload/workload.hpp"

namespace weft {

struct ExecutorJob;

// Payload of a packet: as given, else the MTU of the NICs' links, else 4 KiB.
std::int64_t packet_grain(const Fabric& fabric, const PacketSpec& spec);

// Where data may rest without an end to the room: memories.
bool takes_all_in(NodeKind kind);
// Bytes of buffer are granted in advance: all but Ethernet, where there is a buffer.
bool works_with_credits(const Fabric& fabric, const Link& link);
Transport transport_of(const Fabric& fabric);
// The congestion control that is used: as given, else what the network's transport has.
CongestionScheme congestion_scheme(const Fabric& fabric, const PacketSpec& spec);

// Packets times links of all operations that run so often. Jobs that repeat until the end count once.
double packet_hops(const Workload& workload, const std::vector<ExecutorJob>& jobs,
                   std::int64_t grain);
// Throws LimitReached when there are more than kMostPacketHops.
inline constexpr double kMostPacketHops = 1e11;
void refuse_endless_work(const Workload& workload, const std::vector<ExecutorJob>& jobs,
                         std::int64_t grain);

// Congestion control that nothing on this fabric talks to, virtual lanes that do not fit, routing that only packets have; a
// warning for keys that nothing on this fabric reads.
void check_packet_level(const Fabric& fabric, const Scenario& scenario, Diagnostics& out);

}  // namespace weft
