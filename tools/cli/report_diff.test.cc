// SPDX-License-Identifier: Apache-2.0
#include "tools/cli/report_diff.hpp"

#include <gmock/gmock.h>

namespace weft {
namespace {

using testing::HasSubstr;

Json report(const std::string& more) {
  Diagnostics problems;
  Json json = parse_json("{\"fidelity\": \"fluid\", " + more + "}", "report", problems);
  EXPECT_TRUE(problems.ok()) << problems.text();
  return json;
}

const Json& before() {
  static const Json json = report(R"("time_s": 2, "bound_s": 1, "fingerprint": "a",
    "jobs": [{"name": "train", "time_s": 2, "exposed_comm_s": {"dp": 0.5, "tp": 0.1}}, {"name": "gone", "time_s": 1}],
    "bottlenecks": [{"resource": "access", "share": 0.9, "gain_if_infinite_s": 0.8},
                    {"resource": "leaf-spine", "share": 0.5, "gain_if_infinite_s": 0.0001}],
    "critical_path": [{"op": "x", "resource": "link", "start_s": 0, "duration_s": 1.5}],
    "effective": {"name": "one", "fabric": {"servers": 4, "network": {"oversubscription": 1, "old": true}}})");
  return json;
}

const Json& after() {
  static const Json json = report(R"("time_s": 3, "bound_s": 1, "fingerprint": "b",
    "jobs": [{"name": "train", "time_s": 3, "exposed_comm_s": {"dp": 1.5, "tp": 0.1}}, {"name": "new", "time_s": 1}],
    "bottlenecks": [{"resource": "leaf-spine", "share": 1, "gain_if_infinite_s": 1.6},
                    {"resource": "access", "share": 0.6, "gain_if_infinite_s": 0.001}],
    "critical_path": [],
    "effective": {"name": "two", "fabric": {"servers": 4, "network": {"oversubscription": 2, "a/b": [1, "x"]}}})");
  return json;
}

TEST(ReportDiff, InputByPointerWithoutTheName) {
  const ReportDiff diff = compare_reports(before(), after());
  ASSERT_EQ(diff.input.size(), 4U);
  EXPECT_EQ(diff.input[0].pointer, "/fabric/network/a~1b/0");
  EXPECT_EQ(diff.input[0].before, std::nullopt);
  EXPECT_EQ(diff.input[0].after, "1");
  EXPECT_EQ(diff.input[2].pointer, "/fabric/network/old");
  EXPECT_EQ(diff.input[2].after, std::nullopt);
  EXPECT_EQ(diff.input[3].before, "1");
  EXPECT_EQ(diff.input[3].after, "2");
}

TEST(ReportDiff, FiguresThatChangedAndJobsOfOneSide) {
  const ReportDiff diff = compare_reports(before(), after());
  std::vector<std::string> names;
  for (const FigureChange& figure : diff.figures) names.push_back(figure.name);
  EXPECT_THAT(names,
              testing::ElementsAre("time_s", "jobs/train/time_s", "jobs/train/exposed_comm_s/dp"));
  EXPECT_EQ(diff.figures[2].after, 1.5);
  EXPECT_THAT(diff.jobs_before, testing::ElementsAre("gone"));
  EXPECT_THAT(diff.jobs_after, testing::ElementsAre("new"));
  EXPECT_FALSE(diff.same_result);
}

TEST(ReportDiff, WhatMovedOntoTheCriticalPathAndOff) {
  const ReportDiff diff = compare_reports(before(), after());
  ASSERT_EQ(diff.resources.size(), 3U);  // the largest change first
  EXPECT_EQ(diff.resources[0].resource, "leaf-spine");
  EXPECT_EQ(diff.resources[0].move, ResourceChange::Move::onto);
  EXPECT_EQ(diff.resources[1].resource, "link");
  EXPECT_EQ(diff.resources[1].path_before_s, 1.5);
  EXPECT_EQ(diff.resources[1].move, ResourceChange::Move::off);
  EXPECT_EQ(diff.resources[2].resource, "access");
  EXPECT_EQ(diff.resources[2].move, ResourceChange::Move::off);
}

TEST(ReportDiff, GainsThatOneSideDoesNotKnowMoveNothing) {
  const Json quick = report(R"("time_s": 3, "jobs": [], "critical_path": [],
    "bottlenecks": [{"resource": "access", "share": 0.6, "gain_if_infinite_s": null}])");
  for (const ResourceChange& change : compare_reports(quick, before()).resources) {
    EXPECT_EQ(change.gain_after_s, 0) << change.resource;
    const bool travelled = change.resource == "link";  // on the critical path of one
    EXPECT_EQ(change.move, travelled ? ResourceChange::Move::onto : ResourceChange::Move::none);
  }
}

TEST(ReportDiff, AReportAgainstItselfIsTheSame) {
  const ReportDiff diff = compare_reports(before(), before());
  EXPECT_TRUE(diff.input.empty());
  EXPECT_TRUE(diff.figures.empty());
  EXPECT_TRUE(diff.same_result);
  EXPECT_THAT(to_text(diff, 20), HasSubstr("result: the same"));
  for (const ResourceChange& change : diff.resources)
    EXPECT_EQ(change.move, ResourceChange::Move::none);
}

TEST(ReportDiff, TextAndJsonSayTheSame) {
  const ReportDiff diff = compare_reports(before(), after());
  const std::string text = to_text(diff, 2);
  EXPECT_THAT(text, HasSubstr("... and 2 more"));
  EXPECT_THAT(text, HasSubstr("+50.0 %"));
  EXPECT_THAT(text, HasSubstr("onto the critical path"));
  const Json json = to_json(diff);
  EXPECT_EQ(json.find("input")->items.size(), 4U);
  EXPECT_EQ(json.find("input")->items[3].find("after")->number, 2);
  EXPECT_EQ(json.find("figures")->items[0].find("ratio")->number, 1.5);
  EXPECT_EQ(json.find("resources")->items[0].find("moved")->text, "onto the critical path");
}

TEST(ReportDiff, WhatIsNoReportIsRefused) {
  Diagnostics problems;
  check_report(parse_json("[]", "a.json", problems), problems);
  check_report(parse_json(R"({"time_s": "2", "jobs": []})", "b.json", problems), problems);
  EXPECT_EQ(problems.problems().size(), 2U);
  EXPECT_THAT(problems.text(), HasSubstr("b.json:1:1: error: this is not a report"));
}

}  // namespace
}  // namespace weft
