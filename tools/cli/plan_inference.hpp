// SPDX-License-Identifier: Apache-2.0
// weft plan --mode inference: every legal split of the GPUs into replicas answers the same requests in simulation; the order is
// that of what they answer in time.
//
// Enumerated: tp (within a server unless asked for), pp, ep and etp of models with experts; replicas are what the GPUs leave.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "models/llm/search.hpp"
#include "sim/core/json.hpp"
#include "sim/run/run.hpp"
#include "sim/run/scenario.hpp"
#include "tools/cli/terminal.hpp"

namespace weft {

struct ServedPlan {
  PlanSpec plan;
  Json details;     // keys of an inference job's report
  double rate = 0;  // requests per second within the service level; without one tokens written
};

struct ServedPlans {
  std::vector<ServedPlan> best;  // highest rate first
  std::uint64_t tried = 0, too_large = 0, illegal = 0;
  std::string smallest;            // what the plan that needs least lacks, when none fits
  std::vector<BrokenRule> broken;  // when no plan is legal
};

// The scenario's first job is the inference job; its plan holds what is fixed.
ServedPlans search_served(const Fabric& fabric, Scenario scenario, const SearchLimits& limits,
                          const RunContext& context, Progress& progress, Diagnostics& diagnostics);

// Keys that a scenario's "plan" takes.
Json served_plan(const PlanSpec& plan, bool experts);
Json served_row(const ServedPlan& row, bool experts);
std::string served_table(const std::vector<ServedPlan>& rows, bool experts, bool service_level);

}  // namespace weft
