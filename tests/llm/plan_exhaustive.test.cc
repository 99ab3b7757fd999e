// SPDX-License-Identifier: Apache-2.0
// `weft plan` against a search that leaves nothing out: every legal plan of a small problem that fits the memory is simulated, also
// those that the search holds for never better: GPipe, ZeRO-3, tensor without sequence parallelism, short parts of sequences.
// tests/bench/plan_exhaustive does the same to problems of 64 GPUs.
#include <algorithm>
#include <filesystem>
#include <fstream>
#include <limits>
#include <optional>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "models/llm/memory.hpp"
#include "models/llm/search.hpp"
#include "tests/cli/cli_test.hpp"
#include "tests/support/tiny.hpp"
#include "tools/cli/simulate.hpp"

namespace weft {
namespace {

constexpr double kAllowed = 0.03;
constexpr std::int64_t kGpus = 4;

struct Question {
  const char *name, *model, *fabric;
  std::int64_t seq, batch;
};

// Wide enough that memory decides, and few layers, so that a step is quick to simulate.
const Question kDense{"dense",
                      R"({"weft": {"schema": 1}, "kind": "llm", "name": "wide", "layers": 4,
                          "hidden": 8192, "heads": 64, "kv_heads": 8, "vocabulary": 128256,
                          "intermediate": 28672})",
                      "hgx-h100", 2048, 4};
const Question kExperts{"experts",
                        R"({"weft": {"schema": 1}, "kind": "llm", "name": "experts", "layers": 2,
                            "hidden": 4096, "heads": 32, "kv_heads": 8, "vocabulary": 32000,
                            "intermediate": 14336,
                            "experts": {"count": 8, "top_k": 2, "size": 14336}})",
                        "hgx-a100", 2048, 2};

class Everything {
 public:
  explicit Everything(const Question& question)
      : fabric_(test::catalogue_fabric(question.fabric)), context_(test::context()) {
    context_.library = remembering(context_.library, fabric_);
    Diagnostics out;
    scenario_ = test::scenario_on(
        fabric_,
        fmt::format(R"("jobs": [{{"kind": "training", "gpus": {}, "model": {}, "seq": {},
                                  "global_batch": {}, "plan": {{}}}}])",
                    kGpus, question.model, question.seq, question.batch),
        out);
    out.throw_if_errors();
    training_ = *scenario_.jobs.front().training;
    model_.emplace(training_.model);
    memory_ = fabric_.gpu_spec(fabric_.gpus().front()).memory->value();
  }

  // Seconds of the fastest.
  double best() {
    PlanSpec& plan = training_.plan;
    for (const std::int64_t tp : divisors(kGpus, kGpus)) {
      for (const std::int64_t cp : divisors(kGpus / tp, kGpus)) {
        for (const std::int64_t pp : divisors(kGpus / (tp * cp), kGpus)) {
          for (const bool sp : {false, true}) {
            plan = {.tp = tp, .pp = pp, .cp = cp, .sp = sp};
            experts();
          }
        }
      }
    }
    return best_;
  }
  std::uint64_t simulated() const { return simulated_; }

 private:
  void experts() {
    const auto& experts = model_->spec().experts;
    for (const std::int64_t ep : divisors(experts ? experts->count : 1, kGpus)) {
      for (const std::int64_t etp : {0, 1}) {
        if (etp == 1 && !experts) continue;
        training_.plan.ep = ep;
        training_.plan.etp = etp;
        schedules();
      }
    }
  }

  void schedules() {
    PlanSpec& plan = training_.plan;
    for (const std::int64_t micro_batch : divisors(training_.global_batch, 64)) {
      plan.micro_batch = micro_batch;
      for (const auto& name : enum_names(PipelineSchedule{})) {
        plan.schedule = name.value;
        if (plan.pp == 1 && plan.schedule != PipelineSchedule::one_f_one_b) continue;
        for (plan.vpp = 1; plan.vpp <= model_->layers(); ++plan.vpp) {
          for (const char* layout : {"", "with-ends"}) {
            plan.layout = *layout == 0 ? Json() : Json(layout);
            sharding();
          }
        }
      }
    }
  }

  void sharding() {
    PlanSpec& plan = training_.plan;
    for (const Recompute recompute : {Recompute::none, Recompute::selective, Recompute::full}) {
      plan.recompute = recompute;
      plan.fsdp.reset();
      for (plan.zero = 0; plan.zero <= 3; ++plan.zero) simulate();
      plan.zero = 0;
      plan.fsdp.emplace();
      simulate();
      plan.fsdp->reshard = plan.fsdp->reduce_every_micro_batch = false;
      simulate();
      plan.fsdp.reset();
    }
  }

  void simulate() {
    training_.plan.dp.reset();
    if (!legal_plan(*model_, training_)) return;
    // One replica shards nothing.
    if (*training_.plan.dp * training_.plan.cp == 1 &&
        (training_.plan.zero > 0 || training_.plan.fsdp))
      return;
    Diagnostics out;
    for (const MemoryUse& stage :
         training_memory(*model_, training_, stage_layout(*model_, training_.plan, out)))
      if (stage.total() > memory_) return;
    scenario_.jobs.front().training->plan = training_.plan;
    const Report report = run_on(fabric_, scenario_, context_, out);
    const double step = report.jobs.front().details.find("step_time_s")->number;
    ++simulated_;
    best_ = std::min(best_, step);
  }

  Fabric fabric_;
  RunContext context_;
  Scenario scenario_;
  TrainingSpec training_;
  std::optional<Architecture> model_;
  double memory_ = 0, best_ = std::numeric_limits<double>::infinity();
  std::uint64_t simulated_ = 0;
};

void compare(const Question& question) {
  const std::string path = testing::TempDir() + "/weft-" + question.name + ".json";
  std::ofstream(path) << question.model;
  const auto outcome = cli_test::weft_cli(
      {"plan", "--llm", path, "--fabric", question.fabric, "--gpus", std::to_string(kGpus), "--seq",
       std::to_string(question.seq), "--global-batch", std::to_string(question.batch), "--json"});
  std::filesystem::remove(path);
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  const Json found = cli_test::document(outcome);
  Everything everything(question);
  const double best = everything.best();
  EXPECT_GT(everything.simulated(), found.find("candidates_tried")->number);
  const Json& first = found.find("plans")->items.front();
  const double loss = first.find("step_time_s")->number / best - 1;
  EXPECT_GT(loss, -1e-9) << "a plan that was thought illegal: " << to_text(*first.find("plan"), 0);
  EXPECT_LT(loss, kAllowed) << everything.simulated() << " plans, the best takes " << best << " s";
}

TEST(PlanSearch, FindsTheBestOfAllLegalPlans) { compare(kDense); }
TEST(PlanSearch, FindsTheBestOfAllLegalPlansOfExperts) { compare(kExperts); }

}  // namespace
}  // namespace weft
