// SPDX-License-Identifier: Apache-2.0
#include "models/nccl/connect.hpp"

#include <numeric>
#include <set>

#include "models/nccl/nccl.test.hpp"
#include "sim/core/diagnostics.hpp"

namespace weft::nccl::testing {
namespace {

using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::SizeIs;

constexpr std::uint32_t kNoRank = NcclConnections::kNoRank;

void expect_sound(const NcclTopology& topology) {
  for (const auto& ring : topology.connections.rings) {
    EXPECT_EQ(std::set(ring.ranks.begin(), ring.ranks.end()).size(), topology.ranks);
    EXPECT_EQ(ring.ranks.size(), topology.ranks);
    for (std::size_t i = 0; i < ring.ranks.size(); ++i) {
      const std::uint32_t a = ring.ranks[i], b = ring.ranks[(i + 1) % ring.ranks.size()];
      const bool local = topology.node_of_rank[a] == topology.node_of_rank[b];
      if (topology.ranks == topology.nodes || a == b) continue;
      EXPECT_EQ(ring.nics[a][1] < 0, local);
      EXPECT_EQ(ring.nics[b][0] < 0, local);
    }
  }
  for (const auto& tree : topology.connections.trees) {
    std::size_t roots = 0;
    for (std::uint32_t r = 0; r < topology.ranks; ++r) {
      if (tree.up[r] == kNoRank) ++roots;
      std::uint32_t steps = 0;
      for (std::uint32_t at = r; tree.up[at] != kNoRank && steps <= topology.ranks; ++steps)
        at = tree.up[at];
      EXPECT_LT(steps, topology.ranks);
      if (tree.up[r] == kNoRank) continue;
      const bool local = topology.node_of_rank[r] == topology.node_of_rank[tree.up[r]];
      EXPECT_EQ(tree.nics[r] < 0, local);
      EXPECT_TRUE(local || tree.child_nics[tree.up[r]] >= 0);
    }
    EXPECT_EQ(roots, 1U);
  }
}

TEST(NcclConnect, DoubleBinaryTreeTakesTurnsAtBeingALeaf) {
  for (std::size_t nodes = 1; nodes <= 65; ++nodes) {
    for (const bool second : {false, true}) {
      std::vector<int> children(nodes, 0);
      std::size_t roots = 0;
      for (std::size_t n = 0; n < nodes; ++n) {
        const TreePlace place = place_in_tree(nodes, n, second);
        if (place.parent < 0) {
          ++roots;
          continue;
        }
        ASSERT_LT(static_cast<std::size_t>(place.parent), nodes);
        ++children[static_cast<std::size_t>(place.parent)];
      }
      EXPECT_EQ(roots, 1U);
      EXPECT_LE(*std::ranges::max_element(children), 2);
    }
  }
  // Sanders, Speck, Traff 2009: with an even number of nodes no node is inner in both trees.
  for (std::size_t nodes = 2; nodes <= 64; nodes += 2) {
    std::set<std::int64_t> first, second;
    for (std::size_t n = 0; n < nodes; ++n) {
      first.insert(place_in_tree(nodes, n, false).parent);
      second.insert(place_in_tree(nodes, n, true).parent);
    }
    for (const std::int64_t parent : first) EXPECT_TRUE(parent < 0 || !second.contains(parent));
  }
}

// nccl#1538 (2.22.3, two nodes of eight H100 with a NIC each): channels 1 to 5 of 16.
TEST(NcclConnect, TwoHopperNodesAsLogged) {
  const NcclTopology topology = study(servers("hgx-h100", 2), {2, 22, 3});
  ASSERT_THAT(topology.connections.rings, SizeIs(16));
  const std::vector<Order> logged = {{0, 8, 15, 14, 13, 12, 11, 10, 9, 1, 2, 3, 4, 5, 6, 7},
                                     {0, 7, 6, 5, 4, 3, 11, 12, 13, 14, 15, 8, 9, 10, 2, 1},
                                     {0, 1, 2, 10, 9, 8, 15, 14, 13, 12, 11, 3, 4, 5, 6, 7},
                                     {0, 7, 6, 5, 13, 14, 15, 8, 9, 10, 11, 12, 4, 3, 2, 1},
                                     {0, 1, 2, 3, 4, 12, 11, 10, 9, 8, 15, 14, 13, 5, 6, 7}};
  for (std::size_t i = 0; i < logged.size(); ++i)
    EXPECT_EQ(from_zero(topology.connections.rings[i + 1].ranks), logged[i]) << i + 1;
  // Heads 4, 5 and 6 are ranks 4 and 12, 5 and 13, 6 and 14.
  EXPECT_EQ(topology.connections.nvls_heads, (Order{0, 1, 2, 3, 4, 5, 6, 7}));
  expect_sound(topology);
}

// nccl#1189 (2.20 to 2.22, two nodes of two H20, NCCL_PXN_DISABLE=1): four channels of 24 GB/s that go in by one NIC and out by
// the other, 8 coll channels, no NVLS, 8 p2p channels, 2 per peer.
TEST(NcclConnect, TwoGpusPerNodeWithoutPxnAsLogged) {
  const NcclTopology topology =
      study(servers("hgx-h20", 2), {2, 21, 5}, {0, 1, 8, 9}, {{"NCCL_PXN_DISABLE", "1"}});
  const NcclGraph& rings = ring(topology);
  ASSERT_THAT(rings.channels, SizeIs(4));
  EXPECT_EQ(rings.bw_intra, 24);
  EXPECT_EQ(rings.bw_inter, 24);
  EXPECT_EQ(rings.type_intra, NcclPath::nvl);
  EXPECT_EQ(rings.type_inter, NcclPath::pix);
  EXPECT_TRUE(rings.cross_nic);
  EXPECT_EQ(orders(rings), (std::vector<Order>{{0, 1}, {1, 0}, {0, 1}, {1, 0}}));
  EXPECT_EQ(rings.channels[0].nic_in, 0);
  EXPECT_EQ(rings.channels[0].nic_out, 1);
  EXPECT_EQ(rings.channels[1].nic_in, 1);
  EXPECT_EQ(rings.channels[1].nic_out, 0);
  EXPECT_THAT(topology.connections.rings, SizeIs(8));
  EXPECT_FALSE(topology.nvls);
  EXPECT_EQ(topology.p2p_channels, 8U);
  EXPECT_EQ(topology.p2p_channels_per_peer, 2U);
}

TEST(NcclConnect, OneNicPerGpuCarriesItsShareInBothDirections) {
  for (const NcclVersion version :
       {NcclVersion{2, 12, 12}, {2, 18, 3}, {2, 19, 3}, {2, 21, 5}, {2, 27, 7}, {2, 30, 7}}) {
    for (const int nodes : {2, 3, 4, 7}) {
      const NcclTopology topology = study(servers("hgx-h100", nodes), version);
      expect_sound(topology);
      const auto uses = nccl_ring_nic_use(topology);
      EXPECT_EQ(uses.size(), 8U * static_cast<std::size_t>(nodes));
      for (const NcclNicUse& use : uses) {
        EXPECT_EQ(use.in * 8, topology.connections.rings.size());
        EXPECT_EQ(use.out * 8, topology.connections.rings.size());
      }
    }
  }
}

TEST(NcclConnect, FewerNicsThanGpus) {
  struct Case {
    const char* server;
    std::size_t nics;
  };
  for (const Case& c : {Case{"dgx1-v100", 4}, {"dgx1-v100-roce", 2}, {"aws-p4d-node", 4}}) {
    const NcclTopology topology = study(servers(c.server, 3), {2, 18, 3});
    expect_sound(topology);
    EXPECT_THAT(ring(topology).channels, SizeIs(c.nics)) << c.server;
    EXPECT_THAT(nccl_ring_nic_use(topology), SizeIs(3 * c.nics)) << c.server;
    EXPECT_FALSE(ring(topology).cross_nic) << c.server;
  }
  const NcclTopology two = study(servers("polaris-node", 4), {2, 18, 3});
  expect_sound(two);
  EXPECT_THAT(ring(two).channels, SizeIs(2));
  EXPECT_EQ(ring(two).type_inter, NcclPath::phb);
}

constexpr const char* kTwoSwitchNodes =
    R"({"id": "gpu[0-7]", "kind": "gpu", "model": "a100-pcie-80gb"}, {"id": "cpu[0-1]", "kind": "cpu"},
       {"id": "plx[0-1]", "kind": "pcie_switch"}, {"id": "nic[0-1]", "kind": "nic", "model": "cx7-ndr"})";
constexpr const char* kTwoSwitchLinks =
    R"({"a": "gpu[0-7]", "b": "plx[0-1]", "pair": "block", "link": "pcie5-x16"},
       {"a": "nic[0-1]", "b": "plx[0-1]", "pair": "each", "link": "pcie5-x16"},
       {"a": "plx[0-1]", "b": "cpu[0-1]", "pair": "block", "link": "pcie5-x16"},
       {"a": "cpu0", "b": "cpu1", "link": "upi-16"})";

// Eight PCIe GPUs on two switches with one NIC each: rings come in by one NIC and leave by the other. From 2.20 on odd nodes
// exchange the rings of a pair, so that rails meet; that closes over an even number of nodes only.
TEST(NcclConnect, RingsThatAlternateRailsCloseOverEvenNumbersOfNodes) {
  const auto hop_rails = [](const NcclTopology& topology) {
    std::size_t across = 0;
    for (const auto& ring : topology.connections.rings) {
      for (std::size_t i = 0; i < ring.ranks.size(); ++i) {
        const std::uint32_t a = ring.ranks[i], b = ring.ranks[(i + 1) % ring.ranks.size()];
        if (ring.nics[a][1] >= 0 && ring.nics[a][1] != ring.nics[b][0]) ++across;
      }
    }
    return across;
  };
  for (const int nodes : {2, 3, 4}) {
    const Fabric fabric =
        box(kTwoSwitchNodes, kTwoSwitchLinks, nodes, R"({"nvlink": false, "pcie": "all"})");
    const NcclTopology topology = study(fabric, {2, 27, 3});
    expect_sound(topology);
    EXPECT_TRUE(ring(topology).cross_nic);
    EXPECT_THAT(ring(topology).channels, SizeIs(2));
    const auto closes = Contains(HasSubstr("an odd number, they close across rails"));
    if (nodes % 2 == 1) {
      EXPECT_THAT(topology.notes, closes);
    } else {
      EXPECT_THAT(topology.notes, Not(closes));
    }
    const NcclTopology same = study(fabric, {2, 27, 3}, {}, {{"NCCL_CROSS_NIC", "0"}});
    EXPECT_FALSE(ring(same).cross_nic);
    EXPECT_EQ(hop_rails(same), 0U);
  }
  // Eight GPUs with a NIC each show the rule without the imbalance of that box.
  EXPECT_EQ(hop_rails(study(servers("hgx-h100", 4), {2, 27, 7})), 0U);
  EXPECT_EQ(hop_rails(study(servers("hgx-h100", 3), {2, 27, 7})), 16U);  // one hop of every ring
}

TEST(NcclConnect, OddNodesOfThatBoxSendAllRingsByOneNic) {
  const Fabric fabric =
      box(kTwoSwitchNodes, kTwoSwitchLinks, 2, R"({"nvlink": false, "pcie": "all"})");
  const NcclTopology topology = study(fabric, {2, 27, 3});
  EXPECT_THAT(topology.notes, Contains(HasSubstr("node 1 sends 4 rings by NIC 0 and 0 by NIC 1")));
}

// Since 2.26.2 only mirrored pairs (NCCL_CROSS_NIC=2) are exchanged: with 1 that box stays balanced.
TEST(NcclConnect, RingsThatMayLeaveByAnyNicAreExchangedByOlderReleasesOnly) {
  const Fabric fabric =
      box(kTwoSwitchNodes, kTwoSwitchLinks, 2, R"({"nvlink": false, "pcie": "all"})");
  const auto most_sent = [&](NcclVersion version) {
    const NcclTopology topology = study(fabric, version, {}, {{"NCCL_CROSS_NIC", "1"}});
    EXPECT_TRUE(ring(topology).cross_nic);
    std::uint32_t most = 0;
    for (const NcclNicUse& use : nccl_ring_nic_use(topology)) most = std::max(most, use.out);
    return most;
  };
  EXPECT_EQ(most_sent({2, 25, 1}), 4U);
  EXPECT_EQ(most_sent({2, 26, 2}), 2U);
  EXPECT_EQ(most_sent({2, 28, 9}), 2U);
}

TEST(NcclConnect, RanksOfOneServerMustFollowEachOther) {
  EXPECT_THROW(study(servers("hgx-h100", 2), {2, 21, 5}, {0, 8, 1}), InputError);
}

TEST(NcclConnect, UnequalNodesAgreeOnTheFewestChannels) {
  std::vector<std::size_t> picked(12);
  std::iota(picked.begin(), picked.end(),
            0U);  // eight GPUs of the first server, four of the second
  const NcclTopology topology = study(servers("hgx-h100", 2), {2, 21, 5}, picked);
  expect_sound(topology);
  EXPECT_EQ(topology.least_local_ranks, 4U);
  EXPECT_EQ(topology.most_local_ranks, 8U);
}

TEST(NcclConnect, RackOfTraysIsOneNodeOnlyWithMultiNodeNvlink) {
  const Fabric fabric = servers("gb200-nvl72");
  const std::vector<std::size_t> two_trays = {0, 1, 2, 3, 4, 5, 6, 7};
  EXPECT_EQ(study(fabric, {2, 27, 7}, two_trays).nodes, 1U);
  EXPECT_THROW(study(fabric, {2, 27, 7}, two_trays, {{"NCCL_MNNVL_ENABLE", "0"}}), InputError);
  const Fabric racks = servers("gb200-nvl72", 2);
  EXPECT_EQ(study(racks, {2, 27, 7}, two_trays, {{"NCCL_MNNVL_ENABLE", "0"}}).nodes, 2U);
  EXPECT_EQ(study(racks, {2, 27, 7}).nodes, 2U);
}

TEST(NcclConnect, AThousandGpusShareOneStudy) {
  const NcclTopology topology = study(servers("hgx-h100", 128), {2, 27, 7});
  EXPECT_EQ(topology.ranks, 1024U);
  expect_sound(topology);
}

TEST(NcclConnect, CollNetNeedsSwitchesThatReduceAndTheVariable) {
  const Fabric fabric = servers("hgx-h100", 2);
  EXPECT_FALSE(study(fabric, {2, 21, 5}).collnet);
  const NcclTopology topology = study(fabric, {2, 27, 7}, {}, {{"NCCL_COLLNET_ENABLE", "1"}});
  EXPECT_TRUE(topology.collnet);
  EXPECT_THAT(topology.graphs.at(NcclPattern::collnet_chain).channels, SizeIs(8));
  EXPECT_THAT(topology.graphs.at(NcclPattern::collnet_direct).channels, SizeIs(8));
}

}  // namespace
}  // namespace weft::nccl::testing
