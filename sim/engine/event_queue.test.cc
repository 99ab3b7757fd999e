// SPDX-License-Identifier: Apache-2.0
#include "sim/engine/event_queue.hpp"

#include <algorithm>
#include <tuple>
#include <vector>

#include <gtest/gtest.h>

#include "sim/core/random.hpp"

namespace weft {
namespace {

struct SmallEvent {
  Time when = {};
  std::uint64_t order = 0;
  std::uint64_t arg = 0;
};
static_assert(sizeof(Event) == 32 && sizeof(SmallEvent) == 24);

TEST(EventQueue, StartsEmptyAtZero) {
  const EventQueue<> queue;
  EXPECT_TRUE(queue.empty());
  EXPECT_EQ(queue.now(), 0_ps);
  EXPECT_EQ(queue.next_time(), Time::never());
}

TEST(EventQueue, EarliestLeavesFirstAndMovesTheClock) {
  EventQueue<> queue;
  queue.at(30_ns, {.target = 3});
  queue.at(10_ns, {.target = 1});
  queue.after(20_ns, {.target = 2});
  EXPECT_EQ(queue.next_time(), 10_ns);
  for (std::uint32_t i = 1; i <= 3; ++i) {
    EXPECT_EQ(queue.pop().target, i);
    EXPECT_EQ(queue.now(), 10_ns * i);
  }
  EXPECT_TRUE(queue.empty());
}

TEST(EventQueue, AfterCountsFromNow) {
  EventQueue<> queue;
  queue.at(5_ns, {});
  queue.pop();
  queue.after(7_ns, {});
  EXPECT_EQ(queue.next_time(), 12_ns);
}

TEST(EventQueue, TiesLeaveInTheOrderOfInsertion) {
  EventQueue<> queue;
  for (std::uint64_t i = 0; i < 1000; ++i) queue.at(1_us, {.arg = i});
  for (std::uint64_t i = 0; i < 1000; ++i) EXPECT_EQ(queue.pop().arg, i);
}

TEST(EventQueue, AnEventOfThisInstantComesAfterThoseAlreadyThere) {
  EventQueue<> queue;
  queue.at(1_us, {.arg = 0});
  queue.at(1_us, {.arg = 1});
  queue.pop();
  queue.after(0_ps, {.arg = 2});
  EXPECT_EQ(queue.pop().arg, 1u);
  EXPECT_EQ(queue.pop().arg, 2u);
}

TEST(EventQueue, OwnOrdersArePriorities) {
  EventQueue<> queue;
  queue.push({.when = 1_us, .order = 9, .arg = 9});
  queue.push({.when = 1_us, .order = ~0ULL, .arg = 10});
  queue.push({.when = 1_us, .order = 2, .arg = 2});
  queue.push({.when = 500_ns, .order = 99, .arg = 0});
  for (const std::uint64_t arg : {0u, 2u, 9u, 10u}) EXPECT_EQ(queue.pop().arg, arg);
}

TEST(EventQueue, ThePastIsABug) {
  EventQueue<> queue;
  queue.at(10_ns, {});
  queue.at(20_ns, {});
  queue.pop();
  EXPECT_THROW(queue.at(9_ns, {}), Bug);
  EXPECT_THROW(queue.after(Time{-1}, {}), Bug);
  EXPECT_THROW(queue.replace_at(19_ns, {}), Bug);
  EXPECT_EQ(queue.size(), 1u);
}

TEST(EventQueue, ReplaceIsPopThenPush) {
  Random luck(1, "replace");
  EventQueue<> one, two;
  for (std::uint64_t i = 0; i < 37; ++i) {
    const Time when{static_cast<std::int64_t>(luck.below(50))};
    one.at(when, {.arg = i});
    two.at(when, {.arg = i});
  }
  for (std::uint64_t i = 0; i < 2000; ++i) {
    const Time delay{static_cast<std::int64_t>(luck.below(50))};
    const Event popped = one.pop();
    one.after(delay, {.arg = i});
    const Event replaced = two.replace_at(two.next_time() + delay, {.arg = i});
    ASSERT_EQ(popped.arg, replaced.arg);
    ASSERT_EQ(one.now(), two.now());
  }
}

TEST(EventQueue, ClearForgetsEventsAndTime) {
  EventQueue<> queue;
  queue.at(10_ns, {});
  queue.at(20_ns, {});
  queue.pop();
  queue.clear();
  EXPECT_TRUE(queue.empty());
  EXPECT_EQ(queue.now(), 0_ps);
  queue.at(1_ns, {.arg = 4});
  EXPECT_EQ(queue.pop().order, 0u);
}

template <class Queue>
class AnyEventQueue : public testing::Test {};
using Shapes = testing::Types<EventQueue<Event, 2>, EventQueue<Event, 4>, EventQueue<Event, 8>,
                              EventQueue<SmallEvent>>;
TYPED_TEST_SUITE(AnyEventQueue, Shapes);

TYPED_TEST(AnyEventQueue, LeavesAsASortedListWould) {
  Random luck(1, "sorted");
  for (int round = 0; round < 50; ++round) {
    TypeParam queue;
    std::vector<std::tuple<Time, std::uint64_t>>
        expected;  // in any order; the earliest is looked for
    std::uint64_t stamp = 0;
    for (int step = 0; step < 400; ++step) {
      if (expected.empty() || luck.chance(step < 250 ? 0.6 : 0.3)) {
        const Time delay{static_cast<std::int64_t>(luck.below(20))};
        queue.after(delay, {.arg = stamp});
        expected.emplace_back(queue.now() + delay, stamp++);
      } else {
        const auto first = std::ranges::min_element(expected);
        const auto event = queue.pop();
        ASSERT_EQ(event.when, std::get<0>(*first));
        ASSERT_EQ(event.arg, std::get<1>(*first));
        expected.erase(first);
      }
      ASSERT_EQ(queue.size(), expected.size());
    }
  }
}

}  // namespace
}  // namespace weft
