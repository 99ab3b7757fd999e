// SPDX-License-Identifier: Apache-2.0
// Classes whose `rate` is a fact of the product and not computed: c2c, xgmi, hccs, ualink, socket, memory. Their packet formats
// are public for some and not for others; the share of payload is, for one direction:
//
//     socket   64 / (64 + 8) x 0.92 = 0.818   QPI, UPI, xGMI between sockets: a line of eight 8 B flits behind one of header;
//                                            the rest are snoops, credits and the other direction's requests.
//                                            Measured copies reach 80 to 85 % of 2 B x GT/s.
//     xgmi     64 / (64 + 16) x 0.95 = 0.76   GPU to GPU over Infinity Fabric. Published copies reach 0.75 to 0.81 of the link:
//                                            38 to 40 of 50 GB/s (MI250X), 48 to 50 of 64 (MI300X).
//     ualink   256 / (256 + 16) x 628/640 = 0.924   data of 64 B flits in 640 B data-link flits (a projection).
//     c2c      0.9     NVLink-C2C, C-Link: assumed; the format is not public, copies reach 0.65 to 0.93 (recollection).
//     hccs     0.9     assumed; the format is not public.
//     memory   0.85    DRAM under long streams: refresh, bank conflicts, bus turnarounds take 10 to 20 % of the peak.
//
// These are assumptions of the class; a measured link states its own `efficiency`, or a `rate` as measured and `efficiency` 1.
// Example:     MI300X xgmi 64 GB/s: 48.6 GB/s.  Two QPI links at 9.6 GT/s, 38.4 GB/s: 31.4.
// References:  Intel, "An Introduction to the Intel QuickPath Interconnect", 2009; Schieffer et al., "Understanding Data
//              Movement in AMD Multi-GPU Systems with Infinity Fabric", 2024; UALink 200G 1.0, 2025;
//              McCalpin, STREAM, for memory.
#pragma once

#include "sim/fabric/link_law.hpp"

namespace weft {

extern const LinkClassEntry kC2cLink;
extern const LinkClassEntry kXgmiLink;
extern const LinkClassEntry kHccsLink;
extern const LinkClassEntry kUalinkLink;
extern const LinkClassEntry kSocketLink;
extern const LinkClassEntry kMemoryLink;

}  // namespace weft
