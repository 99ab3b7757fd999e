// SPDX-License-Identifier: Apache-2.0
#include "tools/sweep/point.hpp"

#include <algorithm>
#include <chrono>
#include <new>

#include <fmt/format.h>

#include "sim/core/check.hpp"
#include "sim/core/hash.hpp"
#include "tools/cli/simulate.hpp"

namespace weft {
namespace {

// Keys of a scenario that change no number of its report.
constexpr std::string_view kWords[] = {"name", "question", "note", "expect"};

void sort_keys(Json& json) {
  for (Json& item : json.items) sort_keys(item);
  for (JsonMember& member : json.members) sort_keys(member.value);
  std::ranges::sort(json.members, {}, &JsonMember::key);
}

std::string canonical(Json json) {
  sort_keys(json);
  return to_text(json, 0);
}

std::string hash128(std::string_view text) {
  return fmt::format("{:016x}{:016x}", stable_hash(text, 0), stable_hash(text, 1));
}

}  // namespace

std::optional<std::string> PointRunner::CachedFiles::read(const std::string& path) {
  const auto found = texts_.find(path);
  if (found != texts_.end()) return found->second;
  return texts_.emplace(path, files_.read(path)).first->second;
}

std::optional<std::string> PointRunner::CachedFiles::find(std::string_view kind,
                                                          const std::string& name) {
  const std::string id = fmt::format("{}/{}", kind, name);
  const auto found = paths_.find(id);
  if (found != paths_.end()) return found->second;
  return paths_.emplace(id, files_.find(kind, name)).first->second;
}

PointRunner::PointRunner(const Sweep& sweep, FileSource& files, std::function<bool()> stop)
    : sweep_(sweep), files_(files), stop_(std::move(stop)), context_(run_models()) {
  const auto asks = [&](std::string_view prefix) {
    return std::ranges::any_of(sweep.outputs, [&](const SweepOutput& output) {
      return output.pointer.starts_with(prefix);
    });
  };
  context_.explain = asks("/bottlenecks");
  keep_effective_ = asks("/effective");
  keep_lists_ = asks("/links") || asks("/flows");
  context_.progress = [this](Time, std::uint64_t) {
    if (stop_ && stop_()) throw Interrupted{};
  };
}

Json PointRunner::document(std::size_t point, Diagnostics& out) {
  Json document = sweep_.base;
  Loader loader(files_, out);
  const std::vector<const Json*> values = sweep_.values(point);
  std::size_t i = 0;
  for (const AxisGroup& group : sweep_.groups) {
    for (const Axis& axis : group) {
      if (!axis.target.empty()) loader.set(document, resolved_pointer(axis.target), *values[i]);
      ++i;
    }
  }
  return document;
}

std::string PointRunner::key_of(const Json& document, const Diagnostics& out) const {
  Json input = document;
  std::erase_if(input.members, [](const JsonMember& member) {
    return std::ranges::find(kWords, member.key) != std::end(kWords);
  });
  std::string text = "weft " WEFT_VERSION "\n" + canonical(std::move(input)) + "\n";
  for (const SweepOutput& output : sweep_.outputs)
    text += fmt::format("{} {}\n", output.name, output.pointer);
  if (!out.ok()) text += out.text();  // what could not be set is not in the document
  return hash128(text);
}

std::string PointRunner::key(std::size_t point) {
  Diagnostics out = sweep_.files;
  const Json json = document(point, out);
  return key_of(json, out);
}

Report PointRunner::simulate(const Json& document, Diagnostics& out) {
  Scenario scenario = read_scenario(document, out);
  out.throw_if_errors();
  if (!keep_lists_) scenario.observe.top = 0;
  const Json* written = document.find("fabric");
  const std::string fabric_key = written != nullptr ? canonical(*written) : std::string{};
  if (!fabric_ || fabric_key != fabric_key_) {
    fabric_.reset();  // before the next is built: both may not fit
    Fabric built = build_fabric(scenario.fabric, context_.link_classes, out);
    out.throw_if_errors();
    fabric_ = std::move(built);
    context_.library = remembering(run_models().library, *fabric_);
    fabric_key_ = fabric_key;
  }
  return run_on(*fabric_, scenario, context_, out);
}

Json PointRunner::report(const Json& document, Diagnostics& out) {
  Report report = simulate(document, out);
  if (!keep_effective_) report.effective = Json::object();
  return to_json(report);
}

Record PointRunner::run(std::size_t point) {
  const auto start = std::chrono::steady_clock::now();
  Diagnostics out = sweep_.files;
  Record record;
  const Json json = document(point, out);
  record.key = key_of(json, out);
  try {
    out.throw_if_errors();
    const Json all = report(json, out);
    record.results = Json::object();
    for (const SweepOutput& output : sweep_.outputs) {
      const Json* value = find_at(all, output.pointer);
      record.results.set(output.name, value != nullptr ? *value : Json{});
    }
    record.ok = true;
  } catch (const InputError& problem) {
    record.error = problem.what();
  } catch (const LimitReached& problem) {
    record.error = fmt::format("limit reached: {}", problem.what());
  } catch (const std::bad_alloc&) {
    fabric_.reset();
    record.error = "limit reached: out of memory";
  } catch (const std::exception& problem) {
    record.error = fmt::format("bug: {}", problem.what());
  }
  while (record.error.ends_with('\n')) record.error.pop_back();
  record.wall_s = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  return record;
}

}  // namespace weft
