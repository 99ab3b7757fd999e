// SPDX-License-Identifier: Apache-2.0
// weft check: reads files as a run would and reports every problem at once.
#include <algorithm>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include "calibrate/fit/patch.hpp"
#include "calibrate/measurement.hpp"
#include "calibrate/validate_case.hpp"
#include "models/catalog.hpp"
#include "models/llm/plan.hpp"
#include "models/nccl/library.hpp"
#include "sim/core/loader.hpp"
#include "sim/core/text.hpp"
#include "sim/fabric/fabric.hpp"
#include "sim/run/llm_hf.hpp"
#include "sim/run/scenario.hpp"
#include "tools/cli/check_run.hpp"
#include "tools/cli/cli.hpp"
#include "tools/cli/file_source.hpp"
#include "tools/sweep/point.hpp"

namespace weft {
namespace {

void check_law(const LinkSpec& spec, Diagnostics& out) { link_law(spec, link_classes(), out); }

template <class Spec>
Spec read_spec(const Json& document, Diagnostics& out) {
  Spec spec;
  read_config(document, {}, spec, out);
  return spec;
}

void check_gpu(const Json& document, Diagnostics& out) { read_spec<GpuSpec>(document, out); }

void check_link(const Json& document, Diagnostics& out) {
  const auto spec = read_spec<LinkSpec>(document, out);
  if (out.ok()) check_law(spec, out);
}

void check_nic(const Json& document, Diagnostics& out) {
  const auto spec = read_spec<NicSpec>(document, out);
  if (out.ok()) check_law(spec.link, out);
}

void check_kernels(const Json& document, Diagnostics& out) {
  read_spec<KernelsSpec>(document, out);
}

void check_llm(const Json& document, Diagnostics& out) { read_llm(document, {}, out); }

void check_compute(const Json& document, Diagnostics& out) {
  read_spec<ComputeSpec>(document, out);
}

void check_proxy(const Json& document, Diagnostics& out) { read_spec<ProxySpec>(document, out); }

void check_switch(const Json& document, Diagnostics& out) {
  const auto spec = read_spec<SwitchSpec>(document, out);
  if (out.ok() && spec.link) check_law(*spec.link, out);
}

void check_fabric(const Json& document, Diagnostics& out) {
  FabricSpec spec = read_fabric(document, {}, out);
  if (out.ok()) build_fabric(std::move(spec), link_classes(), out);
}

// The one place that knows how a scenario is checked.
void check_scenario(const Json& document, Diagnostics& out) {
  Scenario scenario = read_scenario(document, out);
  if (scenario.nccl) nccl_library().check(*scenario.nccl, out);
  if (!out.ok()) return;
  const Fabric fabric = build_fabric(std::move(scenario.fabric), link_classes(), out);
  if (!out.ok()) return;
  for (JobSpec& job : scenario.jobs) {
    if (!job.training) continue;
    TrainingSpec& training = *job.training;
    if (training.gpus == 0) training.gpus = std::ssize(fabric.gpus());
    check_plan(Architecture(training.model), training, out);
  }
}

constexpr std::string_view kMeasurement = "measurement", kSweep = "sweep";

struct Checker {
  std::string_view kind;
  void (*check)(const Json& document, Diagnostics& out);
};
constexpr Checker kCheckers[] = {
    {"gpu", check_gpu},           {"nic", check_nic},         {"switch", check_switch},
    {"link", check_link},         {"server", check_fabric},   {"fabric", check_fabric},
    {"scenario", check_scenario}, {"kernels", check_kernels}, {"compute", check_compute},
    {"proxy", check_proxy},       {"llm", check_llm},
};

std::vector<std::string> all_kinds() {
  std::vector<std::string> kinds;
  for (const Checker& checker : kCheckers) kinds.emplace_back(checker.kind);
  kinds.emplace_back(kMeasurement);
  kinds.emplace_back(kSweep);
  return kinds;
}

// The kind that a file says it is; a scenario is known by its keys. Empty, with the problem reported, when neither tells.
std::string kind_of(const Json& document, Diagnostics& out) {
  if (!document.is_object()) {
    out.error(document.place, {},
              fmt::format("{} where a weft file holds an object", document.kind_name()),
              "write {...}");
    return {};
  }
  const Json* kind = document.find("kind");
  if (kind != nullptr && kind->is_string()) return kind->text;
  if (kind == nullptr && is_hf_config(document)) return "llm";
  if (document.find("jobs") != nullptr || document.find("workload") != nullptr ||
      document.find("fabric") != nullptr)
    return "scenario";
  if (!out.ok()) return {};  // what would tell could not be read
  out.error(document.place, {},
            "neither a \"kind\" nor a scenario's \"fabric\" and \"jobs\" (or \"workload\")",
            "kinds: " + join(all_kinds(), ", "));
  return {};
}

// Validation records name fabrics and do not include them, what a tool printed is no reference ("link": "IB"), and values of a
// sweep's axes are references only where they are put: these are read without the loader. Empty when it is none of them.
std::string check_unresolved(Configs& files, const std::string& path, Diagnostics& out) {
  const auto text = files.read(path);
  if (!text) return {};
  Diagnostics trial;
  const Json document = parse_json(*text, path, trial);
  if (!trial.ok() || !document.is_object()) return {};
  const Json* kind = document.find("kind");
  if (kind != nullptr && kind->is_string() && kind->text == kMeasurement) {
    read_measurement(parse_json(*text, path, out), out);
    return std::string(kMeasurement);
  }
  if (kind != nullptr && kind->is_string() && kind->text == kSweep) {
    const Sweep sweep = check_sweep(path, files, out);
    if (out.ok()) check_first_point(sweep, files, out);
    return std::string(kSweep);
  }
  if (!is_validation_file(document)) return {};
  Dataset dataset;
  read_validation_file(parse_json(*text, path, out), dataset, out);
  return "validation";
}

// What a patch says beside the values that it sets: `document` is the fabric that it makes.
void check_patch(Configs& files, const std::string& path, const Json& document, Diagnostics& out) {
  Diagnostics trial;
  const Json patch = parse_json(files.read(path).value_or(""), path, trial);
  const Json* kind = patch.find("kind");
  if (kind == nullptr || kind->text != "patch" || patch.find("calibration") == nullptr) return;
  const Json placed = parse_json(*files.read(path), path, out);
  if (const auto calibration = read_calibration(placed, out))
    check_calibration(*calibration, document, placed.place, out);
}

std::string check_file(Configs& files, const std::string& path, Diagnostics& out) {
  if (std::string kind = check_unresolved(files, path, out); !kind.empty()) return kind;
  Loader loader(files, out);
  const Json document = loader.load_file(path);
  if (!out.ok() && !document.is_object()) return {};
  const std::string kind = kind_of(document, out);
  if (kind.empty()) return kind;
  const std::vector<std::string> kinds = all_kinds();
  for (const Checker& checker : kCheckers) {
    if (checker.kind != kind) continue;
    read_on(out, [&](Diagnostics& more) { checker.check(document, more); });
    check_patch(files, path, document, out);
    return kind;
  }
  out.error(document.find("kind")->place, "/kind",
            fmt::format("there is no kind \"{}\"{}", kind, did_you_mean(kind, kinds)),
            "kinds: " + join(kinds, ", "));
  return kind;
}

class Check final : public Command {
 public:
  void add(CLI::App& app) override {
    app.add_option(
           "files", files_,
           "files of any kind: scenarios, sweeps, fabrics, parts, measurements, validation records")
        ->required();
    app.add_flag(
        "--run", run_,
        "run the scenarios among them and test what they expect; exit code 4 when one fails");
    add_json_flag(app, json_);
  }

  int run(Io& io) override {
    Configs files(find_configs_root());
    Json results = Json::array();
    std::string text;
    bool all_ok = true, all_met = true;
    for (const std::string& path : files_) {
      Diagnostics out;
      const std::string kind = check_file(files, path, out);
      all_ok = all_ok && out.ok();
      Json& result = results.items.emplace_back(to_json(path, kind, out));
      if (!json_) io.err << out.text();
      if (out.ok())
        text += fmt::format("{}: {}, {}\n", path, paint("ok", Colour::green, io.colour), kind);
      if (!run_ || !out.ok() || kind != "scenario") continue;
      CheckRun checked = check_run(path, io);
      all_met = all_met && checked.met;
      text += checked.text;
      result.set("fingerprint", checked.fingerprint);
      result.set("met", checked.met);
      result.set("expect", std::move(checked.expect));
    }
    if (json_) {
      Json document = Json::object();
      document.set("weft", json_head());
      document.set("ok", all_ok);
      if (run_) document.set("met", all_met);
      document.set("files", std::move(results));
      text = to_text(document) + "\n";
    }
    io.out += text;
    return !all_ok ? kBadInput : all_met ? kOk : kLimit;
  }

 private:
  static Json to_json(const std::string& path, const std::string& kind, const Diagnostics& out) {
    Json result = Json::object();
    result.set("file", path);
    result.set("kind", kind.empty() ? Json{} : Json(kind));
    result.set("ok", out.ok());
    Json& problems = result.set("problems", Json::array());
    for (const Problem& problem : out.problems()) {
      Json row = Json::object();
      row.set("severity", problem.severity == Problem::Severity::error ? "error" : "warning");
      row.set("file", out.file_name(problem.place.file));
      row.set("line", problem.place.line);
      row.set("column", problem.place.column);
      row.set("pointer", problem.pointer);
      row.set("fact", problem.fact);
      row.set("cure", problem.cure);
      problems.push(std::move(row));
    }
    return result;
  }

  std::vector<std::string> files_;
  bool json_ = false, run_ = false;
};

}  // namespace

extern const Verb kCheck;
const Verb kCheck{"check", "validates files, all problems at once with place and cure",
                  make_command<Check>};

}  // namespace weft
