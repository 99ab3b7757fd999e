// SPDX-License-Identifier: Apache-2.0
// Logs as people post them, through `weft calibrate`: what may be fitted, what must not be, and what comes out.
#include <gmock/gmock.h>

#include "sim/core/units.hpp"
#include "tests/cli/cli_test.hpp"

namespace weft {
namespace {

using cli_test::document;
using cli_test::Folder;
using cli_test::import_log;
using cli_test::number_at;
using cli_test::Outcome;
using cli_test::weft_cli;
using ::testing::HasSubstr;
using ::testing::Not;

Outcome fit(const std::string& name, const std::string& fabric,
            const std::vector<std::string>& more = {}) {
  std::vector<std::string> args{"calibrate", "fit",    import_log(name), "--fabric",
                                fabric,      "--json", "--date",         "2026-01-01"};
  args.insert(args.end(), more.begin(), more.end());
  return weft_cli(args);
}

const Json* find(const Json& list, const std::string& key, const std::string& text) {
  for (const Json& item : list.items)
    if (item.find(key)->text.find(text) != std::string::npos) return &item;
  return nullptr;
}
bool says(const Json& patch, const std::string& words) {
  const Json* notes = patch.find("calibration")->find("notes");
  if (notes == nullptr) return false;
  for (const Json& note : notes->items)
    if (note.text.find(words) != std::string::npos) return true;
  return false;
}

TEST(CalibrateCases, N01NoLinkIsFasterThanItsWire) {
  const Outcome outcome = fit("h100-8gpu-allreduce-nvls.log", "hgx-h100");
  ASSERT_EQ(outcome.code, kOk) << outcome.err;
  const Json patch = document(outcome);
  const Json& parameters = *patch.find("calibration")->find("parameters");
  const Json* reduction = find(parameters, "name", "rate of reduction");
  ASSERT_NE(reduction, nullptr);
  EXPECT_EQ(reduction->find("state")->text, "determined");
  // 18 links of 25 GB/s.
  EXPECT_LT(reduction->find("high")->number * 18 / 8e9, 450);
  EXPECT_NEAR(reduction->find("value")->number * 18 / 8e9, 320, 40);
  for (const Json& p : parameters.items)
    if (p.find("unit")->text == "share") {
      EXPECT_LE(p.find("high")->number, 1);
    }
}

TEST(CalibrateCases, N02ACompleteSweepIsFittedWithin25PercentAnd5AtLargeSizes) {
  const Outcome outcome = fit("rtx4090-4gpu-p2p-driver-allreduce.log", "pcie-rtx4090x8",
                              {"--set", "/peer_access/pcie=all"});
  ASSERT_EQ(outcome.code, kOk) << outcome.err;
  const Json patch = document(outcome);
  const Json& rows = *patch.find("calibration")->find("residuals");
  ASSERT_EQ(rows.items.size(), 21U);
  for (const Json& row : rows.items) {
    const double error = row.find("predicted")->number / row.find("measured")->number - 1;
    const std::string& id = row.find("id")->text;
    EXPECT_LT(std::abs(error), 0.25) << id;
    if (row.find("measured")->number > 1000) {
      EXPECT_LT(std::abs(error), 0.05) << id;
    }
  }
  EXPECT_NEAR(rows.items.front().find("predicted")->number, 19.5, 1.5 + 1);
  EXPECT_NEAR(1.5 * 1073741824 / rows.items.back().find("predicted")->number * 1e-3, 25.3, 1);
}

TEST(CalibrateCases, N03AFixedCostOnSharedGpusIsNotFitted) {
  const Outcome outcome =
      fit("v2.18-socket-2rank-mpirun-tagged.log", "pcie-rtx4090x8", {"--other-gpus"});
  EXPECT_EQ(outcome.code, kBadInput);
  EXPECT_THAT(outcome.err, HasSubstr("a fixed cost, no bandwidth"));
}

TEST(CalibrateCases, N05WrongDataAreRefusedUnlessForced) {
  const Outcome outcome = fit("a100-2node-ll128-socket-corrupt.log", "dgx-a100+ib-hdr");
  EXPECT_EQ(outcome.code, kBadInput);
  EXPECT_THAT(outcome.err, HasSubstr("wrong"));
  EXPECT_EQ(outcome.out, "");
}

TEST(CalibrateCases, N09NothingIsFittedBeyondTheCliff) {
  const Outcome outcome = fit("h100-3x8-allreduce-collapse-glued-tags.log", "hgx-h100+ib-ndr");
  ASSERT_EQ(outcome.code, kOk) << outcome.err;
  const Json patch = document(outcome);
  EXPECT_TRUE(says(patch, "falls by a factor of 5.6 from 32 MiB to 64 MiB"));
  for (const Json& row : patch.find("calibration")->find("residuals")->items) {
    const bool beyond = row.find("measured")->number > 15'000;
    if (beyond) {
      EXPECT_FALSE(row.find("fitted")->boolean);
    }
  }
}

TEST(CalibrateCases, N12TheFirstRowIsNotFittedAndRepeatsAreNotAveraged) {
  const Json patch =
      document(fit("pcie-2x8-alltoall-mpi-noise-first-row-outlier.log", "pcie-l40s+tcp-400g"));
  EXPECT_TRUE(says(patch, "1 KiB is not fitted"));
  const Json other =
      document(fit("h100-8x8-allreduce-validation-off-before-after.log", "hgx-h100+ib-ndr"));
  EXPECT_EQ(other.find("calibration")->find("residuals")->items.size(), 2U);
}

// 450 GB/s raw. Bidirectional figures are no single direction's, loads of 826 ns are no copies.
TEST(CalibrateCases, O01TwoToolsAgreeOnTheLinkAndLatenciesStayApart) {
  for (const char* name : {"p2p-h100-8gpu-nvswitch.txt", "nvbandwidth-0.10-h100-8gpu.txt"}) {
    const Outcome outcome = fit(name, "hgx-h100");
    ASSERT_EQ(outcome.code, kOk) << outcome.err;
    const Json patch = document(outcome);
    const Json& calibration = *patch.find("calibration");
    const Json* link = find(*calibration.find("parameters"), "name", "efficiency of link nvlink4");
    ASSERT_NE(link, nullptr) << name;
    EXPECT_EQ(link->find("state")->text, "determined");
    EXPECT_NEAR(450 * link->find("value")->number, 393, 8) << name;
    for (const Json& row : calibration.find("residuals")->items) {
      const bool load = row.find("id")->text.find("latency_sm") != std::string::npos;
      if (load) {
        EXPECT_FALSE(row.find("fitted")->boolean);
      }
    }
    if (const Json* copy = find(*calibration.find("parameters"), "name", "latency of copy")) {
      EXPECT_GT(copy->find("value")->number, 2e-6);
    }
  }
}

TEST(CalibrateCases, AFarOffMachineIsCalledAnotherMachine) {
  const Json patch = document(fit("rtx4090-4gpu-p2p-driver-allreduce.log", "pcie-rtx4090x8"));
  EXPECT_TRUE(says(patch, "rate of staging"));
  EXPECT_TRUE(says(patch, "is this the right fabric"));
}

TEST(CalibratePatch, IsUsedLikeAFabricAndCountsAsMeasured) {
  const Folder folder;
  const std::string path = folder.path("node.json");
  const Outcome written =
      weft_cli({"calibrate", "fit", import_log("rtx4090-4gpu-p2p-driver-allreduce.log"), "--fabric",
                "pcie-rtx4090x8", "--set", "/peer_access/pcie=all", "-o", path});
  ASSERT_EQ(written.code, kOk) << written.err;
  EXPECT_EQ(weft_cli({"check", path}).code, kOk);
  const auto row = [](const std::string& fabric, const std::vector<std::string>& more) {
    std::vector<std::string> args{
        "nccl-tests", "all_reduce_perf", "--fabric",    fabric,  "-g", "4", "-b", "1K", "-e",
        "1K",         "--harness",       "one-process", "--json"};
    args.insert(args.end(), more.begin(), more.end());
    return number_at(document(weft_cli(args)), {"rows", "0", "time_us"});
  };
  EXPECT_NEAR(row(path, {}), 18.46, 2.5);
  EXPECT_NE(row(path, {}), row("pcie-rtx4090x8", {"--set", "/peer_access/pcie=all"}));
  const std::string scenario = folder.file(
      "scenario.json",
      R"({"weft": {"schema": 1}, "name": "four", "question": "how long?", "fabric": "node.json",
          "nccl": {}, "jobs": [{"name": "a", "collective": "all_reduce", "size": "1 GiB", "gpus": 4}]})");
  EXPECT_EQ(weft_cli({"run", scenario}).code, kOk);
}

// What weft is off by depends on what a job is and on where it lies, not on how large the fabric is.
TEST(CalibratePatch, IntervalsAreThoseOfTheJob) {
  const Folder folder;
  ASSERT_EQ(
      weft_cli({"calibrate", "fit", import_log("h200-2x8-allreduce-baremetal.log"), "--fabric",
                "hgx-h200+ib-ndr", "--set", "/servers=2", "-o", folder.path("two.json")})
          .code,
      kOk);
  const auto width = [&](const std::string& job) {
    const std::string scenario = folder.file(
        "scenario.json", R"({"weft": {"schema": 1}, "name": "s", "question": "how long?",
          "fabric": "two.json", "nccl": {}, "jobs": [{"name": "a", )" +
                             job + "}]}");
    const auto outcome = weft_cli({"run", scenario, "--intervals", "--json"});
    EXPECT_EQ(outcome.code, kOk) << outcome.err;
    const Json report = document(outcome);
    return number_at(report, {"intervals_90", "a", "high"}) /
           number_at(report, {"intervals_90", "a", "low"});
  };
  const double inside = width(R"("collective": "all_reduce", "size": "64 MiB", "gpus": 8)"),
               across = width(R"("collective": "all_reduce", "size": "64 MiB", "gpus": 16)"),
               worst = width(R"("collective": "all_reduce", "size": "16 KiB", "gpus": 16)"),
               step = width(R"("kind": "training", "gpus": 16, "model": {"use": "gpt-1536x16"},
                               "seq": 1024, "global_batch": 16, "plan": {})");
  EXPECT_LT(inside, 0.9 * across);
  EXPECT_LT(across, 0.9 * worst);
  EXPECT_LT(step, 0.8 * worst);
  EXPECT_GT(step, inside);
}

TEST(CalibratePatch, GivesIntervalsToPredictions) {
  const Folder folder;
  const std::string path = folder.path("node.json");
  ASSERT_EQ(weft_cli({"calibrate", "fit", import_log("rtx4090-4gpu-p2p-driver-allreduce.log"),
                      "--fabric", "pcie-rtx4090x8", "--set", "/peer_access/pcie=all", "-o", path})
                .code,
            kOk);
  const Json rows = document(weft_cli({"nccl-tests", "all_reduce_perf", "--fabric", path, "-g", "4",
                                       "-b", "1G", "-e", "1G", "--intervals", "--json"}));
  const double low = number_at(rows, {"rows", "0", "time_us_low"}),
               high = number_at(rows, {"rows", "0", "time_us_high"});
  EXPECT_LT(low, 63'640);  // measured
  EXPECT_GT(high, 63'640);
  EXPECT_LT(high / low, 1.3);
  const std::string scenario = folder.file(
      "scenario.json",
      R"({"weft": {"schema": 1}, "name": "four", "question": "how long?", "fabric": "node.json",
          "nccl": {}, "jobs": [{"name": "a", "collective": "all_reduce", "size": "1 GiB", "gpus": 4}]})");
  const Json report = document(weft_cli({"run", scenario, "--intervals", "--json"}));
  EXPECT_LT(number_at(report, {"intervals_90", "a", "low"}), number_at(report, {"time_s"}));
  EXPECT_GT(number_at(report, {"intervals_90", "a", "high"}), number_at(report, {"time_s"}));
  EXPECT_EQ(weft_cli({"nccl-tests", "all_reduce_perf", "--fabric", "hgx-h100", "--intervals"}).code,
            kBadInput);
}

TEST(CalibrateSuggest, NamesTheCollectiveThatAScenarioRuns) {
  const Folder folder;
  const std::string scenario = folder.file(
      "scenario.json",
      R"({"weft": {"schema": 1}, "name": "eight", "question": "how long?", "fabric": "hgx-a100",
          "nccl": {}, "jobs": [{"name": "a", "collective": "all_gather", "size": "1 GiB"}]})");
  const Json answer =
      document(weft_cli({"calibrate", "suggest", scenario, "--fabric", "hgx-a100", "--json"}));
  const Json& list = *answer.find("measurements");
  ASSERT_FALSE(list.items.empty());
  EXPECT_THAT(list.items.front().find("measure")->text, HasSubstr("of 8 GPUs"));
  double before = 1;
  for (const Json& one : list.items) {
    EXPECT_LE(one.find("sd_before")->number, before + 1e-12);
    EXPECT_LT(one.find("sd_after")->number, one.find("sd_before")->number);
    before = one.find("sd_after")->number;
  }
}

TEST(CalibrateSuggest, NamesKernelsForATrainingStep) {
  const std::string scenario = std::string(WEFT_SOURCE_DIR) + "/scenarios/30-training-step.json";
  Diagnostics problems;
  const Json file = parse_json(
      [&] {
        std::ifstream in(scenario);
        return std::string(std::istreambuf_iterator<char>(in), {});
      }(),
      scenario, problems);
  const Json* fabric = file.find("fabric");
  ASSERT_NE(fabric, nullptr);
  const std::string name = fabric->is_string() ? fabric->text : fabric->find("use")->text;
  const Outcome outcome =
      weft_cli({"calibrate", "suggest", scenario, "--fabric", name, "--most", "1", "--json"});
  ASSERT_EQ(outcome.code, kOk) << outcome.err;
  EXPECT_THAT(outcome.out, HasSubstr("8192 x 8192 x 8192"));
}

TEST(CalibrateCheck, PredictsWhatItLeftOut) {
  const Outcome outcome =
      weft_cli({"calibrate", "check", import_log("rtx4090-4gpu-p2p-driver-allreduce.log"),
                "--fabric", "pcie-rtx4090x8", "--set", "/peer_access/pcie=all", "--json"});
  ASSERT_EQ(outcome.code, kOk) << outcome.err;
  const Json answer = document(outcome);
  EXPECT_EQ(number_at(answer, {"fitted_rows"}), 3);
  EXPECT_EQ(answer.find("rows")->items.size(), 18U);
  EXPECT_GE(number_at(answer, {"coverage_90"}), 0.8);
}

TEST(CalibrateCheck, RefusesWhatItCannotDo) {
  EXPECT_EQ(weft_cli({"calibrate", "check", import_log("rtx4090-4gpu-p2p-driver-allreduce.log"),
                      "--fabric", "pcie-rtx4090x8", "--keep", "many"})
                .code,
            kBadInput);
  EXPECT_EQ(weft_cli({"calibrate", "check", import_log("rtx4090-4gpu-p2p-driver-allreduce.log"),
                      "--fabric", "pcie-rtx4090x8", "--leave-out", "groups"})
                .code,
            kBadInput);
  EXPECT_EQ(weft_cli({"calibrate"}).code, kBadInput);
  EXPECT_EQ(weft_cli({"calibrate", "fit", "/nowhere.log", "--fabric", "hgx-h100"}).code, kBadInput);
}

}  // namespace
}  // namespace weft
