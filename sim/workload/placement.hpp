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
  return std::array<EnumName<PlacementPolicy>, 3>{{{packed, "packed"}, {spread, "spread"}, {random, "random"}}};
}

// Hands out GPUs, each at most once.
class Placement {
 public:
  static constexpr std::size_t kAllOfServer = std::numeric_limits<std::size_t>::max();

  Placement(const Fabric& fabric, std::uint64_t seed) : fabric_(fabric), seed_(seed), taken_(fabric.gpus().size(), 0) {}

  // GPUs not taken, of the first `per_server` of each server.
  std::size_t free(std::size_t per_server = kAllOfServer) const;
  // `count` GPUs in rank order; nullopt when fewer are free. packed: in the order of the fabric; spread: one of each server
  // in turn; random: by the seed.
  std::optional<std::vector<NodeId>> take(std::size_t count, PlacementPolicy policy, std::uint64_t job,
                                          std::size_t per_server = kAllOfServer);

 private:
  std::vector<std::uint32_t> candidates(std::size_t per_server) const;

  const Fabric& fabric_;
  std::uint64_t seed_;
  std::vector<std::uint8_t> taken_;
};

// Servers, ring orders and in-switch reduction of a group. Inside a server whose GPUs form a mesh (no switch) the orders are
// Hamiltonian cycles over direct links that together use every link as evenly as can be found; across servers ring k enters
// and leaves each server at the same GPU, so that it stays on one rail (with an odd number of servers the ring must cross
// rails once).
// Positions of the GPUs of one server that are the first to call a NIC their own; ring k enters and leaves at owner k, and
// takes that GPU's NIC k / owners (GPUs may have several). Never empty.
std::vector<std::uint32_t> nic_owners(Routes& routes, std::span<const NodeId> gpus);

GroupShape group_shape(Routes& routes, std::span<const NodeId> gpus);

}  // namespace weft
