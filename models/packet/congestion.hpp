// SPDX-License-Identifier: Apache-2.0
// How a sender chooses its rate or its window. One object per flow; the engine calls it per acknowledgement, CNP and loss, never
// per packet-hop. A new scheme is one file in models/packet/congestion and one line in its catalog.cc; conformance.test.cc then
// holds it to the laws that all must keep (rate within its bounds, one sender reaches the line rate, two share a link).
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

// What an acknowledgement tells.
struct AckSignal {
  Time now;
  Time rtt{0};                // of the packet that was acknowledged
  std::uint32_t packets = 1;  // newly acknowledged
  bool marked = false;        // ECN echo
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
  virtual void on_loss(Time /*now*/, bool /*timeout*/) {}
};

// What a scheme is told when a flow starts.
struct SenderFacts {
  Bandwidth line_rate;
  Time base_rtt{0};            // of an idle network
  std::uint32_t grain = 4096;  // payload of a packet
  Time start{0};
};

}  // namespace weft::packet
