// SPDX-License-Identifier: Apache-2.0
#include "tools/sweep/axes.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>

namespace weft {
namespace {

// The values of the one axis that `text` (the keys of an axis) describes, as JSON; or the problems.
std::string values_of(const std::string& text) {
  Diagnostics out;
  const Json json = parse_json("[{\"pointer\": \"/a/b\", " + text + "}]", "x.json", out);
  std::vector<AxisSpec> specs;
  read_config(json, "/axes", specs, out);
  const std::vector<AxisGroup> groups = read_axes(specs, out);
  if (!out.ok()) return out.text();
  Json list = Json::array();
  for (const Json& value : groups.at(0).at(0).values) list.push(value);
  return to_text(list, 0);
}

std::string problems_of(const std::string& axes) {
  Diagnostics out;
  const Json json = parse_json(axes, "x.json", out);
  std::vector<AxisSpec> specs;
  read_config(json, "/axes", specs, out);
  read_axes(specs, out);
  return out.text();
}

TEST(Axes, ARangeIncludesItsEnds) {
  EXPECT_EQ(values_of(R"("range": {"from": 1, "to": 9, "step": 4})"), "[1, 5, 9]");
  EXPECT_EQ(values_of(R"("range": {"from": 9, "to": 1, "step": -4})"), "[9, 5, 1]");
  EXPECT_EQ(values_of(R"("range": {"from": 0, "to": 1, "count": 5})"), "[0, 0.25, 0.5, 0.75, 1]");
  EXPECT_EQ(values_of(R"("range": {"from": "1 us", "to": "2 us", "step": "500 ns"})"),
            R"(["1 us", "1.5 us", "2 us"])");
  // Ten steps of 0.1 do not miss 1.
  EXPECT_NE(values_of(R"("range": {"from": 0, "to": 1, "step": 0.1})").find(", 1]"),
            std::string::npos);
}

TEST(Axes, ALogRangeMultiplies) {
  EXPECT_EQ(values_of(R"("log_range": {"from": 1, "to": 64, "factor": 4})"), "[1, 4, 16, 64]");
  EXPECT_EQ(values_of(R"("log_range": {"from": 1, "to": 1000, "count": 4})"), "[1, 10, 100, 1000]");
  EXPECT_EQ(values_of(R"("log_range": {"from": "1 KiB", "to": "1 MiB", "factor": 32})"),
            R"(["1 KiB", "32 KiB", "1 MiB"])");
  EXPECT_EQ(values_of(R"("log_range": {"from": "100 Gb/s", "to": "400 Gb/s", "factor": 2})"),
            R"(["100 Gb/s", "200 Gb/s", "400 Gb/s"])");
}

TEST(Axes, WholeNumbersThatMeetAreTakenOnce) {
  EXPECT_EQ(values_of(R"("log_range": {"from": 1, "to": 4, "count": 9})"), "[1, 2, 3, 4]");
}

TEST(Axes, RangesThatLeadNowhereAreRefused) {
  for (const char* text : {
           R"("range": {"from": 1, "to": 9})",
           R"("range": {"from": 1, "to": 9, "step": 1, "count": 3})",
           R"("range": {"from": 1, "to": 9, "step": -1})",
           R"("range": {"from": 1, "to": 9, "step": 0})",
           R"("range": {"from": 1, "to": "9 us", "step": 1})",
           R"("range": {"from": "a", "to": "b", "step": 1})",
           R"("range": {"from": 0, "to": 1e9, "step": 1})",
           R"("log_range": {"from": 0, "to": 9, "factor": 2})",
           R"("log_range": {"from": 9, "to": 1, "factor": 2})",
           R"("log_range": {"from": 1, "to": 9, "factor": 1})",
           R"("values": [])",
           R"("values": [1], "range": {"from": 1, "to": 2, "step": 1})",
       }) {
    EXPECT_NE(values_of(text).find("x.json:1:"), std::string::npos) << text;
  }
}

TEST(Axes, NamesAndPointersDoNotCollide) {
  EXPECT_NE(
      problems_of(R"([{"pointer": "/a/n", "values": [1]}, {"pointer": "/b/n", "values": [1]}])")
          .find("two axes named \"n\""),
      std::string::npos);
  EXPECT_NE(
      problems_of(R"([{"pointer": "/a/n", "values": [1]}, {"pointer": "/a", "values": [{}]}])")
          .find("replaces what the axis \"n\" has set"),
      std::string::npos);
  EXPECT_EQ(
      problems_of(R"([{"pointer": "/a", "values": [{}]}, {"pointer": "/a/n", "values": [1]}])"),
      "");
  EXPECT_NE(problems_of(R"([{"pointer": "/a/status", "values": [1]}])").find("every table has"),
            std::string::npos);
  EXPECT_NE(problems_of(R"([{"values": [1]}])").find("needs \"pointer\" or \"name\""),
            std::string::npos);
  EXPECT_NE(problems_of(R"([{"pointer": "a", "values": [1]}])").find("not a JSON pointer"),
            std::string::npos);
}

TEST(Axes, MoreValuesThanATableHoldsAreRefusedBeforeTheyAreMade) {
  for (const char* range : {R"("range": {"from": 1, "to": 2, "count": 1000000000000000000})",
                            R"("range": {"from": 0, "to": 1e9, "step": 1})",
                            R"("log_range": {"from": 1, "to": 2, "count": 1000000000000000000})"})
    EXPECT_NE(problems_of(fmt::format(R"([{{"pointer": "/a", {}}}])", range))
                  .find("more than 100000 values"),
              std::string::npos)
        << range;
}

TEST(Axes, AxesTogetherAreAsLong) {
  const std::string text = problems_of(
      R"([{"together": [{"name": "a", "values": [1, 2]}, {"pointer": "/b", "values": [1]}]}])");
  EXPECT_NE(text.find("/axes/0/together/1: 1 values beside 2 of \"a\""), std::string::npos) << text;
}

}  // namespace
}  // namespace weft
