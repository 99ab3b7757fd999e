// SPDX-License-Identifier: Apache-2.0
// The host side of the CUDA backend on a fake runtime: what is queued where, in which order, and what is freed. Built where the
// toolkit's headers are.
#include <gtest/gtest.h>

#ifdef WEFT_FAKE_CUDA
#include <set>

#include "calibrate/probe/cuda/cuda_backend.hpp"
#include "calibrate/probe/plan.hpp"
#include "sim/core/text.hpp"
#include "tests/probe_cuda/fake_cuda.hpp"

namespace weft {
namespace {

using fake::world;

class CudaBackend : public ::testing::Test {
 protected:
  void SetUp() override {
    world() = {};
    backend_ = make_cuda_backend();
    machine_ = backend_->machine();
    plan_ = make_plan(machine_, {});
  }
  void TearDown() override {
    backend_.reset();
    EXPECT_EQ(world().live, 0) << "something is not freed";
    for (const std::string& wrong : world().wrong) ADD_FAILURE() << wrong;
  }
  // The first test of the plan with such a name.
  const PlannedTest& test(const std::string& glob) const {
    for (const PlannedTest& planned : plan_.tests) {
      if (glob_match(glob, planned.name)) return planned;
    }
    throw std::runtime_error("no test " + glob);
  }
  std::vector<Time> once(const std::string& glob) {
    const auto prepared = backend_->prepare(test(glob));
    prepared->once();
    return prepared->once();
  }

  std::unique_ptr<ProbeBackend> backend_;
  ProbeMachine machine_;
  ProbePlan plan_;
};

TEST_F(CudaBackend, SaysWhatTheDriverSays) {
  ASSERT_EQ(machine_.gpus.size(), 2U);
  const MeasuredHost& host = machine_.hosts.at(0);
  EXPECT_EQ(host.driver, "580.1");
  EXPECT_EQ(host.cuda, "13.0");
  EXPECT_EQ(host.nccl, "2.28.9");
  EXPECT_EQ(host.gpus[1].product, "Fake H100");
  EXPECT_EQ(host.gpus[1].bus, "0000:0b:00.0");
  EXPECT_EQ(host.gpus[0].compute_capability, "9.0");
  EXPECT_EQ(host.gpus[0].nvlinks, 4);
  EXPECT_EQ(host.gpus[0].power_limit, Power{700});
  EXPECT_EQ(machine_.paths[0][1].kind, "NV4");
  EXPECT_EQ(host.paths.at("gpu0-gpu1"), "NV4");
  EXPECT_EQ(machine_.gpus[0].types.front(), "bf16");
  EXPECT_EQ(machine_.gpus_per_process, 2);
}

TEST_F(CudaBackend, EveryTestOfThePlanRunsAndFreesWhatItTook) {
  const int before = world().live;
  std::set<std::string> kinds;
  for (const PlannedTest& planned : plan_.tests) {
    // One of each kind, method and pattern, not every size.
    const std::string kind = planned.name.substr(0, planned.name.find("gpu"));
    const bool collective = std::holds_alternative<CollectiveTest>(planned.what);
    if (!kinds.insert(collective ? planned.name.substr(0, planned.name.find(' ')) : kind).second)
      continue;
    const auto prepared = backend_->prepare(planned);
    prepared->once();
    for (const Time time : prepared->once()) EXPECT_GT(time.ps, 0) << planned.name;
  }
  EXPECT_GT(kinds.size(), 20U);
  EXPECT_LE(world().live - before, 3 * 2);  // communicators are kept, three at most
}

TEST_F(CudaBackend, TimeOfACopyIsThatOfTheStream) {
  // 2 us and 50 GB/s are what the fake takes; repeats between the events do not count.
  EXPECT_NEAR(once("copy copy-engine gpu0 > gpu1 64 MiB")[0].us(), 2 + 67108864 / 50e3, 1e-1);
  EXPECT_NEAR(once("copy copy-engine gpu0 > gpu1 4 KiB")[0].us(), 2 + 4096 / 50e3, 1e-2);
  EXPECT_NEAR(once("copy sm gpu0 > gpu1 64 MiB")[0].us(), 3 + 67108864 / 50e3, 1e-1);
  EXPECT_EQ(once("copies both-ways copy-engine gpu0 gpu1 64 MiB").size(), 2U);
  EXPECT_NEAR(once("latency flag gpu0 gpu1")[0].us(), 1, 1e-3);
}

TEST_F(CudaBackend, ForcedAlgorithmIsSetForTheCommunicatorOnly) {
  once("all_reduce 2 ranks 256 KiB tree/ll");
  EXPECT_EQ(world().algorithm, "TREE");
  EXPECT_EQ(std::getenv("NCCL_ALGO"), nullptr);
  once("all_reduce 2 ranks 256 KiB");
  EXPECT_EQ(world().algorithm, "");
}

TEST_F(CudaBackend, OverlapHasFourTimes) {
  const auto times = once("overlap *");
  ASSERT_EQ(times.size(), 4U);
  EXPECT_NEAR(times[0].us(), 100, 1);
  EXPECT_NEAR(times[2].us(), 100, 1);
}

TEST_F(CudaBackend, TestWithoutMemoryFailsAndTheNextOneRuns) {
  world().no_memory = true;
  EXPECT_THROW(once("copy copy-engine gpu0 > gpu1 64 MiB"), TestFailed);
  EXPECT_FALSE(backend_->broken());
  EXPECT_EQ(once("copy copy-engine gpu0 > gpu1 64 MiB").size(), 1U);
}

TEST(CudaBackendAlone, WithoutDevicesThereIsNoMachine) {
  world() = {};
  world().devices = 0;
  EXPECT_THROW(make_cuda_backend(), NoMachine);
}

TEST(CudaBackendAlone, OneGpuIsEnough) {
  world() = {};
  world().devices = 1;
  const auto backend = make_cuda_backend();
  const ProbePlan plan = make_plan(backend->machine(), {.quick = true});
  EXPECT_LT(plan.seconds(), 60);
  for (const PlannedTest& planned : plan.tests) backend->prepare(planned)->once();
  EXPECT_TRUE(world().wrong.empty());
}

TEST(CudaBackendAlone, PairWithoutPeerAccessIsCopiedByTheDriverOnly) {
  world() = {};
  world().peers = false;
  const auto backend = make_cuda_backend();
  const ProbePlan plan = make_plan(backend->machine(), {});
  int copies = 0;
  for (const PlannedTest& planned : plan.tests) {
    EXPECT_FALSE(glob_match("copy sm gpu*", planned.name));
    if (!glob_match("copy copy-engine gpu? > gpu? *", planned.name)) continue;
    backend->prepare(planned)->once();
    ++copies;
  }
  EXPECT_GT(copies, 0);
  EXPECT_TRUE(world().wrong.empty());
}

// Last: from then on the backend frees nothing, as it must not on a device that hangs.
TEST(CudaBackendLast, IllegalAddressBreaksTheDevice) {
  world() = {};
  const auto backend = make_cuda_backend();
  const ProbePlan plan = make_plan(backend->machine(), {});
  world().illegal = true;
  for (const PlannedTest& planned : plan.tests) {
    if (!glob_match("triad *", planned.name)) continue;
    EXPECT_THROW(backend->prepare(planned)->once(), TestFailed);
    break;
  }
  EXPECT_TRUE(backend->broken());
}

}  // namespace
}  // namespace weft
#else
TEST(CudaBackend, IsBuiltWhereTheToolkitIs) { GTEST_SKIP() << "no CUDA toolkit"; }
#endif
