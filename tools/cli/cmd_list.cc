// SPDX-License-Identifier: Apache-2.0
// weft list: what the catalogue holds, one line each.
#include <algorithm>
#include <functional>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include "calibrate/import/import.hpp"
#include "models/catalog.hpp"
#include "models/packet/congestion/catalog.hpp"
#include "sim/core/text.hpp"
#include "tools/cli/cli.hpp"
#include "tools/cli/file_source.hpp"

namespace weft {
namespace {

struct Line {
  std::string name, summary;
};

// One kind under the word that `weft list` takes for it.
struct Kind {
  std::string_view plural, singular;
  std::function<std::vector<Line>(Configs&, Diagnostics&)> lines;
};

Kind files_of(std::string_view plural, std::string_view singular) {
  return {plural, singular, [singular](Configs& files, Diagnostics& diagnostics) {
            std::vector<Line> out;
            for (const std::string& name : files.names(singular)) {
              const std::string path = files.find(singular, name).value_or(name);
              const Json document = parse_json(files.read(path).value_or(""), path, diagnostics);
              const Json* summary = document.find("summary");
              out.push_back({name, summary != nullptr ? summary->text : std::string{}});
            }
            return out;
          }};
}

template <class Entries>
Kind records_of(std::string_view plural, std::string_view singular, Entries (*entries)(),
                std::string (*name)(typename Entries::value_type)) {
  return {plural, singular, [entries, name](Configs&, Diagnostics&) {
            std::vector<Line> out;
            for (const auto* entry : entries())
              out.push_back({name(entry), std::string(entry->summary)});
            return out;
          }};
}

const std::vector<Kind>& kinds() {
  static const std::vector<Kind> all{
      files_of("gpus", "gpu"),
      files_of("kernels", "kernels"),
      files_of("compute", "compute"),
      files_of("links", "link"),
      files_of("nics", "nic"),
      files_of("proxies", "proxy"),
      files_of("switches", "switch"),
      files_of("servers", "server"),
      files_of("fabrics", "fabric"),
      files_of("llms", "llm"),
      records_of<LinkClasses>("link-classes", "link-class", link_classes,
                              [](const LinkClassEntry* entry) {
                                return std::string(write_config(entry->link_class).text);
                              }),
      records_of<std::span<const AlgorithmEntry* const>>(
          "collectives", "collective", collective_algorithms,
          [](const AlgorithmEntry* entry) { return std::string(entry->name); }),
      records_of<std::span<const packet::CongestionEntry* const>>(
          "congestion", "congestion-control", packet::congestion_controls,
          [](const packet::CongestionEntry* entry) { return std::string(entry->name()); }),
      records_of<std::span<const Importer* const>>(
          "importers", "importer", importers,
          [](const Importer* importer) { return std::string(importer->name); }),
  };
  return all;
}

class List final : public Command {
 public:
  void add(CLI::App& app) override {
    std::vector<std::string> words;
    for (const Kind& kind : kinds()) words.emplace_back(kind.plural);
    app.add_option("kind", kind_, join(words, ", ") + "; default: all");
    add_json_flag(app, json_);
  }

  int run(Io& io) override {
    Configs files(find_configs_root());
    Diagnostics diagnostics;
    Json entries = Json::array();
    std::string text;
    std::vector<std::string> words;
    bool known = kind_.empty();
    for (const Kind& kind : kinds()) {
      words.emplace_back(kind.plural);
      if (!kind_.empty() && kind_ != kind.plural && kind_ != kind.singular) continue;
      known = true;
      Table table({"", ""});
      for (Line& line : kind.lines(files, diagnostics)) {
        Json entry = Json::object();
        entry.set("kind", kind.singular);
        entry.set("name", line.name);
        entry.set("summary", line.summary);
        entries.push(std::move(entry));
        table.row({std::move(line.name), std::move(line.summary)});
      }
      if (kind_.empty() && !table.empty()) {
        text += (text.empty() ? "" : "\n") + paint(kind.plural, Colour::bold, io.colour) + "\n" +
                table.text("  ");
      } else {
        text += table.text();
      }
    }
    if (!known) {
      throw InputError(fmt::format("error: there is no kind \"{}\"{}\n    kinds: {}\n", kind_,
                                   did_you_mean(kind_, words), join(words, ", ")));
    }
    io.err << diagnostics.text();
    if (json_) {
      Json out = Json::object();
      out.set("weft", json_head());
      out.set("entries", std::move(entries));
      io.out += to_text(out) + "\n";
    } else {
      io.out += text;
    }
    return kOk;
  }

 private:
  std::string kind_;
  bool json_ = false;
};

}  // namespace

extern const Verb kList;
const Verb kList{"list", "the catalogue: gpus, links, servers, fabrics, collectives ...",
                 make_command<List>};

}  // namespace weft
