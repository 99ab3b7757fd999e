// SPDX-License-Identifier: Apache-2.0
// Faults that make a healthy machine slow (or a described one look slow), each as a change that weft can simulate.
//
//   kernel-sockets        no RDMA plug-in, or none that works: NCCL falls back to TCP of the kernel
//   no-gpudirect          NICs do not reach GPU memory: everything through host memory
//   one-nic, fewer-nics   all GPUs of a node use one NIC, or a half or a quarter of them
//   slow-ports            cables trained down to a half or a quarter, or one of two ports of a bond carries everything
//   per-connection-limit  a window of 128 KiB per round trip of 8 to 12 us: linear in connections, whatever the link does
//   shared-uplink         leaves with 2, 4 or 8 times too few uplinks, one server per leaf
//   half-pcie-width       PCIe slots of GPUs and NICs at half width
//   p2p-off               no peer access between GPUs: driver, IOMMU or NCCL_P2P_DISABLE
//   acs                   PCIe switches send peer-to-peer traffic up to the root complex and back
//   cross-socket          no peer access across CPU sockets, or a slow link between them
//   no-nvlink             NVLink does not work: PCIe carries everything
//   half-nvlinks          half of the links of every bundle are down
//   nvls-off, ll128-off   NCCL does not use reduction in the switch, or the protocol LL128
//   faster-ports, more-nvlinks   the machine has twice what was described
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "calibrate/explain_log.hpp"

namespace weft {

// One way in which a fault may show.
struct FaultVariant {
  std::string detail;              // "the first of 8 NICs"
  std::optional<FabricSpec> spec;  // a changed machine
  NcclSetup setup;
};

struct Fault {
  std::string name, explains, measure_next;
  bool faster = false;  // it makes the machine faster
  std::vector<FaultVariant> variants;
};

// The faults that this machine and this operation can have.
std::vector<Fault> known_faults(const LogQuestion& question);

}  // namespace weft
