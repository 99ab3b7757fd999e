// SPDX-License-Identifier: Apache-2.0
// Small fabrics for tests, written as text:
//
//   Fabric fabric = fabric_from(cluster(4, server(8), R"("generator": "leaf-spine", "switch": {"ports": 8, "link": LINK})"));
//
// LINK stands for a 100 Gb/s Ethernet link of 500 ns. Links carry the rate they state (100 Gb/s by default), all of it
// payload, so that expectations are round numbers; what the classes really do is tested with models/link.
#pragma once

#include <fstream>
#include <map>
#include <sstream>
#include <string>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "sim/core/loader.hpp"
#include "sim/fabric/fabric.hpp"

namespace weft::testing {

inline constexpr std::string_view kLinkText =
    R"({"class": "ethernet", "rate": "100 Gb/s", "delay": "500 ns"})";

// Files in memory; component "gpu/x" is kind gpu, name x. With `catalogue` the files of configs are there too.
class MemoryFiles final : public FileSource {
 public:
  std::map<std::string, std::string> files;
  bool catalogue = false;

  std::optional<std::string> read(const std::string& path) override {
    if (const auto found = files.find(path); found != files.end()) return found->second;
    std::ifstream in(path);
    if (!catalogue || !in) return std::nullopt;
    std::stringstream text;
    text << in.rdbuf();
    return text.str();
  }
  std::optional<std::string> find(std::string_view kind, const std::string& name) override {
    const std::string here = fmt::format("{}/{}", kind, name);
    if (files.contains(here)) return here;
    std::string folder = fmt::format("{}s", kind);
    if (kind == "switch") folder = "switches";
    if (kind == "proxy") folder = "proxies";
    if (kind == "kernels" || kind == "compute") folder = kind;
    const std::string path = fmt::format("{}/configs/{}/{}.json", WEFT_SOURCE_DIR, folder, name);
    if (catalogue && std::ifstream(path)) return path;
    return std::nullopt;
  }
  std::vector<std::string> names(std::string_view) override { return {}; }
};

// Every class: the stated rate or 100 Gb/s, all payload. PCIe of a duplex_factor keeps it.
inline LinkClasses plain_link_classes() {
  static const auto law = [](const LinkSpec& spec, Diagnostics&) {
    return LinkLaw{.raw = spec.rate.value_or(100_Gbps), .duplex_factor = spec.duplex_factor};
  };
  static const std::vector<LinkClassEntry> entries = [] {
    std::vector<LinkClassEntry> out;
    for (const auto& name : enum_names(LinkClass{}))
      out.push_back({name.value, name.name, "", law});
    return out;
  }();
  static const std::vector<const LinkClassEntry*> pointers = [] {
    std::vector<const LinkClassEntry*> out;
    for (const LinkClassEntry& entry : entries) out.push_back(&entry);
    return out;
  }();
  return pointers;
}

// Replaces LINK by a link.
inline std::string with_links(std::string text) {
  for (std::size_t at = 0; (at = text.find("LINK", at)) != std::string::npos;)
    text.replace(at, 4, kLinkText);
  return text;
}

// `gpus` GPUs on one PCIe switch that all have their own NIC on it; host links are 100 Gb/s. `more` is added to the object.
inline std::string server(int gpus, std::string_view more = {}) {
  return with_links(fmt::format(
      R"({{"kind": "server", "name": "box",
          "nodes": [{{"id": "gpu[0-{0}]", "kind": "gpu", "model": {{}}}}, {{"id": "plx0", "kind": "pcie_switch"}},
                    {{"id": "nic[0-{0}]", "kind": "nic", "model": {{"link": LINK}}}}],
          "links": [{{"a": "gpu[0-{0}]", "b": "plx0", "link": LINK}}, {{"a": "nic[0-{0}]", "b": "plx0", "link": LINK}}]{1}}})",
      gpus - 1, more));
}

inline std::string cluster(int servers, const std::string& server, const std::string& network) {
  return with_links(fmt::format(
      R"({{"kind": "fabric", "name": "cluster", "servers": {}, "server": {}, "network": {{{}}}}})",
      servers, server, network));
}

inline Fabric build_from(const std::string& text, Diagnostics& out) {
  MemoryFiles files;
  files.files["fabric.json"] = with_links(text);
  const Json document = Loader(files, out).load_file("fabric.json");
  FabricSpec spec = read_fabric(document, {}, out);
  if (!out.ok()) return {};
  return build_fabric(std::move(spec), plain_link_classes(), out);
}

inline Fabric fabric_from(const std::string& text) {
  Diagnostics out;
  Fabric fabric = build_from(text, out);
  EXPECT_TRUE(out.ok()) << out.text();
  return fabric;
}

// The problems of a fabric, as printed; empty when there are none.
inline std::string problems_of(const std::string& text) {
  Diagnostics out;
  build_from(text, out);
  return out.text();
}

// A component of configs with all that it uses.
inline Json catalogue_document(std::string_view kind, const std::string& name) {
  Diagnostics out;
  MemoryFiles files;
  files.catalogue = true;
  Json document = Loader(files, out).load_component(kind, name);
  EXPECT_TRUE(out.ok()) << out.text();
  return document;
}

// A fabric or server of configs, its links at the plain rates above.
inline Fabric catalogue_fabric(const std::string& name,
                               const LinkClasses& classes = plain_link_classes()) {
  Diagnostics out;
  FabricSpec spec = read_fabric(catalogue_document("fabric", name), {}, out);
  EXPECT_TRUE(out.ok()) << out.text();
  Fabric fabric = build_fabric(std::move(spec), classes, out);
  EXPECT_TRUE(out.ok()) << out.text();
  return fabric;
}

}  // namespace weft::testing
