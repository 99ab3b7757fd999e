// SPDX-License-Identifier: Apache-2.0
// Conventions against their formulas written out, and against published pairs of speed and FLOP/s.
#include "models/llm/flops.hpp"

#include <cmath>

#include "tests/support/llms.hpp"

namespace weft {
namespace {

using testing::llm;
using enum FlopsConvention;

constexpr double kA100 = 312e12, kH100 = 989e12;

// Per GPU and second, in TFLOP/s, from tokens per GPU and second.
double tflops(const Architecture& model, FlopsConvention convention, std::int64_t seq,
              double tokens) {
  return training_flops(model, convention, seq, 1, false) / static_cast<double>(seq) * tokens /
         1e12;
}

TEST(Flops, PalmIsSixNAndAllOfAttention) {
  const Architecture model = llm("mpt-125m");
  const double per_token = 6 * 125311488.0 + 12 * 12 * 768.0 * 2048;
  EXPECT_DOUBLE_EQ(training_flops(model, palm, 2048, 3, false), 3 * 2048 * per_token);
}

TEST(Flops, PalmLeavesOutAnEmbeddingThatIsOnlyLookedUp) {
  const Architecture model = llm("llama-3-8b");
  const double n = 8030261248.0 - 128256.0 * 4096;
  EXPECT_DOUBLE_EQ(training_flops(model, palm, 8192, 1, false),
                   8192 * (6 * n + 12 * 32 * 4096.0 * 8192));
}

TEST(Flops, SixNCountsWhatATokenUses) {
  EXPECT_DOUBLE_EQ(training_flops(llm("mixtral-8x7b"), six_n, 4096, 2, true),
                   6 * 12879925248.0 * 2 * 4096);
}

TEST(Flops, MegatronIsItsEquation) {
  const double b = 1536, s = 2048, l = 96, h = 12288, v = 51200;
  const Architecture model = llm("gpt3-175b");
  EXPECT_DOUBLE_EQ(training_flops(model, megatron, 2048, 1536, true),
                   96 * b * s * l * h * h * (1 + s / (6 * h) + v / (16 * l * h)));
  EXPECT_DOUBLE_EQ(training_flops(model, megatron, 2048, 1536, false),
                   72 * b * s * l * h * h * (1 + s / (6 * h) + v / (12 * l * h)));
}

TEST(Flops, CausalIsMatricesAndHalfOfAttention) {
  const Architecture model = llm("llama-3-70b");
  const double layer = 8192.0 * (2 * 8192 + 2 * 1024) + 3 * 8192.0 * 28672;
  const double per_token = 6 * (80 * layer + 8192.0 * 128256) + 6 * 80 * 8192.0 * 8192;
  EXPECT_DOUBLE_EQ(training_flops(model, causal, 8192, 2, false), 2 * 8192 * per_token);
}

TEST(Flops, FrozenWeightsCostTwoThirds) {
  const Architecture model = llm("llama-3-70b");
  const double all = training_flops(model, causal, 4096, 1, false),
               attention = 4096 * 6 * 80 * 8192.0 * 4096;
  EXPECT_NEAR(training_flops(model, causal, 4096, 1, false, true),
              (all - attention) * 2 / 3 + attention, 1e-9 * all);
}

TEST(Flops, AWindowBoundsTheReach) {
  const Architecture model = llm("mistral-7b");
  // 4,096 keys but for the first 4,096 queries, which see half as many on average.
  const double reach = 4096 - 4096.0 * 4095 / (2 * 32768);
  const double wide =
      training_flops(llm("mistral-7b", {{"/window", 65536}}), causal, 32768, 1, false);
  EXPECT_NEAR(wide - training_flops(model, causal, 32768, 1, false),
              3 * 32768 * 32 * 4 * 4096.0 * (32768 / 2.0 - reach), 1e-9 * wide);
}

TEST(Flops, HardwareRepeatsWhatIsRecomputed) {
  const Architecture model = llm("llama-2-7b");
  const double none = hardware_flops(model, 4096, 1, Recompute::none);
  EXPECT_DOUBLE_EQ(none, training_flops(model, causal, 4096, 1, false));
  const double attention = 4096 * 32 * 2 * 4096.0 * 4096, output = 4096 * 6 * 4096.0 * 32000;
  EXPECT_NEAR(hardware_flops(model, 4096, 1, Recompute::selective), none + attention, 1e-9 * none);
  EXPECT_NEAR(hardware_flops(model, 4096, 1, Recompute::full), (none - output) * 4 / 3 + output,
              1e-9 * none);
}

// ---- published pairs

// LLM Foundry: tokens/s per GPU and MFU in percent, counted as palm; 0.1 % of rounding and of its peak of the H100.
TEST(Flops, LlmFoundryCountsAsPalm) {
  struct Row {
    const char* model;
    std::int64_t seq;
    double tokens, mfu, peak;
  };
  const Row rows[] = {
      {"mpt-70b", 2048, 1007, 41.25, kH100}, {"mpt-13b", 32768, 1976, 31.68, kH100},
      {"mpt-7b", 65536, 1956, 28.59, kH100}, {"mpt-1b", 512, 52275, 43.21, kH100},
      {"mpt-13b", 2048, 2262, 59.57, kA100}, {"mpt-350m", 8192, 36569, 53.8, kA100}};
  for (const Row& row : rows) {
    const Architecture model = llm(row.model, {{"/context", row.seq}});
    EXPECT_NEAR(tflops(model, palm, row.seq, row.tokens) * 1e14 / row.peak, row.mfu,
                0.0015 * row.mfu)
        << row.model << " " << row.seq;
  }
}

// Megatron-LM: 1,536 sequences in 32 s on 1,024 A100 are 138 TFLOP/s; the V100 grid prints seconds and TFLOP/s.
TEST(Flops, MegatronAgreesWithPublishedRates) {
  const auto rate = [](const Architecture& model, std::int64_t batch, double seconds, double gpus) {
    return training_flops(model, megatron, 2048, batch, true) / seconds / gpus / 1e12;
  };
  EXPECT_NEAR(rate(llm("gpt3-175b"), 1536, 32, 1024), 138, 0.5);
  EXPECT_NEAR(rate(llm("gpt-1536x16"), 2, 0.46412, 1), 43.25, 0.005);
  EXPECT_NEAR(rate(llm("gpt-768x12"), 8, 0.6112, 1), 32.63, 0.005);
  EXPECT_NEAR(rate(llm("gpt-3072x32"), 16, 13.03785, 32), 2.6, 0.005);
  EXPECT_NEAR(rate(llm("gpt-2304x24"), 512, 15.33123, 32), 31.53, 0.005);
}

// Korthikanti et al., table 5: model FLOP/s utilisation from the time of an iteration.
TEST(Flops, KorthikantiCountsAsMegatronWithoutRecompute) {
  struct Row {
    const char* model;
    std::int64_t batch;
    double gpus, seconds, mfu, rounding;
  };
  const Row rows[] = {{"megatron-22b", 4, 8, 1.10, 41.5, 0.3},
                      {"gpt3-175b", 64, 64, 13.75, 51.4, 0.1},
                      {"megatron-529.6b", 280, 280, 37.83, 56.0, 0.1},
                      {"megatron-1008b", 512, 512, 71.49, 56.3, 0.1}};
  for (const Row& row : rows) {
    const double flops = training_flops(llm(row.model), megatron, 2048, row.batch, false);
    EXPECT_NEAR(flops / row.seconds / row.gpus / kA100 * 100, row.mfu, row.rounding) << row.model;
  }
}

// NeMo Framework Launcher counts as palm, Megatron-Bridge as causal: tokens/s per GPU and TFLOP/s of their tables.
TEST(Flops, NemoCountsAsPalmAndMegatronBridgeAsCausal) {
  struct Row {
    const char* model;
    FlopsConvention convention;
    std::int64_t seq;
    double tokens, tflops;
  };
  const Row rows[] = {
      {"gpt3-175b", palm, 2048, 741, 797},          {"gpt3-20b", palm, 2048, 5611, 719},
      {"llama-2-7b", palm, 4096, 16154, 744},       {"llama-2-13b", palm, 4096, 8715, 760},
      {"llama-2-70b", palm, 4096, 1659, 737},       {"llama-3-70b", palm, 8192, 1444, 695},
      {"nemotron-8b", palm, 4096, 11753, 604},      {"nemotron-22b", palm, 4096, 4312, 562},
      {"llama-3-70b", causal, 8192, 5248, 2348},    {"llama-3-8b", causal, 8192, 37556, 1933},
      {"deepseek-v3", causal, 4096, 6288, 1635},    {"qwen3-30b-a3b", causal, 4096, 44544, 1029},
      {"qwen3-235b-a22b", causal, 4096, 8816, 1306}};
  for (const Row& row : rows)
    EXPECT_NEAR(tflops(llm(row.model), row.convention, row.seq, row.tokens), row.tflops,
                0.005 * row.tflops)
        << row.model;
}

// Megatron-Bridge takes Mamba's inner width as twice the hidden one, which is right for Super alone.
TEST(Flops, HybridsAgreeWhereTheInnerWidthIsTwiceTheHidden) {
  EXPECT_NEAR(tflops(llm("nemotron-3-super-120b-a12b"), causal, 8192, 9856), 831, 0.02 * 831);
}

TEST(Flops, L01MfuIsOfTheDensePeak) {
  const Architecture model = llm("llama-2-7b");
  EXPECT_NEAR(tflops(model, six_n, 4096, 9600), 388, 1);
  for (const FlopsConvention convention : {six_n, causal, palm}) {
    const double mfu = tflops(model, convention, 4096, 9600) * 1e12 / kH100;
    EXPECT_GT(mfu, 0.39) << static_cast<int>(convention);
    EXPECT_LT(mfu, 0.47) << static_cast<int>(convention);
  }
}

}  // namespace
}  // namespace weft
