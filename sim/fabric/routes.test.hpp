// SPDX-License-Identifier: Apache-2.0
// What the tests of ways ask of a route.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include <gtest/gtest.h>

#include "sim/fabric/routing.hpp"
#include "tests/support/tiny.hpp"

namespace weft::test {

inline double weight_of(const Route& route, std::uint32_t resource) {
  for (const Share& share : route.shares) {
    if (share.resource == resource) return share.weight;
  }
  return 0;
}

inline double weight_of(const Fabric& fabric, const Route& route, std::string_view name) {
  return weight_of(route, link(fabric, name).v);
}

inline std::vector<std::string> hop_names(const Fabric& fabric, const Route& route) {
  std::vector<std::string> out;
  for (const LinkId l : route.hops) out.push_back(fabric.name(l));
  return out;
}

// The route of the single leg from GPU to GPU.
inline Route route_of(Routes& routes, std::string_view src, std::string_view dst,
                      const TransferOptions& options = {}) {
  const auto transfer =
      routes.transfer(node(routes.fabric(), src), node(routes.fabric(), dst), options);
  EXPECT_TRUE(transfer.has_value()) << src << " " << dst;
  EXPECT_EQ(transfer->legs.size(), 1U);
  return transfer->legs.front().route;
}

}  // namespace weft::test
