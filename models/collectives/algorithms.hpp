// SPDX-License-Identifier: Apache-2.0
// The catalogue of collective algorithms. One file each, ending in its record; its preface says what moves where. A new one
// is declared here, listed in catalog.cc, and proved by conformance.test.cc as soon as it is.
#pragma once

#include <span>
#include <string_view>

#include "sim/workload/schedule.hpp"

namespace weft::collectives {

extern const AlgorithmEntry kRing;
extern const AlgorithmEntry kDoubleBinaryTree;
extern const AlgorithmEntry kHalvingDoubling;
extern const AlgorithmEntry kDirect;
extern const AlgorithmEntry kPairwise;
extern const AlgorithmEntry kBruck;
extern const AlgorithmEntry kBinomial;
extern const AlgorithmEntry kHierarchical;
extern const AlgorithmEntry kInSwitch;
extern const AlgorithmEntry kInNetwork;

std::span<const AlgorithmEntry* const> all_algorithms();

// nullptr when there is none of this name.
const AlgorithmEntry* find_algorithm(std::string_view name);

}  // namespace weft::collectives
