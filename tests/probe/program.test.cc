// SPDX-License-Identifier: Apache-2.0
// What weft-probe promises whoever runs it: whatever ends it leaves a file that can be read and resumed, and nothing that was
// measured is lost.
#include <algorithm>
#include <array>
#include <csignal>
#include <map>
#include <random>

#include <fmt/format.h>

#include "calibrate/measurement_inspect.hpp"
#include "calibrate/measurement_merge.hpp"
#include "tests/probe/probe_program.hpp"

namespace weft {
namespace {

std::vector<std::string> synthetic(const std::string& path, std::vector<std::string> more = {}) {
  std::vector<std::string> args{"--backend", "synthetic", "--fabric", "h100-1gpu", "--quick",
                                "--seed",    "7",         "-o",       path};
  args.insert(args.end(), more.begin(), more.end());
  return args;
}

// All numbers of a measurement, whatever their order and the numbers of groups.
std::multiset<std::string> numbers(Measurement m) {
  std::multiset<std::string> out;
  for (CopySample& copy : m.copies) {
    copy.together = 0;
    out.insert(to_text(write_config(copy)));
  }
  for (const auto& sample : m.latencies) out.insert(to_text(write_config(sample)));
  for (const auto& sample : m.kernels) out.insert(to_text(write_config(sample)));
  for (const auto& sample : m.overlaps) out.insert(to_text(write_config(sample)));
  for (const auto& run : m.runs) {
    for (const auto& sample : run.samples)
      out.insert(run.collective + to_text(write_config(sample)));
  }
  return out;
}

TEST_F(ProbeProgram, KilledAtAnyMomentItIsResumedToTheSameNumbers) {
  ASSERT_EQ(run(synthetic(path("whole.json"))).code, 0);
  const auto wanted = numbers(read(path("whole.json")));
  ASSERT_GT(wanted.size(), 20U);
  std::mt19937 luck(std::random_device{}());
  int killed = 0;
  for (int attempt = 0; attempt < 200; ++attempt) {
    const int after = static_cast<int>(luck() % 150);
    const bool begun = std::filesystem::exists(path("cut.json")) ||
                       std::filesystem::exists(path("cut.json.journal"));
    const auto result = run(
        synthetic(path("cut.json"), begun ? std::vector<std::string>{"--pace", "0.01", "--resume"}
                                          : std::vector<std::string>{"--pace", "0.01"}),
        {.kill_after_ms = after, .signal = SIGKILL});
    if (std::filesystem::exists(path("cut.json"))) read(path("cut.json"));
    if (result.code == 0) break;
    ASSERT_EQ(result.code, -1) << result.err;
    ++killed;
  }
  EXPECT_GT(killed, 1);
  ASSERT_EQ(run(synthetic(path("cut.json"), {"--resume"})).code, 0);
  EXPECT_EQ(numbers(read(path("cut.json"))), wanted);
  for (const auto& entry : std::filesystem::directory_iterator(folder_))
    EXPECT_EQ(entry.path().string().find("cut.json."), std::string::npos) << entry.path();
}

TEST_F(ProbeProgram, InterruptKeepsWhatWasMeasuredAndListsTheRest) {
  const auto result = run(synthetic(path("box.json"), {"--pace", "0.02"}),
                          {.kill_after_ms = 200, .signal = SIGINT, .once_there = path("box.json")});
  EXPECT_EQ(result.code, 4) << result.err;
  EXPECT_NE(result.out.find("--resume goes on"), std::string::npos) << result.out;
  const Measurement m = read(path("box.json"));
  EXPECT_GT(numbers(m).size(), 0U);
  std::map<TestState, int> states;
  for (const ProbeTest& test : m.tests) ++states[test.state];
  EXPECT_GT(states[TestState::not_run], 0);
  EXPECT_GT(states[TestState::done], 0);
  bool told = false;
  for (const auto& line : inspect_measurement(m).missing) told = told || line.what == "plan";
  EXPECT_TRUE(told);
  const auto again = run(synthetic(path("box.json"), {"--resume"}));
  EXPECT_EQ(again.code, 0) << again.err;
  EXPECT_NE(again.out.find("were there already"), std::string::npos);
}

TEST_F(ProbeProgram, TwoRunsMergedAreTheUnion) {
  ASSERT_EQ(run(synthetic(path("all.json"))).code, 0);
  ASSERT_EQ(run(synthetic(path("a.json"), {"--only", "copy *"})).code, 0);
  ASSERT_EQ(run(synthetic(path("b.json"), {"--only", "*gpu0 *"})).code, 0);
  const Measurement a = read(path("a.json")), b = read(path("b.json"));
  Diagnostics out;
  const Measurement both = merge_measurements(std::vector{a, b}, "both", out);
  ASSERT_TRUE(out.ok()) << out.text();
  const auto of_a = numbers(a), of_b = numbers(b), of_both = numbers(both);
  std::set<std::string> either(of_a.begin(), of_a.end());
  either.insert(of_b.begin(), of_b.end());
  EXPECT_LT(of_both.size(), of_a.size() + of_b.size());
  EXPECT_EQ(of_both.size(), either.size());
}

TEST_F(ProbeProgram, FullDiskIsReportedAndNothingIsLost) {
  ASSERT_EQ(run(synthetic(path("whole.json"))).code, 0);
  const auto result = run(synthetic(path("box.json")), {.file_limit = 3000});
  EXPECT_EQ(result.code, 4);
  EXPECT_NE(result.err.find("cannot write"), std::string::npos) << result.err;
  EXPECT_NE(result.err.find("results are kept in memory"), std::string::npos) << result.err;
  EXPECT_LE(std::count(result.err.begin(), result.err.end(), '\n'), 4) << result.err;
  read(path("box.json"));  // what was there before is still whole
  EXPECT_EQ(numbers(parse(result.out)), numbers(read(path("whole.json"))));
}

TEST_F(ProbeProgram, PathThatCannotBeUsedIsSaidAtOnce) {
  const auto missing = run(synthetic(path("none/box.json")));
  EXPECT_EQ(missing.code, 2);
  EXPECT_NE(missing.err.find("No such file"), std::string::npos) << missing.err;
  ASSERT_EQ(run(synthetic(path("box.json"))).code, 0);
  const std::string before = text(path("box.json"));
  const auto again = run(synthetic(path("box.json")));
  EXPECT_EQ(again.code, 2);
  EXPECT_NE(again.err.find("--overwrite"), std::string::npos);
  EXPECT_EQ(text(path("box.json")), before);
  auto other = synthetic(path("box.json"), {"--resume"});
  other[3] = "hgx-h100";
  const auto mixed = run(other);
  EXPECT_EQ(mixed.code, 2);
  EXPECT_NE(mixed.err.find("another machine"), std::string::npos) << mixed.err;
}

TEST_F(ProbeProgram, DryRunPrintsThePlanAndWritesNothing) {
  const auto result = run(synthetic(path("box.json"), {"--dry-run"}));
  EXPECT_EQ(result.code, 0) << result.err;
  EXPECT_NE(result.out.find("matmul gpu0 bf16"), std::string::npos);
  EXPECT_NE(result.out.find("tests, about"), std::string::npos);
  EXPECT_FALSE(std::filesystem::exists(path("box.json")));
}

TEST_F(ProbeProgram, AnonymousFileDoesNotNameTheHost) {
  ASSERT_EQ(run(synthetic(path("box.json"), {"--anonymous"})).code, 0);
  EXPECT_EQ(read(path("box.json")).hosts.at(0).host, "host0");
  EXPECT_EQ(read(path("box.json")).anonymised, true);
}

TEST_F(ProbeProgram, WrongArgumentsAreRefusedTogether) {
  const auto result = run({"--backend", "synthetic", "--resume", "--overwrite"});
  EXPECT_EQ(result.code, 2);
  for (const char* word : {"-o", "--fabric", "--resume"})
    EXPECT_NE(result.err.find(word), std::string::npos) << word << "\n" << result.err;
  EXPECT_EQ(run({"--backend", "rocm", "-o", path("x.json")}).code, 2);
  EXPECT_EQ(run({"--fabric", "no-such-box", "-o", path("x.json")}).code, 2);
  EXPECT_EQ(run({"--fabric", "h100-1gpu", "--fault", "wrong-affinity", "-o", path("x.json")}).code,
            2);
  EXPECT_EQ(run({"--help"}).code, 0);
}

TEST_F(ProbeProgram, NumbersThatAreNoneAreRefused) {
  for (const auto& wrong : std::vector<std::vector<std::string>>{{"--noise", "nan"},
                                                                 {"--noise", "inf"},
                                                                 {"--noise", "-0.1"},
                                                                 {"--pace", "nan"},
                                                                 {"--seed", "-1"},
                                                                 {"--seed", "1.5"}}) {
    std::vector<std::string> args{"--backend", "synthetic",      "--fabric", "h100-1gpu",
                                  "-o",        path("box.json"), wrong[0],   wrong[1]};
    const auto result = run(args);
    EXPECT_EQ(result.code, 2) << wrong[0] << " " << wrong[1];
    EXPECT_NE(result.err.find(wrong[0]), std::string::npos) << result.err;
    EXPECT_FALSE(std::filesystem::exists(path("box.json")));
  }
}

TEST_F(ProbeProgram, AnotherHiddenMachineIsNotResumed) {
  ASSERT_EQ(run(synthetic(path("box.json"), {"--only", "launch*"})).code, 0);
  const std::string before = text(path("box.json"));
  const auto resume = [&](const std::string& option, const std::string& value) {
    std::vector<std::string> args = synthetic(path("box.json"), {"--resume"});
    const auto at = std::ranges::find(args, option);
    if (at == args.end()) {
      args.push_back(option);
      args.push_back(value);
    } else {
      *(at + 1) = value;
    }
    return run(args);
  };
  for (const auto& [option, value, said] : std::vector<std::array<std::string, 3>>{
           {"--seed", "8", "seed was 7 and is 8"},
           {"--noise", "0.1", "noise was 0.02 and is 0.1"},
           {"--set", "/nodes/0/model/clock=\"1 GHz\"", "set was none"}}) {
    const auto result = resume(option, value);
    EXPECT_EQ(result.code, 2) << option;
    EXPECT_NE(result.err.find(said), std::string::npos) << result.err;
    EXPECT_EQ(text(path("box.json")), before);
  }
  EXPECT_EQ(resume("--seed", "7").code, 0);
}

TEST_F(ProbeProgram, TestsThatAreNotThereAndFilesThatWouldBeOneAreRefused) {
  const auto none = run(synthetic(path("box.json"), {"--dry-run", "--only", "no such test"}));
  EXPECT_EQ(none.code, 2);
  EXPECT_NE(none.err.find("--only"), std::string::npos) << none.err;
  EXPECT_EQ(none.out, "");
  for (const std::string& truth :
       {path("box.json"), path("./box.json"), path("box.json.journal")}) {
    const auto same = run(synthetic(path("box.json"), {"--truth", truth}));
    EXPECT_EQ(same.code, 2) << truth;
    EXPECT_NE(same.err.find("--truth"), std::string::npos) << same.err;
    EXPECT_FALSE(std::filesystem::exists(path("box.json")));
  }
  // The machine that it is like is read, not written.
  const std::string fabric = path("like.json");
  std::filesystem::copy_file(std::string(WEFT_SOURCE_DIR) + "/configs/servers/h100-1gpu.json",
                             fabric);
  const std::string before = text(fabric);
  const auto over =
      run({"--backend", "synthetic", "--fabric", fabric, "-o", fabric, "--overwrite"});
  EXPECT_EQ(over.code, 2);
  EXPECT_EQ(text(fabric), before);
}

TEST_F(ProbeProgram, WithoutAGpuTheCudaBackendSaysSoInOneLine) {
  if (std::filesystem::exists("/dev/nvidiactl")) GTEST_SKIP() << "there is a GPU here";
  const auto result = run({"--backend", "cuda", "-o", path("box.json")});
  EXPECT_EQ(result.code, 3);
  EXPECT_EQ(std::count(result.err.begin(), result.err.end(), '\n'), 1) << result.err;
  EXPECT_FALSE(std::filesystem::exists(path("box.json")));
}

}  // namespace
}  // namespace weft
