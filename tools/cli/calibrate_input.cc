// SPDX-License-Identifier: Apache-2.0
#include "tools/cli/calibrate_input.hpp"

#include <filesystem>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include "calibrate/import/import.hpp"
#include "sim/core/text.hpp"
#include "tools/cli/file_source.hpp"

namespace weft {
namespace {

// Of importers that yield measurements, the order in which they are tried.
constexpr const char* kTried[] = {"nccl-tests", "nvbandwidth", "p2p", "perftest", "nccl-inspector"};

const Importer* importer_named(std::string_view name) {
  for (const Importer* importer : importers())
    if (importer->name == name) return importer;
  return nullptr;
}

std::optional<Measurement> import_log(const Importer& importer, const std::string& text,
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
  if (!imported.measurement.is_object()) {
    out.error({}, path, fmt::format("{} found no measurement in it", importer.name));
    return std::nullopt;
  }
  Measurement measurement = read_measurement(imported.measurement, out);
  if (out.error_count() > before) return std::nullopt;
  for (const ImportNote& note : imported.notes)
    if (note.kind == ImportNote::Kind::warning) notes.push_back(path + ": " + note.text);
  return measurement;
}

}  // namespace

void add_calibrate_flags(CLI::App& app, CalibrateFlags& flags) {
  app.add_option("files", flags.files,
                 "files of kind measurement, or logs and outputs that `weft import` reads")
      ->required();
  app.add_option("--fabric", flags.fabric, "the fabric or server that was measured")->required();
  app.add_option("--as", flags.as,
                 "nccl-tests, nvbandwidth, p2p or perftest; default: tried in turn")
      ->type_name("KIND");
  app.add_option("--collective", flags.collective, "what a log is of, where it does not say");
  app.add_option("--ranks", flags.ranks, "how many ranks took part, where a log does not say")
      ->check(CLI::Range(1, 10'000'000));
  add_nccl_flags(app, flags.nccl, ": what the file says, or 2.27.7",
                 "; default: what the file says");
  app.add_flag("--force", flags.force, "uses a measurement that failed its own check");
  add_set_option(app, flags.sets);
}

std::optional<Measurement> read_measured(const std::string& path, const CalibrateFlags& flags,
                                         std::vector<std::string>& notes, Diagnostics& out) {
  Configs files(find_configs_root());
  const std::optional<std::string> text = read_capture(files, path, out);
  if (!text) return std::nullopt;
  if (!flags.as.empty()) {
    const Importer* importer = importer_named(flags.as);
    if (importer != nullptr) return import_log(*importer, *text, path, flags, notes, out);
    out.error({}, "--as",
              fmt::format("there is no importer \"{}\"{}", flags.as,
                          did_you_mean(flags.as, {std::begin(kTried), std::end(kTried)})));
    return std::nullopt;
  }
  Diagnostics trial;
  const Json document = parse_json(*text, path, trial);
  const Json* kind = document.find("kind");
  if (trial.ok() && kind != nullptr && kind->is_string() && kind->text == "measurement") {
    const std::size_t before = out.error_count();
    Measurement measurement = read_measurement(parse_json(*text, path, out), out);
    if (out.error_count() > before) return std::nullopt;
    return measurement;
  }
  for (const char* name : kTried) {
    Diagnostics tried;
    std::vector<std::string> warnings;
    auto found = import_log(*importer_named(name), *text, path, flags, warnings, tried);
    if (found) {
      notes.insert(notes.end(), warnings.begin(), warnings.end());
      return found;
    }
  }
  // What the first importer says is the likeliest; run it again where its problems are kept.
  import_log(*importer_named(kTried[0]), *text, path, flags, notes, out);
  return std::nullopt;
}

CalibrateInput read_calibrate_input(const CalibrateFlags& flags, Io& io) {
  Diagnostics diagnostics;
  CalibrateInput input;
  FitAnswers answers;
  answers.collective = flags.collective;
  answers.ranks = flags.ranks;
  answers.nodes = flags.nccl.nodes;
  answers.per_node = flags.nccl.per_node;
  answers.force = flags.force;
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
  std::vector<Measurement> measured;
  for (const std::string& path : flags.files) {
    if (auto one = read_measured(path, flags, input.notes, diagnostics))
      measured.push_back(std::move(*one));
  }
  diagnostics.throw_if_errors();
  LoadedFabric loaded = load_fabric(flags.fabric, flags.sets, diagnostics);
  const std::size_t per_server = loaded.fabric.types().front().gpus.size();
  input.machine = FitMachine(std::move(loaded.document));
  for (const Measurement& one : measured)
    add_measurement(one, per_server, answers, input.data, input.notes, diagnostics);
  diagnostics.throw_if_errors();
  io.err << diagnostics.text();
  if (input.data.tables.empty() && input.data.copies.empty())
    throw InputError("error: the files hold no table of collectives and no copies between GPUs\n");
  return input;
}

Calibration calibration_of(const std::string& fabric) {
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
  return std::move(*found);
}

Calibration calibration_of_scenario(const std::string& path) {
  Diagnostics out;
  Configs files(find_configs_root());
  const std::optional<std::string> text = files.read(path);
  const Json document = text ? parse_json(*text, path, out) : Json{};
  const Json* fabric = document.find("fabric");
  if (fabric != nullptr && fabric->find("use") != nullptr) fabric = fabric->find("use");
  if (fabric == nullptr || !fabric->is_string() || !fabric->text.ends_with(".json"))
    throw InputError(
        "error: --intervals: the fabric of the scenario is not a file of `weft calibrate fit`\n");
  const auto folder = std::filesystem::path(path).parent_path();
  return calibration_of((folder / fabric->text).string());
}

}  // namespace weft
