// SPDX-License-Identifier: Apache-2.0
#include "tools/sweep/sweep.hpp"

#include <algorithm>
#include <map>
#include <set>

#include <fmt/format.h>

#include "sim/core/config_defaults.hpp"
#include "sim/core/text.hpp"
#include "sim/fabric/spec.hpp"
#include "tools/sweep/condition.hpp"

namespace weft {
namespace {

struct SweepFile {
  SchemaVersion weft;
  std::string kind, name, question, note;
  Json scenario;
  std::vector<AxisSpec> axes;
  std::vector<Json> when, skip;
  Json outputs;
  std::optional<Front> pareto;
  template <class V>
  void visit(V&& v) {
    v("weft", weft, "the file format");
    v("kind", kind, "sweep", required);
    v("name", name, "the sweep's name");
    v("question", question, "what a person wants to know");
    v("note", note, "what a reader of the answer should know");
    v("scenario", scenario, "a scenario, or {\"use\": \"FILE.json\", \"set\": {...}}", required);
    v("axes", axes, "what changes", required, not_empty);
    v("when", when, "conditions that every point meets");
    v("skip", skip, "conditions of points that are left out");
    v("outputs", outputs, "name -> JSON pointer into the report");
    v("pareto", pareto, "two axes or outputs whose best compromises the page shows");
  }
};

// Where the JSON value that begins at `begin` ends.
std::size_t end_of_value(std::string_view text, std::size_t begin) {
  int depth = 0;
  bool quoted = false;
  for (std::size_t i = begin; i < text.size(); ++i) {
    const char c = text[i];
    if (quoted) {
      if (c == '\\') ++i;
      if (c == '"') quoted = false;
    } else if (c == '"') {
      quoted = true;
    } else if (c == '{' || c == '[') {
      ++depth;
    } else if ((c == '}' || c == ']') && --depth == 0) {
      return i + 1;
    }
  }
  return text.size();
}

// The text with everything but the value at `place` blanked out, so that it keeps its lines and columns.
std::string only_value(std::string text, Place place) {
  std::size_t begin = 0;
  for (std::uint32_t line = 1; line < place.line; ++line) begin = text.find('\n', begin) + 1;
  begin += place.column - 1;
  const std::size_t end = end_of_value(text, begin);
  for (std::size_t i = 0; i < text.size(); ++i) {
    if ((i < begin || i >= end) && text[i] != '\n') text[i] = ' ';
  }
  return text;
}

// Shows one file as something else than it is.
class WithText final : public FileSource {
 public:
  WithText(FileSource& files, std::string path, std::string text)
      : files_(files), path_(std::move(path)), text_(std::move(text)) {}
  std::optional<std::string> read(const std::string& path) override {
    if (path != path_ || shown_) return files_.read(path);
    shown_ = true;
    return text_;
  }
  std::optional<std::string> find(std::string_view kind, const std::string& name) override {
    return files_.find(kind, name);
  }
  std::vector<std::string> names(std::string_view kind) override { return files_.names(kind); }

 private:
  FileSource& files_;
  std::string path_, text_;
  bool shown_ = false;
};

std::string folder_of(const std::string& path) {
  const auto slash = path.rfind('/');
  return slash == std::string::npos ? std::string{} : path.substr(0, slash + 1);
}

// Files that the values of axes name are found from the sweep's folder, as in any other file.
void place_references(Json& value, const std::string& folder) {
  if (value.is_string() && value.text.ends_with(".json") && !value.text.starts_with('/'))
    value.text = folder + value.text;
  for (Json& item : value.items) place_references(item, folder);
  for (JsonMember& member : value.members) place_references(member.value, folder);
}

// What people look at first, by kind of the first job.
std::vector<SweepOutput> default_outputs(const Json& scenario) {
  std::vector<SweepOutput> out{{"time_s", "/time_s"}, {"bound_s", "/bound_s"}};
  const Json* jobs = scenario.find("jobs");
  const Json* job =
      jobs != nullptr && !jobs->items.empty() ? &jobs->items.front() : scenario.find("workload");
  const auto add = [&](std::initializer_list<const char*> names) {
    for (const char* name : names) out.push_back({name, fmt::format("/jobs/0/{}", name)});
  };
  if (job != nullptr && job->find("collective") != nullptr) {
    add({"busbw_gbs"});
  } else if (job != nullptr && job->find("requests") != nullptr) {
    add({"output_tokens_per_s", "requests_per_s"});
  } else if (job != nullptr && job->find("model") != nullptr) {
    add({"step_time_s", "mfu", "tokens_per_s", "fits"});
  } else if (job != nullptr) {
    add({"mean_rate_gbs"});
  }
  out.push_back({"fingerprint", "/fingerprint"});
  return out;
}

void read_outputs(const Json& written, std::vector<SweepOutput>& outputs, Diagnostics& out) {
  if (written.kind == Json::Kind::null) return;
  if (!written.is_object() || written.members.empty()) {
    out.error(written.place, "/outputs", "an object of names and pointers is needed",
              R"(e.g. {"time_s": "/time_s"})");
    return;
  }
  outputs.clear();
  for (const JsonMember& member : written.members) {
    const std::string here = "/outputs/" + json_pointer_escape(member.key);
    if (!member.value.is_string() || !parse_pointer(member.value.text) || member.value.text.empty())
      out.error(member.value.place, here, "not a JSON pointer into a report",
                "e.g. \"/jobs/0/busbw_gbs\"; see `weft run --json`");
    if (member.key.empty())
      out.error(member.place, here, "an output without a name", "name its column");
    outputs.push_back({member.key, member.value.text, member.place});
  }
}

// Axes and outputs are columns of one table. Axes among themselves are checked where they are read.
void check_columns(const Sweep& sweep, Diagnostics& out) {
  std::map<std::string, const Axis*> axes;
  for (const AxisGroup& group : sweep.groups) {
    for (const Axis& axis : group) axes.emplace(column_key(axis.name), &axis);
  }
  std::set<std::string> outputs;
  for (const SweepOutput& output : sweep.outputs) {
    const std::string key = column_key(output.name);
    const auto axis = axes.find(key);
    if (output.place.line == 0 && axis != axes.end()) {
      out.error(axis->second->place, axis->second->pointer,
                fmt::format("\"{}\" is also the name of an output", axis->second->name),
                "give the axis another \"name\", or say which \"outputs\" you want");
    } else if (axis != axes.end() || is_reserved_column(key) || !outputs.insert(key).second) {
      out.error(output.place, "/outputs/" + json_pointer_escape(output.name),
                fmt::format("\"{}\" is the name of another column", output.name),
                "choose another name, different in more than upper and lower case");
    }
  }
}

void check_front(const Front& front, const Sweep& sweep, Diagnostics& out) {
  std::vector<std::string> known = sweep.axis_names();
  for (const SweepOutput& output : sweep.outputs) known.push_back(output.name);
  if (front.minimise.size() + front.maximise.size() != 2)
    out.error(front.place, front.pointer, "a front needs two names in all",
              R"(e.g. {"minimise": ["gpus", "time_s"]})");
  for (const auto* list : {&front.minimise, &front.maximise}) {
    for (const std::string& name : *list) {
      if (std::ranges::find(known, name) == known.end())
        out.error(
            front.place, front.pointer,
            fmt::format("there is no axis or output \"{}\"{}", name, did_you_mean(name, known)),
            "there are: " + join(known, ", "));
    }
  }
}

struct Conditions {
  std::vector<Condition> when, skip;
};

Conditions read_conditions(const SweepFile& file, const std::vector<std::string>& axes,
                           Diagnostics& out) {
  Conditions conditions;
  const auto read = [&](const std::vector<Json>& list, const char* key,
                        std::vector<Condition>& into) {
    for (std::size_t i = 0; i < list.size(); ++i) {
      const std::string pointer = fmt::format("/{}/{}", key, i);
      if (list[i].is_string()) {
        into.emplace_back(list[i].text, axes, list[i].place, pointer, out);
      } else {
        out.error(list[i].place, pointer, "a condition is text", R"(e.g. "tp <= 8")");
      }
    }
  };
  read(file.when, "when", conditions.when);
  read(file.skip, "skip", conditions.skip);
  return conditions;
}

// The index of each group at a combination.
std::vector<std::size_t> digits_of(const std::vector<AxisGroup>& groups,
                                   std::uint64_t combination) {
  std::vector<std::size_t> out(groups.size());
  for (std::size_t g = groups.size(); g-- > 0;) {
    const std::size_t size = groups[g].front().values.size();
    out[g] = combination % size;
    combination /= size;
  }
  return out;
}

std::vector<const Json*> values_at(const std::vector<AxisGroup>& groups,
                                   std::uint64_t combination) {
  const std::vector<std::size_t> digits = digits_of(groups, combination);
  std::vector<const Json*> out;
  for (std::size_t g = 0; g < groups.size(); ++g) {
    for (const Axis& axis : groups[g]) out.push_back(&axis.values[digits[g]]);
  }
  return out;
}

// Up to `most` points.
void combine(Sweep& sweep, const Conditions& conditions, Place place, std::size_t most,
             Diagnostics& out) {
  std::uint64_t combinations = 1;
  for (const AxisGroup& group : sweep.groups) {
    combinations *= group.front().values.size();
    if (combinations > Sweep::kMostCombinations) {
      out.error(place, "/axes",
                fmt::format("the axes combine to more than {} points", Sweep::kMostCombinations),
                "take fewer values");
      return;
    }
  }
  for (std::uint64_t i = 0; i < combinations; ++i) {
    const std::vector<const Json*> values = values_at(sweep.groups, i);
    const auto value_of = [&](std::size_t axis) -> const Json& { return *values[axis]; };
    const Condition* asked = nullptr;
    const auto holds = [&](const Condition& condition) {
      asked = &condition;
      return condition.holds(value_of);
    };
    try {
      if (!std::ranges::all_of(conditions.when, holds) ||
          std::ranges::any_of(conditions.skip, holds))
        continue;
    } catch (const InputError& problem) {
      out.error(asked->place(), asked->pointer(), problem.what(),
                "conditions compare values of one kind");
      return;
    }
    sweep.points.push_back(i);
    if (sweep.points.size() > Sweep::kMostPoints) {
      out.error(place, "/axes", fmt::format("more than {} points", Sweep::kMostPoints),
                "take fewer values, or skip more");
      return;
    }
    if (sweep.points.size() == most) return;
  }
  if (!sweep.points.empty()) return;
  const bool kept = !conditions.when.empty();
  const Condition& first = kept ? conditions.when.front() : conditions.skip.front();
  out.error(first.place(), kept ? "/when" : "/skip", "the conditions leave no point",
            kept ? "ask for less" : "skip less");
}

Sweep read(const std::string& path, FileSource& files, std::size_t most, Diagnostics& out) {
  Sweep sweep;
  sweep.path = path;
  const std::optional<std::string> text = files.read(path);
  if (!text) {
    out.error({}, path, fmt::format("cannot read \"{}\"", path),
              "check the name and that the file exists");
    return sweep;
  }
  const Json document = parse_json(*text, path, out);
  if (!out.ok()) return sweep;
  SweepFile file;
  read_config(document, {}, file, out);
  if (!file.kind.empty() && file.kind != "sweep")
    out.error(document.find("kind")->place, "/kind",
              fmt::format("\"{}\" is not a sweep", file.kind), "\"kind\": \"sweep\"");
  sweep.name = file.name.empty() ? path : file.name;
  sweep.question = file.question;
  if (file.scenario.is_object()) {
    WithText shown(files, path, only_value(*text, file.scenario.place));
    sweep.base = Loader(shown, out).load_file(path);
  } else if (file.scenario.kind != Json::Kind::null) {
    out.error(file.scenario.place, "/scenario", "a scenario is an object",
              R"(write {...} or {"use": "FILE.json"})");
  }
  for (AxisSpec& axis : file.axes) {
    for (Json& value : axis.values) place_references(value, folder_of(path));
    for (AxisLine& line : axis.together)
      for (Json& value : line.values) place_references(value, folder_of(path));
  }
  sweep.groups = read_axes(file.axes, out);
  const std::vector<std::string> axes = sweep.axis_names();
  sweep.outputs = default_outputs(sweep.base);
  read_outputs(file.outputs, sweep.outputs, out);
  check_columns(sweep, out);
  sweep.front = file.pareto;
  if (sweep.front) check_front(*sweep.front, sweep, out);
  const Conditions conditions = read_conditions(file, axes, out);
  if (out.ok()) combine(sweep, conditions, document.find("axes")->place, most, out);
  return sweep;
}

}  // namespace

std::vector<std::string> Sweep::axis_names() const {
  std::vector<std::string> out;
  for (const AxisGroup& group : groups) {
    for (const Axis& axis : group) out.push_back(axis.name);
  }
  return out;
}

std::vector<const Json*> Sweep::values(std::size_t point) const {
  return values_at(groups, points[point]);
}

Sweep read_sweep(const std::string& path, FileSource& files) {
  Diagnostics out;
  Sweep sweep = read(path, files, Sweep::kMostPoints + 1, out);
  out.throw_if_errors();
  sweep.files = std::move(out);
  return sweep;
}

Sweep check_sweep(const std::string& path, FileSource& files, Diagnostics& out) {
  Sweep sweep = read(path, files, 1, out);
  sweep.files = out;
  return sweep;
}

Json sweep_schema() {
  Json out = schema_with_defaults<SweepFile>();
  Json kind = Json::object();
  kind.set("const", "sweep");
  out.find("properties")->set("kind", std::move(kind));
  return out;
}

}  // namespace weft
