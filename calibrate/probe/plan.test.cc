// SPDX-License-Identifier: Apache-2.0
#include "calibrate/probe/plan.hpp"

#include <set>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "sim/core/text.hpp"

namespace weft {
namespace {

// GPUs in pairs below a switch, four to a socket.
ProbeMachine box(int gpus, bool peers = true) {
  ProbeMachine machine;
  for (int i = 0; i < gpus; ++i) {
    ProbeGpu gpu;
    gpu.name = fmt::format("gpu{}", i);
    gpu.near = fmt::format("cpu{}", i / 4);
    if (gpus > 4) gpu.far = {fmt::format("cpu{}", 1 - std::min(i / 4, 1))};
    gpu.memory = 80_GiB;
    gpu.types = {"bf16", "fp8"};
    machine.gpus.push_back(gpu);
  }
  machine.paths.assign(gpus, std::vector<ProbePath>(gpus));
  for (int i = 0; i < gpus; ++i) {
    for (int j = 0; j < gpus; ++j) {
      if (i != j)
        machine.paths[i][j] = {i / 2 == j / 2 ? "PIX" : i / 4 == j / 4 ? "PHB" : "SYS", peers};
    }
  }
  machine.algorithms = {"ring", "tree"};
  machine.protocols = {"ll", "simple"};
  machine.no_messages = "no NICs";
  return machine;
}

std::size_t count(const ProbePlan& plan, const std::string& glob) {
  std::size_t out = 0;
  for (const PlannedTest& test : plan.tests) out += glob_match(glob, test.name) ? 1 : 0;
  return out;
}

bool impossible(const ProbePlan& plan, const std::string& what) {
  for (const ProbeTest& test : plan.impossible) {
    if (test.test == what) return !test.reason.empty() && test.state == TestState::impossible;
  }
  return false;
}

TEST(ProbePlan, EveryNameIsAnotherOne) {
  for (const int gpus : {1, 2, 8, 16}) {
    std::set<std::string> names;
    const ProbePlan plan = make_plan(box(gpus), {});
    for (const PlannedTest& test : plan.tests) {
      EXPECT_TRUE(names.insert(test.name).second) << test.name;
      EXPECT_GT(test.seconds, 0) << test.name;
    }
  }
}

TEST(ProbePlan, QuickTakesLessThanAMinuteOnOneGpu) {
  const ProbePlan plan = make_plan(box(1), {.quick = true});
  EXPECT_LT(plan.seconds(), 60);
  EXPECT_GT(count(plan, "copy * cpu0 > gpu0 *"), 0U);
  EXPECT_GT(count(plan, "matmul *"), 0U);
  for (const char* what : {"copies between GPUs", "contention", "collectives", "overlap"})
    EXPECT_TRUE(impossible(plan, what)) << what;
}

TEST(ProbePlan, SmallMachinesCopyEveryPairBothMethods) {
  const ProbePlan plan = make_plan(box(8), {});
  EXPECT_EQ(count(plan, "copy copy-engine gpu? > gpu? 64 MiB"), 56U);
  EXPECT_EQ(count(plan, "copy sm gpu? > gpu? 64 MiB"), 56U);
  EXPECT_EQ(count(plan, "copies both-ways copy-engine gpu? gpu? 64 MiB"), 28U);
  EXPECT_EQ(count(plan, "latency flag *"), 28U);
  EXPECT_EQ(count(plan, "copy copy-engine gpu? > gpu? 4 KiB"), 3U);  // a sweep for PIX, PHB, SYS
}

TEST(ProbePlan, TestsGrowWithGpusNotWithPairs) {
  const std::size_t at16 = make_plan(box(16), {}).tests.size();
  const std::size_t at32 = make_plan(box(32), {}).tests.size();
  const std::size_t at64 = make_plan(box(64), {}).tests.size();
  EXPECT_LT(at32, 2 * at16);
  EXPECT_LT(at64, 2 * at32);
}

TEST(ProbePlan, EveryGpuIsCopiedByEveryKindOfPathInLargeMachines) {
  const ProbePlan plan = make_plan(box(16), {});
  for (int i = 0; i < 16; ++i) {
    const std::string from = fmt::format("copy copy-engine gpu{} > gpu*", i);
    std::set<std::string> peers;
    for (const PlannedTest& test : plan.tests) {
      if (glob_match(from, test.name)) peers.insert(std::get<CopyTest>(test.what).transfers[0].to);
    }
    EXPECT_GE(peers.size(), 3U) << i;
  }
}

TEST(ProbePlan, GroupsAreOfTransfersThatStartTogether) {
  const ProbePlan plan = make_plan(box(8), {});
  for (const PlannedTest& test : plan.tests) {
    const auto* copy = std::get_if<CopyTest>(&test.what);
    if (copy == nullptr) continue;
    EXPECT_EQ(copy->transfers.size() > 1, !copy->pattern.empty()) << test.name;
    for (const CopyEnds& ends : copy->transfers) EXPECT_NE(ends.from, ends.to) << test.name;
  }
  EXPECT_EQ(count(plan, "copies permutation *"), 7U);
  EXPECT_EQ(count(plan, "copies all-to-one *"), 8U);
  EXPECT_EQ(count(plan, "copies all-to-all *"), 1U);
  EXPECT_EQ(count(plan, "copies memory-from-host *"), 2U);
}

TEST(ProbePlan, WhatCannotBeDoneIsListedAndNotPlanned) {
  ProbeMachine machine = box(2, false);
  machine.no_collectives = "NCCL is not installed";
  machine.no_flags = "no peer access";
  machine.gpus[0].types = {"fp16"};
  const ProbePlan plan = make_plan(machine, {});
  EXPECT_TRUE(impossible(plan, "collectives"));
  EXPECT_TRUE(impossible(plan, "matmul fp8"));
  EXPECT_TRUE(impossible(plan, "latency by flag"));
  EXPECT_TRUE(impossible(plan, "messages between NICs"));
  EXPECT_EQ(count(plan, "all_reduce *"), 0U);
  EXPECT_EQ(count(plan, "copy sm gpu*"), 0U);  // kernels cannot reach the other GPU
  EXPECT_EQ(count(plan, "copy copy-engine gpu0 > gpu1 64 MiB"), 1U);
}

TEST(ProbePlan, OnlySomeTestsByName) {
  const ProbePlan plan = make_plan(box(2), {.only = "copy pageable *"});
  EXPECT_FALSE(plan.tests.empty());
  EXPECT_EQ(plan.tests.size(), count(plan, "copy pageable *"));
}

TEST(ProbePlan, TextNamesEveryTestAndTheSum) {
  const ProbePlan plan = make_plan(box(1), {.quick = true});
  const std::string text = plan_text(plan);
  for (const PlannedTest& test : plan.tests)
    EXPECT_NE(text.find(test.name), std::string::npos) << test.name;
  EXPECT_NE(text.find(fmt::format("{} tests, about", plan.tests.size())), std::string::npos);
  EXPECT_NE(text.find("collectives: the machine has one GPU"), std::string::npos);
}

TEST(ProbePlan, NicsSendFromTheMemoryOfTheHostAndOfAGpu) {
  ProbeMachine machine = box(2);
  machine.no_messages.clear();
  machine.nics = {"mlx5_0", "mlx5_1"};
  machine.nic_gpus = {"gpu0", ""};
  const ProbePlan plan = make_plan(machine, {});
  EXPECT_EQ(count(plan, "ib_write_bw mlx5_?"), 2U);
  EXPECT_EQ(count(plan, "ib_write_lat mlx5_?"), 2U);
  EXPECT_EQ(count(plan, "ib_write_bw mlx5_0 gpu0"), 1U);
  EXPECT_EQ(count(plan, "ib_write_bw mlx5_1 *"), 0U);
}

TEST(ProbePlan, NetworkIsAskedRailByRail) {
  ProbeMachine machine = box(16);
  for (int i = 0; i < 16; ++i) machine.gpus[i].server = i / 8;
  EXPECT_EQ(count(make_plan(machine, {}), "send_recv gpu* gpu* 64 KiB"), 8U);
}

}  // namespace
}  // namespace weft
