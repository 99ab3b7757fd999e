// SPDX-License-Identifier: Apache-2.0
#include "models/analytic/bounds.hpp"

#include <vector>

#include <gtest/gtest.h>

#include "models/fluid/fluid_network.hpp"

namespace weft {
namespace {

const std::vector<Share> kFirst{{0, 1}}, kBoth{{0, 1}, {1, 1}}, kTriple{{1, 3}};

TEST(LowerBound, NothingTakesNoTime) { EXPECT_EQ(lower_bound({}, {}).time, Time{0}); }

TEST(LowerBound, ALoadedLinkAndItsShortestLatency) {
  const std::vector<Bandwidth> capacities{400_Gbps, 100_Gbps};
  const std::vector<BoundMessage> three{
      {kFirst, 1_MB, 1_us}, {kFirst, 1_MB, 2_us}, {kFirst, 1_MB, 3_us}};
  const Bound bound = lower_bound(capacities, three);
  EXPECT_LE(bound.time, 61_us);
  EXPECT_GE(bound.time, 61_us - Time{100});
  EXPECT_EQ(bound.resource, 0);
}

TEST(LowerBound, TheSlowestHopOfALoneMessage) {
  const std::vector<Bandwidth> capacities{400_Gbps, 100_Gbps};
  const std::vector<BoundMessage> one{{kBoth, 1_MB, 4_us}};
  EXPECT_EQ(lower_bound(capacities, one).resource, 1);
  EXPECT_NEAR(lower_bound(capacities, one).time.us(), 84, 1e-3);
  const std::vector<BoundMessage> heavy{{kTriple, 1_MB, {0}}};
  EXPECT_NEAR(lower_bound(capacities, heavy).time.us(), 240, 1e-3);
}

TEST(LowerBound, LatencyAloneCounts) {
  const std::vector<BoundMessage> empty{{kFirst, {0}, 7_us}};
  const Bound bound = lower_bound(std::vector<Bandwidth>{{0}}, empty);
  EXPECT_EQ(bound.time, 7_us);
  EXPECT_EQ(bound.resource, Bound::kNoResource);
}

TEST(LowerBound, WithoutCapacityItIsNever) {
  const std::vector<BoundMessage> one{{kFirst, 1_MB, 7_us}};
  EXPECT_EQ(lower_bound(std::vector<Bandwidth>{{0}}, one).time, Time::never());
}

TEST(LowerBound, TheFluidModelNeverBeatsIt) {
  for (std::uint64_t seed = 1; seed < 200; ++seed) {
    std::uint64_t luck = seed * 1000;
    const auto below = [&luck](std::uint64_t n) { return mix_bits(luck++) % n; };
    std::vector<Bandwidth> capacities;
    for (int r = 0; r < 5; ++r)
      capacities.push_back(Bandwidth{static_cast<std::int64_t>(1 + below(400)) * 1'000'000'007});
    std::vector<std::vector<Share>> shares(12);
    std::vector<BoundMessage> messages;
    for (std::vector<Share>& path : shares) {
      for (std::uint32_t r = 0; r < 5; ++r) {
        if (below(2) == 0) path.push_back({r, below(2) == 0 ? 1.0 : 0.5});
      }
      messages.push_back({path,
                          {static_cast<std::int64_t>(1 + below(1'000'000))},
                          {static_cast<std::int64_t>(below(3) * 1'000'000)}});
    }
    FluidNetwork network(capacities);
    for (const BoundMessage& m : messages)
      network.start({.shares = m.shares, .size = m.size, .latency = m.latency}, Time{0});
    std::vector<FlowDone> done;
    while (network.next_event() < Time::never()) network.advance(network.next_event(), done);
    ASSERT_EQ(done.size(), messages.size());
    EXPECT_LE(lower_bound(capacities, messages).time, done.back().when) << "seed " << seed;
  }
}

}  // namespace
}  // namespace weft
