// SPDX-License-Identifier: Apache-2.0
// weft import: reads a capture or log of another tool, says what it holds, and writes what weft can use of it.
//
//   weft import topo-m topo.txt --gpu a100-sxm4-80gb -o node.json && weft p2p node.json
//
// What is written is read back as `weft run` would before it replaces anything on disk.
#include <filesystem>
#include <map>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include "calibrate/import/import.hpp"
#include "models/catalog.hpp"
#include "sim/core/loader.hpp"
#include "sim/core/text.hpp"
#include "sim/fabric/fabric.hpp"
#include "tools/cli/cli.hpp"
#include "tools/cli/file_source.hpp"
#include "tools/cli/output.hpp"

namespace weft {
namespace {

// One option per answer to what a capture cannot tell.
struct Answer {
  const char *key, *type, *summary;
  const char* kind;  // of component in the catalogue; "": free text
};
constexpr Answer kAnswers[] = {
    {"gpu", "MODEL", "the GPU, see `weft list gpus`", "gpu"},
    {"nic", "MODEL", "the NICs on the compute network, see `weft list nics`", "nic"},
    {"pcie", "LINK", "the PCIe link of a device, see `weft list links`", "link"},
    {"nvlink", "WIRING", "switched or none, where the capture does not show NVLinks", ""},
    {"collective", "NAME", "what a log of nccl-tests measured, where it does not say", ""},
    {"ranks", "N", "how many ranks took part, where a log does not say", ""},
    {"bidirectional", "YES|NO", "whether rates are of both directions, where the banner is lost",
     ""},
};

// The groups of notes, in the order in which they are printed.
struct Section {
  ImportNote::Kind kind;
  const char *key, *title;
};
constexpr Section kSections[] = {
    {ImportNote::Kind::read, "read", "Read"},
    {ImportNote::Kind::ignored, "ignored", "Ignored"},
    {ImportNote::Kind::unknown, "unknown", "Unknown"},
    {ImportNote::Kind::warning, "warnings", "Warnings"},
    {ImportNote::Kind::belief, "nccl_believes", "NCCL believes"},
};

std::vector<std::string> lines_of(const Imported& imported, ImportNote::Kind kind) {
  std::vector<std::string> out;
  for (const ImportNote& note : imported.notes) {
    if (note.kind != kind) continue;
    out.push_back(note.place.line == 0 ? note.text
                                       : fmt::format("line {}: {}", note.place.line, note.text));
  }
  return out;
}

// The catalogue, and one text under a path that need not exist yet.
class WithText final : public FileSource {
 public:
  WithText(FileSource& files, std::string path, std::string text)
      : files_(files), path_(std::move(path)), text_(std::move(text)) {}
  std::optional<std::string> read(const std::string& path) override {
    return path == path_ ? text_ : files_.read(path);
  }
  std::optional<std::string> find(std::string_view kind, const std::string& name) override {
    return files_.find(kind, name);
  }
  std::vector<std::string> names(std::string_view kind) override { return files_.names(kind); }

 private:
  FileSource& files_;
  std::string path_, text_;
};

class Import final : public Command {
 public:
  void add(CLI::App& app) override {
    std::vector<std::string> words;
    for (const Importer* importer : importers()) words.emplace_back(importer->name);
    app.add_option("kind", kind_, join(words, ", "))->required();
    app.add_option("file", file_, "the capture or log")->required();
    app.add_option("-o,--output", output_, "write a server, a measurement or an llm for weft")
        ->type_name("FILE");
    app.add_option("--name", name_, "of what is written; default: the stem of its file");
    for (const Answer& answer : kAnswers) {
      app.add_option(std::string("--") + answer.key, answers_[answer.key], answer.summary)
          ->type_name(answer.type);
    }
    app.add_flag("--force", force_, "keep a measurement that failed its own check");
    add_json_flag(app, json_);
  }

  int run(Io& io) override {
    const Importer& importer = find_importer();
    Configs files(find_configs_root());
    Diagnostics diagnostics;
    const std::optional<std::string> text = read_capture(files, file_, diagnostics);
    diagnostics.throw_if_errors();
    const ImportOptions options = options_for(importer, files);
    const Imported imported = importer.read(*text, file_, options, diagnostics);
    diagnostics.throw_if_errors();
    if (!output_.empty()) write_file(output_, document_text(imported, files, diagnostics));
    io.err << diagnostics.text();
    io.out = json_ ? to_text(to_json(imported)) + "\n" : to_sections(importer, imported, io);
    return kOk;
  }

 private:
  const Importer& find_importer() const {
    std::vector<std::string> words;
    for (const Importer* importer : importers()) {
      if (importer->name == kind_) return *importer;
      words.emplace_back(importer->name);
    }
    throw InputError(fmt::format("error: there is no importer \"{}\"{}\n    importers: {}\n", kind_,
                                 did_you_mean(kind_, words), join(words, ", ")));
  }

  // Refuses an answer that nobody asked for, and parts that are not in the catalogue.
  ImportOptions options_for(const Importer& importer, Configs& files) const {
    ImportOptions options;
    const std::filesystem::path named(output_.empty() ? file_ : output_);
    options.name = name_.empty() ? named.stem().string() : name_;
    options.force = force_;
    options.catalogue = &files;
    std::string problems;
    for (const Answer& answer : kAnswers) {
      const std::string& given = answers_.at(answer.key);
      if (given.empty()) continue;
      options.answers[answer.key] = given;
      if (!reads(importer, answer.key)) {
        problems += fmt::format("error: --{} means nothing to \"{}\"\n", answer.key, importer.name);
      } else if (answer.kind[0] != '\0' && !files.find(answer.kind, given)) {
        problems += fmt::format("error: --{}: the catalogue has no {} \"{}\"{}\n", answer.key,
                                answer.kind, given, did_you_mean(given, files.names(answer.kind)));
      }
    }
    if (!problems.empty()) throw InputError(problems);
    return options;
  }

  static bool reads(const Importer& importer, std::string_view key) {
    const std::string words = fmt::format(" {} ", importer.answers);
    return words.find(fmt::format(" {} ", key)) != std::string::npos;
  }

  // What is to be written, read back as a person would use it.
  std::string document_text(const Imported& imported, Configs& files,
                            Diagnostics& diagnostics) const {
    if (imported.server.is_object()) {
      std::string text = to_text(imported.server) + "\n";
      check_server_text(text, files, diagnostics);
      return text;
    }
    if (imported.measurement.is_object()) return to_text(imported.measurement) + "\n";
    if (imported.llm.is_object()) return to_text(imported.llm) + "\n";
    std::string refusal = fmt::format("{}: error: nothing was written to {}\n", file_, output_);
    if (imported.open_questions.empty())
      refusal += "    the capture holds no machine, measurement or model\n";
    for (const std::string& question : imported.open_questions)
      refusal += fmt::format("    {}\n", question);
    throw InputError(refusal);
  }

  void check_server_text(const std::string& text, Configs& files, Diagnostics& diagnostics) const {
    WithText source(files, output_, text);
    Loader loader(source, diagnostics);
    const Json document = loader.load_file(output_);
    diagnostics.throw_if_errors();
    FabricSpec spec = read_fabric(document, {}, diagnostics);
    diagnostics.throw_if_errors();
    build_fabric(std::move(spec), link_classes(), diagnostics);
    diagnostics.throw_if_errors();
  }

  Json to_json(const Imported& imported) const {
    Json out = Json::object();
    out.set("weft", json_head());
    out.set("kind", imported.kind);
    out.set("file", file_);
    for (const Section& section : kSections) {
      Json& list = out.set(section.key, Json::array());
      for (std::string& line : lines_of(imported, section.kind)) list.push(std::move(line));
    }
    Json& questions = out.set("open_questions", Json::array());
    for (const std::string& question : imported.open_questions) questions.push(question);
    out.set("facts", imported.facts);
    if (!output_.empty()) out.set("output", output_);
    return out;
  }

  std::string to_sections(const Importer& importer, const Imported& imported, const Io& io) const {
    std::string out = fmt::format("{}  {}: {}\n", paint(file_, Colour::bold, io.colour),
                                  importer.name, importer.summary);
    const auto section = [&](std::string_view title, const std::vector<std::string>& lines) {
      if (lines.empty()) return;
      out += "\n" + paint(title, Colour::bold, io.colour) + "\n";
      for (const std::string& line : lines) out += "  " + line + "\n";
    };
    for (const Section& part : kSections) section(part.title, lines_of(imported, part.kind));
    section("To write it, answer", imported.open_questions);
    if (!output_.empty()) out += fmt::format("\nwritten: {}\n", output_);
    return out;
  }

  std::string kind_, file_, output_, name_;
  std::map<std::string, std::string> answers_;
  bool json_ = false, force_ = false;
};

}  // namespace

extern const Verb kImport;
const Verb kImport{"import", "reads topologies, logs and benchmark output of other tools",
                   make_command<Import>};

}  // namespace weft
