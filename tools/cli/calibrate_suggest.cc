// SPDX-License-Identifier: Apache-2.0
// weft calibrate suggest: which few measurements would make a scenario's time surer.
#include <algorithm>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include "calibrate/fit/suggest.hpp"
#include "tools/cli/calibrate_input.hpp"
#include "tools/cli/simulate.hpp"

namespace weft {
namespace {

class CalibrateSuggest final : public Command {
 public:
  void add(CLI::App& app) override {
    app.add_option("scenario", scenario_, "a scenario file: whose time should be surer")
        ->required();
    app.add_option("--fabric", fabric_,
                   "the fabric that would be measured, as the scenario names it, or a patch of it")
        ->required();
    app.add_option("--most", most_, "measurements at most, default 5")->check(CLI::Range(1, 100));
    add_json_flag(app, json_);
  }

  int run(Io& io) override {
    Diagnostics diagnostics;
    LoadedFabric loaded = load_fabric(fabric_, {}, diagnostics);
    const auto servers = static_cast<std::int64_t>(loaded.fabric.server_count());
    const FitMachine machine(std::move(loaded.document));
    const Calibration calibration =
        fabric_.ends_with(".json") ? calibration_of(fabric_, {}) : prior_calibration(machine);
    check_same_fabric(load_scenario(scenario_, {}, diagnostics), machine);
    RunContext context = run_models();
    context.explain = false;
    const auto predict = [&](const ValueChanges& changes) {
      RunOptions options;
      for (const auto& [pointer, value] : changes)
        options.sets.emplace_back("/fabric" + pointer, value);
      return run_timed(load_scenario(scenario_, options, diagnostics), context, diagnostics).time_s;
    };
    const std::vector<SuggestedMeasurement> found =
        suggest(machine, calibration, measurable(machine, servers), predict,
                static_cast<std::size_t>(most_));
    io.out = json_ ? to_text(to_json(found)) + "\n" : text(found);
    return kOk;
  }

 private:
  // What would be measured must be what the scenario runs on: the same parts at the same pointers.
  void check_same_fabric(const Scenario& scenario, const FitMachine& machine) const {
    const auto parts = [](const Json& document) {
      std::vector<std::string> out;
      for (const Parameter& p : find_parameters(document, {.copies = true, .kernels = true}))
        for (const std::string& pointer : p.pointers) out.push_back(p.name + " " + pointer);
      std::ranges::sort(out);
      return out;
    };
    const Json* fabric = scenario.document.find("fabric");
    if (fabric != nullptr && parts(*fabric) == parts(machine.document())) return;
    Diagnostics out;
    const std::uint32_t file = out.add_file(scenario_);
    const Json* name = fabric != nullptr ? fabric->find("name") : nullptr;
    out.error(
        {.file = file}, "/fabric",
        fmt::format("the scenario runs on {}, not on {}",
                    name != nullptr && name->is_string() ? name->text : "another fabric", fabric_),
        "name the scenario's fabric as --fabric, or a patch of it");
    out.throw_if_errors();
  }

  static Json to_json(const std::vector<SuggestedMeasurement>& found) {
    Json out = Json::object();
    out.set("weft", json_head());
    Json list = Json::array();
    for (const SuggestedMeasurement& one : found) {
      Json item = Json::object();
      item.set("measure", one.what);
      item.set("about", one.about);
      item.set("sd_before", one.sd_before);
      item.set("sd_after", one.sd_after);
      list.push(std::move(item));
    }
    out.set("measurements", std::move(list));
    return out;
  }

  static std::string text(const std::vector<SuggestedMeasurement>& found) {
    if (found.empty()) return "Nothing that can be measured here would make the time surer.\n";
    Table table({"measure", "then the time is known to", "it tells most of"});
    for (const SuggestedMeasurement& one : found)
      table.row({one.what, fmt::format("+-{:.1f} %", 164 * one.sd_after), one.about});
    return fmt::format("Now the time is known to +-{:.1f} % (90 %), from the fabric's values.\n\n",
                       164 * found.front().sd_before) +
           table.text();
  }

  std::string scenario_, fabric_;
  int most_ = 5;
  bool json_ = false;
};

}  // namespace

extern const Verb kCalibrateSuggest;
const Verb kCalibrateSuggest{"suggest", "which measurements would make a scenario's time surer",
                             make_command<CalibrateSuggest>};

}  // namespace weft
