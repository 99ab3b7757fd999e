// SPDX-License-Identifier: Apache-2.0
#include "models/llm/inference_pass.hpp"

#include <gtest/gtest.h>

#include "models/llm/inference_memory.hpp"
#include "tests/support/gpus.hpp"
#include "tests/support/llms.hpp"

namespace weft {
namespace {

using testing::catalogue_gpu;
using testing::llm;

// One model on one kind of GPU; collectives take what the test says.
struct Engine {
  Architecture model;
  GpuSpec gpu;
  InferenceSpec spec;
  double all_reduce = 0;

  Engine(const std::string& name, const std::string& gpu_name)
      : model(llm(name)), gpu(catalogue_gpu(gpu_name)) {
    spec.software.graphs = true;
    spec.software.attention = AttentionKernel::flash2;
    spec.plan.dp = 1;
  }
  StageLayout layout() const {
    Diagnostics out;
    StageLayout layout = stage_layout(model, spec.plan, out);
    EXPECT_TRUE(out.ok()) << out.text();
    return layout;
  }
  IterationTime time(const Iteration& it) {
    const KernelTimes kernels(gpu, spec.software);
    InferenceComms comms;
    comms.collective = [this](Dimension, CollectiveKind kind, double) {
      return kind == CollectiveKind::all_reduce ? all_reduce : 0;
    };
    comms.send = [](std::size_t, double) { return 10e-6; };
    return InferencePasses(model, spec, kernels, layout(), comms)(it);
  }
  double decode(double batch = 1, double context = 512) {
    return time({.decodes = batch, .decode_context = batch * context}).total();
  }
  double prefill(double tokens) {
    return time({.prompts = 1,
                 .prompt_tokens = tokens,
                 .prompt_context = tokens * (tokens - 1) / 2,
                 .first_tokens = 1})
        .total();
  }
};

// 15.0 GB of weights that every token reads (the embedding is looked up) over 3.35 TB/s are 4.5 ms; engines report 6 to 7.5 ms.
TEST(InferencePasses, DecodingLlama8bOnH100IsBoundByWeights) {
  Engine engine("llama-3-8b", "h100-sxm5");
  const double one = engine.decode();
  EXPECT_GT(one, 15.0e9 / 3.35e12);
  EXPECT_LT(one, 7.5e-3);
  // Few more rows cost next to nothing.
  EXPECT_LT(engine.decode(16), 1.15 * one);
  EXPECT_GT(engine.decode(256) / one, 1.3);
  // Half the bytes, nearly half the time.
  engine.spec.dtype.param = Precision::fp8;
  EXPECT_NEAR(engine.decode() / one, 0.56, 0.06);
}

// A prompt is bound by arithmetic: 2 N per token at 40 to 85 % of the peak.
TEST(InferencePasses, PrefillIsBoundByArithmetic) {
  Engine engine("llama-3-8b", "h100-sxm5");
  engine.spec.software.attention = AttentionKernel::flash3;
  const double seconds = engine.prefill(8192);
  const double share = 2 * 7.5e9 * 8192 / seconds / 989e12;
  EXPECT_GT(share, 0.4);
  EXPECT_LT(share, 0.85);
}

// The cache is read once per request and token: 64 requests of 8,192 tokens hold 131,072 bytes each.
TEST(InferencePasses, DecodingReadsTheCache) {
  Engine engine("llama-3-8b", "h100-sxm5");
  const double extra = engine.decode(64, 8192) - engine.decode(64, 1);
  const double bytes = 64.0 * 8192 * 131'072;
  EXPECT_NEAR(extra / (bytes / (3.35e12 * engine.gpu.compute->memory_share)), 1, 0.1);
  const double sixteen = engine.decode(64, 8192);
  engine.spec.dtype.kv = Precision::fp8;
  EXPECT_NEAR(sixteen - engine.decode(64, 8192), extra / 2, 0.06 * extra);
}

// Mistral's layers do not look further back than 4,096 tokens; GPT-OSS has 128 in every other layer.
TEST(InferencePasses, WindowsLimitWhatIsRead) {
  Engine engine("gpt-oss-20b", "h100-sxm5");
  const double shorter = engine.decode(32, 128), longer = engine.decode(32, 32'768);
  const double all = 32.0 * 32'640 * engine.model.kv_bytes_per_token(2) / 3.35e12;
  EXPECT_GT(longer - shorter, 0.45 * all);
  EXPECT_LT(longer - shorter, 0.75 * all);
}

// DeepSeek-V3 caches 576 numbers per layer and token, whole on every rank; full heads would be 71 times that.
TEST(InferencePasses, LatentCacheIsSmall) {
  Engine engine("deepseek-v3", "h200-sxm5");
  engine.spec.plan.tp = 8;
  engine.spec.dtype.param = engine.spec.dtype.compute = Precision::fp8;
  const double extra = engine.decode(1, 65'537) - engine.decode(1, 1);
  const double bandwidth = 4.8e12 * engine.gpu.compute->memory_share;
  EXPECT_NEAR(extra / (65'536.0 * 70'272 / bandwidth), 1, 0.05);
}

// With one token only top_k of the experts are read, with many all of them.
TEST(InferencePasses, ExpertsThatNobodyChoseAreNotRead) {
  Engine engine("mixtral-8x7b", "h200-sxm5");
  const double one = engine.decode(1), many = engine.decode(64);
  const double bandwidth = 4.8e12 * engine.gpu.compute->memory_share;
  EXPECT_NEAR(one, 2 * 12.88e9 / bandwidth, 0.2 * one);
  EXPECT_NEAR(many, 2 * 46.7e9 / bandwidth, 0.2 * many);
}

TEST(InferencePasses, TwoAllReducesPerLayer) {
  Engine engine("llama-2-7b", "h100-sxm5");
  engine.spec.plan.tp = 2;
  engine.all_reduce = 1;
  const IterationTime time = engine.time({.decodes = 1, .decode_context = 512});
  EXPECT_DOUBLE_EQ(time.tp, 2 * 32 + 1);  // and one behind the embedding
}

// gpt-fast#111: two V100, a 7B model. 64 all-reduces of 500 us per token eat what half the weights save; of 20 us they do not.
TEST(Cases, P09_DecodingOnTwoV100DependsOnTheAllReduce) {
  Engine one("llama-2-7b", "v100-sxm2");
  one.spec.dtype.param = one.spec.dtype.compute = Precision::fp16;
  one.spec.software.attention = AttentionKernel::unfused;
  Engine two = one;
  two.spec.plan.tp = 2;
  two.all_reduce = 500e-6;
  EXPECT_GT(two.decode(), one.decode());
  EXPECT_GT(two.time({.decodes = 1, .decode_context = 512}).tp, 64 * 500e-6);
  two.all_reduce = 20e-6;
  EXPECT_LT(two.decode(), one.decode());
  EXPECT_GT(two.decode(), one.decode() / 2);
}

TEST(InferencePasses, StagesShareTheLayers) {
  Engine engine("llama-3-8b", "h100-sxm5");
  const double whole = engine.decode();
  engine.spec.plan.pp = 4;
  const IterationTime split = engine.time({.decodes = 1, .decode_context = 512});
  ASSERT_EQ(split.stages.size(), 4u);
  EXPECT_NEAR(split.total(), whole + 3 * 10e-6, 1e-9);
  EXPECT_NEAR(split.stages[1], split.stages[2], 1e-12);
  EXPECT_GT(split.stages[3], split.stages[1]);  // the output matrix
}

// Without graphs the host launches some ten kernels per layer.
TEST(InferencePasses, AHostThatLaunchesKernelsSetsThePace) {
  Engine engine("llama-3-8b", "h100-sxm5");
  engine.spec.plan.tp = 8;
  const double graphs = engine.decode();
  engine.spec.software.graphs = false;
  EXPECT_GT(engine.decode(), 1.1 * graphs);
}

// ---- an encoder before the decoder

// T5 11B: 24 decoder layers, 128 heads of 128, keys and values in 16 bits; of the decoder's tokens and of the prompt alike.
constexpr double kT5Cache = 24.0 * 2 * 128 * 128 * 2;

TEST(InferenceMemory, CacheBehindAnEncoder) {
  Engine engine("t5-11b", "h100-sxm5");
  const auto cache = [&](double tokens) {
    return InferenceMemory(engine.model, engine.spec, engine.layout()).cache(tokens);
  };
  EXPECT_DOUBLE_EQ(cache(512 + 64), (512 + 64) * kT5Cache);
  EXPECT_DOUBLE_EQ(cache(512 + 64), 512 * engine.model.cross_kv_bytes_per_token(2) +
                                        64 * engine.model.kv_bytes_per_token(2));
  engine.spec.plan.tp = 8;
  EXPECT_DOUBLE_EQ(cache(1), kT5Cache / 8);
  engine.spec.plan = {};
  engine.spec.plan.pp = 2;  // the encoder's stage keeps nothing
  EXPECT_DOUBLE_EQ(cache(1), kT5Cache);
  engine.spec.plan.pp = 4;
  EXPECT_DOUBLE_EQ(cache(1), kT5Cache / 2);
}

TEST(InferenceMemory, StagesBehindAnEncoderHoldCopiesOfTheEmbedding) {
  Engine engine("t5-11b", "h100-sxm5");
  const auto weights = [&] {
    return InferenceMemory(engine.model, engine.spec, engine.layout()).weights();
  };
  EXPECT_NEAR(weights(), 2 * engine.model.total(), 2 * 1024);  // but for the last norm
  // Encoder, decoder: 24 layers with two attentions, and a copy of what is embedded.
  engine.spec.plan.pp = 2;
  const double attention = 4.0 * 1024 * 16'384, mlp = 2.0 * 1024 * 65'536,
               vocabulary = 32'128.0 * 1024;
  const double norms = (24 * 3 + 1) * 1024, positions = 32 * 128;
  EXPECT_DOUBLE_EQ(weights(), 2 * (24 * (2 * attention + mlp) + norms + positions + vocabulary));
}

Iteration first_of(double prompt) {
  return {.prompts = 1,
          .prompt_tokens = prompt,
          .prompt_context = prompt * (prompt - 1) / 2,
          .first_tokens = 1,
          .started = 1};
}

// Reading 2 N of the encoder per token, and one token through the decoder's weights.
TEST(InferencePasses, AnEncoderReadsAndADecoderWrites) {
  Engine engine("t5-11b", "h100-sxm5");
  const double bandwidth = 3.35e12 * engine.gpu.compute->memory_share;
  const double read = engine.model.encoder_parameters(), written = engine.model.total() - read;
  const double answer =
      engine.time({.decodes = 1, .decode_context = 513, .decode_prompts = 512}).total();
  EXPECT_GT(answer, 2 * written / bandwidth);
  EXPECT_LT(answer, 1.35 * 2 * written / bandwidth);  // starts of 360 kernels
  const double share = 2 * read * 512 / (engine.time(first_of(512)).total() - answer) / 989e12;
  EXPECT_GT(share, 0.3);  // 512 rows of a hidden vector of 1,024
  EXPECT_LT(share, 0.85);
}

// 64 answers: what they wrote and what they were asked is read once each.
TEST(InferencePasses, AnswersReadThePromptsKeysToo) {
  Engine engine("t5-11b", "h100-sxm5");
  const double bandwidth = 3.35e12 * engine.gpu.compute->memory_share;
  const auto time = [&](double prompt, double own) {
    return engine
        .time({.decodes = 64, .decode_context = 64 * (prompt + own), .decode_prompts = 64 * prompt})
        .total();
  };
  EXPECT_NEAR((time(2049, 1) - time(1, 1)) / (64 * 2048 * kT5Cache / bandwidth), 1, 0.02);
  EXPECT_NEAR((time(1, 2049) - time(1, 1)) / (64 * 2048 * kT5Cache / bandwidth), 1, 0.02);
}

// Two in a layer of the encoder and three in one of the decoder, one behind each embedding; answers meet the decoder alone.
TEST(InferencePasses, AllReducesOfAnEncoderAndADecoder) {
  Engine engine("t5-base", "h100-sxm5");
  engine.spec.plan.tp = 2;
  engine.all_reduce = 1;
  EXPECT_DOUBLE_EQ(engine.time(first_of(512)).tp, 12 * 2 + 1 + 12 * 3 + 1);
  const IterationTime answers =
      engine.time({.decodes = 1, .decode_context = 513, .decode_prompts = 512});
  EXPECT_DOUBLE_EQ(answers.tp, 12 * 3 + 1);
}

TEST(InferencePasses, StagesOfAnEncoderRestWhileAnswersAreWritten) {
  Engine engine("t5-11b", "h100-sxm5");
  engine.spec.plan.pp = 4;
  const IterationTime answers =
      engine.time({.decodes = 1, .decode_context = 513, .decode_prompts = 512});
  EXPECT_EQ(answers.stages[0], 10e-6);  // what sending nothing takes here
  EXPECT_GT(answers.stages[2], 1e-3);
  const IterationTime prompts = engine.time(first_of(512));
  EXPECT_GT(prompts.stages[0], 1e-3);
  EXPECT_NEAR(prompts.stages[0], prompts.stages[1], 1e-4);
}

// vLLM's log of Llama-3-8B on 80 GB at 0.9 says some 430,000 tokens; 16.06 GB of weights leave 56 GB at 131,072 bytes.
TEST(InferenceMemory, CacheOfLlama8bOn80Gb) {
  Engine engine("llama-3-8b", "h100-sxm5");
  const InferenceMemory memory(engine.model, engine.spec, engine.layout());
  EXPECT_NEAR(memory.weights(), 16.06e9, 0.01e9);
  EXPECT_DOUBLE_EQ(memory.cache(1000), 131'072'000);
  const double room = engine.gpu.memory->value() * 0.9 - memory.weights() - memory.workspace();
  EXPECT_NEAR(static_cast<double>(memory.tokens_in(room, 1000)), 440'000, 30'000);
}

TEST(InferenceMemory, WhatTensorParallelRanksHold) {
  Engine engine("llama-3-70b", "h100-sxm5");
  const auto cache = [&](std::int64_t tp) {
    engine.spec.plan.tp = tp;
    return InferenceMemory(engine.model, engine.spec, engine.layout()).cache(1);
  };
  EXPECT_DOUBLE_EQ(cache(1), 327'680);
  EXPECT_DOUBLE_EQ(cache(8), 327'680 / 8);
  EXPECT_DOUBLE_EQ(cache(16), 327'680 / 8);  // a head is not split
  Engine latent("deepseek-v3", "h200-sxm5");
  latent.spec.plan.tp = 8;
  EXPECT_DOUBLE_EQ(InferenceMemory(latent.model, latent.spec, latent.layout()).cache(1), 70'272);
}

}  // namespace
}  // namespace weft
