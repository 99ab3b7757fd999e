// SPDX-License-Identifier: Apache-2.0
// What holds for every file of configs, so that a new one is checked as soon as it is there.
#include "models/catalog.hpp"

#include <functional>
#include <set>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "sim/core/loader.hpp"
#include "sim/core/text.hpp"
#include "sim/core/units.hpp"
#include "sim/fabric/fabric.hpp"
#include "sim/fabric/link_law.hpp"
#include "sim/fabric/spec.hpp"
#include "sim/run/llm_spec.hpp"
#include "tools/cli/file_source.hpp"

namespace weft {
namespace {

constexpr std::string_view kKinds[] = {"gpu",    "compute", "kernels", "nic",    "proxy",
                                       "switch", "link",    "server",  "fabric", "llm"};

Configs catalogue() { return Configs(WEFT_SOURCE_DIR "/configs"); }

// Calls `check` with every file: its kind, name, path.
void for_each_file(
    const std::function<void(std::string_view, const std::string&, const std::string&)>& check) {
  Configs configs = catalogue();
  for (const std::string_view kind : kKinds) {
    EXPECT_FALSE(configs.names(kind).empty()) << kind;
    for (const std::string& name : configs.names(kind))
      check(kind, name, *configs.find(kind, name));
  }
}

// The file as it is written, names not resolved.
Json as_written(const std::string& path) {
  Configs configs = catalogue();
  Diagnostics out;
  Json document = parse_json(configs.read(path).value_or(std::string{}), path, out);
  EXPECT_TRUE(out.ok()) << out.text();
  return document;
}

// Reads a resolved component as its kind does, its nested components too.
void read_component(std::string_view kind, const Json& document, const std::string& pointer,
                    Diagnostics& out);

void read_nodes(const ServerSpec& server, Diagnostics& out) {
  for (const NodeEntry& node : server.nodes) {
    const std::string_view kind =
        node.kind == NodeKind::gpu                                                 ? "gpu"
        : node.kind == NodeKind::nic                                               ? "nic"
        : node.kind == NodeKind::nvswitch || node.kind == NodeKind::network_switch ? "switch"
                                                                                   : "";
    if (kind.empty() || node.model.kind == Json::Kind::null) continue;
    read_component(kind, node.model, node.pointer + "/model", out);
    const Json* written = node.model.find("kind");
    if (written != nullptr && written->text != kind) {
      out.error(node.place, node.pointer,
                fmt::format("a {} where a {} is needed", written->text, kind));
    }
  }
}

template <class Spec>
Spec read_as(const Json& document, const std::string& pointer, Diagnostics& out) {
  Spec spec;
  read_config(document, pointer, spec, out);
  return spec;
}

void read_component(std::string_view kind, const Json& document, const std::string& pointer,
                    Diagnostics& out) {
  if (kind == "gpu") read_as<GpuSpec>(document, pointer, out);
  if (kind == "kernels") read_as<KernelsSpec>(document, pointer, out);
  if (kind == "compute") read_as<ComputeSpec>(document, pointer, out);
  if (kind == "proxy") read_as<ProxySpec>(document, pointer, out);
  if (kind == "nic") read_as<NicSpec>(document, pointer, out);
  if (kind == "llm") read_llm(document, pointer, out);
  if (kind == "switch") read_as<SwitchSpec>(document, pointer, out);
  if (kind == "link") read_as<LinkSpec>(document, pointer, out);
  if (kind == "server") read_nodes(read_as<ServerSpec>(document, pointer, out), out);
  if (kind == "fabric") {
    for (const ServerGroup& group : read_fabric(document, pointer, out).groups)
      read_nodes(group.server, out);
  }
}

bool is_dimensional(const std::string& text) {
  return parse_time(text) || parse_bytes(text) || parse_bandwidth(text) || parse_flop_rate(text) ||
         parse_power(text) || parse_frequency(text) || parse_rate(text);
}

// The pointers of values with a unit that no prefix in `sources` covers. A prefix ends at a whole key: "/link" does not
// cover "/links".
void uncovered(const Json& value, const std::string& pointer, const std::set<std::string>& prefixes,
               std::vector<std::string>& out) {
  if (value.is_string() && is_dimensional(value.text)) {
    for (std::string at = pointer;; at.resize(at.rfind('/'))) {
      if (prefixes.contains(at)) return;
      if (at.empty()) break;
    }
    out.push_back(pointer);
  }
  for (std::size_t i = 0; i < value.items.size(); ++i) {
    uncovered(value.items[i], fmt::format("{}/{}", pointer, i), prefixes, out);
  }
  for (const JsonMember& member : value.members) {
    if (pointer.empty() && (member.key == "sources" || member.key == "summary")) continue;
    uncovered(member.value, pointer + "/" + json_pointer_escape(member.key), prefixes, out);
  }
}

std::set<std::string> source_prefixes(const Json& document) {
  std::set<std::string> prefixes;
  if (const Json* sources = document.find("sources")) {
    for (const JsonMember& member : sources->members) prefixes.insert(member.key);
  }
  return prefixes;
}

std::vector<std::string> uncovered(const Json& document) {
  std::vector<std::string> out;
  uncovered(document, {}, source_prefixes(document), out);
  return out;
}

// Whether a pointer of `sources` leads to something in the document.
bool leads_somewhere(const Json& document, const std::string& pointer) {
  const auto path = parse_pointer(pointer);
  if (!path) return false;
  const Json* at = &document;
  for (const std::string& key : *path) {
    if (at->is_array()) {
      const bool digits = !key.empty() &&
                          key.find_first_not_of("0123456789") == std::string::npos &&
                          key.size() < 9;
      if (!digits || std::stoul(key) >= at->items.size()) return false;
      at = &at->items[std::stoul(key)];
    } else if (const Json* next = at->find(key)) {
      at = next;
    } else {
      return false;
    }
  }
  return true;
}

TEST(Catalog, EveryFileLoadsAndReadsWithoutProblems) {
  for_each_file([](std::string_view kind, const std::string& name, const std::string& path) {
    Configs configs = catalogue();
    Diagnostics out;
    Loader loader(configs, out);
    const Json document = loader.load_file(path);
    read_component(kind, document, {}, out);
    EXPECT_TRUE(out.problems().empty()) << name << ":\n" << out.text();
  });
}

TEST(Catalog, KindAndNameAreThoseOfFolderAndFile) {
  for_each_file([](std::string_view kind, const std::string& name, const std::string& path) {
    const Json document = as_written(path);
    ASSERT_NE(document.find("kind"), nullptr) << path;
    ASSERT_NE(document.find("name"), nullptr) << path;
    EXPECT_EQ(document.find("kind")->text, kind) << path;
    EXPECT_EQ(document.find("name")->text, name) << path;
    EXPECT_TRUE(document.find("summary") != nullptr && !document.find("summary")->text.empty())
        << path;
  });
}

TEST(Catalog, EveryValueWithAUnitHasASource) {
  for_each_file([](std::string_view, const std::string&, const std::string& path) {
    const std::vector<std::string> bare = uncovered(as_written(path));
    EXPECT_TRUE(bare.empty()) << path << ": " << join(bare, ", ");
  });
}

TEST(Catalog, EverySourceSaysItsKindAndLeadsToAValue) {
  for_each_file([](std::string_view, const std::string&, const std::string& path) {
    const Json document = as_written(path);
    ASSERT_NE(document.find("sources"), nullptr) << path;
    for (const JsonMember& source : document.find("sources")->members) {
      const std::string& text = source.value.text;
      EXPECT_TRUE(text.starts_with("measured: ") || text.starts_with("datasheet: ") ||
                  text.starts_with("assumed: "))
          << path << ": " << source.key << ": " << text;
      EXPECT_TRUE(leads_somewhere(document, source.key)) << path << ": no value at " << source.key;
    }
  });
}

// Links of the wire are 1 GB/s to 2 TB/s, half to all of it payload, and light takes 5 ns a metre.
TEST(Catalog, EveryLinkHasALawOfPlausibleNumbers) {
  Configs configs = catalogue();
  for (const std::string& name : configs.names("link")) {
    Diagnostics out;
    Loader loader(configs, out);
    const auto spec = read_as<LinkSpec>(loader.load_component("link", name), {}, out);
    const LinkLaw law = link_law(spec, link_classes(), out);
    EXPECT_TRUE(out.problems().empty()) << name << ":\n" << out.text();
    EXPECT_GE(law.raw, 1_GBps) << name;
    EXPECT_LE(law.raw, 2000_GBps) << name;
    EXPECT_GE(law.efficiency(), 0.5) << name;
    EXPECT_LE(law.efficiency(), 1.0) << name;
    EXPECT_GE(law.duplex_factor, 0.5) << name;
    EXPECT_LE(law.duplex_factor, 1.0) << name;
    EXPECT_LE(spec.delay, 2_us) << name;
  }
}

// Links that stand inside servers, NICs and switches obey the laws too, whatever `set` made of them.
TEST(Catalog, EveryLinkInAServerHasALaw) {
  Configs configs = catalogue();
  for (const std::string& name : configs.names("server")) {
    Diagnostics out;
    Loader loader(configs, out);
    const auto server = read_as<ServerSpec>(loader.load_component("server", name), {}, out);
    for (const LinkEntry& entry : server.links) link_law(entry.link, link_classes(), out);
    EXPECT_TRUE(out.problems().empty()) << name << ":\n" << out.text();
  }
}

TEST(Catalog, EveryServerAndFabricBuilds) {
  for_each_file([](std::string_view kind, const std::string& name, const std::string& path) {
    if (kind != "server" && kind != "fabric") return;
    Configs configs = catalogue();
    Diagnostics out;
    Loader loader(configs, out);
    FabricSpec spec = read_fabric(loader.load_file(path), {}, out);
    ASSERT_TRUE(out.ok()) << name << ":\n" << out.text();
    build_fabric(std::move(spec), link_classes(), out);
    EXPECT_TRUE(out.problems().empty()) << name << ":\n" << out.text();
  });
}

// ---- the helpers above

TEST(UncoveredValues, ThePrefixEndsAtAKeyAndOnlyUnitsCount) {
  Diagnostics out;
  const Json document = parse_json(
      R"({"name": "x", "summary": "4 GB/s", "link": {"rate": "4 GB/s"}, "links": ["1 ns", 3],
                                       "sources": {"/link": "assumed: ..."}})",
      "x", out);
  EXPECT_EQ(uncovered(document), (std::vector<std::string>{"/links/0"}));
}

TEST(UncoveredValues, TheEmptyPrefixCoversAll) {
  Diagnostics out;
  const Json document =
      parse_json(R"({"a": {"b/c": "1 ns"}, "sources": {"": "assumed: ..."}})", "x", out);
  EXPECT_TRUE(uncovered(document).empty());
}

}  // namespace
}  // namespace weft
