// SPDX-License-Identifier: Apache-2.0
// The table that `weft nccl-tests` prints is a table of nccl-tests: weft reads it back, finds it normal and says whose it is.
#include <gmock/gmock.h>

#include "tests/cli/cli_test.hpp"

namespace weft {
namespace {

using cli_test::document;
using cli_test::Folder;
using cli_test::Outcome;
using cli_test::weft_cli;
using ::testing::HasSubstr;

struct Question {
  std::string test, fabric;
  std::vector<std::string> more;
  std::int64_t ranks = 0;
};

TEST(OwnTable, IsReadBackAsItWasPredicted) {
  const std::vector<Question> questions{
      {"all_reduce_perf", "hgx-h100", {}, 8},
      {"all_gather_perf", "hgx-h100+ib-ndr", {"--nodes", "2"}, 16},
      {"alltoall_perf", "dgx2", {"-g", "4", "--harness", "one-process"}, 4},
      {"broadcast_perf", "dgx-a100", {"--nccl", "2.18.3", "--harness", "graph"}, 8},
  };
  for (const Question& question : questions) {
    const Folder folder;
    std::vector<std::string> args{
        "nccl-tests", question.test, "--fabric", question.fabric, "-b", "64K", "-e",
        "64M",        "-f",          "8"};
    args.insert(args.end(), question.more.begin(), question.more.end());
    const Outcome table = weft_cli(args);
    ASSERT_EQ(table.code, kOk) << table.err;
    const Outcome outcome = weft_cli(
        {"explain-log", folder.file("own.log", table.out), "--fabric", question.fabric, "--json"});
    ASSERT_EQ(outcome.code, kOk) << question.test << "\n" << outcome.err << table.out;
    const Json answer = document(outcome);
    EXPECT_EQ(answer.find("ranks")->integer, question.ranks);
    ASSERT_EQ(answer.find("rows")->items.size(), 4U) << table.out;
    for (const Json& row : answer.find("rows")->items)
      EXPECT_NEAR(row.find("ratio")->number, 1, 0.01) << question.test << "\n" << table.out;
    EXPECT_EQ(answer.find("summary")->find("verdict")->text, "normal");
    EXPECT_TRUE(answer.find("summary")->find("causes")->items.empty()) << outcome.out;
    EXPECT_THAT(outcome.out, HasSubstr("a prediction of weft"));
  }
}

// What a cut row lost cannot be told from the remark behind it.
TEST(OwnTable, ARowWithoutItsLastCellsIsNotUsed) {
  const Folder folder;
  std::string table =
      weft_cli({"nccl-tests", "all_reduce_perf", "--fabric", "hgx-h100", "-b", "1M", "-e", "4M"})
          .out;
  const std::size_t last = table.rfind("float");
  table = table.substr(0, last + 20);
  const Outcome outcome =
      weft_cli({"explain-log", folder.file("cut.log", table), "--fabric", "hgx-h100", "--json"});
  ASSERT_EQ(outcome.code, kOk) << outcome.err;
  EXPECT_EQ(document(outcome).find("rows")->items.size(), 2U);
}

}  // namespace
}  // namespace weft
