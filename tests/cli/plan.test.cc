// SPDX-License-Identifier: Apache-2.0
// weft plan: what it finds is what `weft run` finds, and what cannot be is refused.
#include <cmath>
#include <filesystem>
#include <fstream>

#include <gmock/gmock.h>

#include "tests/cli/cli_test.hpp"

namespace weft {
namespace {

using cli_test::weft_cli;
using testing::HasSubstr;

const std::vector<std::string> kSmall{"plan",     "--llm",  "gpt-1536x16", "--fabric",
                                      "hgx-h100", "--gpus", "8",           "--global-batch",
                                      "32",       "--seq",  "1024"};

std::vector<std::string> with(std::vector<std::string> args, const std::vector<std::string>& more) {
  args.insert(args.end(), more.begin(), more.end());
  return args;
}

double number(const Json& row, const char* key) { return row.find(key)->number; }

TEST(PlanCommand, BestFirstWithWhatItCosts) {
  const auto outcome = weft_cli(with(kSmall, {"--json", "--simulate", "0"}));
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  const Json json = cli_test::document(outcome);
  EXPECT_GT(number(json, "candidates_tried"), 100);
  const auto& plans = json.find("plans")->items;
  ASSERT_EQ(plans.size(), 5u);
  double before = 0;
  for (const Json& row : plans) {
    EXPECT_GE(number(row, "step_time_s"), before);
    before = number(row, "step_time_s");
    EXPECT_GT(number(row, "mfu"), 0.01);
    EXPECT_LT(number(row, "mfu"), 1);
    EXPECT_GT(number(row, "memory_bytes"), 1e9);
    EXPECT_FALSE(row.find("bottleneck")->text.empty());
  }
}

// The two clocks tell the same time.
TEST(PlanCommand, EstimatesAreCloseToTheSimulatedStep) {
  for (const char* const fixed : {"tp=1", "tp=4", "pp=4"}) {
    const auto outcome =
        weft_cli(with(kSmall, {"--json", "--simulate", "6", "--top", "6", "--fix", fixed}));
    ASSERT_EQ(outcome.code, 0) << outcome.err;
    const Json json = cli_test::document(outcome);
    for (const Json& row : json.find("plans")->items) {
      EXPECT_EQ(row.find("fidelity")->text, "fluid");
      EXPECT_NEAR(number(row, "estimated_step_time_s") / number(row, "step_time_s"), 1, 0.05)
          << to_text(*row.find("plan"), 0);
    }
  }
}

// The size in the file is not the one that is planned for, so nothing is said of it.
TEST(PlanCommand, WarnsOfTheFabricThatIsPlannedFor) {
  const auto outcome = weft_cli({"plan", "--llm", "llama-3-8b", "--fabric", "hgx-h100+roce-400g",
                                 "--gpus", "64", "--set", "/network/oversubscription=2",
                                 "--simulate", "0", "--top", "1", "--fix", "tp=8"});
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_THAT(outcome.err, HasSubstr("the fullest has 8"));
  EXPECT_THAT(outcome.err, Not(HasSubstr("the fullest has 4")));
}

TEST(PlanCommand, RunTakesTheScenarioItWrites) {
  const std::string path = testing::TempDir() + "/weft-plan-scenario.json";
  const auto planned =
      weft_cli(with(kSmall, {"--json", "--simulate", "1", "--top", "1", "--scenario", path}));
  ASSERT_EQ(planned.code, 0) << planned.err;
  const auto ran = weft_cli({"run", path, "--json", "--quick"});
  std::filesystem::remove(path);
  ASSERT_EQ(ran.code, 0) << ran.err;
  const Json planned_json = cli_test::document(planned), ran_json = cli_test::document(ran);
  const double step = number(ran_json.find("jobs")->items[0], "step_time_s");
  EXPECT_DOUBLE_EQ(step, number(planned_json.find("plans")->items[0], "step_time_s"));
}

TEST(PlanCommand, AStepIsOneOfSeveralThatAreMeasured) {
  const auto step = [](const std::vector<std::string>& more) {
    const auto outcome = weft_cli(
        with(kSmall, with({"--json", "--simulate", "1", "--top", "1", "--fix", "tp=1"}, more)));
    EXPECT_EQ(outcome.code, 0) << outcome.err;
    return number(cli_test::document(outcome).find("plans")->items[0], "step_time_s");
  };
  EXPECT_NEAR(step({"--job", R"(/steps={"warmup": 1, "measure": 3})"}) / step({}), 1, 1e-9);
}

TEST(PlanCommand, FixedKeysAreKept) {
  const auto outcome = weft_cli(
      with(kSmall, {"--json", "--simulate", "0", "--fix", "tp=2", "--fix", "recompute=full"}));
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  const Json json = cli_test::document(outcome);
  for (const Json& row : json.find("plans")->items) {
    EXPECT_EQ(row.find("plan")->find("tp")->integer, 2);
    EXPECT_EQ(row.find("plan")->find("recompute")->text, "full");
  }
}

// Case L08: 70B on eight A100 does not fit, and the sum says why.
TEST(CaseL08, TooBigSaysWhatItNeeds) {
  const auto outcome = weft_cli({"plan", "--llm", "llama-3-70b", "--fabric", "hgx-a100", "--gpus",
                                 "8", "--global-batch", "64", "--seq", "4096"});
  EXPECT_EQ(outcome.code, 4);
  EXPECT_THAT(outcome.err, HasSubstr("does not fit"));
  EXPECT_THAT(outcome.err, HasSubstr("weights"));
  EXPECT_THAT(outcome.err, HasSubstr("optimizer"));
}

const std::vector<std::string> kAnswers{"plan",
                                        "--mode",
                                        "inference",
                                        "--llm",
                                        "llama-3-8b",
                                        "--fabric",
                                        "hgx-h100",
                                        "--gpus",
                                        "8",
                                        "--job",
                                        "/requests/count=64",
                                        "--job",
                                        "/requests/output=64"};

// The best is what the report of that plan says; every split of eight GPUs is there.
TEST(PlanInference, BestFirstAndAsRunHasIt) {
  const std::string path = testing::TempDir() + "/weft-plan-answers.json";
  const auto planned = weft_cli(with(kAnswers, {"--json", "--top", "20", "--scenario", path}));
  ASSERT_EQ(planned.code, 0) << planned.err;
  const Json json = cli_test::document(planned);
  const auto& plans = json.find("plans")->items;
  EXPECT_EQ(json.find("candidates_tried")->integer, 10);  // tp 1, 2, 4, 8 with stages in the rest
  ASSERT_EQ(plans.size(), 10u);
  for (std::size_t i = 1; i < plans.size(); ++i)
    EXPECT_LE(number(plans[i], "output_tokens_per_s"), number(plans[i - 1], "output_tokens_per_s"));
  const auto ran = weft_cli({"run", path, "--json", "--quick"});
  std::filesystem::remove(path);
  ASSERT_EQ(ran.code, 0) << ran.err;
  const Json ran_json = cli_test::document(ran);
  const Json& job = ran_json.find("jobs")->items[0];
  EXPECT_DOUBLE_EQ(number(job, "output_tokens_per_s"), number(plans[0], "output_tokens_per_s"));
}

// A level that only many GPUs per replica reach turns the order around.
TEST(PlanInference, TheServiceLevelDecides) {
  const auto best = [](const std::vector<std::string>& more) {
    const auto outcome = weft_cli(with(kAnswers, with({"--json"}, more)));
    EXPECT_EQ(outcome.code, 0) << outcome.err;
    return cli_test::document(outcome).find("plans")->items[0].find("plan")->find("tp")->integer;
  };
  const auto loose = best({});
  const auto tight = best({"--job", "/serving/slo={\"tpot\": \"4 ms\"}"});
  EXPECT_LT(loose, tight);
}

TEST(PlanInference, WhatDoesNotFitIsLeftOut) {
  const auto outcome = weft_cli({"plan", "--mode", "inference", "--llm", "llama-3.1-405b",
                                 "--fabric", "hgx-h100", "--gpus", "8", "--json"});
  EXPECT_EQ(outcome.code, 4) << outcome.out;
  EXPECT_THAT(outcome.err,
              HasSubstr("does not fit: none of 10 plans; the smallest is tp 8 pp 1 dp 1"));
}

// Three GPUs are whole replicas only where a replica has one or three.
TEST(PlanInference, GpusForPromptsAreWholeReplicas) {
  const auto outcome = weft_cli(with(kAnswers, {"--json", "--job", "/serving/prefill_gpus=3"}));
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  const Json json = cli_test::document(outcome);
  ASSERT_EQ(json.find("plans")->items.size(), 1u);
  EXPECT_EQ(json.find("plans")->items[0].find("plan")->find("dp")->integer, 8);
}

// What was not named is not changed: no replicas are searched when dp is given, and short sequences are not given up.
TEST(PlanCommand, ReplicasCanBeFixedAndSequencesShort) {
  const auto outcome = weft_cli({"plan", "--llm", "gpt-1536x16", "--fabric", "hgx-h100", "--gpus",
                                 "8", "--global-batch", "32", "--seq", "256", "--fix", "dp=2",
                                 "--json", "--simulate", "0", "--top", "1000"});
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  const Json json = cli_test::document(outcome);
  EXPECT_GT(json.find("plans")->items.size(), 10u);
  for (const Json& row : json.find("plans")->items)
    EXPECT_EQ(row.find("plan")->find("dp")->integer, 2);
}

TEST(PlanCommand, ARefusalNamesTheRulesAndTheNearestLegalValues) {
  const auto refused = [](const std::vector<std::string>& args,
                          const std::vector<std::string>& words) {
    const auto outcome = weft_cli(args);
    EXPECT_EQ(outcome.code, 2) << outcome.out;
    EXPECT_THAT(outcome.err, HasSubstr("no plan keeps all rules"));
    for (const std::string& said : words) EXPECT_THAT(outcome.err, HasSubstr(said));
  };
  const auto small = [](const std::vector<std::string>& more) { return with(kSmall, more); };
  refused(small({"--fix", "tp=3"}), {"/plan: 8 GPUs cannot be split into replicas of tp 3",
                                     "\"gpus\": 6 or 9", "\"tp\": 2 or 4"});
  refused(small({"--fix", "pp=3"}), {"\"pp\": 2 or 4"});
  refused(
      small({"--fix", "dp=8", "--fix", "micro_batch=8"}),
      {"/global_batch: 32 sequences do not divide by dp 8 x micro_batch 8", "\"micro_batch\": 4"});
  refused(small({"--fix", "schedule=1f1b-interleaved", "--fix", "pp=1"}),
          {"/plan/schedule: interleaving needs at least two stages"});
  refused(small({"--fix", "layout=[1, 2]", "--fix", "pp=2"}), {"/plan/layout"});
  const std::vector<std::string> answers{"plan",     "--mode",   "inference", "--llm", "llama-3-8b",
                                         "--fabric", "hgx-h100", "--gpus",    "6"};
  refused(with(answers, {"--fix", "tp=6"}),
          {"32 attention heads do not divide by tp 6", "\"tp\": 4 or 8"});
}

TEST(PlanCommand, WhatCannotBeIsRefused) {
  const auto refused = [](const std::vector<std::string>& more, const std::string& words) {
    const auto outcome = weft_cli(with(kSmall, more));
    EXPECT_EQ(outcome.code, 2) << outcome.out;
    EXPECT_THAT(outcome.err, HasSubstr(words));
    EXPECT_TRUE(outcome.out.empty());
  };
  refused({"--mode", "inference"}, "--global-batch: only training has it");
  refused({"--mode", "guessing"}, "--mode");
  refused({"--fix", "tpp=8"}, "/plan/tpp: unknown key, did you mean \"tp\"?");
  refused({"--fix", "tp"}, "is not KEY=VALUE");
  refused({"--fix", "tp=2", "--fix", "dp=2", "--fix", "tp=4"},
          "--fix: tp is given twice: number 1 is tp=2, number 3 is tp=4");
  refused({"--job", "/attention=flash2", "--job", "/attention=flash3"},
          "--job: /attention is given twice");
  refused({"--job", "/attention=flash9"}, "flash9");
  refused({"--job", "/gpus=16"}, "/gpus is what --gpus says");
  refused({"--job", "/seq=8192"}, "use --seq");
  refused({"--job", "/plan/tp=8"}, "use --fix");
}

}  // namespace
}  // namespace weft
