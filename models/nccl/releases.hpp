// SPDX-License-Identifier: Apache-2.0
// What NCCL's tuner believes, by release: latencies of algorithms and hops, limits of channels. They select algorithm and
// protocol; none of them is a simulated time.
#pragma once

#include <array>
#include <cstdint>

#include "models/nccl/graph.hpp"

namespace weft {

enum class NcclAlgorithm : std::uint8_t {
  tree,
  ring,
  collnet_direct,
  collnet_chain,
  nvls,
  nvls_tree,
  pat
};
inline constexpr std::size_t kNcclAlgorithms = 7;
constexpr auto enum_names(NcclAlgorithm) {
  using enum NcclAlgorithm;
  return std::array<EnumName<NcclAlgorithm>, kNcclAlgorithms>{{{tree, "tree"},
                                                               {ring, "ring"},
                                                               {collnet_direct, "collnet_direct"},
                                                               {collnet_chain, "collnet_chain"},
                                                               {nvls, "nvls"},
                                                               {nvls_tree, "nvls_tree"},
                                                               {pat, "pat"}}};
}

enum class NcclProtocol : std::uint8_t { ll, ll128, simple };
inline constexpr std::size_t kNcclProtocols = 3;
constexpr auto enum_names(NcclProtocol) {
  using enum NcclProtocol;
  return std::array<EnumName<NcclProtocol>, kNcclProtocols>{
      {{ll, "ll"}, {ll128, "ll128"}, {simple, "simple"}}};
}

struct NcclRelease {
  using ByProtocol = std::array<double, kNcclProtocols>;
  using ByAlgorithm = std::array<ByProtocol, kNcclAlgorithms>;
  using ByArch =
      std::array<std::array<double, 3>, 4>;  // Volta, Ampere, Hopper, Blackwell; 1, 2, more nodes

  NcclVersion version;
  ByAlgorithm base;                                                    // us
  std::array<ByAlgorithm, 3> hop;                                      // us; NVLink, PCIe, network
  std::array<std::array<double, 24>, kNcclProtocols> tree_correction;  // by power of two from 64 B
  ByArch ll_max, tree_max, ring_ll128_max, tree_ll128_max, nvls_tree_max;  // GB/s
};

NcclRelease nccl_release(NcclVersion version);

// Where a machine stands in NcclRelease::ByArch.
constexpr std::size_t nccl_arch_row(int compute_capability) {
  return compute_capability >= 100  ? 3
         : compute_capability >= 90 ? 2
         : compute_capability >= 80 ? 1
                                    : 0;
}
constexpr std::size_t nccl_scale_column(std::size_t nodes) { return nodes < 3 ? nodes - 1 : 2; }

}  // namespace weft
