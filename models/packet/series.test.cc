// SPDX-License-Identifier: Apache-2.0
#include "models/packet/series.hpp"

#include <gtest/gtest.h>

namespace weft::packet {
namespace {

TEST(Series, MeanAndMostOfWhatIsHeld) {
  Series series(2_us);
  series.hold(0_us, 1000);
  series.hold(1_us, 0);
  series.hold(5_us, 300);
  series.finish(6_us);
  ASSERT_GE(series.size(), 3u);
  EXPECT_DOUBLE_EQ(series.mean(0), 500);
  EXPECT_EQ(series.most(0), 1000);
  EXPECT_EQ(series.mean(1), 0);
  EXPECT_EQ(series.most(1), 0);
  EXPECT_DOUBLE_EQ(series.mean(2), 150);
  EXPECT_EQ(series.most(2), 300);
}

TEST(Series, AWindowBeginsWithWhatTheLastOneLeft) {
  Series series(1_us);
  series.hold(500_ns, 80);
  series.hold(2500_ns, 10);
  series.finish(3_us);
  EXPECT_DOUBLE_EQ(series.mean(0), 40);
  EXPECT_DOUBLE_EQ(series.mean(1), 80);
  EXPECT_EQ(series.most(1), 80);
  EXPECT_EQ(series.most(2), 80);
}

TEST(Series, CountsGiveARate) {
  Series series(1_us);
  for (int i = 0; i < 10; ++i) series.add(Time{i * 100'000}, 500);
  series.finish(1_us);
  EXPECT_DOUBLE_EQ(series.mean(0), 5000 / 1e6);  // bytes per picosecond
}

TEST(Series, MergesNeighboursWhenThereAreTooMany) {
  Series series(1_ns);
  const std::int64_t last = 10 * static_cast<std::int64_t>(Series::kMost);
  for (std::int64_t i = 0; i < last; ++i) series.hold(Time{i * 1000}, static_cast<double>(i % 2));
  series.finish(Time{last * 1000});
  EXPECT_LE(series.size(), Series::kMost);
  EXPECT_EQ(series.window(), 16_ns);
  for (std::size_t i = 0; i + 1 < series.size(); ++i) {
    ASSERT_DOUBLE_EQ(series.mean(i), 0.5) << i;
    ASSERT_EQ(series.most(i), 1) << i;
  }
}

}  // namespace
}  // namespace weft::packet
