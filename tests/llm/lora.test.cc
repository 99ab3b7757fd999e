// SPDX-License-Identifier: Apache-2.0
// Fine-tuning of adapters: what a step of a frozen model computes, moves and keeps, counted by hand; and that searches and
// simulated steps say the same.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include "tests/llm/estimated.test.hpp"
#include "tests/support/tiny.hpp"

namespace weft {
namespace {

using test::number;

constexpr const char* kModel =
    R"({"weft": {"schema": 1}, "kind": "llm", "name": "small", "layers": 16, "hidden": 2048, "heads": 16, "kv_heads": 8,
        "vocabulary": 32000, "intermediate": 5632})";
constexpr const char* kExperts =
    R"({"weft": {"schema": 1}, "kind": "llm", "name": "experts", "layers": 8, "hidden": 2048, "heads": 16, "kv_heads": 8,
        "vocabulary": 32000, "intermediate": 5632, "experts": {"count": 8, "top_k": 2, "size": 2816}})";

// Rank 8 beside queries, keys and values in one (2048 to 4096), their output, gate and input in one, the MLP's output.
constexpr double kAttention = 2048 + (2048 + 2 * 1024) + 2048 + 2048;
constexpr double kAdapters = 16 * 8 * (kAttention + 2048 + 2 * 5632 + 5632 + 2048);
constexpr double kExpertAdapters = 8 * 8 * 8 * (2048 + 2 * 2816 + 2816 + 2048);  // all experts'
constexpr double kModelLayers = 16 * (2048 * (2 * 2048 + 2 * 1024.0) + 3 * 2048 * 5632.0);

std::string scenario(int gpus, const std::string& plan, const char* model = kModel,
                     const std::string& more = {}) {
  return fmt::format(
      R"({{"fabric": {{"use": "hgx-h100+ib-ndr", "set": {{"/servers": {}}}}},
           "jobs": [{{"name": "t", "kind": "training", "gpus": {}, "model": {}, "seq": 2048, "global_batch": 64,
                      "lora_rank": 8, "plan": {}{}}}]}})",
      (gpus + 7) / 8, gpus, model, plan, more);
}

// Of one rank: nccl-tests' factor times bytes.
TEST(Lora, OnlyAdaptersAreReducedAndGathered) {
  const auto bytes = [](const std::string& plan, const char* dimension, const char* model = kModel,
                        const std::string& more = {}) {
    return number(test::run(scenario(16, plan, model, more)), "comm_bytes", dimension);
  };
  const double most = 15.0 / 16;
  // An all-reduce of FP32 gradients; a scatter of them and a gather of BF16 weights.
  EXPECT_NEAR(bytes(R"({"zero": 0})", "dp"), 2 * most * 4 * kAdapters, 1);
  EXPECT_NEAR(bytes(R"({"zero": 1})", "dp"), most * (4 + 2) * kAdapters, 1);
  EXPECT_NEAR(bytes(R"({"tp": 2, "sp": true, "zero": 1})", "dp"), 7.0 / 8 * (4 + 2) * kAdapters / 2,
              1);
  // Sharded: the frozen model is gathered twice in each of four micro-batches, its ends once, and nothing of it is scattered.
  const double norms = 2 * 16 * 2048.0, ends = 2 * 32000 * 2048.0 + 2048;
  const double held = kModelLayers + norms + kAdapters;
  EXPECT_NEAR(bytes(R"({"fsdp": {}})", "dp"), 4 * most * (2 * (2 * held + ends) + 4 * kAdapters),
              64);
  // Experts' adapters have replicas of their own: two of each.
  EXPECT_NEAR(bytes(R"({"ep": 8, "zero": 0})", "edp", kExperts), 4 * kExpertAdapters / 8, 1);
  EXPECT_NEAR(bytes(R"({"ep": 8, "zero": 0})", "dp", kExperts), 2 * most * 4 * 8 * 8 * kAttention,
              1);
}

// Two thirds of what a pass forward and backward multiplies with the weights, all of attention, and the adapters three times.
TEST(Lora, FrozenMatricesHaveNoGradientProduct) {
  const Report report = test::run(scenario(8, R"({"zero": 1, "micro_batch": 8})"));
  const double tokens = 64 * 2048.0, weights = kModelLayers + 32000 * 2048.0;
  const double attention =
      2 * 2 * 2048.0 * 2048 / 2;  // scores and sum, causal, per token and layer
  EXPECT_NEAR(number(report, "flops", "hardware") / (tokens * (4 * weights + 3 * 16 * attention)),
              1, 1e-9);
  const Report pretraining = test::run(fmt::format(
      R"({{"fabric": "hgx-h100", "jobs": [{{"name": "t", "kind": "training", "gpus": 8, "model": {}, "seq": 2048,
           "global_batch": 64, "plan": {{"zero": 1, "micro_batch": 8}}}}]}})",
      kModel));
  const double share = number(report, "compute_s") / number(pretraining, "compute_s");
  EXPECT_GT(share, 0.66);
  EXPECT_LT(share, 0.9);  // the adapters' own products are small and read much
}

TEST(Lora, MemoryHoldsTheModelAndTheStateOfTheAdapters) {
  const auto memory = [](const std::string& plan, const char* what, const char* model = kModel) {
    return number(test::run(scenario(16, plan, model)), "memory_bytes_per_gpu", what);
  };
  const double total = kModelLayers + 2 * 16 * 2048.0 + 2 * 32000 * 2048.0 + 2048 + kAdapters;
  EXPECT_DOUBLE_EQ(memory(R"({"zero": 0})", "weights"), 2 * total);
  EXPECT_DOUBLE_EQ(memory(R"({"zero": 0})", "gradients"), 4 * kAdapters);
  EXPECT_DOUBLE_EQ(memory(R"({"zero": 0})", "optimizer"), 12 * kAdapters);
  EXPECT_DOUBLE_EQ(memory(R"({"zero": 1})", "optimizer"), 12 * kAdapters / 16);
  EXPECT_DOUBLE_EQ(memory(R"({"fsdp": {}})", "weights"), 2 * total / 16);
  EXPECT_DOUBLE_EQ(memory(R"({"fsdp": {}})", "gradients"), 4 * kAdapters / 16);
  EXPECT_DOUBLE_EQ(memory(R"({"ep": 8, "zero": 0})", "gradients", kExperts),
                   4 * (8 * 8 * kAttention + kExpertAdapters / 8));
}

TEST(Lora, ACheckpointHoldsTheAdapters) {
  const Report report =
      test::run(scenario(16, R"({"zero": 1})", kModel, R"(, "checkpoint": {"every_steps": 1})"));
  EXPECT_DOUBLE_EQ(number(report, "checkpoint", "bytes_per_gpu"), 14 * kAdapters / 16);
}

TEST(Lora, TiedEmbeddingsThatAreFrozenAreNotReduced) {
  constexpr const char* kTied =
      R"({"weft": {"schema": 1}, "kind": "llm", "name": "tied", "layers": 16, "hidden": 2048, "heads": 16,
          "vocabulary": 32000, "intermediate": 5632, "tied": true})";
  EXPECT_EQ(number(test::run(scenario(8, R"({"pp": 2})", kTied)), "comm_bytes", "embed"), 0);
}

TEST(Lora, SearchesAndSimulatedStepsAgree) {
  for (const auto& [plan, model] :
       {std::pair{R"({"zero": 0, "overlap": {"grad_reduce": false}})", kModel},
        std::pair{R"({"zero": 1})", kModel}, std::pair{R"({"fsdp": {}})", kModel},
        std::pair{R"({"tp": 2, "sp": true, "pp": 2, "zero": 1})", kModel},
        std::pair{R"({"tp": 2, "sp": true, "ep": 4, "zero": 1})", kExperts}}) {
    const std::string text = scenario(16, plan, model);
    EXPECT_NEAR(test::estimated_step_s(text) / test::run(text).time_s, 1, 0.05) << plan;
  }
}

}  // namespace
}  // namespace weft
