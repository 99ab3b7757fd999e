// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <chrono>
#include <new>

#include <fmt/format.h>

#include "sim/core/check.hpp"
#include "sim/core/text.hpp"
#include "tools/cli/cli.hpp"
#include "tools/sweep/point.hpp"

namespace weft {
namespace {

constexpr std::chrono::seconds kLongest{5};  // that the first point runs

bool is_at(const std::string& pointer, const std::string& target) {
  return pointer.starts_with(target) &&
         (pointer.size() == target.size() || pointer[target.size()] == '/');
}

// Errors of a scenario beyond those that `out` has.
std::vector<Problem> problems_of(const Json& document, const Diagnostics& out) {
  Diagnostics trial = out;
  read_scenario(document, trial);
  std::vector<Problem> problems(
      trial.problems().begin() + static_cast<std::ptrdiff_t>(out.problems().size()),
      trial.problems().end());
  std::erase_if(problems, [](const Problem& problem) {
    return problem.severity != Problem::Severity::error;
  });
  return problems;
}

const Problem* problem_at(const std::vector<Problem>& problems, const std::string& target) {
  const auto found = std::ranges::find_if(
      problems, [&](const Problem& problem) { return is_at(problem.pointer, target); });
  return found == problems.end() ? nullptr : &*found;
}

// True when an axis is wrong whatever its value.
bool check_axes(const Sweep& sweep, FileSource& files, const Json& first,
                const std::vector<Problem>& problems, Diagnostics& out) {
  bool wrong = false;
  for (const AxisGroup& group : sweep.groups) {
    for (const Axis& axis : group) {
      const std::string target = resolved_pointer(axis.target);
      const Problem* problem = axis.target.empty() ? nullptr : problem_at(problems, target);
      if (problem == nullptr) continue;
      Json last = first;
      Diagnostics trial = out;
      Loader(files, trial).set(last, target, axis.values.back());
      const std::vector<Problem> again = problems_of(last, trial);
      if (trial.error_count() == out.error_count() && problem_at(again, target) == nullptr)
        continue;
      out.error(axis.place, axis.pointer + "/pointer",
                fmt::format("{} is wrong with the first and the last value: {}", axis.target,
                            problem->fact),
                problem->cure);
      wrong = true;
    }
  }
  return wrong;
}

void check_outputs(const Sweep& sweep, const Json& report, Diagnostics& out) {
  for (const SweepOutput& output : sweep.outputs) {
    if (output.place.line == 0 || find_at(report, output.pointer) != nullptr) continue;
    // As far as the pointer leads.
    std::string reached = output.pointer;
    const Json* here = nullptr;
    while (here == nullptr && !reached.empty()) {
      reached.resize(reached.rfind('/'));
      here = reached.empty() ? &report : find_at(report, reached);
    }
    const std::string rest = output.pointer.substr(reached.size() + 1);
    const std::string key = json_pointer_unescape(rest.substr(0, rest.find('/'))).value_or("");
    std::vector<std::string> names;
    for (const JsonMember& member : here->members) names.push_back(member.key);
    const std::string where = reached.empty() ? "the report" : reached;
    out.warning(
        output.place, "/outputs/" + json_pointer_escape(output.name),
        fmt::format("at the first point {} has no \"{}\"{}", where, key, did_you_mean(key, names)),
        here->is_array() ? fmt::format("it has {} items, counted from 0", here->items.size())
                         : "it has: " + join(names, ", "));
  }
}

}  // namespace

void check_first_point(const Sweep& sweep, FileSource& files, Diagnostics& out) {
  const auto until = std::chrono::steady_clock::now() + kLongest;
  PointRunner runner(sweep, files, [until] { return std::chrono::steady_clock::now() > until; });
  const Json document = runner.document(0, out);
  if (!out.ok()) return;
  const std::vector<Problem> problems = problems_of(document, out);
  if (check_axes(sweep, files, document, problems, out)) return;
  for (const Problem& problem : problems)
    out.warning(problem.place, problem.pointer,
                fmt::format("the first point fails: {}", problem.fact), problem.cure);
  if (!problems.empty()) return;
  Diagnostics trial = out;
  const auto fails = [&](std::string_view why) {
    out.warning({}, sweep.path, fmt::format("the first point fails: {}", why));
  };
  try {
    check_outputs(sweep, runner.report(document, trial), out);
  } catch (const Interrupted&) {
    // It takes long: its outputs show when the sweep runs.
  } catch (const InputError&) {
    for (const Problem& problem : trial.problems()) {
      if (problem.severity == Problem::Severity::error) fails(problem.fact);
    }
  } catch (const LimitReached& limit) {
    fails(limit.what());
  } catch (const std::bad_alloc&) {
    fails("out of memory");
  }
}

}  // namespace weft
