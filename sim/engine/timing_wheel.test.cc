// SPDX-License-Identifier: Apache-2.0
#include "sim/engine/timing_wheel.hpp"

#include <set>
#include <utility>

#include <gtest/gtest.h>

#include "sim/core/random.hpp"

namespace weft {
namespace {

TEST(TimingWheel, GivesEarliestFirstAndSmallerIdOfOneInstant) {
  TimingWheel wheel(4, 1_us);
  wheel.set(3, 5_ns);
  wheel.set(1, 5_ns);
  wheel.set(2, 1_ns);
  EXPECT_EQ(wheel.next(), 1_ns);
  EXPECT_EQ(wheel.pop(), 2u);
  EXPECT_EQ(wheel.next(), 5_ns);
  EXPECT_EQ(wheel.pop(), 1u);
  EXPECT_EQ(wheel.next(), 5_ns);
  EXPECT_EQ(wheel.pop(), 3u);
  EXPECT_EQ(wheel.next(), Time::never());
}

TEST(TimingWheel, AlarmOfTheRunningInstantIsTakenBeforeLaterOnes) {
  TimingWheel wheel(3, 1_us);
  wheel.set(0, 100_ns);
  wheel.set(1, 200_ns);
  EXPECT_EQ(wheel.next(), 100_ns);
  EXPECT_EQ(wheel.pop(), 0u);
  wheel.set(2, 100_ns);
  EXPECT_EQ(wheel.next(), 100_ns);
  EXPECT_EQ(wheel.pop(), 2u);
}

// Against an ordered set, with alarms near, a turn ahead and far, moved and taken away.
TEST(TimingWheel, AgreesWithAnOrderedSet) {
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    Random random(seed, "wheel");
    const std::uint32_t things = 200;
    TimingWheel wheel(things, Time{std::int64_t{1} << (10 + random.below(14))});
    std::set<std::pair<std::int64_t, std::uint32_t>> expected;
    std::vector<std::int64_t> when(things, -1);
    std::int64_t now = 0;
    const auto set = [&](std::uint32_t id, std::int64_t time) {
      if (when[id] >= 0) expected.erase({when[id], id});
      when[id] = time;
      expected.insert({time, id});
      wheel.set(id, Time{time});
    };
    for (int step = 0; step < 20'000; ++step) {
      const auto id = static_cast<std::uint32_t>(random.below(things));
      switch (random.below(4)) {
        case 0:
        case 1:
          set(id, now + static_cast<std::int64_t>(
                            random.below(std::uint64_t{1} << (1 + random.below(32)))));
          break;
        case 2:
          if (when[id] >= 0) expected.erase({when[id], id});
          when[id] = -1;
          wheel.cancel(id);
          break;
        default:
          if (expected.empty()) {
            ASSERT_EQ(wheel.next(), Time::never());
            break;
          }
          ASSERT_EQ(wheel.next().ps, expected.begin()->first);
          ASSERT_EQ(wheel.pop(), expected.begin()->second);
          now = expected.begin()->first;
          when[expected.begin()->second] = -1;
          expected.erase(expected.begin());
      }
    }
  }
}

}  // namespace
}  // namespace weft
