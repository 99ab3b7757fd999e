// SPDX-License-Identifier: Apache-2.0
// weft explain: every value of a component with its source, and what the law of a link makes of them.
#include <algorithm>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include "calibrate/import/import.hpp"
#include "models/catalog.hpp"
#include "sim/core/loader.hpp"
#include "sim/core/text.hpp"
#include "sim/core/units.hpp"
#include "tools/cli/cli.hpp"
#include "tools/cli/explain_llm.hpp"
#include "tools/cli/file_source.hpp"

namespace weft {
namespace {

struct Value {
  std::string pointer;
  Json value;
  std::string source;
};

// Lists the values of a file; the items of arrays stay whole unless a source speaks of a part of them.
class Values {
 public:
  explicit Values(const Json& document) : sources_(document.find("sources")) {
    for (const JsonMember& member : document.members) {
      static constexpr std::string_view kHead[] = {"weft", "kind", "name", "summary", "sources"};
      if (std::ranges::find(kHead, member.key) != std::end(kHead)) continue;
      walk(member.value, "/" + json_pointer_escape(member.key), false);
    }
  }
  std::vector<Value> take() { return std::move(values_); }

 private:
  void walk(const Json& json, const std::string& pointer, bool item) {
    const bool inner =
        json.is_object() || (json.is_array() && std::ranges::any_of(json.items, &Json::is_object));
    if (!inner || (item && !source_below(pointer))) {
      values_.push_back({pointer, json, source_of(pointer)});
      return;
    }
    for (std::size_t i = 0; i < json.items.size(); ++i)
      walk(json.items[i], fmt::format("{}/{}", pointer, i), true);
    for (const JsonMember& member : json.members)
      walk(member.value, pointer + "/" + json_pointer_escape(member.key), item);
  }

  bool source_below(const std::string& pointer) const {
    return sources_ != nullptr && std::ranges::any_of(sources_->members, [&](const JsonMember& m) {
             return m.key.starts_with(pointer + "/");
           });
  }

  std::string source_of(const std::string& pointer) const {
    const JsonMember* best = nullptr;
    if (sources_ == nullptr) return {};
    for (const JsonMember& member : sources_->members) {
      const std::size_t n = member.key.size();
      const bool covers =
          pointer.starts_with(member.key) && (pointer.size() == n || pointer[n] == '/');
      if (covers && (best == nullptr || n > best->key.size())) best = &member;
    }
    return best != nullptr ? best->value.text : std::string{};
  }

  const Json* sources_;
  std::vector<Value> values_;
};

class Explain final : public Command {
 public:
  void add(CLI::App& app) override {
    app.add_option("name", name_,
                   "a component, link class, collective algorithm or importer, see `weft list`")
        ->required();
    add_json_flag(app, json_);
  }

  int run(Io& io) override {
    Configs files(find_configs_root());
    Diagnostics diagnostics;
    Json entries = Json::array();
    std::string text;
    std::vector<std::string> names;
    const auto add = [&](Json entry, const std::string& part) {
      entries.push(std::move(entry));
      text += (text.empty() ? "" : "\n") + part;
    };
    for (const std::string_view kind : Configs::kinds()) {
      for (std::string& name : files.names(kind)) names.push_back(std::move(name));
      if (const auto path = files.find(kind, name_))
        explain_file(files, kind, *path, diagnostics, io, add);
    }
    for (const LinkClassEntry* entry : link_classes()) {
      const std::string name = write_config(entry->link_class).text;
      names.push_back(name);
      if (name == name_)
        explain_record("link-class", name, entry->summary, entry->reference, io, add);
    }
    for (const AlgorithmEntry* entry : collective_algorithms()) {
      names.emplace_back(entry->name);
      if (entry->name == name_)
        explain_record("collective", name_, entry->summary, entry->reference, io, add);
    }
    for (const Importer* importer : importers()) {
      names.emplace_back(importer->name);
      if (importer->name == name_)
        explain_record("importer", name_, importer->summary, importer->reference, io, add);
    }
    diagnostics.throw_if_errors();
    if (entries.items.empty()) {
      throw InputError(fmt::format("error: the catalogue has no \"{}\"{}\n    see `weft list`\n",
                                   name_, did_you_mean(name_, names)));
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
  static Json head(std::string_view kind, const std::string& name, std::string_view summary) {
    Json entry = Json::object();
    entry.set("kind", kind);
    entry.set("name", name);
    entry.set("summary", summary);
    return entry;
  }
  static std::string title(std::string_view kind, const std::string& name, std::string_view summary,
                           const Io& io) {
    return fmt::format("{}  {}: {}\n", paint(name, Colour::bold, io.colour), kind, summary);
  }

  template <class Add>
  void explain_record(std::string_view kind, const std::string& name, std::string_view summary,
                      std::string_view reference, const Io& io, Add&& add) const {
    Json entry = head(kind, name, summary);
    entry.set("reference", reference);
    add(std::move(entry), title(kind, name, summary, io) + fmt::format("  {}\n", reference));
  }

  template <class Add>
  void explain_file(Configs& files, std::string_view kind, const std::string& path,
                    Diagnostics& diagnostics, const Io& io, Add&& add) const {
    const Json document = parse_json(files.read(path).value_or(""), path, diagnostics);
    const Json* summary = document.find("summary");
    const std::string words = summary != nullptr ? summary->text : std::string{};
    Json entry = head(kind, name_, words);
    Json& rows = entry.set("values", Json::array());
    Table table({"value", "", "source"});
    for (const Value& value : Values(document).take()) {
      Json row = Json::object();
      row.set("pointer", value.pointer);
      row.set("value", value.value);
      row.set("source", value.source);
      rows.push(std::move(row));
      table.row({value.pointer,
                 value.value.is_string() ? value.value.text : to_text(value.value, 0),
                 value.source});
    }
    std::string part = title(kind, name_, words, io) + table.text("  ");
    if (kind == "link") part += explain_law(document, diagnostics, entry);
    if (kind == "llm") part += explain_llm(document, diagnostics, entry);
    add(std::move(entry), part);
  }

  // What the class computes from the facts.
  static std::string explain_law(const Json& document, Diagnostics& diagnostics, Json& entry) {
    LinkSpec spec;
    read_config(document, {}, spec, diagnostics);
    const LinkLaw law = link_law(spec, link_classes(), diagnostics);
    const Bandwidth payload = scaled(law.raw, law.efficiency());
    std::string_view reference;
    for (const LinkClassEntry* candidate : link_classes()) {
      if (candidate->link_class == spec.link_class) reference = candidate->reference;
    }
    Json& out = entry.set("law", Json::object());
    out.set("raw_gbs", law.raw.gbytes_per_s());
    out.set("efficiency", law.efficiency());
    out.set("payload_gbs", payload.gbytes_per_s());
    out.set("packet_payload_bytes", law.payload.count);
    out.set("packet_overhead_bytes", law.overhead.count);
    out.set("reference", reference);
    std::string text =
        fmt::format("  law: {} raw x {:.4f} = {} of payload, one direction", to_text_bytes(law.raw),
                    law.efficiency(), to_text_bytes(payload));
    if (law.payload.count > 0)
      text += fmt::format(" ({} B of payload and {} B around it)", law.payload.count,
                          law.overhead.count);
    return text + fmt::format("\n  {}\n", reference);
  }

  std::string name_;
  bool json_ = false;
};

}  // namespace

extern const Verb kExplain;
const Verb kExplain{"explain", "every value of a component with its source", make_command<Explain>};

}  // namespace weft
