// SPDX-License-Identifier: Apache-2.0
// weft calibrate fit: the parameters of a fabric from measurements, as a patch.
#include <charconv>
#include <chrono>
#include <filesystem>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include "calibrate/fit/faults.hpp"
#include "calibrate/fit/page.hpp"
#include "calibrate/fit/patch.hpp"
#include "sim/core/loader.hpp"
#include "tools/cli/calibrate_input.hpp"
#include "tools/cli/file_source.hpp"
#include "tools/cli/output.hpp"

namespace weft {
namespace {

constexpr std::size_t kMostNotes = 12;

std::string today() {
  const auto now = std::chrono::floor<std::chrono::days>(std::chrono::system_clock::now());
  const std::chrono::year_month_day day{now};
  return fmt::format("{:04}-{:02}-{:02}", static_cast<int>(day.year()),
                     static_cast<unsigned>(day.month()), static_cast<unsigned>(day.day()));
}

// Of the calendar: 2026-02-29 is none.
bool is_date(const std::string& text) {
  int parts[3] = {0, 0, 0};
  const char* at = text.data();
  const char* const end = at + text.size();
  for (const int i : {0, 1, 2}) {
    const auto [stop, error] = std::from_chars(at, end, parts[i]);
    if (error != std::errc{} || stop - at != (i == 0 ? 4 : 2)) return false;
    at = stop;
    if (i < 2 && (at == end || *at++ != '-')) return false;
  }
  return at == end &&
         std::chrono::year_month_day{std::chrono::year{parts[0]},
                                     std::chrono::month{static_cast<unsigned>(parts[1])},
                                     std::chrono::day{static_cast<unsigned>(parts[2])}}
             .ok();
}

class CalibrateFit final : public Command {
 public:
  void add(CLI::App& app) override {
    add_calibrate_flags(app, flags_);
    app.add_option("-o,--output", output_, "writes the patch")->type_name("PATCH.json");
    app.add_option("--name", name_, "of the patch; default: the stem of its file");
    app.add_option("--date", date_, "of the measurement; default: today")->type_name("YYYY-MM-DD");
    app.add_option("--page", page_, "writes curves, errors and parameters as a page")
        ->type_name("FILE.html");
    add_json_flag(app, json_);
  }

  int run(Io& io) override {
    if (!date_.empty() && !is_date(date_)) {
      Diagnostics out;
      out.error({}, "--date", fmt::format("\"{}\" is not a date", date_),
                "YYYY-MM-DD, e.g. " + today());
      out.throw_if_errors();
    }
    std::vector<std::string> read = flags_.files;
    read.push_back(flags_.fabric);
    refuse_overwriting(output_, read);
    refuse_overwriting(page_, read);
    if (same_file(page_, output_))
      throw InputError("error: --page: the patch goes into that file\n    name another one\n");
    expect_writable(output_);
    expect_writable(page_);
    const CalibrateInput input = read_calibrate_input(flags_, io);
    std::vector<FoundFault> faults;
    const FitResult fitted = fit_and_find_faults(input.machine, input.data, FitOptions{}, faults);
    PatchHead head;
    head.base = flags_.fabric;
    head.date = date_.empty() ? today() : date_;
    head.instrument = input.data.instrument;
    head.name = !name_.empty()     ? name_
                : !output_.empty() ? std::filesystem::path(output_).stem().string()
                                   : flags_.fabric + "-measured";
    head.changes = flags_.sets;
    if (head.base.ends_with(".json") && !output_.empty()) {
      // Seen from where the patch lies.
      std::error_code failed;
      const auto folder = std::filesystem::absolute(output_).parent_path();
      const auto base =
          std::filesystem::relative(std::filesystem::absolute(head.base), folder, failed);
      head.base =
          failed || base.empty() ? std::filesystem::absolute(head.base).string() : base.string();
    }
    const Json patch = write_patch(head, fitted);
    std::vector<OutputFile> files;
    if (!output_.empty()) files.push_back({output_, to_text(patch) + "\n"});
    if (!page_.empty())
      files.push_back({page_, calibration_page({.title = head.name + ", as measured",
                                                .fabric = flags_.fabric,
                                                .instrument = input.data.instrument,
                                                .notes = input.notes,
                                                .fitted = &fitted})});
    write_files(files);
    if (json_) tell_notes(input, io);
    io.out = json_ ? to_text(patch) + "\n" : text(input, fitted, io);
    return kOk;
  }

 private:
  std::string text(const CalibrateInput& input, const FitResult& fitted, const Io& io) const {
    std::string out =
        fmt::format("{}: {} rows, {} of {} parameters determined\n\n", flags_.fabric,
                    fitted.residuals.size(), fitted.determined(), fitted.parameters.size());
    Table table({"parameter", "before", "now", "95 % interval", ""});
    for (const FittedParameter& p : fitted.parameters) {
      const ParameterUnit unit = p.parameter.unit;
      const bool held = p.state == ParameterState::undetermined;
      table.row({p.parameter.name, parameter_text(unit, p.parameter.prior),
                 held ? "as before" : parameter_text(unit, p.value), held ? "" : interval_text(p),
                 p.reason});
    }
    out += table.text() + "\n";
    std::vector<double> before, now;
    for (const FitResidual& r : fitted.residuals) {
      if (!r.fitted) continue;
      before.push_back(std::abs(r.before / r.point.measured - 1));
      now.push_back(std::abs(r.error()));
    }
    out += fmt::format("Median error of the fitted rows: {:.1f} %, before {:.1f} %.\n",
                       100 * median(now), 100 * median(before));
    if (!fitted.unused.empty()) {
      out += "Nothing measured depends on: ";
      for (std::size_t i = 0; i < fitted.unused.size(); ++i)
        out += (i > 0 ? ", " : "") + fitted.unused[i];
      out += ".\n";
    }
    for (const std::string& note : input.notes) out += "note: " + note + "\n";
    for (std::size_t i = 0; i < std::min(kMostNotes, fitted.notes.size()); ++i)
      out += "note: " + fitted.notes[i] + "\n";
    if (fitted.notes.size() > kMostNotes)
      out += fmt::format("and {} more, see --json\n", fitted.notes.size() - kMostNotes);
    for (const std::string& written : {output_, page_})
      if (!written.empty())
        out += fmt::format("\n{} {}\n", paint("written:", Colour::bold, io.colour), written);
    return out;
  }

  CalibrateFlags flags_;
  std::string output_, page_, name_, date_;
  bool json_ = false;
};

}  // namespace

extern const Verb kCalibrateFit;
const Verb kCalibrateFit{"fit", "fits parameters to measurements and writes them as a patch",
                         make_command<CalibrateFit>};

}  // namespace weft
