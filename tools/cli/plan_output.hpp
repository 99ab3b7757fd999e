// SPDX-License-Identifier: Apache-2.0
// What `weft plan` found, for people and for programs.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "models/llm/search.hpp"
#include "sim/core/json.hpp"

namespace weft {

struct RankedPlan {
  PlanCandidate candidate;
  std::optional<double> simulated_s;  // of the fluid level
  double mfu = 0;
  double step_s() const { return simulated_s.value_or(candidate.time.step_s); }
};

// Keys that a scenario's "plan" takes.
Json plan_document(const PlanSpec& plan, bool experts);
// "tp 8 pp 16 dp 128": how the GPUs are divided.
std::string shape_words(const PlanSpec& plan, bool experts);
// The same and all else: "..., micro_batch 1, zero 1, 1f1b".
std::string plan_words(const PlanSpec& plan, bool experts);

struct TimePart {
  std::string name;
  double seconds = 0;
};
// The largest of what is not computing: "bubble 9.1 %", "tp 4.0 %"; "computing" when all of it is less than 0.05 %.
std::string costs_most(std::span<const TimePart> waiting, double whole);
// Where the second spends more (or less) than the first, largest first: "bubble +2.1 %, tp -0.3 %".
std::string difference(const StepEstimate& first, const StepEstimate& second);

// Throws an InputError of the rules that keep the closest plans from being legal.
[[noreturn]] void refuse_all(const std::vector<BrokenRule>& broken, bool experts);

Json plan_row(const RankedPlan& row, bool experts);
std::string plan_table(const std::vector<RankedPlan>& rows, bool experts, double capacity);

}  // namespace weft
