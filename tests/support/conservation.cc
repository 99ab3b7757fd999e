// SPDX-License-Identifier: Apache-2.0
#include "tests/support/conservation.hpp"

#include <cmath>
#include <map>

#include <fmt/format.h>

namespace weft::test {

std::string not_conserved(const Fabric& fabric, const Route& route, NodeId src, NodeId dst) {
  std::map<NodeId, double> surplus{{src, 1.0}};
  surplus[dst] -= 1;
  for (const Share& share : route.shares) {
    if (share.resource >= fabric.link_count())
      continue;  // two-way budgets repeat what the links say
    const Link& link = fabric.link(LinkId{share.resource});
    surplus[link.from] -= share.weight;
    surplus[link.to] += share.weight;
  }
  for (const auto& [node, rest] : surplus) {
    if (std::abs(rest) > 1e-9) return fmt::format("{} keeps {}", fabric.name(node), rest);
  }
  return {};
}

}  // namespace weft::test
