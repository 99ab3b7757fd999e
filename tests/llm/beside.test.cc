// SPDX-License-Identifier: Apache-2.0
// Computing that is slower while collectives run: for as long as both last, and no longer.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include "tests/llm/estimated.test.hpp"
#include "tests/support/tiny.hpp"

namespace weft {
namespace {

using test::number;

std::string scenario(double factor, int gpus, const std::string& plan) {
  return fmt::format(
      R"({{"fabric": {{"use": "hgx-h100+ib-ndr",
                       "set": {{"/servers": 2, "/server/nodes/0/model/computing/beside_collectives": {}}}}},
           "jobs": [{{"name": "t", "kind": "training", "gpus": {}, "seq": 2048, "global_batch": 64,
                      "model": {{"weft": {{"schema": 1}}, "kind": "llm", "name": "small", "layers": 16, "hidden": 2048,
                                 "heads": 16, "kv_heads": 8, "vocabulary": 32000, "intermediate": 5632}},
                      "plan": {}}}]}})",
      factor, gpus, plan);
}
double computing(double factor, int gpus, const std::string& plan) {
  return number(test::run(scenario(factor, gpus, plan)), "compute_s");
}

TEST(BesideCollectives, NothingIsSlowerWhereNothingRunsBeside) {
  const char* behind = R"({"zero": 1, "overlap": {"grad_reduce": false, "param_gather": false}})";
  EXPECT_EQ(computing(1.5, 1, "{}"), computing(1, 1, "{}"));
  EXPECT_NEAR(computing(1.5, 16, behind), computing(1, 16, behind), 1e-9);
}

// T seconds of collectives under computing leave T / f of it done: T (1 - 1/f) more, as long as they stay hidden.
TEST(BesideCollectives, WhatRunsBesideCostsItsTime) {
  const char* plan = R"({"zero": 1})";
  const double alone = computing(1, 16, plan);
  const double some = computing(1.2, 16, plan) - alone, more = computing(1.5, 16, plan) - alone;
  EXPECT_GT(some, 0.01 * alone);
  EXPECT_NEAR(more / some, (1 - 1 / 1.5) / (1 - 1 / 1.2), 0.04);
}

TEST(BesideCollectives, SearchesAndSimulatedStepsAgree) {
  for (const char* plan :
       {R"({"zero": 1})", R"({"fsdp": {}})", R"({"tp": 4, "sp": true, "overlap": {"tp": true}})"}) {
    const std::string text = scenario(1.4, 16, plan);
    const double step = test::run(text).time_s;
    EXPECT_NEAR(test::estimated_step_s(text) / step, 1, 0.05) << plan;
    EXPECT_GT(step, 1.01 * test::run(scenario(1, 16, plan)).time_s) << plan;
  }
}

}  // namespace
}  // namespace weft
