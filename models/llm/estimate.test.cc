// SPDX-License-Identifier: Apache-2.0
#include "models/llm/estimate.hpp"

#include <gtest/gtest.h>

#include "models/llm/search.hpp"
#include "tests/support/gpus.hpp"
#include "tests/support/llms.hpp"

namespace weft {
namespace {

using testing::catalogue_gpu;
using testing::llm;

// A network of one rate and one start-up, whatever the group; rings' traffic.
class EqualLinks final : public CollectiveTimes {
 public:
  explicit EqualLinks(double bytes_per_s, double start_s = 0)
      : rate_(bytes_per_s), start_(start_s) {}
  double collective(GroupSpan span, CollectiveKind kind, double bytes) override {
    if (span.ranks < 2) return 0;
    ++asked;
    const double share = 1 - 1 / static_cast<double>(span.ranks);
    return start_ + (kind == CollectiveKind::all_reduce ? 2 : 1) * share * bytes / rate_;
  }
  double send(std::int64_t, double bytes) override { return start_ + bytes / rate_; }
  int asked = 0;

 private:
  double rate_, start_;
};

constexpr double kFree = 1e30, kFast = 1e12, kSlow = 1e9;

struct Case {
  explicit Case(const std::string& name)
      : model(llm(name)), gpu(catalogue_gpu("h100-sxm5")), kernels(gpu, SoftwareSpec{}) {
    training.model = model.spec();
    training.seq = 2048;
    training.global_batch = 64;
    training.gpus = 32;
  }
  StepEstimate step(double bytes_per_s) {
    Diagnostics out;
    training.plan.dp.reset();
    check_plan(model, training, out);
    EXPECT_TRUE(out.ok()) << out.text();
    EqualLinks links(bytes_per_s);
    return Estimator(model, kernels, links).step(training, stage_layout(model, training.plan, out));
  }

  Architecture model;
  GpuSpec gpu;
  KernelTimes kernels;
  TrainingSpec training;
};

double sum(const StepEstimate& time) {
  double out = time.compute_s + time.bubble_s;
  for (const double exposed : time.exposed_s) out += exposed;
  return out;
}

TEST(Estimate, PartsAddUpToTheStep) {
  Case c("llama-3-8b");
  for (const double rate : {kFree, kFast, kSlow}) {
    c.training.plan = {};
    c.training.plan.tp = 4;
    c.training.plan.sp = true;
    c.training.plan.pp = 4;
    const StepEstimate time = c.step(rate);
    EXPECT_NEAR(sum(time), time.step_s, 1e-9 * time.step_s);
  }
}

TEST(Estimate, FreeCommunicationLeavesComputingAndTheBubble) {
  Case c("llama-3-8b");
  c.training.plan.pp = 4;
  const StepEstimate time = c.step(kFree);
  for (const double exposed : time.exposed_s) EXPECT_LT(exposed, 1e-9);
  // 8 micro-batches of dp 8; the last stage with the loss is the longest, so the bubble of the other three is shorter.
  EXPECT_LT(time.bubble_s / time.step_s, 3.0 / (8 + 3));
  EXPECT_GT(time.bubble_s / time.step_s, 0.75 * 3.0 / (8 + 3));
}

TEST(Estimate, InterleavingDividesTheBubble) {
  Case c("llama-3-8b");
  c.training.plan.pp = 4;
  const double bubble = c.step(kFree).bubble_s;
  c.training.plan.vpp = 4;
  c.training.plan.schedule = PipelineSchedule::interleaved;
  EXPECT_NEAR(c.step(kFree).bubble_s, bubble / 4, 0.01 * bubble);
}

TEST(Estimate, GradientsHideUnderTheLastBackwardPass) {
  Case c("llama-3-8b");
  const auto exposed = [&](double rate) {
    return c.step(rate).exposed_s[static_cast<std::size_t>(Dimension::dp)];
  };
  const double under = exposed(kFast);
  c.training.plan.overlap.grad_reduce = false;
  const double after = exposed(kFast);
  // 8 G parameters of 4 bytes, twice 31/32 of them over a link of 1 TB/s.
  EXPECT_NEAR(after, 2 * 31.0 / 32 * 4 * c.model.total() / kFast, 0.02 * after);
  EXPECT_LT(under, 0.2 * after);
}

TEST(Estimate, ShardedWeightsHideBesidePassesUntilTheNetworkIsTooSlow) {
  Case c("llama-3-8b");
  c.training.plan.fsdp = FsdpSpec{};
  const StepEstimate free = c.step(kFree), fast = c.step(kFast), slow = c.step(kSlow);
  EXPECT_LT(fast.step_s, 1.15 * free.step_s);
  // Gathered twice and scattered once in every micro-batch: (2 x 2 + 4) bytes per parameter.
  const double traffic = 2 * 31.0 / 32 * 8 * c.model.total() / kSlow;
  EXPECT_NEAR(slow.step_s, traffic, 0.15 * traffic);
}

TEST(Estimate, PassesAreRememberedAcrossPlans) {
  Case c("llama-3-8b");
  EqualLinks links(kFast);
  Estimator estimator(c.model, c.kernels, links);
  Diagnostics out;
  c.training.plan.tp = 2;
  c.training.plan.dp = 16;
  const StageLayout layout = stage_layout(c.model, c.training.plan, out);
  estimator.step(c.training, layout);
  const int first = links.asked;
  estimator.step(c.training, layout);
  EXPECT_LT(links.asked - first, first / 2);
}

class Searched {
 public:
  explicit Searched(const std::string& name, std::int64_t gpus, std::int64_t batch) : c(name) {
    c.training.gpus = gpus;
    c.training.global_batch = batch;
    limits.memory_bytes = c.gpu.memory->value();
  }
  SearchResult run() {
    EqualLinks links(kFast, 20e-6);
    return search_plans(c.model, c.training, c.kernels, links, limits);
  }
  Case c;
  SearchLimits limits;
};

TEST(Search, BestFirstAndAllLegalAndFitting) {
  Searched s("llama-3-8b", 32, 64);
  const SearchResult found = s.run();
  ASSERT_EQ(found.best.size(), s.limits.keep);
  EXPECT_GT(found.evaluated, 500u);
  double before = 0;
  for (const PlanCandidate& candidate : found.best) {
    EXPECT_GE(candidate.time.step_s, before);
    before = candidate.time.step_s;
    TrainingSpec spec = s.c.training;
    spec.plan = candidate.plan;
    EXPECT_TRUE(legal_plan(s.c.model, spec));
    Diagnostics out;
    for (const MemoryUse& use :
         training_memory(s.c.model, spec, stage_layout(s.c.model, spec.plan, out)))
      EXPECT_LE(use.total(), s.limits.memory_bytes);
  }
}

TEST(Search, FixedKeysStay) {
  Searched s("llama-3-8b", 32, 64);
  s.c.training.plan.tp = 8;
  s.c.training.plan.recompute = Recompute::full;
  s.limits.fixed = {"tp", "recompute"};
  for (const PlanCandidate& candidate : s.run().best) {
    EXPECT_EQ(candidate.plan.tp, 8);
    EXPECT_EQ(candidate.plan.recompute, Recompute::full);
  }
}

TEST(Search, TensorParallelGroupsStayInAServerUnlessAsked) {
  Searched s("llama-3-8b", 32, 64);
  s.limits.gpus_per_server = 4;
  s.limits.keep = 100'000;
  for (const PlanCandidate& candidate : s.run().best) EXPECT_LE(candidate.plan.tp, 4);
  s.limits.tp_across_servers = true;
  std::int64_t most = 0;
  for (const PlanCandidate& candidate : s.run().best) most = std::max(most, candidate.plan.tp);
  EXPECT_EQ(most, 32);
}

TEST(Search, WhatDoesNotFitIsCountedAndTheSmallestNamed) {
  Searched s("llama-3-70b", 8, 8);
  const SearchResult found = s.run();
  EXPECT_TRUE(found.best.empty());
  EXPECT_EQ(found.evaluated, 0u);
  EXPECT_GT(found.too_large, 10u);
  // 16 bytes for each of 70.6 G parameters over 8 GPUs (case L08).
  EXPECT_GT(found.smallest.memory_bytes, 16 * 70.5e9 / 8);
}

TEST(Search, ExpertsAreSearchedToo) {
  Searched s("mixtral-8x7b", 16, 64);
  s.limits.keep = 100'000;
  std::set<std::int64_t> ep;
  for (const PlanCandidate& candidate : s.run().best) ep.insert(candidate.plan.ep);
  EXPECT_TRUE(ep.contains(8));
  EXPECT_TRUE(ep.contains(1) || ep.contains(2));
}

// Three stages send: the encoder's output twice, then that and the decoder's vectors; 16 micro-batches, four stages.
TEST(Estimate, AnEncodersOutputTravelsWithTheDecoders) {
  Case c("t5-11b");
  c.training.seq = 512;
  c.training.decoder_seq = 128;
  c.training.global_batch = 128;
  c.training.plan.pp = 4;
  const StepEstimate slow = c.step(kSlow);
  const double vector = 1024 * 2, read = 512 * vector, written = 128 * vector;
  const double hop = (3 * read + written) / 3 / kSlow;
  EXPECT_NEAR(slow.exposed_s[static_cast<std::size_t>(Dimension::pp)], 2 * 3 * hop * 16 / 4, 1e-9);
  EXPECT_NEAR(sum(slow) / slow.step_s, 1, 1e-9);
  // Copies of the embedding on three stages: rings' traffic of 32-bit gradients.
  const double embedding = 32128 * 1024 * 4.0;
  EXPECT_NEAR(slow.exposed_s[static_cast<std::size_t>(Dimension::embed)],
              2 * 2 / 3. * embedding / kSlow, 1e-9);
}

}  // namespace
}  // namespace weft
