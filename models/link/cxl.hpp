// SPDX-License-Identifier: Apache-2.0
// Compute Express Link: memory lines of 64 B in 16 B slots of flits, over the PCI Express physical layer.
//
// Raw rate:    CXL 1 and 2   PCIe 5 (32 GT/s, 128b/130b) x 64/68: flits of four slots, 2 B of protocol id and 2 B of CRC
//              CXL 3         PCIe 6 (64 GT/s)            x 238/256: flits of fifteen slots
// Efficiency:  a line of 64 B travels as four data slots behind one header slot of 16 B: 4/5; busy = 0.95 for credits.
// Assumes:     header slots are not shared between lines (they may be, up to four to a slot: this is the low end).
// Example:     CXL 2 x8: 29.65 GB/s x 4/5 x 0.95 = 22.5 GB/s, the order of what memory expanders read.
//              CXL 3 x16: 119.0 x 4/5 x 0.95 = 90.4 GB/s (a projection).
// Reference:   Compute Express Link Specification 3.0, chapter 4.
#pragma once

#include "sim/fabric/link_law.hpp"

namespace weft {

extern const LinkClassEntry kCxlLink;

}  // namespace weft
