// SPDX-License-Identifier: Apache-2.0
// PFC headroom: what a lossless port must still take in after it has sent PAUSE.
//
//   headroom = lossless MTU + (port MTU + 2 L R / v + R t_phy + 64 B q(R)) f
//
//   lossless MTU   the packet that the sender has begun when PAUSE takes effect
//   port MTU       the packet that the pausing side has begun when it wants to send PAUSE
//   2 L R / v      what the cable holds, both ways: length L, signal speed v, rate R
//   R t_phy        the same for PHYs and MACs
//   64 B q(R)      the peer's response: at most q(R) pause quanta of 512 bit times by the standard
//   f              bytes of buffer per byte on the wire, when small packets leave their cells partly empty: one number per chip
//
// What f is in vendors' tables: 254 B cells of Tomahawk 4 and 5 over 64 B packets with preamble and gap, 254/84 = 3.02; cells
// of 192 B of Spectrum-4 over the bare 64 B, 3.0; about 1 where small packets are taken to be rare.
//
// Example:      Tomahawk 4, f = 254/84: 100 m more cable at 400 Gb/s are 2 x 100 m x 5 ns/m x 50 GB/s x 3.02 = 151 kB; the
//               vendor's table: (817,372 - 424,434) B / 260 m = 151 kB.
// Reference:    IEEE 802.1Qbb; IEEE 802.3 annex 31B.3.7 (pause quanta); the tables: tests/packet_cases/data/pfc_headroom.json.
#pragma once

#include <cstdint>

#include "sim/core/units.hpp"

namespace weft::packet {

struct HeadroomFacts {
  Bandwidth rate;
  Time delay{0};     // of the cable, one way
  Time phy{0};       // PHYs, MACs and the pausing switch, both ways together
  Time response{0};  // of the peer, from the arrival of PAUSE
  std::int64_t lossless_mtu = 0, port_mtu = 0;  // bytes on the wire
  double cell_use = 1;                          // f
};

// In bytes, rounded up.
std::int64_t headroom(const HeadroomFacts& facts);

// Light in fibre and signals in copper: 5 ns per metre.
Time cable_delay(double metres);

// The longest that a peer may take, in quanta of 512 bit times, and as time. Rates between two of the standard's take the higher
// one's; above 400 Gb/s switches are configured with that of 400 Gb/s.
std::int64_t pause_quanta(Bandwidth rate);
Time longest_response(Bandwidth rate);

// f in the worst case: of packets of at least `smallest` bytes the one that wastes most of its cells.
double worst_cell_use(std::int64_t cell, std::int64_t smallest);

}  // namespace weft::packet
