// SPDX-License-Identifier: Apache-2.0
// Imports a capture of tests/import_machines/data against the shipped catalogue and builds what it describes.
#pragma once

#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include <gmock/gmock.h>

#include "calibrate/import/import.hpp"
#include "models/catalog.hpp"
#include "sim/run/p2p.hpp"
#include "tests/support/tiny.hpp"

namespace weft::test {

inline std::string capture(const std::string& name) {
  std::ifstream file(std::string(WEFT_SOURCE_DIR) + "/tests/import_machines/data/" + name);
  EXPECT_TRUE(file.good()) << name;
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

using Answers = std::map<std::string, std::string>;

struct Reading {
  Imported imported;
  Diagnostics diagnostics;
  bool ok() const { return diagnostics.ok(); }
  const Json& facts() const { return imported.facts; }
};

inline Reading import_text(const std::string& kind, const std::string& text,
                           const Answers& answers = {}) {
  static Files catalogue;
  Reading out;
  ImportOptions options;
  options.name = "imported";
  options.answers = answers;
  options.catalogue = &catalogue;
  for (const Importer* importer : importers()) {
    if (importer->name == kind)
      out.imported = importer->read(text, "capture", options, out.diagnostics);
  }
  EXPECT_EQ(out.imported.kind, kind);
  return out;
}

inline Reading import_file(const std::string& name, const Answers& answers = {}) {
  Reading out = import_text(name.ends_with(".xml") ? "nccl-xml" : "topo-m", capture(name), answers);
  EXPECT_TRUE(out.ok()) << name << "\n" << out.diagnostics.text();
  return out;
}

// A value inside of a document by its JSON pointer; stops the test when there is none.
inline const Json& at(const Json& json, const std::string& pointer) {
  const Json* here = &json;
  std::istringstream keys(pointer.substr(1));
  for (std::string key; std::getline(keys, key, '/');) {
    const Json* next = here->is_array() ? &here->items.at(std::stoul(key)) : here->find(key);
    if (next == nullptr) throw std::out_of_range("no " + pointer);
    here = next;
  }
  return *here;
}
inline std::int64_t count_at(const Json& json, const std::string& pointer) {
  return at(json, pointer).integer;
}
inline std::string text_at(const Json& json, const std::string& pointer) {
  return at(json, pointer).text;
}

inline std::vector<std::string> texts(const Json& list) {
  std::vector<std::string> out;
  for (const Json& item : list.items) out.push_back(item.text);
  return out;
}
// One member of every item: all names, all roles.
inline std::vector<std::string> column(const Json& list, const std::string& key) {
  std::vector<std::string> out;
  for (const Json& item : list.items) out.push_back(at(item, "/" + key).text);
  return out;
}

inline std::string distance(const Json& facts, const std::string& a, const std::string& b) {
  const std::vector<std::string> names = texts(at(facts, "/distances/names"));
  const auto index = [&](const std::string& name) {
    return static_cast<std::size_t>(std::ranges::find(names, name) - names.begin());
  };
  return at(facts, "/distances/matrix").items.at(index(a)).items.at(index(b)).text;
}

inline std::vector<std::string> notes(const Reading& reading, ImportNote::Kind kind) {
  std::vector<std::string> out;
  for (const ImportNote& note : reading.imported.notes) {
    if (note.kind == kind) out.push_back(note.text);
  }
  return out;
}

// `servers` of what was imported, in a network of one switch when there are several.
inline Fabric fabric_of(const Reading& reading, int servers = 1) {
  EXPECT_TRUE(reading.imported.server.is_object())
      << testing::PrintToString(reading.imported.open_questions);
  Files files({{"server/imported", to_text(reading.imported.server)},
               {"fabric/several",
                R"({"kind": "fabric", "name": "several", "servers": )" + std::to_string(servers) +
                    R"(, "server": "imported", "network": {"generator": "single-switch",
                                          "switch": "qm9700", "link": "ib-ndr"}})"}});
  Diagnostics problems;
  Loader loader(files, problems);
  const Json document = loader.load_component("fabric", servers == 1 ? "imported" : "several");
  problems.throw_if_errors();
  FabricSpec spec = read_fabric(document, {}, problems);
  problems.throw_if_errors();
  Fabric fabric = build_fabric(std::move(spec), link_classes(), problems);
  problems.throw_if_errors();
  return fabric;
}

inline CopyAnswer copy_between(const Fabric& fabric, const std::string& src,
                               const std::string& dst) {
  Routes routes(fabric);
  CopyQuestion question;
  question.size = 1_GiB;
  const auto answer = time_copy(
      routes, node(fabric, src), node(fabric, dst), question,
      [](std::span<const Bandwidth> rates) { return make_network(Fidelity::fluid, rates, {}); });
  EXPECT_TRUE(answer.has_value());
  return answer.value_or(CopyAnswer{});
}

// Raw GB/s that leave a node over NVLink.
inline double nvlink_raw_gbs(const Fabric& fabric, const std::string& name) {
  double out = 0;
  for (const LinkId id : fabric.out_links(node(fabric, name))) {
    const Link& link = fabric.link(id);
    if (link.link_class == LinkClass::nvlink) out += link.raw.gbytes_per_s();
  }
  return out;
}

}  // namespace weft::test
