// SPDX-License-Identifier: Apache-2.0
#include "models/llm/serve.hpp"

#include <cmath>
#include <map>

#include <gtest/gtest.h>

#include "sim/core/check.hpp"

namespace weft {
namespace {

constexpr double kPerPromptToken = 1e-4, kPerIteration = 1e-2;

// A server whose iterations take a fixed time and so much per token of a prompt; a test may change everything.
struct Lab {
  RequestsSpec requests;
  ServingSpec serving;
  ServeShape shape;
  std::vector<Iteration> seen;
  double sent = 0, swapped = 0;

  Lab() {
    shape.cache_tokens = 1'000'000;
    requests.prompt = 100;
    requests.output = 10;
  }
  ServeResult run(std::uint64_t seed = 1) {
    ServeCosts costs;
    costs.iteration = [this](const Iteration& it) {
      seen.push_back(it);
      IterationTime out;
      out.compute = kPerIteration + kPerPromptToken * it.prompt_tokens;
      out.stages.assign(static_cast<std::size_t>(shape.stages),
                        out.compute / static_cast<double>(shape.stages));
      return out;
    };
    costs.transfer = [this](std::int64_t, std::int64_t, double tokens) {
      sent += tokens;
      return 1e-3;
    };
    costs.swap = [this](double tokens) {
      swapped += tokens;
      return 1e-3;
    };
    return serve(requests, serving, shape, costs, seed);
  }
  double decoded() const {
    double sum = 0;
    for (const Iteration& it : seen) sum += it.decodes;
    return sum;
  }
  double read() const {
    double sum = 0;
    for (const Iteration& it : seen) sum += it.prompt_tokens;
    return sum;
  }
};

constexpr double kPrefill = kPerIteration + 100 * kPerPromptToken;

TEST(Serve, OneRequestReadsThenWrites) {
  Lab lab;
  const ServeResult result = lab.run();
  ASSERT_EQ(result.requests.size(), 1u);
  const RequestTimes& r = result.requests[0];
  EXPECT_NEAR(r.ttft(), kPrefill, 1e-12);
  EXPECT_NEAR(r.tpot(), kPerIteration, 1e-12);
  EXPECT_NEAR(r.e2e(), kPrefill + 9 * kPerIteration, 1e-12);
  EXPECT_EQ(result.iterations, 10);
  // Contexts of 100 to 108 tokens.
  double context = 0;
  for (const Iteration& it : lab.seen) context += it.decode_context;
  EXPECT_DOUBLE_EQ(context, 9 * 104);
  EXPECT_DOUBLE_EQ(lab.seen[0].prompt_context, 100 * 99 / 2);
}

// The decoder starts with a token of its own, which is kept too; answers see the prompt and what they wrote.
TEST(Serve, AnEncoderReadsWhatADecoderAnswers) {
  Lab lab;
  lab.shape.encodes = true;
  const ServeResult result = lab.run();
  EXPECT_EQ(result.iterations, 10);
  EXPECT_DOUBLE_EQ(lab.read(), 100);
  EXPECT_DOUBLE_EQ(lab.seen[0].started, 1);
  EXPECT_DOUBLE_EQ(lab.seen[0].first_tokens, 1);
  for (std::size_t i = 1; i < lab.seen.size(); ++i) {
    EXPECT_DOUBLE_EQ(lab.seen[i].decode_prompts, 100);
    EXPECT_DOUBLE_EQ(lab.seen[i].decode_context, 100 + static_cast<double>(i));
    EXPECT_DOUBLE_EQ(lab.seen[i].started, 0);
  }
  EXPECT_DOUBLE_EQ(result.peak_cache_tokens, 112);  // seven pages of 110 tokens
}

// A cache of just one request: the second waits, whatever either has written.
TEST(Serve, ACacheOfOneRequestHoldsItsPromptAndAnswer) {
  for (const bool encodes : {false, true}) {
    for (const std::int64_t output : {1, 10}) {
      Lab lab;
      lab.shape.encodes = encodes;
      lab.serving.block = 1;
      lab.requests.output = output;
      lab.requests.count = 2;
      lab.shape.cache_tokens = 100 + output;
      const ServeResult result = lab.run();
      EXPECT_EQ(result.preemptions, 0);
      EXPECT_FALSE(result.requests[1].refused);
      EXPECT_NEAR(result.makespan, 2 * (kPrefill + static_cast<double>(output - 1) * kPerIteration),
                  1e-9);
    }
  }
}

// Two that fit when they begin and not when they end: one is read again, its answer so far by the decoder.
TEST(Serve, WhatADecoderWroteIsReadAgainBesideThePrompt) {
  Lab lab;
  lab.shape.encodes = true;
  lab.serving.block = 1;
  lab.requests.count = 2;
  lab.shape.cache_tokens = 210;  // 220 at the end
  const ServeResult result = lab.run();
  EXPECT_EQ(result.preemptions, 1);
  EXPECT_DOUBLE_EQ(lab.read(), 300);
  double started = 0, again = 0;
  for (const Iteration& it : lab.seen) {
    started += it.started;
    again = std::max(again, it.started_context);
  }
  const double wrote = started - 3;  // before it was put back
  EXPECT_GT(wrote, 0);
  EXPECT_DOUBLE_EQ(again, (wrote + 1) * wrote / 2);
  EXPECT_DOUBLE_EQ(lab.decoded(), 20 - 3);
}

TEST(Serve, AClosedLoopAsksAgainWhenAnswered) {
  Lab lab;
  lab.requests.arrival = Arrival::closed;
  lab.requests.count = 6;
  lab.requests.concurrency = 1;
  const ServeResult one = lab.run();
  EXPECT_NEAR(one.makespan, 6 * (kPrefill + 9 * kPerIteration), 1e-9);
  lab.requests.concurrency = 3;
  const ServeResult three = lab.run();
  EXPECT_EQ(three.peak_batch, 3);
  EXPECT_NEAR(three.makespan, 2 * (kPerIteration + 300 * kPerPromptToken + 9 * kPerIteration),
              1e-9);
}

// M/D/1: the mean wait is rho s / (2 (1 - rho)) (Pollaczek and Khinchine).
TEST(Serve, WaitsAsQueueingTheorySays) {
  Lab lab;
  lab.requests.arrival = Arrival::poisson;
  lab.requests.count = 40'000;
  lab.requests.output = 1;
  lab.serving.max_batch = 1;
  for (const double load : {0.5, 0.8}) {
    lab.requests.rate = Rate{load / kPrefill};
    const ServeResult result = lab.run(7);
    double wait = 0;
    for (const RequestTimes& r : result.requests)
      wait += (r.ttft() - kPrefill) / static_cast<double>(result.requests.size());
    EXPECT_NEAR(wait / (load * kPrefill / 2 / (1 - load)), 1, 0.06) << load;
  }
}

TEST(Serve, ChunksLetAnswersGoOn) {
  Lab lab;
  lab.requests.trace = {{.prompt = 10, .output = 200}, {.at = 50_ms, .prompt = 5000, .output = 2}};
  const double whole = lab.run().requests[0].finish;
  double longest = 0;
  for (const Iteration& it : lab.seen) longest = std::max(longest, it.prompt_tokens);
  EXPECT_EQ(longest, 5000);
  lab.seen.clear();
  lab.serving.chunk = 256;
  const ServeResult chunked = lab.run();
  for (const Iteration& it : lab.seen) {
    EXPECT_LE(it.prompt_tokens + it.decodes, 256);
  }
  // Same tokens; each chunk beside an answer instead of before it.
  EXPECT_EQ(lab.read(), 5010);
  EXPECT_LT(chunked.requests[0].finish, whole);
}

TEST(Serve, StagesOverlapRequestsButNotOneAnswer) {
  Lab lab;
  lab.shape.stages = 2;
  const double alone = lab.run().requests[0].e2e();
  EXPECT_NEAR(alone, kPrefill + 9 * kPerIteration, 1e-9);
  lab.requests.count = 8;
  lab.requests.output = 1000;
  lab.seen.clear();
  const ServeResult result = lab.run();
  // Two halves of the batch under way: a token every iteration, an iteration started every half of one.
  EXPECT_NEAR(result.requests[0].tpot(), kPerIteration, 1e-4);
  EXPECT_EQ(result.peak_batch, 4);
  EXPECT_NEAR(lab.decoded(), 8 * 999, 0);
}

// Chunks of one prompt follow each other through the stages: n chunks take n + p - 1 parts of a stage's time.
TEST(Serve, ChunksOfAPromptFillThePipeline) {
  Lab lab;
  lab.shape.stages = 4;
  lab.requests.prompt = 1000;
  lab.requests.output = 1;
  lab.serving.chunk = 100;
  const ServeResult result = lab.run();
  EXPECT_NEAR(result.requests[0].ttft(), (10 + 3) * kPrefill / 4, 1e-9);
}

TEST(Serve, WhoDoesNotFitIsReadAgain) {
  Lab lab;
  lab.requests.count = 4;
  lab.requests.prompt = 96;
  lab.requests.output = 100;
  lab.shape.cache_tokens = 480;  // four prompts, not four answers
  const ServeResult result = lab.run();
  EXPECT_GT(result.preemptions, 0);
  for (const RequestTimes& r : result.requests) {
    EXPECT_FALSE(r.refused);
    EXPECT_GT(r.finish, r.first_token);
  }
  EXPECT_GT(lab.read(), 4 * 96);
  EXPECT_LE(result.peak_cache_tokens, 480);
  // Every token is written once, some of them at the end of a prompt that is read again.
  double first = 0;
  for (const Iteration& it : lab.seen) first += it.first_tokens;
  EXPECT_EQ(lab.decoded() + first, 4 * 100);
}

TEST(Serve, OrCopiedToTheHostAndBack) {
  Lab lab;
  lab.requests.count = 4;
  lab.requests.prompt = 96;
  lab.requests.output = 100;
  lab.shape.cache_tokens = 480;
  lab.serving.preemption = Preemption::swap;
  const ServeResult result = lab.run();
  EXPECT_GT(result.preemptions, 0);
  EXPECT_GT(lab.swapped, 0);
  EXPECT_EQ(lab.read(), 4 * 96);  // nothing is read again
  EXPECT_EQ(lab.decoded(), 4 * 99);
}

TEST(Serve, RefusesWhatIsLongerThanTheCache) {
  Lab lab;
  lab.requests.trace = {{.prompt = 5000, .output = 10}, {.prompt = 50, .output = 10}};
  lab.shape.cache_tokens = 1024;
  const ServeResult result = lab.run();
  EXPECT_TRUE(result.requests[0].refused);
  EXPECT_FALSE(result.requests[1].refused);
  EXPECT_GT(result.requests[1].finish, 0);
}

TEST(Serve, WhatIsCachedIsNotReadAgain) {
  Lab lab;
  lab.requests.count = 3;
  lab.requests.prompt = 160;
  lab.requests.prefix_share = 0.5;
  const ServeResult result = lab.run();
  EXPECT_EQ(lab.read(), 3 * 80);
  // Attention still sees it: 80 tokens with 80 to 159 before them.
  EXPECT_DOUBLE_EQ(lab.seen[0].prompt_context, 3 * (80 * 80 + 80 * 79 / 2));
  EXPECT_GT(result.makespan, 0);
  lab.requests.prefix_share = 1;  // the last page is read at least
  lab.seen.clear();
  lab.run();
  EXPECT_EQ(lab.read(), 3 * 16);
}

TEST(Serve, ReplicasShareTheRequests) {
  Lab lab;
  lab.requests.count = 8;
  lab.requests.output = 100;
  lab.serving.max_batch = 2;
  const double one = lab.run().makespan;
  lab.shape.replicas = 4;
  const double four = lab.run().makespan;
  EXPECT_NEAR(one / four, 4, 1e-6);
}

TEST(Serve, ReplicasInLockstepWaitForTheBusiest) {
  Lab lab;
  lab.requests.trace = {{.prompt = 1000, .output = 2}, {.prompt = 10, .output = 2}};
  lab.shape.replicas = 2;
  EXPECT_LT(lab.run().requests[1].ttft(), 0.02);
  lab.shape.lockstep = 2;
  lab.seen.clear();
  const ServeResult result = lab.run();
  EXPECT_NEAR(result.requests[1].ttft(), kPerIteration + 1000 * kPerPromptToken, 1e-9);
  EXPECT_EQ(result.iterations, 2);
}

TEST(Serve, PromptsAreReadElsewhere) {
  Lab lab;
  lab.requests.count = 6;
  lab.requests.arrival = Arrival::uniform;
  lab.requests.rate = Rate{5};
  lab.shape.replicas = 3;
  lab.shape.prefill_replicas = 1;
  const ServeResult result = lab.run();
  EXPECT_EQ(lab.sent, 6 * 100);
  EXPECT_NEAR(result.transfer, 6e-3, 1e-12);
  for (const Iteration& it : lab.seen) EXPECT_TRUE(it.prompts == 0 || it.decodes == 0);
  for (const RequestTimes& r : result.requests) {
    EXPECT_NEAR(r.ttft(), kPrefill, 1e-9);
    EXPECT_NEAR(r.e2e(), kPrefill + 1e-3 + 9 * kPerIteration, 1e-9);
  }
}

TEST(Serve, LengthsHaveTheirMeanAndSpread) {
  RequestsSpec spec;
  spec.count = 50'000;
  spec.prompt = 1000;
  spec.spread = 0.5;
  double sum = 0, squares = 0;
  for (const ServeRequest& r : make_requests(spec, 16, 3)) {
    const auto prompt = static_cast<double>(r.prompt);
    sum += prompt;
    squares += prompt * prompt;
  }
  const double mean = sum / 50'000;
  EXPECT_NEAR(mean, 1000, 10);
  EXPECT_NEAR(std::sqrt(squares / 50'000 - mean * mean) / mean, 0.5, 0.01);
}

TEST(Serve, TheSameSeedGivesTheSameRun) {
  Lab lab;
  lab.requests.arrival = Arrival::poisson;
  lab.requests.rate = Rate{20};
  lab.requests.count = 200;
  lab.requests.spread = 1;
  const ServeResult a = lab.run(5), b = lab.run(5), c = lab.run(6);
  EXPECT_EQ(a.makespan, b.makespan);
  EXPECT_NE(a.makespan, c.makespan);
}

TEST(Serve, GivesUpInsteadOfRunningForever) {
  Lab lab;
  lab.requests.count = 1;
  lab.requests.output = 100'000'000;
  lab.shape.cache_tokens = 1'000'000'000;
  EXPECT_THROW(lab.run(), LimitReached);
}

}  // namespace
}  // namespace weft
