// SPDX-License-Identifier: Apache-2.0
#include "calibrate/validate.hpp"

#include <cmath>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "calibrate/validate_page.hpp"
#include "models/catalog.hpp"
#include "sim/run/run.hpp"
#include "tests/support/fabric_text.hpp"

namespace weft {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

// A fabric of the catalogue with real link laws.
std::shared_ptr<const Fabric> real_fabric(const std::string& name, const Json&, std::int64_t) {
  return std::make_shared<const Fabric>(testing::catalogue_fabric(name, link_classes()));
}

Dataset dataset_of(const std::string& text) {
  Dataset dataset;
  Diagnostics diagnostics;
  read_validation_file(parse_json(text, "r.json", diagnostics), dataset, diagnostics);
  EXPECT_EQ(diagnostics.text(), "");
  return dataset;
}

ValidationResult validate_text(const std::string& text, const Dataset** kept = nullptr) {
  static std::deque<Dataset> alive;  // results point into their dataset
  alive.push_back(dataset_of(text));
  if (kept != nullptr) *kept = &alive.back();
  return validate(alive.back(), {.fabric = real_fabric});
}

TEST(ErrorFigures, AreMedianDecileAndSignedMedian) {
  std::vector<std::pair<Bytes, double>> errors;
  for (int i = -5; i <= 5; ++i) errors.emplace_back(i < 4 ? 1_KiB : 16_MiB, 0.1 * i);
  const ErrorFigures figures = error_figures(errors);
  EXPECT_EQ(figures.rows, 11U);
  EXPECT_DOUBLE_EQ(figures.median, 0.3);  // of 0 .1 .1 .2 .2 .3 .3 .4 .4 .5 .5
  EXPECT_DOUBLE_EQ(figures.p90, 0.5);
  EXPECT_DOUBLE_EQ(figures.bias, 0);
  EXPECT_EQ(figures.rows_large, 2U);
  EXPECT_DOUBLE_EQ(figures.median_large, 0.45);
  EXPECT_EQ(error_figures({}).rows, 0U);
}

// The same measurement given as time, bus and algorithm bandwidth has the same error.
TEST(Validate, BandwidthsAreComparedAsTheTimesTheyCameFrom) {
  const auto result = validate_text(R"({"records": [
    {"id": "t", "weft": {"kind": "nccl", "fabric": "hgx-a100", "collective": "all_reduce", "size": "1 GiB"},
     "value": 8053.06368, "unit": "us"},
    {"id": "bus", "weft": {"kind": "nccl", "fabric": "hgx-a100", "collective": "all_reduce", "size": "1 GiB",
     "quantity": "busbw"}, "value": 233.3333333333, "unit": "GB/s"},
    {"id": "alg", "weft": {"kind": "nccl", "fabric": "hgx-a100", "collective": "all_reduce", "size": "1 GiB",
     "quantity": "algbw"}, "value": 133.3333333333, "unit": "GB/s"}]})");
  ASSERT_EQ(result.records.size(), 3U);
  for (const RecordResult& record : result.records) {
    ASSERT_EQ(record.failure, "");
    ASSERT_EQ(record.rows.size(), 1U);
    EXPECT_EQ(record.unit, "us");
    EXPECT_NEAR(record.rows[0].measured, 8053.06368, 1e-5);
    EXPECT_NEAR(record.rows[0].measured_gbs, 233.33333, 1e-4);
    EXPECT_NEAR(record.rows[0].error, result.records[0].rows[0].error, 1e-9);
  }
  EXPECT_EQ(result.records[0].gpu, "ampere");
  EXPECT_EQ(result.records[0].network, "one server");
}

TEST(Validate, EachNumberOfGpusIsAskedOnItsOwn) {
  const auto result = validate_text(R"({"records": [
    {"id": "r", "weft": {"kind": "nccl", "fabric": "hgx-a100", "collective": "all_gather", "nodes": 1,
     "size": "1 GiB", "column": "time_us"}, "columns": ["n_gpus", "time_us"],
     "rows": [[8, 1000.5], [2, 1000.5], [4, 1000.5]]}]})");
  const std::vector<RowResult>& rows = result.records.at(0).rows;
  ASSERT_EQ(rows.size(), 3U);
  EXPECT_EQ(rows[0].id, "r@8 gpus");
  EXPECT_EQ(rows[1].id, "r@2 gpus");
  // All-gather of a total moves (n-1)/n of it through every GPU.
  EXPECT_NEAR(rows[0].predicted / rows[1].predicted, (7.0 / 8) / (1.0 / 2), 0.1);
}

TEST(Validate, CopiesTakeTheFirstWayThatAPairHas) {
  const auto result = validate_text(R"({"records": [
    {"id": "r", "weft": {"kind": "p2p", "fabric": "dgx1-p100", "via": ["direct", "relay"],
     "pairs": [[0, 1], [0, 5]], "quantity": "bandwidth"}, "value": 18.41, "unit": "GB/s"}]})");
  const std::vector<RowResult>& rows = result.records.at(0).rows;
  ASSERT_EQ(rows.size(), 2U);
  EXPECT_EQ(rows[0].how, "direct");
  EXPECT_EQ(rows[1].how, "relay");
  EXPECT_EQ(rows[1].id, "r@gpu0-gpu5");
  EXPECT_NEAR(rows[0].error, 0, 0.05);
  EXPECT_NEAR(rows[1].predicted / rows[0].predicted, 0.5, 0.01);
}

TEST(Validate, AValueForAllPairsIsComparedWithEach) {
  const auto result = validate_text(R"({"records": [
    {"id": "r", "weft": {"kind": "p2p", "fabric": "hgx-a100", "pairs": "all", "quantity": "latency"},
     "value": 2.5, "unit": "us"}]})");
  ASSERT_EQ(result.records.at(0).rows.size(), 56U);
  EXPECT_EQ(result.records[0].rows[0].id, "r@gpu0-gpu1");
  EXPECT_EQ(result.records[0].unit, "us");
}

TEST(Validate, WhatTheFabricLacksIsAFailureOfThatRecordAlone) {
  const auto result = validate_text(R"({"records": [
    {"id": "many", "weft": {"kind": "nccl", "fabric": "hgx-a100", "collective": "all_reduce",
     "gpus_per_node": 9, "size": "8 B"}, "value": 10, "unit": "us"},
    {"id": "none", "weft": {"kind": "p2p", "fabric": "hgx-a100", "pairs": [["gpu0", "gpu8"]],
     "quantity": "latency"}, "value": 10, "unit": "us"},
    {"id": "fine", "weft": {"kind": "p2p", "fabric": "hgx-a100", "pairs": [["gpu0", "gpu7"]],
     "quantity": "latency"}, "value": 10, "unit": "us"}]})");
  EXPECT_THAT(result.records[0].failure, HasSubstr("GPU 8 of a server is wanted, it has 8"));
  EXPECT_THAT(result.records[1].failure, HasSubstr("no GPU \"gpu8\""));
  EXPECT_EQ(result.records[2].failure, "");
  EXPECT_TRUE(result.groups.empty());
  EXPECT_EQ(result.all.rows, 1U);
}

// 2 x 145.59 and 145.59 / 2 GB/s for 145.59: errors of -50 % and +100 %, each a factor of two.
TEST(Validate, RowsBesideAPublishedErrorHaveItsGeometricMean) {
  const auto result = validate_text(R"({
    "published": [
      {"name": "ours", "by": "them", "error": 0.2, "rows": ["half@*", "twice@*", "faulty@*"]},
      {"name": "easier", "by": "them", "error": 0.2, "limit": 0.75, "rows": ["half@*", "twice@*"]},
      {"name": "absent", "by": "them", "error": 0.2, "rows": ["other@*"]}],
    "records": [
    {"id": "half", "weft": {"kind": "p2p", "fabric": "dgx2", "pairs": [[0, 1]],
     "quantity": "bandwidth"}, "value": 291.176, "unit": "GB/s"},
    {"id": "twice", "weft": {"kind": "p2p", "fabric": "dgx2", "pairs": [[0, 1]],
     "quantity": "bandwidth"}, "value": 72.794, "unit": "GB/s"},
    {"id": "faulty", "degraded": true, "weft": {"kind": "p2p", "fabric": "dgx2", "pairs": [[0, 1]],
     "quantity": "bandwidth"}, "value": 1, "unit": "GB/s"}]})");
  ASSERT_EQ(result.published.size(), 3U);
  EXPECT_EQ(result.published[0].rows, 2U);
  EXPECT_NEAR(result.published[0].geometric_mean, std::sqrt(0.5 * 1), 0.01);
  EXPECT_NEAR(result.published[0].ratio, 1, 0.01);
  EXPECT_THAT(result.published[0].broken_limit, HasSubstr("is above 0.2"));
  EXPECT_EQ(result.published[1].broken_limit, "");
  EXPECT_EQ(result.published[2].rows, 0U);
  EXPECT_EQ(result.published[2].broken_limit, "");
}

TEST(Validate, AnErrorOfNothingCountsAsTheLeastThatTablesShow) {
  const auto result_of = [](double measured) {
    return validate_text(fmt::format(R"({{
      "published": [{{"name": "ours", "by": "them", "error": 0, "limit": 0.002, "rows": ["*"]}}],
      "records": [{{"id": "same", "weft": {{"kind": "p2p", "fabric": "dgx2", "pairs": [[0, 1]],
       "quantity": "bandwidth"}}, "value": {:.9f}, "unit": "GB/s"}}]}})",
                                     measured));
  };
  const double predicted = result_of(100).records.at(0).rows.at(0).predicted;
  EXPECT_NEAR(result_of(predicted).published.at(0).geometric_mean, kLeastError, 1e-12);
}

const char* const kLimits = R"({
  "sets": [{"name": "a", "limit": {"median": 0.5}}, {"name": "unused"}],
  "records": [
    {"id": "good", "set": "a", "weft": {"kind": "p2p", "fabric": "dgx2", "pairs": [[0, 1]],
     "quantity": "bandwidth"}, "value": 145.57, "unit": "GB/s"},
    {"id": "faulty", "set": "a", "degraded": true, "weft": {"kind": "p2p", "fabric": "dgx2",
     "pairs": [[0, 1]], "quantity": "bandwidth"}, "value": 10, "unit": "GB/s"},
    {"id": "bad", "set": "b", "weft": {"kind": "p2p", "fabric": "dgx2", "pairs": [[0, 1], [1, 0]],
     "quantity": "bandwidth"}, "value": 50, "unit": "GB/s"}]})";

TEST(Validate, DegradedRecordsCountOnlyInASetOfTheirKind) {
  const auto result = validate_text(kLimits);
  ASSERT_EQ(result.sets.size(), 2U);
  EXPECT_EQ(result.sets[0].name, "a");
  EXPECT_EQ(result.sets[0].records.size(), 2U);
  EXPECT_EQ(result.sets[0].figures.rows, 1U);
  EXPECT_TRUE(result.sets[0].broken_limits.empty());
  EXPECT_EQ(result.all.rows, 3U);
}

TEST(Validate, LimitsOfASetAreHeldAgainstItsFigures) {
  std::string text = kLimits;
  text.replace(text.find("\"unused\""), 8, R"("b", "limit": {"median": 0.5, "bias": 3})");
  const auto result = validate_text(text);
  const auto& b = result.sets.at(1);
  EXPECT_EQ(b.name, "b");
  ASSERT_EQ(b.broken_limits.size(), 1U);
  EXPECT_THAT(b.broken_limits[0], HasSubstr("median 1.9"));
  EXPECT_THAT(b.broken_limits[0], HasSubstr("is above 0.5"));
}

TEST(Validate, ThreadsChangeNothing) {
  const Dataset dataset = dataset_of(kLimits);
  const auto one = validate(dataset, {.fabric = real_fabric, .threads = 1});
  const auto four = validate(dataset, {.fabric = real_fabric, .threads = 4});
  ASSERT_EQ(one.records.size(), four.records.size());
  for (std::size_t i = 0; i < one.records.size(); ++i) {
    ASSERT_EQ(one.records[i].rows.size(), four.records[i].rows.size());
    EXPECT_EQ(one.records[i].rows[0].predicted, four.records[i].rows[0].predicted);
  }
}

TEST(ValidationPage, HoldsFiguresNotesAndPlotsOfSweeps) {
  const Dataset* dataset = nullptr;
  const auto result = validate_text(
      R"({"out_of_reach": [{"id": "lost", "reason": "why"}], "records": [
      {"id": "sweep", "set": "s", "weft": {"kind": "nccl", "fabric": "hgx-a100", "collective": "all_reduce"},
       "columns": ["bytes", "time_us"],
       "rows": [[1024, 30.5], [65536, 30.5], [1048576, 50.5], [16777216, 150.5]]}]})",
      &dataset);
  const ValidationPage page =
      validation_page(*dataset, result, "## Where\n\nBy hand & <b>.\n", "v");
  EXPECT_THAT(page.markdown, HasSubstr("### s\n\n![s](v/s.svg)"));
  EXPECT_THAT(page.markdown, HasSubstr("By hand & <b>."));
  EXPECT_THAT(page.markdown, HasSubstr("| lost | why |"));
  ASSERT_TRUE(page.plots.contains("s.svg"));
  ASSERT_TRUE(page.plots.contains("all.svg"));
  for (const auto& [name, svg] : page.plots) {
    EXPECT_TRUE(svg.starts_with("<svg ") && svg.ends_with("</svg>\n")) << name;
    EXPECT_THAT(svg, Not(HasSubstr("nan")));
    EXPECT_THAT(svg, Not(HasSubstr("inf")));
  }
}

}  // namespace
}  // namespace weft
