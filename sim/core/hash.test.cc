// SPDX-License-Identifier: Apache-2.0
#include "sim/core/hash.hpp"

#include <set>
#include <string>

#include <gtest/gtest.h>

namespace weft {
namespace {

TEST(StableHash, IsXxh3) {
  EXPECT_EQ(stable_hash(""), 0x2d06800538d394c2ULL);  // published test vector
  EXPECT_NE(stable_hash("a"), stable_hash("b"));
  EXPECT_NE(stable_hash("a", 1), stable_hash("a", 2));
}

TEST(Mix64, KeepsDistinctValuesDistinct) {
  std::set<std::uint64_t> seen;
  for (std::uint64_t i = 0; i < 10'000; ++i) seen.insert(mix64(i));
  EXPECT_EQ(seen.size(), 10'000u);
  EXPECT_EQ(mix64(0x9e3779b97f4a7c15ULL),
            0xe220a8397b1dcdafULL);  // SplitMix64's first output for seed 0
}

TEST(Fingerprint, OrderMatters) {
  EXPECT_NE(Fingerprint().add(1).add(2).value(), Fingerprint().add(2).add(1).value());
  EXPECT_NE(Fingerprint().add("ab").add("c").value(), Fingerprint().add("a").add("bc").value());
}

TEST(Fingerprint, EveryAdditionCounts) {
  EXPECT_NE(Fingerprint().value(), Fingerprint().add(0).value());
  EXPECT_NE(Fingerprint().add(0).value(), Fingerprint().add(0).add(0).value());
  EXPECT_NE(Fingerprint().add("").value(), Fingerprint().value());
}

TEST(Fingerprint, WidthOfAnIntegerDoesNotMatterButItsValueDoes) {
  EXPECT_EQ(Fingerprint().add(7u).value(), Fingerprint().add(std::int64_t{7}).value());
  EXPECT_EQ(Fingerprint().add(-1).value(), Fingerprint().add(std::int64_t{-1}).value());
  EXPECT_EQ(Fingerprint().add(500_ns).value(), Fingerprint().add(500'000).value());
  EXPECT_NE(Fingerprint().add(1).value(), Fingerprint().add(1.0).value());
}

TEST(Fingerprint, IsTheSameOnEveryCompiler) {
  const auto trace =
      Fingerprint().add(17).add(500_ns).add(4_MiB).add(400_Gbps).add(0.1).add("gpu0");
  EXPECT_EQ(trace.hex(), "27589ffe900a0351");
  EXPECT_EQ(Fingerprint().hex().size(), 16u);
}

}  // namespace
}  // namespace weft
