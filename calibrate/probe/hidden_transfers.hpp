// SPDX-License-Identifier: Apache-2.0
// How long transfers really take on a made-up machine: the truth behind the copies of the synthetic backend.
//
// Packets:  transfers of one leg run packet by packet (credits, cut-through, pipelining). What is larger than kWindow is run at
//           half and whole of it and goes on at that slope: a transfer in steady state.
// Flows:    copies staged through host memory have legs and two-way budgets, which packets do not know: they run as fluids.
// Beyond:   a copy also pays for its pages, 1.2 ns for each 64 KiB up to 64 MiB, and starts another way from 64 KiB on (0.3 us):
//           small terms that no fit knows of.
#pragma once

#include <span>
#include <vector>

#include "calibrate/measured_samples.hpp"
#include "sim/fabric/routing.hpp"
#include "sim/run/packet_spec.hpp"
#include "sim/run/scenario.hpp"

namespace weft {

struct HiddenTransfer {
  NodeId from, to;
  Bytes bytes{0};
  CopyMethod method = CopyMethod::copy_engine;
};

class HiddenTransfers {
 public:
  static constexpr Bytes kWindow{std::int64_t{2} << 20};

  explicit HiddenTransfers(const Fabric& fabric) : fabric_(fabric), routes_(fabric) {}

  // From the common start to the end of each. Empty when one of them has no way.
  std::vector<Time> run(std::span<const HiddenTransfer> transfers);
  // Of an empty message, without start-ups.
  std::optional<Time> latency(NodeId from, NodeId to);
  // The one way through links of any kind: to host memory, or from NIC to NIC.
  std::optional<Route> shortest(NodeId from, NodeId to);

 private:
  struct Moving {
    Transfer way;
    Bytes bytes{0};
    Time extra{0};  // start-up and the small terms
  };
  std::optional<Moving> moving(const HiddenTransfer& transfer);
  std::vector<Time> simulate(std::span<const Moving> all, double share, Fidelity fidelity) const;
  Time start_of(NodeId gpu, CopyMethod method) const;

  const Fabric& fabric_;
  Routes routes_;
  PacketSpec packet_;
};

}  // namespace weft
