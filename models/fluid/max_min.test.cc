// SPDX-License-Identifier: Apache-2.0
#include "models/fluid/max_min.hpp"

#include <algorithm>
#include <cmath>
#include <vector>

#include <gtest/gtest.h>

namespace weft {
namespace {

struct Luck {
  std::uint64_t state;
  std::uint64_t below(std::uint64_t n) { return mix_bits(state++) % n; }
};

struct Demand {
  std::vector<Share> shares;
  double fairness = 1;
  double cap = MaxMin::kUnlimited;
  std::uint32_t count = 1;
};

// Progressive filling as in the textbook: at each step the smallest next level over all resources and caps.
std::vector<double> naive_levels(const std::vector<double>& capacities,
                                 const std::vector<Demand>& demands) {
  std::vector<double> levels(demands.size(), -1);
  for (std::size_t left = demands.size(); left > 0;) {
    double least = MaxMin::kUnlimited;
    std::vector<double> full(capacities.size(), MaxMin::kUnlimited);
    for (std::size_t r = 0; r < capacities.size(); ++r) {
      double room = capacities[r], weight = 0;
      for (std::size_t v = 0; v < demands.size(); ++v) {
        for (const Share& share : demands[v].shares) {
          if (share.resource != r) continue;
          const double use = demands[v].count * demands[v].fairness * share.weight;
          if (levels[v] >= 0) {
            room -= levels[v] * use;
          } else {
            weight += use;
          }
        }
      }
      if (weight > 0) full[r] = std::max(room, 0.0) / weight;
      least = std::min(least, full[r]);
    }
    for (std::size_t v = 0; v < demands.size(); ++v) {
      if (levels[v] < 0) least = std::min(least, demands[v].cap / demands[v].fairness);
    }
    for (std::size_t v = 0; v < demands.size(); ++v) {
      if (levels[v] >= 0) continue;
      bool stop = demands[v].cap / demands[v].fairness <= least;
      for (const Share& share : demands[v].shares)
        stop |= full[share.resource] <= least * (1 + 1e-12);
      if (stop) levels[v] = least, --left;
    }
  }
  return levels;
}

Demand random_demand(Luck& luck, std::size_t resources) {
  Demand demand;
  const std::size_t hops = 1 + luck.below(std::min<std::size_t>(4, resources));
  while (demand.shares.size() < hops) {
    const auto r = static_cast<std::uint32_t>(luck.below(resources));
    const bool known = std::any_of(demand.shares.begin(), demand.shares.end(),
                                   [r](const Share& share) { return share.resource == r; });
    const double weights[] = {1, 1, 1, 1.0 / 6, 3, 0.5};
    if (!known) demand.shares.push_back({r, weights[luck.below(6)]});
  }
  const double fairness[] = {1, 1, 1, 2, 0.25, 3};
  demand.fairness = fairness[luck.below(6)];
  if (luck.below(4) == 0) demand.cap = 0.01 * static_cast<double>(1 + luck.below(50));
  demand.count = luck.below(3) == 0 ? static_cast<std::uint32_t>(1 + luck.below(5)) : 1;
  return demand;
}

void expect_same(const MaxMin& solver, const std::vector<double>& capacities,
                 const std::vector<Demand>& demands, const std::vector<std::uint32_t>& ids) {
  const std::vector<double> expected = naive_levels(capacities, demands);
  for (std::size_t v = 0; v < demands.size(); ++v) {
    ASSERT_NEAR(solver.level(ids[v]), expected[v], 1e-11 * std::max(expected[v], 1e-2))
        << "variable " << v;
  }
}

// The definition itself: feasible, and every variable has a reason not to grow.
void expect_max_min(const MaxMin& solver, const std::vector<double>& capacities,
                    const std::vector<Demand>& demands, const std::vector<std::uint32_t>& ids) {
  std::vector<double> used(capacities.size()), highest(capacities.size());
  for (std::size_t v = 0; v < demands.size(); ++v) {
    for (const Share& share : demands[v].shares) {
      used[share.resource] += solver.rate(ids[v]) * share.weight * demands[v].count;
      highest[share.resource] = std::max(highest[share.resource], solver.level(ids[v]));
    }
  }
  for (std::size_t r = 0; r < capacities.size(); ++r)
    ASSERT_LE(used[r], capacities[r] * (1 + 1e-11));
  for (std::size_t v = 0; v < demands.size(); ++v) {
    ASSERT_LE(solver.rate(ids[v]), demands[v].cap * (1 + 1e-15));
    bool reason = solver.rate(ids[v]) >= demands[v].cap * (1 - 1e-15);
    for (const Share& share : demands[v].shares) {
      const std::uint32_t r = share.resource;
      reason |= used[r] >= capacities[r] * (1 - 1e-11) &&
                solver.level(ids[v]) >= highest[r] * (1 - 1e-11);
    }
    ASSERT_TRUE(reason) << "variable " << v;
  }
}

TEST(MaxMin, OneLinkIsSharedByFairnessAndCount) {
  MaxMin solver(std::vector<double>{12});
  const std::vector<Share> link{{0, 1}};
  const std::uint32_t a = solver.define(link, 1, MaxMin::kUnlimited),
                      b = solver.define(link, 2, MaxMin::kUnlimited);
  solver.set_count(a, 2);
  solver.set_count(b, 1);
  solver.solve();
  EXPECT_EQ(solver.rate(a), 3);
  EXPECT_EQ(solver.rate(b), 6);
}

TEST(MaxMin, WeightsOnTheLinkCountAsLoad) {
  MaxMin solver(std::vector<double>{6, 2});
  const std::vector<Share> striped{{0, 1.0 / 6}, {1, 3}}, plain{{0, 1}};
  const std::uint32_t a = solver.define(striped, 1, MaxMin::kUnlimited),
                      b = solver.define(plain, 1, MaxMin::kUnlimited);
  solver.set_count(a, 1);
  solver.set_count(b, 1);
  solver.solve();
  EXPECT_DOUBLE_EQ(solver.rate(a), 2.0 / 3);
  EXPECT_DOUBLE_EQ(solver.rate(b), 6 - 2.0 / 18);
}

TEST(MaxMin, TheTextbookParkingLot) {
  MaxMin solver(std::vector<double>{1, 1, 1});
  const std::vector<Share> whole{{0, 1}, {1, 1}, {2, 1}};
  const std::uint32_t through = solver.define(whole, 1, MaxMin::kUnlimited);
  solver.set_count(through, 1);
  std::vector<std::uint32_t> local;
  for (std::uint32_t r = 0; r < 3; ++r) {
    const std::vector<Share> one{{r, 1}};
    local.push_back(solver.define(one, 1, MaxMin::kUnlimited));
    solver.set_count(local.back(), r + 1);
  }
  solver.solve();
  EXPECT_EQ(solver.rate(through), 0.25);
  EXPECT_EQ(solver.rate(local[0]), 0.75);
  EXPECT_EQ(solver.rate(local[1]), 0.375);
  EXPECT_EQ(solver.rate(local[2]), 0.25);
}

TEST(MaxMin, CapacityZeroStopsItsVariablesOnly) {
  MaxMin solver(std::vector<double>{0, 4});
  const std::vector<Share> both{{0, 1}, {1, 1}}, second{{1, 1}};
  const std::uint32_t a = solver.define(both, 1, MaxMin::kUnlimited),
                      b = solver.define(second, 1, MaxMin::kUnlimited);
  solver.set_count(a, 1);
  solver.set_count(b, 1);
  solver.solve();
  EXPECT_EQ(solver.rate(a), 0);
  EXPECT_EQ(solver.rate(b), 4);
  solver.set_capacity(0, 1);
  solver.solve();
  EXPECT_EQ(solver.rate(a), 1);
  EXPECT_EQ(solver.rate(b), 3);
}

TEST(MaxMin, WhatFrozeBelowAChangeIsNotSolvedAgain) {
  MaxMin solver(std::vector<double>{1, 10});
  const std::vector<Share> both{{0, 1}, {1, 1}}, second{{1, 1}};
  const std::uint32_t low = solver.define(both, 1, MaxMin::kUnlimited),
                      a = solver.define(second, 1, MaxMin::kUnlimited),
                      b = solver.define(second, 1, MaxMin::kUnlimited);
  for (const std::uint32_t v : {low, a, b}) solver.set_count(v, 1);
  solver.solve();
  EXPECT_EQ(solver.rate(a), 4.5);
  solver.set_count(b, 0);
  solver.solve();
  EXPECT_EQ(solver.rate(a), 9);
  EXPECT_EQ(solver.relevelled().size(), 1);
  EXPECT_TRUE(solver.moved().empty());
  EXPECT_EQ(solver.rate(low), 1);
}

TEST(MaxMin, SymmetricVariablesGetOneRateBitForBit) {
  const std::uint32_t n = 23;  // all-to-all over input and output links: nothing divides evenly
  std::vector<double> capacities(2 * n, 0.1);
  MaxMin solver(capacities);
  std::vector<std::uint32_t> ids;
  for (std::uint32_t i = 0; i < n; ++i) {
    for (std::uint32_t j = 0; j < n; ++j) {
      const std::vector<Share> path{{i, 1}, {n + j, 1}};
      if (i != j)
        ids.push_back(solver.define(path, 1, MaxMin::kUnlimited)), solver.set_count(ids.back(), 1);
    }
  }
  solver.solve();
  for (const std::uint32_t v : ids) ASSERT_EQ(solver.rate(v), solver.rate(ids[0]));
  EXPECT_DOUBLE_EQ(solver.rate(ids[0]), 0.1 / (n - 1));
}

TEST(MaxMin, RandomSystemsEqualNaiveFilling) {
  for (std::uint64_t seed = 0; seed < 300; ++seed) {
    Luck luck{seed << 32};
    const std::size_t resources = 1 + luck.below(12);
    std::vector<double> capacities;
    for (std::size_t r = 0; r < resources; ++r)
      capacities.push_back(luck.below(15) == 0 ? 0 : 0.05 * (1.0 + luck.below(8)));
    MaxMin solver(capacities);
    std::vector<Demand> demands;
    std::vector<std::uint32_t> ids;
    for (std::size_t v = 1 + luck.below(20); v-- > 0;) {
      demands.push_back(random_demand(luck, resources));
      ids.push_back(
          solver.define(demands.back().shares, demands.back().fairness, demands.back().cap));
      solver.set_count(ids.back(), demands.back().count);
    }
    solver.solve();
    expect_same(solver, capacities, demands, ids);
    expect_max_min(solver, capacities, demands, ids);
    if (HasFatalFailure()) FAIL() << "seed " << seed;
  }
}

// The incremental solver after any history equals a solver that starts over.
void random_history(bool remember, std::size_t cluster_size) {
  for (std::uint64_t seed = 0; seed < 150; ++seed) {
    Luck luck{(seed << 32) + 12345};
    const std::size_t resources = 2 + luck.below(14);
    std::vector<double> capacities(resources, 0.05);
    if (luck.below(2) == 0) {
      for (double& capacity : capacities) capacity = 0.05 * (1.0 + luck.below(4));
    }
    MaxMin solver(capacities, remember, cluster_size);
    std::vector<Demand> demands;
    std::vector<std::uint32_t> ids;
    for (int step = 0; step < 80; ++step) {
      const std::uint64_t what = luck.below(10);
      if (what < 5 || demands.empty()) {
        demands.push_back(random_demand(luck, resources));
        ids.push_back(
            solver.define(demands.back().shares, demands.back().fairness, demands.back().cap));
        solver.set_count(ids.back(), demands.back().count);
      } else if (what < 8) {
        const std::size_t v = luck.below(demands.size());
        solver.set_count(ids[v], 0);
        solver.forget(ids[v]);
        demands.erase(demands.begin() + static_cast<std::ptrdiff_t>(v));
        ids.erase(ids.begin() + static_cast<std::ptrdiff_t>(v));
      } else if (what == 8) {
        const std::size_t v = luck.below(demands.size());
        demands[v].count = static_cast<std::uint32_t>(1 + luck.below(5));
        solver.set_count(ids[v], demands[v].count);
      } else {
        const std::size_t r = luck.below(resources);
        capacities[r] = luck.below(5) == 0 ? 0 : 0.05 * (1.0 + luck.below(6));
        solver.set_capacity(static_cast<std::uint32_t>(r), capacities[r]);
      }
      if (luck.below(3) == 0) continue;  // several changes at one instant
      solver.solve();
      expect_same(solver, capacities, demands, ids);
      expect_max_min(solver, capacities, demands, ids);
      if (testing::Test::HasFatalFailure()) FAIL() << "seed " << seed << " step " << step;
    }
  }
}

TEST(MaxMin, AnyHistoryEqualsAFreshStart) { random_history(false, 1000); }
TEST(MaxMin, MemoryOfRepeatsChangesNothing) { random_history(true, 1000); }
TEST(MaxMin, ClustersChangeNothing) { random_history(false, 2); }
TEST(MaxMin, ClustersOfMediumSizeChangeNothing) { random_history(false, 12); }
TEST(MaxMin, ClustersAndMemoryChangeNothing) { random_history(true, 5); }

TEST(MaxMin, ARepeatIsTakenFromMemory) {
  MaxMin solver(std::vector<double>(16, 1.0), true);
  std::vector<std::uint32_t> ids;
  for (std::uint32_t i = 0; i < 8; ++i) {
    for (std::uint32_t j = 8; j < 16; ++j) {
      const std::vector<Share> path{{i, 1}, {j, 1.0 + (i * j) % 3}};
      ids.push_back(solver.define(path, 1, MaxMin::kUnlimited));
    }
  }
  std::vector<double> first;
  for (int repeat = 0; repeat < 5; ++repeat) {
    for (const std::uint32_t v : ids) solver.set_count(v, 1);
    solver.solve();
    for (std::size_t i = 0; i < ids.size(); ++i) {
      if (repeat == 0) first.push_back(solver.rate(ids[i]));
      ASSERT_EQ(solver.rate(ids[i]), first[i]);
    }
    for (const std::uint32_t v : ids) solver.set_count(v, 0);
    solver.solve();
  }
  EXPECT_EQ(solver.solves(), 2);
  EXPECT_EQ(solver.remembered(), 3);
}

}  // namespace
}  // namespace weft
