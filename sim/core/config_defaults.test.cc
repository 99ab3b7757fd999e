// SPDX-License-Identifier: Apache-2.0
#include "sim/core/config_defaults.hpp"

#include <gtest/gtest.h>

namespace weft {
namespace {

constexpr Time kTimer = 55_us;

struct Inner {
  double gain = 0.25;
  template <class V>
  void visit(V&& v) {
    v("gain", gain, "a ratio");
  }
};

struct Outer {
  Time timer = kTimer;
  int generation = 0;
  std::string name, law = "max-min";
  bool merge = true;
  std::optional<int> limit;
  Inner inner{.gain = 0.5};
  std::vector<Inner> list;
  std::map<std::string, Inner> by_name;
  std::optional<Inner> link;  // a name of the catalogue may stand for it
  template <class V>
  void visit(V&& v) {
    v("timer", timer, "how often");
    v("generation", generation, "not given: 0", positive);
    v("name", name, "none by default");
    v("law", law, "must be said", required);
    v("merge", merge, "a switch");
    v("limit", limit, "none by default");
    v("inner", inner, "with a default of its own");
    v("list", list, "of items");
    v("by_name", by_name, "of items");
    v("link", link, "a component");
  }
};

TEST(ConfigDefaults, AreThoseOfTheStruct) {
  const Json schema = schema_with_defaults<Outer>();
  const Json& keys = *schema.find("properties");
  const auto default_of = [](const Json& properties, const char* key) {
    return properties.find(key)->find("default");
  };
  EXPECT_EQ(default_of(keys, "timer")->text, "55 us");
  EXPECT_TRUE(default_of(keys, "merge")->boolean);
  for (const char* none : {"generation", "name", "law", "limit", "inner", "list", "by_name"})
    EXPECT_EQ(default_of(keys, none), nullptr) << none;
  // The member's value, and the type's where members come later.
  EXPECT_EQ(default_of(*keys.find("inner")->find("properties"), "gain")->number, 0.5);
  EXPECT_EQ(default_of(*keys.find("list")->find("items")->find("properties"), "gain")->number,
            0.25);
  EXPECT_EQ(
      default_of(*keys.find("by_name")->find("additionalProperties")->find("properties"), "gain")
          ->number,
      0.25);
  EXPECT_EQ(default_of(*keys.find("link")->find("anyOf")->items.back().find("properties"), "gain")
                ->number,
            0.25);
}

}  // namespace
}  // namespace weft
