// SPDX-License-Identifier: Apache-2.0
// From a sweep file to its table.
#include "tests/sweep/sweep_test.hpp"

namespace weft {
namespace {

using namespace sweep_test;

class SweepFiles : public SweepTest {
 protected:
  Outcome run(const std::string& text, const std::vector<std::string>& more = {}) {
    fs::remove_all(path("store"));
    std::vector<std::string> args{"sweep", write("sweep.json", text), "--out", path("store")};
    args.insert(args.end(), more.begin(), more.end());
    return weft_cli(args);
  }
  static std::string with(std::string text, const std::string& old, const std::string& now) {
    const std::size_t at = text.find(old);
    EXPECT_NE(at, std::string::npos) << old;
    return text.replace(at, old.size(), now);
  }
};

TEST_F(SweepFiles, ThePointEqualsTheRun) {
  ASSERT_EQ(run(small_sweep()).code, 0);
  const std::string scenario = write("one.json",
                                     R"({"fabric": {"use": "dgx1-v100"}, "fidelity": "analytic",
          "workload": {"collective": "all_reduce", "size": "10 KiB", "algorithm": "ring", "gpus": 4}})");
  Diagnostics out;
  const Json report = parse_json(weft_cli({"run", scenario, "--json", "--quick"}).out, "", out);
  const std::string fingerprint = report.find("fingerprint")->text;
  const std::string table = csv("store");
  const std::size_t at = table.find("\n9,4,10 KiB,ok,");
  ASSERT_NE(at, std::string::npos) << table;
  EXPECT_NE(table.substr(at + 1, table.find('\n', at + 1) - at).find(fingerprint),
            std::string::npos);
}

TEST_F(SweepFiles, FailedPointsAreRecordedAndTheRestRuns) {
  const Outcome outcome = run(with(small_sweep(), "[2, 4, 8]", "[2, 9, \"x\"]"));
  EXPECT_EQ(outcome.code, 0);
  EXPECT_NE(outcome.out.find("24 points: 8 ok, 16 failed, 0 left"), std::string::npos)
      << outcome.out;
  EXPECT_NE(outcome.err.find("16 of 24 points failed"), std::string::npos);
  const std::string table = csv("store");
  EXPECT_NE(table.find("sweep.json:4:"), std::string::npos) << table;  // where the bad value stands
  const Outcome again = weft_cli({"sweep", path("sweep.json"), "--out", path("store"), "--resume"});
  EXPECT_NE(again.out.find("; 0 ran now"), std::string::npos);
  const Outcome retry =
      weft_cli({"sweep", path("sweep.json"), "--out", path("store"), "--resume", "--retry-failed"});
  EXPECT_NE(retry.out.find("; 16 ran now"), std::string::npos) << retry.out;
  EXPECT_EQ(csv("store"), table);
}

TEST_F(SweepFiles, WhenAllFailTheExitCodeSaysSo) {
  const Outcome outcome = run(with(small_sweep(), "/workload/gpus", "/workload/gpu/s"));
  EXPECT_EQ(outcome.code, 2);
  EXPECT_NE(outcome.err.find("/workload has no \"gpu\""), std::string::npos) << outcome.err;
}

TEST_F(SweepFiles, ConditionsLeavePointsOut) {
  const Outcome outcome = run(small_sweep(
      R"(, "when": ["gpus >= 4"], "skip": ["gpus == 8 and size > 1 MiB", "size < 2 KiB"])"));
  // gpus 4: 7 sizes; gpus 8: 10 KiB, 100 KiB, 1000 KiB.
  EXPECT_NE(outcome.out.find("10 points: 10 ok"), std::string::npos) << outcome.out << outcome.err;
}

TEST_F(SweepFiles, FabricsPlansAndFilesAreValues) {
  write("other.json", R"({"fabric": "dgx2", "fidelity": "analytic",
                          "workload": {"collective": "all_reduce", "size": "1 MiB"}})");
  write("box.json", R"({"use": "dgx2", "set": {}})");
  const Outcome outcome =
      run(R"({"kind": "sweep", "scenario": {"use": "other.json", "set": {"/seed": 3}},
    "axes": [{"together": [{"name": "machine", "values": ["small", "large", "file"]},
                           {"pointer": "/fabric", "values": ["dgx1-v100", {"use": "dgx2"}, {"use": "box.json"}]}]},
             {"pointer": "/workload", "values": [{"collective": "all_reduce", "size": "1 MiB"},
                                                 {"collective": "broadcast", "size": "1 MiB"}]}],
    "outputs": {"ranks": "/jobs/0/ranks", "what": "/jobs/0/collective", "seed": "/seed", "none": "/nothing"}})");
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  const std::string table = csv("store");
  EXPECT_NE(table.find("point,machine,fabric,workload,status,ranks,what,seed,none,error\r\n"),
            std::string::npos)
      << table;
  EXPECT_NE(table.find("0,small,dgx1-v100,"), std::string::npos) << table;
  EXPECT_NE(table.find(",ok,8,all_reduce,3,,\r\n"), std::string::npos) << table;
  EXPECT_NE(table.find(",ok,16,broadcast,3,,\r\n"), std::string::npos) << table;
  // Two ways to say dgx2 are one question.
  EXPECT_NE(outcome.out.find("6 points: 6 ok, 0 failed, 0 left; 4 ran now"), std::string::npos)
      << outcome.out;
}

TEST_F(SweepFiles, ProblemsStandWhereTheyAreWritten) {
  const struct {
    std::string text, problem;
  } cases[] = {
      {"{", "sweep.json:1:1: error: not JSON"},
      {R"({"kind": "swep", "scenario": {}, "axes": []})", "is not a sweep"},
      {R"({"kind": "sweep", "axes": [{"pointer": "/a", "values": [1]}]})",
       "\"scenario\" is missing"},
      {with(small_sweep(), "dgx1-v100", "dgx1-v1oo"), "sweep.json:2:34: error: /fabric/use"},
      {small_sweep(R"(, "skip": ["gpu == 1"])"), "did you mean \"gpus\""},
      {small_sweep(R"(, "skip": ["gpu == 1"])"), "the axes are "},
      {small_sweep(R"(, "skip": ["gpus == 1", "gpus == 1 us"])"), "error: /skip/1: "},
      {small_sweep(R"(, "skip": ["gpus == 1 us"])"), "is compared with"},
      {small_sweep(R"(, "when": ["gpus > 100"])"), "error: /when: the conditions leave no point"},
      {small_sweep(R"(, "skip": ["gpus > 0"])"), "error: /skip: the conditions leave no point"},
      {small_sweep(R"(, "outputs": {"gpus": "/time_s"})"), "name of another column"},
      {small_sweep(R"(, "outputs": {"Size": "/time_s"})"), "name of another column"},
      {small_sweep(R"(, "outputs": {"t": "/time_s", "T": "/bound_s"})"), "name of another column"},
      {small_sweep(R"(, "outputs": {"STATUS": "/time_s"})"), "name of another column"},
      {small_sweep(R"(, "outputs": {"": "/time_s"})"), "without a name"},
      {with(small_sweep(), "{\"pointer\": \"/workload/gpus\"",
            "{\"name\": \"SIZE\", \"pointer\": \"/workload/gpus\""),
       "two axes named"},
      {with(small_sweep(), "{\"pointer\": \"/workload/gpus\"",
            "{\"name\": \"Time_s\", \"pointer\": \"/workload/gpus\""),
       "sweep.json:4:"},
      {with(small_sweep(), "{\"pointer\": \"/workload/gpus\"",
            "{\"name\": \"Time_s\", \"pointer\": \"/workload/gpus\""),
       "also the name of an output"},
      {small_sweep(R"(, "outputs": {"t": "time_s"})"), "not a JSON pointer"},
      {small_sweep(R"(, "pareto": {"minimise": ["time"]})"), "a front needs two names"},
      {small_sweep(R"(, "axis": 1)"), "did you mean \"axes\""},
      {with(small_sweep(), "\"factor\": 10", "\"factor\": 1.0000011"), "values"},
  };
  for (const auto& c : cases) {
    const Outcome outcome = run(c.text);
    EXPECT_EQ(outcome.code, 2) << c.text;
    EXPECT_NE(outcome.err.find(c.problem), std::string::npos) << c.problem << "\n" << outcome.err;
    EXPECT_FALSE(fs::exists(path("store"))) << c.problem;
  }
}

TEST_F(SweepFiles, AShardBeyondTheLastIsToldWhichThereAre) {
  const Outcome outcome = run(small_sweep(), {"--shard", "4/4"});
  EXPECT_EQ(outcome.code, 2);
  EXPECT_NE(outcome.err.find("there is no shard 4 of 4"), std::string::npos) << outcome.err;
  EXPECT_NE(outcome.err.find("--shard 0/4 to --shard 3/4"), std::string::npos) << outcome.err;
}

TEST_F(SweepFiles, FlagsThatMakeNoSenseAreRefused) {
  const std::string sweep = write("s.json", small_sweep());
  for (const std::vector<std::string>& more :
       std::vector<std::vector<std::string>>{{"--shard", "2/2"},
                                             {"--shard", "0/0"},
                                             {"--shard", "1"},
                                             {"--shard", "a/b"},
                                             {"--shard", "-1/2"},
                                             {"--jobs", "0"},
                                             {"--retry-failed"}}) {
    std::vector<std::string> args{"sweep", sweep, "--out", path("store")};
    args.insert(args.end(), more.begin(), more.end());
    EXPECT_EQ(weft_cli(args).code, 2) << more.front();
  }
  EXPECT_EQ(weft_cli({"sweep"}).code, 2);
  EXPECT_EQ(weft_cli({"sweep", sweep}).code, 2);
  EXPECT_FALSE(fs::exists(path("store")));
}

// Seven axes of ten values: ten million points.
TEST_F(SweepFiles, TooManyPointsAreRefusedNotCutOff) {
  std::string axes;
  for (const char name : std::string("abcdefg"))
    axes += std::string(axes.empty() ? "" : ", ") + R"({"name": ")" + name +
            R"(", "values": [0, 1, 2, 3, 4, 5, 6, 7, 8, 9]})";
  const Outcome outcome = run(
      R"({"kind": "sweep", "scenario": {"fabric": "dgx1-v100", "workload": {"collective": "all_reduce", "size": "1 MiB"}},
          "axes": [)" +
      axes + "]}");
  EXPECT_EQ(outcome.code, 2);
  EXPECT_NE(outcome.err.find("more than 1000000 points"), std::string::npos) << outcome.err;
}

TEST_F(SweepFiles, CheckReadsASweep) {
  const std::string good = write("s.json", small_sweep());
  EXPECT_NE(weft_cli({"check", good}).out.find("s.json: ok, sweep"), std::string::npos);
  const std::string bad = write("t.json", small_sweep(R"(, "skip": ["gpu == 1"])"));
  const Outcome outcome = weft_cli({"check", bad});
  EXPECT_EQ(outcome.code, 2);
  EXPECT_NE(outcome.err.find("t.json:5:"), std::string::npos) << outcome.err;
}

TEST_F(SweepFiles, CheckFollowsPointersAndOutputs) {
  const auto check = [&](const std::string& text) {
    return weft_cli({"check", write("s.json", text)});
  };
  EXPECT_EQ(check(small_sweep()).err, "");
  // A key that scenarios do not have, one below what is no object, a value that never fits.
  for (const std::string pointer : {"/workload/gpuz", "/workload/gpus/x", "/jobs/0/gpus"}) {
    const Outcome wrong = check(with(small_sweep(), "/workload/gpus", pointer));
    EXPECT_EQ(wrong.code, 2) << pointer << wrong.err;
    EXPECT_NE(wrong.err.find("s.json:4:"), std::string::npos) << pointer << wrong.err;
  }
  const Outcome never = check(with(small_sweep(), "[2, 4, 8]", "[\"x\", \"y\"]"));
  EXPECT_EQ(never.code, 2) << never.err;
  EXPECT_NE(never.err.find("/axes/0/pointer"), std::string::npos) << never.err;
  // One point that fails does not make the sweep wrong.
  for (const std::string values : {"[\"x\", 2]", "[9, 2]"}) {
    const Outcome first = check(with(small_sweep(), "[2, 4, 8]", values));
    EXPECT_EQ(first.code, 0) << first.err;
    EXPECT_NE(first.err.find("warning"), std::string::npos) << first.err;
    EXPECT_NE(first.err.find("the first point fails"), std::string::npos) << first.err;
  }
  const Outcome output = check(small_sweep(
      R"(, "outputs": {"t": "/time_s", "a": "/tim_s", "b": "/jobs/1/time_s", "c": "/jobs/0/mfu/x"})"));
  EXPECT_EQ(output.code, 0) << output.err;
  for (const char* told : {"s.json:5:", "did you mean \"time_s\"", "it has 1 items, counted from 0",
                           "/jobs/0 has no \"mfu\""})
    EXPECT_NE(output.err.find(told), std::string::npos) << told << "\n" << output.err;
  EXPECT_EQ(output.err.find("/outputs/t"), std::string::npos) << output.err;
}

TEST_F(SweepFiles, AStoreIsNotWrittenOver) {
  ASSERT_EQ(run(small_sweep()).code, 0);
  const std::string store = path("store"), manifest = read(store + "/sweep.json"),
                    records = read(log("store"));
  for (const std::string name :
       {"sweep.json", "shard-0-of-1.ndjson", "shard-1-of-2.ndjson", "x.ndjson.damaged"}) {
    for (const std::string verb : {"merge", "csv", "page"}) {
      const Outcome outcome = weft_cli({"sweep", verb, store, "-o", store + "/" + name});
      EXPECT_EQ(outcome.code, 2) << verb << " " << name;
      EXPECT_NE(outcome.err.find("give another name"), std::string::npos) << outcome.err;
    }
  }
  fs::create_symlink(store + "/sweep.json", path("link"));
  EXPECT_EQ(weft_cli({"sweep", "csv", store, "-o", path("link")}).code, 2);
  EXPECT_EQ(read(store + "/sweep.json"), manifest);
  EXPECT_EQ(read(log("store")), records);
  EXPECT_FALSE(fs::exists(store + "/shard-1-of-2.ndjson"));
  EXPECT_EQ(weft_cli({"sweep", "csv", store, "-o", store + "/table.csv"}).code, 0);
}

TEST_F(SweepFiles, AFolderWithASweepIsNoStore) {
  fs::create_directories(path("mine"));
  const std::string sweep = write("mine/sweep.json", small_sweep());
  for (const std::vector<std::string>& more : {std::vector<std::string>{}, {"--resume"}}) {
    std::vector<std::string> args{"sweep", sweep, "--out", path("mine")};
    args.insert(args.end(), more.begin(), more.end());
    EXPECT_EQ(weft_cli(args).code, 2);
    EXPECT_EQ(read(sweep), small_sweep());
  }
}

}  // namespace
}  // namespace weft
