// SPDX-License-Identifier: Apache-2.0
// All that NCCL finds out about one node. Nodes with the same kind of server, GPUs and cabled NICs are studied once.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "models/nccl/connect.hpp"
#include "models/nccl/variables.hpp"

namespace weft::nccl {

struct NodeStudy {
  NodeChannels channels;
  CpuKind cpu = CpuKind::amd;
  int least_capability = 0, most_capability = 0;
  bool nvs = false, multicast = false;
  std::uint32_t hosts = 1;
  Speed least_nic = 0;
  std::uint32_t peers_inside =
      ~0U;  // channels that the slowest pair of GPUs wants for point to point
  std::uint32_t nets_by_speed = 0;  // NICs that saturate the GPU with the fewest
  Speed net_speed = 0;              // of those
  std::vector<std::string> notes;
};

// `positions`: of the GPUs in the server, in rank order; `nodes`: of the whole communicator.
std::unique_ptr<NodeStudy> study_node(const ServerType& type,
                                      const std::vector<std::uint32_t>& positions,
                                      const NicPorts& ports, const Rules& rules,
                                      const Variables& variables, std::size_t nodes);

}  // namespace weft::nccl
