// SPDX-License-Identifier: Apache-2.0
#include "sim/core/histogram.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include <gtest/gtest.h>

#include "sim/core/random.hpp"

namespace weft {
namespace {

constexpr std::int64_t kLeast = std::numeric_limits<std::int64_t>::min();
constexpr std::int64_t kMost = std::numeric_limits<std::int64_t>::max();

std::vector<std::int64_t> draw(std::size_t n, std::uint64_t stream) {
  Random luck(1, "histogram", stream);
  std::vector<std::int64_t> values;
  for (std::size_t i = 0; i < n; ++i) {
    const auto size = static_cast<std::int64_t>(luck.lognormal(10, 6));
    values.push_back(luck.chance(0.2) ? -size : size);
  }
  return values;
}

Histogram of(const std::vector<std::int64_t>& values) {
  Histogram out;
  for (const std::int64_t v : values) out.record(v);
  return out;
}

TEST(Histogram, EmptyIsAllZero) {
  const Histogram none;
  EXPECT_TRUE(none.empty());
  EXPECT_EQ(none.count(), 0u);
  EXPECT_EQ(none.min(), 0);
  EXPECT_EQ(none.max(), 0);
  EXPECT_EQ(none.mean(), 0);
  EXPECT_EQ(none.quantile(0.5), 0);
  EXPECT_TRUE(none.bins().empty());
}

TEST(Histogram, SmallValuesAreExact) {
  Histogram counts;
  for (std::int64_t v = -127; v <= 127; ++v) counts.record(v);
  EXPECT_EQ(counts.bins().size(), 255u);
  for (std::int64_t rank = 1; rank <= 255; ++rank) {
    EXPECT_EQ(counts.quantile((static_cast<double>(rank) - 0.5) / 255), rank - 128);
  }
}

TEST(Histogram, CountMeanAndEndsAreExact) {
  Histogram sizes;
  sizes.record(1'000'000'007, 3);
  sizes.record(13);
  EXPECT_EQ(sizes.count(), 4u);
  EXPECT_EQ(sizes.min(), 13);
  EXPECT_EQ(sizes.max(), 1'000'000'007);
  EXPECT_DOUBLE_EQ(sizes.mean(), 750'000'008.5);
  EXPECT_EQ(sizes.quantile(0), 13);
  EXPECT_EQ(sizes.quantile(1), 1'000'000'007);
}

TEST(Histogram, QuantilesAreWithinOneIn128) {
  auto values = draw(5000, 1);
  const Histogram seen = of(values);
  std::ranges::sort(values);
  for (double q = 0.0005; q < 1; q += 0.001) {
    const auto rank = static_cast<std::size_t>(std::ceil(q * 5000));
    const auto exact = static_cast<double>(values[rank - 1]);
    EXPECT_NEAR(static_cast<double>(seen.quantile(q)), exact, std::fabs(exact) / 128) << q;
  }
}

TEST(Histogram, BinsTileTheNumbers) {
  Histogram powers;
  for (int shift = 0; shift < 63; ++shift) {
    for (const std::int64_t d : {-1, 0, 1}) {
      powers.record((std::int64_t{1} << shift) + d);
      powers.record(-((std::int64_t{1} << shift) + d));
    }
  }
  std::int64_t before = kLeast;
  for (const auto& bin : powers.bins()) {
    EXPECT_LE(bin.low, bin.high);
    EXPECT_LT(before, bin.low);
    before = bin.high;
    const double nearest =
        std::min(std::fabs(static_cast<double>(bin.low)), std::fabs(static_cast<double>(bin.high)));
    EXPECT_LE(static_cast<double>(bin.high) - static_cast<double>(bin.low), nearest / 64);
  }
}

TEST(Histogram, TheEndsOfTheTypeFit) {
  Histogram ends;
  ends.record(kLeast, 2);
  ends.record(kMost, 2);
  EXPECT_EQ(ends.min(), kLeast);
  EXPECT_EQ(ends.max(), kMost);
  EXPECT_DOUBLE_EQ(ends.mean(), -0.5);
  EXPECT_EQ(ends.bins().front().low, kLeast);
  EXPECT_EQ(ends.bins().back().high, kMost);
  EXPECT_NEAR(static_cast<double>(ends.quantile(0.5)), -0x1p63, 0x1p56);
}

TEST(Histogram, MergeIsTheSameAsRecordingAll) {
  const auto a = draw(1000, 1), b = draw(10, 2), c = draw(300, 3);
  auto all = a;
  all.insert(all.end(), b.begin(), b.end());
  all.insert(all.end(), c.begin(), c.end());

  Histogram left = of(a);
  left.merge(of(b));
  left.merge(of(c));
  Histogram right = of(c);
  right.merge(of(b));
  Histogram first = of(a);
  first.merge(right);
  EXPECT_EQ(left, of(all));
  EXPECT_EQ(first, left);
}

TEST(Histogram, MergingNothingChangesNothing) {
  const Histogram some = of(draw(10, 4));
  Histogram sum = some;
  sum.merge({});
  EXPECT_EQ(sum, some);
  Histogram none;
  none.merge(some);
  EXPECT_EQ(none, some);
  none.record(5, 0);
  EXPECT_EQ(none, some);
}

}  // namespace
}  // namespace weft
