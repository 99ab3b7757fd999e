// SPDX-License-Identifier: Apache-2.0
#include "calibrate/validate_roce.hpp"

#include <map>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace weft {
namespace {

using ::testing::HasSubstr;

Dataset dataset_of(const std::string& text, std::string* problems = nullptr) {
  Dataset dataset;
  Diagnostics diagnostics;
  read_validation_file(parse_json(text, "r.json", diagnostics), dataset, diagnostics);
  if (problems != nullptr) {
    *problems = diagnostics.text();
  } else {
    EXPECT_EQ(diagnostics.text(), "");
  }
  return dataset;
}

std::string record(const std::string& ask, const std::string& values) {
  return R"({"records": [{"id": "r", "unit": "Gb/s", "weft": {"kind": "roce", "scenario": {"name": "s"}, )" +
         ask + "}, " + values + "}]}";
}

// A report whose trunk carries as much as its scenario is told to.
Json report_of(const Json& scenario, const Json& changes) {
  EXPECT_TRUE(scenario.is_object());
  const Json* rate = changes.find("/rate");
  Json windows = Json::array();
  for (const double share : {0.0, 1.0, 0.5, 0.0})
    windows.push(share * (rate != nullptr ? rate->number : 100));
  Json series = Json::object();
  series.set("id", "near:far");
  series.set("every_s", 0.5);
  series.set("bytes", std::move(windows));
  Json list = Json::array();
  list.push(std::move(series));
  Json out = Json::object();
  out.set("link_series", std::move(list));
  out.set("time_s", 4);
  return out;
}

RecordResult predict(const std::string& text) {
  static std::deque<Dataset> alive;  // results point into their dataset
  alive.push_back(dataset_of(text));
  ValidationContext context;
  context.report = report_of;
  return predict_roce(alive.back().records.at(0), context);
}

TEST(RoceRecords, ANumberOfTheReportIsTheAnswer) {
  const RecordResult result =
      predict(record(R"("quantity": "/time_s", "scale": 10)", R"("value": 50)"));
  ASSERT_EQ(result.rows.size(), 1U);
  EXPECT_EQ(result.unit, "Gb/s");
  EXPECT_EQ(result.rows[0].id, "r");
  EXPECT_DOUBLE_EQ(result.rows[0].predicted, 40);
  EXPECT_DOUBLE_EQ(result.rows[0].error, -0.2);
}

TEST(RoceRecords, OfAListTheMeanOrLargestOfItsWindowsPerSomething) {
  const std::string list = R"("quantity": "/link_series/near:far/bytes", "windows": [1, 3], )"
                           R"("per": "/link_series/near:far/every_s")";
  EXPECT_DOUBLE_EQ(predict(record(list, R"("value": 1)")).rows.at(0).predicted, 150);
  EXPECT_DOUBLE_EQ(
      predict(record(list + R"(, "take": "most")", R"("value": 1)")).rows.at(0).predicted, 200);
}

TEST(RoceRecords, RowsChangeTheScenario) {
  const RecordResult result = predict(record(
      R"("quantity": "/link_series/0/bytes", "take": "most", "column": "Gb/s", "set": {"/rate": 1})",
      R"("columns": ["km", "/rate", "Gb/s"], "rows": [[50, 80, 100], [100, 40, null], [200, 60, 60]])"));
  ASSERT_EQ(result.rows.size(), 2U);
  EXPECT_EQ(result.rows[0].id, "r@50 km");
  EXPECT_DOUBLE_EQ(result.rows[0].error, -0.2);
  EXPECT_EQ(result.rows[1].id, "r@200 km");
  EXPECT_DOUBLE_EQ(result.rows[1].error, 0);
  EXPECT_EQ(result.record->missing, 1U);
}

TEST(RoceRecords, WhatTheReportLacksIsAFailure) {
  const auto failure = [](const std::string& ask) {
    const RecordResult result = predict(record(ask, R"("value": 1)"));
    EXPECT_TRUE(result.rows.empty());
    return result.failure;
  };
  EXPECT_THAT(failure(R"("quantity": "/links/a/drops")"), HasSubstr("has no /links/a/drops"));
  EXPECT_THAT(failure(R"("quantity": "/link_series")"), HasSubstr("not a number"));
  EXPECT_THAT(failure(R"("quantity": "/link_series/0/bytes", "windows": [2, 5])"),
              HasSubstr("has 4"));
}

TEST(RoceRecords, AllProblemsAreTold) {
  std::string problems;
  dataset_of(record(R"("quantity": "time_s", "windows": [3, 3])", R"("value": 1)"), &problems);
  EXPECT_THAT(problems, HasSubstr("\"time_s\" is not a JSON pointer"));
  EXPECT_THAT(problems, HasSubstr("windows are the first and the one behind the last"));
  dataset_of(record(R"("quantity": "/time_s")", R"("columns": ["a"], "rows": [[1]])"), &problems);
  EXPECT_THAT(problems, HasSubstr("which column is predicted?"));
  dataset_of(record(R"("quantity": "/time_s", "column": "a")",
                    R"("columns": ["a", "b"], "rows": [[1], [-1, 2], ["x", 2]])"),
             &problems);
  EXPECT_THAT(problems, HasSubstr("a row has 2 cells"));
  EXPECT_THAT(problems, HasSubstr("/records/0/rows/1/0: not a number above 0"));
  dataset_of(R"({"records": [{"id": "r", "value": 1,
                 "weft": {"kind": "roce", "scenario": 3, "quantity": "/time_s"}}]})",
             &problems);
  EXPECT_THAT(problems, HasSubstr("scenario"));
}

}  // namespace
}  // namespace weft
