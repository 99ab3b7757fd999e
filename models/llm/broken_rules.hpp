// SPDX-License-Identifier: Apache-2.0
// Why a search finds no legal plan: of the plans that it could have tried those that break the fewest rules, and these rules,
// each with what would keep it. Between plans that break as many, a batch that lies closer to a legal one comes first.
#pragma once

#include <cstdint>
#include <limits>
#include <vector>

#include "models/llm/plan.hpp"

namespace weft {

struct BrokenRule {
  Problem problem;          // its pointer counts from the job
  PlanSpec plan;            // the first that breaks it so
  std::uint64_t plans = 0;  // that come as close and break a rule of this key
};

class BrokenRules {
 public:
  // `training`: everything but the plan.
  BrokenRules(const Architecture& model, TrainingSpec training);

  void try_plan(const PlanSpec& plan);
  // Of the plans that come closest; the rule that most of them break first.
  const std::vector<BrokenRule>& closest() const { return closest_; }

 private:
  struct Distance {
    std::size_t rules = std::numeric_limits<std::size_t>::max();
    double batch = 0;  // to the next legal one, relative
    auto operator<=>(const Distance&) const = default;
  };

  const Architecture& model_;
  TrainingSpec training_;
  Distance least_;
  std::vector<BrokenRule> closest_;
};

}  // namespace weft
