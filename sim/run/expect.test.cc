// SPDX-License-Identifier: Apache-2.0
#include "sim/run/expect.hpp"

#include <gtest/gtest.h>

#include "sim/run/scenario.hpp"

namespace weft {
namespace {

Json parsed(std::string_view text) {
  Diagnostics out;
  Json json = parse_json(text, "test", out);
  EXPECT_TRUE(out.ok()) << out.text();
  return json;
}

std::vector<ExpectSpec> read(std::string_view text, Diagnostics& out) {
  const Json json = parse_json(text, "s.json", out);
  std::vector<ExpectSpec> expect;
  read_config(json, "/expect", expect, out);
  check_expectations(expect, out);
  return expect;
}

const RunChanged kNoRun = [](const std::map<std::string, Json>&) -> Json {
  ADD_FAILURE() << "nothing is to be run";
  return {};
};

TEST(Expect, FindsAValueByItsPointer) {
  const Json json = parsed(R"({"a": [{"b/c": 1}, {"d~": 2}]})");
  EXPECT_EQ(find_at(json, ""), &json);
  ASSERT_NE(find_at(json, "/a/0/b~1c"), nullptr);
  EXPECT_EQ(find_at(json, "/a/0/b~1c")->integer, 1);
  EXPECT_EQ(find_at(json, "/a/1/d~0")->integer, 2);
  for (const char* missing : {"/a/2", "/a/-1", "/a/00", "/a/x", "/b", "a", "/a/0/b~1c/e"})
    EXPECT_EQ(find_at(json, missing), nullptr) << missing;
}

TEST(Expect, ANumberInItsBandIsMet) {
  Diagnostics out;
  const auto expect = read(
      R"([{"what": "in", "pointer": "/x", "min": 1, "max": 3}, {"what": "below", "pointer": "/x", "min": 3},
                               {"what": "above", "pointer": "/x", "max": 1}, {"what": "none", "pointer": "/y", "min": 1},
                               {"what": "text", "pointer": "/t", "min": 1}])",
      out);
  ASSERT_TRUE(out.ok()) << out.text();
  const auto judged = judge(expect, parsed(R"({"x": 2, "t": "2"})"), kNoRun);
  ASSERT_EQ(judged.size(), 5);
  EXPECT_TRUE(judged[0].met);
  EXPECT_FALSE(judged[1].met);
  EXPECT_FALSE(judged[2].met);
  EXPECT_FALSE(judged[3].met);
  EXPECT_EQ(judged[3].problem, "the report has no /y");
  EXPECT_EQ(judged[4].problem, "/t of the report is a string, not a number");
}

TEST(Expect, AgainstIsARatioAndEqualChangesRunOnce) {
  Diagnostics out;
  const auto expect =
      read(R"([{"what": "a", "pointer": "/x", "against": {"set": {"/size": 2}}, "min": 3, "max": 3},
                               {"what": "b", "pointer": "/y", "against": {"set": {"/size": 2}, "pointer": "/x"}, "min": 0.5, "max": 0.5},
                               {"what": "c", "pointer": "/x", "against": {"pointer": "/y"}, "min": 6, "max": 6},
                               {"what": "d", "pointer": "/x", "against": {"pointer": "/zero"}, "min": 6}])",
           out);
  ASSERT_TRUE(out.ok()) << out.text();
  int runs = 0;
  const auto judged = judge(expect, parsed(R"({"x": 6, "y": 1, "zero": 0})"),
                            [&](const std::map<std::string, Json>& set) {
                              ++runs;
                              EXPECT_EQ(set.at("/size").integer, 2);
                              return parsed(R"({"x": 2})");
                            });
  EXPECT_EQ(runs, 1);
  for (std::size_t i = 0; i < 3; ++i) EXPECT_TRUE(judged[i].met) << i;
  EXPECT_FALSE(judged[3].met);
}

TEST(Expect, ADisputedClaimIsShownAndNeverFails) {
  Diagnostics out;
  const auto expect =
      read(R"([{"what": "a", "pointer": "/x", "max": 1, "claim": "C1", "disputed": true}])", out);
  ASSERT_TRUE(out.ok()) << out.text();
  const auto judged = judge(expect, parsed(R"({"x": 6})"), kNoRun);
  EXPECT_TRUE(judged[0].met);
  EXPECT_EQ(judged[0].value, 6);
}

TEST(Expect, WhatCannotBeTestedIsReportedAtItsPlace) {
  const std::pair<const char*, const char*> wrong[] = {
      {R"([{"what": "a", "pointer": "/x"}])", "s.json:1:2: error: /expect/0: there is no band"},
      {R"([{"what": "a", "pointer": "x", "min": 1}])",
       "/expect/0/pointer: \"x\" is not a JSON pointer"},
      {R"([{"what": "a", "pointer": "/x", "min": 2, "max": 1}])",
       "/expect/0/max: \"max\" 1 is below \"min\" 2"},
      {R"([{"what": "a", "pointer": "/x", "min": 2, "claim": "C20"}])",
       "there is no claim \"C20\""},
      {R"([{"what": "a", "pointer": "/x", "disputed": true}])", "no \"claim\" is named"},
      {R"([{"what": "a", "pointer": "/x", "min": 2, "against": {}}])", "nothing to compare with"},
      {R"([{"what": "a", "pointer": "/x", "min": 2, "against": {"set": {"size": 1}}}])",
       "\"size\" is not a JSON pointer"},
      {R"([{"what": "", "pointer": "/x", "min": 2}])", "/expect/0/what"},
      {R"([{"what": "a", "pointer": "/x", "min": 2, "note": "n", "less": 1}])",
       "/expect/0/less: unknown key"},
  };
  for (const auto& [text, message] : wrong) {
    Diagnostics out;
    read(text, out);
    EXPECT_NE(out.text().find(message), std::string::npos) << text << "\n" << out.text();
  }
}

TEST(Expect, ElementsOfAListGoByTheirIdOrName) {
  Diagnostics problems;
  const Json report = parse_json(
      R"({"links": [{"id": "leaf0:server0/nic0", "drops": 3}], "jobs": [{"name": "victim", "time_s": 2}]})",
      "report", problems);
  ASSERT_TRUE(problems.ok());
  EXPECT_EQ(find_at(report, "/links/leaf0:server0~1nic0/drops")->number, 3);
  EXPECT_EQ(find_at(report, "/jobs/victim/time_s")->number, 2);
  EXPECT_EQ(find_at(report, "/jobs/other/time_s"), nullptr);
  EXPECT_EQ(find_at(report, "/jobs/1/time_s"), nullptr) << "numbers stay positions";
}

}  // namespace
}  // namespace weft
