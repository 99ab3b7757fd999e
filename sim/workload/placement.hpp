// SPDX-License-Identifier: Apache-2.0
// Which GPUs a job gets, and what a group of GPUs looks like to a collective algorithm.
#pragma once

#include <cstdint>
#include <limits>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "sim/core/ids.hpp"
#include "sim/fabric/routing.hpp"
#include "sim/workload/schedule.hpp"

namespace weft {

enum class PlacementPolicy { packed, spread, random };
constexpr auto enum_names(PlacementPolicy) {
  using enum PlacementPolicy;
  return std::array<EnumName<PlacementPolicy>, 3>{
      {{packed, "packed"}, {spread, "spread"}, {random, "random"}}};
}

// Hands out GPUs, each at most once.
class Placement {
 public:
  static constexpr std::size_t kAllOfServer = std::numeric_limits<std::size_t>::max();

  Placement(const Fabric& fabric, std::uint64_t seed)
      : fabric_(fabric), seed_(seed), taken_(fabric.gpus().size(), 0) {}

  // GPUs not taken, of the first `per_server` of each server.
  std::size_t free(std::size_t per_server = kAllOfServer) const;
  // `count` GPUs in rank order; nullopt when fewer are free. packed: in the order of the fabric; spread: one of each server
  // in turn; random: by the seed.
  std::optional<std::vector<NodeId>> take(std::size_t count, PlacementPolicy policy,
                                          std::uint64_t job, std::size_t per_server = kAllOfServer);

 private:
  std::vector<std::uint32_t> candidates(std::size_t per_server) const;

  const Fabric& fabric_;
  std::uint64_t seed_;
  std::vector<std::uint8_t> taken_;
};

// Positions of the GPUs of one server that are the first to call a NIC their own. Ring k starts its order at owner k and takes
// that GPU's NIC k / owners (GPUs may have several). Never empty.
std::vector<std::uint32_t> nic_owners(Routes& routes, std::span<const NodeId> gpus);

// Servers, ring orders and in-switch reduction of a group. Inside a server whose GPUs form a mesh (no switch) the orders are
// Hamiltonian cycles over direct links that together use every link as evenly as can be found. Across equal servers every
// second one is walked backwards, so each hop between servers joins GPUs of the same position and stays on one rail; the hops
// of a ring alternate between two rails, that of owner k and that of the last GPU of its order (with an odd number of
// servers the hop that closes the ring changes rails).
GroupShape group_shape(Routes& routes, std::span<const NodeId> gpus);

}  // namespace weft
