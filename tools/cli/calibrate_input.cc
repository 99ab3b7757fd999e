// SPDX-License-Identifier: Apache-2.0
#include "tools/cli/calibrate_input.hpp"

#include <algorithm>
#include <filesystem>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include "calibrate/import/import.hpp"
#include "calibrate/measurement_merge.hpp"
#include "sim/core/loader.hpp"
#include "sim/core/text.hpp"
#include "tools/cli/file_source.hpp"

namespace weft {
namespace {

// Of importers that yield measurements, the order in which they are tried.
constexpr const char* kTried[] = {"nccl-tests", "nvbandwidth",    "p2p",
                                  "perftest",   "nccl-inspector", "moe-log"};

const Importer* importer_named(std::string_view name) {
  for (const Importer* importer : importers())
    if (importer->name == name) return importer;
  return nullptr;
}

std::optional<MeasuredFile> import_log(const Importer& importer, const std::string& text,
                                       const std::string& path, const CalibrateFlags& flags,
                                       std::vector<std::string>& notes, Diagnostics& out) {
  ImportOptions options;
  options.name = std::filesystem::path(path).stem().string();
  options.force = flags.force;
  if (importer.name == std::string_view("nccl-tests")) {
    if (!flags.collective.empty()) options.answers["collective"] = flags.collective;
    if (flags.ranks) options.answers["ranks"] = std::to_string(*flags.ranks);
  }
  const std::size_t before = out.error_count();
  const Imported imported = importer.read(text, path, options, out);
  if (out.error_count() > before) return std::nullopt;
  MeasuredFile found;
  found.file = out.add_file(path);
  if (!imported.measurement.is_object()) {
    out.error({.file = found.file}, {}, fmt::format("{} found no measurement in it", importer.name),
              "see `weft import`");
    return std::nullopt;
  }
  found.measurement = read_measurement(imported.measurement, out);
  if (out.error_count() > before) return std::nullopt;
  std::size_t ignored = 0;
  const ImportNote* first = nullptr;
  for (const ImportNote& note : imported.notes) {
    if (note.kind == ImportNote::Kind::warning) notes.push_back(path + ": " + note.text);
    if (note.kind != ImportNote::Kind::ignored || note.place.line == 0) continue;
    if (ignored++ == 0) first = &note;
  }
  if (first != nullptr)
    notes.push_back(fmt::format(
        "{}:{}: {}{}", path, first->place.line, first->text,
        ignored > 1 ? fmt::format("; {} more, see `weft import {}`", ignored - 1, importer.name)
                    : std::string{}));
  return found;
}

// What is JSON and no report of a tool: a measurement, another file of weft's, or neither.
std::optional<MeasuredFile> read_document(const std::string& text, const std::string& path,
                                          std::vector<std::string>& notes, Diagnostics& out) {
  MeasuredFile found;
  const std::size_t before = out.error_count();
  found.document = parse_json(text, path, out);
  found.file = found.document.place.file;
  if (out.error_count() > before) return std::nullopt;
  const Json* kind = found.document.find("kind");
  if (kind == nullptr || !kind->is_string()) {
    out.error(found.document.place, {}, "this JSON is neither a measurement nor a tool's report",
              "a file of kind \"measurement\", or what nccl-tests (-J), nvbandwidth (--json) or "
              "NCCL's Inspector writes");
    return std::nullopt;
  }
  if (kind->text != "measurement") {
    out.error(kind->place, "/kind",
              fmt::format("a file of kind \"{}\" holds no measurements", kind->text),
              "weft-probe writes measurements, `weft import` makes them from logs");
    return std::nullopt;
  }
  found.measurement = read_measurement(found.document, out);
  if (out.error_count() > before) return std::nullopt;
  std::error_code unknown;
  if (std::filesystem::exists(path + ".journal", unknown))
    notes.push_back(fmt::format(
        "{0}: a run that has not ended: what it lacks is in {0}.journal, weft-probe --resume puts "
        "it in",
        path));
  return found;
}

}  // namespace

void add_calibrate_flags(CLI::App& app, CalibrateFlags& flags) {
  app.add_option("files", flags.files,
                 "files of kind measurement, or logs and outputs that `weft import` reads")
      ->required();
  app.add_option("--fabric", flags.fabric, "the fabric or server that was measured")->required();
  app.add_option(
         "--as", flags.as,
         "the tool that wrote a log: " + join({std::begin(kTried), std::end(kTried)}, ", ") +
             "; default: tried in turn")
      ->type_name("KIND");
  app.add_option("--collective", flags.collective, "what a log is of, where it does not say");
  app.add_option("--ranks", flags.ranks, "how many ranks took part, where a log does not say")
      ->check(CLI::Range(1, 10'000'000));
  add_nccl_flags(app, flags.nccl, ": what the file says, or 2.27.7",
                 "; default: what the file says");
  app.add_flag("--force", flags.force, "uses a measurement that failed its own check");
  app.add_flag("--other-gpus", flags.other_gpus,
               "uses what was measured on other GPUs than the fabric has");
  add_set_option(app, flags.sets);
}

std::optional<MeasuredFile> read_measured(const std::string& path, const CalibrateFlags& flags,
                                          std::vector<std::string>& notes, Diagnostics& out) {
  Configs files(find_configs_root());
  const std::optional<std::string> text = read_capture(files, path, out);
  if (!text) return std::nullopt;
  if (!flags.as.empty()) {
    const Importer* importer = importer_named(flags.as);
    if (importer != nullptr) return import_log(*importer, *text, path, flags, notes, out);
    out.error({}, "--as",
              fmt::format("there is no importer \"{}\"{}", flags.as,
                          did_you_mean(flags.as, {std::begin(kTried), std::end(kTried)})),
              "one of " + join({std::begin(kTried), std::end(kTried)}, ", "));
    return std::nullopt;
  }
  Diagnostics trial;
  const Json document = parse_json(*text, path, trial);
  const bool ours = document.find("kind") != nullptr && document.find("kind")->is_string();
  if (ours) return read_document(*text, path, notes, out);
  for (const char* name : kTried) {
    Diagnostics tried;
    std::vector<std::string> warnings;
    if (import_log(*importer_named(name), *text, path, flags, warnings, tried))
      return import_log(*importer_named(name), *text, path, flags, notes, out);
  }
  if (trial.ok()) return read_document(*text, path, notes, out);
  // What the first importer says is the likeliest; run it again where its problems are kept.
  import_log(*importer_named(kTried[0]), *text, path, flags, notes, out);
  return std::nullopt;
}

namespace {

// One machine, each number once.
void put_together(std::vector<MeasuredFile>& files, const CalibrateFlags& flags,
                  std::vector<std::string>& notes, Diagnostics& out) {
  std::vector<Measurement*> parts;
  std::vector<const Measurement*> read;
  std::vector<Place> places;
  for (MeasuredFile& file : files) {
    parts.push_back(&file.measurement);
    read.push_back(&file.measurement);
    places.push_back({.file = file.file});
  }
  check_one_machine(read, places, out);
  const std::vector<std::size_t> dropped = drop_repeated(parts);
  for (std::size_t i = 0; i < dropped.size(); ++i) {
    if (dropped[i] == 0) continue;
    notes.push_back(fmt::format("{}: {} of its samples are in a file before it, each counts once",
                                flags.files[i], dropped[i]));
    // Positions no longer are those of the file.
    files[i].document = Json{};
  }
}

}  // namespace

CalibrateInput read_calibrate_input(const CalibrateFlags& flags, Io& io) {
  Diagnostics diagnostics;
  CalibrateInput input;
  FitAnswers answers;
  answers.collective = flags.collective;
  answers.ranks = flags.ranks;
  answers.nodes = flags.nccl.nodes;
  answers.per_node = flags.nccl.per_node;
  answers.force = flags.force;
  answers.other_gpus = flags.other_gpus;
  answers.release = read_nccl_release(flags.nccl.release, diagnostics);
  if (!flags.nccl.harness.empty()) {
    NcclHarness harness{};
    read_config(Json(flags.nccl.harness), "--harness", harness, diagnostics);
    answers.harness = harness;
  }
  NcclSetup setup;
  read_nccl_choices(flags.nccl, setup, diagnostics);
  answers.environment = setup.environment;
  answers.algorithm = setup.algorithm;
  answers.protocol = setup.protocol;
  std::vector<MeasuredFile> measured;
  for (const std::string& path : flags.files) {
    if (auto one = read_measured(path, flags, input.notes, diagnostics))
      measured.push_back(std::move(*one));
  }
  diagnostics.throw_if_errors();
  put_together(measured, flags, input.notes, diagnostics);
  LoadedFabric loaded = load_fabric(flags.fabric, flags.sets, diagnostics);
  input.machine = FitMachine(std::move(loaded.document));
  for (const MeasuredFile& one : measured)
    add_measurement(one, loaded.fabric, answers, input.data, input.notes, diagnostics);
  diagnostics.throw_if_errors();
  io.err << diagnostics.text();
  if (input.data.tables.empty() && input.data.copies.empty() && input.data.kernels.empty()) {
    std::string said =
        "error: nothing in the files can be fitted: no table of collectives, no "
        "copies between GPUs and no kernels\n";
    for (const std::string& note : input.notes) said += "    " + note + "\n";
    throw InputError(said);
  }
  return input;
}

void tell_notes(const CalibrateInput& input, Io& io) {
  for (const std::string& note : input.notes) io.err << "note: " << note << "\n";
}

std::vector<std::string> pointers_of(const Settings& sets) {
  std::vector<std::string> out;
  for (const auto& [pointer, value] : sets) out.push_back(resolved_pointer(pointer));
  return out;
}

Calibration calibration_of(const std::string& fabric, const std::vector<std::string>& held) {
  Diagnostics out;
  Configs files(find_configs_root());
  std::optional<std::string> text;
  if (fabric.ends_with(".json")) text = files.read(fabric);
  if (!text)
    throw InputError(
        fmt::format("error: --intervals: \"{}\" is not a calibrated fabric\n    name the file that "
                    "`weft calibrate "
                    "fit -o` wrote\n",
                    fabric));
  const Json document = parse_json(*text, fabric, out);
  out.throw_if_errors();
  std::optional<Calibration> found = read_calibration(document, out);
  out.throw_if_errors();
  Loader loader(files, out);
  const Json resolved = loader.load_component("fabric", fabric);
  out.throw_if_errors();
  check_calibration(*found, resolved, document.place, out);
  for (Parameter& parameter : found->parameters) {
    std::erase_if(parameter.pointers, [&](const std::string& pointer) {
      return std::ranges::any_of(held, [&](const std::string& by) {
        if (pointer.starts_with(by + "/"))
          out.error({}, by, fmt::format("it replaces the {} that was calibrated", parameter.name),
                    "set single values, or leave out --intervals");
        return pointer == by;
      });
    });
  }
  out.throw_if_errors();
  return std::move(*found);
}

std::string NamedFabric::path() const {
  return name.ends_with(".json") ? (std::filesystem::path(folder) / name).string() : name;
}

std::vector<std::string> NamedFabric::held() const {
  std::vector<std::string> out;
  for (const auto& [pointer, value] : sets) out.push_back(pointer);
  return out;
}

NamedFabric fabric_of_scenario(const std::string& path, const Settings& sets) {
  Diagnostics out;
  Configs files(find_configs_root());
  const std::optional<std::string> text = files.read(path);
  const Json document = text ? parse_json(*text, path, out) : Json{};
  const Json* fabric = document.find("fabric");
  NamedFabric found;
  found.folder = std::filesystem::path(path).parent_path().string();
  // The last that names the fabric counts; its own `set`, and what is set below it later, is held.
  const auto named = [&](const Json& value) {
    const Json* use = value.find("use") != nullptr ? value.find("use") : &value;
    found.name = use->is_string() ? use->text : std::string{};
    found.sets.clear();
    if (const Json* set = value.find("set"); set != nullptr)
      for (const JsonMember& member : set->members)
        found.sets.emplace_back(member.key, member.value);
  };
  if (fabric != nullptr) named(*fabric);
  const std::vector<std::string> pointers = pointers_of(sets);
  for (std::size_t i = 0; i < sets.size(); ++i) {
    constexpr std::string_view kFabric = "/fabric";
    const Json& value = sets[i].second;
    if (pointers[i] == kFabric) {
      named(value);
      found.folder.clear();  // paths of a command line are those of the current folder
    } else if (pointers[i].starts_with(std::string(kFabric) + "/")) {
      found.sets.emplace_back(pointers[i].substr(kFabric.size()), value);
    }
  }
  return found;
}

Calibration calibration_of_scenario(const std::string& path, const Settings& sets) {
  const NamedFabric fabric = fabric_of_scenario(path, sets);
  if (!fabric.name.ends_with(".json"))
    throw InputError(
        "error: --intervals: the fabric of the scenario is not a file of `weft calibrate fit`\n"
        "    name the file that `weft calibrate fit -o` wrote as its \"fabric\"\n");
  return calibration_of(fabric.path(), fabric.held());
}

}  // namespace weft
