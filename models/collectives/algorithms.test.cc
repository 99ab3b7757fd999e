// SPDX-License-Identifier: Apache-2.0
// The facts that the prefaces of the algorithms state: rounds, exact traffic, shape of trees, cost of large groups.
#include "models/collectives/algorithms.hpp"

#include <algorithm>
#include <map>
#include <numeric>
#include <set>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "models/collectives/parts.hpp"
#include "models/collectives/rails.hpp"
#include "sim/workload/verifier.hpp"

namespace weft::collectives {
namespace {

using enum CollectiveKind;

GroupShape servers_of(std::uint32_t servers, std::uint32_t size) {
  GroupShape shape{.ranks = servers * size};
  for (std::uint32_t m = 0; m < servers; ++m) {
    shape.servers.emplace_back(size);
    std::iota(shape.servers[m].begin(), shape.servers[m].end(), m * size);
  }
  return shape;
}

std::uint64_t edge_count(const Schedule& schedule) {
  std::uint64_t count = 0;
  for (const Phase& phase : schedule.phases) {
    for (const Channel& channel : phase.channels)
      channel.for_each_edge([&count](const Edge&) { ++count; });
  }
  return count;
}

TEST(Rounds, MatchTheClosedForms) {
  for (std::uint32_t n = 2; n <= 70; ++n) {
    const GroupShape shape{.ranks = n, .switch_reduces = true};
    const auto rounds = [&](const AlgorithmEntry& entry, CollectiveKind kind) {
      return entry.build({.kind = kind, .size = 64_KiB, .chunk = 1_KiB}, shape).rounds;
    };
    const std::uint32_t folds = (n & (n - 1)) != 0 ? 2 : 0;
    EXPECT_EQ(rounds(kRing, all_reduce), 2 * (n - 1));
    EXPECT_EQ(rounds(kRing, all_gather), n - 1);
    EXPECT_EQ(rounds(kRing, reduce_scatter), n - 1);
    EXPECT_EQ(rounds(kRing, broadcast), n - 2 + 64);
    EXPECT_EQ(rounds(kDoubleBinaryTree, all_reduce), 2 * floor_log2(n) + 32 - 1);
    EXPECT_EQ(rounds(kDoubleBinaryTree, broadcast), floor_log2(n - 1) + 1 + 32 - 1);
    EXPECT_EQ(rounds(kDoubleBinaryTree, reduce), floor_log2(n - 1) + 1 + 32 - 1);
    EXPECT_EQ(rounds(kHalvingDoubling, all_reduce), 2 * floor_log2(n) + folds);
    EXPECT_EQ(rounds(kHalvingDoubling, all_gather), floor_log2(n) + folds);
    EXPECT_EQ(rounds(kPairwise, all_to_all), n - 1);
    EXPECT_EQ(rounds(kBruck, all_to_all), ceil_log2(n));
    EXPECT_EQ(rounds(kBruck, all_gather), ceil_log2(n));
    EXPECT_EQ(rounds(kBinomial, broadcast), ceil_log2(n));
    EXPECT_EQ(rounds(kDirect, all_reduce), 2U);
    EXPECT_EQ(rounds(kInSwitch, all_reduce), 4U);
  }
  const GroupShape eight = servers_of(8, 4);
  const auto rounds = [&](CollectiveKind kind) {
    return kHierarchical.build({.kind = kind, .size = 1_MiB}, eight).rounds;
  };
  EXPECT_EQ(rounds(all_reduce), 2U + 14U);
  EXPECT_EQ(rounds(reduce_scatter), 1U + 7U);
  EXPECT_EQ(rounds(all_gather), 1U + 7U);
  EXPECT_EQ(rounds(all_to_all), 2U);
}

TEST(Ring, EveryRankMovesTwiceTheDataButItsOwnShare) {
  const Schedule s =
      kRing.build({.kind = all_reduce, .size = 24_MiB, .channels = 2}, {.ranks = 24});
  const Verification v = verify(s);
  for (std::uint32_t r = 0; r < 24; ++r) {
    EXPECT_EQ(v.bytes.sent_by(r), 2.0 * 23 * (1 << 20));
    EXPECT_EQ(v.bytes.at(r, (r + 1) % 24), 2.0 * 23 * (1 << 20));
  }
  ASSERT_EQ(s.phases.size(), 1U);
  ASSERT_EQ(s.phases[0].channels.size(), 2U);
  const Channel& channel = s.phases[0].channels[0];
  EXPECT_EQ(channel.form, Channel::Form::ring);
  EXPECT_EQ(channel.bytes, Bytes{23 << 20});
  EXPECT_EQ(channel.steps, 46U);
  EXPECT_EQ(channel.chunk, 512_KiB);
}

TEST(Ring, UsesTheOrdersOfTheFabricInTurn) {
  GroupShape shape{.ranks = 4, .orders = {{0, 2, 1, 3}, {3, 1, 2, 0}}};
  const Schedule s = kRing.build({.kind = all_gather, .size = 4_MiB, .channels = 3}, shape);
  const auto& channels = s.phases[0].channels;
  EXPECT_EQ(channels[0].edges[0].dst, 2U);
  EXPECT_EQ(channels[1].edges[0].dst, 1U);
  EXPECT_EQ(channels[2].edges[0].dst, 2U);
}

TEST(Tree, NoRankIsInnerInBothTrees) {
  for (std::uint32_t n = 3; n <= 130; ++n) {
    const GroupShape shape{.ranks = n};
    for (const CollectiveKind kind : {all_reduce, broadcast, reduce}) {
      const Schedule s =
          kDoubleBinaryTree.build({.kind = kind, .size = 1_MiB, .root = n / 3}, shape);
      std::map<std::uint32_t, int> inner;
      for (const Channel& tree : s.phases[0].channels) {
        std::map<std::uint32_t, std::uint32_t> degree;
        for (const Edge& edge : tree.edges) ++degree[edge.src], ++degree[edge.dst];
        // A leaf has one neighbour, and each edge of all_reduce counts both ways.
        for (const auto& entry : degree)
          inner[entry.first] += entry.second > (kind == all_reduce ? 2U : 1U);
      }
      for (const auto& entry : inner)
        EXPECT_LE(entry.second, 1) << "n " << n << " rank " << entry.first;
      const Verification v = verify(s);
      for (std::uint32_t r = 0; r < n; ++r) {
        const double limit = (kind == all_reduce ? 2.0 : 1.0) * (1 << 20);
        EXPECT_LE(v.bytes.sent_by(r), limit);
        EXPECT_LE(v.bytes.received_by(r), limit);
      }
    }
  }
}

TEST(Tree, StepsAreTheEdgesOnTheLongestWay) {
  const GroupShape shape{.ranks = 16};
  EXPECT_EQ(kDoubleBinaryTree.build({.kind = all_reduce, .size = 1_MiB}, shape)
                .phases[0]
                .channels[0]
                .steps,
            8U);
  EXPECT_EQ(kDoubleBinaryTree.build({.kind = broadcast, .size = 1_MiB}, shape)
                .phases[0]
                .channels[0]
                .steps,
            4U);
}

TEST(HalvingDoubling, MovesAsLittleAsARingForPowersOfTwo) {
  for (const std::uint32_t n : {2U, 8U, 64U}) {
    const Verification v =
        verify(kHalvingDoubling.build({.kind = all_reduce, .size = 64_MiB}, {.ranks = n}));
    for (std::uint32_t r = 0; r < n; ++r)
      EXPECT_EQ(v.bytes.sent_by(r), 2.0 * (n - 1) / n * (64 << 20));
  }
}

TEST(Pairwise, EveryRoundIsAPermutation) {
  for (const std::uint32_t n : {2U, 7U, 8U, 12U}) {
    std::map<std::uint32_t, std::set<std::uint32_t>> sources, targets;
    kPairwise.build({.kind = all_to_all, .size = 1_MiB}, {.ranks = n}).steps([&](const Step& step) {
      EXPECT_TRUE(sources[step.round].insert(step.src).second);
      EXPECT_TRUE(targets[step.round].insert(step.dst).second);
    });
    EXPECT_EQ(sources.size(), n - 1);
  }
}

TEST(InSwitch, TrafficIsThatOfItsTable) {
  const GroupShape shape{.ranks = 8, .switch_reduces = true, .switch_rate = 450_GBps};
  const double whole = 8 << 20, part = 1 << 20;
  const auto expect = [&](CollectiveKind kind, double up, double down, double root_up,
                          double root_down) {
    const Schedule s = kInSwitch.build({.kind = kind, .size = 8_MiB, .root = 3}, shape);
    const Verification v = verify(s);
    for (std::uint32_t r = 0; r < 8; ++r) {
      EXPECT_EQ(v.bytes.at(r, kSwitch), r == 3 ? root_up : up);
      EXPECT_EQ(v.bytes.at(kSwitch, r), r == 3 ? root_down : down);
    }
    EXPECT_EQ(s.phases[0].channels[0].cap, 450_GBps);
  };
  expect(all_reduce, whole + part, whole + part, whole + part, whole + part);
  expect(reduce_scatter, whole, part, whole, part);
  expect(all_gather, part, whole, part, whole);
  expect(broadcast, 0, whole, whole, whole);
  expect(reduce, whole, 0, whole, whole);
  EXPECT_FALSE(kInSwitch.supports(all_reduce, {.ranks = 8}));
  EXPECT_FALSE(kInSwitch.supports(all_to_all, shape));
}

// Across the cut between equal servers nothing is wasted: each rank's rail carries 1 / L of the ring's traffic.
TEST(Hierarchical, CrossesServersOnRailsOnlyAndAsLittleAsPossible) {
  const std::uint32_t servers = 4, size = 8, n = servers * size;
  const auto crossing = [&](CollectiveKind kind) {
    const Verification v = verify(
        kHierarchical.build({.kind = kind, .size = Bytes{n << 10}}, servers_of(servers, size)));
    double worst = 0;
    for (std::uint32_t i = 0; i < n; ++i) {
      double out = 0;
      for (std::uint32_t j = 0; j < n; ++j) {
        if (i / size == j / size) continue;
        out += v.bytes.at(i, j);
        EXPECT_TRUE(i % size == j % size || v.bytes.at(i, j) == 0) << i << " " << j;
      }
      worst = std::max(worst, out);
    }
    return worst;
  };
  const double vector = n << 10;
  EXPECT_EQ(crossing(all_reduce), 2 * vector / size * (servers - 1) / servers);
  EXPECT_EQ(crossing(reduce_scatter), vector / size * (servers - 1) / servers);
  EXPECT_EQ(crossing(all_gather), vector / size * (servers - 1) / servers);
  EXPECT_EQ(crossing(all_to_all), vector * (servers - 1) / servers);
  EXPECT_EQ(crossing(broadcast), vector / size);
}

TEST(Rails, LanesFollowTheSmallestServer) {
  const Rails rails({.ranks = 10, .servers = {{0, 1, 2, 3, 4}, {5, 6}, {7, 8, 9}}});
  EXPECT_EQ(rails.lanes, 2U);
  EXPECT_EQ(rails.head(2, 1), 8U);
  EXPECT_EQ(rails.lane_size(0, 0), 3U);
  EXPECT_EQ(rails.lane_size(0, 1), 2U);
  EXPECT_EQ(rails.lane_of(9), 0U);
  EXPECT_FALSE(rails.is_head(9));
  Rails promoted = rails;
  promoted.promote(9);
  EXPECT_EQ(promoted.head(2, 0), 9U);
  EXPECT_TRUE(promoted.is_head(9));
  EXPECT_FALSE(promoted.is_head(7));
}

TEST(Pieces, AreChunksUpToALimit) {
  EXPECT_EQ(pieces_of({.chunk = 1_KiB}, 0_B), 1U);
  EXPECT_EQ(pieces_of({.chunk = 1_KiB}, 1_B), 1U);
  EXPECT_EQ(pieces_of({.chunk = 1_KiB}, 1025_B), 2U);
  EXPECT_EQ(pieces_of({.chunk = 1_KiB}, 1_GiB), kMaxPieces);
  EXPECT_EQ(chunk_of({}, 1_GiB), kChunk);
  EXPECT_EQ(chunk_of({}, 3_B), 3_B);
  EXPECT_EQ(fraction(Bytes{std::int64_t{1} << 60}, 2 * 65'535, 65'536),
            Bytes{(std::int64_t{1} << 61) - (std::int64_t{1} << 45)});
}

TEST(LargeGroups, StoreFewEdgesAndReadThemAll) {
  const Schedule rings =
      kRing.build({.kind = all_reduce, .size = 1_GiB, .channels = 8}, {.ranks = 65'536});
  EXPECT_EQ(edge_count(rings), 8U * 65'536);
  const Schedule tree =
      kDoubleBinaryTree.build({.kind = all_reduce, .size = 1_GiB}, {.ranks = 65'536});
  EXPECT_EQ(edge_count(tree), 2U * 2 * 65'535);

  const Schedule direct = kDirect.build({.kind = all_to_all, .size = 1_GiB}, {.ranks = 1'024});
  EXPECT_TRUE(direct.phases[0].channels[0].edges.empty());
  EXPECT_EQ(edge_count(direct), 1'024U * 1'023);

  const Schedule rails =
      kHierarchical.build({.kind = all_to_all, .size = 1_GiB}, servers_of(1'024, 8));
  ASSERT_EQ(rails.phases.size(), 2U);
  EXPECT_EQ(rails.phases[0].channels.size(), 1'024U);
  EXPECT_EQ(rails.phases[1].channels.size(), 8U);
  EXPECT_TRUE(rails.phases[1].channels[0].edges.empty());
  EXPECT_EQ(edge_count(rails), 1'024U * 8 * 7 + 8U * 1'024 * 1'023);
}

}  // namespace
}  // namespace weft::collectives
