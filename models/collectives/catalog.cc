// SPDX-License-Identifier: Apache-2.0
#include <array>

#include "models/collectives/algorithms.hpp"

namespace weft::collectives {

std::span<const AlgorithmEntry* const> all_algorithms() {
  static constexpr std::array kAll{
      &kRing,  &kDoubleBinaryTree, &kHalvingDoubling, &kDirect,   &kPairwise,
      &kBruck, &kBinomial,         &kHierarchical,    &kInSwitch, &kInNetwork,
  };
  return kAll;
}

const AlgorithmEntry* find_algorithm(std::string_view name) {
  for (const AlgorithmEntry* entry : all_algorithms()) {
    if (entry->name == name) return entry;
  }
  return nullptr;
}

}  // namespace weft::collectives
