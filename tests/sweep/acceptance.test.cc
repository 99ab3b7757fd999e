// SPDX-License-Identifier: Apache-2.0
// Two thousand analytic points: the table of a sweep that was killed, sharded or run by one thread is that of an undisturbed one.
// Ranks of MPI are tried by tests/sweep/run, which also measures threads.
#include "tests/sweep/sweep_test.hpp"

namespace weft {
namespace {

using namespace sweep_test;

constexpr const char* kSweep = WEFT_SOURCE_DIR "/tests/sweep/two-thousand.sweep.json";
constexpr std::size_t kPoints = 2000;

class TwoThousand : public SweepTest {
 protected:
  static const std::string& undisturbed() {
    static const std::string table = [] {
      const std::string store = testing::TempDir() + "weft_sweep_whole_" + std::to_string(getpid());
      fs::remove_all(store);
      EXPECT_EQ(weft_cli({"sweep", kSweep, "--out", store}).code, 0);
      const std::string text = weft_cli({"sweep", "csv", store}).out;
      fs::remove_all(store);
      return text;
    }();
    return table;
  }
};

TEST_F(TwoThousand, HaveAResultEach) {
  const std::string& table = undisturbed();
  EXPECT_EQ(std::count(table.begin(), table.end(), '\n'), kPoints + 1);
  EXPECT_EQ(table.find("failed"), std::string::npos);
}

TEST_F(TwoThousand, SurviveThreeKills) {
  std::size_t before = 0;
  for (const std::size_t wanted : {200, 700, 1400}) {
    const Child child({"sweep", kSweep, "--out", path("killed"), "--resume"});
    // Where in its work it is hit is left to chance.
    while (lines(log("killed")) < wanted) std::this_thread::sleep_for(std::chrono::milliseconds(1));
    child.send(SIGKILL);
    EXPECT_EQ(child.wait(), -SIGKILL);
    const std::size_t now = lines(log("killed"));
    EXPECT_LT(now, kPoints);
    EXPECT_GE(now, before);
    before = now;
  }
  const Outcome last = weft_cli({"sweep", kSweep, "--out", path("killed"), "--resume", "--json"});
  EXPECT_EQ(last.code, 0) << last.err;
  EXPECT_EQ(lines(log("killed")), kPoints);  // none ran twice, none is lost
  EXPECT_EQ(csv("killed"), undisturbed());
}

TEST_F(TwoThousand, AreTheSameFromTwoShards) {
  const Child first({"sweep", kSweep, "--out", path("shards"), "--shard", "0/2", "--jobs", "1"});
  const Child second({"sweep", kSweep, "--out", path("shards"), "--shard", "1/2", "--jobs", "1"});
  EXPECT_EQ(first.wait(), 0);
  EXPECT_EQ(second.wait(), 0);
  EXPECT_EQ(lines(log("shards", "shard-0-of-2.ndjson")), kPoints / 2);
  EXPECT_EQ(lines(log("shards", "shard-1-of-2.ndjson")), kPoints / 2);
  EXPECT_EQ(csv("shards"), undisturbed());
}

}  // namespace
}  // namespace weft
