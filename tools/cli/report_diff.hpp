// SPDX-License-Identifier: Apache-2.0
// Two reports compared.
//
//   input       values of the effective scenario that are not the same, by JSON pointer; its name and question aside
//   figures     numbers of the result: of the run and of the jobs both have
//   resources   what limits: the gain if infinitely fast of each kind of link, before and after. One that gains in the second
//               and not in the first has moved onto the critical path, the other way round it has left it.
//   steps       operations' resources on the critical path, where the reports have one: time spent on each
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "sim/core/diagnostics.hpp"
#include "sim/core/json.hpp"

namespace weft {

struct InputChange {
  std::string pointer;
  std::optional<std::string> before, after;  // as JSON; absent where the file has no such value
};

struct FigureChange {
  std::string name;  // "time_s", "jobs/train/exposed_comm_s/dp"
  double before = 0, after = 0;
};

struct ResourceChange {
  enum class Move { none, onto, off };
  std::string resource;
  double gain_before_s = 0, gain_after_s = 0;
  double share_before = 0, share_after = 0;
  double path_before_s = 0, path_after_s = 0;  // on the critical path itself
  Move move = Move::none;
};

struct ReportDiff {
  std::vector<InputChange> input;
  std::vector<FigureChange> figures;
  std::vector<ResourceChange> resources;
  std::vector<std::string> jobs_before, jobs_after;  // that the other report has not
  bool same_result = false;                          // equal fingerprints
};

// Reports a document that is no report of a run.
void check_report(const Json& report, Diagnostics& out);

ReportDiff compare_reports(const Json& before, const Json& after);
Json to_json(const ReportDiff& diff);
std::string to_text(const ReportDiff& diff, std::size_t most);

}  // namespace weft
