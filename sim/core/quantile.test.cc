// SPDX-License-Identifier: Apache-2.0
#include "sim/core/quantile.hpp"

#include <vector>

#include <gtest/gtest.h>

#include "sim/core/units.hpp"

namespace weft {
namespace {

// As numpy.quantile of the same values.
TEST(Quantile, LiesBetweenTheTwoNearestValues) {
  const std::vector<double> sample{1, 2, 4, 8};
  EXPECT_DOUBLE_EQ(quantile(sample, 0), 1);
  EXPECT_DOUBLE_EQ(quantile(sample, 0.5), 3);
  EXPECT_DOUBLE_EQ(quantile(sample, 0.9), 6.8);
  EXPECT_DOUBLE_EQ(quantile(sample, 1), 8);
}

TEST(Quantile, OfOneValueIsThatValue) {
  EXPECT_DOUBLE_EQ(quantile(std::vector<double>{7}, 0.9), 7);
}

TEST(Quantile, OfTimesIsTakenInTheGivenUnit) {
  const std::vector<Time> sample{Time{1'000'000}, Time{3'000'000}};
  EXPECT_DOUBLE_EQ(quantile(sample, 0.25, &Time::us), 1.5);
}

TEST(Quantile, OfNothingIsOurMistake) { EXPECT_THROW(quantile(std::vector<double>{}, 0.5), Bug); }

}  // namespace
}  // namespace weft
