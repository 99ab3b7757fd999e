// SPDX-License-Identifier: Apache-2.0
#include "tools/cli/report_diff.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <utility>

#include <fmt/format.h>

#include "sim/core/text.hpp"
#include "tools/cli/cli.hpp"
#include "tools/cli/terminal.hpp"

namespace weft {
namespace {

// Below this share of the time a gain is rounding, not a place on the critical path.
constexpr double kOnThePath = 1e-3;

bool describes(std::string_view key) {
  return key == "name" || key == "question" || key == "note" || key == "expect";
}

// Every value that holds no others, by pointer.
void flatten(const Json& json, const std::string& pointer,
             std::map<std::string, std::string>& out) {
  if (json.is_object() && !json.members.empty()) {
    for (const JsonMember& member : json.members) {
      if (pointer.empty() && describes(member.key)) continue;
      flatten(member.value, pointer + "/" + json_pointer_escape(member.key), out);
    }
  } else if (json.is_array() && !json.items.empty()) {
    for (std::size_t i = 0; i < json.items.size(); ++i)
      flatten(json.items[i], fmt::format("{}/{}", pointer, i), out);
  } else {
    out[pointer] = to_text(json, 0);
  }
}

std::vector<InputChange> compare_inputs(const Json& before, const Json& after) {
  std::map<std::string, std::string> a, b;
  if (const Json* json = before.find("effective")) flatten(*json, "", a);
  if (const Json* json = after.find("effective")) flatten(*json, "", b);
  std::vector<InputChange> out;
  for (const auto& [pointer, value] : a) {
    const auto other = b.find(pointer);
    if (other == b.end())
      out.push_back({pointer, value, std::nullopt});
    else if (other->second != value)
      out.push_back({pointer, value, other->second});
  }
  for (const auto& [pointer, value] : b) {
    if (!a.contains(pointer)) out.push_back({pointer, std::nullopt, value});
  }
  std::ranges::sort(out, {}, &InputChange::pointer);
  return out;
}

double number(const Json& json, std::string_view key) {
  const Json* value = json.find(key);
  return value != nullptr && value->is_number() ? value->number : 0;
}

std::string text(const Json& json, std::string_view key) {
  const Json* value = json.find(key);
  return value != nullptr && value->is_string() ? value->text : std::string{};
}

const std::vector<Json>& list(const Json& json, std::string_view key) {
  static const std::vector<Json> none;
  const Json* value = json.find(key);
  return value != nullptr && value->is_array() ? value->items : none;
}

const Json* job_of(const Json& report, const std::string& name) {
  for (const Json& job : list(report, "jobs")) {
    if (text(job, "name") == name) return &job;
  }
  return nullptr;
}

// Numbers of both that differ, with those of the objects inside; lists are not results of a job but parts of it.
void compare_numbers(const Json& before, const Json& after, const std::string& name,
                     std::vector<FigureChange>& out) {
  for (const JsonMember& member : before.members) {
    const Json* other = after.find(member.key);
    if (other == nullptr || member.key == "plan") continue;
    const std::string below = name + "/" + member.key;
    if (member.value.is_object() && other->is_object())
      compare_numbers(member.value, *other, below, out);
    if (member.value.is_number() && other->is_number() && member.value.number != other->number)
      out.push_back({below, member.value.number, other->number});
  }
}

bool knows_gains(const Json& report) {
  return std::ranges::all_of(list(report, "bottlenecks"), [](const Json& b) {
    const Json* gain = b.find("gain_if_infinite_s");
    return gain != nullptr && gain->is_number();
  });
}

std::vector<ResourceChange> compare_resources(const Json& before, const Json& after) {
  std::map<std::string, ResourceChange> all;
  const auto of = [&](const std::string& resource) -> ResourceChange& {
    ResourceChange& change = all[resource];
    change.resource = resource;
    return change;
  };
  // One of them may not know what its links cost.
  const bool both = knows_gains(before) && knows_gains(after);
  for (const Json& b : list(before, "bottlenecks")) {
    ResourceChange& change = of(text(b, "resource"));
    if (both) change.gain_before_s = number(b, "gain_if_infinite_s");
    change.share_before = number(b, "share");
  }
  for (const Json& b : list(after, "bottlenecks")) {
    ResourceChange& change = of(text(b, "resource"));
    if (both) change.gain_after_s = number(b, "gain_if_infinite_s");
    change.share_after = number(b, "share");
  }
  for (const Json& step : list(before, "critical_path"))
    of(text(step, "resource")).path_before_s += number(step, "duration_s");
  for (const Json& step : list(after, "critical_path"))
    of(text(step, "resource")).path_after_s += number(step, "duration_s");
  const double least_before = kOnThePath * number(before, "time_s"),
               least_after = kOnThePath * number(after, "time_s");
  std::vector<ResourceChange> out;
  for (auto& [name, change] : all) {
    const bool was = std::max(change.gain_before_s, change.path_before_s) > least_before;
    const bool is = std::max(change.gain_after_s, change.path_after_s) > least_after;
    if (was != is) change.move = is ? ResourceChange::Move::onto : ResourceChange::Move::off;
    out.push_back(std::move(change));
  }
  std::ranges::stable_sort(out, std::ranges::greater{}, [](const ResourceChange& c) {
    return std::max(std::abs(c.gain_after_s - c.gain_before_s),
                    std::abs(c.path_after_s - c.path_before_s));
  });
  return out;
}

std::string_view move_text(ResourceChange::Move move) {
  switch (move) {
    case ResourceChange::Move::onto:
      return "onto the critical path";
    case ResourceChange::Move::off:
      return "off the critical path";
    case ResourceChange::Move::none:
      return "";
  }
  return "";
}

std::string figure_text(std::string_view name, double value) {
  if (name.ends_with("_s") && !name.ends_with("per_s") && std::abs(value) < 9e6)
    return seconds_text(value);
  if (name.ends_with("_gbs")) return fmt::format("{:.2f} GB/s", value);
  return fmt::format("{:.6g}", value);
}

std::string shortened(const std::optional<std::string>& value) {
  constexpr std::size_t kMost = 40;
  if (!value) return "absent";
  return value->size() <= kMost ? *value : value->substr(0, kMost - 3) + "...";
}

}  // namespace

void check_report(const Json& report, Diagnostics& out) {
  const Json* jobs = report.find("jobs");
  const Json* time = report.find("time_s");
  if (jobs != nullptr && jobs->is_array() && time != nullptr && time->is_number()) return;
  out.error(report.place, {}, "this is not a report of a run",
            "give what `weft run --json` or `weft run --out` wrote");
}

ReportDiff compare_reports(const Json& before, const Json& after) {
  ReportDiff diff;
  diff.input = compare_inputs(before, after);
  const std::string before_at = text(before, "fidelity"), after_at = text(after, "fidelity");
  const bool listed = std::ranges::any_of(
      diff.input, [](const InputChange& c) { return c.pointer == "/fidelity"; });
  if (before_at != after_at && !listed) diff.input.push_back({"/fidelity", before_at, after_at});
  for (const std::string_view key : {"time_s", "bound_s"}) {
    if (number(before, key) != number(after, key))
      diff.figures.push_back({std::string(key), number(before, key), number(after, key)});
  }
  for (const Json& job : list(before, "jobs")) {
    const std::string name = text(job, "name");
    if (const Json* other = job_of(after, name))
      compare_numbers(job, *other, "jobs/" + name, diff.figures);
    else
      diff.jobs_before.push_back(name);
  }
  for (const Json& job : list(after, "jobs")) {
    if (job_of(before, text(job, "name")) == nullptr) diff.jobs_after.push_back(text(job, "name"));
  }
  diff.resources = compare_resources(before, after);
  diff.same_result = !text(before, "fingerprint").empty() &&
                     text(before, "fingerprint") == text(after, "fingerprint");
  return diff;
}

Json to_json(const ReportDiff& diff) {
  Json out = Json::object();
  out.set("weft", json_head());
  out.set("same_fingerprint", diff.same_result);
  Json input = Json::array();
  for (const InputChange& change : diff.input) {
    Json c = Json::object();
    c.set("pointer", change.pointer);
    Diagnostics ignored;
    const auto value = [&](const std::optional<std::string>& t) {
      Json parsed = t ? parse_json(*t, "value", ignored) : Json();
      return !t || ignored.ok() ? parsed : Json(*t);
    };
    if (change.before) c.set("before", value(change.before));
    if (change.after) c.set("after", value(change.after));
    input.push(std::move(c));
  }
  out.set("input", std::move(input));
  Json figures = Json::array();
  for (const FigureChange& change : diff.figures) {
    Json c = Json::object();
    c.set("figure", change.name);
    c.set("before", change.before);
    c.set("after", change.after);
    if (change.before != 0) c.set("ratio", change.after / change.before);
    figures.push(std::move(c));
  }
  out.set("figures", std::move(figures));
  Json resources = Json::array();
  for (const ResourceChange& change : diff.resources) {
    Json c = Json::object();
    c.set("resource", change.resource);
    const auto pair = [&](std::string_view key, double before, double after) {
      Json& p = c.set(key, Json::object());
      p.set("before", before);
      p.set("after", after);
    };
    pair("gain_if_infinite_s", change.gain_before_s, change.gain_after_s);
    pair("share", change.share_before, change.share_after);
    pair("critical_path_s", change.path_before_s, change.path_after_s);
    if (change.move != ResourceChange::Move::none)
      c.set("moved", std::string(move_text(change.move)));
    resources.push(std::move(c));
  }
  out.set("resources", std::move(resources));
  Json& jobs = out.set("jobs_only_in", Json::object());
  Json only_before = Json::array(), only_after = Json::array();
  for (const std::string& name : diff.jobs_before) only_before.push(name);
  for (const std::string& name : diff.jobs_after) only_after.push(name);
  jobs.set("before", std::move(only_before));
  jobs.set("after", std::move(only_after));
  return out;
}

std::string to_text(const ReportDiff& diff, std::size_t most) {
  std::string out;
  const auto more = [&](std::size_t count) {
    if (count > most) out += fmt::format("... and {} more\n", count - most);
  };
  out += diff.input.empty() ? "input: the same\n" : "input\n";
  Table input({"pointer", "before", "after"});
  for (std::size_t i = 0; i < std::min(most, diff.input.size()); ++i)
    input.row(
        {diff.input[i].pointer, shortened(diff.input[i].before), shortened(diff.input[i].after)});
  if (!input.empty()) out += input.text("  ");
  more(diff.input.size());
  out += diff.figures.empty() ? "\nresult: the same\n" : "\nresult\n";
  Table figures({"figure", "before", "after", "change"});
  for (std::size_t i = 0; i < std::min(most, diff.figures.size()); ++i) {
    const FigureChange& f = diff.figures[i];
    figures.row({f.name, figure_text(f.name, f.before), figure_text(f.name, f.after),
                 change_text(f.before, f.after)});
  }
  if (!figures.empty()) out += figures.text("  ");
  more(diff.figures.size());
  for (const std::string& name : diff.jobs_before)
    out += fmt::format("  only before: job {}\n", name);
  for (const std::string& name : diff.jobs_after)
    out += fmt::format("  only after: job {}\n", name);
  if (!diff.resources.empty()) {
    out += "\nwhat limits it, by its gain if infinitely fast\n";
    Table resources({"resource", "before", "after", "moved"});
    for (std::size_t i = 0; i < std::min(most, diff.resources.size()); ++i) {
      const ResourceChange& r = diff.resources[i];
      resources.row({r.resource, seconds_text(std::max(r.gain_before_s, r.path_before_s)),
                     seconds_text(std::max(r.gain_after_s, r.path_after_s)),
                     std::string(move_text(r.move))});
    }
    out += resources.text("  ");
    more(diff.resources.size());
  }
  // Names come from files; a terminal must not obey them.
  std::ranges::replace_if(
      out, [](char c) { return (c >= 0 && c < ' ' && c != '\n') || c == 0x7F; }, '?');
  return out;
}

}  // namespace weft
