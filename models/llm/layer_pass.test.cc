// SPDX-License-Identifier: Apache-2.0
#include "models/llm/layer_pass.hpp"

#include <chrono>
#include <cmath>
#include <map>
#include <set>
#include <tuple>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "models/llm/flops.hpp"
#include "models/llm/stage_parameters.hpp"
#include "tests/support/gpus.hpp"
#include "tests/support/llms.hpp"

namespace weft {
namespace {

using testing::catalogue_gpu;
using testing::llm;
using enum CollectiveKind;

constexpr LayerKind kDense{Mixer::attention, FeedForward::dense, false};
constexpr LayerKind kExperts{Mixer::attention, FeedForward::experts, false};

// Bytes by dimension and kind, all rounds together.
using Traffic = std::map<std::pair<Dimension, CollectiveKind>, double>;

Traffic traffic_of(const LayerPass& pass) {
  Traffic out;
  for (const PassStep& step : pass.steps) {
    for (const CollectiveCall& call : step.calls)
      out[{call.dimension, call.kind}] += call.bytes * call.rounds;
  }
  return out;
}

// One model on H100 under a training job that a test may change.
class Job {
 public:
  explicit Job(const std::string& model,
               const std::vector<std::pair<std::string, std::int64_t>>& set = {})
      : model_(llm(model, set)), gpu_(catalogue_gpu("h100-sxm5")) {
    training.seq = 4096;
    training.plan.dp = 1;
    training.software.graphs = true;  // the host sets no pace
  }
  LayerPass layer(LayerKind kind, PassKind pass, bool recomputes = false) const {
    const KernelTimes times(gpu_, training.software);
    return LayerPasses(model_, training, times).layer(kind, pass, recomputes);
  }
  LayerPass loss(PassKind pass) const {
    const KernelTimes times(gpu_, training.software);
    return LayerPasses(model_, training, times).loss(pass);
  }
  LayerPass embedding(PassKind pass) const {
    const KernelTimes times(gpu_, training.software);
    return LayerPasses(model_, training, times).embedding(pass);
  }
  // Of forward and backward of one sequence through all layers.
  double flops() const {
    const bool recomputes = training.plan.recompute != Recompute::none;
    double sum = loss(PassKind::forward).flops() + loss(PassKind::backward).flops();
    for (std::int64_t i = 0; i < model_.layers(); ++i) {
      sum += layer(model_.layer(i), PassKind::forward).flops() +
             layer(model_.layer(i), PassKind::backward, recomputes).flops();
    }
    return sum;
  }
  const Architecture& model() const { return model_; }
  TrainingSpec training;

 private:
  Architecture model_;
  GpuSpec gpu_;
};

// ---- floating-point operations

TEST(LayerPasses, MultiplyWhatTheArchitectureMultiplies) {
  for (const char* name :
       {"gpt3-20b", "mpt-7b", "llama-3-8b", "mistral-7b", "bloom-176b", "qwen2.5-7b",
        "mixtral-8x7b", "qwen2-57b-a14b", "deepseek-v2-lite", "deepseek-v3", "gpt-oss-20b",
        "nemotron-h-8b", "nemotron-3-nano-30b-a3b", "bert-large"}) {
    Job job(name);
    for (const Recompute recompute : {Recompute::none, Recompute::selective, Recompute::full}) {
      job.training.plan.recompute = recompute;
      const double wanted = hardware_flops(job.model(), job.training.seq, 1, recompute);
      EXPECT_NEAR(job.flops() / wanted, 1, 0.002) << name;
    }
  }
}

// Two more than the norms before attention and MLP take as long as those.
TEST(LayerPasses, FurtherNormsArePassesOverMemory) {
  const auto of = [](std::int64_t norms, PassKind pass) {
    return Job("llama-3-8b", {{"/norms", norms}}).layer(kDense, pass).compute_s();
  };
  for (const PassKind pass : {PassKind::forward, PassKind::backward}) {
    const double two = of(4, pass) - of(2, pass);
    EXPECT_GT(two, 0);
    EXPECT_NEAR(of(8, pass) - of(2, pass), 3 * two, 1e-9 * two);
  }
}

// A pair of adapters is multiplied forward, for the gradient of its input and for its own; frozen matrices have no gradient.
TEST(LayerPasses, AdaptersAreMultipliedThreeTimes) {
  for (const char* name : {"gpt3-20b", "llama-2-7b", "mixtral-8x7b", "qwen2-57b-a14b",
                           "deepseek-v2-lite", "deepseek-v3", "nemotron-h-8b"}) {
    Job frozen(name), job(name);
    job.training.lora_rank = 16;
    const auto more = [&](LayerKind kind, PassKind pass) {
      return job.layer(kind, pass).flops() - frozen.layer(kind, pass).flops();
    };
    std::set<std::tuple<Mixer, FeedForward>> seen;
    for (std::int64_t i = 0; i < job.model().layers(); ++i) {
      const LayerKind kind = job.model().layer(i);
      if (!seen.emplace(kind.mixer, kind.feed_forward).second) continue;
      const StageParameters adapters = layer_parameters(job.model(), job.training, kind).trained;
      const auto& experts = job.model().spec().experts;
      const double used = experts ? real(experts->top_k) / real(experts->count) : 0;
      const double once = 2 * real(job.training.seq) * (adapters.dense + used * adapters.experts);
      EXPECT_NEAR(more(kind, PassKind::forward) / once, 1, 1e-6) << name;
      EXPECT_NEAR(more(kind, PassKind::backward_inputs) / once, 1, 1e-6) << name;
      EXPECT_NEAR(job.layer(kind, PassKind::backward_weights).flops() / once, 1, 1e-6) << name;
    }
  }
}

TEST(LayerPasses, RanksShareTheOperationsOfALayer) {
  Job job("llama-3-8b");
  const auto total = [&] {
    return job.layer(kDense, PassKind::forward).flops() +
           job.layer(kDense, PassKind::backward).flops();
  };
  const double alone = total();
  job.training.plan.tp = 8;
  EXPECT_NEAR(total() * 8 / alone, 1, 1e-9);
  job.training.plan.sp = true;
  EXPECT_NEAR(total() * 8 / alone, 1, 1e-9);
  job.training.plan.cp = 4;
  for (const ContextParallel context : {ContextParallel::ring, ContextParallel::all_gather}) {
    job.training.plan.context = context;
    EXPECT_NEAR(total() * 32 / alone, 1, 1e-9);
  }
  job.training.plan.tp = 1;
  job.training.plan.sp = false;
  job.training.plan.context = ContextParallel::ulysses;
  EXPECT_NEAR(total() * 4 / alone, 1, 1e-9);
}

TEST(LayerPasses, ExpertRanksShareTheOperationsOfExperts) {
  Job job("mixtral-8x7b");
  const double alone = job.layer(kExperts, PassKind::forward).flops();
  job.training.plan.ep = 8;
  EXPECT_NEAR(job.layer(kExperts, PassKind::forward).flops() / alone, 1, 1e-9);
  job.training.plan.tp = 4;
  job.training.plan.sp = true;
  EXPECT_NEAR(job.layer(kExperts, PassKind::forward).flops() * 4 / alone, 1, 1e-9);
  job.training.plan.expert_skew = 1.5;
  EXPECT_GT(job.layer(kExperts, PassKind::forward).flops() * 4 / alone, 1.3);
  job.training.plan.expert_capacity = 1;
  EXPECT_NEAR(job.layer(kExperts, PassKind::forward).flops() * 4 / alone, 1, 1e-9);
}

TEST(LayerPasses, TheTwoHalvesOfABackwardPassAreTheWhole) {
  for (const char* name : {"llama-3-8b", "mixtral-8x7b", "deepseek-v3", "nemotron-h-8b"}) {
    Job job(name);
    job.training.plan.tp = 2;
    job.training.plan.sp = true;
    job.training.plan.cp = 2;
    if (job.model().spec().experts) job.training.plan.ep = 2;
    for (const std::int64_t i : {std::int64_t{0}, job.model().layers() - 1}) {
      const LayerKind kind = job.model().layer(i);
      const LayerPass whole = job.layer(kind, PassKind::backward);
      const LayerPass inputs = job.layer(kind, PassKind::backward_inputs);
      const LayerPass weights = job.layer(kind, PassKind::backward_weights);
      EXPECT_NEAR(inputs.compute_s() + weights.compute_s(), whole.compute_s(),
                  1e-9 * whole.compute_s());
      EXPECT_NEAR(inputs.flops() + weights.flops(), whole.flops(), 1);
      Traffic both = traffic_of(inputs);
      for (const auto& [key, bytes] : traffic_of(weights)) both[key] += bytes;
      EXPECT_EQ(both, traffic_of(whole)) << name;
    }
  }
}

// ---- bytes, against formulas written by hand

struct Plan {
  const char* what;
  const char* model;
  LayerKind kind;
  void (*set)(TrainingSpec&);
  Traffic forward, backward;
  bool recomputes = false;
};

// Llama 3 8B: 4,096 tokens of 4,096 numbers of 2 bytes; a rank's queries 4,096 and keys and values 2 x 1,024 over tp.
constexpr double kAll = 4096.0 * 4096 * 2, kKeys = 4096.0 * 2048 * 2;
// DeepSeek-V3: 7,168 numbers, compressed 1,536 + 512 + 64.
constexpr double kDeep = 4096.0 * 7168 * 2, kLatent = 4096.0 * (1536 + 512 + 64) * 2;

TEST(LayerPasses, MoveTheBytesOfHandFormulas) {
  using enum Dimension;
  const Plan plans[] = {
      {"tensor parallel",
       "llama-3-8b",
       kDense,
       [](TrainingSpec& t) { t.plan.tp = 8; },
       {{{tp, all_reduce}, 2 * kAll}},
       {{{tp, all_reduce}, 2 * kAll}}},
      {"sequence parallel",
       "llama-3-8b",
       kDense,
       [](TrainingSpec& t) { t.plan.tp = 8, t.plan.sp = true; },
       {{{tp, all_gather}, 2 * kAll}, {{tp, reduce_scatter}, 2 * kAll}},
       {{{tp, all_gather}, 4 * kAll}, {{tp, reduce_scatter}, 2 * kAll}}},
      {"the same chunk by chunk",
       "llama-3-8b",
       kDense,
       [](TrainingSpec& t) { t.plan.tp = 8, t.plan.sp = true, t.plan.overlap.tp = true; },
       {{{tp, all_gather}, 2 * kAll}, {{tp, reduce_scatter}, 2 * kAll}},
       {{{tp, all_gather}, 4 * kAll}, {{tp, reduce_scatter}, 2 * kAll}}},
      {"full recompute",
       "llama-3-8b",
       kDense,
       [](TrainingSpec& t) { t.plan.tp = 8, t.plan.sp = true, t.plan.recompute = Recompute::full; },
       {{{tp, all_gather}, 2 * kAll}, {{tp, reduce_scatter}, 2 * kAll}},
       {{{tp, all_gather}, 6 * kAll}, {{tp, reduce_scatter}, 4 * kAll}},
       true},
      {"FP8 gathers",
       "llama-3-8b",
       kDense,
       [](TrainingSpec& t) { t.plan.tp = 8, t.plan.sp = true, t.dtype.compute = Precision::fp8; },
       {{{tp, all_gather}, kAll}, {{tp, reduce_scatter}, 2 * kAll}},
       {{{tp, all_gather}, 2 * kAll}, {{tp, reduce_scatter}, 2 * kAll}}},
      {"adapters need no gathered inputs",
       "llama-3-8b",
       kDense,
       [](TrainingSpec& t) { t.plan.tp = 8, t.plan.sp = true, t.lora_rank = 16; },
       {{{tp, all_gather}, 2 * kAll}, {{tp, reduce_scatter}, 2 * kAll}},
       {{{tp, all_gather}, 2 * kAll}, {{tp, reduce_scatter}, 2 * kAll}}},
      {"ring",
       "llama-3-8b",
       kDense,
       [](TrainingSpec& t) { t.plan.cp = 4; },
       {{{cp, send_recv}, 3 * kKeys / 4}},
       {{{cp, send_recv}, 2 * 3 * kKeys / 4}}},
      {"gathered keys",
       "llama-3-8b",
       kDense,
       [](TrainingSpec& t) { t.plan.cp = 4, t.plan.context = ContextParallel::all_gather; },
       {{{cp, all_gather}, kKeys}},
       {{{cp, all_gather}, kKeys}, {{cp, reduce_scatter}, kKeys}}},
      {"ulysses",
       "llama-3-8b",
       kDense,
       [](TrainingSpec& t) { t.plan.cp = 4, t.plan.context = ContextParallel::ulysses; },
       {{{cp, all_to_all}, (2 * kAll + kKeys) / 4}},
       {{{cp, all_to_all}, (2 * kAll + kKeys) / 4}}},
      {"experts",
       "mixtral-8x7b",
       kExperts,
       [](TrainingSpec& t) { t.plan.ep = 8; },
       {{{ep, all_to_all}, 2 * 2 * kAll}},
       {{{ep, all_to_all}, 2 * 2 * kAll}}},
      {"experts beside",
       "mixtral-8x7b",
       kExperts,
       [](TrainingSpec& t) { t.plan.ep = 8, t.plan.overlap.ep = true; },
       {{{ep, all_to_all}, 2 * 2 * kAll}},
       {{{ep, all_to_all}, 2 * 2 * kAll}}},
      {"experts with a capacity and skew",
       "mixtral-8x7b",
       kExperts,
       [](TrainingSpec& t) {
         t.plan.ep = 8, t.plan.expert_skew = 2, t.plan.expert_capacity = 1.25;
       },
       {{{ep, all_to_all}, 1.25 * 2 * 2 * kAll}},
       {{{ep, all_to_all}, 1.25 * 2 * 2 * kAll}}},
      {"gathered tokens",
       "mixtral-8x7b",
       kExperts,
       [](TrainingSpec& t) { t.plan.ep = 4, t.plan.dispatcher = Dispatcher::all_gather; },
       {{{ep, all_gather}, 4 * kAll}, {{ep, reduce_scatter}, 4 * kAll}},
       {{{ep, all_gather}, 4 * kAll}, {{ep, reduce_scatter}, 4 * kAll}}},
      // Two of eight experts on two ranks: 1 + 1/2 copies on average.
      {"tokens sent once to a rank",
       "mixtral-8x7b",
       kExperts,
       [](TrainingSpec& t) { t.plan.ep = 2, t.plan.dispatcher = Dispatcher::deepep; },
       {{{ep, all_to_all}, 2 * 1.5 * kAll}},
       {{{ep, all_to_all}, 2 * 1.5 * kAll}}},
      // A quarter of the tokens each, gathered over the four ranks of an expert.
      {"tensor parallel experts",
       "mixtral-8x7b",
       kExperts,
       [](TrainingSpec& t) { t.plan.tp = 4, t.plan.sp = true, t.plan.ep = 8; },
       {{{ep, all_to_all}, 2 * 2 * kAll / 4},
        {{tp, all_gather}, kAll + 2 * kAll},
        {{tp, reduce_scatter}, kAll + 2 * kAll}},
       {{{ep, all_to_all}, 2 * 2 * kAll / 4},
        {{tp, all_gather}, 2 * kAll + 2 * kAll},
        {{tp, reduce_scatter}, kAll + 2 * kAll}}},
      // Attention gathers compressed vectors, the shared expert whole ones; routed experts stay whole.
      {"latent attention, experts not split",
       "deepseek-v3",
       kExperts,
       [](TrainingSpec& t) { t.plan.tp = 2, t.plan.sp = true, t.plan.ep = 8, t.plan.etp = 1; },
       {{{ep, all_to_all}, 2 * 8 * kDeep / 2},
        {{tp, all_gather}, kLatent + kDeep},
        {{tp, reduce_scatter}, 2 * kDeep}},
       {{{ep, all_to_all}, 2 * 8 * kDeep / 2},
        {{tp, all_gather}, (kDeep + kLatent) + 2 * kDeep},
        {{tp, reduce_scatter}, kLatent + kDeep}}},
  };
  for (const Plan& plan : plans) {
    Job job(plan.model);
    plan.set(job.training);
    EXPECT_EQ(traffic_of(job.layer(plan.kind, PassKind::forward, plan.recomputes)), plan.forward)
        << plan.what;
    EXPECT_EQ(traffic_of(job.layer(plan.kind, PassKind::backward, plan.recomputes)), plan.backward)
        << plan.what;
  }
}

TEST(LayerPasses, EndsOfTheModelReduceOverTheVocabulary) {
  using enum Dimension;
  Job job("llama-3-8b");
  job.training.plan.tp = 8;
  const double small = 3 * 4096.0 * 4;
  EXPECT_EQ(traffic_of(job.embedding(PassKind::forward)), (Traffic{{{tp, all_reduce}, kAll}}));
  EXPECT_EQ(traffic_of(job.embedding(PassKind::backward)), Traffic{});
  EXPECT_EQ(traffic_of(job.loss(PassKind::forward)), (Traffic{{{tp, all_reduce}, small}}));
  EXPECT_EQ(traffic_of(job.loss(PassKind::backward)), (Traffic{{{tp, all_reduce}, kAll}}));
  job.training.plan.sp = true;
  EXPECT_EQ(traffic_of(job.embedding(PassKind::forward)), (Traffic{{{tp, reduce_scatter}, kAll}}));
  EXPECT_EQ(traffic_of(job.embedding(PassKind::backward)), (Traffic{{{tp, all_gather}, kAll}}));
  EXPECT_EQ(traffic_of(job.loss(PassKind::forward)),
            (Traffic{{{tp, all_gather}, kAll}, {{tp, all_reduce}, small}}));
  EXPECT_EQ(traffic_of(job.loss(PassKind::backward)),
            (Traffic{{{tp, all_gather}, kAll}, {{tp, reduce_scatter}, kAll}}));
}

TEST(LayerPasses, OneRankTalksToNobody) {
  for (const char* name : {"llama-3-8b", "deepseek-v3", "nemotron-h-8b"}) {
    const Job job(name);
    for (std::int64_t i = 0; i < job.model().layers(); ++i) {
      for (const PassKind pass : {PassKind::forward, PassKind::backward})
        EXPECT_TRUE(traffic_of(job.layer(job.model().layer(i), pass)).empty());
    }
  }
}

// ---- time

double share_beside(const LayerPass& pass) {
  double beside = 0, all = 0;
  for (const PassStep& step : pass.steps) {
    for (const CollectiveCall& call : step.calls) {
      all += call.bytes;
      if (call.beside > 0) beside += call.bytes;
    }
  }
  return beside / all;
}

TEST(LayerPasses, OverlapPutsCollectivesBesideComputing) {
  Job job("llama-3-8b");
  job.training.plan.tp = 8;
  job.training.plan.sp = true;
  EXPECT_EQ(share_beside(job.layer(kDense, PassKind::forward)), 0);
  // Inputs gathered again and scattered gradients of inputs always run beside products.
  EXPECT_DOUBLE_EQ(share_beside(job.layer(kDense, PassKind::backward)), 4.0 / 6);
  job.training.plan.overlap.tp = true;
  EXPECT_EQ(share_beside(job.layer(kDense, PassKind::forward)), 1);
  EXPECT_EQ(share_beside(job.layer(kDense, PassKind::backward)), 1);
  EXPECT_EQ(share_beside(job.layer(kDense, PassKind::backward_inputs)), 1);
}

// PyTorch keeps gathered inputs and reduces behind both products: a gather less, and nothing beside them.
TEST(LayerPasses, ABackwardPassWithoutOverlapKeepsItsInputs) {
  Job job("llama-3-8b");
  job.training.plan.tp = 8;
  job.training.plan.sp = true;
  const Traffic megatron = traffic_of(job.layer(kDense, PassKind::backward));
  job.training.plan.overlap.tp_backward = false;
  const LayerPass pass = job.layer(kDense, PassKind::backward);
  const Traffic torch = traffic_of(pass);
  EXPECT_EQ(share_beside(pass), 0);
  EXPECT_DOUBLE_EQ(torch.at({Dimension::tp, all_gather}) * 2,
                   megatron.at({Dimension::tp, all_gather}));
  EXPECT_DOUBLE_EQ(torch.at({Dimension::tp, reduce_scatter}),
                   megatron.at({Dimension::tp, reduce_scatter}));
}

// Chunk by chunk the same operations are smaller products, and what comes in from the other ranks is added up by a kernel.
TEST(LayerPasses, ProductsInChunksTakeLonger) {
  Job job("llama-3-8b");
  job.training.plan.tp = 8;
  job.training.plan.sp = true;
  const LayerPass whole = job.layer(kDense, PassKind::forward);
  job.training.plan.overlap.tp = true;
  const LayerPass chunks = job.layer(kDense, PassKind::forward);
  EXPECT_DOUBLE_EQ(chunks.flops(), whole.flops());
  EXPECT_GT(chunks.compute_s(), 1.02 * whole.compute_s());
  EXPECT_LT(chunks.compute_s(), 1.3 * whole.compute_s());
}

// Between servers a token goes once to each server that has one of its experts.
TEST(LayerPasses, ATokenCrossesTheNetworkOncePerServer) {
  Job job("deepseek-v3");
  job.training.plan.ep = 64;
  const auto sent = [&] {
    return traffic_of(job.layer(kExperts, PassKind::forward)).at({Dimension::ep, all_to_all});
  };
  const double tokens = 4096.0 * 7168 * 2 * 2;  // there and back
  EXPECT_DOUBLE_EQ(sent(), 8 * tokens);
  job.training.plan.dispatcher = Dispatcher::deepep;
  EXPECT_NEAR(sent(), 8 * (1 - std::pow(7.0 / 8, 8)) * tokens, 1e-6 * tokens);
  job.training.plan.expert_servers = 4;
  EXPECT_DOUBLE_EQ(sent(), 4 * tokens);
  job.training.host.server_gpus = 64;  // one server: once to each rank
  EXPECT_NEAR(sent(), 64 * (1 - std::pow(63.0 / 64, 8)) * tokens, 1e-6 * tokens);
}

TEST(LayerPasses, ASlowHostSetsThePace) {
  Job job("mpt-125m");
  job.training.seq = 128;
  job.training.software.fusion = Fusion::eager;
  const double graphs = job.layer(kDense, PassKind::forward).compute_s();
  job.training.software.graphs = false;
  const LayerPass pass = job.layer(kDense, PassKind::forward);
  double kernels = 0;
  for (const PassStep& step : pass.steps) kernels += step.kernels;
  EXPECT_GT(pass.compute_s(), graphs);
  EXPECT_NEAR(pass.compute_s(), kernels * catalogue_gpu("h100-sxm5").compute->host_launch.seconds(),
              1e-12);
}

TEST(LayerPasses, ReadsWhatTheOptimizerKeeps) {
  Job job("llama-3-8b");
  const KernelTimes times(catalogue_gpu("h100-sxm5"), job.training.software);
  const double n = 1e9;
  const GpuSpec gpu = catalogue_gpu("h100-sxm5");
  const double bandwidth = gpu.memory_bandwidth->bytes_per_s() * gpu.compute->memory_share *
                           gpu.compute->optimizer_share;
  // Master weight and moments in and out, the gradient twice, the weight: 3 x 8 + 2 x 4 + 2 bytes.
  EXPECT_NEAR(LayerPasses(job.model(), job.training, times).optimizer_s(n), n * 34 / bandwidth,
              1e-9);
}

}  // namespace
}  // namespace weft
