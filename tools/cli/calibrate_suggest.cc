// SPDX-License-Identifier: Apache-2.0
// weft calibrate suggest: which few measurements would make a scenario's time surer.
#include <algorithm>
#include <functional>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include "calibrate/fit/suggest.hpp"
#include "tools/cli/calibrate_input.hpp"
#include "tools/cli/scenario_times.hpp"

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
    const NamedFabric named = fabric_of_scenario(scenario_, {});
    LoadedFabric loaded = load_fabric(fabric_, named.sets, diagnostics);
    const auto servers = static_cast<std::int64_t>(loaded.fabric.server_count());
    const FitMachine machine(std::move(loaded.document));
    Calibration calibration = fabric_.ends_with(".json") ? calibration_of(fabric_, named.held())
                                                         : prior_calibration(machine);
    ScenarioTimes times(scenario_, {});
    check_same_fabric(times.scenario(), machine);
    const auto predict = [&](const ValueChanges& changes) { return times.at(changes).front(); };
    const double time = predict(values_off(calibration));
    if (!(time > 0)) throw InputError("error: the scenario takes no time: nothing can be surer\n");
    const double sd = propagate(calibration, [&](const ValueChanges& changes) {
                        return std::vector<double>{predict(changes)};
                      }).front();
    const std::vector<SuggestedMeasurement> found =
        suggest(machine, calibration, measurable(machine, servers), predict,
                static_cast<std::size_t>(most_));
    const auto factor = [&](double of) {
      return interval_factor(calibration, of, times.things().front());
    };
    io.out =
        json_ ? to_text(to_json(found, time, sd, factor)) + "\n" : text(found, time, sd, factor);
    return kOk;
  }

 private:
  using Factor = std::function<double(double)>;

  // Members by name, as their order means nothing.
  static Json sorted(Json json) {
    for (Json& item : json.items) item = sorted(std::move(item));
    for (JsonMember& member : json.members) member.value = sorted(std::move(member.value));
    std::ranges::sort(json.members, {}, &JsonMember::key);
    return json;
  }

  // What would be measured must be what the scenario runs on: all but the values that a calibration may change, and how the two
  // are called.
  void check_same_fabric(const Scenario& scenario, const FitMachine& machine) const {
    const Json* fabric = scenario.document.find("fabric");
    Json runs = fabric != nullptr ? *fabric : Json{}, asked = machine.document();
    std::vector<std::string> names;
    for (const Json* document : {&asked, &runs}) {
      for (const Parameter& p : find_parameters(*document, {.copies = true, .kernels = true}))
        names.insert(names.end(), p.pointers.begin(), p.pointers.end());
    }
    for (Json* document : {&runs, &asked}) {
      for (const std::string& pointer : names) set_value(*document, pointer, {});
      std::erase_if(document->members, [](const JsonMember& member) {
        const std::string_view key = member.key;
        return key == "weft" || key == "kind" || key == "name" || key == "summary" ||
               key == "sources" || key == "calibration";
      });
    }
    if (to_text(sorted(runs)) == to_text(sorted(asked))) return;
    Diagnostics out;
    const std::uint32_t file = out.add_file(scenario_);
    const Json* name = fabric != nullptr ? fabric->find("name") : nullptr;
    const std::string called = name != nullptr && name->is_string() ? name->text : "another fabric";
    const bool alike = called == fabric_;
    out.error({.file = file}, "/fabric",
              alike ? fmt::format("the scenario changes {} into another fabric", called)
                    : fmt::format("the scenario runs on {}, not on {}", called, fabric_),
              "name the scenario's fabric as --fabric, or a patch of it");
    out.throw_if_errors();
  }

  static Json to_json(const std::vector<SuggestedMeasurement>& found, double time, double sd,
                      const Factor& factor) {
    Json out = Json::object();
    out.set("weft", json_head());
    out.set("time_s", time);
    const auto interval = [&](double of) {
      Json json = Json::object();
      json.set("low", time / factor(of));
      json.set("high", time * factor(of));
      return json;
    };
    out.set("sd", sd);
    out.set("interval_90", interval(sd));
    Json list = Json::array();
    for (const SuggestedMeasurement& one : found) {
      Json item = Json::object();
      item.set("measure", one.what);
      item.set("about", one.about);
      item.set("sd_before", one.sd_before);
      item.set("sd_after", one.sd_after);
      item.set("interval_90_after", interval(one.sd_after));
      list.push(std::move(item));
    }
    out.set("measurements", std::move(list));
    return out;
  }

  static std::string text(const std::vector<SuggestedMeasurement>& found, double time, double sd,
                          const Factor& factor) {
    const auto interval = [&](double of) {
      return fmt::format("{} to {}", seconds_text(time / factor(of)),
                         seconds_text(time * factor(of)));
    };
    std::string out =
        fmt::format("time {}: 90 % {}, of the fabric's values (+-{:.1f} %) and of weft itself\n\n",
                    seconds_text(time), interval(sd), 100 * sd);
    if (found.empty())
      return out + "Nothing that can be measured here would make the time surer.\n";
    Table table({"measure", "then 90 %", "values +- %", "it tells most of"});
    for (const SuggestedMeasurement& one : found)
      table.row(
          {one.what, interval(one.sd_after), fmt::format("{:.1f}", 100 * one.sd_after), one.about});
    return out + table.text();
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
