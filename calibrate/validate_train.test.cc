// SPDX-License-Identifier: Apache-2.0
#include "calibrate/validate_train.hpp"

#include <deque>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "calibrate/validate_train_page.hpp"
#include "calibrate/validate_train_read.hpp"
#include "models/catalog.hpp"
#include "models/llm/flops.hpp"
#include "tests/support/fabric_text.hpp"

namespace weft {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

const std::string kModel =
    R"({"weft": {"schema": 1}, "kind": "llm", "name": "tiny", "summary": "", "layers": 4, "hidden": 1024,
        "heads": 8, "vocabulary": 1000, "intermediate": 4096, "mlp": "plain", "tied": true})";

std::string record(const std::string& id, const std::string& more, const std::string& data) {
  return fmt::format(
      R"({{"id": "{}", "set": "s", "weft": {{"kind": "train", "fabric": "hgx-a100", "gpus": 8, "model": {},
          "seq": 2048, "global_batch": 16{}}}, {}}})",
      id, kModel, more, data);
}

std::string file_of(const std::vector<std::string>& records, const std::string& more = "") {
  std::string out = R"({"records": [)";
  for (std::size_t i = 0; i < records.size(); ++i) out += (i > 0 ? ", " : "") + records[i];
  return out + "]" + more + "}";
}

Dataset& read(const std::string& text, std::string* problems = nullptr) {
  static std::deque<Dataset> alive;  // results point into their dataset
  Dataset& dataset = alive.emplace_back();
  Diagnostics diagnostics;
  read_validation_file(parse_json(text, "r.json", diagnostics), dataset, diagnostics);
  if (problems != nullptr)
    *problems = diagnostics.text();
  else
    EXPECT_EQ(diagnostics.text(), "");
  return dataset;
}

std::string problems_of(const std::string& record) {
  std::string out;
  read(file_of({record}), &out);
  return out;
}

std::shared_ptr<const Fabric> real_fabric(const std::string& name, const Json&, std::int64_t) {
  return std::make_shared<const Fabric>(testing::catalogue_fabric(name, link_classes()));
}

// A machine that does 100 TFLOP/s of what the hardware does, whatever the plan; asks the scenario for its numbers.
TrainingAnswer constant_machine(const Fabric&, const Json& scenario) {
  const Json& job = scenario.find("jobs")->items.at(0);
  Diagnostics out;
  TrainingAnswer answer;
  answer.model = read_llm(*job.find("model"), "/model", out);
  EXPECT_TRUE(out.ok()) << out.text();
  answer.step_time_s = hardware_flops(Architecture(answer.model), job.find("seq")->integer,
                                      job.find("global_batch")->integer, Recompute::none) /
                       100e12 / static_cast<double>(job.find("gpus")->integer);
  return answer;
}

ValidationResult run(const Dataset& dataset) {
  return validate(dataset, {.fabric = real_fabric, .train = constant_machine});
}

TEST(TrainCase, IsReadWithItsPlanAndItsUnit) {
  const Dataset& dataset =
      read(file_of({record("r", R"(, "plan": {"tp": 4, "fsdp": {}}, "dtype": {"compute": "fp16"},
                         "attention": "flash1", "measure": "iteration_s", "assumed": ["/attention", "/plan/tp"])",
                           R"("value": 250, "unit": "ms")")}));
  const ValidationRecord& read = dataset.records.at(0);
  EXPECT_EQ(read.train.plan.tp, 4);
  EXPECT_TRUE(read.train.plan.fsdp.has_value());
  EXPECT_EQ(read.train.dtype.compute, Precision::fp16);
  EXPECT_EQ(read.train.attention, AttentionKernel::flash1);
  EXPECT_DOUBLE_EQ(read.rows.at(0).measured, 0.25);
  EXPECT_EQ(read.rows.at(0).gpus, 8);
}

TEST(TrainCase, ATableHasOneRowPerNumberOfGpus) {
  const Dataset& dataset = read(file_of({record(
      "r", R"(, "measure": "tokens_per_s_per_gpu", "column": "tgs")",
      R"("columns": ["n_gpus", "global_batch", "tgs"], "rows": [[8, 16, 100], [16, 32, 90], [32, 64, null]])")}));
  const ValidationRecord& read = dataset.records.at(0);
  ASSERT_EQ(read.rows.size(), 2U);
  EXPECT_EQ(read.missing, 1U);
  EXPECT_EQ(read.rows[1].gpus, 16);
  EXPECT_EQ(read.rows[1].global_batch, 32);
  EXPECT_EQ(read.rows[1].label, "16 gpus");
}

TEST(TrainCase, EveryMistakeHasItsPlaceAndCure) {
  const std::string good = R"(, "measure": "mfu")", value = R"("value": 0.5)";
  EXPECT_EQ(problems_of(record("r", good, value)), "");
  EXPECT_THAT(problems_of(record("r", "", value)), HasSubstr("the key \"measure\" is missing"));
  EXPECT_THAT(problems_of(record("r", R"(, "measure": "tokens")", value)),
              HasSubstr("tokens_per_s_per_gpu"));
  EXPECT_THAT(problems_of(record("r", good + R"(, "plan": {"tpp": 8})", value)),
              AllOf(HasSubstr("/records/0/weft/plan/tpp"), HasSubstr("did you mean \"tp\"?")));
  EXPECT_THAT(problems_of(record("r", good + R"(, "assumed": ["/attention"])", value)),
              HasSubstr("the case has no value at \"/attention\""));
  EXPECT_THAT(problems_of(record("r", good + R"(, "assumed": ["attention"])", value)),
              HasSubstr("no value at"));
  EXPECT_THAT(problems_of(record("r", good, R"("value": 50, "unit": "tokens/s")")),
              HasSubstr("\"tokens/s\" is not a unit of mfu"));
  EXPECT_THAT(problems_of(record("r", good, R"("value": -1)")), HasSubstr("number above 0"));
  EXPECT_THAT(problems_of(record("r", good, R"("note": "x")")),
              HasSubstr("nothing to compare with"));
  EXPECT_THAT(problems_of(record("r", good, R"("columns": ["mfu"], "rows": [[0.5], [0.4, 1]])")),
              HasSubstr("a row has 1 cells"));
  EXPECT_THAT(problems_of(record("r", good, R"("columns": ["x"], "rows": [[0.5]])")),
              HasSubstr("which column is mfu?"));
  std::string unsized = record("r", good, value);
  unsized.replace(unsized.find(R"("gpus": 8, )"), 11, "");
  EXPECT_THAT(problems_of(unsized), HasSubstr("the number of GPUs is not known"));
}

TEST(JobServers, HaveTheSameNumberOfGpusEach) {
  using Shape = std::pair<std::int64_t, std::int64_t>;
  const auto shape = [](std::int64_t gpus, std::int64_t most) {
    const JobServers out = spread_evenly(gpus, most);
    return Shape{out.servers, out.gpus_per_server};
  };
  EXPECT_EQ(shape(8, 8), (Shape{1, 8}));
  EXPECT_EQ(shape(2, 8), (Shape{1, 2}));
  EXPECT_EQ(shape(12, 8), (Shape{2, 6}));
  EXPECT_EQ(shape(256, 72), (Shape{4, 64}));
  EXPECT_EQ(shape(1024, 72), (Shape{16, 64}));
  EXPECT_EQ(shape(11, 8), (Shape{2, 8}));  // a prime: eight and three
}

TEST(TrainScenario, SaysWhatTheCaseSaysAndNoMore) {
  const Dataset& dataset = read(file_of({record(
      "r", R"(, "set": {"/network/routing": "ecmp"}, "plan": {"ep": 8}, "dispatcher": "deepep",
                         "routing": "dropped", "graphs": true, "measure": "mfu")",
      R"("value": 0.5)")}));
  const ValidationRecord& read = dataset.records.at(0);
  const Json scenario = train_scenario(read, read.rows.at(0), {4, 2});
  EXPECT_EQ(to_text(*scenario.find("fabric"), 0),
            R"({"use": "hgx-a100", "set": {"/network/routing": "ecmp", "/servers": 4}})");
  const Json& job = scenario.find("jobs")->items.at(0);
  EXPECT_EQ(to_text(*job.find("plan"), 0),
            R"({"ep": 8, "dispatcher": "deepep", "expert_capacity": 1})");
  EXPECT_EQ(to_text(*job.find("placement"), 0), R"({"gpus_per_server": 2})");
  EXPECT_TRUE(job.find("graphs")->boolean);
  EXPECT_EQ(job.find("gpus")->integer, 8);
  EXPECT_EQ(job.find("attention"), nullptr);
  EXPECT_EQ(job.find("model")->find("name")->text, "tiny");
}

// One speed, told in four ways: each measure's prediction follows from the same step.
TEST(TrainMeasures, AreOneStepTimeInFourUnits) {
  const auto data = [](const std::string& value) { return "\"value\": " + value; };
  const Dataset& dataset = read(file_of(
      {record("tokens", R"(, "measure": "tokens_per_s_per_gpu")", data("1")),
       record("time", R"(, "measure": "iteration_s")", data("1")),
       record("tflops", R"(, "measure": "tflops_per_gpu", "flops_convention": "6n")", data("1")),
       record("mfu", R"(, "measure": "mfu", "flops_convention": "palm")", data("1"))}));
  const ValidationResult result = run(dataset);
  const auto row = [&](std::size_t i) { return result.records.at(i).rows.at(0); };
  const double step = row(1).predicted, tokens = 2048.0 * 16 / 8 / step;
  EXPECT_DOUBLE_EQ(row(0).predicted, tokens);
  EXPECT_DOUBLE_EQ(row(1).step_time_s, step);
  // 12 layers x hidden^2 x 4 and the tied embedding, as the 6N convention counts them.
  Diagnostics out;
  const Architecture model(read_llm(parse_json(kModel, "m", out), "", out));
  EXPECT_DOUBLE_EQ(
      row(2).predicted,
      training_flops(model, FlopsConvention::six_n, 2048, 16, false) / 8 / step * 1e-12);
  EXPECT_DOUBLE_EQ(row(3).predicted, training_flops(model, FlopsConvention::palm, 2048, 16, false) /
                                         8 / step / 312e12);
  EXPECT_EQ(result.records[3].precision, "bf16");
}

// The baseline is fitted on what is not held out, and its error does not depend on what weft predicts.
TEST(Baseline, IsAConstantRateOfTheRowsThatAreNotHeldOut) {
  const auto at = [](double tflops, const std::string& id, bool held_out) {
    std::string out =
        record(id, R"(, "measure": "tokens_per_s_per_gpu")", fmt::format("\"value\": {}", tflops));
    return held_out ? out.insert(1, "\"held_out\": true, ") : out;
  };
  const Dataset& dataset = read(file_of({at(1, "probe", false)}));
  const double at_100 = run(dataset).records.at(0).rows.at(0).predicted;  // tokens/s at 100 TFLOP/s
  const ValidationResult result =
      run(read(file_of({at(at_100, "a", false), at(1.2 * at_100, "b", false),
                        at(0.5 * at_100, "c", false), at(2 * at_100, "d", true)})));
  const auto baseline = [&](std::size_t i) {
    return result.records.at(i).rows.at(0).baseline_error;
  };
  EXPECT_NEAR(baseline(0), 0, 1e-12);  // the median of a, b, c
  EXPECT_NEAR(baseline(1), 1 / 1.2 - 1, 1e-12);
  EXPECT_NEAR(baseline(3), -0.5, 1e-12);
  ASSERT_TRUE(result.sets.at(0).baseline.has_value());
  const auto held_out = std::ranges::find_if(
      result.training, [](const GroupResult& group) { return group.by == "held out"; });
  ASSERT_NE(held_out, result.training.end());
  EXPECT_EQ(held_out->name, "small sets, ampere");
  EXPECT_EQ(held_out->figures.rows, 1U);
  EXPECT_NEAR(held_out->baseline->median, 0.5, 1e-12);
}

TEST(Ratios, AreOfThroughputsWhateverTheMeasure) {
  const std::string ratios = R"(, "ratios": [
    {"name": "grow", "kind": "scaling", "base": "r@8 gpus", "rows": ["r@16 gpus"]},
    {"name": "tune", "kind": "setting", "base": "a", "rows": ["b", "absent"]}])";
  const Dataset& dataset = read(file_of(
      {record(
           "r", R"(, "measure": "tokens_per_s_per_gpu")",
           R"("columns": ["n_gpus", "global_batch", "tokens_per_s_per_gpu"], "rows": [[8, 16, 100], [16, 32, 80]])"),
       record("a", R"(, "measure": "iteration_s")", R"("value": 2)"),
       record("b", R"(, "measure": "iteration_s")", R"("value": 1.6)")},
      ratios));
  ValidationContext context{.fabric = real_fabric, .train = constant_machine};
  const ValidationResult result = validate(dataset, context);
  ASSERT_EQ(result.records.at(0).failure, "");
  ASSERT_EQ(result.ratios.size(), 2U);
  const RatioRow& grow = result.ratios[0].rows.at(0);
  EXPECT_NEAR(grow.predicted, 1, 1e-12);
  EXPECT_NEAR(grow.measured, 0.8, 1e-12);
  EXPECT_NEAR(grow.error, 0.25, 1e-12);
  ASSERT_EQ(result.ratios[1].rows.size(), 1U);  // the absent one is left out
  const RatioRow& tune = result.ratios[1].rows.at(0);
  EXPECT_NEAR(tune.measured, 1.25, 1e-12);  // less time is more throughput
  EXPECT_NEAR(tune.error, -0.25, 1e-12);
  EXPECT_NEAR(result.scaling.median, 0.25, 1e-12);
  EXPECT_NEAR(result.setting.median, 0.25, 1e-12);
}

TEST(TrainPage, ShowsErrorsBesideTheConstantRateRatiosAndReasons) {
  std::string off = record("off", R"(, "measure": "tokens_per_s_per_gpu")", R"("value": 1)");
  off.insert(1, R"("reason": "the host was slow", )");
  const Dataset& dataset = read(file_of(
      {off, record("near", R"(, "measure": "tokens_per_s_per_gpu")", R"("value": 100000)")},
      R"(, "ratios": [{"name": "tune", "kind": "setting", "base": "off", "rows": ["near"]}])"));
  const std::string page = training_section(run(dataset), "plots");
  EXPECT_THAT(page, AllOf(HasSubstr("constant rate: median"), HasSubstr("| set | s | 2 |"),
                          HasSubstr("the host was slow"), HasSubstr("| tune | near |")));
  const std::string worst = page.substr(page.find("### Worst"));
  EXPECT_LT(worst.find("| off |"), worst.find("| near |"));
  EXPECT_EQ(training_section(ValidationResult{}, "plots"), "");
}

TEST(TrainRecords, FailAloneWhenTheyCannotBeRun) {
  const Dataset& dataset = read(file_of({record("r", R"(, "measure": "mfu")", R"("value": 0.5)")}));
  const ValidationResult result = validate(dataset, {.fabric = real_fabric});
  EXPECT_THAT(result.records.at(0).failure, HasSubstr("not yet"));
  EXPECT_TRUE(result.records.at(0).rows.empty());
}

}  // namespace
}  // namespace weft
