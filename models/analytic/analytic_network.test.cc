// SPDX-License-Identifier: Apache-2.0
#include "models/analytic/analytic_network.hpp"

#include <vector>

#include <gtest/gtest.h>

#include "models/fluid/fluid_network.hpp"

namespace weft {
namespace {

std::vector<FlowDone> drain(NetworkModel& network) {
  std::vector<FlowDone> done;
  for (Time next = network.next_event(); next < Time::never(); next = network.next_event())
    network.advance(next, done);
  return done;
}

TEST(AnalyticNetwork, LoneFlowEqualsFluid) {
  for (const std::int64_t size : {0, 1, 4096, 1'000'003}) {
    for (const double weight : {1.0, 3.0, 1.0 / 6}) {
      const std::vector<Bandwidth> capacities{400_Gbps, Bandwidth{145'588'235'294}};
      const std::vector<Share> path{{0, 1}, {1, weight}};
      AnalyticNetwork analytic(capacities);
      FluidNetwork fluid(capacities);
      const FlowRequest request{.shares = path, .size = {size}, .latency = 1_us, .tag = 5};
      analytic.start(request, 2_us);
      fluid.start(request, 2_us);
      const auto a = drain(analytic), f = drain(fluid);
      ASSERT_EQ(a.size(), 1);
      EXPECT_EQ(a[0].when, f[0].when) << size << " " << weight;
      EXPECT_EQ(a[0].tag, 5);
    }
  }
}

TEST(AnalyticNetwork, EqualFlowsOnOneLinkEqualFluid) {
  for (const std::int64_t n : {2, 3, 1000}) {
    const std::vector<Bandwidth> capacities{Bandwidth{145'588'235'294}};
    const std::vector<Share> path{{0, 1}};
    AnalyticNetwork analytic(capacities);
    FluidNetwork fluid(capacities);
    for (std::int64_t i = 0; i < n; ++i) {
      const FlowRequest request{
          .shares = path, .size = 1_MiB, .latency = 1_us, .tag = static_cast<std::uint64_t>(i)};
      analytic.start(request, Time{0});
      fluid.start(request, Time{0});
    }
    const auto a = drain(analytic), f = drain(fluid);
    ASSERT_EQ(a.size(), f.size());
    for (std::size_t i = 0; i < a.size(); ++i) {
      EXPECT_EQ(a[i].when, 1_us + transfer_time(1_MiB * n, capacities[0]));
      EXPECT_EQ(a[i].when, f[i].when);
      EXPECT_EQ(a[i].tag, f[i].tag);
    }
    EXPECT_DOUBLE_EQ(analytic.carried_bytes(0), static_cast<double>(n << 20));
    EXPECT_EQ(analytic.busy_time(0), transfer_time(1_MiB * n, capacities[0]));
  }
}

TEST(AnalyticNetwork, CapsAndFairnessCount) {
  const std::vector<Bandwidth> capacities{400_Gbps};
  const std::vector<Share> path{{0, 1}};
  AnalyticNetwork network(capacities);
  network.start({.shares = path, .size = 1_MiB, .cap = 10_Gbps, .tag = 0}, Time{0});
  network.start({.shares = path, .size = 1_MiB, .fairness = 3, .tag = 1}, Time{0});
  const auto done = drain(network);
  EXPECT_EQ(done[0].tag, 1);
  EXPECT_EQ(done[0].when, transfer_time(1_MiB, 300_Gbps));
  EXPECT_EQ(done[1].when, transfer_time(1_MiB, 10_Gbps));
}

TEST(AnalyticNetwork, CarriedBytesGrowEvenly) {
  const std::vector<Bandwidth> capacities{400_Gbps};
  const std::vector<Share> path{{0, 0.5}};
  AnalyticNetwork network(capacities);
  network.start({.shares = path, .size = 100_KB}, 1_us);
  std::vector<FlowDone> done;
  network.next_event();
  network.advance(Time{1'500'000}, done);
  EXPECT_NEAR(network.carried_bytes(0), 25e3, 1e-6);
  EXPECT_EQ(network.busy_time(0), 500_ns);
}

TEST(AnalyticNetwork, WithoutCapacityAFlowWaitsForSome) {
  const std::vector<Bandwidth> capacities{{0}};
  const std::vector<Share> path{{0, 1}};
  AnalyticNetwork network(capacities);
  network.start({.shares = path, .size = 50_KB, .latency = 1_us}, Time{0});
  EXPECT_EQ(network.next_event(), Time::never());
  network.set_capacity(0, 400_Gbps, 5_us);
  const auto done = drain(network);
  ASSERT_EQ(done.size(), 1);
  EXPECT_EQ(done[0].when, 7_us);
}

}  // namespace
}  // namespace weft
