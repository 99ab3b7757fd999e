// SPDX-License-Identifier: Apache-2.0
// weft validate: measured records of a folder against what weft predicts for them.
#include <algorithm>
#include <cmath>
#include <filesystem>
#include <map>
#include <mutex>
#include <sstream>
#include <thread>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include "calibrate/validate.hpp"
#include "calibrate/validate_page.hpp"
#include "models/catalog.hpp"
#include "sim/core/loader.hpp"
#include "sim/core/text.hpp"
#include "tools/cli/cli.hpp"
#include "tools/cli/file_source.hpp"
#include "tools/cli/output.hpp"
#include "tools/cli/simulate.hpp"
#include "tools/cli/validate_output.hpp"

namespace weft {
namespace {

namespace fs = std::filesystem;

// Fabrics by reference, changes and size; the same one is built once.
class FabricCache {
 public:
  std::shared_ptr<const Fabric> get(const std::string& reference, const Json& changes,
                                    std::int64_t servers) {
    const std::string key = fmt::format("{} {} {}", reference, to_text(changes, 0), servers);
    const std::lock_guard lock(mutex_);
    auto& entry = fabrics_[key];
    if (!entry) entry = std::make_shared<const Fabric>(load(reference, changes, servers));
    return entry;
  }

 private:
  static Fabric load(const std::string& reference, const Json& changes, std::int64_t servers) {
    Settings sets = settings_of(changes);
    if (servers > 1 && changes.find("/servers") == nullptr)
      sets.emplace_back("/servers", Json(servers));
    Diagnostics diagnostics;
    return load_fabric(reference, sets, diagnostics).fabric;
  }

  std::mutex mutex_;
  std::map<std::string, std::shared_ptr<const Fabric>> fabrics_;
};

// Where a step's time went, the largest parts first.
std::string parts_of(const JobReport& job) {
  std::vector<std::pair<double, std::string>> parts;
  const auto add = [&](const std::string& name, const Json* seconds) {
    if (seconds != nullptr && job.time_s > 0 && seconds->number > 0.005 * job.time_s)
      parts.emplace_back(seconds->number / job.time_s, name);
  };
  add("compute", job.details.find("compute_s"));
  if (const Json* bubble = job.details.find("bubble_fraction"); bubble && bubble->number > 0.005)
    parts.emplace_back(bubble->number, "bubble");
  if (const Json* exposed = job.details.find("exposed_comm_s")) {
    for (const JsonMember& member : exposed->members) add(member.key, &member.value);
  }
  std::ranges::stable_sort(parts, std::ranges::greater{}, &std::pair<double, std::string>::first);
  std::string out;
  for (const auto& [part, name] : parts)
    out += fmt::format("{}{} {:.0f} %", out.empty() ? "" : ", ", name, 100 * part);
  return out;
}

// One step, as weft run would simulate it.
TrainingAnswer train(const Fabric& fabric, const Json& document) {
  Diagnostics diagnostics;
  const Scenario scenario = load_scenario(document, "scenario.json", diagnostics);
  std::ostringstream nowhere;
  Progress silent(nowhere);
  RunContext context = run_context(silent);
  context.progress = nullptr;
  context.explain = false;
  const Report report = run_on(fabric, scenario, context, diagnostics);
  diagnostics.throw_if_errors();
  const JobReport& job = report.jobs.front();
  return {.step_time_s = job.time_s,
          .model = scenario.jobs.front().training->model,
          .how = parts_of(job)};
}

Json report(const Json& scenario, const Json& changes) {
  RunOptions options;
  options.sets = settings_of(changes);
  Diagnostics diagnostics;
  const Scenario loaded = scenario.is_string()
                              ? load_scenario(scenario.text, options, diagnostics)
                              : load_scenario(scenario, "scenario.json", diagnostics, options);
  const Report result = run_scenario(loaded, run_models(), diagnostics);
  diagnostics.throw_if_errors();
  return to_json(result);
}

class Validate final : public Command {
 public:
  void add(CLI::App& app) override {
    app.add_option("--dataset", folder_,
                   "a folder of validation files, or one file; default: the shipped ones");
    app.add_option("--only", only_, "a set or record, * and ? match anything");
    app.add_flag("--check-limits", check_limits_,
                 "exit code 4 when a set misses the limits of its dataset");
    app.add_option(
        "--page", page_,
        "also write this markdown page, with plots in a folder of its name and hand-written "
        "text from NAME.notes.md beside it");
    add_json_flag(app, json_);
  }

  int run(Io& io) override {
    expect_writable(page_, true);
    Diagnostics diagnostics;
    Dataset dataset = load(diagnostics);
    diagnostics.throw_if_errors();
    choose(dataset, diagnostics);
    diagnostics.throw_if_errors();
    FabricCache fabrics;
    Progress progress(io.err);
    std::size_t done = 0;
    ValidationContext context;
    context.fabric = [&](const std::string& reference, const Json& changes, std::int64_t servers) {
      return fabrics.get(reference, changes, servers);
    };
    context.progress = [&](const std::string& record) {
      progress.show(fmt::format("{} of {}: {}", ++done, dataset.records.size(), record));
    };
    context.train = [](const Fabric& fabric, const Json& scenario) {
      return train(fabric, scenario);
    };
    context.report = report;
    context.threads = std::clamp(std::thread::hardware_concurrency(), 1U, 8U);
    const ValidationResult result = validate(dataset, context);
    progress.show("");
    io.out = json_ ? to_text(validation_json(result)) + "\n" : validation_text(result);
    if (!page_.empty()) write_page(dataset, result);
    bool failed = false;
    for (const RecordResult& record : result.records) {
      if (record.failure.empty()) continue;
      failed = true;
      diagnostics.error(record.record->place, record.record->id,
                        "cannot be predicted: " + record.failure);
    }
    io.err << diagnostics.text();
    if (failed) return kBadInput;
    if (!check_limits_) return kOk;
    bool broken = false;
    for (const SetResult& set : result.sets) {
      for (const std::string& limit : set.broken_limits) {
        io.err << fmt::format("limit: {}: {}\n", set.name, limit);
        broken = true;
      }
    }
    for (const PublishedResult& entry : result.published) {
      if (entry.broken_limit.empty()) continue;
      io.err << fmt::format("limit: {}: {}\n", entry.spec->name, entry.broken_limit);
      broken = true;
    }
    return broken ? kLimit : kOk;
  }

 private:
  Dataset load(Diagnostics& diagnostics) const {
    const std::string folder = folder_.empty() ? default_folder() : folder_;
    const std::vector<std::string> paths = files_of(folder);
    Configs files(find_configs_root());
    Dataset dataset;
    for (const std::string& path : paths) {
      const auto text = files.read(path);
      if (!text) {
        diagnostics.error({}, path, "cannot be read");
        continue;
      }
      const std::size_t before = diagnostics.error_count();
      const Json document = parse_json(*text, path, diagnostics);
      if (diagnostics.error_count() == before) read_validation_file(document, dataset, diagnostics);
    }
    return dataset;
  }

  // A file, or all .json files of a folder in the order of their names.
  static std::vector<std::string> files_of(const std::string& place) {
    std::error_code error;
    if (fs::is_regular_file(place, error)) return {place};
    std::vector<std::string> out;
    for (fs::directory_iterator it(place, error), end; !error && it != end; it.increment(error)) {
      if (it->path().extension() == ".json") out.push_back(it->path().string());
    }
    if (error) {
      throw InputError(fmt::format("error: --dataset: cannot read the folder \"{}\": {}\n", place,
                                   error.message()));
    }
    if (out.empty())
      throw InputError(fmt::format("error: --dataset: no .json files in \"{}\"\n", place));
    std::ranges::sort(out);
    return out;
  }

  // Beside the catalogue: tests/validation of the source tree, or share/weft/validation of an installation.
  static std::string default_folder() {
    const fs::path root(find_configs_root());
    for (const fs::path& folder :
         {root.parent_path() / "validation", root.parent_path() / "tests" / "validation"}) {
      if (fs::is_directory(folder)) return folder.string();
    }
    throw Missing("the shipped validation records are not beside the catalogue; give --dataset");
  }

  void write_page(const Dataset& dataset, const ValidationResult& result) const {
    const fs::path path(page_);
    const fs::path folder = path.parent_path() / path.stem();
    Configs files(find_configs_root());
    const std::string notes =
        files.read((path.parent_path() / (path.stem().string() + ".notes.md")).string())
            .value_or("");
    const ValidationPage page = validation_page(dataset, result, notes, path.stem().string());
    std::vector<OutputFile> out{{page_, page.markdown, true}};
    for (const auto& [name, svg] : page.plots) out.push_back({(folder / name).string(), svg, true});
    write_files(out);
  }

  void choose(Dataset& dataset, Diagnostics& diagnostics) const {
    if (only_.empty()) return;
    std::vector<std::string> names;
    for (const ValidationRecord& record : dataset.records) {
      for (const std::string& name : {record.set, record.id}) {
        if (std::ranges::find(names, name) == names.end()) names.push_back(name);
      }
    }
    std::erase_if(dataset.records, [&](const ValidationRecord& record) {
      return !glob_match(only_, record.set) && !glob_match(only_, record.id);
    });
    if (!dataset.records.empty()) return;
    diagnostics.error({}, "--only",
                      fmt::format("no set or record \"{}\"{}", only_, did_you_mean(only_, names)),
                      "sets and records are listed by weft validate --json");
  }

  std::string folder_, only_, page_;
  bool check_limits_ = false, json_ = false;
};

}  // namespace

extern const Verb kValidate;
const Verb kValidate{"validate", "measured records against predictions", make_command<Validate>};

}  // namespace weft
