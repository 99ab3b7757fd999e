// SPDX-License-Identifier: Apache-2.0
#include "tools/cli/cli.hpp"

#include <filesystem>
#include <fstream>
#include <set>
#include <sstream>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace weft {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;

struct Answer {
  int code;
  std::string out, err;
};

Answer weft_run(const std::vector<std::string>& args) {
  std::ostringstream out, err;
  const int code = run_cli(args, out, err);
  return {code, out.str(), err.str()};
}

Json answer_json(const std::vector<std::string>& args) {
  const Answer answer = weft_run(args);
  EXPECT_EQ(answer.code, kOk) << answer.err;
  Diagnostics problems;
  Json json = parse_json(answer.out, "stdout", problems);
  EXPECT_TRUE(problems.ok()) << problems.text();
  return json;
}

// A file that is gone when the test ends.
class TemporaryFile {
 public:
  explicit TemporaryFile(const std::string& text)
      : path_((std::filesystem::temp_directory_path() /
               fmt::format("weft-cli-{}-{}.json", ::testing::UnitTest::GetInstance()->random_seed(),
                           static_cast<const void*>(this)))
                  .string()) {
    std::ofstream(path_) << text;
  }
  TemporaryFile(const TemporaryFile&) = delete;
  TemporaryFile& operator=(const TemporaryFile&) = delete;
  ~TemporaryFile() { std::filesystem::remove(path_); }
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

// ---- the frame

TEST(Cli, VersionAndHelpGoToStandardOutput) {
  EXPECT_THAT(weft_run({"--version"}).out, ::testing::StartsWith("weft "));
  EXPECT_THAT(weft_run({"--help"}).out, HasSubstr("topo"));
  EXPECT_THAT(weft_run({"topo", "--help"}).out, HasSubstr("--names"));
  EXPECT_EQ(weft_run({"help", "topo"}).out, weft_run({"topo", "--help"}).out);
}

TEST(Cli, NoCommandIsBadInput) {
  const Answer answer = weft_run({});
  EXPECT_EQ(answer.code, kBadInput);
  EXPECT_THAT(answer.out, IsEmpty());
  EXPECT_THAT(answer.err, HasSubstr("Usage"));
}

TEST(Cli, UnknownWordsGetTheNearestName) {
  const std::pair<std::vector<std::string>, const char*> cases[] = {
      {{"tpo", "dgx2"}, "there is no command \"tpo\", did you mean \"topo\"?"},
      {{"topo", "dgx2", "--jsn"}, "`weft topo` has no flag \"--jsn\", did you mean \"--json\"?"},
      {{"topo", "--nmaes=x", "dgx2"}, "has no flag \"--nmaes\", did you mean \"--names\"?"},
      {{"topo", "dgx2", "dgx1-v100"}, "`weft topo` does not expect \"dgx1-v100\""},
      {{"topo"}, "fabric is required"},
      {{"topo", "dgx22"}, "there is no fabric named \"dgx22\", did you mean \"dgx2\"?"},
      {{"list", "gpuss"}, "there is no kind \"gpuss\", did you mean \"gpus\"?"},
      {{"explain", "nvlinc3"}, "the catalogue has no \"nvlinc3\", did you mean \"nvlink3\"?"},
      {{"topo", "no/such.json"}, "cannot read \"no/such.json\""},
  };
  for (const auto& [args, text] : cases) {
    const Answer answer = weft_run(args);
    EXPECT_EQ(answer.code, kBadInput) << text;
    EXPECT_THAT(answer.out, IsEmpty());
    EXPECT_THAT(answer.err, HasSubstr(text));
  }
}

TEST(Cli, AStreamThatCannotBeWrittenIsNotSuccess) {
  std::ostringstream out, err;
  out.setstate(std::ios::badbit);
  EXPECT_EQ(run_cli({"list", "gpus"}, out, err), kLimit);
  EXPECT_THAT(err.str(), HasSubstr("cannot write"));
}

// ---- --set

TEST(Set, TakesJsonElseText) {
  const Json json =
      answer_json({"topo", "hgx-h100+ib-ndr", "--json", "--set", "/servers=64", "--set",
                   "/network/routing=ecmp", "--set",
                   "/network/switch={\"use\": \"qm9700\", \"set\": {\"/latency\": \"1 us\"}}"});
  EXPECT_EQ(json.find("servers")->integer, 64);
}

TEST(Set, AllProblemsAreReportedAtOnce) {
  const Answer answer =
      weft_run({"topo", "hgx-h100+ib-ndr", "--set", "/network/link=ib-nd", "--set", "/servers=abc",
                "--set", "/x/y=3", "--set", "/network/oversubscripton=2"});
  EXPECT_EQ(answer.code, kBadInput);
  EXPECT_THAT(answer.err, HasSubstr("there is no link named \"ib-nd\""));
  EXPECT_THAT(answer.err, HasSubstr("/servers: \"abc\" where a whole number is needed"));
  EXPECT_THAT(answer.err, HasSubstr("/x/y: the document has no \"x\""));
  EXPECT_THAT(answer.err, HasSubstr("unknown key, did you mean \"oversubscription\"?"));
}

// Before any file is read, as all problems of the command line itself.
TEST(Set, AllTextsOfAnotherFormAreNamedAtOnce) {
  const Answer answer =
      weft_run({"topo", "hgx-h100", "--set", "servers=5", "--set", "/servers", "--set", "=5"});
  EXPECT_EQ(answer.code, kBadInput);
  for (const char* text : {"servers=5", "/servers", "=5"})
    EXPECT_THAT(answer.err, HasSubstr(std::string("--set \"") + text + "\" is not PTR=VALUE"));
}

// ---- NCCL

TEST(NcclTests, AlgoWinsOverNcclAlgoAndSaysSo) {
  const auto run = [](std::vector<std::string> more) {
    std::vector<std::string> args{
        "nccl-tests", "all_reduce_perf", "--fabric", "hgx-h100", "-b", "1M", "-e", "1M"};
    args.insert(args.end(), more.begin(), more.end());
    return weft_run(args);
  };
  const Answer both = run({"--algo", "ring", "--env", "NCCL_ALGO=Tree"});
  EXPECT_EQ(both.code, kOk);
  EXPECT_THAT(both.err, HasSubstr("warning: --algo: \"ring\" wins over NCCL_ALGO=Tree"));
  EXPECT_EQ(both.out, run({"--algo", "ring"}).out);
  EXPECT_EQ(run({"--algo", "ring", "--env", "NCCL_ALGO=Ring,Tree"}).err, "");
}

TEST(NcclTests, WhatCannotBeDoneIsRefused) {
  const auto run = [](std::vector<std::string> more) {
    std::vector<std::string> args{"nccl-tests", "all_reduce_perf", "--fabric", "hgx-h100"};
    args.insert(args.end(), more.begin(), more.end());
    return weft_run(args);
  };
  const Answer packet = run({"--fidelity", "packet"});
  EXPECT_EQ(packet.code, kBadInput);
  EXPECT_THAT(packet.err, HasSubstr("--fidelity: not yet"));
  const Answer twice = run({"--env", "NCCL_ALGO=Ring", "--env", "NCCL_ALGO=Tree"});
  EXPECT_EQ(twice.code, kBadInput);
  EXPECT_THAT(twice.err, HasSubstr("NCCL_ALGO is given twice"));
  const Answer nodes = run({"--nodes", "2"});
  EXPECT_EQ(nodes.code, kBadInput);
  EXPECT_THAT(nodes.err, HasSubstr("--nodes: hgx-h100 is one server without a network"));
  // No table is cut short: 8 to 8G by hundredths are 2,000 rows.
  const Answer many = run({"-f", "1.01"});
  EXPECT_EQ(many.code, kLimit);
  EXPECT_THAT(many.err, HasSubstr("-f 1.01 makes more than 200 sizes"));
  // 8 to 19, each once; no step lands on 20.
  const Answer few = run({"-b", "8", "-e", "20", "-f", "1.01"});
  EXPECT_EQ(few.code, kOk);
  EXPECT_EQ(std::ranges::count(few.out, '\n'), 5 + 12 + 1) << few.out;
}

// ---- topo

TEST(Topo, Dgx1V100PrintsTheMeasuredMatrix) {
  const std::string out = weft_run({"topo", "dgx1-v100"}).out;
  // dgx1v-nvlink-adjacency, as nvidia-smi topo -m prints it.
  for (const char* row : {"GPU0  X     NV1   NV1   NV2   NV2   SYS   SYS   SYS ",
                          "GPU1  NV1   X     NV2   NV1   SYS   NV2   SYS   SYS ",
                          "GPU2  NV1   NV2   X     NV2   SYS   SYS   NV1   SYS ",
                          "GPU3  NV2   NV1   NV2   X     SYS   SYS   SYS   NV1 ",
                          "GPU4  NV2   SYS   SYS   SYS   X     NV1   NV1   NV2 ",
                          "GPU5  SYS   NV2   SYS   SYS   NV1   X     NV2   NV1 ",
                          "GPU6  SYS   SYS   NV1   SYS   NV1   NV2   X     NV2 ",
                          "GPU7  SYS   SYS   SYS   NV1   NV2   NV1   NV2   X "}) {
    EXPECT_THAT(out, HasSubstr(row));
  }
}

TEST(Topo, HundredTwentyEightHgxServersAreNonBlocking) {
  const Json json = answer_json({"topo", "hgx-h100+ib-ndr", "--set", "/servers=128", "--json"});
  EXPECT_EQ(json.find("gpus")->integer, 1024);
  EXPECT_EQ(json.find("nics")->integer, 1024);
  EXPECT_EQ(json.find("switches")->find("leaf")->integer, 32);
  EXPECT_EQ(json.find("switches")->find("spine")->integer, 16);
  EXPECT_EQ(json.find("links_by_tier")->find("access")->integer, 1024);
  EXPECT_EQ(json.find("links_by_tier")->find("leaf-spine")->integer, 1024);
  EXPECT_DOUBLE_EQ(json.find("bisection_gbs")->number, 512 * 50.0);
  EXPECT_DOUBLE_EQ(json.find("bisection_formula_gbs")->number, 512 * 50.0);
  EXPECT_DOUBLE_EQ(json.find("oversubscription")->number, 1);
}

TEST(Topo, OversubscriptionShowsInBisectionAndRatio) {
  const Json json = answer_json({"topo", "hgx-h100+ib-ndr", "--set", "/servers=128", "--set",
                                 "/network/oversubscription=2", "--json"});
  EXPECT_DOUBLE_EQ(json.find("oversubscription")->number, 2);
  EXPECT_DOUBLE_EQ(json.find("bisection_gbs")->number * 2,
                   json.find("bisection_formula_gbs")->number);
}

// 8 GPUs of a board times six links of 25.78 GB/s, one direction (dgx2-topo says 2.4 TB/s for both).
TEST(Topo, Dgx2CutsItsTrunks) {
  const Json json = answer_json({"topo", "dgx2", "--json"});
  EXPECT_NEAR(json.find("bisection_cut_gbs")->find("scale-up")->number, 48 * 25.78125, 1e-6);
}

TEST(Topo, NamesAreThoseThatMatch) {
  EXPECT_EQ(weft_run({"topo", "dgx2", "--names", "nvswitch?"}).out,
            "nvswitch0\nnvswitch1\nnvswitch2\nnvswitch3\nnvswitch4\nnvswitch5\nnvswitch6\nnvswitch7"
            "\nnvswitch8\nnvswitch9\n");
  EXPECT_EQ(
      weft_run({"topo", "dgx1-v100+ib-edr", "--set", "/servers=9", "--names", "leaf0/up1?"}).out,
      "leaf0/up10\nleaf0/up11\nleaf0/up12\nleaf0/up13\nleaf0/up14\nleaf0/up15\nleaf0/up16\nleaf0/"
      "up17\n");
  const Json json = answer_json({"topo", "dgx2", "--names", "gpu0:*", "--json"});
  EXPECT_EQ(json.find("names")->items.size(), 7u);  // six switches and a PCIe switch
}

TEST(Topo, ATorusHasADependencyCycle) {
  const Json json = answer_json(
      {"topo", "hgx-h100+ib-ndr", "--set", "/servers=8", "--set",
       "/network={\"generator\": \"torus\", \"switch\": \"qm9700\", \"dims\": [8]}", "--json"});
  EXPECT_EQ(json.find("dependency_cycle")->items.size(), 8u);
}

TEST(Topo, LargeServersPrintTheirMatrixOnRequest) {
  EXPECT_EQ(answer_json({"topo", "gb200-nvl72", "--json"}).find("matrix"), nullptr);
  const Json json = answer_json({"topo", "gb200-nvl72", "--matrix", "--json"});
  EXPECT_EQ(json.find("matrix")->items[0].items[71].text, "NV18");
}

// ---- list, explain, check

TEST(List, KnowsEveryKind) {
  const Json json = answer_json({"list", "--json"});
  std::set<std::string> kinds;
  for (const Json& entry : json.find("entries")->items) {
    kinds.insert(entry.find("kind")->text);
    EXPECT_FALSE(entry.find("summary")->text.empty()) << entry.find("name")->text;
  }
  for (const char* kind :
       {"gpu", "link", "nic", "switch", "server", "fabric", "link-class", "collective"})
    EXPECT_TRUE(kinds.contains(kind)) << kind;
  EXPECT_EQ(weft_run({"list", "gpu"}).out, weft_run({"list", "gpus"}).out);
}

TEST(Explain, GivesEveryValueWithItsSource) {
  const Json json = answer_json({"explain", "nvlink2", "--json"});
  const Json& entry = json.find("entries")->items.at(0);
  for (const Json& value : entry.find("values")->items)
    EXPECT_FALSE(value.find("source")->text.empty()) << value.find("pointer")->text;
  EXPECT_NEAR(entry.find("law")->find("raw_gbs")->number, 25.78125, 1e-9);
  EXPECT_THAT(weft_run({"explain", "ring"}).out, HasSubstr("collective"));
}

TEST(Check, SaysOkOrEveryProblem) {
  const TemporaryFile good(
      R"({"fabric": {"use": "dgx2"}, "workload": {"collective": "all_reduce", "size": "1 GiB"}})");
  const TemporaryFile bad(
      R"({"weft": {"schema": 1}, "kind": "fabric", "name": "bad", "servers": "x",
 "server": {"use": "hgx-h100", "set": {"/links/0/link": "pcie9"}},
 "network": {"generator": "fattree", "switch": {"use": "qm97000"}, "colour": 2}})");
  EXPECT_EQ(weft_run({"check", good.path()}).out, good.path() + ": ok, scenario\n");
  const Answer answer = weft_run({"check", good.path(), bad.path()});
  EXPECT_EQ(answer.code, kBadInput);
  EXPECT_EQ(answer.out, good.path() + ": ok, scenario\n");
  for (const char* text :
       {":1:69: error: /servers: \"x\" where a whole number is needed",
        ":2:57: error: /links/0/link: there is no link named \"pcie9\"",
        "did you mean \"fat-tree\"?", "did you mean \"qm9700\"?", "/network/colour: unknown key"}) {
    EXPECT_THAT(answer.err, HasSubstr(text));
  }
  EXPECT_THAT(
      answer.err,
      ::testing::Not(HasSubstr("missing")));  // what follows from an unknown name is not told
}

TEST(Check, JsonListsPlaceFactAndCure) {
  const TemporaryFile bad(R"({"kind": "gppu"})");
  const Answer answer = weft_run({"check", bad.path(), "--json"});
  EXPECT_EQ(answer.code, kBadInput);
  Diagnostics problems;
  const Json json = parse_json(answer.out, "stdout", problems);
  const Json& problem = json.find("files")->items.at(0).find("problems")->items.at(0);
  EXPECT_THAT(problem.find("fact")->text, HasSubstr("did you mean \"gpu\"?"));
  EXPECT_EQ(problem.find("line")->integer, 1);
  EXPECT_EQ(problem.find("pointer")->text, "/kind");
}

// ---- terminal

TEST(Table, AlignsNumbersRightAndWordsLeft) {
  Table table({"tier", "links"});
  table.row({"access", "9"});
  table.row({"leaf-spine", "1024"});
  table.row({"µ", ""});
  EXPECT_EQ(table.text(" "), " tier        links\n access          9\n leaf-spine   1024\n µ\n");
}

TEST(Table, AnEmptyHeaderIsNotPrinted) {
  Table table({"", ""});
  table.row({"GPUs", "8 of 16"});
  EXPECT_EQ(table.text(), "GPUs  8 of 16\n");
}

TEST(Terminal, OnlyTerminalsGetColour) {
  std::ostringstream text;
  EXPECT_FALSE(wants_colour(text));
  EXPECT_EQ(paint("x", Colour::red, false), "x");
  EXPECT_EQ(paint("x", Colour::red, true), "\x1b[31mx\x1b[0m");
  { Progress(text).show("half"); }
  EXPECT_EQ(text.str(), "");
}

}  // namespace
}  // namespace weft
