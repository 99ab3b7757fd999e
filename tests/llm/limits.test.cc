// SPDX-License-Identifier: Apache-2.0
// What would take hours is refused before it begins, with the amount and what to change.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "sim/core/check.hpp"
#include "tests/support/tiny.hpp"

namespace weft {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

// What it was refused with; empty when it was not.
std::string refusal(const std::string& job) {
  try {
    test::run(fmt::format(R"({{"fabric": "hgx-h100", "jobs": [{{"name": "t", {}}}]}})", job));
  } catch (const LimitReached& limit) {
    return limit.what();
  }
  return {};
}

std::string training(const std::string& more) {
  return R"("kind": "training", "gpus": 8, "model": "llama-3-8b", "seq": 2048, )" + more;
}

TEST(Limits, StepsAreCountedBeforeTheyArePutTogether) {
  EXPECT_THAT(refusal(training(R"("global_batch": 64, "plan": {"fsdp": {}},
                                  "steps": {"warmup": 1000, "measure": 99000})")),
              AllOf(HasSubstr("100000 steps of"), HasSubstr("/jobs/0/steps")));
  EXPECT_EQ(
      refusal(training(R"("global_batch": 8, "plan": {"fsdp": {}}, "steps": {"measure": 2})")), "");
}

TEST(Limits, MicroBatchesAreCountedBeforeAStepIsPutTogether) {
  EXPECT_THAT(refusal(training(R"("global_batch": 800000000, "plan": {"zero": 1})")),
              AllOf(HasSubstr("100000000 micro-batches"), HasSubstr("/jobs/0/plan/micro_batch")));
}

TEST(Limits, APassLongerThanTheClockIsNoFaultOfALink) {
  EXPECT_THAT(refusal(R"("kind": "training", "gpus": 8, "model": "llama-3-8b", "seq": 1000000000,
                         "global_batch": 8, "plan": {"fsdp": {}})"),
              AllOf(HasSubstr("they last beyond the clock, which runs for 106 days"),
                    Not(HasSubstr("link"))));
}

TEST(Limits, AnswersAreCountedBeforeTheFirst) {
  const auto inference = [](const std::string& requests) {
    return R"("kind": "inference", "gpus": 8, "model": "llama-3-8b", "plan": {"tp": 8}, "requests": )" +
           requests;
  };
  EXPECT_THAT(refusal(inference(R"({"count": 1000000, "output": 1000})")),
              AllOf(HasSubstr("1e+09 tokens"), HasSubstr("/requests")));
  EXPECT_THAT(refusal(inference(R"({"count": 2, "output": 100000000})")),
              HasSubstr("the longest of 1e+08"));
  EXPECT_EQ(refusal(inference(R"({"count": 2, "output": 10})")), "");
}

}  // namespace
}  // namespace weft
