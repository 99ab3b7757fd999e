// SPDX-License-Identifier: Apache-2.0
#include "models/packet/pauses.hpp"

#include <gtest/gtest.h>

namespace weft::packet {
namespace {

TEST(HeavyHitters, AreExactWhileTheyFit) {
  HeavyHitters hitters;
  for (std::uint64_t key = 0; key < HeavyHitters::kSlots; ++key) {
    for (std::uint64_t i = 0; i <= key; ++i) hitters.add(key);
  }
  const auto ranked = hitters.ranked();
  ASSERT_EQ(ranked.size(), HeavyHitters::kSlots);
  for (const HeavyHitters::Slot& slot : ranked) EXPECT_EQ(slot.count, slot.key + 1);
  EXPECT_EQ(ranked.front().key, HeavyHitters::kSlots - 1);
}

// The bound of the paper: no count is too low, and none too high by more than total / slots.
TEST(HeavyHitters, KeepTheHeaviestOfMany) {
  HeavyHitters hitters;
  for (std::uint64_t i = 0; i < 100'000; ++i) hitters.add(i % 3 == 0 ? 7 : 1000 + i % 997);
  const auto ranked = hitters.ranked();
  EXPECT_EQ(ranked.front().key, 7U);
  EXPECT_GE(ranked.front().count, 33'333U);
  EXPECT_LE(ranked.front().count, 33'334 + hitters.total() / HeavyHitters::kSlots);
}

TEST(PauseLog, BooksTheTimeUnderTheCauseOfEachPause) {
  PauseLog log;
  log.size(4);
  EXPECT_TRUE(log.empty());
  log.begin(1, 3, 10, 5_us);
  log.end(1, 3, 7_us);
  log.begin(1, 3, 11, 8_us);
  EXPECT_EQ(log.total(3, 9_us), 3_us);
  const PauseLog::Edges edges = log.edges(2, 10_us);
  EXPECT_EQ(edges.at({1, 10}).time, 2_us);
  EXPECT_EQ(edges.at({1, 11}).time, 2_us);
  EXPECT_EQ(edges.at({1, 11}).pauses, 1U);
  log.end(1, 3, 12_us);
  log.end(1, 3, 13_us);
  EXPECT_EQ(log.total(3, 20_us), 6_us);
}

}  // namespace
}  // namespace weft::packet
