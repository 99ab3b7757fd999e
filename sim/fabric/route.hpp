// SPDX-License-Identifier: Apache-2.0
// What a flow crosses on its way.
#pragma once

#include <cstdint>
#include <vector>

#include "sim/core/share.hpp"
#include "sim/fabric/fabric.hpp"

namespace weft {

struct Route {
  std::vector<Share> shares;  // no resource twice, in order of first use
  std::vector<LinkId> hops;   // one representative way, for people
  Time latency{0};            // propagation, switches and NICs

  void clear() {
    shares.clear();
    hops.clear();
    latency = {0};
  }
  // Adds `weight` of a resource, merging with what the route holds.
  void add(std::uint32_t resource, double weight) {
    for (Share& share : shares) {
      if (share.resource == resource) {
        share.weight += weight;
        return;
      }
    }
    shares.push_back({resource, weight});
  }
  // The rate of a lone flow: the smallest capacity / weight.
  Bandwidth rate(const Fabric& fabric) const;
};

}  // namespace weft
