// SPDX-License-Identifier: Apache-2.0
#include "models/llm/host.hpp"

#include "models/compute/kernels.hpp"
#include "models/llm/layer_pass.hpp"
#include "tests/support/gpus.hpp"
#include "tests/support/llms.hpp"
#include "tests/support/tiny.hpp"

namespace weft {
namespace {

using testing::llm;

TrainingSpec on_host(double link, double memory) {
  TrainingSpec out;
  out.gpus = 64;
  out.host = {8, link, memory};
  return out;
}

TEST(Host, AnOffloadedStepCopiesThenReadsStateAtTheSpeedOfHostMemory) {
  TrainingSpec training = on_host(50e9, 40e9);
  training.plan.offload = true;
  // FP32 gradients down and BF16 weights up: 6 bytes over the link; 34 bytes of state, weight and gradient in the host.
  EXPECT_DOUBLE_EQ(host_copy_s(training, 6e9), 6e9 / 50e9);
  EXPECT_DOUBLE_EQ(host_step_s(training, 1e9), 34e9 / 40e9);
  const Architecture model = llm("llama-3-8b");
  const GpuSpec gpu = testing::catalogue_gpu("h100-sxm5");
  const KernelTimes kernels(gpu, training.software);
  EXPECT_EQ(LayerPasses(model, training, kernels).optimizer_s(1e9), 0);
}

// 8 of PCIe 5 with a port each; 4 of PCIe 4 below two switches with one uplink each and memory for 30 GB/s.
TEST(Host, GpusShareTheirWayToTheHost) {
  const Fabric fabric = test::fabric_from(
      "gpu g[0-3] -- 25 GB/s, 0 ns, block -- pcie_switch p[0-1]; p[0-1] -- 25 GB/s, 0 ns, all -- "
      "cpu c; "
      "dram d -- 30 GB/s, 0 ns -- c");
  const auto facts = [&](std::vector<std::string> names) {
    return host_facts(fabric, test::nodes(fabric, names));
  };
  EXPECT_NEAR(facts({"server0/g0"}).link, 25e9, 1);
  EXPECT_NEAR(facts({"server0/g0"}).memory, 30e9, 1);
  EXPECT_NEAR(facts({"server0/g0", "server0/g1"}).link, 12.5e9, 1);
  EXPECT_NEAR(facts({"server0/g0", "server0/g2"}).link, 15e9, 1);
  const HostFacts all = facts({"server0/g0", "server0/g1", "server0/g2", "server0/g3"});
  EXPECT_NEAR(all.link, 7.5e9, 1);
  EXPECT_NEAR(all.memory, 7.5e9, 1);
  EXPECT_EQ(all.server_gpus, 4);
}

TEST(Host, ACheckpointIsAnEqualPartOfWeightsAndStatePerRank) {
  TrainingSpec training = on_host(50e9, 40e9);
  const Architecture model = llm("llama-3-8b");
  EXPECT_EQ(checkpoint_s(model, training), 0);
  // BF16 weights, a master copy and two moments in FP32.
  const double bytes = model.total() * 14 / 64;
  EXPECT_DOUBLE_EQ(checkpoint_bytes(model, training), bytes);
  training.checkpoint = CheckpointSpec{.every_steps = 10};
  EXPECT_DOUBLE_EQ(checkpoint_s(model, training), bytes / 50e9 / 10);
  training.checkpoint->target = CheckpointTarget::storage;
  training.checkpoint->rate = Bandwidth{800'000'000'000};
  EXPECT_DOUBLE_EQ(checkpoint_s(model, training), model.total() * 14 / 100e9 / 10);
  // The way there may be longer than the storage takes.
  training.host.link = 1e9;
  EXPECT_DOUBLE_EQ(checkpoint_s(model, training), bytes / 1e9 / 10);
}

TEST(Host, WhatIsNotDescribedIsTold) {
  TrainingSpec training = on_host(50e9, 0);
  Diagnostics none;
  check_host(training, none);
  EXPECT_TRUE(none.ok());
  training.plan.offload = true;
  Diagnostics out;
  check_host(training, out);
  EXPECT_NE(out.text().find("/plan/offload"), std::string::npos) << out.text();
}

}  // namespace
}  // namespace weft
