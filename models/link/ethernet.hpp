// SPDX-License-Identifier: Apache-2.0
// Ethernet with a header stack. `rate` is the MAC's rate: after line coding and error correction.
//
// Every frame: preamble 8 + header 14 + FCS 4 + gap 12 = 38 B beside its contents. Then by transport:
//
//     raw     contents = mtu                                          payload mtu, overhead 38
//     roce    IP 20 + UDP 8 + BTH 12 + data + ICRC 4                  payload mtu, overhead 38 + 44 = 82
//     tcp     IP 20 + TCP 20 + options 12 (timestamps) + data         payload mtu - 52, overhead 38 + 52 = 90
//     iwarp   in the TCP segment one FPDU: MPA length 2, DDP and RDMAP 14, data, CRC 4, and a marker of 4 B in each 512 B
//
// Trap: `mtu` of roce is RDMA's path MTU (data of one packet, 256 B to 4 KiB). `mtu` of the others is IP's (1500, 9000).
// Assumes:      full frames, IPv4, no VLAN tag, RoCE's RETH (16 B) only in the first packet of a message.
//
// Example:      RoCE 100 Gb/s, 4 KiB: 4096/4178 = 98.0 Gb/s.  With 1 KiB: 1024/1106 = 92.6 Gb/s.
//               A published ib_write_bw of 64 KiB over ConnectX-5 prints "Mtu 4096" and 92.40 Gb/s: 5.7 % below the first
//               and 0.2 % below the second. It connected by rdma_cm, which takes the path MTU from the interface, and an
//               interface of 1500 B leaves 1024: we read it as that, and a 400 Gb/s adapter's 368.5 (1 KiB: 370.3) too.
//               TCP 9000: 99.0 %.  TCP 1500: 94.1 %.  iWARP 9000: 98.0 %.
// Reference:    IEEE 802.3; InfiniBand Architecture Specification annex A17 (RoCEv2); RFC 7323; RFC 5040, 5041, 5044.
#pragma once

#include "sim/fabric/link_law.hpp"

namespace weft {

extern const LinkClassEntry kEthernetLink;

}  // namespace weft
