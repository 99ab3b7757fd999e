// SPDX-License-Identifier: Apache-2.0
// A training step as the executor ran it: where its time went, what it sent, and that folding changes nothing.
#include <algorithm>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "tests/support/tiny.hpp"

namespace weft {
namespace {

using test::number;

constexpr const char* kModel =
    R"({"weft": {"schema": 1}, "kind": "llm", "name": "small", "layers": 16, "hidden": 2048, "heads": 16, "kv_heads": 8,
        "vocabulary": 32000, "intermediate": 5632})";
constexpr const char* kFewWords =
    R"({"weft": {"schema": 1}, "kind": "llm", "name": "words", "layers": 16, "hidden": 2048, "heads": 16, "kv_heads": 8,
        "vocabulary": 64, "intermediate": 5632})";
constexpr const char* kExperts =
    R"({"weft": {"schema": 1}, "kind": "llm", "name": "experts", "layers": 8, "hidden": 2048, "heads": 16, "kv_heads": 8,
        "vocabulary": 32000, "intermediate": 5632, "experts": {"count": 8, "top_k": 2, "size": 2816}})";

Report train(int gpus, const std::string& plan, const std::string& more = {},
             const char* model = kModel) {
  return test::run(fmt::format(
      R"({{"fabric": {{"use": "hgx-h100+ib-ndr", "set": {{"/servers": {}}}}},
           "jobs": [{{"name": "t", "kind": "training", "gpus": {}, "model": {}, "seq": 2048, "global_batch": 128,
                      "plan": {}}}]{}}})",
      (gpus + 7) / 8, gpus, model, plan, more));
}

TEST(Step, EverythingAddsUp) {
  for (const char* plan :
       {R"({"tp": 2, "sp": true, "pp": 2})", R"({"fsdp": {}})", R"({"pp": 4, "zero": 1})",
        R"({"tp": 8, "overlap": {"grad_reduce": false, "param_gather": false}})",
        R"({"pp": 2, "zero": 1, "offload": true})"}) {
    const Report report = train(16, plan);
    double sum = number(report, "compute_s") +
                 number(report, "bubble_fraction") * number(report, "step_time_s");
    for (const char* dimension : {"tp", "pp", "dp", "edp", "ep", "cp", "embed", "host", "other"})
      sum += number(report, "exposed_comm_s", dimension);
    EXPECT_NEAR(sum / number(report, "step_time_s"), 1, 1e-6) << plan;
  }
}

// With one stage nobody waits for the schedule: what is not computing is communication, and faster NICs take it away.
TEST(Step, OneStageHasNoBubble) {
  for (const char* plan :
       {R"({"tp": 8, "sp": true})", R"({"tp": 8, "sp": true, "zero": 1})", R"({"fsdp": {}})",
        R"({"tp": 8, "sp": true, "overlap": {"grad_reduce": false, "param_gather": false}})"}) {
    const Report report = train(16, plan);
    EXPECT_NEAR(number(report, "bubble_fraction"), 0, 1e-9) << plan;
    EXPECT_GT(number(report, "exposed_comm_s", "dp"), 0) << plan;
  }
  const Report experts = train(16, R"({"ep": 2, "zero": 1})", {}, kExperts);
  EXPECT_NEAR(number(experts, "bubble_fraction"), 0, 1e-9);
  EXPECT_GT(number(experts, "exposed_comm_s", "edp"), 0);
}

// Gradients that are reduced after the backward pass are reduced by all stages at the same time, not one stage after the other.
TEST(Step, ReductionsThatDoNotOverlapDoNotHoldUpOtherStages) {
  const Report hidden = train(16, R"({"pp": 4})");
  const Report bare = train(16, R"({"pp": 4, "overlap": {"grad_reduce": false}})");
  const auto idle = [](const Report& report) {
    return number(report, "bubble_fraction") * number(report, "step_time_s");
  };
  const double reduced = number(bare, "exposed_comm_s", "dp");
  EXPECT_GT(reduced, 0);
  EXPECT_LT(idle(bare), idle(hidden) + reduced / 2);
  EXPECT_LT(bare.time_s, hidden.time_s + 2 * reduced);
}

// Without sequence parallelism the ranks of a tensor parallel group send a part each and gather: tp times less between stages.
TEST(Step, ScatteredSendsCarryOnePartPerRank) {
  const Report parts = train(16, R"({"tp": 4, "pp": 2, "overlap": {"pp": false}})");
  const Report whole =
      train(16, R"({"tp": 4, "pp": 2, "overlap": {"pp": false}, "scatter_sends": false})");
  const double sent = number(parts, "comm_bytes", "pp");
  EXPECT_GT(sent, 0);
  EXPECT_DOUBLE_EQ(number(whole, "comm_bytes", "pp"), 4 * sent);
  // Gathered with the factor (n - 1)/n of what the stages exchange, forward and backward.
  EXPECT_NEAR(number(parts, "comm_bytes", "tp") - number(whole, "comm_bytes", "tp"), 3 * sent,
              1e-6 * sent);
  EXPECT_LT(parts.time_s, whole.time_s);
}

// All steps are simulated, those that count are averaged: an idle fabric makes them alike.
TEST(Step, StepsAreAveragedAfterTheWarmUp) {
  const auto run = [](const std::string& steps) {
    return test::run(fmt::format(
        R"({{"fabric": "hgx-h100", "jobs": [{{"name": "t", "kind": "training", "gpus": 8, "model": {}, "seq": 2048,
             "global_batch": 16, "plan": {{"pp": 2, "zero": 1}}, "steps": {}}}]}})",
        kModel, steps));
  };
  const Report one = run(R"({"warmup": 0})");
  const Report four = run(R"({"warmup": 1, "measure": 3})");
  const double step = number(one, "step_time_s");
  EXPECT_DOUBLE_EQ(one.time_s, step);
  EXPECT_NEAR(number(four, "step_time_s") / step, 1, 1e-9);
  EXPECT_NEAR(four.time_s / step, 4, 1e-9);
  for (const char* key : {"compute_s", "bubble_fraction"})
    EXPECT_NEAR(number(four, key) / number(one, key), 1, 1e-6) << key;
}

TEST(Step, ACheckpointMakesEveryStepLonger) {
  const auto every = [](const std::string& checkpoint) {
    return test::run(fmt::format(
        R"({{"fabric": "hgx-h100", "jobs": [{{"name": "t", "kind": "training", "gpus": 8, "model": {}, "seq": 2048,
             "global_batch": 16, "plan": {{"zero": 1}}{}}}]}})",
        kModel, checkpoint));
  };
  const Report none = every("");
  const Report some = every(R"(, "checkpoint": {"every_steps": 5})");
  const double written = number(some, "checkpoint", "s_per_step");
  EXPECT_GT(written, 0);
  EXPECT_NEAR(some.time_s - none.time_s, written, 1e-9);
  EXPECT_NEAR(number(some, "exposed_comm_s", "other"), written, 1e-9);
  const Report steps =
      every(R"(, "checkpoint": {"every_steps": 5}, "steps": {"warmup": 1, "measure": 3})");
  EXPECT_NEAR(number(steps, "exposed_comm_s", "other"), written, 1e-9);
  // Storage at 100 GB/s for all: as many bytes, five times in a row, one step in five.
  const Report storage =
      every(R"(, "checkpoint": {"every_steps": 5, "target": "storage", "rate": "100 GB/s"})");
  EXPECT_NEAR(number(storage, "checkpoint", "s_per_step"),
              8 * number(some, "checkpoint", "bytes_per_gpu") / 100e9 / 5, 1e-9);
}

// The host's step is longer than the GPU's, and its state leaves the GPU.
TEST(Step, AnOffloadedOptimizerTakesTimeAndGivesMemory) {
  const Report own = train(16, R"({"zero": 1})");
  const Report host = train(16, R"({"zero": 1, "offload": true})");
  EXPECT_GT(host.time_s, own.time_s);
  EXPECT_EQ(number(host, "memory_bytes_per_gpu", "optimizer"), 0);
  EXPECT_GT(number(own, "memory_bytes_per_gpu", "optimizer"), 0);
}

// Acceptance of the folding: six plans on 64 GPUs.
TEST(Step, FoldedEqualsUnfolded) {
  const std::pair<const char*, const char*> plans[] = {
      {R"({"zero": 1})", kModel},
      {R"({"tp": 8, "sp": true, "zero": 1})", kModel},
      {R"({"tp": 2, "pp": 4, "sp": true})", kModel},
      {R"({"fsdp": {}, "tp": 2, "sp": true})", kModel},
      {R"({"pp": 4, "vpp": 2, "schedule": "1f1b-interleaved", "tp": 2, "zero": 1})", kModel},
      {R"({"tp": 2, "sp": true, "ep": 4, "zero": 1})", kExperts}};
  for (const auto& [plan, model] : plans) {
    const Report folded = train(64, plan, {}, model);
    const Report single = train(64, plan, R"(, "models": {"fold": false})", model);
    EXPECT_NEAR(folded.time_s / single.time_s, 1, 1e-6) << plan;
    EXPECT_LT(folded.events, single.events) << plan;
    EXPECT_NEAR(number(folded, "compute_s"), number(single, "compute_s"), 1e-6) << plan;
    // What ended a wait is a matter of order where two things ended it at the same instant.
    EXPECT_NEAR(number(folded, "bubble_fraction"), number(single, "bubble_fraction"), 0.01) << plan;
  }
}

TEST(Step, ASlowGpuSplitsItsReplicaOffAndSetsThePace) {
  const std::string plan = R"({"tp": 8, "sp": true, "zero": 1})";
  const Report sound = train(64, plan);
  const Report slow =
      train(64, plan, R"(, "faults": [{"target": "server3/gpu2", "do": "slow", "factor": 0.9}])");
  EXPECT_EQ(number(sound, "folded", "classes"), 1);
  EXPECT_EQ(number(slow, "folded", "classes"), 2);
  EXPECT_GT(slow.time_s, 1.05 * sound.time_s);
  EXPECT_LT(slow.time_s, 1.12 * sound.time_s);
}

// Zero 3 moves the weights twice and the gradients once; plain data parallelism the gradients, as much as twice (one micro-batch,
// equal number formats). Counted on the layers: embedding and output stay gathered until the step ends.
TEST(Step, ZeroThreeSendsHalfAsMuchAgain) {
  const std::string dtype = R"("dtype": {"param": "bf16", "grad": "bf16"})";
  const auto bytes = [&](const std::string& plan) {
    const Report report = test::run(fmt::format(
        R"({{"fabric": {{"use": "hgx-h100"}},
             "jobs": [{{"name": "t", "kind": "training", "gpus": 8, "model": {}, "seq": 2048, "global_batch": 8, {},
                        "plan": {}}}]}})",
        kFewWords, dtype, plan));
    return number(report, "comm_bytes", "dp");
  };
  EXPECT_NEAR(bytes(R"({"zero": 3})") / bytes(R"({"zero": 0})"), 1.5, 0.01);
  EXPECT_NEAR(bytes(R"({"zero": 1})") / bytes(R"({"zero": 0})"), 1.0, 0.01);
}

TEST(Step, MoreBandwidthBetweenServersShortensOnlyWhatWaits) {
  const std::string plan = R"({"zero": 0, "overlap": {"grad_reduce": false}})";
  std::string faults;
  for (int server = 0; server < 2; ++server) {
    for (int nic = 0; nic < 8; ++nic) {
      faults += fmt::format(R"({}{{"target": "server{}/nic{}", "do": "degrade", "factor": 0.4}})",
                            faults.empty() ? "" : ", ", server, nic);
    }
  }
  const Report half = train(16, plan, R"(, "faults": [)" + faults + "]");
  const Report whole = train(16, plan);
  EXPECT_GT(half.time_s, whole.time_s);
  EXPECT_NEAR(number(half, "compute_s"), number(whole, "compute_s"), 1e-9);
  EXPECT_GT(number(half, "exposed_comm_s", "dp"), 1.3 * number(whole, "exposed_comm_s", "dp"));
}

// NCCL's channels are slower than two NICs each: no link gains, but links half as fast would hold them up.
TEST(Step, WhereNoLinkGainsTheReportSaysWhatHalfOfItsSpeedCosts) {
  const auto explained = [](const std::string& more) {
    Diagnostics out;
    RunContext context = test::context();
    context.explain = true;
    const Scenario scenario = test::scenario_from(
        fmt::format(
            R"({{"fabric": {{"use": "hgx-h100+ib-ndr", "set": {{"/servers": 2}}}},
                 "jobs": [{{"name": "t", "kind": "training", "gpus": 16, "model": {}, "seq": 2048, "global_batch": 16,
                            "plan": {{"overlap": {{"grad_reduce": false}}}}}}]{}}})",
            kModel, more),
        out);
    return run_scenario(scenario, context, out);
  };
  std::string halved;
  for (int nic = 0; nic < 16; ++nic) {
    halved += fmt::format(
        R"({}{{"target": "server{}/nic{}:rail{}/leaf0", "do": "degrade", "factor": 0.5}})",
        nic == 0 ? "" : ", ", nic / 8, nic % 8, nic % 8);
  }
  const Report report = explained("");
  const double slower = explained(R"(, "faults": [)" + halved + "]").time_s;
  const auto access =
      std::ranges::find(report.bottlenecks, "access (infiniband)", &Bottleneck::resource);
  ASSERT_NE(access, report.bottlenecks.end());
  ASSERT_TRUE(access->gain_if_infinite_s);
  EXPECT_LT(*access->gain_if_infinite_s, 1e-3 * report.time_s);
  ASSERT_TRUE(access->loss_if_halved_s);
  EXPECT_GT(*access->loss_if_halved_s, 0.01 * report.time_s);
  EXPECT_NEAR(*access->loss_if_halved_s, slower - report.time_s, 1e-6 * report.time_s);
  EXPECT_NE(to_text(to_json(report)).find("loss_if_halved_s"), std::string::npos);
}

}  // namespace
}  // namespace weft
