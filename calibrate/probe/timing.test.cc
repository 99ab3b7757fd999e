// SPDX-License-Identifier: Apache-2.0
#include "calibrate/probe/timing.hpp"

#include <gtest/gtest.h>

namespace weft {
namespace {

std::vector<Time> us(std::initializer_list<double> values) {
  std::vector<Time> out;
  for (const double value : values) out.push_back(Time{static_cast<std::int64_t>(value * 1e6)});
  return out;
}

TEST(Timing, MedianAndQuartilesOfTheHeader) {
  const auto out = summarise(us({12, 10, 30, 11, 10, 11}));
  ASSERT_TRUE(out);
  EXPECT_EQ(out->median, 11_us);
  EXPECT_EQ(out->repeats.spread, 1500_ns);
  EXPECT_EQ(out->repeats.repeats, 6);
  EXPECT_EQ(out->repeats.fastest, 10_us);
  EXPECT_EQ(out->repeats.slowest, 30_us);
  EXPECT_EQ(out->repeats.outliers, us({30}));
}

TEST(Timing, OutlierMovesTheMedianByARankOnly) {
  const auto calm = summarise(us({100, 101, 102, 103, 104}));
  const auto disturbed = summarise(us({100, 101, 102, 103, 9000}));
  EXPECT_EQ(calm->median, disturbed->median);
  EXPECT_TRUE(calm->repeats.outliers.empty());
  EXPECT_EQ(disturbed->repeats.outliers, us({9000}));
  EXPECT_EQ(disturbed->repeats.repeats, 5);
}

TEST(Timing, RunsOnTheGridOfAClockAreNoOutliers) {
  const auto out = summarise(us({100, 100, 100, 100, 100, 100, 100.5}));
  EXPECT_EQ(out->repeats.spread, Time{0});
  EXPECT_TRUE(out->repeats.outliers.empty());
  EXPECT_FALSE(out->repeats.unsettled);
}

TEST(Timing, RunsThatDisagreeAreUnsettled) {
  EXPECT_EQ(summarise(us({100, 100, 130, 130, 100, 130}))->repeats.unsettled, true);
  EXPECT_FALSE(summarise(us({100, 101, 103, 102, 100, 104}))->repeats.unsettled);
}

TEST(Timing, FewRunsHaveNoOutliersAndNoneHasNoMedian) {
  EXPECT_FALSE(summarise({}));
  EXPECT_EQ(summarise(us({7}))->median, 7_us);
  EXPECT_TRUE(summarise(us({7, 70, 7}))->repeats.outliers.empty());
}

TEST(Timing, RunsUntilTheTimeIsUpButOftenEnough) {
  const RepeatRules rules{.least = 5, .most = 20, .seconds = 1, .timeout = 10};
  EXPECT_TRUE(wants_more(rules, 4, 3));
  EXPECT_FALSE(wants_more(rules, 5, 3));
  EXPECT_TRUE(wants_more(rules, 6, 0.5));
  EXPECT_FALSE(wants_more(rules, 20, 0.5));
  EXPECT_FALSE(wants_more(rules, 1, 10));
}

}  // namespace
}  // namespace weft
