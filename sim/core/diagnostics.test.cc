// SPDX-License-Identifier: Apache-2.0
#include "sim/core/diagnostics.hpp"

#include <gtest/gtest.h>

namespace weft {
namespace {

TEST(Diagnostics, ProblemsAreSortedByPlaceAndCounted) {
  Diagnostics out;
  const std::uint32_t file = out.add_file("a.json");
  out.warning({file, 3, 1}, "/c", "late");
  out.error({file, 1, 2}, "/a", "early", "do this");
  EXPECT_FALSE(out.ok());
  EXPECT_EQ(out.error_count(), 1U);
  EXPECT_EQ(out.text(),
            "a.json:1:2: error: /a: early\n    do this\na.json:3:1: warning: /c: late\n");
  EXPECT_EQ(out.text(1), "a.json:1:2: error: /a: early\n    do this\n... and 1 more problems\n");
}

TEST(Diagnostics, TheMiddleOfALongTextIsLeftOut) {
  Diagnostics out;
  std::string fact = "begin ";
  for (int i = 0; i < 100'000; ++i) fact += "\u00e9";  // two bytes each
  out.error({}, {}, fact + " end");
  const std::string& kept = out.problems().front().fact;
  EXPECT_LT(kept.size(), 1000U);
  EXPECT_TRUE(kept.starts_with("begin "));
  EXPECT_TRUE(kept.ends_with(" end"));
  const auto gap = kept.find(" ... ");
  ASSERT_NE(gap, std::string::npos);
  EXPECT_EQ(static_cast<unsigned char>(kept[gap - 1]) & 0xC0,
            0x80);  // a whole character before and after
  EXPECT_EQ(static_cast<unsigned char>(kept[gap + 5]), 0xC3);
}

TEST(Diagnostics, ARunAwayInputIsCountedNotKept) {
  Diagnostics out;
  for (int i = 0; i < 10'000; ++i) out.error({}, {}, "again");
  EXPECT_EQ(out.error_count(), 10'000U);
  EXPECT_EQ(out.problems().size(), 1000U);
}

}  // namespace
}  // namespace weft
