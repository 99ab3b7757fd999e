// SPDX-License-Identifier: Apache-2.0
// How a sender chooses its rate or its window. One object per flow; the engine calls it per packet sent, acknowledgement, CNP
// and loss, never per packet-hop. A new scheme is one file in models/packet/congestion, one line in its catalog.cc and its name
// and keys in sim/run/congestion_spec.hpp; conformance.test.cc then holds it to the laws that all must keep (rate within its
// bounds, one sender reaches the line rate, two share a link, each signal lowers the rate).
//
// Timers are evaluated when the flow sends or hears something: `now` moves the scheme's own clock forward. So a waiting flow
// costs nothing.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string_view>

#include "sim/core/units.hpp"

namespace weft::packet {

// In-band telemetry: what a switch writes into a packet when its first bit leaves (Li et al., HPCC, SIGCOMM 2019, section 3.2).
// `busy` stands for txBytes / B: how long the wire has carried bits, free of what headers count.
struct HopTelemetry {
  std::uint32_t port = 0;
  std::uint32_t queued = 0;  // bytes left behind in the queue
  Time when{0};
  Time busy{0};
  Bandwidth rate{0};
};

// What an acknowledgement tells.
struct AckSignal {
  Time now{0};
  Time rtt{0};                              // of the packet that was acknowledged
  std::uint32_t packets = 1;                // newly acknowledged
  bool marked = false;                      // ECN echo
  std::uint32_t acked = 0;                  // all packets before it have arrived
  std::uint32_t next = 0;                   // the next new packet to send
  std::span<const HopTelemetry> hops = {};  // of schemes that ask for telemetry
};

struct LossSignal {
  Time now{0};
  bool timeout = false;     // nothing was heard; else a gap was reported
  bool again = false;       // what was sent a second time is lost too
  std::uint32_t acked = 0;  // as above
  std::uint32_t next = 0;   // before anything is sent again
};

class CongestionControl {
 public:
  virtual ~CongestionControl() = default;

  // Rate at which the flow may send at `now`; the line rate when the scheme does not pace.
  virtual Bandwidth rate(Time now) = 0;
  // Packets that may be unacknowledged; 0 for no limit.
  virtual std::uint32_t window() const { return 0; }

  virtual void on_send(Time /*now*/, std::uint32_t /*bytes*/) {}
  virtual void on_ack(const AckSignal& /*signal*/) {}
  virtual void on_cnp(Time /*now*/) {}
  virtual void on_loss(const LossSignal& /*signal*/) {}
};

// What a scheme is told when a flow starts.
struct SenderFacts {
  Bandwidth line_rate;
  Time base_rtt{0};            // of an idle network
  std::uint32_t grain = 4096;  // payload of a packet
  Time start{0};
};

}  // namespace weft::packet
