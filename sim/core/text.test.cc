// SPDX-License-Identifier: Apache-2.0
#include "sim/core/text.hpp"

#include <string>
#include <vector>

#include <gtest/gtest.h>

namespace weft {
namespace {

using Names = std::vector<std::string>;

TEST(EditDistance, CountsSlipsOfTheFinger) {
  EXPECT_EQ(edit_distance("", ""), 0u);
  EXPECT_EQ(edit_distance("abc", ""), 3u);
  EXPECT_EQ(edit_distance("abc", "acb"), 1u);
  EXPECT_EQ(edit_distance("kitten", "sitting"), 3u);
  EXPECT_EQ(edit_distance("ca", "abc"), 3u);  // no letter is touched twice
}

TEST(EditDistance, IsSymmetric) {
  const Names words{"", "a", "fabric", "farbic", "fabrics", "link", "ilnk"};
  for (const auto& a : words) {
    for (const auto& b : words)
      EXPECT_EQ(edit_distance(a, b), edit_distance(b, a)) << a << " " << b;
  }
}

TEST(NearestName, FindsTheMisspeltOne) {
  const Names names{"collective", "compute", "fabric", "seed"};
  EXPECT_EQ(nearest_name("colective", names), "collective");
  EXPECT_EQ(nearest_name("farbic", names), "fabric");
  EXPECT_EQ(nearest_name("sede", names), "seed");
  EXPECT_EQ(nearest_name("SEED", names), "seed");
}

TEST(NearestName, KnowsAWordThatWasBegun) {
  EXPECT_EQ(nearest_name("train", Names{"trace", "training"}), "training");
  EXPECT_EQ(nearest_name("coll", Names{"collectives", "collective", "call"}), "collective");
  EXPECT_EQ(nearest_name("rate", Names{"rate", "rates"}), "rate");
  EXPECT_EQ(nearest_name("co", Names{"collective"}), std::nullopt);
}

TEST(NearestName, SaysNothingWhenNothingIsNear) {
  const Names names{"collective", "compute", "fabric", "seed"};
  EXPECT_EQ(nearest_name("bandwidth", names), std::nullopt);
  EXPECT_EQ(nearest_name("", names), std::nullopt);
  EXPECT_EQ(nearest_name("x", Names{"y"}), std::nullopt);
  EXPECT_EQ(nearest_name("seed", Names{}), std::nullopt);
  EXPECT_EQ(nearest_name(std::string(100'000, 'a'), names), std::nullopt);
}

TEST(NearestName, PrefersExactThenCaseThenEarliest) {
  EXPECT_EQ(nearest_name("rate", Names{"Rate", "rate"}), "rate");
  EXPECT_EQ(nearest_name("RATE", Names{"gate", "rate"}), "rate");
  EXPECT_EQ(nearest_name("gat", Names{"gate", "goat"}), "gate");
}

TEST(GlobMatch, StarsAndQuestionMarks) {
  EXPECT_TRUE(glob_match("", ""));
  EXPECT_TRUE(glob_match("*", ""));
  EXPECT_TRUE(glob_match("server*/gpu?", "server12/gpu7"));
  EXPECT_TRUE(glob_match("*/nic0", "pod1/server3/nic0"));
  EXPECT_TRUE(glob_match("a*b*c", "a-b-b-c"));
  EXPECT_TRUE(glob_match("leaf3:spine1#?", "leaf3:spine1#2"));
  EXPECT_FALSE(glob_match("server*/gpu?", "server12/gpu17"));
  EXPECT_FALSE(glob_match("", "a"));
  EXPECT_FALSE(glob_match("?", ""));
  EXPECT_FALSE(glob_match("a*b", "a-b-c"));
}

TEST(GlobMatch, ManyStarsDoNotExplode) {
  std::string pattern;
  for (int i = 0; i < 200; ++i) pattern += "*a";
  EXPECT_FALSE(glob_match(pattern + "b", std::string(5000, 'a')));
  EXPECT_TRUE(glob_match(pattern, std::string(5000, 'a')));
}

TEST(Join, PutsTheSeparatorBetween) {
  EXPECT_EQ(join({}, ", "), "");
  EXPECT_EQ(join({"a"}, ", "), "a");
  EXPECT_EQ(join({"a", "b", ""}, ", "), "a, b, ");
}

TEST(ExpandRange, NamesAreCountedInclusively) {
  EXPECT_EQ(expand_range("gpu[0-2]"), (Names{"gpu0", "gpu1", "gpu2"}));
  EXPECT_EQ(expand_range("gpu[9-11]"), (Names{"gpu9", "gpu10", "gpu11"}));
  EXPECT_EQ(expand_range("cpu[3-3]"), (Names{"cpu3"}));
  EXPECT_EQ(expand_range("rail[0-1]/leaf"), (Names{"rail0/leaf", "rail1/leaf"}));
  EXPECT_EQ(expand_range("nic"), (Names{"nic"}));
}

TEST(ExpandRange, MalformedIsNothing) {
  for (const char* text :
       {"", "gpu[", "gpu]", "gpu[]", "gpu[0]", "gpu[-]", "gpu[0-]", "gpu[-3]", "gpu[3-0]",
        "gpu[0-7", "gpu0-7]", "gpu[0-3]x[0-3]", "gpu[a-b]", "gpu[0 - 3]", "gpu[0--3]", "gpu[00-07]",
        "gpu]0-3[", "gpu[[0-3]]", "gpu[0-99999999999]"}) {
    EXPECT_EQ(expand_range(text), std::nullopt) << text;
  }
}

TEST(ExpandRange, IsBounded) {
  EXPECT_EQ(expand_range("n[0-65535]")->size(), kMostNames);
  EXPECT_EQ(expand_range("n[0-65536]"), std::nullopt);
  EXPECT_EQ(expand_range("n[4294967294-4294967295]"), (Names{"n4294967294", "n4294967295"}));
}

TEST(JsonPointer, EscapesRoundTrip) {
  for (const char* key : {"", "a/b", "m~n", "~1", "~0/~1", "plain"}) {
    EXPECT_EQ(json_pointer_unescape(json_pointer_escape(key)), key);
  }
  EXPECT_EQ(json_pointer_escape("a/b~"), "a~1b~0");
  EXPECT_EQ(json_pointer_unescape("a~"), std::nullopt);
  EXPECT_EQ(json_pointer_unescape("a~2"), std::nullopt);
}

TEST(JsonPointer, SplitsIntoKeys) {
  EXPECT_EQ(parse_pointer(""), Names{});
  EXPECT_EQ(parse_pointer("/"), Names{""});
  EXPECT_EQ(parse_pointer("/a/b~1c"), (Names{"a", "b/c"}));
  EXPECT_EQ(parse_pointer("/a//0/"), (Names{"a", "", "0", ""}));
  EXPECT_EQ(parse_pointer("a/b"), std::nullopt);
  EXPECT_EQ(parse_pointer("/a~b"), std::nullopt);
}

}  // namespace
}  // namespace weft
