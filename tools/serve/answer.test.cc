// SPDX-License-Identifier: Apache-2.0
#include "tools/serve/answer.hpp"

#include <set>
#include <sstream>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "tools/cli/cli.hpp"
#include "tools/cli/simulate.hpp"
#include "tools/serve/estimate.hpp"

namespace weft {
namespace {

const Choices& choices() {
  static const Choices all;
  return all;
}

Json json_of(const HttpReply& reply) {
  Diagnostics out;
  return parse_json(reply.body, "reply", out);
}

TEST(Serve, EveryFabricMakesAScenarioThatReads) {
  ASSERT_GT(choices().fabrics().size(), 20U);
  EXPECT_EQ(choices().left_out(), "");
  for (const FabricChoice& fabric : choices().fabrics()) {
    Question question;
    question.fabric = fabric.name;
    question.bandwidth = 0.5;
    if (fabric.oversubscribes) question.oversubscription = 2;
    Diagnostics out;
    const Json document = choices().scenario(question, out);
    ASSERT_TRUE(out.ok()) << out.text();
    const Scenario scenario = load_scenario(document, "what-if.json", out);
    EXPECT_GE(scenario.fabric.servers * fabric.gpus_per_server, question.gpus) << fabric.name;
    // Every port that the page scales has its new rate.
    for (const FabricChoice::Rate& rate : fabric.rates)
      EXPECT_NE(document.find("fabric")->find("set")->find(rate.pointer), nullptr) << rate.pointer;
  }
}

// What the page offers can be asked: GPUs that have no BF16 compute in FP16, with the attention that they run.
TEST(Serve, OlderGpusAnswerToo) {
  Answerer answerer(choices(), {}, {});
  for (const FabricChoice& fabric : choices().fabrics()) {
    if (fabric.precision == Precision::bf16) continue;
    const HttpReply reply = answerer.answer(fmt::format(
        R"({{"fabric": "{}", "model": "gpt-1536x16", "gpus": {}, "tp": 1, "pp": 1, "dp": {}, "seq": 1024,
             "global_batch": {}, "quick": true}})",
        fabric.name, fabric.gpus_per_server, fabric.gpus_per_server, fabric.gpus_per_server));
    EXPECT_EQ(reply.status, 200) << fabric.name << reply.body.substr(0, 400);
  }
}

TEST(Serve, HalfTheBandwidthIsHalfTheRateOfThePort) {
  Question question;
  question.bandwidth = 0.5;
  Diagnostics out;
  const Json document = choices().scenario(question, out);
  const Json* set = document.find("fabric")->find("set");
  EXPECT_EQ(set->find("/network/link/rate")->text, "200 Gb/s");
}

TEST(Serve, NamesAreThoseOfTheCatalogueOnly) {
  Answerer answerer(choices(), {}, {});
  for (const char* name : {"../../../etc/passwd", "/etc/passwd", "hgx-h100.json", ""}) {
    Json question = Json::object();
    question.set("fabric", name);
    EXPECT_EQ(answerer.answer(to_text(question)).status, 422) << name;
  }
}

TEST(Serve, BrokenRulesNameTheirControl) {
  Answerer answerer(choices(), {}, {});
  const HttpReply reply = answerer.answer(R"({"tp": 3, "dp": 5})");
  ASSERT_EQ(reply.status, 422);
  std::set<std::string> controls;
  const Json json = json_of(reply);
  for (const Json& problem : json.find("problems")->items)
    controls.insert(problem.find("control")->text);
  EXPECT_TRUE(controls.contains("tp")) << reply.body;
  EXPECT_TRUE(controls.contains("dp")) << reply.body;
}

// A key of the scenario that is named like a control, or holds its name, stands for the part that it is in.
TEST(Serve, APlaceOfTheScenarioHasItsControl) {
  const std::pair<const char*, const char*> places[] = {
      {"/tp", "tp"},
      {"/oversubscription", "oversubscription"},
      {"/fabric", "fabric"},
      {"/fabric/server/nodes/2/model/memory", "fabric"},
      {"/fabric/server/nodes/2/model", "fabric"},
      {"/fabric/network/oversubscription", "oversubscription"},
      {"/fabric/network/link/rate", "bandwidth"},
      {"/fabric/set/~1servers", "gpus"},
      {"/jobs/0/model/experts", "model"},
      {"/jobs/0/plan/sp", "tp"},
      {"/jobs/0/plan/layout/0", "pp"},
      {"/jobs/0/plan/schedule", "vpp"},
      {"/jobs/0/plan/recompute", "recompute"},
      {"/jobs/0/plan/recompute_layers", ""},
      {"/jobs/0", ""},
      {"", ""}};
  for (const auto& [pointer, control] : places) EXPECT_EQ(control_of(pointer), control) << pointer;
}

TEST(Serve, TheEstimateGrowsWithTheWork) {
  const Question small;
  Question large = small;
  large.global_batch *= 100;
  EXPECT_GT(estimate(large, 80).seconds, 50 * estimate(small, 80).seconds);
  Question quick = large;
  quick.quick = true;
  EXPECT_LT(estimate(quick, 80).seconds, estimate(large, 80).seconds);
  EXPECT_GT(estimate(large, 800).operations, estimate(large, 80).operations);
}

// The count that a refusal names is that of the run, so that people can believe it.
TEST(Serve, TheEstimateCountsWhatRuns) {
  Answerer answerer(choices(), {}, {});
  for (const char* text :
       {R"({"global_batch": 16})", R"({"tp": 4, "dp": 4, "global_batch": 32})",
        R"({"model": "llama-3-8b", "tp": 2, "pp": 8, "dp": 4, "global_batch": 32})",
        R"({"model": "mixtral-8x7b", "tp": 1, "pp": 4, "dp": 16, "ep": 8, "global_batch": 64})"}) {
    const HttpReply reply = answerer.answer(text);
    ASSERT_EQ(reply.status, 200) << reply.body.substr(0, 300);
    const Json json = json_of(reply);
    const double counted = json.find("report")->find("events")->number;
    const double expected = json.find("estimate")->find("operations")->number;
    EXPECT_LT(expected / counted, 2) << text;
    EXPECT_GT(expected / counted, 0.5) << text;
  }
}

TEST(Serve, WhatIsTooLongIsRefusedBeforeOrWhileItRuns) {
  Answerer answerer(choices(), {.most_seconds = 10}, {});
  const HttpReply before = answerer.answer(R"({"global_batch": 1000000})");
  EXPECT_EQ(before.status, 422);
  EXPECT_GT(json_of(before).find("estimate")->find("seconds")->number, 10);
  // Two GPUs of a server and their neighbours make small classes: far slower than its count of operations.
  Answerer hasty(choices(), {.most_seconds = 0.02}, {});
  const HttpReply within = hasty.answer(
      R"({"model": "llama-3-8b", "tp": 2, "pp": 1, "dp": 32, "global_batch": 64, "quick": true})");
  EXPECT_EQ(within.status, 422) << within.body.substr(0, 300);
  EXPECT_NE(within.body.find("stopped after"), std::string::npos) << within.body;
}

// Nothing is plugged into this program.
TEST(Serve, WithoutALibraryItSaysSo) {
  std::ostringstream out, err;
  EXPECT_EQ(run_cli({"serve"}, out, err), kMissing);
  EXPECT_NE(err.str().find("was not built"), std::string::npos) << err.str();
  EXPECT_EQ(out.str(), "");
}

TEST(Serve, AStopEndsWhatIsComputed) {
  Answerer answerer(choices(), {}, [] { return true; });
  EXPECT_EQ(answerer.answer(R"({"quick": true})").status, 503);
}

}  // namespace
}  // namespace weft
