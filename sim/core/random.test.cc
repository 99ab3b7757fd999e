// SPDX-License-Identifier: Apache-2.0
// Statistical tests allow five sigma; seeds are fixed because the streams are part of the format.
#include "sim/core/random.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>
#include <vector>

#include <gtest/gtest.h>

#include "sim/core/hash.hpp"

namespace weft {
namespace {

using Block = std::array<std::uint32_t, 4>;

TEST(Philox, MatchesThePublishedVectors) {  // kat_vectors of Random123
  EXPECT_EQ(philox4x32({0, 0, 0, 0}, {0, 0}),
            (Block{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}));
  constexpr std::uint32_t kOnes = 0xffffffff;
  EXPECT_EQ(philox4x32({kOnes, kOnes, kOnes, kOnes}, {kOnes, kOnes}),
            (Block{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}));
  EXPECT_EQ(philox4x32({0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}, {0xa4093822, 0x299f31d0}),
            (Block{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}));
}

TEST(Random, AStreamIsItsSeedPurposeAndEntity) {
  Random a(1, "arrivals", 7), same(1, "arrivals", 7);
  for (int i = 0; i < 100; ++i) EXPECT_EQ(a.bits(), same.bits());
  const std::uint64_t first = Random(1, "arrivals", 7).bits();
  EXPECT_NE(first, Random(2, "arrivals", 7).bits());
  EXPECT_NE(first, Random(1, "sizes", 7).bits());
  EXPECT_NE(first, Random(1, "arrivals", 8).bits());
}

TEST(Random, SameBitsOnEveryCompiler) {
  Random luck(42, "all", 3);
  Fingerprint drawn;
  for (int i = 0; i < 1000; ++i) {
    drawn.add(luck.bits())
        .add(luck.below(1000))
        .add(luck.uniform())
        .add(luck.exponential(3))
        .add(luck.normal());
    drawn.add(luck.lognormal(1, 0.5)).add(luck.zipf(100, 1.1));
  }
  for (const std::uint32_t v : luck.permutation(100)) drawn.add(v);
  EXPECT_EQ(drawn.hex(), "a6fc82ee910fd1fe");
}

TEST(Random, BelowIsUniform) {
  constexpr std::size_t kSides = 7;
  constexpr int kThrows = 70'000;
  std::array<int, kSides> seen{};
  Random luck(1, "dice");
  for (int i = 0; i < kThrows; ++i) ++seen[luck.below(kSides)];
  for (const int n : seen) EXPECT_NEAR(n, 10'000, 5 * std::sqrt(10'000.0));
  EXPECT_EQ(luck.below(1), 0u);
}

TEST(Random, BelowHasNoBiasWhereModuloWould) {
  constexpr std::uint64_t kThirds = 3ULL
                                    << 62;  // a modulo would make the lowest third twice as likely
  Random luck(1, "bias");
  int low = 0;
  for (int i = 0; i < 30'000; ++i) low += luck.below(kThirds) < (1ULL << 62) ? 1 : 0;
  EXPECT_NEAR(low, 10'000, 5 * std::sqrt(30'000.0 * 2 / 9));
}

TEST(Random, UniformStaysInItsInterval) {
  Random luck(1, "interval");
  double sum = 0;
  for (int i = 0; i < 40'000; ++i) {
    const double u = luck.uniform();
    ASSERT_GE(u, 0);
    ASSERT_LT(u, 1);
    sum += u;
  }
  EXPECT_NEAR(sum / 40'000, 0.5, 5 * std::sqrt(1.0 / 12 / 40'000));
}

TEST(Random, MomentsOfTheContinuousLaws) {
  constexpr int kDraws = 100'000;
  Random luck(1, "moments");
  double exponential = 0, normal = 0, normal_square = 0, log_sum = 0;
  for (int i = 0; i < kDraws; ++i) {
    exponential += luck.exponential(3);
    const double x = luck.normal(0, 1);
    normal += x;
    normal_square += x * x;
    log_sum += std::log(luck.lognormal(2, 0.5));
  }
  const double root = std::sqrt(static_cast<double>(kDraws));
  EXPECT_NEAR(exponential / kDraws, 3, 5 * 3 / root);
  EXPECT_NEAR(normal / kDraws, 0, 5 / root);
  EXPECT_NEAR(normal_square / kDraws, 1, 5 * std::sqrt(2.0) / root);
  EXPECT_NEAR(log_sum / kDraws, 2, 5 * 0.5 / root);
}

TEST(Random, ZipfFollowsItsPowerLaw) {
  constexpr std::size_t kNames = 20;
  constexpr int kDraws = 100'000;
  for (const double exponent : {0.0, 0.5, 1.0, 2.5}) {
    std::array<double, kNames + 1> weight{};
    for (std::size_t k = 1; k <= kNames; ++k)
      weight[k] = std::pow(static_cast<double>(k), -exponent);
    const double total = std::accumulate(weight.begin(), weight.end(), 0.0);
    std::array<int, kNames + 1> seen{};
    Random luck(1, "zipf");
    for (int i = 0; i < kDraws; ++i) ++seen[luck.zipf(kNames, exponent)];
    EXPECT_EQ(seen[0], 0);
    for (std::size_t k = 1; k <= kNames; ++k) {
      const double p = weight[k] / total;
      EXPECT_NEAR(seen[k], kDraws * p, 5 * std::sqrt(kDraws * p * (1 - p))) << exponent << " " << k;
    }
  }
  EXPECT_EQ(Random(1, "one").zipf(1, 1.0), 1u);
}

TEST(Random, PermutationsHoldEveryoneOnce) {
  Random luck(1, "order");
  auto order = luck.permutation(1000);
  EXPECT_FALSE(std::ranges::is_sorted(order));
  std::ranges::sort(order);
  for (std::uint32_t i = 0; i < 1000; ++i) EXPECT_EQ(order[i], i);
  EXPECT_TRUE(luck.permutation(0).empty());
}

TEST(Random, PermutationsOfThreeAreEquallyLikely) {
  std::array<int, 27> seen{};
  Random luck(1, "three");
  for (int i = 0; i < 60'000; ++i) {
    const auto p = luck.permutation(3);
    ++seen[9 * p[0] + 3 * p[1] + p[2]];
  }
  for (const std::size_t code : {5u, 7u, 11u, 15u, 19u, 21u}) {
    EXPECT_NEAR(seen[code], 10'000, 5 * std::sqrt(60'000.0 * 5 / 36));
  }
}

TEST(Random, CyclicPermutationIsOneCycle) {
  Random luck(1, "cycle");
  for (const std::uint32_t n : {1u, 2u, 17u, 100u}) {
    const auto next = luck.cyclic_permutation(n);
    std::uint32_t at = 0, steps = 0;
    do {
      at = next[at];
      ++steps;
    } while (at != 0 && steps <= n);
    EXPECT_EQ(steps, n);
  }
}

TEST(PortableMath, AgreesWithLibmToAFewUnits) {
  constexpr double kUlp = 0x1p-52;
  for (double x = 1e-300; x < 1e300; x *= 1.37) {
    EXPECT_NEAR(portable_log(x), std::log(x), 4 * kUlp * std::fmax(std::fabs(std::log(x)), 0.1))
        << x;
  }
  for (double x = -700; x < 700; x += 0.37) {
    EXPECT_NEAR(portable_exp(x) / std::exp(x), 1, 4 * kUlp) << x;
  }
  EXPECT_EQ(portable_log(1), 0);
  EXPECT_EQ(portable_exp(0), 1);
  EXPECT_EQ(portable_exp(-1e9), 0);
  EXPECT_TRUE(std::isinf(portable_exp(1e9)));
}

}  // namespace
}  // namespace weft
