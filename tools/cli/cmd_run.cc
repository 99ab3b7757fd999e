// SPDX-License-Identifier: Apache-2.0
// weft run: simulates a scenario; with --what-if a second time with values changed, and the difference.
#include <algorithm>
#include <ostream>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include "tools/cli/calibrate_input.hpp"
#include "tools/cli/cli.hpp"
#include "tools/cli/output.hpp"
#include "tools/cli/page.hpp"
#include "tools/cli/run_folder.hpp"
#include "tools/cli/scenario_times.hpp"
#include "tools/cli/simulate.hpp"

namespace weft {
namespace {

Json number_change(double before, double after) {
  Json out = Json::object();
  out.set("before", before);
  out.set("after", after);
  if (before != 0) out.set("ratio", after / before);
  return out;
}

class RunCommand final : public Command {
 public:
  void add(CLI::App& app) override {
    app.add_option("scenario", scenario_, "a scenario file")->required();
    app.add_option("--fidelity", options_.fidelity, "analytic, fluid or packet; beats the file");
    add_set_option(app, options_.sets);
    app.add_option("--seed", options_.seed, "of everything random; beats the file");
    CLI::Option* what_if =
        add_settings_option(app, {"--what-if", "PTR=VALUE", "/fabric/servers=128"}, what_ifs_,
                            "run again with this changed and compare");
    app.add_option("--top", options_.top, "most links and flows in the report")
        ->check(CLI::NonNegativeNumber);
    app.add_option("--out", folder_,
                   "write report.json, report.html, trace.json.gz and links.csv into this folder");
    app.add_option("--trace-slices", trace_slices_,
                   "most slices in trace.json.gz; the longest stay")
        ->check(CLI::Range(std::size_t{1}, std::size_t{20'000'000}))
        ->capture_default_str();
    app.add_flag("--intervals", intervals_,
                 "90 % intervals of the times: the fabric is a patch of `weft calibrate fit`")
        ->excludes(what_if);
    app.add_flag("--quick", quick_, "skip the second runs that show what limits the time");
    add_json_flag(app, json_);
  }

  int run(Io& io) override {
    if (!folder_.empty()) expect_writable(folder_ + "/report.json", true);
    Diagnostics diagnostics;
    const Scenario scenario = load_scenario(scenario_, options_, diagnostics);
    Progress progress(io.err);
    RunContext context = run_context(progress);
    context.explain = !quick_;
    Recorder recorder(trace_slices_);
    const auto recorded = [&] { return folder_.empty() ? context : recorder.watch(context); };
    const Report report =
        run_timed(scenario, what_ifs_.empty() ? recorded() : context, diagnostics);
    io.err << diagnostics.text();
    if (what_ifs_.empty()) {
      io.out = answer(report);
      write_folder(recorder, report, io);
      return kOk;
    }
    RunOptions changed = options_;
    changed.sets.insert(changed.sets.end(), what_ifs_.begin(), what_ifs_.end());
    const Scenario other = load_scenario(scenario_, changed, diagnostics);
    const Report after = run_timed(other, recorded(), diagnostics);
    io.out = json_ ? to_text(compare_json(report, after)) + "\n" : compare_text(report, after);
    write_folder(recorder, after, io);
    return kOk;
  }

 private:
  std::string answer(const Report& report) const {
    if (!intervals_) return json_ ? to_text(to_json(report)) + "\n" : summary(report);
    const Calibration calibration = calibration_of_scenario(scenario_, options_.sets);
    ScenarioTimes times(scenario_, options_);
    const std::vector<double> sd =
        propagate(calibration, [&](const ValueChanges& changes) { return times.at(changes); });
    std::string text = summary(report);
    Json json = to_json(report);
    Json intervals = Json::object();
    const auto add = [&](const std::string& name, double time, std::size_t i) {
      const double factor = interval_factor(calibration, sd[i], times.things()[i]);
      Json one = Json::object();
      one.set("low", time / factor);
      one.set("high", time * factor);
      intervals.set(name, std::move(one));
      text += fmt::format("{}: 90 % {} to {}\n", name, seconds_text(time / factor),
                          seconds_text(time * factor));
    };
    text += "\nof the calibrated values and of weft itself:\n";
    add("time", report.time_s, 0);
    for (std::size_t i = 0; i < report.jobs.size(); ++i)
      add(report.jobs[i].name, report.jobs[i].time_s, i + 1);
    json.set("intervals_90", std::move(intervals));
    return json_ ? to_text(json) + "\n" : text;
  }

  void write_folder(const Recorder& recorder, const Report& report, Io& io) const {
    if (folder_.empty()) return;
    const std::vector<OutputFile> files = recorder.files(folder_, report);
    write_files(files);
    const bool page = files.back().path.ends_with(".html");
    if (!page) io.err << fmt::format("weft: no report.html: {}\n", kNoPage);
    if (!json_) io.out += fmt::format("\nreport: {}/report.{}\n", folder_, page ? "html" : "json");
  }

  Json compare_json(const Report& before, const Report& after) const {
    Json out = Json::object();
    out.set("weft", json_head());
    Json& changed = out.set("what_if", Json::array());
    for (const auto& [pointer, value] : what_ifs_) changed.push(setting_text(pointer, value));
    out.set("time_s", number_change(before.time_s, after.time_s));
    out.set("bound_s", number_change(before.bound_s, after.bound_s));
    Json& jobs = out.set("jobs", Json::array());
    for (std::size_t i = 0; i < std::min(before.jobs.size(), after.jobs.size()); ++i) {
      Json job = Json::object();
      job.set("name", before.jobs[i].name);
      job.set("time_s", number_change(before.jobs[i].time_s, after.jobs[i].time_s));
      jobs.push(std::move(job));
    }
    out.set("before", to_json(before));
    out.set("after", to_json(after));
    return out;
  }

  std::string compare_text(const Report& before, const Report& after) const {
    std::string out = before.question.empty() ? std::string{} : before.question + "\n";
    for (const auto& [pointer, value] : what_ifs_)
      out += fmt::format("what if {}\n", setting_text(pointer, value));
    Table table({"", "before", "after", "change"});
    table.row({"time", seconds_text(before.time_s), seconds_text(after.time_s),
               change_text(before.time_s, after.time_s)});
    table.row({"bound", seconds_text(before.bound_s), seconds_text(after.bound_s),
               change_text(before.bound_s, after.bound_s)});
    for (std::size_t i = 0; i < std::min(before.jobs.size(), after.jobs.size()); ++i) {
      const JobReport &a = before.jobs[i], &b = after.jobs[i];
      table.row({a.name, seconds_text(a.time_s), seconds_text(b.time_s),
                 change_text(a.time_s, b.time_s)});
      if (a.busbw_gbs > 0) {
        table.row({a.name + " busbw", fmt::format("{:.2f} GB/s", a.busbw_gbs),
                   fmt::format("{:.2f} GB/s", b.busbw_gbs), change_text(a.busbw_gbs, b.busbw_gbs)});
      }
    }
    out += "\n" + table.text();
    if (!before.bottlenecks.empty() && !after.bottlenecks.empty()) {
      const bool known = before.explained && after.explained;
      const auto first = [&](const Report& report) {
        const Bottleneck& b = report.bottlenecks.front();
        return known && b.gain_if_infinite_s.value_or(0) <= 0 ? "no link" : b.resource;
      };
      out += fmt::format("\n{}: {} before, {} after\n", known ? "limited by" : "busiest links",
                         first(before), first(after));
    }
    return out;
  }

  std::string scenario_, folder_;
  RunOptions options_;
  Settings what_ifs_;
  std::size_t trace_slices_ = 200'000;
  bool json_ = false, quick_ = false, intervals_ = false;
};

}  // namespace

extern const Verb kRun;
const Verb kRun{"run", "simulates a scenario", make_command<RunCommand>};

}  // namespace weft
