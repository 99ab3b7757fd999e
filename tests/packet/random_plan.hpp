// SPDX-License-Identifier: Apache-2.0
// A random small network of hosts (memory, NIC) on a tree of switches or on leaves and spines, and up to twelve flows.
// What waits for what has no cycle, so without loss everything arrives. Half of the networks have round numbers, hence ties.
#pragma once

#include "tests/packet/plan.hpp"

namespace weft::test {

Plan random_plan(std::uint64_t seed);

}  // namespace weft::test
