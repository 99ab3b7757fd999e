// SPDX-License-Identifier: Apache-2.0
// Links that go down while jobs run, and what is sent another way once that is known: all jobs are planned again on the machine
// as it is then, and each operation takes the way that it has there.
#include <algorithm>
#include <map>
#include <set>

#include <fmt/format.h>

#include "sim/run/jobs.hpp"

namespace weft {
namespace {

constexpr std::size_t kMostReroutes = 16;  // different machines; each is a plan of all jobs

bool same_operations(const Workload& a, const Workload& b) {
  if (a.operations.size() != b.operations.size()) return false;
  for (std::uint32_t i = 0; i < a.operations.size(); ++i) {
    const Operation &x = a.operations[OpId{i}], &y = b.operations[OpId{i}];
    if (x.kind != y.kind || x.size != y.size || x.waits_for != y.waits_for) return false;
  }
  return true;
}

}  // namespace

struct JobBuilder::Other {
  explicit Other(const JobBuilder& first)
      : builder(first.fabric_, first.planned_on_, first.scenario_, first.algorithms_,
                first.library_, first.models_,
                collective_planner(first.planned_on_, first.scenario_, first.algorithms_,
                                   first.library_),
                first.make_network_, first.progress_, problems) {}
  Diagnostics problems;
  JobBuilder builder;
};

// When each link is left out of new ways: from the time at which its loss is known until its repair is.
void JobBuilder::plan_reroutes() {
  struct Turn {
    Time when;
    bool lost;
    const FaultSpec* fault;
  };
  std::vector<Turn> turns;
  const auto folds = [](const JobPlan& job) { return job.modelled != nullptr; };
  for (const FaultSpec& fault : scenario_.faults) {
    if (!fault.reroutes()) continue;
    if (std::ranges::any_of(jobs_, folds)) {
      return error(fault.place, fault.pointer, "not yet: training jobs that route around a fault",
                   "leave \"detect\" and \"reroute\" out");
    }
    turns.push_back({fault.at + fault.until_rerouted(), true, &fault});
    if (fault.until) turns.push_back({*fault.until + fault.until_rerouted(), false, &fault});
  }
  std::ranges::stable_sort(turns, {}, &Turn::when);
  std::map<std::set<LinkId>, const Workload*> known = {{{}, &workload_}};
  std::multiset<LinkId> lost;
  for (std::size_t i = 0; i < turns.size(); ++i) {
    const FaultSpec& fault = *turns[i].fault;
    for (const LinkId l : links_of(fault)) {
      if (turns[i].lost) {
        lost.insert(l);
      } else {
        lost.erase(lost.find(l));
      }
    }
    if (i + 1 < turns.size() && turns[i + 1].when == turns[i].when) continue;
    const std::set<LinkId> without(lost.begin(), lost.end());
    const Workload*& plan = known[without];
    if (plan == nullptr) plan = plan_without(without, fault);
    if (plan == nullptr) return;
    reroutes_.push_back({turns[i].when, plan});
  }
}

const Workload* JobBuilder::plan_without(const std::set<LinkId>& links, const FaultSpec& fault) {
  if (others_.size() == kMostReroutes) {
    error(fault.place, fault.pointer, fmt::format("more than {} machines in turn", kMostReroutes),
          "give fewer faults that are rerouted");
    return nullptr;
  }
  others_.push_back(std::make_shared<Other>(*this));
  const Diagnostics& problems = others_.back()->problems;
  JobBuilder& other = others_.back()->builder;
  for (const LinkId l : links) other.routes_.network().set_down(l, true);
  other.plan();
  if (!problems.ok()) {
    const Problem& first =
        *std::ranges::find(problems.problems(), Problem::Severity::error, &Problem::severity);
    error(fault.place, fault.pointer, "no way around it: " + first.fact,
          "leave \"detect\" and \"reroute\" out, so that what needs the link waits for it");
    return nullptr;
  }
  if (!same_operations(workload_, other.workload_)) {
    error(fault.place, fault.pointer,
          "not yet: a fault in mid-run after which a collective runs by other steps",
          "name an \"algorithm\" and \"channels\" that do not depend on the network");
    return nullptr;
  }
  return &other.workload_;
}

}  // namespace weft
