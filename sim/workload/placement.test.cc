// SPDX-License-Identifier: Apache-2.0
#include "sim/workload/placement.hpp"

#include <algorithm>
#include <map>
#include <numeric>
#include <set>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/tiny.hpp"

namespace weft {
namespace {

using test::catalogue_fabric;
using test::fabric_from;
using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::SizeIs;

Fabric three_servers_of_two() {
  return fabric_from("gpu g[0-1] -- 100 Gb/s, 0 ns -- nic n",
                     {.servers = 3, .network = test::single_switch()});
}

std::vector<std::string> names(const Fabric& fabric, const std::vector<NodeId>& gpus) {
  std::vector<std::string> out;
  for (const NodeId gpu : gpus) out.push_back(fabric.name(gpu));
  return out;
}

bool is_permutation(std::vector<std::uint32_t> order, std::uint32_t n) {
  std::ranges::sort(order);
  std::vector<std::uint32_t> all(n);
  std::iota(all.begin(), all.end(), 0U);
  return order == all;
}

// ---- Placement

TEST(Placement, PackedFillsServersInOrder) {
  const Fabric fabric = three_servers_of_two();
  Placement placement(fabric, 1);
  EXPECT_THAT(names(fabric, *placement.take(3, PlacementPolicy::packed, 0)),
              ElementsAre("server0/g0", "server0/g1", "server1/g0"));
  EXPECT_THAT(names(fabric, *placement.take(2, PlacementPolicy::packed, 1)),
              ElementsAre("server1/g1", "server2/g0"));
}

TEST(Placement, SpreadTakesOneOfEachServerInTurn) {
  const Fabric fabric = three_servers_of_two();
  Placement placement(fabric, 1);
  EXPECT_THAT(names(fabric, *placement.take(4, PlacementPolicy::spread, 0)),
              ElementsAre("server0/g0", "server1/g0", "server2/g0", "server0/g1"));
  EXPECT_THAT(names(fabric, *placement.take(2, PlacementPolicy::spread, 1)),
              ElementsAre("server1/g1", "server2/g1"));
}

TEST(Placement, TakesOnlyTheFirstGpusOfEachServerWhenAsked) {
  const Fabric fabric = three_servers_of_two();
  Placement placement(fabric, 1);
  EXPECT_EQ(placement.free(1), fabric.server_count());
  const auto taken = placement.take(fabric.server_count(), PlacementPolicy::packed, 0, 1);
  ASSERT_TRUE(taken);
  for (const NodeId gpu : *taken) {
    EXPECT_EQ(gpu, fabric.local_node(fabric.node(gpu).server,
                                     fabric.type_of(fabric.node(gpu).server).gpus.front()));
  }
  EXPECT_FALSE(placement.take(1, PlacementPolicy::packed, 1, 1));
}

TEST(Placement, EveryGpuIsHandedOutOnceWhateverThePolicy) {
  const Fabric fabric = three_servers_of_two();
  for (const auto& policy : enum_names(PlacementPolicy{})) {
    Placement placement(fabric, 7);
    std::set<NodeId> seen;
    for (std::uint64_t job = 0; job < 3; ++job) {
      const auto taken = placement.take(2, policy.value, job);
      ASSERT_TRUE(taken);
      for (const NodeId gpu : *taken) EXPECT_TRUE(seen.insert(gpu).second) << policy.name;
    }
    EXPECT_EQ(placement.free(), 0U);
    EXPECT_FALSE(placement.take(1, policy.value, 3)) << policy.name;
  }
}

TEST(Placement, TooManyAreRefusedAndNothingIsTaken) {
  const Fabric fabric = three_servers_of_two();
  Placement placement(fabric, 1);
  EXPECT_FALSE(placement.take(7, PlacementPolicy::packed, 0));
  EXPECT_EQ(placement.free(), 6U);
}

TEST(Placement, RandomDependsOnSeedAndJobAlone) {
  const Fabric fabric = fabric_from("gpu g[0-31] -- 100 Gb/s, 0 ns -- nvswitch s");
  const auto draw = [&](std::uint64_t seed, std::uint64_t job) {
    return *Placement(fabric, seed).take(32, PlacementPolicy::random, job);
  };
  EXPECT_EQ(draw(1, 0), draw(1, 0));
  EXPECT_NE(draw(1, 0), draw(2, 0));
  EXPECT_NE(draw(1, 0), draw(1, 1));
}

// ---- GroupShape

GroupShape shape_of_all(const Fabric& fabric) {
  Routes routes(fabric);
  return group_shape(routes, fabric.gpus());
}

TEST(GroupShape, RanksAreGroupedByServerInTheOrderTheyAreMet) {
  const Fabric fabric = three_servers_of_two();
  Routes routes(fabric);
  const auto gpus = test::nodes(fabric, {"server2/g0", "server0/g1", "server2/g1", "server1/g0"});
  EXPECT_THAT(group_shape(routes, gpus).servers,
              ElementsAre(ElementsAre(0, 2), ElementsAre(1), ElementsAre(3)));
}

TEST(GroupShape, EmptyAndSingleGroupsHaveAShape) {
  const Fabric fabric = catalogue_fabric("hgx-h100");
  Routes routes(fabric);
  EXPECT_EQ(group_shape(routes, {}).ranks, 0U);
  const GroupShape one = group_shape(routes, fabric.gpus().subspan(0, 1));
  EXPECT_EQ(one.ranks, 1U);
  EXPECT_FALSE(one.switch_reduces);
  EXPECT_THAT(one.orders, Each(ElementsAre(0)));
}

// Rings of a mesh: half a link's rate is worth a ring, so a link has two lanes each way.
void expect_rings_over_links(std::string_view server, std::size_t fewest, double least_use) {
  const Fabric fabric = catalogue_fabric(server);
  const GroupShape shape = shape_of_all(fabric);
  std::map<std::pair<NodeId, NodeId>, int> lanes, used;
  int all_lanes = 0, all_used = 0;
  for (const NodeId gpu : fabric.gpus()) {
    for (const LinkId l : fabric.out_links(gpu)) {
      if (fabric.link(l).tier != Tier::scale_up) continue;
      lanes[{gpu, fabric.link(l).to}] += 2 * fabric.link(l).count;
      all_lanes += 2 * fabric.link(l).count;
    }
  }
  EXPECT_GE(shape.orders.size(), fewest) << server;
  for (const auto& order : shape.orders) {
    ASSERT_TRUE(is_permutation(order, shape.ranks)) << server;
    for (std::size_t i = 0; i < order.size(); ++i) {
      ++used[{fabric.gpus()[order[i]], fabric.gpus()[order[(i + 1) % order.size()]]}];
      ++all_used;
    }
  }
  for (const auto& [pair, count] : used) {
    EXPECT_LE(count, lanes[pair]) << server << ": " << fabric.name(pair.first) << " to "
                                  << fabric.name(pair.second);
  }
  EXPECT_GE(all_used, least_use * all_lanes) << server;
}

TEST(GroupShape, MeshRingsAreHamiltonianCyclesThatShareTheLinksEvenly) {
  expect_rings_over_links("dgx1-p100", 8, 1);   // 4 links a GPU: 8 rings use every lane
  expect_rings_over_links("dgx1-v100", 12, 1);  // 6 links a GPU
}

TEST(GroupShape, PartsOfAMeshStillGetRingsOverLinks) {
  const Fabric fabric = catalogue_fabric("dgx1-v100");
  Routes routes(fabric);
  const GroupShape quad = group_shape(routes, fabric.gpus().subspan(0, 4));
  EXPECT_GE(quad.orders.size(), 2U);
  for (const auto& order : quad.orders) EXPECT_TRUE(is_permutation(order, 4));
  // A quarter of the cube that is not joined all round falls back to the order of ranks.
  const auto apart = test::nodes(fabric, {"gpu0", "gpu1", "gpu6", "gpu7"});
  const GroupShape shape = group_shape(routes, apart);
  for (const auto& order : shape.orders) EXPECT_TRUE(is_permutation(order, 4));
}

TEST(GroupShape, ThroughASwitchEveryOrderIsAlikeAndThereAreSeveral) {
  const GroupShape shape = shape_of_all(catalogue_fabric("dgx2"));
  EXPECT_THAT(shape.orders, SizeIs(8));
  for (const auto& order : shape.orders) EXPECT_TRUE(is_permutation(order, 16));
}

TEST(GroupShape, OnlySwitchesThatReduceReduce) {
  EXPECT_TRUE(shape_of_all(catalogue_fabric("hgx-h100")).switch_reduces);
  EXPECT_FALSE(shape_of_all(catalogue_fabric("dgx2")).switch_reduces);
  EXPECT_FALSE(shape_of_all(catalogue_fabric("dgx1-v100")).switch_reduces);
  EXPECT_FALSE(shape_of_all(catalogue_fabric("hgx-h100+ib-ndr")).switch_reduces)
      << "across servers";
}

TEST(GroupShape, TheSwitchReducesAtTheSumOfAGpusPorts) {
  const Fabric fabric = fabric_from("gpu g[0-3] -- 100 Gb/s, 0 ns -- nvswitch s");
  EXPECT_EQ(shape_of_all(fabric).switch_rate, 0_Gbps);
  const Fabric h100 = catalogue_fabric("hgx-h100");
  const auto& reduction = h100.types().front().reduction;
  ASSERT_TRUE(reduction);
  if (reduction->rate) {
    EXPECT_EQ(shape_of_all(h100).switch_rate, *reduction->rate * 18);
  }
}

// Whatever joins two servers in a ring order joins GPUs of one rail; `balanced`: over all rings every NIC sends and receives
// once.
void expect_rails(std::string_view fabric_reference, std::size_t rings, bool balanced) {
  const Fabric fabric = catalogue_fabric(fabric_reference);
  Routes routes(fabric);
  const auto gpus = fabric.gpus();
  const GroupShape shape = group_shape(routes, gpus);
  ASSERT_THAT(shape.orders, SizeIs(rings)) << fabric_reference;
  std::map<NodeId, int> sends, receives;
  for (const auto& order : shape.orders) {
    ASSERT_TRUE(is_permutation(order, shape.ranks));
    std::size_t crossings = 0;
    for (std::size_t i = 0; i < order.size(); ++i) {
      const NodeId a = gpus[order[i]], b = gpus[order[(i + 1) % order.size()]];
      if (fabric.node(a).server == fabric.node(b).server) continue;
      ++crossings;
      const NodeId out = routes.nics_of(a).front(), in = routes.nics_of(b).front();
      EXPECT_EQ(fabric.node(out).index, fabric.node(in).index)
          << fabric.name(out) << " to " << fabric.name(in);
      ++sends[out];
      ++receives[in];
    }
    EXPECT_EQ(crossings, fabric.server_count()) << "each server is entered once";
  }
  if (!balanced) return;
  for (const NodeId nic : fabric.nics()) {
    EXPECT_EQ(sends[nic], 1) << fabric.name(nic);
    EXPECT_EQ(receives[nic], 1) << fabric.name(nic);
  }
}

TEST(GroupShape, RingsCrossBetweenGpusOfOneRailAcrossAnEvenNumberOfServers) {
  expect_rails(R"({"use": "hgx-h100+ib-ndr", "set": {"/servers": 2}})", 8, true);
  expect_rails(R"({"use": "hgx-h100+ib-ndr", "set": {"/servers": 4}})", 8, true);
  expect_rails(R"({"use": "dgx-a100+ib-hdr", "set": {"/servers": 4}})", 8, true);
  expect_rails(R"({"use": "dgx1-v100+ib-edr", "set": {"/servers": 2}})", 4, false);
}

TEST(GroupShape, OrdersCoverEveryRankOnceForAnyGroup) {
  const Fabric fabric = catalogue_fabric(R"({"use": "dgx1-v100+ib-edr", "set": {"/servers": 3}})");
  Routes routes(fabric);
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    const std::size_t n = 2 + seed;
    const auto gpus = *Placement(fabric, seed).take(n, PlacementPolicy::random, 0);
    const GroupShape shape = group_shape(routes, gpus);
    for (const auto& order : shape.orders) EXPECT_TRUE(is_permutation(order, n)) << seed;
  }
}

}  // namespace
}  // namespace weft
