// SPDX-License-Identifier: Apache-2.0
#include "calibrate/probe/session.hpp"

#include <filesystem>
#include <fstream>
#include <sstream>

#include <fmt/format.h>
#include <gtest/gtest.h>

namespace weft {
namespace {

// Takes 1 ms for everything; fails at, hangs at and breaks at tests of given names.
class FakeBackend final : public ProbeBackend {
 public:
  std::string fails, zero, breaks;
  int prepared = 0;

  ProbeMachine machine() override { return {}; }
  std::unique_ptr<PreparedTest> prepare(const PlannedTest& test) override {
    ++prepared;
    if (test.name == fails) throw TestFailed("out of memory");
    if (test.name == breaks) {
      broken_ = true;
      throw TestFailed("timed out");
    }
    struct Fake final : PreparedTest {
      FakeBackend& backend;
      Time time;
      Fake(FakeBackend& b, Time t) : backend(b), time(t) {}
      std::vector<Time> once() override {
        backend.now_ += 0.001;
        return {time};
      }
      std::optional<Frequency> clock() override { return Frequency{1.5e9}; }
    };
    return std::make_unique<Fake>(*this, test.name == zero ? Time{0} : 1_ms);
  }
  bool broken() const override { return broken_; }
  double now() override { return now_; }

 private:
  bool broken_ = false;
  double now_ = 0;
};

PlannedTest copy_test(int i) {
  CopyTest copy;
  copy.transfers = {{"cpu0", "gpu0", Bytes{1024 * (i + 1)}}};
  return {fmt::format("copy {}", i), copy, 0.1};
}

class ProbeSession : public ::testing::Test {
 protected:
  void SetUp() override {
    folder_ = std::filesystem::temp_directory_path() /
              fmt::format("weft-session-{}",
                          ::testing::UnitTest::GetInstance()->current_test_info()->name());
    std::filesystem::remove_all(folder_);
    std::filesystem::create_directory(folder_);
    for (int i = 0; i < 5; ++i) plan_.tests.push_back(copy_test(i));
    plan_.impossible.push_back({"collectives", "one GPU", TestState::impossible});
    head_ = new_measurement("box", "weft-probe", "a machine");
    head_.hosts.emplace_back().gpus.push_back({.device = 0, .product = "H100"});
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  std::string path() const { return (folder_ / "box.json").string(); }
  static std::string text(const std::string& path) {
    std::ostringstream out;
    out << std::ifstream(path).rdbuf();
    return out.str();
  }
  static Measurement read(const std::string& path) {
    Diagnostics out;
    Measurement m = read_measurement(parse_json(text(path), path, out), out);
    EXPECT_TRUE(out.ok()) << out.text();
    return m;
  }
  static TestState state_of(const Measurement& m, const std::string& name) {
    for (const ProbeTest& test : m.tests) {
      if (test.test == name) return test.state;
    }
    ADD_FAILURE() << name << " is not in the file";
    return TestState::not_run;
  }

  std::filesystem::path folder_;
  ProbePlan plan_;
  Measurement head_;
  FakeBackend backend_;
};

TEST_F(ProbeSession, WritesEveryTestAndWhatCannotBeDone) {
  ResultFile file(path(), head_, ResultFile::Open::fresh);
  const SessionResult result = run_session(plan_, backend_, file, {});
  EXPECT_EQ(result.done, 5U);
  EXPECT_TRUE(file.finish().whole);
  const Measurement m = read(path());
  ASSERT_EQ(m.copies.size(), 5U);
  EXPECT_EQ(m.copies[2].time, 1_ms);
  EXPECT_EQ(m.copies[2].repeated.clock, Frequency{1.5e9});
  EXPECT_GE(m.copies[2].repeated.repeats, plan_.rules.least);
  EXPECT_EQ(state_of(m, "collectives"), TestState::impossible);
  EXPECT_FALSE(std::filesystem::exists(path() + ".journal"));
}

TEST_F(ProbeSession, GoesOnAfterATestThatFailed) {
  backend_.fails = "copy 1";
  backend_.zero = "copy 3";
  std::vector<std::string> told;
  ResultFile file(path(), head_, ResultFile::Open::fresh);
  const SessionResult result = run_session(
      plan_, backend_, file, {.tell = [&](const std::string& line) { told.push_back(line); }});
  file.finish();
  EXPECT_EQ(result.done, 3U);
  EXPECT_EQ(result.failed, 2U);
  EXPECT_EQ(told.front(), "copy 1: out of memory");
  EXPECT_EQ(state_of(read(path()), "copy 1"), TestState::failed);
  EXPECT_EQ(state_of(read(path()), "copy 3"), TestState::failed);
}

TEST_F(ProbeSession, StoppedRunListsTheRestAndIsResumed) {
  {
    int asked = 0;
    ResultFile file(path(), head_, ResultFile::Open::fresh);
    const SessionResult result =
        run_session(plan_, backend_, file, {.stop = [&] { return ++asked > 250; }});
    EXPECT_EQ(result.end, SessionEnd::stopped);
    EXPECT_GT(result.done, 0U);
    EXPECT_LT(result.done, 5U);
    file.finish();
    EXPECT_EQ(state_of(read(path()), "copy 4"), TestState::not_run);
  }
  const std::size_t before = read(path()).copies.size();
  FakeBackend again;
  ResultFile file(path(), head_, ResultFile::Open::resume);
  const SessionResult result = run_session(plan_, again, file, {});
  file.finish();
  EXPECT_EQ(result.skipped, before);
  EXPECT_EQ(static_cast<std::size_t>(again.prepared), 5 - before);
  const Measurement m = read(path());
  EXPECT_EQ(m.copies.size(), 5U);
  EXPECT_EQ(state_of(m, "copy 4"), TestState::done);
}

TEST_F(ProbeSession, BrokenDeviceEndsTheProcessAndItsTestDoesNotComeAgain) {
  backend_.breaks = "copy 2";
  {
    ResultFile file(path(), head_, ResultFile::Open::fresh);
    EXPECT_EQ(run_session(plan_, backend_, file, {}).end, SessionEnd::broken);
    file.finish();
  }
  FakeBackend again;
  again.breaks = "copy 2";
  ResultFile file(path(), head_, ResultFile::Open::resume);
  EXPECT_EQ(run_session(plan_, again, file, {}).end, SessionEnd::complete);
  EXPECT_EQ(again.prepared, 2);
}

TEST_F(ProbeSession, JournalWithoutItsLastLineIsResumed) {
  {
    ResultFile file(path(), head_, ResultFile::Open::fresh);
    run_session(plan_, backend_, file, {});
    // No finish(): the program was killed. The file itself may lag behind; it can be read.
    read(path());
  }
  std::filesystem::remove(path());
  std::string journal = text(path() + ".journal");
  std::ofstream(path() + ".journal", std::ios::trunc) << journal.substr(0, journal.size() - 40);
  ResultFile file(path(), head_, ResultFile::Open::resume);
  EXPECT_EQ(file.resumed(), 5U);  // four copies and what cannot be done
  FakeBackend again;
  EXPECT_EQ(run_session(plan_, again, file, {}).done, 1U);
  file.finish();
  EXPECT_EQ(read(path()).copies.size(), 5U);
}

TEST_F(ProbeSession, FilesAreNotOverwrittenOrMixedUp) {
  ResultFile(path(), head_, ResultFile::Open::fresh).finish();
  EXPECT_THROW(ResultFile(path(), head_, ResultFile::Open::fresh), UnusablePath);
  Measurement other = head_;
  other.hosts[0].gpus[0].product = "A100";
  EXPECT_THROW(ResultFile(path(), other, ResultFile::Open::resume), UnusablePath);
  EXPECT_NO_THROW(ResultFile(path(), other, ResultFile::Open::replace));
  std::ofstream(path()) << "not a measurement";
  EXPECT_THROW(ResultFile(path(), head_, ResultFile::Open::resume), UnusablePath);
}

TEST_F(ProbeSession, PathThatCannotBeWrittenIsSaidBeforeAnythingIsMeasured) {
  EXPECT_THROW(ResultFile((folder_ / "none" / "box.json").string(), head_, ResultFile::Open::fresh),
               UnusablePath);
  EXPECT_THROW(ResultFile(folder_.string(), head_, ResultFile::Open::replace), UnusablePath);
  EXPECT_THROW(ResultFile("/dev/full", head_, ResultFile::Open::replace), UnusablePath);
}

TEST_F(ProbeSession, OneProcessAtATimeWritesAFile) {
  {
    ResultFile first(path(), head_, ResultFile::Open::fresh);
    for (const auto how : {ResultFile::Open::resume, ResultFile::Open::replace})
      EXPECT_THROW(ResultFile(path(), head_, how), UnusablePath);
    run_session(plan_, backend_, first, {});
    first.finish();
  }
  EXPECT_EQ(read(path()).copies.size(), 5U);
  EXPECT_NO_THROW(ResultFile(path(), head_, ResultFile::Open::resume).finish());
}

// What a kill in the middle of a checkpoint leaves beside the file.
TEST_F(ProbeSession, NothingStaysBesideTheFile) {
  std::ofstream(path() + ".tmp") << "{\"kind\": \"measu";
  ResultFile file(path(), head_, ResultFile::Open::fresh);
  run_session(plan_, backend_, file, {});
  file.finish();
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(folder_), {}), 1);
  std::ofstream(path()) << "not a measurement";
  EXPECT_THROW(ResultFile(path(), head_, ResultFile::Open::resume), UnusablePath);
  EXPECT_FALSE(std::filesystem::exists(path() + ".journal") &&
               std::filesystem::file_size(path() + ".journal") > 0);
}

TEST_F(ProbeSession, FolderThatGoesAwayCostsNoResult) {
  ResultFile file(path(), head_, ResultFile::Open::fresh);
  std::filesystem::remove_all(folder_);
  run_session(plan_, backend_, file, {});
  const ResultFile::Written written = file.finish();
  EXPECT_FALSE(written.trouble.empty());
  ASSERT_TRUE(written.whole);
  EXPECT_NE(written.path, path());
  EXPECT_EQ(read(written.path).copies.size(), 5U);
  std::filesystem::remove(written.path);
}

TEST_F(ProbeSession, GroupOfTransfersBecomesSamplesWithOneNumber) {
  PlannedTest test{
      "both",
      CopyTest{
          {{"gpu0", "gpu1", 1_MiB}, {"gpu1", "gpu0", 1_MiB}}, CopyMethod::sm, "both-ways", true},
      1};
  const Measurement m = measurement_of(test, {{10_us, 20_us}, {12_us, 22_us}, {11_us, 21_us}}, {});
  ASSERT_EQ(m.copies.size(), 2U);
  EXPECT_EQ(m.copies[0].time, 11_us);
  EXPECT_EQ(m.copies[1].time, 21_us);
  EXPECT_EQ(m.copies[0].together, m.copies[1].together);
  EXPECT_NE(m.copies[0].together, 0);
}

TEST_F(ProbeSession, CollectiveBecomesARowAsNcclTestsPrintsIt) {
  PlannedTest test{
      "ar", CollectiveTest{"all_reduce", {"gpu0", "gpu1", "gpu2", "gpu3"}, 1_GiB, "ring", "simple"},
      1};
  const Measurement m = measurement_of(test, {{10_ms}, {10_ms}, {10_ms}}, {});
  ASSERT_EQ(m.runs.size(), 1U);
  EXPECT_EQ(m.runs[0].ranks, 4);
  EXPECT_EQ(m.runs[0].algorithm, "ring");
  const CollectiveSample& sample = m.runs[0].samples[0];
  EXPECT_NEAR(sample.algbw.bps / 8e9, 107.37, 0.01);
  EXPECT_NEAR(sample.busbw.bps / 8e9, 107.37 * 1.5, 0.01);
  EXPECT_EQ(sample.operation, "sum");
}

}  // namespace
}  // namespace weft
