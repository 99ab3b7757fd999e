// SPDX-License-Identifier: Apache-2.0
#include "sim/run/executor.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "sim/core/check.hpp"
#include "tests/support/tiny.hpp"

namespace weft {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr Bytes kMicrosecond = 12'500_B;

// A workload over one link of 100 Gb/s (12.5 kB take 1 us) and one of 400 Gb/s.
struct Bench {
  Workload workload;
  std::unique_ptr<NetworkModel> network;
  std::uint32_t slow, fast;

  explicit Bench(Fidelity fidelity = Fidelity::fluid) {
    const std::vector<Bandwidth> capacities{100_Gbps, 400_Gbps};
    network = test::context().make_network(fidelity, capacities, {});
    const Share on_slow{0, 1}, on_fast{1, 1};
    slow = workload.add_way({&on_slow, 1}, 0_ns, {0});
    fast = workload.add_way({&on_fast, 1}, 0_ns, {0});
  }
  OpId flow(std::uint32_t way, Bytes size = kMicrosecond) { return workload.add_flow(way, size); }
  ExecutorJob all(ExecutorJob job = {}) const {
    job.end_op = static_cast<std::uint32_t>(workload.operations.size());
    return job;
  }
};

TEST(Executor, OperationsWaitForAllThatComeBefore) {
  Bench bench;
  Workload& w = bench.workload;
  const OpId first = bench.flow(bench.slow), delay = w.add_delay(3_us), both = w.add_barrier(),
             last = bench.flow(bench.fast, 50'000_B);
  w.depend(first, both);
  w.depend(delay, both);
  w.depend(both, last);
  Executor executor(w, *bench.network);
  executor.run({bench.all()}, {});
  EXPECT_EQ(executor.times(first).finished, 1_us);
  EXPECT_EQ(executor.times(both).finished, 3_us);
  EXPECT_EQ(executor.times(last).started, 3_us);
  EXPECT_EQ(executor.times(last).finished, 4_us);
  EXPECT_EQ(executor.times(both).cause, delay) << "the later of the two";
  EXPECT_EQ(executor.times(last).cause, both);
  EXPECT_FALSE(executor.times(first).cause.valid());
  EXPECT_EQ(executor.makespan(), 4_us);
}

// 10 us at a pace that doubles them from 2 to 6 us: 2 done before, 2 meanwhile, 6 left.
TEST(Executor, ADelayIsSlowerWhileASpellOfItsPaceIsOpen) {
  Bench bench;
  Workload& w = bench.workload;
  const std::uint32_t pace = w.add_pace(2), other = w.add_pace(3);
  const OpId slowed = w.add_delay(10_us, pace), free = w.add_delay(10_us),
             elsewhere = w.add_delay(10_us, other), opens = w.add_spell(pace, true),
             closes = w.add_spell(pace, false), again = w.add_delay(4_us, pace);
  const OpId until = w.add_delay(2_us), flow = bench.flow(bench.slow, 50'000_B);
  w.depend(until, opens);
  w.depend(opens, flow);
  w.depend(flow, closes);
  w.depend(slowed, again);
  Executor executor(w, *bench.network);
  executor.run({bench.all()}, {});
  EXPECT_EQ(executor.times(closes).finished, 6_us);
  EXPECT_EQ(executor.times(slowed).finished, 12_us);
  EXPECT_EQ(executor.times(again).finished, 16_us);
  EXPECT_EQ(executor.times(free).finished, 10_us);
  EXPECT_EQ(executor.times(elsewhere).finished, 10_us);
}

TEST(Executor, SpellsOfOnePaceMayOverlap) {
  Bench bench;
  Workload& w = bench.workload;
  const std::uint32_t pace = w.add_pace(2);
  const OpId slowed = w.add_delay(10_us, pace);
  for (const Time begin : {2_us, 3_us}) {  // to 4 and 5 us
    const OpId until = w.add_delay(begin), opens = w.add_spell(pace, true),
               lasts = w.add_delay(2_us), closes = w.add_spell(pace, false);
    w.depend(until, opens);
    w.depend(opens, lasts);
    w.depend(lasts, closes);
  }
  Executor executor(w, *bench.network);
  executor.run({bench.all()}, {});
  EXPECT_EQ(executor.times(slowed).finished, 11'500_ns);
}

TEST(Executor, LatencyOfWayAndOperationAddToAFlow) {
  Bench bench;
  const Share share{0, 1};
  const std::uint32_t way = bench.workload.add_way({&share, 1}, 700_ns, {0});
  const OpId flow = bench.workload.add_flow(way, 12'500_B, 300_ns);
  Executor executor(bench.workload, *bench.network);
  executor.run({bench.all()}, {});
  EXPECT_EQ(executor.times(flow).finished, 1_us + 700_ns + 300_ns);
}

TEST(Executor, NotBeforeCountsFromTheStartOfTheIteration) {
  Bench bench;
  const OpId free = bench.flow(bench.slow), held = bench.flow(bench.fast, 50'000_B);
  bench.workload.operations[held].not_before = 5_us;
  Executor executor(bench.workload, *bench.network);
  executor.run({bench.all({.start = 10_us, .iterations = 2})}, {});
  EXPECT_THAT(executor.jobs()[0].iterations, ElementsAre(6_us, 6_us));
  EXPECT_EQ(executor.times(free).started, 16_us) << "of the last iteration";
  EXPECT_EQ(executor.times(held).started, 21_us);
  EXPECT_EQ(executor.jobs()[0].started, 10_us);
  EXPECT_EQ(executor.jobs()[0].finished, 22_us);
}

TEST(Executor, NotBeforeDoesNotDelayWhatIsLateAnyway) {
  Bench bench;
  const OpId first = bench.flow(bench.slow), then = bench.flow(bench.slow);
  bench.workload.depend(first, then);
  bench.workload.operations[then].not_before = 500_ns;
  Executor executor(bench.workload, *bench.network);
  executor.run({bench.all()}, {});
  EXPECT_EQ(executor.times(then).started, 1_us);
}

TEST(Executor, IterationsFollowEachOther) {
  Bench bench;
  bench.flow(bench.slow);
  Executor executor(bench.workload, *bench.network);
  executor.run({bench.all({.iterations = 5})}, {});
  EXPECT_THAT(executor.jobs()[0].iterations, ElementsAre(1_us, 1_us, 1_us, 1_us, 1_us));
  EXPECT_EQ(executor.makespan(), 5_us);
}

TEST(Executor, JobsThatShareALinkSlowEachOtherOnlyWhileBothRun) {
  Bench bench;
  bench.flow(bench.slow, 25'000_B);  // alone 2 us
  const ExecutorJob first = bench.all();
  bench.flow(bench.slow);  // alone 1 us, from 1 us on
  ExecutorJob second = bench.all({.first_op = first.end_op, .start = 1_us});
  Executor executor(bench.workload, *bench.network);
  executor.run({first, second}, {});
  // From 1 us on both have 12.5 kB left and half the rate.
  EXPECT_EQ(executor.jobs()[0].finished, 3_us);
  EXPECT_EQ(executor.jobs()[1].finished, 3_us);
}

TEST(Executor, AJobUntilTheEndStopsWithTheOthersAndItsOpenIterationIsDropped) {
  Bench bench;
  bench.workload.add_delay(10_us);
  const ExecutorJob main = bench.all();
  bench.flow(bench.slow, 37'500_B);  // 3 us each
  const ExecutorJob noise = bench.all({.first_op = main.end_op, .until_end = true});
  Executor executor(bench.workload, *bench.network);
  executor.run({main, noise}, {});
  EXPECT_EQ(executor.makespan(), 10_us);
  EXPECT_EQ(executor.jobs()[1].iterations.size(), 3U);
  EXPECT_EQ(executor.jobs()[1].finished, 9_us);
}

TEST(Executor, AnEndlessJobThatTakesNoTimeDoesNotHoldTheClock) {
  Bench bench;
  bench.workload.add_delay(10_us);
  const ExecutorJob main = bench.all();
  bench.workload.add_barrier();
  const ExecutorJob idle = bench.all({.first_op = main.end_op, .until_end = true});
  const ExecutorJob empty = bench.all({.first_op = idle.end_op, .until_end = true});
  Executor executor(bench.workload, *bench.network);
  executor.run({main, idle, empty}, {});
  EXPECT_EQ(executor.makespan(), 10_us);
  EXPECT_EQ(executor.jobs()[1].finished, 0_us);
}

TEST(Executor, AJobWithoutOperationsFinishesWhenItStarts) {
  Bench bench;
  Executor executor(bench.workload, *bench.network);
  executor.run({bench.all({.start = 2_us, .iterations = 3})}, {});
  EXPECT_EQ(executor.makespan(), 2_us);
  EXPECT_THAT(executor.jobs()[0].iterations, ElementsAre(0_us, 0_us, 0_us));
}

TEST(Executor, ACapacityChangeActsFromItsInstantOn) {
  Bench bench;
  const OpId flow = bench.flow(bench.slow, 25'000_B);
  Executor executor(bench.workload, *bench.network);
  // 1 us at 100 Gb/s, then half of it left at 50 Gb/s.
  executor.run({bench.all()}, {{1_us, 0, 50_Gbps}});
  EXPECT_EQ(executor.times(flow).finished, 3_us);
}

TEST(Executor, AFlowOutlivesALinkThatComesBack) {
  for (const Fidelity fidelity : {Fidelity::fluid, Fidelity::analytic}) {
    Bench bench(fidelity);
    const OpId flow = bench.flow(bench.slow, 25'000_B);
    Executor executor(bench.workload, *bench.network);
    executor.run({bench.all()}, {{0_us, 0, 0_Gbps}, {7_us, 0, 100_Gbps}});
    EXPECT_EQ(executor.times(flow).finished, 9_us);
  }
}

TEST(Executor, StuckFlowsEndTheRunAndAreNamed) {
  for (const Fidelity fidelity : {Fidelity::fluid, Fidelity::analytic}) {
    Bench bench(fidelity);
    bench.workload.labels.push_back("gradients");
    bench.workload.labels.push_back("innocent");
    const OpId stuck = bench.flow(bench.slow), fine = bench.flow(bench.fast),
               never = bench.flow(bench.fast);
    bench.workload.depend(stuck, never);
    bench.workload.operations[stuck].label = 1;
    bench.workload.operations[fine].label = 2;
    Executor executor(bench.workload, *bench.network);
    try {
      executor.run({bench.all()}, {{0_us, 0, 0_Gbps}});
      FAIL() << "the run ended";
    } catch (const LimitReached& limit) {
      EXPECT_THAT(limit.what(), HasSubstr("gradients#0"));
      EXPECT_THAT(limit.what(), Not(HasSubstr("innocent")));
      EXPECT_THAT(limit.what(), HasSubstr("1 operation"));
    }
  }
}

TEST(Executor, ACycleOfOperationsIsReportedNotWaitedFor) {
  Bench bench;
  const OpId a = bench.workload.add_barrier(), b = bench.workload.add_barrier();
  bench.workload.depend(a, b);
  bench.workload.depend(b, a);
  Executor executor(bench.workload, *bench.network);
  EXPECT_THROW(executor.run({bench.all()}, {}), LimitReached);
}

TEST(Executor, ProgressMayEndTheRun) {
  Bench bench;
  bench.flow(bench.slow, 1_B);
  Executor executor(bench.workload, *bench.network);
  executor.progress = [](Time, std::uint64_t) { throw LimitReached("enough"); };
  EXPECT_THROW(executor.run({bench.all({.iterations = 1'000'000})}, {}), LimitReached);
}

TEST(Executor, TheFingerprintTellsRunsApart) {
  const auto print = [](Bytes size) {
    Bench bench;
    bench.flow(bench.slow, size);
    Executor executor(bench.workload, *bench.network);
    executor.run({bench.all()}, {});
    return executor.fingerprint();
  };
  EXPECT_EQ(print(12'500_B), print(12'500_B));
  EXPECT_NE(print(12'500_B), print(12'600_B));
}

}  // namespace
}  // namespace weft
