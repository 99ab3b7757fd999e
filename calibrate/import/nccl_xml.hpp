// SPDX-License-Identifier: Apache-2.0
// NCCL's topology file (NCCL_TOPO_DUMP_FILE, NCCL_TOPO_FILE): the PCIe tree as the driver shows it.
//
//   <system version="1">
//     <cpu host_hash="0xa" numaid="0" affinity="ff" arch="x86_64" vendor="GenuineIntel">
//       <pci busid="0000:16:00.0" class="0x060400" link_speed="32.0 GT/s PCIe" link_width="16">
//         <pci busid="0000:18:00.0" class="0x030200" vendor="0x10de" device="0x2335" ...>
//           <gpu dev="0" sm="90" rank="0" gdr="1"> <nvlink target="..." count="18" tclass="0x068000"/> </gpu>
//
// Devices are told by their child (gpu, nic) or, in files that clouds ship, by the PCI class: 0x0302 GPU, 0x0207 and 0x0200
// NIC, 0x0604 bridge, 0x0680 NVSwitch. A speed that is empty or of no generation is unknown, not zero.
// NVLinks to devices that are not in the file are counted as hidden.
//
// Belief. NCCL takes some files for another machine than they describe; nccl_beliefs says where:
//         it compares link_speed by prefix with two spellings, so "32.0 GT/s" counts as 8 GT/s; a width of 0 counts as 16;
//         numaid -1 puts all on one CPU; gdr="0" everywhere keeps NICs away from GPU memory.
// Reference: NVIDIA/nccl src/graph/xml.cc, topo.cc, topo.h.
#pragma once

#include "calibrate/import/machine.hpp"

namespace weft {

extern const Importer kNcclXmlImporter;

// Attributes as written, for what NCCL makes of them.
struct XmlLink {
  std::string device, speed, width;
  Place place{};
};

// Hundreds of Mb/s of a lane as NCCL reads link_speed: 240 for "32 GT/s" and "32.0 GT/s PCIe", 60 for what it does not know.
int nccl_lane_speed(std::string_view link_speed);
// GT/s of the text itself: 32 for "32.0 GT/s"; nullopt when it holds none.
std::optional<double> parse_link_speed(std::string_view link_speed);

void add_nccl_beliefs(const Machine& machine, const std::vector<XmlLink>& links, Imported& out);

}  // namespace weft
