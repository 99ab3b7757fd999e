// SPDX-License-Identifier: Apache-2.0
#include "calibrate/validate_case.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace weft {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

struct Reading {
  Dataset dataset;
  std::string problems;
};

Reading read_file(const std::string& text) {
  Reading out;
  Diagnostics diagnostics;
  const Json document = parse_json(text, "r.json", diagnostics);
  read_validation_file(document, out.dataset, diagnostics);
  out.problems = diagnostics.text();
  return out;
}

Reading read(const std::string& record) { return read_file(R"({"records": [)" + record + "]}"); }

ValidationRecord only(const std::string& record) {
  const Reading reading = read(record);
  EXPECT_EQ(reading.problems, "");
  EXPECT_EQ(reading.dataset.records.size(), 1U);
  return reading.dataset.records.empty() ? ValidationRecord{} : reading.dataset.records.front();
}

std::string nccl(const std::string& ask, const std::string& data) {
  return R"({"id": "r", "weft": {"kind": "nccl", "fabric": "hgx-a100", "collective": "all_reduce")" +
         ask + "}, " + data + "}";
}

std::string p2p(const std::string& ask, const std::string& data) {
  return R"({"id": "r", "weft": {"kind": "p2p", "fabric": "dgx2")" + ask + "}, " + data + "}";
}

TEST(ValidationRecord, VariablesOfNcclAreCheckedWhereTheyStand) {
  const std::string data = R"("columns": ["bytes", "time_us"], "rows": [[8, 10.0]])";
  const auto problems = [&](const std::string& ask) { return read(nccl(ask, data)).problems; };
  EXPECT_THAT(
      problems(", \"env\": {\n \"NCCL_CROSS_NIC\": \"7\",\n \"UCX_TLS\": \"rc\"}"),
      AllOf(HasSubstr("r.json:2:20: error: /records/0/weft/env/NCCL_CROSS_NIC: \"7\" is not"),
            HasSubstr("r.json:3:13: error: /records/0/weft/env/UCX_TLS: ")));
  EXPECT_THAT(problems(R"(, "env": {"NCCL_CROSSNIC": "1"})"),
              AllOf(HasSubstr("warning"), HasSubstr("did you mean \"NCCL_CROSS_NIC\"?")));
  EXPECT_THAT(problems(R"(, "algorithm": "ring", "env": {"NCCL_ALGO": "Tree"})"),
              AllOf(HasSubstr("warning: /records/0/weft/algorithm"), HasSubstr("wins over")));
  EXPECT_EQ(problems(R"(, "env": {"NCCL_NVLS_ENABLE": "0", "NCCL_ALGO": "Ring,Tree"})"), "");
}

TEST(ValidationRecord, WhatCouldNotBeMeasuredIsRefused) {
  EXPECT_THAT(read(nccl("", R"("columns": ["bytes", "time_us"], "rows": [[8, -10.0]])")).problems,
              HasSubstr("a measurement below 0"));
  EXPECT_THAT(read(p2p(R"(, "pairs": [[0, 1], [2, "gpu2"]], "quantity": "bandwidth")",
                       R"("value": 92.4, "unit": "GB/s")"))
                  .problems,
              HasSubstr("gpu2 is paired with itself"));
  EXPECT_THAT(read(R"({"id": "a\u001b[31m", "weft": {}})").problems,
              HasSubstr("/records/0/id: a name with control characters"));
  const std::string sets = R"("sets": [{"name": "a", "limit": {}}, {"name": "a", "limit": {}}])";
  EXPECT_THAT(read_file("{" + sets + "}").problems, HasSubstr("/sets/1: there is another set"));
}

TEST(ValidationRecord, ATableIsReadByTheNamesOfItsColumns) {
  const auto record = only(nccl(R"(, "nodes": 2, "gpus_per_node": 4, "nccl": "2.18.3")",
                                R"("columns": ["busbw_GBps_oop", "bytes", "time_us_oop"],
                                   "rows": [[0.5, 1024, 20.5], [9.0, 1048576, 199.0]])"));
  EXPECT_EQ(record.set, "other");
  EXPECT_EQ(record.quantity, Quantity::time);
  ASSERT_EQ(record.rows.size(), 2U);
  EXPECT_EQ(record.rows[1].label, "1048576");
  EXPECT_EQ(record.rows[1].bytes, 1_MiB);
  EXPECT_EQ(record.rows[1].nodes, 2);
  EXPECT_EQ(record.rows[1].gpus_per_node, 4);
  EXPECT_DOUBLE_EQ(record.rows[1].measured, 199);
}

TEST(ValidationRecord, UnitsOfColumnsBecomeMicrosecondsAndGigabytes) {
  const auto ms = only(nccl(R"(, "column": "ms", "size": "8 B")",
                            R"("columns": ["n_gpus", "ms"], "rows": [[4, 0.022]])"));
  EXPECT_DOUBLE_EQ(ms.rows[0].measured, 22);
  const auto gbps = only(
      p2p(R"(, "pairs": [[0, 1]], "quantity": "bandwidth")", R"("value": 92.4, "unit": "Gb/s")"));
  EXPECT_DOUBLE_EQ(gbps.rows[0].measured, 11.55);
  const auto mib =
      only(p2p(R"(, "pairs": [[0, 1]], "quantity": "bandwidth", "column": "MiB_per_s")",
               R"("columns": ["bytes", "MiB_per_s"], "rows": [[1024, 1000]])"));
  EXPECT_DOUBLE_EQ(mib.rows[0].measured, 1.048576);
}

// 0.07 printed with two decimals is anything from 0.065 to 0.075: 7 % either way.
TEST(ValidationRecord, RowsPrintedTooCoarselyAreCountedNotCompared) {
  const auto record = only(nccl(R"(, "column": "busbw_GBps")",
                                R"("columns": ["bytes", "busbw_GBps"],
                                   "rows": [[512, 0.0], [1024, 0.07], [2048, 0.14], [4096, 0.3]])"));
  EXPECT_EQ(record.too_coarse, 2U);
  ASSERT_EQ(record.rows.size(), 2U);
  EXPECT_EQ(record.rows[0].label, "2048");
}

TEST(ValidationRecord, RowsBelowFromAreOutsideAndEmptyCellsMissing) {
  const auto record = only(nccl(R"(, "from": "1 KiB")",
                                R"("columns": ["bytes", "time_us"],
                                   "rows": [[512, 10.0], [1024, null], [2048, 12.5]])"));
  EXPECT_EQ(record.outside, 1U);
  EXPECT_EQ(record.missing, 1U);
  EXPECT_EQ(record.rows.size(), 1U);
}

TEST(ValidationRecord, AColumnOfGpusIsSpreadOverNodesOrGpusPerNode) {
  const std::string data = R"("columns": ["n_gpus", "busbw_GBps"], "rows": [[2, 10.5], [8, 20.5]])";
  const auto one = only(nccl(R"(, "nodes": 1, "size": "1 GiB", "column": "busbw_GBps")", data));
  EXPECT_EQ(one.rows[1].nodes, 1);
  EXPECT_EQ(one.rows[1].gpus_per_node, 8);
  EXPECT_EQ(one.rows[1].label, "8 gpus");
  const auto many =
      only(nccl(R"(, "gpus_per_node": 2, "size": "1 GiB", "column": "busbw_GBps")", data));
  EXPECT_EQ(many.rows[1].nodes, 4);
  EXPECT_EQ(many.rows[1].gpus_per_node, 2);
}

TEST(ValidationRecord, AMatrixGivesEveryPairOrTheListedOnes) {
  const std::string data = R"("unit": "GB/s", "message_bytes": 4096,
      "matrix_row_src_col_dst": [[500.0, 1.5, 2.5], [3.5, 500.0, 4.5], [5.5, 6.5, 500.0]])";
  const auto all = only(p2p(R"(, "pairs": "all", "quantity": "bandwidth")", data));
  ASSERT_EQ(all.rows.size(), 6U);
  EXPECT_EQ(all.rows[2].label, "gpu1-gpu0");
  EXPECT_DOUBLE_EQ(all.rows[2].measured, 3.5);
  EXPECT_EQ(all.rows[2].bytes, 4_KiB);
  EXPECT_FALSE(all.every_pair);
  const auto one = only(p2p(R"(, "pairs": [[2, 1]], "quantity": "bandwidth")", data));
  ASSERT_EQ(one.rows.size(), 1U);
  EXPECT_DOUBLE_EQ(one.rows[0].measured, 6.5);
}

TEST(ValidationRecord, AValueOfAllPairsIsExpandedWhenTheFabricIsKnown) {
  const auto record =
      only(p2p(R"(, "pairs": "all", "quantity": "latency")", R"("value": 2.5, "unit": "us")"));
  EXPECT_TRUE(record.every_pair);
  EXPECT_EQ(record.rows.size(), 1U);
  EXPECT_EQ(record.rows[0].bytes.count, 0);
}

TEST(ValidationRecord, WaysMayBeOneOrAnOrderOfPreference) {
  const std::string data = R"("value": 2.5, "unit": "GB/s")";
  EXPECT_EQ(only(p2p(R"(, "pairs": "all", "quantity": "bandwidth", "via": "host")", data)).via,
            std::vector<Via>{Via::host});
  EXPECT_EQ(
      only(p2p(R"(, "pairs": "all", "quantity": "bandwidth", "via": ["direct", "relay"])", data))
          .via,
      (std::vector<Via>{Via::direct, Via::relay}));
}

struct Mistake {
  std::string name, record, fact;
};

class WrongRecord : public ::testing::TestWithParam<Mistake> {};

TEST_P(WrongRecord, IsRefusedWithItsPlaceAndReason) {
  const Reading reading = read(GetParam().record);
  EXPECT_THAT(reading.problems, HasSubstr("r.json:1:"));
  EXPECT_THAT(reading.problems, HasSubstr(GetParam().fact));
}

const std::string kTable = R"("columns": ["bytes", "time_us"], "rows": [[8, 10.5]])";

INSTANTIATE_TEST_SUITE_P(
    Mistakes, WrongRecord,
    ::testing::Values(
        Mistake{"NoCase", R"({"id": "r", "value": 1})", "/records/0: the key \"weft\" is missing"},
        Mistake{"NoId", R"({"weft": {}, "value": 1})", "the key \"id\" is missing"},
        Mistake{"LaterKind", R"({"id": "r", "weft": {"kind": "moe"}, "value": 1})",
                "not yet: cases of kind \"moe\""},
        Mistake{"UnknownKind", R"({"id": "r", "weft": {"kind": "ncl"}, "value": 1})",
                "did you mean \"nccl\"?"},
        Mistake{"UnknownKeyOfTheCase", nccl(R"(, "nodez": 2)", kTable), "did you mean \"nodes\"?"},
        Mistake{"NearMissOfAKey", R"({"id": "r", "degradd": true, "weft": {"kind": "nccl",
            "fabric": "x", "collective": "all_reduce"}, "columns": ["bytes", "time_us"],
            "rows": [[8, 10.5]]})",
                "did you mean \"degraded\"?"},
        Mistake{"Release", nccl(R"(, "nccl": "1.3")", kTable), "not a release of NCCL"},
        Mistake{"NothingMeasured", nccl("", R"("note": "x")"), "nothing to compare with"},
        Mistake{"NoSuchColumn", nccl(R"(, "column": "time_sec")", kTable),
                "there is no column \"time_sec\""},
        Mistake{"WhichBandwidth", nccl("", R"("columns": ["bytes", "GB/s"], "rows": [[8, 10.5]])"),
                "does not tell which bandwidth"},
        Mistake{
            "NoUnit",
            nccl(R"(, "column": "speed")", R"("columns": ["bytes", "speed"], "rows": [[8, 1]])"),
            "\"speed\" does not tell its unit"},
        Mistake{"NoSize", nccl("", R"("value": 100, "unit": "us")"), "size of the messages"},
        Mistake{"RaggedRow", nccl("", R"("columns": ["bytes", "time_us"], "rows": [[8]])"),
                "a row has 2 cells"},
        Mistake{"TextInATable",
                nccl("", R"("columns": ["bytes", "time_us"], "rows": [[8, "fast"]])"),
                "/records/0/rows/0"},
        Mistake{"NegativeSize", nccl("", R"("columns": ["bytes", "time_us"], "rows": [[-8, 1]])"),
                "whole number above 0"},
        Mistake{"UnevenGroups",
                nccl(R"(, "gpus_per_node": 4, "size": "8 B")",
                     R"("columns": ["n_gpus", "time_us"], "rows": [[6, 10.5]])"),
                "6 GPUs do not spread evenly"},
        Mistake{"BandwidthAsLatency",
                p2p(R"(, "pairs": "all", "quantity": "latency")", R"("value": 1, "unit": "GB/s")"),
                "\"GB/s\" is not a latency"},
        Mistake{"NoPairs", p2p(R"(, "quantity": "latency")", R"("value": 1, "unit": "us")"),
                "which pairs of GPUs?"},
        Mistake{"MatrixOfNccl",
                nccl("", R"("unit": "us", "matrix_row_src_col_dst": [[1, 2], [3, 4]])"),
                "a matrix is for kind p2p"},
        Mistake{"CrookedMatrix",
                p2p(R"(, "pairs": "all", "quantity": "latency")",
                    R"("unit": "us", "matrix_row_src_col_dst": [[1, 2], [3]])"),
                "the matrix is not square"}),
    [](const auto& tested) { return tested.param.name; });

TEST(ValidationFile, IdsMustDiffer) {
  const std::string record = nccl("", kTable);
  EXPECT_THAT(read(record + "," + record).problems, HasSubstr("there is another record \"r\""));
}

TEST(ValidationFile, UnknownKeysAndOtherKindsAreRefused) {
  EXPECT_THAT(read_file(R"({"recods": []})").problems, HasSubstr("did you mean \"records\"?"));
  EXPECT_THAT(read_file(R"({"kind": "fabric", "records": []})").problems, HasSubstr("/kind"));
  EXPECT_THAT(read_file(R"({"note": "x"})").problems, HasSubstr("the key \"records\" is missing"));
  EXPECT_THAT(read_file("[]").problems, HasSubstr("object"));
}

TEST(ValidationFile, SetsAndWhatIsOutOfReachMayStandAlone) {
  const Reading reading = read_file(R"({"sets": [{"name": "a", "limit": {"median": 0.1}}],
                                        "out_of_reach": [{"id": "x", "reason": "y"}]})");
  EXPECT_EQ(reading.problems, "");
  EXPECT_EQ(reading.dataset.sets.at(0).limit.median, 0.1);
  EXPECT_EQ(reading.dataset.out_of_reach.at(0).reason, "y");
}

}  // namespace
}  // namespace weft
