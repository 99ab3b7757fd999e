// SPDX-License-Identifier: Apache-2.0
#include "tools/cli/plan_inference.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "models/llm/plan.hpp"
#include "tools/cli/plan_output.hpp"
#include "tools/cli/simulate.hpp"

namespace weft {
namespace {

double number(const Json& details, std::initializer_list<std::string_view> keys) {
  const Json* at = &details;
  for (const std::string_view key : keys) {
    at = at->find(key);
    if (at == nullptr) return 0;
  }
  return at->number;
}

// Plans worth looking at, legal or not.
std::vector<PlanSpec> candidates(const InferenceSpec& spec, const SearchLimits& limits) {
  const auto choices = [&](const char* key, std::int64_t fixed, std::vector<std::int64_t> free) {
    return limits.fixed.contains(key) ? std::vector{fixed} : std::move(free);
  };
  const bool experts = spec.model.experts.has_value();
  const std::int64_t inside = limits.tp_across_servers ? spec.gpus : limits.gpus_per_server;
  std::vector<PlanSpec> out;
  for (const std::int64_t tp : choices("tp", spec.plan.tp, divisors(spec.gpus, inside))) {
    if (spec.gpus % tp != 0) continue;
    const auto stages = divisors(spec.gpus / tp, spec.model.layers);
    for (const std::int64_t pp : choices("pp", spec.plan.pp, stages)) {
      const std::int64_t stage = spec.gpus / std::max<std::int64_t>(pp, 1);
      const auto spread =
          experts ? divisors(stage, spec.model.experts->count) : std::vector{std::int64_t{1}};
      for (const std::int64_t ep : choices("ep", spec.plan.ep, spread)) {
        std::vector<std::int64_t> columns{0};
        if (experts && tp > 1) columns.push_back(1);
        for (const std::int64_t etp : choices("etp", spec.plan.etp, columns)) {
          PlanSpec& plan = out.emplace_back(spec.plan);
          plan.tp = tp, plan.pp = pp, plan.ep = ep, plan.etp = etp;
          if (!limits.fixed.contains("dp")) plan.dp.reset();
        }
      }
    }
  }
  return out;
}

// GPUs that only read prompts are whole replicas, with experts of their own.
bool prompts_apart(const ServingSpec& serving, const PlanSpec& plan) {
  if (serving.prefill_gpus == 0) return true;
  return serving.prefill_gpus % (plan.tp * plan.pp) == 0 &&
         (plan.ep == 1 || plan.ep * plan.expert_tp() <= plan.tp);
}

// What the replicas' time goes to.
std::string bottleneck(const Json& details) {
  std::vector<TimePart> waiting;
  for (const char* part : {"tp", "ep", "pp"})
    waiting.push_back({part, number(details, {"time_share", part})});
  return costs_most(waiting, 1);
}

}  // namespace

ServedPlans search_served(const Fabric& fabric, Scenario scenario, const SearchLimits& limits,
                          const RunContext& context, Progress& progress, Diagnostics& diagnostics) {
  InferenceSpec& spec = *scenario.jobs.front().inference;
  spec.gpus = *scenario.jobs.front().gpus;
  spec.global_batch = spec.gpus;  // of no meaning here; a multiple of every number of replicas
  const Architecture model(spec.model);
  const bool level = spec.serving.slo.ttft || spec.serving.slo.tpot;
  ServedPlans out;
  std::vector<PlanSpec> legal;
  BrokenRules rules(model, spec);
  for (PlanSpec& plan : candidates(spec, limits)) {
    TrainingSpec trial = spec;
    trial.plan = plan;
    rules.try_plan(plan);
    if (legal_plan(model, trial) && prompts_apart(spec.serving, trial.plan))
      legal.push_back(std::move(trial.plan));
    else
      ++out.illegal;
  }
  if (legal.empty()) out.broken = rules.closest();
  double least = 0;
  for (PlanSpec& plan : legal) {
    progress.show(fmt::format("plan {} of {}", ++out.tried, legal.size()));
    spec.plan = plan;
    JobReport job = run_on(fabric, scenario, context, diagnostics).jobs.front();
    Json& details = job.details;
    if (const Json* fits = details.find("fits"); fits != nullptr && !fits->boolean) {
      ++out.too_large;
      const double needs = number(details, {"memory_bytes_per_gpu", "total"});
      if (!out.smallest.empty() && needs >= least) continue;
      least = needs;
      out.smallest = fmt::format("{}: {}", shape_words(plan, spec.model.experts.has_value()),
                                 job.notes.empty() ? "" : job.notes.front());
      continue;
    }
    const double rate = number(details, {level ? "goodput_at_slo" : "output_tokens_per_s"});
    out.best.push_back({std::move(plan), std::move(details), rate});
  }
  // Where none is in time, by what they write.
  std::ranges::stable_sort(out.best, std::ranges::greater{}, [](const ServedPlan& row) {
    return std::pair{row.rate, number(row.details, {"output_tokens_per_s"})};
  });
  return out;
}

Json served_plan(const PlanSpec& plan, bool experts) {
  Json out = Json::object();
  out.set("tp", plan.tp);
  out.set("pp", plan.pp);
  out.set("dp", *plan.dp);
  if (experts) {
    out.set("ep", plan.ep);
    out.set("etp", plan.expert_tp());
  }
  return out;
}

Json served_row(const ServedPlan& row, bool experts) {
  Json out = Json::object();
  out.set("plan", served_plan(row.plan, experts));
  for (const std::string_view key : {"output_tokens_per_s", "requests_per_s", "goodput_at_slo",
                                     "ttft_s", "tpot_s", "e2e_s", "mfu"}) {
    if (const Json* value = row.details.find(key)) out.set(key, *value);
  }
  out.set("memory_bytes", number(row.details, {"memory_bytes_per_gpu", "total"}));
  out.set("bottleneck", bottleneck(row.details));
  return out;
}

std::string served_table(const std::vector<ServedPlan>& rows, bool experts, bool service_level) {
  Table table({"tokens/s", service_level ? "in time/s" : "requests/s", "first token p50", "p99",
               "further p50", "memory", "costs most", "plan"});
  const auto ms = [](double seconds) { return fmt::format("{:.4g} ms", 1e3 * seconds); };
  for (const ServedPlan& row : rows) {
    const Json& d = row.details;
    table.row(
        {fmt::format("{:.4g}", number(d, {"output_tokens_per_s"})),
         fmt::format("{:.4g}", number(d, {service_level ? "goodput_at_slo" : "requests_per_s"})),
         ms(number(d, {"ttft_s", "p50"})), ms(number(d, {"ttft_s", "p99"})),
         ms(number(d, {"tpot_s", "p50"})),
         fmt::format("{:.1f} of {:.0f} GB", number(d, {"memory_bytes_per_gpu", "total"}) / 1e9,
                     number(d, {"memory_bytes_per_gpu", "capacity"}) / 1e9),
         bottleneck(d), shape_words(row.plan, experts)});
  }
  return table.text();
}

}  // namespace weft
