// SPDX-License-Identifier: Apache-2.0
#include "sim/core/loader.hpp"

#include <map>
#include <string>

#include <gtest/gtest.h>

namespace weft {
namespace {

// Files in memory; a catalogue component of kind K named N is the file "lib/K/N.json".
class MemoryFiles : public FileSource {
 public:
  std::map<std::string, std::string> texts;
  int reads = 0;

  std::optional<std::string> read(const std::string& path) override {
    ++reads;
    const auto found = texts.find(path);
    if (found == texts.end()) return std::nullopt;
    return found->second;
  }
  std::optional<std::string> find(std::string_view kind, const std::string& name) override {
    std::string path = folder(kind) + name + ".json";
    if (!texts.contains(path)) return std::nullopt;
    return path;
  }
  std::vector<std::string> names(std::string_view kind) override {
    std::vector<std::string> out;
    const std::string in = folder(kind);
    for (const auto& [path, text] : texts) {
      if (path.starts_with(in)) out.push_back(path.substr(in.size(), path.size() - in.size() - 5));
    }
    return out;
  }

 private:
  static std::string folder(std::string_view kind) { return "lib/" + std::string(kind) + "/"; }
};

using Texts = std::map<std::string, std::string>;

struct Loaded {
  Loaded(const Loaded&) = delete;
  MemoryFiles files;
  Diagnostics out;
  Loader loader{files, out};
  Json json;

  explicit Loaded(Texts texts, const std::string& path = "main.json") {
    files.texts = std::move(texts);
    files.texts["lib/link/fast.json"] = R"({"rate": "400 Gb/s", "delay": "5 ns"})";
    files.texts["lib/link/slow.json"] = R"({"rate": "10 Gb/s"})";
    files.texts["lib/switch/box.json"] = R"({"ports": 64, "link": "fast"})";
    files.texts["lib/server/node.json"] =
        R"({"nodes": [{"id": "gpu[0-7]", "model": "gpu1"}, {"id": "cpu"}],
      "links": [{"a": "gpu0", "link": "fast"}]})";
    files.texts["lib/gpu/gpu1.json"] = R"({"memory": "80 GB"})";
    files.texts["lib/fabric/pair.json"] = R"({"servers": 2, "server": "node",
      "network": {"switch": "box", "link": "slow"}})";
    json = loader.load_file(path);
  }
  std::string text() const { return to_text(json, 0); }
  std::string problems() const { return out.text(); }
};

Loaded main_file(const std::string& text) { return Loaded(Texts{{"main.json", text}}); }

bool contains(const std::string& text, std::string_view part) {
  return text.find(part) != std::string::npos;
}

TEST(Loader, NamesOfComponentsAreReplacedAllTheWayDown) {
  const auto loaded = main_file(R"({"fabric": "pair", "name": "fast"})");
  ASSERT_TRUE(loaded.out.ok()) << loaded.problems();
  EXPECT_EQ(
      loaded.text(),
      R"({"fabric": {"servers": 2, "server": {"nodes": [{"id": "gpu[0-7]", "model": {"memory": "80 GB"}}, )"
      R"({"id": "cpu"}], "links": [{"a": "gpu0", "link": {"rate": "400 Gb/s", "delay": "5 ns"}}]}, )"
      R"("network": {"switch": {"ports": 64, "link": {"rate": "400 Gb/s", "delay": "5 ns"}}, )"
      R"("link": {"rate": "10 Gb/s"}}}, "name": "fast"})");
}

TEST(Loader, AServerMayStandWhereAFabricIsExpected) {
  const auto loaded = main_file(R"({"fabric": "node"})");
  ASSERT_TRUE(loaded.out.ok()) << loaded.problems();
  EXPECT_NE(loaded.json.find("fabric")->find("nodes"), nullptr);
}

TEST(Loader, UseIsTheSameAsTheName) {
  EXPECT_EQ(main_file(R"({"fabric": {"use": "pair"}})").text(),
            main_file(R"({"fabric": "pair"})").text());
}

TEST(Loader, ValuesKeepThePlaceWhereTheyWereWritten) {
  auto loaded = main_file("{\"switch\": {\"use\": \"box\",\n  \"set\": {\"/ports\": 32}}}");
  ASSERT_TRUE(loaded.out.ok()) << loaded.problems();
  const Json& box = *loaded.json.find("switch");
  const Place ports = box.find("ports")->place;
  EXPECT_EQ(loaded.out.file_name(ports.file), "main.json");
  EXPECT_EQ(ports.line, 2u);
  EXPECT_EQ(ports.column, 21u);
  const Place rate = box.find("link")->find("rate")->place;
  EXPECT_EQ(loaded.out.file_name(rate.file), "lib/link/fast.json");
  EXPECT_EQ(rate.column, 10u);
}

TEST(Loader, SetReachesThroughNestedUses) {
  const auto loaded = main_file(
      R"({"fabric": {"use": "pair", "set": {"/servers": 16, "/network/switch/link/rate": "800 Gb/s",
    "/server/nodes/0/model/memory": "96 GB", "/network/oversubscription": 2}}})");
  ASSERT_TRUE(loaded.out.ok()) << loaded.problems();
  const Json& fabric = *loaded.json.find("fabric");
  EXPECT_EQ(fabric.find("servers")->integer, 16);
  EXPECT_EQ(fabric.find("network")->find("switch")->find("link")->find("rate")->text, "800 Gb/s");
  EXPECT_EQ(fabric.find("network")->find("oversubscription")->integer, 2);
  EXPECT_EQ(fabric.find("server")->find("nodes")->items[0].find("model")->find("memory")->text,
            "96 GB");
  // The other user of the same link is untouched.
  EXPECT_EQ(fabric.find("server")->find("links")->items[0].find("link")->find("rate")->text,
            "400 Gb/s");
}

TEST(Loader, SetMayPutANameWhereAComponentBelongs) {
  const auto loaded = main_file(R"({"fabric": {"use": "pair", "set": {"/network/link": "fast",
    "/network/switch/link": {"use": "fast", "set": {"/delay": "9 ns"}}}}})");
  ASSERT_TRUE(loaded.out.ok()) << loaded.problems();
  const Json& network = *loaded.json.find("fabric")->find("network");
  EXPECT_EQ(network.find("link")->find("rate")->text, "400 Gb/s");
  EXPECT_EQ(network.find("switch")->find("link")->find("delay")->text, "9 ns");
}

TEST(Loader, SetsApplyInTheOrderWritten) {
  const auto loaded =
      main_file(R"({"link": {"use": "fast", "set": {"/rate": "1 b/s", "": 1, "/": 2}}})");
  EXPECT_EQ(loaded.json.find("link")->find("rate")->text, "1 b/s");
  EXPECT_EQ(loaded.out.error_count(), 1u)
      << loaded.problems();  // "" is the whole document; "/" is the empty key
}

TEST(Loader, TheOuterSetWins) {
  const Loaded loaded(Texts{
      {"main.json", R"({"fabric": {"use": "mid.json", "set": {"/servers": 9}}})"},
      {"mid.json", R"({"use": "pair", "set": {"/servers": 5, "/network/link/rate": "7 Gb/s"}})"}});
  ASSERT_TRUE(loaded.out.ok()) << loaded.problems();
  EXPECT_EQ(loaded.json.find("fabric")->find("servers")->integer, 9);
}

TEST(Loader, SetOnAMissingPathNamesTheNearest) {
  EXPECT_EQ(
      main_file(
          "{\"fabric\": {\"use\": \"pair\",\n \"set\": {\"/netwrok/link/rate\": \"1 Gb/s\"}}}")
          .problems(),
      "main.json:2:32: error: /netwrok/link/rate: the document has no \"netwrok\", did you mean "
      "\"network\"?\n    it has: servers, server, network\n");
  EXPECT_TRUE(contains(
      main_file(R"({"fabric": {"use": "pair", "set": {"/server/nodes/2/id": "x"}}})").problems(),
      "/server/nodes has 2 items, there is no item \"2\""));
  for (const char* pointer :
       {"servers", "/servers/x", "/server/nodes/-", "/server/nodes/-1/id", "/server/nodes/1x/id",
        "/server/nodes/00/id", "/a~b", "/server/nodes/99999999999999999999/id"}) {
    const auto loaded =
        main_file(R"({"fabric": {"use": "pair", "set": {")" + std::string(pointer) + R"(": 1}}})");
    EXPECT_EQ(loaded.out.error_count(), 1u) << pointer << loaded.problems();
  }
}

TEST(Loader, UnknownNamesGetTheNearest) {
  EXPECT_EQ(
      main_file("{\"fabric\":\n  \"pairr\"}").problems(),
      "main.json:2:3: error: /fabric: there is no fabric named \"pairr\", did you mean \"pair\"?\n"
      "    see `weft list`\n");
  EXPECT_TRUE(contains(main_file(R"({"link": {"use": "fsat"}})").problems(),
                       "/link/use: there is no link named \"fsat\""));
}

TEST(Loader, OnlySetMayStandBesideUse) {
  const auto loaded = main_file(R"({"link": {"use": "fast", "rate": "1 Gb/s"}})");
  EXPECT_EQ(loaded.out.error_count(), 1u);
  EXPECT_TRUE(contains(loaded.problems(),
                       "main.json:1:26: error: /link/rate: only \"set\" may stand beside \"use\""));
  EXPECT_TRUE(contains(loaded.problems(), "write \"set\": {\"/rate\": ...}"));
}

TEST(Loader, UseAndSetHaveTheirTypes) {
  EXPECT_EQ(main_file(R"({"link": {"use": 3}})").out.error_count(), 1u);
  EXPECT_EQ(main_file(R"({"link": {"use": "fast", "set": []}})").out.error_count(), 1u);
  EXPECT_EQ(main_file(R"({"link": {"use": "fast", "set": null}})").out.error_count(), 1u);
}

TEST(Loader, PathsAreRelativeToTheFileThatNamesThem) {
  const Loaded loaded(
      Texts{{"dir/main.json", R"({"fabric": "sub/f.json", "link": {"use": "../own.json"}})"},
            {"dir/sub/f.json", R"({"server": "s.json"})"},
            {"dir/sub/s.json", R"({"here": true})"},
            {"own.json", R"({"rate": "3 Gb/s"})"}},
      "dir/main.json");
  ASSERT_TRUE(loaded.out.ok()) << loaded.problems();
  EXPECT_TRUE(loaded.json.find("fabric")->find("server")->find("here")->boolean);
  EXPECT_EQ(loaded.json.find("link")->find("rate")->text, "3 Gb/s");
}

TEST(Loader, CyclesAreNamed) {
  const Loaded loaded(Texts{{"main.json", R"({"fabric": "a.json"})"},
                            {"a.json", R"({"fabric": {"use": "b.json"}})"},
                            {"b.json", R"({"server": "a.json"})"}});
  EXPECT_EQ(loaded.problems(),
            "b.json:1:12: error: /server: files include each other in a cycle: main.json -> a.json "
            "-> b.json -> a.json\n"
            "    break the cycle\n");
}

TEST(Loader, AFileThatIncludesItselfIsACycleHoweverItIsSpelt) {
  for (const char* self : {"main.json", "./main.json", ".//main.json", "x/../main.json"}) {
    const auto loaded = main_file("{\"fabric\": \"" + std::string(self) + "\"}");
    EXPECT_EQ(loaded.out.error_count(), 1u) << self;
    EXPECT_TRUE(contains(loaded.problems(), "cycle")) << loaded.problems().substr(0, 500);
  }
}

TEST(Loader, ChainsOfFilesAreBounded) {
  struct Endless : FileSource {  // file n includes file n + 1
    std::optional<std::string> read(const std::string& path) override {
      return "{\"fabric\": \"" + std::to_string(std::stoi(path) + 1) + ".json\"}";
    }
    std::optional<std::string> find(std::string_view, const std::string&) override {
      return std::nullopt;
    }
    std::vector<std::string> names(std::string_view) override { return {}; }
  };
  Endless files;
  Diagnostics out;
  Loader loader(files, out);
  loader.load_file("0.json");
  EXPECT_EQ(out.error_count(), 1u);
}

TEST(Loader, DoublingInclusionsAreBounded) {
  Texts texts;
  for (int i = 0; i < 40; ++i) {
    const std::string next = "{\"link\": \"" + std::to_string(i + 1) + ".json\"}";
    texts[std::to_string(i) + ".json"] = "{\"a\": " + next + ", \"b\": " + next + "}";
  }
  texts["40.json"] = "{}";
  const Loaded loaded(texts, "0.json");
  EXPECT_FALSE(loaded.out.ok());
  EXPECT_TRUE(contains(loaded.problems(), "grow beyond"));
}

TEST(Loader, WhatCannotBeReadIsReportedWhereItWasAskedFor) {
  const auto loaded = main_file(R"({"link": "gone.json"})");
  EXPECT_TRUE(
      contains(loaded.problems(), "main.json:1:10: error: /link: cannot read \"gone.json\""))
      << loaded.problems();
  EXPECT_EQ(Loaded({}, "gone.json").out.error_count(), 1u);
}

TEST(Loader, MistakesInsideAnIncludedFileAreShownThere) {
  const Loaded loaded(
      Texts{{"main.json", R"({"link": "bad.json"})"}, {"bad.json", "{\n\"rate\" 1}"}});
  EXPECT_TRUE(contains(loaded.problems(), "bad.json:2:8: error: not JSON")) << loaded.problems();
}

TEST(Loader, AFileIsReadOnce) {
  const auto loaded = main_file(
      R"({"a": {"link": "fast"}, "b": {"link": "fast"}, "c": {"link": {"use": "fast"}}})");
  EXPECT_EQ(loaded.files.reads, 2);
}

TEST(Loader, AllProblemsAreFoundInOnePass) {
  const auto loaded =
      main_file(R"({"fabric": "nope", "link": {"use": "fast", "x": 1, "set": {"/y/z": 1}},
    "switch": {"use": 3}, "server": "gone.json"})");
  EXPECT_EQ(loaded.out.error_count(), 5u) << loaded.problems();
}

TEST(Loader, SourcesAreNotComponents) {
  const auto loaded = main_file(R"({"sources": {"link": "datasheet: x"}})");
  EXPECT_TRUE(loaded.out.ok()) << loaded.problems();
}

TEST(Loader, SetFromOutsideReportsToItsValue) {
  auto loaded = main_file(R"({"fabric": "pair"})");
  loaded.loader.set(loaded.json, "/fabric/network/link", Json("fast"));
  EXPECT_EQ(loaded.json.find("fabric")->find("network")->find("link")->find("rate")->text,
            "400 Gb/s");
  EXPECT_TRUE(loaded.out.ok());
  loaded.loader.set(loaded.json, "/fabrik/servers", Json(3));
  EXPECT_TRUE(contains(loaded.problems(), "<command line>: error: /fabrik/servers"))
      << loaded.problems();
  EXPECT_TRUE(contains(loaded.problems(), "did you mean \"fabric\"?"));
}

TEST(Loader, ComponentsByName) {
  auto loaded = main_file("{}");
  EXPECT_EQ(loaded.loader.load_component("fabric", "pair").find("servers")->integer, 2);
  EXPECT_TRUE(loaded.out.ok());
  loaded.loader.load_component("fabric", "piar");
  EXPECT_TRUE(contains(loaded.problems(), "did you mean \"pair\"?"));
}

TEST(CountEvidence, TheLongestSourceWins) {
  const auto loaded = main_file(
      R"({"rate": "1 Gb/s", "delay": "5 ns", "deep": {"size": "1 KB", "n": 3, "word": "x"},
    "list": ["1 W"], "sources": {"": "datasheet: a", "/delay": "measured: b", "/deep/size": "assumed: c"}})");
  ASSERT_TRUE(loaded.out.ok());
  const Evidence evidence = count_evidence(loaded.json);
  EXPECT_EQ(evidence.datasheet, 2u);
  EXPECT_EQ(evidence.measured, 1u);
  EXPECT_EQ(evidence.assumed, 1u);
}

TEST(CountEvidence, APrefixEndsAtASlash) {
  const auto loaded =
      main_file(R"({"rate": "1 Gb/s", "rate_max": "2 Gb/s", "sources": {"/rate": "measured: a"}})");
  const Evidence evidence = count_evidence(loaded.json);
  EXPECT_EQ(evidence.measured, 1u);
  EXPECT_EQ(evidence.assumed, 1u);
}

TEST(CountEvidence, ASetValueIsAssumed) {
  const Loaded loaded(
      Texts{{"main.json", R"({"link": {"use": "l.json", "set": {"/rate": "2 Gb/s"}}})"},
            {"l.json", R"({"rate": "1 Gb/s", "delay": "1 ns", "sources": {"": "measured: x"}})"}});
  ASSERT_TRUE(loaded.out.ok()) << loaded.problems();
  const Evidence evidence = count_evidence(loaded.json);
  EXPECT_EQ(evidence.measured, 1u);
  EXPECT_EQ(evidence.assumed, 1u);
}

// A patch says how it knows; what a scenario sets on top of it is assumed again.
TEST(CountEvidence, APatchNamesTheSourceOfItsValues) {
  const std::string patch = R"({"kind": "patch", "name": "p", "use": "l.json",
      "set": {"/part/rate": "2 Gb/s"}, "sources": {"/part/rate": "measured: here"},
      "calibration": {"notes": ["1 us"]}})";
  const std::string base =
      R"({"part": {"rate": "1 Gb/s", "delay": "1 ns", "sources": {"": "datasheet: x"}}})";
  const Loaded used(
      Texts{{"main.json", R"({"fabric": "p.json"})"}, {"p.json", patch}, {"l.json", base}});
  ASSERT_TRUE(used.out.ok()) << used.problems();
  EXPECT_EQ(used.json.find("fabric")->find("calibration"), nullptr);
  EXPECT_EQ(used.json.find("fabric")->find("part")->find("rate")->text, "2 Gb/s");
  EXPECT_EQ(count_evidence(used.json).measured, 1u);
  EXPECT_EQ(count_evidence(used.json).datasheet, 1u);
  const Loaded changed(
      Texts{{"main.json", R"({"fabric": {"use": "p.json", "set": {"/part/rate": "3 Gb/s"}}})"},
            {"p.json", patch},
            {"l.json", base}});
  ASSERT_TRUE(changed.out.ok()) << changed.problems();
  EXPECT_EQ(count_evidence(changed.json).measured, 0u);
  EXPECT_EQ(count_evidence(changed.json).assumed, 1u);
}

TEST(Loader, OnlyAPatchMayHoldMoreThanUseAndSet) {
  const Loaded loaded(Texts{{"main.json", R"({"fabric": "p.json"})"},
                            {"p.json", R"({"kind": "patch", "use": "l.json", "sets": {}})"},
                            {"l.json", "{}"}});
  EXPECT_FALSE(loaded.out.ok());
}

}  // namespace
}  // namespace weft
