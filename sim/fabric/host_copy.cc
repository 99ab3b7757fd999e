// SPDX-License-Identifier: Apache-2.0
// Ways between a GPU and the memory of its host, of Routes.
#include <optional>

#include "sim/fabric/routing.hpp"

namespace weft {

std::optional<Leg> Routes::host_copy(NodeId gpu, HostWay way) {
  const Node& node = fabric_.node(gpu);
  const std::uint32_t dram = nearest(node.server, node.index, NodeKind::dram);
  if (dram == kNoResource) return std::nullopt;
  const bool within = way == HostWay::within;
  const std::uint32_t end = within ? nearest(node.server, dram, NodeKind::cpu) : node.index;
  if (end == kNoResource) return std::nullopt;
  const LocalPath& path = way == HostWay::to_host ? local(node.server, false, end, dram)
                                                  : local(node.server, false, dram, end);
  if (!path.found) return std::nullopt;
  Leg leg;
  append_local(node.server, path, !within, leg.route);
  if (!within) leg.startup = fabric_.type_of(node.server).spec.copy.latency;
  return leg;
}

}  // namespace weft
