// SPDX-License-Identifier: Apache-2.0
// What logs and matrices say beside their rows, and must count: variables that were set, copies of the host.
#include <set>

#include <fmt/format.h>
#include <gmock/gmock.h>

#include "tests/cli/cli_test.hpp"

namespace weft {
namespace {

using cli_test::document;
using cli_test::Folder;
using cli_test::import_log;
using cli_test::Outcome;
using cli_test::weft_cli;
using ::testing::HasSubstr;
using ::testing::Not;

const Json* named(const Json& list, const std::string& key, const std::string& text) {
  for (const Json& item : list.items)
    if (item.find(key)->text.find(text) != std::string::npos) return &item;
  return nullptr;
}

class Counted : public ::testing::Test {
 protected:
  // A table of four GPUs in one process, with such a line before it.
  std::string log(const std::string& line) {
    return folder_.file("a.log", "# nThread 1 nGpus 4 minBytes 134217728 maxBytes 134217728\n" +
                                     line +
                                     R"(
#       size         count      type   redop    root     time   algbw   busbw #wrong
   134217728      33554432     float     sum      -1   7967.8   16.85   25.27      0
   268435456      67108864     float     sum      -1  15935.6   16.85   25.27      0
# NCCL version 2.18.3
# all_reduce_perf
)");
  }
  Outcome fit(const std::string& path, const std::vector<std::string>& more = {}) {
    std::vector<std::string> args{"calibrate", "fit", path,           "--fabric",  "pcie-rtx4090x8",
                                  "--ranks",   "4",   "--collective", "all_reduce"};
    args.insert(args.end(), more.begin(), more.end());
    return weft_cli(args);
  }
  Folder folder_;
};

TEST_F(Counted, VariablesThatALogNamesAreSetInThePrediction) {
  const auto first = [&](const std::string& line, const std::vector<std::string>& more = {}) {
    std::vector<std::string> args{"--json"};
    args.insert(args.end(), more.begin(), more.end());
    const Json patch = document(fit(log(line), args));
    return patch.find("calibration")->find("residuals")->items.front().find("before")->number;
  };
  const double chosen = first(""),
               tree = first("node:1:1 [0] NCCL INFO NCCL_ALGO set by environment to Tree.");
  EXPECT_GT(std::abs(tree / chosen - 1), 0.05);
  EXPECT_EQ(tree, first("", {"--env", "NCCL_ALGO=Tree"}));
  EXPECT_EQ(chosen, first("node:1:1 [0] NCCL INFO NCCL_ALGO set by environment to Tree.",
                          {"--env", "NCCL_ALGO=Ring"}));
}

TEST_F(Counted, VariablesAreTold) {
  const Outcome outcome =
      fit(log("n:1:1 [0] NCCL INFO NCCL_ALGO set by environment to Ring.\nn:1:1 [0] NCCL INFO "
              "NCCL_IB_TC set "
              "by environment to 160."));
  ASSERT_EQ(outcome.code, kOk) << outcome.err;
  EXPECT_THAT(outcome.out, HasSubstr("NCCL_ALGO=Ring: as the log says it was set"));
  EXPECT_THAT(outcome.out, HasSubstr("NCCL_IB_TC: set in the log and not modelled"));
  // One that NCCL could not read is told, and no reason to refuse what was measured.
  const Outcome odd = fit(log("n:1:1 [0] NCCL INFO NCCL_ALGO set by environment to Magic."));
  EXPECT_EQ(odd.code, kOk) << odd.err;
  EXPECT_THAT(odd.out, HasSubstr("NCCL_ALGO: set in the log and not modelled"));
}

TEST_F(Counted, ExplanationsKnowWhatWasForced) {
  const std::string path = log("n:1:1 [0] NCCL INFO NCCL_PROTO set by environment to Simple.");
  const Outcome outcome =
      weft_cli({"explain-log", path, "--fabric", "pcie-rtx4090x8", "--ranks", "4"});
  ASSERT_EQ(outcome.code, kOk) << outcome.err;
  EXPECT_THAT(outcome.out, HasSubstr("the log says NCCL_PROTO=Simple"));
}

// Copies of the host determine its link; what no wire carries is told.
TEST_F(Counted, MatricesOfTheHost) {
  const Outcome outcome =
      weft_cli({"calibrate", "fit", import_log("nvbandwidth-0.10-h100-8gpu.txt"), "--fabric",
                "hgx-h100", "--json"});
  ASSERT_EQ(outcome.code, kOk) << outcome.err;
  const Json patch = document(outcome);
  const Json* link =
      named(*patch.find("calibration")->find("parameters"), "name", "efficiency of link pcie5-x16");
  ASSERT_NE(link, nullptr);
  EXPECT_EQ(link->find("state")->text, "determined");
  EXPECT_NEAR(63.015 * link->find("value")->number, 55.3, 1.5);  // GB/s
  const auto host = [&](const char* gbs) {
    return weft_cli({"calibrate", "fit",
                     folder_.file("h.txt", R"(nvbandwidth Version: v0.9

Running host_to_device_memcpy_ce.
memcpy CE CPU(row) -> GPU(column) bandwidth (GB/s)
           0         1
 0     )" + std::string(gbs) + R"(     55.30

SUM host_to_device_memcpy_ce )" + std::to_string(std::stod(gbs) + 55.30).substr(0, 6) +
                                               "\n"),
                     "--fabric", "hgx-h100"});
  };
  const Outcome sound = host("55.31"), fast = host("97.40");
  ASSERT_EQ(sound.code, kOk) << sound.err;
  EXPECT_THAT(sound.out, Not(HasSubstr("faster than this fabric can be")));
  ASSERT_EQ(fast.code, kOk) << fast.err;
  EXPECT_THAT(fast.out, HasSubstr("1 copy row is faster than this fabric can be: "
                                  "host_to_device_memcpy_ce 256 MiB host-gpu0"));
}

// Groups of transfers are those of their file, however its lines stand.
TEST_F(Counted, TransfersThatStartTogether) {
  const auto file = [&](const std::string& name, const std::string& copies) {
    return folder_.file(name, R"({"weft": {"schema": 1}, "kind": "measurement", "name": "m",
 "tool": "weft-probe", "copies": [)" +
                                  copies + R"(], "sources": {"": "measured: by hand"}})");
  };
  const auto copy = [](const char* from, const char* to, int together) {
    return fmt::format(R"({{"from": "{}", "to": "{}", "bytes": "64 MiB", "time": "1300 us"{}}})",
                       from, to, together > 0 ? fmt::format(", \"together\": {}", together) : "");
  };
  const auto before = [&](const std::vector<std::string>& files) {
    std::vector<std::string> args{"calibrate", "fit", "--fabric", "hgx-h100", "--json"};
    args.insert(args.end(), files.begin(), files.end());
    std::multiset<std::string> out;
    const Json patch = document(weft_cli(args));
    for (const Json& row : patch.find("calibration")->find("residuals")->items)
      out.insert(row.find("id")->text + fmt::format(" {:.6g}", row.find("before")->number));
    return out;
  };
  const std::string a = copy("gpu0", "gpu1", 1), b = copy("gpu2", "gpu1", 1),
                    alone = copy("gpu4", "gpu5", 0);
  EXPECT_EQ(before({file("in.json", a + "," + alone + "," + b)}),
            before({file("order.json", a + "," + b + "," + alone)}));
  // One number in two files is two groups.
  EXPECT_EQ(before({file("a.json", a), file("b.json", b)}),
            before({file("two.json", a + "," + copy("gpu2", "gpu1", 2))}));
}

}  // namespace
}  // namespace weft
