// SPDX-License-Identifier: Apache-2.0
#include "models/llm/broken_rules.hpp"

#include <algorithm>

namespace weft {
namespace {

double batch_distance(const TrainingSpec& training) {
  const std::int64_t together = training.plan.dp.value_or(1) * training.plan.micro_batch;
  const std::int64_t beyond = training.global_batch % together;
  const std::int64_t above = beyond == 0 ? 0 : together - beyond;
  const std::int64_t below = training.global_batch > beyond ? beyond : above;
  return static_cast<double>(std::min(above, below)) / static_cast<double>(training.global_batch);
}

}  // namespace

BrokenRules::BrokenRules(const Architecture& model, TrainingSpec training)
    : model_(model), training_(std::move(training)) {
  training_.pointer.clear();
}

void BrokenRules::try_plan(const PlanSpec& plan) {
  training_.plan = plan;
  Diagnostics found;
  check_plan(model_, training_, found);
  const Distance here{found.error_count(), batch_distance(training_)};
  if (here.rules == 0 || here > least_) return;
  if (here < least_) closest_.clear();
  least_ = here;
  for (const Problem& problem : found.problems()) {
    const auto same = std::ranges::find(
        closest_, problem.pointer, [](const BrokenRule& rule) { return rule.problem.pointer; });
    if (same == closest_.end())
      closest_.push_back({problem, plan, 1});
    else
      ++same->plans;
  }
  std::ranges::stable_sort(closest_, std::ranges::greater{}, &BrokenRule::plans);
}

}  // namespace weft
