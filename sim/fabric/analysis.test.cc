// SPDX-License-Identifier: Apache-2.0
#include "sim/fabric/analysis.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "tests/support/fabric_text.hpp"

namespace weft {
namespace {

using testing::catalogue_fabric;
using testing::cluster;
using testing::fabric_from;
using testing::server;

Fabric network(int servers, int nics, const std::string& keys) {
  return fabric_from(cluster(servers, server(nics), keys));
}
std::string radix(int ports) {
  return fmt::format(R"("switch": {{"ports": {}, "link": LINK}})", ports);
}

std::string names(const Fabric& fabric, const std::vector<NodeId>& nodes) {
  std::string out;
  for (const NodeId node : nodes) out += (out.empty() ? "" : " ") + fabric.name(node);
  return out;
}

DependencyCycle cycle_of(const Fabric& fabric) {
  NetworkRoutes routes(fabric);
  return find_dependency_cycle(fabric, routes);
}

// ---- counts

TEST(Counts, AreThoseOfTheGenerator) {
  const Fabric fabric =
      network(16, 8, R"("generator": "rail-optimised", "tiers": 2, )" + radix(16));
  const Counts counts = count_components(fabric);
  EXPECT_EQ(counts.servers, 16u);
  EXPECT_EQ(counts.gpus, 128u);
  EXPECT_EQ(counts.nics, 128u);
  EXPECT_EQ(counts.switches, (std::array<std::size_t, 3>{16, 8, 0}));
  EXPECT_EQ(counts.nodes, fabric.node_count());
  EXPECT_EQ(counts.links, fabric.link_count() / 2);
  std::size_t links = 0;
  for (const LinkGroup& group : counts.groups) {
    links += group.links;
    if (group.tier == Tier::access) {
      EXPECT_EQ(group.links, 128u);
    }
    if (group.tier == Tier::leaf_spine) {
      EXPECT_EQ(group.raw, 100_Gbps * 128);
    }
  }
  EXPECT_EQ(links, counts.links);
}

// ---- bisection

TEST(Bisection, OfAFullFatTreeIsHalfOfTheHosts) {
  for (const int k : {4, 6, 8}) {
    const int hosts = k * k * k / 4;
    const Bisection b =
        compute_bisection(network(hosts, 1, R"("generator": "fat-tree", "tiers": 3, )" + radix(k)));
    ASSERT_TRUE(b.flow);
    EXPECT_EQ(*b.flow, 100_Gbps * (hosts / 2)) << k;
    EXPECT_EQ(b.formula, *b.flow) << k;
  }
}

TEST(Bisection, AnOversubscribedTreeKeepsTheRatio) {
  for (const int ratio : {1, 2, 4}) {
    const std::string keys = fmt::format(
        R"("generator": "rail-optimised", "tiers": 2, "oversubscription": {}, )", ratio);
    const Fabric fabric = network(16, 8, keys + radix(16));
    const Bisection b = compute_bisection(fabric);
    EXPECT_EQ(b.formula, 100_Gbps * 64);
    EXPECT_EQ(b.flow->bps * ratio, b.formula.bps);
    const Oversubscription over = find_oversubscription(fabric);
    EXPECT_DOUBLE_EQ(*over.most, ratio);
    EXPECT_DOUBLE_EQ(*over.least, ratio);
  }
}

// Cutting a ring of n points takes two cables; a k x k torus 2k, twice as many for wrap-around.
TEST(Bisection, OfATorusIsTheCutThroughItsMiddle) {
  const Bisection ring =
      compute_bisection(network(16, 1, R"("generator": "torus", "dims": [8], )" + radix(16)));
  EXPECT_EQ(*ring.flow, 100_Gbps * 2);
  const Bisection square =
      compute_bisection(network(72, 1, R"("generator": "torus", "dims": [6, 6], )" + radix(16)));
  EXPECT_EQ(*square.flow, 100_Gbps * 12);
  ASSERT_EQ(square.crossings.size(), 1u);
  EXPECT_EQ(square.crossings[0].tier, Tier::torus);
}

TEST(Bisection, OfADragonflyOfTwoGroupsIsItsGlobalCables) {
  const Fabric fabric =
      network(64, 1,
              R"("generator": "dragonfly", "routers_per_group": 4, "hosts_per_router": 8,
      "global_links_per_router": 2, )" +
                  radix(32));
  const Bisection b = compute_bisection(fabric);
  EXPECT_EQ(*b.flow, 100_Gbps * 8);
  EXPECT_EQ(b.crossings[0].tier, Tier::global);
}

TEST(Bisection, TheOddServerStandsInTheSecondHalf) {
  const Bisection b =
      compute_bisection(network(5, 2, R"("generator": "single-switch", )" + radix(16)));
  EXPECT_EQ(b.formula, 100_Gbps * 4);
  EXPECT_EQ(*b.flow, 100_Gbps * 4);
}

// Six cables of the cube mesh join the two quads, and the path between the sockets (all links 100 Gb/s here).
TEST(Bisection, OfOneServerCountsScaleUpAndHostLinks) {
  const Bisection b = compute_bisection(catalogue_fabric("dgx1-v100"));
  std::map<Tier, Bandwidth> crossings;
  for (const auto& crossing : b.crossings) crossings[crossing.tier] = crossing.raw;
  EXPECT_GT(crossings[Tier::scale_up].bps, 0);
  EXPECT_GT(crossings[Tier::host].bps, 0);
  EXPECT_EQ(crossings[Tier::scale_up] + crossings[Tier::host], *b.flow);
  EXPECT_LE(*b.flow, b.formula);
}

TEST(Bisection, OneGpuHasNoHalves) {
  const Fabric fabric = fabric_from(server(1));
  EXPECT_FALSE(compute_bisection(fabric).flow);
}

TEST(Oversubscription, IsNoneWithoutUplinks) {
  EXPECT_FALSE(
      find_oversubscription(network(4, 1, R"("generator": "single-switch", )" + radix(16))).most);
}

TEST(Oversubscription, NamesTheWorstLeaf) {
  // 6 NIC ports: one leaf of four and one of two.
  const Fabric fabric =
      network(6, 1, R"("generator": "leaf-spine", "hosts_per_leaf": 4, )" + radix(8));
  const Oversubscription over = find_oversubscription(fabric);
  EXPECT_DOUBLE_EQ(*over.most, 1);
  EXPECT_DOUBLE_EQ(*over.least, 0.5);
  EXPECT_EQ(fabric.name(over.worst), "leaf0");
}

// ---- weak spots

TEST(WeakSpots, ASingleSwitchAndALonelyNicAreCutVertices) {
  const Fabric fabric = network(2, 1, R"("generator": "single-switch", )" + radix(16));
  const WeakSpots weak = find_weak_spots(fabric);
  EXPECT_EQ(names(fabric, weak.nodes),
            "server0/plx0 server0/nic0 server1/plx0 server1/nic0 switch0");
  EXPECT_EQ(weak.links.size(), 6u);  // everything is on the only way
}

TEST(WeakSpots, TwoSpinesHaveNone) {
  const std::string box =
      R"({"kind": "server", "nodes": [{"id": "gpu[0-1]", "kind": "gpu", "model": {}},
      {"id": "sw[0-1]", "kind": "nvswitch"}, {"id": "nic[0-1]", "kind": "nic", "model": {"link": LINK}}],
      "links": [{"a": "gpu[0-1]", "b": "sw[0-1]", "link": LINK}, {"a": "gpu[0-1]", "b": "nic[0-1]", "pair": "each", "link": LINK}]})";
  const Fabric fabric = fabric_from(
      cluster(2, box, R"("generator": "rail-optimised", "tiers": 2, "spines": 2, )" + radix(8)));
  const WeakSpots weak = find_weak_spots(fabric);
  EXPECT_EQ(names(fabric, weak.nodes), "");
  EXPECT_TRUE(weak.links.empty());
}

TEST(WeakSpots, PartsWithoutGpusDoNotCount) {
  // dram0 hangs on cpu0 alone, but no GPU is lost with it.
  const Fabric fabric =
      fabric_from(R"({"kind": "server", "nodes": [{"id": "gpu[0-1]", "kind": "gpu", "model": {}},
      {"id": "cpu[0-1]", "kind": "cpu"}, {"id": "dram0", "kind": "dram"}],
      "links": [{"a": "gpu[0-1]", "b": "cpu[0-1]", "link": LINK}, {"a": "dram0", "b": "cpu0", "link": LINK}]})");
  const WeakSpots weak = find_weak_spots(fabric);
  EXPECT_TRUE(weak.nodes.empty());
  EXPECT_TRUE(weak.links.empty());
}

TEST(WeakSpots, ParallelCablesAreNoBridge) {
  const auto bridges = [](const std::string& count) {
    const Fabric fabric =
        fabric_from(cluster(4, server(1),
                            R"("generator": "explicit", "switches": ["a", "b"], "cables": [
        {"a": "server0/nic0", "b": "a"}, {"a": "server1/nic0", "b": "a"}, {"a": "server2/nic0", "b": "b"},
        {"a": "server3/nic0", "b": "b"}, {"a": "a", "b": "b", "count": )" +
                                count + "}], " + radix(8)));
    std::size_t found = 0;
    for (const LinkId l : find_weak_spots(fabric).links)
      found += fabric.link(l).tier == Tier::cable ? 1 : 0;
    return found;
  };
  EXPECT_EQ(bridges("1"), 1u);
  EXPECT_EQ(bridges("2"), 0u);
}

// The definition, tried node by node on a fabric with some of everything.
TEST(WeakSpots, AreWhatTakingNodesOutShows) {
  const Fabric fabric =
      fabric_from(cluster(6, server(2),
                          R"("generator": "explicit", "switches": ["a", "b", "c", "d"], "cables": [
      {"a": "server0/nic0", "b": "a"}, {"a": "server0/nic1", "b": "b"}, {"a": "server1/nic0", "b": "a"}, {"a": "server1/nic1", "b": "b"},
      {"a": "server2/nic0", "b": "b"}, {"a": "server2/nic1", "b": "b"}, {"a": "server3/nic0", "b": "c"}, {"a": "server3/nic1", "b": "c"},
      {"a": "server4/nic0", "b": "c"}, {"a": "server4/nic1", "b": "d"}, {"a": "server5/nic0", "b": "d"}, {"a": "server5/nic1", "b": "d"},
      {"a": "b", "b": "c"}], )" +
                              radix(8)));
  std::vector<NodeId> expected;
  for (std::size_t out = 0; out < fabric.node_count(); ++out) {
    std::vector<std::uint8_t> seen(fabric.node_count(), 0);
    seen[out] = 1;
    std::size_t parts = 0;
    for (const NodeId gpu : fabric.gpus()) {
      if (seen[gpu.v] != 0) continue;
      ++parts;
      std::vector<NodeId> stack{gpu};
      seen[gpu.v] = 1;
      while (!stack.empty()) {
        const NodeId at = stack.back();
        stack.pop_back();
        for (const LinkId l : fabric.out_links(at)) {
          const NodeId to = fabric.link(l).to;
          if (seen[to.v]++ == 0) stack.push_back(to);
        }
      }
    }
    if (parts > 1) expected.push_back(NodeId{out});
  }
  EXPECT_EQ(names(fabric, find_weak_spots(fabric).nodes), names(fabric, expected));
  EXPECT_GT(expected.size(), 4u);
}

// ---- dependency cycles

TEST(DependencyCycle, ClosNetworksHaveNone) {
  for (const char* keys :
       {R"("generator": "leaf-spine", )", R"("generator": "fat-tree", "tiers": 3, )",
        R"("generator": "rail-optimised", "tiers": 2, )"}) {
    const DependencyCycle cycle = cycle_of(network(16, 2, keys + radix(8)));
    EXPECT_TRUE(cycle.searched);
    EXPECT_TRUE(cycle.links.empty()) << keys;
  }
}

TEST(DependencyCycle, ARingOfFourHasOneAndOfThreeNone) {
  const auto ring = [](int points) {
    return network(points, 1,
                   fmt::format(R"("generator": "torus", "dims": [{}], )", points) + radix(8));
  };
  EXPECT_TRUE(cycle_of(ring(3)).links.empty());  // every way is one hop
  EXPECT_EQ(cycle_of(ring(4)).links.size(), 4u);
  EXPECT_EQ(cycle_of(ring(7)).links.size(), 7u);
}

TEST(DependencyCycle, EachLinkLeadsToTheNext) {
  for (
      const char* keys :
      {R"("generator": "torus", "dims": [4, 4], )",
       R"("generator": "dragonfly", "routers_per_group": 4, "hosts_per_router": 1, "global_links_per_router": 2, )"}) {
    const Fabric fabric = network(16, 1, keys + radix(16));
    const auto links = cycle_of(fabric).links;
    ASSERT_GE(links.size(), 3u) << keys;
    for (std::size_t i = 0; i < links.size(); ++i) {
      EXPECT_EQ(fabric.link(links[i]).to, fabric.link(links[(i + 1) % links.size()]).from);
    }
  }
}

TEST(DependencyCycle, ALostCableMayMakeAWayThatClimbsTwice) {
  // Two leaves without a common spine must go down and up again through a third.
  const Fabric fabric =
      network(12, 1, R"("generator": "leaf-spine", "spines": 2, "hosts_per_leaf": 4, )" + radix(8));
  NetworkRoutes routes(fabric);
  EXPECT_TRUE(find_dependency_cycle(fabric, routes).links.empty());
  for (const auto& [leaf, spine] : {std::pair{"leaf0", "spine1"}, std::pair{"leaf1", "spine0"}}) {
    for (const char* parallel : {"#0", "#1"}) {
      const auto link = fabric.find_link(fmt::format("{}:{}{}", leaf, spine, parallel));
      ASSERT_TRUE(link);
      routes.set_down(*link, true);
      routes.set_down(fabric.link(*link).reverse, true);
    }
  }
  EXPECT_TRUE(find_dependency_cycle(fabric, routes).links.empty());  // one valley, no circle
}

TEST(DependencyCycle, ThereIsNoneWithoutANetwork) {
  EXPECT_TRUE(cycle_of(fabric_from(server(2))).links.empty());
}

// ---- affinity

TEST(Affinity, Dgx1V100IsWhatNvidiaSmiPrints) {
  const Fabric fabric = catalogue_fabric("dgx1-v100");
  const AffinityMatrix m = affinity_matrix(fabric.types().front());
  const std::vector<std::string> first{"X",   "NV1", "NV1", "NV2", "NV2", "SYS",
                                       "SYS", "SYS", "PIX", "PHB", "SYS", "SYS"};
  const std::vector<std::string> seventh{"SYS", "SYS", "NV1", "SYS", "NV1", "NV2",
                                         "X",   "NV2", "SYS", "SYS", "PHB", "PIX"};
  EXPECT_EQ(m.cells[0], first);
  EXPECT_EQ(m.cells[6], seventh);
}

TEST(Affinity, SwitchedServersShowTheLinksOfAGpu) {
  const std::pair<const char*, const char*> expected[] = {
      {"dgx2", "NV6"}, {"hgx-a100", "NV12"}, {"hgx-h100", "NV18"}};
  for (const auto& [name, word] : expected) {
    const Fabric fabric = catalogue_fabric(name);
    const AffinityMatrix m = affinity_matrix(fabric.types().front());
    for (std::size_t i = 0; i < fabric.gpus().size(); ++i) {
      for (std::size_t j = 0; j < fabric.gpus().size(); ++j)
        EXPECT_EQ(m.cells[i][j], i == j ? "X" : word) << name;
    }
  }
}

TEST(Affinity, TellsSwitchesAndSocketsApart) {
  const Fabric fabric =
      fabric_from(R"({"kind": "server", "nodes": [{"id": "gpu[0-7]", "kind": "gpu", "model": {}},
      {"id": "plx[0-3]", "kind": "pcie_switch"}, {"id": "top", "kind": "pcie_switch"}, {"id": "cpu[0-1]", "kind": "cpu"}],
      "links": [{"a": "gpu[0-7]", "b": "plx[0-3]", "pair": "block", "link": LINK},
                {"a": "plx[0-1]", "b": "top", "link": LINK}, {"a": "top", "b": "cpu0", "link": LINK},
                {"a": "plx2", "b": "cpu0", "link": LINK}, {"a": "plx3", "b": "cpu1", "link": LINK}, {"a": "cpu0", "b": "cpu1", "link": LINK}]})");
  const AffinityMatrix m = affinity_matrix(fabric.types().front());
  EXPECT_EQ(m.cells[0],
            (std::vector<std::string>{"X", "PIX", "PXB", "PXB", "PHB", "PHB", "SYS", "SYS"}));
}

}  // namespace
}  // namespace weft
