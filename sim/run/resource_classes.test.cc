// SPDX-License-Identifier: Apache-2.0
#include "sim/run/resource_classes.hpp"

#include <gtest/gtest.h>

#include "sim/core/random.hpp"

namespace weft {
namespace {

std::vector<Share> all_of(std::initializer_list<std::uint32_t> resources, double weight = 1) {
  std::vector<Share> out;
  for (const std::uint32_t r : resources) out.push_back({r, weight});
  return out;
}

std::vector<std::uint32_t> resources(const std::vector<Share>& shares) {
  std::vector<std::uint32_t> out;
  for (const Share& share : shares) out.push_back(share.resource);
  return out;
}

const std::vector<Bandwidth> kEqual(8, Bandwidth{100});

TEST(ResourceClasses, WhatOneFlowLoadsAlikeIsOne) {
  ResourceClasses classes(kEqual);
  const auto use = classes.add(all_of({1, 2, 5}));
  EXPECT_EQ(resources(classes.shares(use)), (std::vector<std::uint32_t>{1}));
  EXPECT_EQ(classes.representative(5), 1U);
  EXPECT_EQ(classes.representative(0), 0U);
  EXPECT_EQ(classes.representative(7), 0U);
}

TEST(ResourceClasses, AnotherWeightIsAnotherClass) {
  ResourceClasses classes(kEqual);
  const auto use = classes.add(std::vector<Share>{{0, 1}, {1, 2}, {2, 1}, {3, 2}});
  const auto shares = classes.shares(use);
  ASSERT_EQ(shares.size(), 2U);
  EXPECT_EQ(shares[0].resource, 0U);
  EXPECT_EQ(shares[1].resource, 1U);
  EXPECT_DOUBLE_EQ(shares[1].weight, 2);
}

TEST(ResourceClasses, ALaterUseSplitsAndTheEarlierOneNamesBothParts) {
  ResourceClasses classes(kEqual);
  const auto first = classes.add(all_of({0, 1, 2, 3}));
  const auto second = classes.add(all_of({2}));
  const auto third = classes.add(all_of({0, 1, 3, 4}));
  EXPECT_EQ(resources(classes.shares(first)), (std::vector<std::uint32_t>{0, 2}));
  EXPECT_EQ(resources(classes.shares(second)), (std::vector<std::uint32_t>{2}));
  EXPECT_EQ(resources(classes.shares(third)), (std::vector<std::uint32_t>{0, 4}));
}

TEST(ResourceClasses, CapacityAndFaultsTellApart) {
  std::vector<Bandwidth> capacities(4, Bandwidth{100});
  capacities[1] = Bandwidth{50};
  const std::uint32_t faulty[] = {2};
  ResourceClasses classes(capacities, faulty);
  const auto use = classes.add(all_of({0, 1, 2, 3}));
  EXPECT_EQ(resources(classes.shares(use)), (std::vector<std::uint32_t>{0, 1, 2}));
}

TEST(ResourceClasses, AResourceNamedTwiceCountsTwice) {
  ResourceClasses classes(kEqual);
  const auto use = classes.add(all_of({3, 3, 4}));
  const auto shares = classes.shares(use);
  ASSERT_EQ(shares.size(), 2U);
  EXPECT_DOUBLE_EQ(shares[0].weight, 2);
  EXPECT_DOUBLE_EQ(shares[1].weight, 1);
}

// Law: every resource has exactly the weights of its representative, in every use.
TEST(ResourceClasses, AMemberCarriesWhatItsRepresentativeCarries) {
  for (std::uint64_t seed = 0; seed < 50; ++seed) {
    Random random(seed, "classes", 0);
    const std::uint32_t n = 40;
    std::vector<Bandwidth> capacities;
    for (std::uint32_t r = 0; r < n; ++r)
      capacities.push_back(Bandwidth{static_cast<std::int64_t>(100 * (1 + random.below(2)))});
    ResourceClasses classes(capacities);
    std::vector<std::vector<double>> weights(n);
    std::vector<std::uint32_t> uses;
    for (int use = 0; use < 6; ++use) {
      std::vector<Share> shares;
      const auto period = static_cast<std::uint32_t>(1 + random.below(6));
      for (std::uint32_t r = 0; r < n; ++r) {
        const double w = r % period == 0 ? 1 + static_cast<double>(r / 20) : 0;
        weights[r].push_back(w);
        if (w > 0) shares.push_back({r, w});
      }
      uses.push_back(classes.add(shares));
    }
    for (std::uint32_t r = 0; r < n; ++r) {
      const std::uint32_t rep = classes.representative(r);
      EXPECT_EQ(weights[r], weights[rep]) << seed << " " << r;
      EXPECT_EQ(capacities[r], capacities[rep]);
    }
    for (std::size_t use = 0; use < uses.size(); ++use) {
      std::vector<double> seen(n, 0);
      for (const Share& share : classes.shares(uses[use])) {
        EXPECT_EQ(classes.representative(share.resource), share.resource);
        seen[share.resource] += share.weight;
      }
      for (std::uint32_t r = 0; r < n; ++r)
        EXPECT_DOUBLE_EQ(seen[classes.representative(r)], weights[r][use]) << seed << " " << r;
    }
  }
}

}  // namespace
}  // namespace weft
