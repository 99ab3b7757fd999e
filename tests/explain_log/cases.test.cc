// SPDX-License-Identifier: Apache-2.0
// Logs as people post them, through the verb.
#include <gmock/gmock.h>

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

Json explain(const std::string& name, const std::string& fabric,
             const std::vector<std::string>& more = {}) {
  std::vector<std::string> args{"explain-log", import_log(name), "--fabric", fabric, "--json"};
  args.insert(args.end(), more.begin(), more.end());
  const Outcome outcome = weft_cli(args);
  EXPECT_EQ(outcome.code, kOk) << outcome.err;
  return document(outcome);
}
std::string verdict(const Json& answer) { return answer.find("summary")->find("verdict")->text; }
std::vector<std::string> causes(const Json& answer) {
  std::vector<std::string> out;
  for (const Json& cause : answer.find("summary")->find("causes")->items)
    out.push_back(cause.find("name")->text);
  return out;
}
bool notes(const Json& answer, const std::string& words) {
  for (const Json& note : answer.find("notes")->items) {
    if (note.text.find(words) != std::string::npos) return true;
  }
  return false;
}

TEST(LogCases, N01ReductionInTheSwitchIsNormal) {
  const Json answer = explain("h100-8gpu-allreduce-nvls.log", "hgx-h100");
  EXPECT_EQ(verdict(answer), "normal");
  EXPECT_TRUE(causes(answer).empty());
  for (const Json& row : answer.find("rows")->items) EXPECT_EQ(row.find("verdict")->text, "normal");
}

TEST(LogCases, N03RanksThatShareAGpuComeFirst) {
  const Json answer = explain("v2.18-socket-2rank-mpirun-tagged.log", "pcie-rtx4090x8");
  EXPECT_EQ(causes(answer).at(0), "shared-gpu");
  EXPECT_TRUE(notes(answer, "a fixed cost"));
  EXPECT_TRUE(notes(answer, "RTX 5090"));
  EXPECT_EQ(answer.find("harness")->text, "process-per-gpu");
}

TEST(LogCases, N08BareMetalIsNormalThoughAboveItsNics) {
  const Json answer = explain("h200-2x8-allreduce-baremetal.log", "hgx-h200+ib-ndr");
  EXPECT_EQ(verdict(answer), "normal");
  EXPECT_EQ(number_at(answer, {"ranks"}), 16);
}

TEST(LogCases, N08TheVirtualMachineShowsNoTopology) {
  const Json answer = explain("h200-2x8-allreduce-vm-flat-topology.log", "hgx-h200+ib-ndr",
                              {"--against", import_log("h200-2x8-allreduce-baremetal.log")});
  EXPECT_EQ(verdict(answer), "low");
  EXPECT_EQ(causes(answer).at(0), "gpu-nic-topology");
  EXPECT_THAT(answer.find("summary")->find("causes")->items.at(0).find("measure_next")->text,
              HasSubstr("NCCL_TOPO_DUMP_FILE"));
  EXPECT_LT(number_at(answer, {"against", "ratio"}), 0.2);
  EXPECT_TRUE(notes(answer, "96 MiB"));  // slower than 288 MiB
}

TEST(LogCases, N08TheOtherWayRoundTheOtherIsTheSlowOne) {
  const Json answer = explain("h200-2x8-allreduce-baremetal.log", "hgx-h200+ib-ndr",
                              {"--against", import_log("h200-2x8-allreduce-vm-flat-topology.log")});
  EXPECT_EQ(verdict(answer), "normal");
  EXPECT_GT(number_at(answer, {"against", "ratio"}), 5);
}

TEST(LogCases, N09ACollapseIsNoLimitOfALink) {
  const Json answer = explain("h100-3x8-allreduce-collapse-glued-tags.log", "hgx-h100+ib-ndr");
  EXPECT_EQ(verdict(answer), "low");
  EXPECT_EQ(causes(answer).at(0), "congestion-collapse");
  EXPECT_EQ(number_at(answer, {"ranks"}), 24);
}

TEST(LogCases, N10HalfOfTheBridgesLinks) {
  const Json answer = explain("h100pcie-2gpu-bridge-allreduce.log", "nvlink-bridge-pairs",
                              {"--set", "/nodes/0/model=h100-pcie"});
  EXPECT_EQ(verdict(answer), "low");
  EXPECT_THAT(causes(answer), ::testing::Contains("half-nvlinks"));
}

TEST(LogCases, N11ARunThatFailedIsRefused) {
  const Outcome outcome = weft_cli(
      {"explain-log", import_log("rtx5090-alltoall-crash-no-rows.log"), "--fabric", "hgx-h100"});
  EXPECT_EQ(outcome.code, kBadInput);
  EXPECT_EQ(outcome.out, "");
  EXPECT_THAT(outcome.err, HasSubstr("run failed with"));
}

TEST(LogCases, N05WrongResultsAreRefused) {
  const Outcome outcome =
      weft_cli({"explain-log", import_log("a100-2node-ll128-socket-corrupt.log"), "--fabric",
                "hgx-a100+ib-hdr", "--ranks", "16"});
  EXPECT_EQ(outcome.code, kBadInput);
}

TEST(LogCases, N11TwoBridgedGroupsAreHeldBackBetweenThem) {
  const std::string groups =
      std::string(WEFT_SOURCE_DIR) + "/tests/explain_log/data/h200-nvl-2x4.json";
  const Json answer = explain("h200nvl-8gpu-single-table.log", groups);
  const std::string held = answer.find("rows")->items.at(0).find("bottleneck")->text;
  EXPECT_THAT(held, HasSubstr("cpu")) << held;  // the hop over PCIe, not a bridge
  EXPECT_EQ(verdict(answer), "low");
  EXPECT_EQ(causes(answer).at(0), "between-nvlink-groups");
  EXPECT_THAT(answer.find("summary")->find("causes")->items.at(0).find("evidence")->text,
              HasSubstr("groups of 4 and 4 GPUs; 39.2 GB/s"));
}

TEST(LogCases, WhatTheLogDoesNotSayIsAskedAllAtOnce) {
  const Folder folder;
  const std::string bare = folder.file("bare.log",
                                       "#       size         count      type   redop    root     "
                                       "time   algbw   busbw #wrong     time   algbw   busbw "
                                       "#wrong\n"
                                       "           8             2     float     sum      -1    "
                                       "36.71    0.00    0.00      0    36.55    0.00    0.00   "
                                       "   0\n");
  const Outcome outcome = weft_cli({"explain-log", bare, "--fabric", "hgx-h100"});
  EXPECT_EQ(outcome.code, kBadInput);
  EXPECT_THAT(outcome.err, HasSubstr("--ranks"));
}

TEST(LogCases, ContradictionsAreTold) {
  const Json answer =
      explain("h200-2x8-allreduce-baremetal.log", "hgx-h200+ib-ndr", {"--harness", "one-process"});
  EXPECT_TRUE(notes(answer, "--harness one-process contradicts the log"));
  const Outcome shape = weft_cli({"explain-log", import_log("h200-2x8-allreduce-baremetal.log"),
                                  "--fabric", "hgx-h200+ib-ndr", "--gpus-per-node", "4"});
  EXPECT_EQ(shape.code, kBadInput);
  EXPECT_THAT(shape.err, HasSubstr("16 ranks are not 2 servers of 4 GPUs"));
}

TEST(LogCases, ShapesThatCannotBeAreRefused) {
  const auto with = [](const std::string& name, const std::vector<std::string>& more) {
    std::vector<std::string> args{"explain-log", import_log(name)};
    args.insert(args.end(), more.begin(), more.end());
    return weft_cli(args);
  };
  const Outcome many =
      with("h100-8gpu-allreduce-nvls.log", {"--fabric", "hgx-h100+ib-ndr", "--nodes", "1023"});
  EXPECT_EQ(many.code, kBadInput);
  EXPECT_THAT(many.err, HasSubstr("8 ranks cannot be on 1023 servers"));
  const Outcome one = with("h200-2x8-allreduce-baremetal.log", {"--fabric", "hgx-h200"});
  EXPECT_EQ(one.code, kBadInput);
  EXPECT_THAT(one.err, HasSubstr("its 16 ranks are on 2 servers, hgx-h200 is one"));
  EXPECT_EQ(one.out, "");
}

TEST(LogCases, WhatIsNoLogIsRefused) {
  const Folder folder;
  const std::string binary("\0\xff\x01GPU\n\n", 8);
  for (const std::string& path :
       {folder.file("empty.log", ""), folder.file("binary.log", binary),
        folder.file("nines.log", std::string(100'000, '9')), folder.path("missing.log"),
        folder.file("deep.json", std::string(100'000, '{')), std::string(WEFT_SOURCE_DIR)}) {
    const Outcome outcome = weft_cli({"explain-log", path, "--fabric", "hgx-h100"});
    EXPECT_EQ(outcome.code, kBadInput) << path;
    EXPECT_EQ(outcome.out, "");
    EXPECT_NE(outcome.err, "");
  }
}

TEST(LogCases, ByteOrderMarksAndLineEndsDoNotMatter) {
  std::ifstream file(import_log("h100-8gpu-allreduce-nvls.log"), std::ios::binary);
  std::ostringstream text;
  text << file.rdbuf();
  std::string windows = "\xEF\xBB\xBF";
  for (const char c : text.str()) {
    if (c == '\n') windows += '\r';
    windows += c;
  }
  const Folder folder;
  const Outcome plain = weft_cli({"explain-log", import_log("h100-8gpu-allreduce-nvls.log"),
                                  "--fabric", "hgx-h100"}),
                other = weft_cli(
                    {"explain-log", folder.file("w.log", windows), "--fabric", "hgx-h100"});
  EXPECT_EQ(other.code, kOk) << other.err;
  EXPECT_EQ(other.out, plain.out);
}

TEST(LogCases, VariablesAreCheckedByName) {
  const std::vector<std::string> base{"explain-log", import_log("h100-8gpu-allreduce-nvls.log"),
                                      "--fabric", "hgx-h100", "--env"};
  const auto with = [&](const std::string& variable) {
    std::vector<std::string> args = base;
    args.push_back(variable);
    return weft_cli(args);
  };
  const Outcome wrong = with("NCL_ALGO=Ring");
  EXPECT_EQ(wrong.code, kBadInput);
  EXPECT_EQ(wrong.out, "");
  EXPECT_THAT(wrong.err, HasSubstr("did you mean \"NCCL_ALGO\""));
  const Outcome value = with("NCCL_MIN_NCHANNELS=-5");
  EXPECT_EQ(value.code, kBadInput);
  EXPECT_THAT(value.err, HasSubstr("NCCL_MIN_NCHANNELS: \"-5\" is not a number"));
  const Outcome other = with("NCCL_DEBUG=INFO");
  EXPECT_EQ(other.code, kOk);
  EXPECT_THAT(other.err, HasSubstr("NCCL_DEBUG is not modelled"));
}

TEST(LogCases, TextNamesVerdictAndWhatToMeasure) {
  const Outcome outcome =
      weft_cli({"explain-log", import_log("h100-3x8-allreduce-collapse-glued-tags.log"), "--fabric",
                "hgx-h100+ib-ndr"});
  EXPECT_EQ(outcome.code, kOk) << outcome.err;
  EXPECT_THAT(outcome.out, HasSubstr("low: "));
  EXPECT_THAT(outcome.out, HasSubstr("next: "));
}

}  // namespace
}  // namespace weft
