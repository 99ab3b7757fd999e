// SPDX-License-Identifier: Apache-2.0
#include "sim/fabric/dragonfly_routes.hpp"

#include <map>
#include <set>

#include <boost/graph/adjacency_list.hpp>
#include <boost/graph/topological_sort.hpp>
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "sim/fabric/analysis.hpp"
#include "sim/fabric/routes.test.hpp"
#include "sim/fabric/routing.hpp"
#include "tests/support/conservation.hpp"
#include "tests/support/tiny.hpp"

namespace weft {
namespace {

Fabric dragonfly(int groups, int routers, int hosts, int global, std::string_view routing) {
  test::TinyOptions options;
  options.servers = groups * routers * hosts;
  options.network = fmt::format(
      R"("generator": "dragonfly", "routers_per_group": {}, "hosts_per_router": {},
         "global_links_per_router": {}, "routing": "{}")",
      routers, hosts, global, routing);
  return test::fabric_from("gpu g -- 400 Gb/s, 0 ns -- nic n", options);
}

constexpr auto all = [](LinkId) { return true; };

// Every way from the first block on; calls visit(link and lane before or none, link and lane).
void each_step(const LaneWays& ways, const auto& visit) {
  std::vector<std::uint32_t> open;
  std::set<std::uint32_t> seen;
  for (std::uint32_t i = 0; i < ways.first; ++i) {
    visit(nullptr, ways.hops[i]);
    open.push_back(i);
  }
  while (!open.empty()) {
    const std::uint32_t at = open.back();
    open.pop_back();
    if (!seen.insert(at).second) continue;
    const LaneHop& hop = ways.hops[at];
    for (std::uint32_t i = hop.next; i < hop.next + hop.count; ++i) {
      visit(&hop, ways.hops[i]);
      open.push_back(i);
    }
  }
}

TEST(DragonflyRoutes, DetoursCrossTwoGlobalLinksAndMinimalWaysOne) {
  const Fabric fabric = dragonfly(9, 4, 2, 2, "ugal");
  const DragonflyRoutes routes(fabric);
  EXPECT_EQ(routes.groups(), 9U);
  const NodeId from = *fabric.find_node("group0/router1"), to = *fabric.find_node("group3/router2");
  for (const Routing routing : {Routing::minimal, Routing::valiant, Routing::ugal}) {
    const LaneWays ways = routes.find(from, to, routing, all);
    EXPECT_EQ(ways.minimal > 0, routing != Routing::valiant);
    // One global link between two groups: a detour for each of the seven others.
    EXPECT_EQ(ways.first - ways.minimal, routing == Routing::minimal ? 0 : 7);
    each_step(ways, [&](const LaneHop* before, const LaneHop& hop) {
      const bool global = fabric.link(hop.link).tier == Tier::global;
      if (before == nullptr) {
        EXPECT_EQ(fabric.link(hop.link).from, from);
        EXPECT_EQ(hop.lane, 0);
      } else {
        EXPECT_EQ(fabric.link(before->link).to, fabric.link(hop.link).from);
        EXPECT_GT(before->length, hop.length);
        const bool crossed = fabric.link(before->link).tier == Tier::global;
        EXPECT_EQ(hop.lane, before->lane + (crossed ? 1 : 0));
      }
      EXPECT_LT(hop.lane, global ? kDragonflyLanes - 1 : kDragonflyLanes);
      if (hop.count == 0) {
        EXPECT_EQ(fabric.link(hop.link).to, to);
      }
      EXPECT_LE(hop.length, 5);
    });
  }
}

// A whole group sends to the next one: minimal ways share one link, detours have nearly half of what the group can send.
TEST(DragonflyRoutes, SharesAreThoseOfTheClosedForm) {
  const Fabric fabric = dragonfly(9, 4, 2, 2, "valiant");
  Routes routes(fabric);
  for (const auto& [routing, most] :
       {std::pair{Routing::minimal, 8.0}, {Routing::valiant, 16.0 / 7}}) {
    std::map<std::uint32_t, double> load;
    for (std::size_t i = 0; i < fabric.gpus().size(); ++i) {
      const NodeId src = fabric.gpus()[i], dst = fabric.gpus()[(i + 8) % 72];
      const auto way = routes.transfer(src, dst, {.routing = routing});
      ASSERT_TRUE(way);
      EXPECT_EQ(test::not_conserved(fabric, way->legs.front().route, src, dst), "");
      for (const Share& share : way->legs.front().route.shares)
        load[share.resource] += share.weight;
    }
    double worst = 0;
    for (const auto& [link, sum] : load) {
      if (fabric.link(LinkId{link}).tier == Tier::global) worst = std::max(worst, sum);
    }
    EXPECT_NEAR(worst, most, 1e-9);
  }
}

TEST(DragonflyRoutes, GoAroundALinkThatIsDown) {
  const Fabric fabric = dragonfly(4, 2, 1, 2, "ugal");
  const DragonflyRoutes routes(fabric);
  const NodeId from = *fabric.find_node("group0/router0"), to = *fabric.find_node("group1/router0");
  std::set<LinkId> direct;
  each_step(routes.find(from, to, Routing::minimal, all), [&](const LaneHop*, const LaneHop& hop) {
    if (fabric.link(hop.link).tier == Tier::global) direct.insert(hop.link);
  });
  ASSERT_FALSE(direct.empty());
  const auto rest = [&](LinkId l) { return !direct.contains(l); };
  const LaneWays without = routes.find(from, to, Routing::ugal, rest);
  EXPECT_GT(without.first, without.minimal);
  each_step(without, [&](const LaneHop*, const LaneHop& hop) { EXPECT_TRUE(rest(hop.link)); });
  EXPECT_EQ(routes.find(from, to, Routing::minimal, [](LinkId) { return false; }).first, 0);
}

// Dally and Seitz: no circle of links and lanes that wait for each other. Searched in full, over all pairs.
RC_GTEST_PROP(DragonflyRoutes, LanesNeverWaitInACircle, ()) {
  const auto between = [](int least, int most) { return *rc::gen::inRange(least, most + 1); };
  const int routers = between(1, 4), hosts = between(1, 2), global = between(1, 3);
  const int groups = between(1, std::min(6, routers * global + 1));
  const Fabric fabric = dragonfly(groups, routers, hosts, global, "ugal");
  const DragonflyRoutes routes(fabric);
  boost::adjacency_list<boost::setS, boost::vecS, boost::directedS> waits(
      std::max<std::size_t>(1, fabric.link_count()) * kDragonflyLanes);
  const auto vertex = [](const LaneHop& hop) {
    return std::size_t{hop.link.v} * kDragonflyLanes + hop.lane;
  };
  for (const NodeId from : fabric.switches()) {
    for (const NodeId to : fabric.switches()) {
      if (from == to) continue;
      const LaneWays ways = routes.find(from, to, Routing::ugal, all);
      RC_ASSERT(ways.first > 0);
      each_step(ways, [&](const LaneHop* before, const LaneHop& hop) {
        RC_ASSERT(hop.lane < kDragonflyLanes);
        if (before != nullptr) add_edge(vertex(*before), vertex(hop), waits);
      });
    }
  }
  std::vector<std::size_t> order;
  boost::topological_sort(waits, std::back_inserter(order));  // throws when there is a circle
  NetworkRoutes network(fabric);
  RC_ASSERT(find_dependency_cycle(fabric, network).links.empty());
}

}  // namespace
}  // namespace weft
