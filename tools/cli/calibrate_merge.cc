// SPDX-License-Identifier: Apache-2.0
// weft calibrate merge and inspect: measurement files put together, and what is in one.
#include <filesystem>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include "calibrate/measurement_inspect.hpp"
#include "calibrate/measurement_merge.hpp"
#include "tools/cli/calibrate_input.hpp"
#include "tools/cli/output.hpp"

namespace weft {
namespace {

struct ReadFiles {
  std::vector<Measurement> parts;
  std::vector<Place> places;
  Diagnostics diagnostics;
};

ReadFiles read_all(const std::vector<std::string>& files, Io& io) {
  ReadFiles out;
  std::vector<std::string> notes;
  for (const std::string& file : files) {
    if (auto read = read_measured(file, CalibrateFlags{}, notes, out.diagnostics)) {
      out.parts.push_back(std::move(read->measurement));
      out.places.push_back({.file = read->file});
    }
  }
  out.diagnostics.throw_if_errors();
  for (const std::string& note : notes) io.err << "note: " << note << "\n";
  return out;
}

class CalibrateMerge final : public Command {
 public:
  void add(CLI::App& app) override {
    app.add_option("measurements", files_,
                   "files of one machine: measurements, or logs that weft imports")
        ->required();
    app.add_option("-o,--output", output_, "the file with all of them")->required();
    app.add_option("--name", name_, "of what is written; default: the stem of the file");
    app.add_flag("--anonymous", anonymous_,
                 "names of hosts, serial numbers, GUIDs and how tools were called stay out");
  }

  int run(Io& io) override {
    expect_writable(output_);
    ReadFiles read = read_all(files_, io);
    if (name_.empty()) name_ = std::filesystem::path(output_).stem().string();
    Measurement all = merge_measurements(read.parts, name_, read.diagnostics, read.places);
    read.diagnostics.throw_if_errors();
    io.err << read.diagnostics.text();
    if (anonymous_) anonymise(all);
    write_file(output_, to_text(write_measurement(all)) + "\n");
    io.out = fmt::format("{}: {} files put together\n", output_, read.parts.size());
    return kOk;
  }

 private:
  std::vector<std::string> files_;
  std::string output_, name_;
  bool anonymous_ = false;
};

class CalibrateInspect final : public Command {
 public:
  void add(CLI::App& app) override {
    app.add_option("measurement", file_, "a measurement, or a log that weft imports")->required();
    add_json_flag(app, json_);
  }

  int run(Io& io) override {
    const ReadFiles read = read_all({file_}, io);
    io.err << read.diagnostics.text();
    const MeasurementContents contents = inspect_measurement(read.parts.at(0));
    io.out = json_ ? to_text(to_json(contents)) + "\n" : text(contents);
    return kOk;
  }

 private:
  using Lines = std::vector<MeasurementContents::Line>;

  static Json to_json(const MeasurementContents& contents) {
    Json out = Json::object();
    out.set("weft", json_head());
    const auto list = [&](std::string_view name, const Lines& lines) {
      Json rows = Json::array();
      for (const auto& line : lines) {
        Json row = Json::object();
        row.set("what", line.what);
        row.set("detail", line.detail);
        rows.push(std::move(row));
      }
      out.set(name, std::move(rows));
    };
    list("holds", contents.holds);
    list("missing", contents.missing);
    list("doubtful", contents.doubtful);
    return out;
  }

  static std::string text(const MeasurementContents& contents) {
    std::string out;
    const auto list = [&](std::string_view title, const Lines& lines) {
      if (lines.empty()) return;
      Table table({std::string(title), ""});
      for (const auto& line : lines) table.row({line.what, line.detail});
      out += (out.empty() ? "" : "\n") + table.text();
    };
    list("holds", contents.holds);
    list("missing", contents.missing);
    list("doubtful", contents.doubtful);
    return out;
  }

  std::string file_;
  bool json_ = false;
};

}  // namespace

extern const Verb kCalibrateMerge, kCalibrateInspect;
const Verb kCalibrateMerge{"merge", "puts measurement files of one machine together",
                           make_command<CalibrateMerge>};
const Verb kCalibrateInspect{"inspect", "what a measurement file holds and what a fit would miss",
                             make_command<CalibrateInspect>};

}  // namespace weft
