// SPDX-License-Identifier: Apache-2.0
// InfiniBand, SDR to XDR.
//
// Raw rate, one direction:   data rate of a lane x width
//     sdr 2.5, ddr 5, qdr 10 Gb/s signalled, 8b/10b        -> 2, 4, 8 Gb/s
//     fdr 14.0625, 64b/66b                                  -> 13.636      edr 25.78125, 64b/66b -> 25
//     hdr 53.125, 256b/257b and RS(544,514)                 -> 50          ndr 106.25 -> 100     xdr 212.5 -> 200
// Efficiency:   mtu / (mtu + 26) x busy; a packet of a connection inside one subnet adds
//                   LRH 8 + BTH 12 + ICRC 4 + VCRC 2 = 26 B
//               (RETH, 16 B, only in the first packet of a write: nothing on long transfers; GRH, 40 B, only between subnets).
//               busy = 0.99: delimiters, skip ordered sets, link-level credits and acknowledgements. Measured remainder of
//               ib_write_bw, 4 KiB packets, over headers alone: EDR 98.4 of 99.4 Gb/s, HDR 196.3 to 196.6 of 198.7.
// Assumes:      full packets, reliable connection, write.
//
// Example:      HDR x4, 4 KiB: 200 Gb/s x 4096/4122 x 0.99 = 196.75 (measured 196.64 at 4 MiB, 196.38 at 2 MiB).
//               EDR 98.4; NDR 393.5; XDR 787.0 (no measurement of ours).  FDR 53.66.
// Reference:    InfiniBand Architecture Specification volume 1, release 1.7, chapters 6, 7, 9; volume 2 for lanes.
#pragma once

#include "sim/fabric/link_law.hpp"

namespace weft {

extern const LinkClassEntry kInfinibandLink;

}  // namespace weft
