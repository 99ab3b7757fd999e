// SPDX-License-Identifier: Apache-2.0
#include "tools/sweep/condition.hpp"

#include <gtest/gtest.h>

namespace weft {
namespace {

const std::vector<std::string> kAxes{"tp", "gpus", "size", "routing", "mode-2", "plan"};

bool holds(const std::string& text) {
  Json plan = Json::object();
  plan.set("tp", 8);
  const Json values[] = {8, 64, "64 MiB", "ecmp", true, plan};
  Diagnostics out;
  const Condition condition(text, kAxes, {}, "/when/0", out);
  EXPECT_TRUE(out.ok()) << out.text();
  return condition.holds([&](std::size_t axis) -> const Json& { return values[axis]; });
}

std::string problem(const std::string& text) {
  Diagnostics out;
  const Condition condition(text, kAxes, {}, "/when/0", out);
  return out.text();
}

TEST(Condition, NumbersAndQuantitiesCompare) {
  EXPECT_TRUE(holds("tp == 8"));
  EXPECT_FALSE(holds("tp != 8"));
  EXPECT_TRUE(holds("tp<=8"));
  EXPECT_FALSE(holds("tp < 8"));
  EXPECT_TRUE(holds("tp > -1e1"));
  EXPECT_TRUE(holds("size == 65536 KiB"));
  EXPECT_TRUE(holds("size >= 1MiB and tp == 8"));
  EXPECT_FALSE(holds("size >= 1 MiB and tp == 4"));
}

TEST(Condition, ProductsOfAxes) {
  EXPECT_TRUE(holds("tp * 8 == gpus"));
  EXPECT_TRUE(holds("tp * tp * 1 == gpus"));
  EXPECT_TRUE(holds("2 * size == 128 MiB"));
}

TEST(Condition, WordsAndTruth) {
  EXPECT_TRUE(holds("routing == 'ecmp'"));
  EXPECT_TRUE(holds("routing != 'spray' and mode-2 == true"));
  EXPECT_FALSE(holds("mode-2 == false"));
}

TEST(Condition, WhatCannotBeReadIsReported) {
  for (const char* text :
       {"", "tp", "tp ==", "tp = 8", "tpp == 8", "tp == 8 or tp == 4", "tp == 8 gallons",
        "routing == 'ecmp", "tp == 1.2.3", "* == 1", "tp == 8 and", "tp == ecmp"}) {
    EXPECT_NE(problem(text), "") << text;
  }
  EXPECT_NE(problem("tpp == 8").find("did you mean \"tp\""), std::string::npos);
}

TEST(Condition, WhatCannotBeComparedIsAnError) {
  for (const char* text : {"size > 8", "routing > 'a'", "routing * 2 == 8", "size * size > 1 B",
                           "plan * 1 > 2", "size > 1 us"}) {
    EXPECT_THROW(holds(text), InputError) << text;
  }
}

}  // namespace
}  // namespace weft
