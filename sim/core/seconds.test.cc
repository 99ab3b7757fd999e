// SPDX-License-Identifier: Apache-2.0
#include "sim/core/seconds.hpp"

#include <gtest/gtest.h>

namespace weft {
namespace {

TEST(Seconds, BecomeTheNearestPicosecond) {
  EXPECT_EQ(time_from_seconds(0), Time{0});
  EXPECT_EQ(time_from_seconds(1.5e-6), Time{1'500'000});
  EXPECT_EQ(time_from_seconds(0.4e-12), Time{0});
  EXPECT_EQ(time_from_seconds(0.6e-12), Time{1});
  EXPECT_EQ(time_from_seconds(-0.6e-12), Time{-1});
}

TEST(Seconds, BeyondTheClockNeverEnd) {
  EXPECT_EQ(time_from_seconds(1e9), Time::never());
  EXPECT_EQ(time_from_seconds(-1e9), Time{-Time::never().ps});
}

}  // namespace
}  // namespace weft
