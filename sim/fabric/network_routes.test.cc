// SPDX-License-Identifier: Apache-2.0
#include "sim/fabric/network_routes.hpp"

#include <map>
#include <set>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "sim/fabric/routes.test.hpp"
#include "tests/support/conservation.hpp"
#include "tests/support/tiny.hpp"

namespace weft {
namespace {

using test::fabric_from;
using test::hop_names;
using test::leaf_spine;
using test::link;
using test::node;
using test::not_conserved;
using test::route_of;
using test::single_switch;
using test::TinyOptions;
using test::weight_of;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

const char* const kHost = "gpu g -- 100 Gb/s, 100 ns -- nic n";

std::string spine_of(const Fabric& fabric, const Route& route) {
  for (const LinkId l : route.hops) {
    const Node& to = fabric.node(fabric.link(l).to);
    if (to.kind == NodeKind::network_switch && to.level == 2) return fabric.name(fabric.link(l).to);
  }
  return {};
}

TEST(Routes, OneLeafIsEnoughForNeighbours) {
  const Fabric fabric = fabric_from(kHost, {.servers = 4, .network = leaf_spine(2, 2)});
  Routes routes(fabric);
  EXPECT_THAT(hop_names(fabric, route_of(routes, "server0/g", "server1/g")),
              ElementsAre("server0/g:server0/n", "server0/n:leaf0", "leaf0:server1/n",
                          "server1/n:server1/g"));
  EXPECT_EQ(route_of(routes, "server0/g", "server2/g").hops.size(), 6U);
}

TEST(Routes, SinglePathIsDModK) {
  const Fabric fabric = fabric_from(kHost, {.servers = 16, .network = leaf_spine(4, 4, "single")});
  Routes routes(fabric);
  for (int dst = 0; dst < 16; ++dst) {
    for (int src = 0; src < 16; ++src) {
      if (src / 4 == dst / 4) continue;
      const Route route =
          route_of(routes, fmt::format("server{}/g", src), fmt::format("server{}/g", dst),
                   {.hash = static_cast<std::uint64_t>(src) * 77, .routing = Routing::single});
      // Whoever sends: the destination alone chooses the spine.
      EXPECT_EQ(spine_of(fabric, route), fmt::format("spine{}", dst % 4));
    }
  }
}

// Every NIC i to NIC i + shift of the same rail, all at once.
void expect_shifts_do_not_collide(const Fabric& fabric) {
  Routes routes(fabric);
  const auto servers = static_cast<int>(fabric.server_count());
  const std::size_t rails = fabric.gpus().size() / fabric.server_count();
  for (int shift = 1; shift < servers; ++shift) {
    std::map<std::uint32_t, double> load;
    for (std::size_t src = 0; src < fabric.gpus().size(); ++src) {
      const std::size_t dst =
          (src + static_cast<std::size_t>(shift) * rails) % fabric.gpus().size();
      const auto transfer =
          routes.transfer(fabric.gpus()[src], fabric.gpus()[dst], {.routing = Routing::single});
      ASSERT_TRUE(transfer);
      for (const Share& share : transfer->legs.front().route.shares)
        load[share.resource] += share.weight;
    }
    for (const auto& [resource, weight] : load)
      ASSERT_LE(weight, 1) << "shift " << shift << " " << fabric.resource_name(resource);
  }
}

TEST(Routes, DModKCarriesEveryShiftWithoutCollision) {
  const auto network = [](std::string_view generator, int tiers, int ports) {
    return fmt::format(
        R"("generator": "{}", "tiers": {}, "routing": "single", "switch": {{"ports": {}, "link": {{"class": "ethernet",
        "rate": "100 Gb/s", "delay": "1 ns", "efficiency": 1}}}})",
        generator, tiers, ports);
  };
  // Three leaves of nine under three spines, three cables each: parallel cables are taken as carefully as spines.
  expect_shifts_do_not_collide(
      fabric_from(kHost, {.servers = 27, .network = network("fat-tree", 2, 18)}));
  expect_shifts_do_not_collide(
      fabric_from(kHost, {.servers = 32, .network = network("fat-tree", 2, 8)}));
  expect_shifts_do_not_collide(
      fabric_from(kHost, {.servers = 16, .network = network("fat-tree", 3, 4)}));
  // Leaves that hold one rail each.
  expect_shifts_do_not_collide(
      fabric_from("pcie_switch p[0-1] -- 100 Gb/s, 1 ns -- cpu c; gpu g[0-1] -- 100 Gb/s, 1 ns, "
                  "each -- p[0-1]; nic n[0-1] -- 100 Gb/s, 1 ns, each -- p[0-1]",
                  {.servers = 16, .network = network("rail-optimised", 2, 8)}));
}

TEST(Routes, SinglePathsOverManyBranchingsStayWhole) {
  // Two next hops at nearly every one of up to 80 steps.
  const Fabric fabric = fabric_from(
      kHost, {.servers = 6400,
              .network = R"("generator": "torus", "dims": [80, 80], "routing": "single")"});
  Routes routes(fabric);
  for (const char* dst : {"server1/g", "server3239/g", "server6399/g"}) {
    const Route route = route_of(routes, "server0/g", dst, {.routing = Routing::single});
    EXPECT_THAT(not_conserved(fabric, route, node(fabric, "server0/g"), node(fabric, dst)),
                IsEmpty());
  }
}

TEST(Routes, EcmpDependsOnTheLabelAloneAndUsesEverySpine) {
  const Fabric fabric = fabric_from(kHost, {.servers = 4, .network = leaf_spine(2, 4)});
  Routes routes(fabric), again(fabric);
  std::map<std::string, int> used;
  for (std::uint64_t hash = 0; hash < 400; ++hash) {
    const Route route = route_of(routes, "server0/g", "server3/g", {.hash = hash});
    EXPECT_EQ(route.hops, route_of(again, "server0/g", "server3/g", {.hash = hash}).hops);
    ++used[spine_of(fabric, route)];
  }
  // Binomial around 100 with deviation 8.7; 5 of them.
  EXPECT_EQ(used.size(), 4U);
  for (const auto& [spine, count] : used) EXPECT_NEAR(count, 100, 44) << spine;
}

TEST(Routes, SpraySpreadsEvenlyOverAllShortestWays) {
  const Fabric fabric = fabric_from(kHost, {.servers = 4, .network = leaf_spine(2, 4)});
  for (const Routing routing : {Routing::spray, Routing::adaptive, Routing::flowlet}) {
    Routes routes(fabric);
    const Route route = route_of(routes, "server0/g", "server3/g", {.routing = routing});
    for (int s = 0; s < 4; ++s) {
      EXPECT_EQ(weight_of(fabric, route, fmt::format("leaf0:spine{}", s)), 0.25);
      EXPECT_EQ(weight_of(fabric, route, fmt::format("spine{}:leaf1", s)), 0.25);
    }
    EXPECT_EQ(route.hops.size(), 6U);  // one way is shown to people
    EXPECT_THAT(not_conserved(fabric, route, node(fabric, "server0/g"), node(fabric, "server3/g")),
                IsEmpty());
  }
}

TEST(Routes, SprayWeighsWaysByTheirRates) {
  const std::string wide =
      R"({"class": "ethernet", "rate": "300 Gb/s", "delay": "1 ns", "efficiency": 1})";
  const Fabric fabric = fabric_from(kHost, {.servers = 2,
                                            .network = fmt::format(R"("generator": "explicit",
      "switches": ["l0", "l1", "s0", "s1"], "cables": [{{"a": "server0/n", "b": "l0"}}, {{"a": "server1/n", "b": "l1"}},
      {{"a": "l0", "b": "s0", "link": {0}}}, {{"a": "s0", "b": "l1", "link": {0}}}, {{"a": "l0", "b": "s1"}}, {{"a": "s1", "b": "l1"}}])",
                                                                   wide)});
  Routes routes(fabric);
  const Route route = route_of(routes, "server0/g", "server1/g", {.routing = Routing::spray});
  EXPECT_EQ(weight_of(fabric, route, "l0:s0"), 0.75);
  EXPECT_EQ(weight_of(fabric, route, "s1:l1"), 0.25);
}

TEST(Routes, ALostLinkIsAvoidedUntilItIsBack) {
  const Fabric fabric = fabric_from(kHost, {.servers = 4, .network = leaf_spine(2, 2)});
  Routes routes(fabric);
  const LinkId lost[] = {link(fabric, "leaf0:spine0"), link(fabric, "spine0:leaf1")};
  const auto spines = [&](std::string_view src, std::string_view dst) {
    std::set<std::string> seen;
    for (std::uint64_t hash = 0; hash < 64; ++hash)
      seen.insert(spine_of(fabric, route_of(routes, src, dst, {.hash = hash})));
    return seen;
  };
  ASSERT_EQ(spines("server0/g", "server2/g").size(), 2U);
  for (const LinkId l : lost) {  // near the source, and behind the choice
    routes.network().set_down(l, true);
    EXPECT_TRUE(routes.network().is_down(l));
    EXPECT_THAT(spines("server0/g", "server2/g"), ElementsAre("spine1"));
    EXPECT_EQ(spines("server2/g", "server0/g").size(), 2U) << "the other direction is whole";
    const Route sprayed = route_of(routes, "server0/g", "server2/g", {.routing = Routing::spray});
    EXPECT_EQ(weight_of(fabric, sprayed, "leaf0:spine1"), 1);
    routes.network().set_down(l, false);
    EXPECT_EQ(spines("server0/g", "server2/g").size(), 2U);
    EXPECT_EQ(
        weight_of(fabric, route_of(routes, "server0/g", "server2/g", {.routing = Routing::spray}),
                  "leaf0:spine0"),
        0.5);
  }
}

TEST(Routes, ACutNetworkHasNoWay) {
  const Fabric fabric = fabric_from(kHost, {.servers = 4, .network = leaf_spine(2, 2)});
  for (const char* cut : {"server0/n:leaf0", "leaf1:server2/n"}) {
    Routes routes(fabric);
    routes.network().set_down(link(fabric, cut), true);
    EXPECT_FALSE(routes.transfer(node(fabric, "server0/g"), node(fabric, "server2/g"))) << cut;
    EXPECT_TRUE(routes.transfer(node(fabric, "server2/g"), node(fabric, "server0/g"))) << cut;
  }
  Routes routes(fabric);
  for (const char* cut : {"leaf0:spine0", "leaf0:spine1"})
    routes.network().set_down(link(fabric, cut), true);
  EXPECT_FALSE(routes.transfer(node(fabric, "server0/g"), node(fabric, "server2/g")));
  EXPECT_TRUE(routes.transfer(node(fabric, "server0/g"), node(fabric, "server1/g")));
  Route route;
  EXPECT_FALSE(routes.network().append(node(fabric, "leaf0"), node(fabric, "leaf1"), 0, 0,
                                       Routing::ecmp, route));
}

TEST(Routes, DistancesGrowByOneFromHopToHop) {
  const Fabric fabric =
      fabric_from(kHost, {.servers = 16, .network = R"("generator": "torus", "dims": [4, 2])"});
  Routes routes(fabric);
  for (const NodeId leaf : fabric.switches()) {
    const std::vector<std::uint16_t> field = routes.network().distances(leaf);
    EXPECT_EQ(field[fabric.node(leaf).index], 0);
    for (const NodeId s : fabric.switches()) {
      int nearest = NetworkRoutes::kFar;
      for (const LinkId l : fabric.out_links(s)) {
        const Node& to = fabric.node(fabric.link(l).to);
        if (to.kind == NodeKind::network_switch) nearest = std::min<int>(nearest, field[to.index]);
      }
      if (s != leaf) {
        EXPECT_EQ(field[fabric.node(s).index], nearest + 1);
      }
    }
  }
}

TEST(Routes, NetworkLatencyCountsNicsSwitchesAndCables) {
  TinyOptions options{.servers = 2};
  options.network = R"("generator": "single-switch", "switch": {"ports": 4, "latency": "200 ns",
      "link": {"class": "ethernet", "rate": "100 Gb/s", "delay": "1 ns", "efficiency": 1}})";
  const Fabric fabric = fabric_from("gpu g -- 100 Gb/s, 30 ns -- nic n 70 ns", options);
  Routes routes(fabric);
  // Two host links, two NICs, two access cables of 500 ns, one switch.
  EXPECT_EQ(route_of(routes, "server0/g", "server1/g").latency,
            2 * (30_ns + 70_ns + 500_ns) + 200_ns);
}

TEST(Routes, AGpuWhoseNicLostItsCableBorrowsAnother) {
  const Fabric fabric = test::catalogue_fabric("hgx-h100+ib-ndr");
  Routes routes(fabric);
  const NodeId src = node(fabric, "server0/gpu0"), dst = node(fabric, "server1/gpu0");
  routes.network().set_down(link(fabric, "server0/nic0:rail0/leaf0"), true);
  const auto transfer = routes.transfer(src, dst);
  ASSERT_TRUE(transfer);
  EXPECT_EQ(weight_of(fabric, transfer->legs.front().route, "server0/nic0:rail0/leaf0"), 0);
  for (const NodeId nic : fabric.nics()) {
    if (fabric.node(nic).server != fabric.node(src).server) continue;
    for (const LinkId l : fabric.out_links(nic)) routes.network().set_down(l, true);
  }
  EXPECT_FALSE(routes.transfer(src, dst)) << "no NIC of the server is left";
}

}  // namespace
}  // namespace weft
