// SPDX-License-Identifier: Apache-2.0
// HPE Slingshot: Ethernet frames without preamble and gap between Slingshot devices.
//
// Efficiency:  mtu / (mtu + 62): Ethernet 18 + IP 20 + UDP 8 + transport 16.
// Assumes:     the transport header's size, which is not public; full packets.
// Example:     200 Gb/s, 2 KiB: 24.26 GB/s.
// Reference:   De Sensi, Di Girolamo, McMahon, Roweth, Hoefler, "An In-Depth Analysis of the Slingshot Interconnect", SC 2020.
#pragma once

#include "sim/fabric/link_law.hpp"

namespace weft {

extern const LinkClassEntry kSlingshotLink;

}  // namespace weft
