// SPDX-License-Identifier: Apache-2.0
// A small network and its traffic, to be run by the packet engine and by the naive one; and what either found.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "models/packet/packet_engine.hpp"

namespace weft::test {

struct PlannedFlow {
  packet::FlowSpec spec;  // without paths
  std::vector<packet::PathHop> path, back;
  std::uint32_t path_first = 1, back_first = 1;  // records to choose from at the source
  bool halves = false;                           // under a congestion control of the tests
  Time start{0};
};

// From `when` on a port has this rate; 0: it is down.
struct PlannedChange {
  Time when{0};
  std::uint32_t port = 0;
  Bandwidth wire;
};

struct Plan {
  packet::EngineOptions options;
  std::vector<packet::NodeSpec> nodes;
  std::vector<packet::PortSpec> ports;
  std::vector<PlannedFlow> flows;      // by start
  std::vector<PlannedChange> changes;  // by time; before flows of the same instant

  std::uint32_t add_node(packet::NodeSpec node = {});
  // Both directions of a cable; returns the first, the other is the next.
  std::uint32_t add_cable(std::uint32_t a, std::uint32_t b, packet::PortSpec port);
};

// A single way, port after port; the transport ends behind the port at `transport_at`.
std::vector<packet::PathHop> way(const std::vector<std::uint32_t>& ports,
                                 std::uint32_t transport_at = packet::kNone);
// Data along `ports`; what is acknowledged comes back the same way from the NIC behind the last port but `tail`, to the NIC
// that `head` ports of the way reach.
void give_way(PlannedFlow& flow, const Plan& plan, const std::vector<std::uint32_t>& ports,
              std::size_t head = 0, std::size_t tail = 0);

struct FlowOutcome {
  Time finish = Time::never(), left = Time::never();
  std::int64_t retransmitted = 0, dropped = 0;  // bytes
  std::uint64_t marks = 0;
  friend bool operator==(const FlowOutcome&, const FlowOutcome&) = default;
};
struct Outcome {
  std::vector<FlowOutcome> flows;
  std::vector<packet::PortStats> ports;
  packet::EngineCounters counters;
};

// Where they differ, one line each; empty when they are the same.
std::string differences(const Outcome& engine, const Outcome& reference);

// The rate halves on a CNP and when a packet is lost, and grows by a tenth with every acknowledgement; a window of packets.
// Which packets it lets go depends on every signal and its time.
std::unique_ptr<packet::CongestionControl> make_halves(Bandwidth line_rate);

// Runs until nothing is left to happen. A run of more than `most_events` is stopped and reported as such.
Outcome run_engine(const Plan& plan, std::vector<std::uint32_t>* waiting_cycle = nullptr,
                   std::size_t* live_packets = nullptr);
Outcome run_reference(const Plan& plan);

}  // namespace weft::test
