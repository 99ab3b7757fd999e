// SPDX-License-Identifier: Apache-2.0
// Questions that people asked about training runs, by the name of the case.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include "tests/support/tiny.hpp"

namespace weft {
namespace {

using test::number;

Report train(int gpus, const std::string& model, int seq, int batch, const std::string& plan) {
  return test::run(fmt::format(
      R"({{"fabric": {{"use": "hgx-h100+ib-ndr", "set": {{"/servers": {}}}}},
           "jobs": [{{"name": "t", "kind": "training", "gpus": {}, "model": {}, "seq": {}, "global_batch": {},
                      "plan": {}}}]}})",
      (gpus + 7) / 8, gpus, model, seq, batch, plan));
}

// Megatron-LM#1031: 420 TFLOP/s with TP 8, PP 2 and 48 replicas, 296 with PP 8, two replicas and full recompute.
TEST(CaseL02, RecomputeAndBubblesAreWhatAFewReplicasPay) {
  const std::string model = R"({"use": "llama-3-70b"})";
  const auto run = [&](int gpus, int batch, const std::string& plan) {
    return train(gpus, model, 4096, batch, plan);
  };
  const Report wide = run(768, 1536, R"({"tp": 8, "pp": 2, "sp": true, "zero": 1})");
  const Report deep =
      run(128, 64, R"({"tp": 8, "pp": 8, "sp": true, "zero": 1, "recompute": "full"})");
  const Report kept = run(128, 64, R"({"tp": 8, "pp": 8, "sp": true, "zero": 1})");
  const auto rate = [](const Report& r) { return number(r, "model_flops_per_s_per_gpu"); };
  EXPECT_GT(rate(wide), 1.2 * rate(deep));
  EXPECT_GE(rate(deep) / rate(kept), 1 - 0.27);
  EXPECT_LE(rate(deep) / rate(kept), 1 - 0.20);
  // 4.41e9 parameters of 18 bytes do not fit beside activations, 1.10e9 do.
  const auto state = [](const Report& r) {
    return number(r, "memory_bytes_per_gpu", "weights") +
           number(r, "memory_bytes_per_gpu", "gradients") +
           number(r, "memory_bytes_per_gpu", "optimizer");
  };
  const Report two = run(16, 16, R"({"tp": 8, "pp": 2, "sp": true, "zero": 0})");
  const Report eight = run(64, 16, R"({"tp": 8, "pp": 8, "sp": true, "zero": 0})");
  EXPECT_NEAR(state(two) / (18 * 4.41e9), 1, 0.02);
  EXPECT_NEAR(state(eight) / (18 * 1.10e9), 1, 0.12);  // the longest stage has an end of the model
  EXPECT_FALSE(two.jobs[0].details.find("fits")->boolean);
  EXPECT_TRUE(eight.jobs[0].details.find("fits")->boolean);
}

// Megatron-LM#756: Mixtral on 16 H100 went from 130 to 236 TFLOP/s with EP 8, TP 2.
TEST(CaseL03, ExpertsInsideAServerBeatASplitOfEachExpert) {
  const std::string model = R"({"use": "mixtral-8x7b"})";
  const Report experts =
      train(16, model, 4096, 128, R"({"tp": 2, "ep": 8, "sp": true, "zero": 1})");
  const Report split = train(16, model, 4096, 128, R"({"tp": 8, "sp": true, "zero": 1})");
  EXPECT_LT(experts.time_s, 0.8 * split.time_s);
  EXPECT_GT(number(experts, "comm_bytes", "ep"), 0);
  EXPECT_EQ(number(split, "comm_bytes", "ep"), 0);
  // 12.88e9 active parameters are multiplied, 46.70e9 are kept.
  const double tokens = 128.0 * 4096;
  const double per_token = number(experts, "flops", "model") / tokens;
  EXPECT_GT(per_token, 6 * 12.6e9);  // an embedding is looked up, not multiplied
  EXPECT_LT(per_token, 6 * 12.88e9 * 1.1);
  EXPECT_NEAR(number(split, "memory_bytes_per_gpu", "weights") * 8 / (2 * 46.70e9), 1, 0.05);
}

// SimAI#142, #139: groups that do not fit a box.
TEST(CaseS09, GroupsThatDoNotFitABoxStillRun) {
  const auto run = [](int tp, int dp) {
    return train(
        tp * dp,
        R"({"weft": {"schema": 1}, "kind": "llm", "name": "many", "layers": 4, "hidden": 7680, "heads": 240,
                     "vocabulary": 48000, "intermediate": 30720})",
        2048, 8 * dp,
        fmt::format(R"({{"tp": {}, "dp": {}, "overlap": {{"grad_reduce": false}}}})", tp, dp));
  };
  for (const int tp : {3, 5, 6, 12, 16, 24}) {
    const Report one = run(tp, 1), two = run(tp, 2), four = run(tp, 4);
    EXPECT_GT(number(one, "exposed_comm_s", "tp"), 0) << tp;
    EXPECT_EQ(number(one, "exposed_comm_s", "dp"), 0) << tp;
    EXPECT_GT(number(four, "exposed_comm_s", "dp"), number(two, "exposed_comm_s", "dp")) << tp;
    EXPECT_NEAR(number(two, "compute_s") / number(one, "compute_s"), 1, 1e-3) << tp;
    // Groups that start at a server's first GPU are alike; others share ports with neighbours.
    if (8 % tp == 0 || tp % 8 == 0) {
      EXPECT_NEAR(number(four, "exposed_comm_s", "tp") / number(one, "exposed_comm_s", "tp"), 1,
                  0.01)
          << tp;
    }
  }
}

}  // namespace
}  // namespace weft
