// SPDX-License-Identifier: Apache-2.0
#include "models/llm/host.hpp"

#include "models/compute/kernels.hpp"
#include "models/llm/layer_pass.hpp"
#include "tests/support/gpus.hpp"
#include "tests/support/llms.hpp"

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
  EXPECT_DOUBLE_EQ(offloaded_step_s(training, 1e9), 6e9 / 50e9 + 34e9 / 40e9);
  const Architecture model = llm("llama-3-8b");
  const GpuSpec gpu = testing::catalogue_gpu("h100-sxm5");
  const KernelTimes kernels(gpu, training.software);
  EXPECT_DOUBLE_EQ(LayerPasses(model, training, kernels).optimizer_s(1e9),
                   offloaded_step_s(training, 1e9));
}

TEST(Host, ACheckpointIsAnEqualPartOfWeightsAndStatePerRank) {
  TrainingSpec training = on_host(50e9, 40e9);
  const Architecture model = llm("llama-3-8b");
  EXPECT_EQ(checkpoint_s(model, training), 0);
  // BF16 weights, a master copy and two moments in FP32.
  const double bytes = model.total() * 14 / 64;
  EXPECT_DOUBLE_EQ(checkpoint_bytes(model, training), bytes);
  training.checkpoint = CheckpointSpec{.every_steps = 10};
  EXPECT_DOUBLE_EQ(checkpoint_s(model, training), bytes / 40e9 / 10);
  training.checkpoint->target = CheckpointTarget::storage;
  training.checkpoint->rate = Bandwidth{800'000'000'000};
  EXPECT_DOUBLE_EQ(checkpoint_s(model, training), model.total() * 14 / 100e9 / 10);
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
