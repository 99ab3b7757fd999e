// SPDX-License-Identifier: Apache-2.0
#include "sim/run/observed.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace weft {
namespace {

TEST(Distribution, PercentilesAreValuesThatOccur) {
  std::vector<double> values;
  for (int i = 100; i >= 1; --i) values.push_back(i);
  const Distribution d = distribution_of(values);
  EXPECT_EQ(d.mean, 50.5);
  EXPECT_EQ(d.p50, 50);
  EXPECT_EQ(d.p90, 90);
  EXPECT_EQ(d.p99, 99);
  EXPECT_EQ(d.most, 100);
  const Distribution one = distribution_of({7});
  EXPECT_EQ(one.p50, 7);
  EXPECT_EQ(one.p99, 7);
  EXPECT_EQ(distribution_of({}).most, 0);
}

// 1 is stopped because of 2, 2 because of 3; 4 is stopped for a moment because of 1.
TEST(PauseTree, FollowsCausesToWherePausesBegin) {
  const PauseTree tree({{1, 2, 5, 100_us}, {1, 9, 1, 10_us}, {2, 3, 5, 80_us}, {4, 1, 1, 1_us}});
  EXPECT_EQ(tree.cause_of(1), 2U);
  EXPECT_EQ(tree.root_of(1), 3U);
  EXPECT_EQ(tree.root_of(2), 3U);
  EXPECT_EQ(tree.root_of(4), 3U);
  EXPECT_EQ(tree.root_of(7), 7U);
}

TEST(PauseTree, ACauseThatIsHardlyStoppedItselfIsTheEnd) {
  EXPECT_EQ(PauseTree({{1, 2, 5, 100_us}, {2, 3, 1, 49_us}}).root_of(1), 2U);
  EXPECT_EQ(PauseTree({{1, 2, 5, 100_us}, {2, 3, 1, 50_us}}).root_of(1), 3U);
}

TEST(PauseTree, ARingOfCausesEnds) {
  const PauseTree ring({{1, 2, 1, 1_us}, {2, 3, 1, 1_us}, {3, 1, 1, 1_us}});
  EXPECT_EQ(ring.root_of(1), 1U);
}

TEST(Victim, IsExplainedInASentence) {
  VictimReport victim{"v/0", 0.41, "spine0:leaf1", "leaf1", "leaf1:host4", {{"hog/3", 0.6}}};
  EXPECT_EQ(victim.text(),
            "v/0 was paused 41 % of the time at spine0:leaf1 by leaf1, because of hog/3 (60 %), "
            "which fill the queue to leaf1:host4");
  victim.flows = {{"a", 0.4}, {"b", 0.3}, {"c", 0.2}, {"d", 0.1}};
  EXPECT_THAT(victim.text(), testing::HasSubstr("a (40 %), b (30 %), c (20 %) and others"));
  victim.flows.pop_back();
  EXPECT_THAT(victim.text(), testing::HasSubstr("a (40 %), b (30 %) and c (20 %)"));
}

}  // namespace
}  // namespace weft
