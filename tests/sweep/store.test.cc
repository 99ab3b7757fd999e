// SPDX-License-Identifier: Apache-2.0
// What can happen to a store: cut and damaged logs, full disks, interruptions, two processes at once, a sweep that grows.
#include <fcntl.h>
#include <sys/file.h>
#include <sys/resource.h>

#include "tests/sweep/sweep_test.hpp"

namespace weft {
namespace {

using namespace sweep_test;
using testing::Test;

class StoreTest : public SweepTest {
 protected:
  StoreTest() : sweep_(write("small.json", small_sweep())) {
    EXPECT_EQ(run().code, 0);
    whole_ = csv("store");
  }
  Outcome run(const std::vector<std::string>& more = {}) const {
    std::vector<std::string> args{"sweep", sweep_, "--out", path("store")};
    args.insert(args.end(), more.begin(), more.end());
    return weft_cli(args);
  }
  void cut(std::size_t bytes) const {
    fs::resize_file(log("store"), fs::file_size(log("store")) - bytes);
  }
  void overwrite(std::size_t at, const std::string& text) const {
    std::fstream file(log("store"), std::ios::in | std::ios::out | std::ios::binary);
    file.seekp(static_cast<std::streamoff>(at));
    file << text;
  }

  std::string sweep_, whole_;
};

TEST_F(StoreTest, EveryLineIsJsonWithAChecksum) {
  std::istringstream text(read(log("store")));
  std::size_t count = 0;
  for (std::string line; std::getline(text, line); ++count) {
    Diagnostics out;
    const Json json = parse_json(line, "line", out);
    EXPECT_TRUE(out.ok()) << line;
    EXPECT_NE(json.find("check"), nullptr);
  }
  EXPECT_EQ(count, 24);
}

TEST_F(StoreTest, ATailThatWasCutIsRepairedAtEveryLength) {
  const std::string good = read(log("store"));
  const std::size_t last = good.rfind('\n', good.size() - 2) + 1;
  for (std::size_t keep = last; keep < good.size(); keep += 7) {
    std::ofstream(log("store"), std::ios::binary) << good.substr(0, keep);
    const Outcome status = weft_cli({"sweep", "status", path("store")});
    EXPECT_NE(status.out.find("1 left"), std::string::npos) << status.out;
    const Outcome outcome = run({"--resume"});
    EXPECT_EQ(outcome.code, 0) << outcome.err;
    if (keep > last) {
      EXPECT_NE(outcome.err.find("cut off after"), std::string::npos) << outcome.err;
    }
    EXPECT_NE(outcome.out.find("1 ran now"), std::string::npos) << outcome.out;
    EXPECT_EQ(csv("store"), whole_);
  }
}

TEST_F(StoreTest, AnyByteThatChangesIsFoundAndItsPointRunAgain) {
  const std::string good = read(log("store"));
  for (std::size_t at = 3; at < good.size(); at += 501) {
    std::ofstream(log("store"), std::ios::binary) << good;
    overwrite(at, std::string(1, static_cast<char>(good[at] ^ 1)));
    const Outcome status = weft_cli({"sweep", "status", path("store"), "--json"});
    EXPECT_NE(status.err.find("damaged line"), std::string::npos) << at;
    const Outcome outcome = run({"--resume"});
    EXPECT_EQ(outcome.code, 0) << outcome.err;
    EXPECT_NE(outcome.err.find("repaired"), std::string::npos) << outcome.err;
    EXPECT_EQ(csv("store"), whole_);
  }
  EXPECT_NE(read(log("store") + ".damaged"), "");
}

TEST_F(StoreTest, GarbageOfAnyKindIsNoRecord) {
  const std::string good = read(log("store"));
  for (const std::string& tail :
       {std::string("\0\0\0\0", 4), std::string("{\"check\":\""), std::string("\n\n"),
        std::string(100'000, '{') + "\n", std::string("\xff\xfe\n")}) {
    std::ofstream(log("store"), std::ios::binary) << good << tail;
    EXPECT_EQ(run({"--resume"}).code, 0);
    EXPECT_EQ(read(log("store")), good);
    EXPECT_EQ(csv("store"), whole_);
  }
}

TEST_F(StoreTest, WithoutResumeWhatIsThereIsNotTouched) {
  const Outcome outcome = run();
  EXPECT_EQ(outcome.code, 2);
  EXPECT_NE(outcome.err.find("--resume"), std::string::npos);
  EXPECT_EQ(csv("store"), whole_);
}

TEST_F(StoreTest, AStoreServesASweepThatHasGrown) {
  std::string larger = small_sweep();
  larger.replace(larger.find("[2, 4, 8]"), 9, "[2, 4, 6, 8]");
  write("small.json", larger);
  const Outcome refused = run();
  EXPECT_EQ(refused.code, 2);
  EXPECT_NE(refused.err.find("holds another sweep"), std::string::npos) << refused.err;
  const Outcome outcome = run({"--resume"});
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_NE(outcome.out.find("32 points: 32 ok, 0 failed, 0 left; 8 ran now"), std::string::npos)
      << outcome.out;
}

TEST_F(StoreTest, WordsOfTheScenarioDoNotChangeItsKey) {
  std::string renamed = small_sweep();
  renamed.replace(renamed.find("\"fidelity\""), 10,
                  R"("question": "Why?", "name": "n", "fidelity")");
  write("small.json", renamed);
  EXPECT_NE(run({"--resume"}).out.find("; 0 ran now"), std::string::npos);
}

TEST_F(StoreTest, OtherShardsDoNotRunWhatIsFinished) {
  const Outcome outcome = run({"--shard", "1/3"});
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_NE(outcome.out.find("; 0 ran now"), std::string::npos) << outcome.out;
}

TEST_F(StoreTest, TwoProcessesDoNotShareALog) {
  const int file = open(log("store").c_str(), O_RDWR);
  ASSERT_EQ(flock(file, LOCK_EX), 0);
  const Outcome outcome = run({"--resume"});
  close(file);
  EXPECT_EQ(outcome.code, 2);
  EXPECT_NE(outcome.err.find("another process works on this shard"), std::string::npos);
}

TEST_F(StoreTest, AFullDiskStopsCleanlyAndLosesNothing) {
  for (const std::size_t room : {1'000U, 1'001U, 2'345U, 3'456U}) {
    fs::remove(log("store"));
    const Child child({"sweep", sweep_, "--out", path("store"), "--resume", "--jobs", "1"}, [&] {
      signal(SIGXFSZ, SIG_IGN);
      const rlimit limit{room, room};
      setrlimit(RLIMIT_FSIZE, &limit);
    });
    EXPECT_EQ(child.wait(), 4);
    const std::string left = read(log("store"));
    EXPECT_TRUE(left.ends_with('\n'));
    EXPECT_LE(left.size(), room);
    EXPECT_GT(left.size() + 400, room);  // no more than the record that did not fit is missing
    const Outcome outcome = run({"--resume"});
    EXPECT_EQ(outcome.code, 0);
    EXPECT_EQ(outcome.err, "");  // nothing to repair
    EXPECT_EQ(csv("store"), whole_);
  }
}

TEST_F(StoreTest, AnInterruptKeepsWhatIsFinished) {
  const std::string sweep = WEFT_SOURCE_DIR "/tests/sweep/two-thousand.sweep.json";
  for (const int signal : {SIGINT, SIGTERM}) {
    const std::string store = "stopped" + std::to_string(signal);
    const Child child({"sweep", sweep, "--out", path(store), "--jobs", "1"});
    ASSERT_TRUE(reaches(log(store), 20));
    child.send(signal);
    EXPECT_EQ(child.wait(), 130);
    const Outcome status = weft_cli({"sweep", "status", path(store)});
    EXPECT_EQ(status.err, "");
    EXPECT_EQ(status.out.find(" 0 left"), std::string::npos) << status.out;
  }
}

TEST_F(StoreTest, NoStoreIsSaid) {
  for (const char* what : {"status", "csv", "merge"}) {
    const Outcome outcome = weft_cli({"sweep", what, path("nowhere")});
    EXPECT_EQ(outcome.code, 2);
    EXPECT_NE(outcome.err.find("no sweep.json"), std::string::npos) << outcome.err;
  }
  write("store/sweep.json", "{\"kind\": \"sweep-store\"");
  EXPECT_EQ(weft_cli({"sweep", "csv", path("store")}).code, 2);
  write("store/sweep.json", R"({"kind": "sweep-store", "axes": ["a"], "points": [["k"]]})");
  EXPECT_EQ(weft_cli({"sweep", "csv", path("store")}).code, 2);
}

}  // namespace
}  // namespace weft
