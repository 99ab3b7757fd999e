// SPDX-License-Identifier: Apache-2.0
// PCI Express, generations 1 to 6.
//
// Raw rate, one direction:   GT/s per lane x lanes x line coding
//     1: 2.5   2: 5     8b/10b      one byte is ten bits on the wire
//     3: 8  4: 16  5: 32  128b/130b   a block of 16 B behind two sync bits
//     6: 64              FLIT mode   256 B flit = 236 B of transactions + 6 B of data link + 8 B CRC + 6 B FEC
// Efficiency:   payload / (payload + overhead) x busy
//     Overhead of a memory write with a 64-bit address is 24 B in generations 1 to 5:
//         1, 2:  STP 1 + sequence number 2 + header 16 + LCRC 4 + END 1
//         3-5:   STP token 4 (it holds the sequence number) + header 16 + LCRC 4
//     and the 16 B header alone in FLIT mode, where sequence and CRC belong to the flit.
//     A read's completions have a 12 B header; we take the write for both directions of a copy.
//     busy = 0.95: acknowledge and flow-control packets (8 B each, about one of each per two or three TLPs), and SKP ordered
//     sets (16 B in 6 KB).
// Assumes:      TLPs of max_payload, no digest (ECRC), no vendor prefixes, relaxed ordering.
// duplex_factor passes through: the port's x_up + x_down <= duplex_factor x 2C is a property of the device, not of the wire.
//
// Example:      gen 3 x16, 128 B: 15.754 GB/s x 128/152 x 0.95 = 12.60 GB/s (measured DMA 12 to 13).
//               gen 4 x16, 128 B: 25.21 (A100 from host 26.0, peer through a switch 24.2); 256 B: 27.37.
//               gen 5 x16, 256 B: 54.73 (H200: 55.06 and 55.43).   gen 6 x16, 256 B: 105.5 (no measurement yet).
// Reference:    PCI Express Base Specification 1.1, 2.1, 3.1, 5.0, 6.0, chapters 2 to 4.
#pragma once

#include "sim/fabric/link_law.hpp"

namespace weft {

// One lane's raw rate after line coding times `width`; `generation` is 1 to 6.
Bandwidth pcie_rate(int generation, int width);

extern const LinkClassEntry kPcieLink;

}  // namespace weft
