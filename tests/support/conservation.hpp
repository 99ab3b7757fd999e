// SPDX-License-Identifier: Apache-2.0
// What flows into a node flows out of it, whatever the striping: the law behind every route.
#pragma once

#include <string>

#include "sim/fabric/routing.hpp"

namespace weft::test {

// Empty when the route's link weights carry exactly one unit from `src` to `dst`; else the first node where they do not.
std::string not_conserved(const Fabric& fabric, const Route& route, NodeId src, NodeId dst);

}  // namespace weft::test
