// SPDX-License-Identifier: Apache-2.0
// What every verb does alike: help, one JSON document, silence, exit codes, files that appear whole or not at all.
#include <set>

#include <gmock/gmock.h>

#include "models/catalog.hpp"
#include "tests/cli/cli_test.hpp"
#include "tools/cli/file_source.hpp"

namespace weft {
namespace {

using cli_test::weft_cli;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

const std::string kQuickstart = std::string(WEFT_SOURCE_DIR) + "/scenarios/00-quickstart.json";
const std::vector<std::string> kVerbs{"run",  "check", "list",       "explain",
                                      "topo", "p2p",   "nccl-tests", "tartan"};

TEST(Verbs, EachHasHelp) {
  const auto all = weft_cli({"--help"});
  EXPECT_EQ(all.code, kOk);
  for (const std::string& verb : kVerbs) {
    EXPECT_THAT(all.out, HasSubstr("\n  " + verb + " "));
    for (const auto& args : {std::vector<std::string>{verb, "--help"}, {"help", verb}}) {
      const auto outcome = weft_cli(args);
      EXPECT_EQ(outcome.code, kOk) << verb;
      EXPECT_THAT(outcome.out, HasSubstr("--help")) << verb;
      EXPECT_EQ(outcome.err, "") << verb;
    }
  }
}

TEST(Verbs, WithoutArgumentsEachSaysWhatItNeeds) {
  EXPECT_EQ(weft_cli({}).code, kBadInput);
  for (const std::string& verb : kVerbs) {
    if (verb == "list") continue;
    const auto outcome = weft_cli({verb});
    EXPECT_EQ(outcome.code, kBadInput) << verb;
    EXPECT_EQ(outcome.out, "") << verb;
    EXPECT_THAT(outcome.err, HasSubstr("weft " + verb + " --help")) << verb;
  }
}

TEST(Verbs, VersionIsPrinted) {
  const auto outcome = weft_cli({"--version"});
  EXPECT_EQ(outcome.code, kOk);
  EXPECT_THAT(outcome.out, testing::StartsWith("weft "));
}

TEST(Verbs, AMisspeltVerbOrFlagIsRefusedWithTheNearest) {
  const std::pair<std::vector<std::string>, std::string> cases[] = {
      {{"tpo", "dgx2"}, "did you mean \"topo\"?"},
      {{"topo", "dgx2", "--jsno"}, "did you mean \"--json\"?"},
      {{"run", kQuickstart, "--fidelty=fluid"}, "did you mean \"--fidelity\"?"},
      {{"topo", "dgx3"}, "did you mean \"dgx2\"?"},
      {{"explain", "h100-smx5"}, "did you mean \"h100-sxm5\"?"},
      {{"list", "gpsu"}, "did you mean \"gpus\"?"},
      {{"nccl-tests", "all_reduce", "--fabric", "dgx2"}, "did you mean \"all_reduce_perf\"?"},
      {{"nccl-tests", "all_reduce_perf", "--fabric", "dgx2", "--algo", "rnig"},
       "did you mean \"ring\"?"},
      {{"topo", "dgx1-v100+ib-edr", "--set", "/netwrok/oversubscription=2"},
       "did you mean \"network\"?"},
      {{"topo", "dgx1-v100+ib-edr", "--set", "/network/oversubscripton=2"},
       "did you mean \"oversubscription\"?"},
      {{"frobnicate"}, "see `weft --help`"},
      {{"topo", "dgx2", "extra"}, "does not expect \"extra\""},
      {{"topo", "dgx2", "--set", "servers=2"}, "is not PTR=VALUE"},
      {{"topo", "dgx2", "--set", "/links/500/count=2"}, "there is no item \"500\""},
      {{"topo", "dgx2", "--set", "/links/-1/count=2"}, "there is no item \"-1\""},
      {{"topo", "dgx2", "--set", "/links/0/link/rate=fast"}, "\"fast\" is not a bandwidth"},
      {{"p2p", "dgx2", "-s", "big"}, "\"big\" is not a size"},
      {{"p2p", "dgx2", "--via", "teleport"}, "one of direct, relay, host"},
      {{"p2p", "dgx2", "--peer-access", "maybe"}, "error: "},
      {{"nccl-tests", "all_reduce_perf", "--fabric", "dgx2", "-b", "2M", "-e", "1M"},
       "the smallest size is above the largest"},
      {{"nccl-tests", "all_reduce_perf", "--fabric", "dgx2", "-f", "1"}, "error: "},
      {{"nccl-tests", "all_reduce_perf", "--fabric", "dgx2", "-g", "17"}, "17 GPUs are wanted"},
      {{"nccl-tests", "all_reduce_perf", "--fabric", "dgx2", "-g", "0"}, "error: "},
      {{"run", kQuickstart, "--fidelity", "packt"}, "did you mean \"packet\"?"},
      {{"run", kQuickstart, "--seed", "one"}, "error: "},
      {{"run", kQuickstart, "--seed", "-1"}, "-1 is outside"},
      {{"run", kQuickstart, "--top", "-1"}, "error: "},
      {{"run", kQuickstart, "--set", "/workload/size=1"}, "1 has no unit"},
  };
  for (const auto& [args, words] : cases) {
    const auto outcome = weft_cli(args);
    SCOPED_TRACE(testing::PrintToString(args) + outcome.err);
    EXPECT_EQ(outcome.code, kBadInput);
    EXPECT_EQ(outcome.out, "");
    EXPECT_THAT(outcome.err, HasSubstr(words));
  }
}

TEST(Verbs, JsonIsOneDocumentAndNothingElse) {
  const std::vector<std::string> commands[] = {
      {"run", kQuickstart},
      {"run", kQuickstart, "--what-if", "/workload/size=2 MiB"},
      {"check", kQuickstart},
      {"list"},
      {"list", "links"},
      {"explain", "nvlink4"},
      {"topo", "dgx1-v100+ib-edr"},
      {"p2p", "dgx1-p100"},
      {"nccl-tests", "all_reduce_perf", "--fabric", "dgx1-p100", "-b", "1M", "-e", "4M"},
      {"tartan", "dgx1-p100"}};
  std::set<std::string> covered;
  for (std::vector<std::string> args : commands) {
    covered.insert(args.front());
    args.emplace_back("--json");
    const auto outcome = weft_cli(args);
    SCOPED_TRACE(testing::PrintToString(args));
    EXPECT_EQ(outcome.code, kOk) << outcome.err;
    EXPECT_EQ(outcome.err, "");
    EXPECT_NE(cli_test::document(outcome).find("weft"), nullptr);
  }
  EXPECT_EQ(covered, std::set(kVerbs.begin(), kVerbs.end()));
}

// What was not computed is null, not zero; what is told then is which links are busiest.
TEST(Verbs, QuickClaimsNoGain) {
  const std::string incast = std::string(WEFT_SOURCE_DIR) + "/scenarios/14-incast.json";
  const auto quick = weft_cli({"run", incast, "--quick"}), full = weft_cli({"run", incast});
  EXPECT_THAT(quick.out, Not(HasSubstr("gain if infinite")));
  EXPECT_THAT(full.out, HasSubstr("gain if infinite"));
  const Json json = cli_test::document(weft_cli({"run", incast, "--quick", "--json"}));
  ASSERT_FALSE(json.find("bottlenecks")->items.empty());
  double before = 1;
  for (const Json& b : json.find("bottlenecks")->items) {
    EXPECT_EQ(b.find("gain_if_infinite_s")->kind, Json::Kind::null);
    EXPECT_LE(b.find("share")->number, before);
    before = b.find("share")->number;
  }
  const auto compared = weft_cli({"run", incast, "--quick", "--what-if", "/workload/size=1 MiB"});
  EXPECT_THAT(compared.out, HasSubstr("busiest links: access (infiniband) before"));
  EXPECT_THAT(compared.out, Not(HasSubstr("limited by")));
}

// A step of 300,000 operations takes a tenth of a second, so what limits it is computed.
TEST(Verbs, ATrainingStepSaysWhatLimitsIt) {
  const Json json = cli_test::document(weft_cli(
      {"run", std::string(WEFT_SOURCE_DIR) + "/scenarios/30-training-step.json", "--json"}));
  const Json& first = json.find("bottlenecks")->items.front();
  EXPECT_EQ(first.find("resource")->text, "scale-up (nvlink)");
  EXPECT_GT(first.find("gain_if_infinite_s")->number, 0.01 * json.find("time_s")->number);
}

TEST(Verbs, ProgressIsSilentWhereNobodyLooks) {
  const auto outcome =
      weft_cli({"nccl-tests", "alltoall_perf", "--fabric", "dgx2", "-b", "1M", "-e", "8M"});
  EXPECT_EQ(outcome.code, kOk);
  EXPECT_EQ(outcome.err, "");
  EXPECT_THAT(outcome.out, Not(HasSubstr("\r")));
  EXPECT_THAT(outcome.out, Not(HasSubstr("\x1b")));
}

TEST(Verbs, EveryEntryOfTheCatalogueIsListedExplainedAndChecked) {
  Configs files(find_configs_root());
  const auto list = weft_cli({"list"});
  EXPECT_EQ(list.code, kOk);
  for (const std::string_view kind : Configs::kinds()) {
    for (const std::string& name : files.names(kind)) {
      EXPECT_THAT(list.out, HasSubstr(name));
      const auto explained = weft_cli({"explain", name});
      EXPECT_EQ(explained.code, kOk) << name << explained.err;
      EXPECT_THAT(explained.out, HasSubstr(name));
      if (kind == "llm") continue;
      EXPECT_EQ(weft_cli({"check", *files.find(kind, name)}).code, kOk) << name;
    }
  }
  for (const AlgorithmEntry* entry : collective_algorithms()) {
    EXPECT_EQ(weft_cli({"explain", std::string(entry->name)}).code, kOk) << entry->name;
  }
}

TEST(Verbs, TopoShowsEveryServerAndFabric) {
  Configs files(find_configs_root());
  for (const std::string_view kind : {"server", "fabric"}) {
    for (const std::string& name : files.names(kind)) {
      const auto outcome = weft_cli({"topo", name});
      EXPECT_EQ(outcome.code, kOk) << name << outcome.err;
      EXPECT_THAT(outcome.out, HasSubstr("GPUs")) << name;
    }
  }
}

// ---- --out

TEST(Out, WritesTheReportIntoAFreshFolder) {
  const cli_test::Folder folder;
  const auto outcome = weft_cli({"run", kQuickstart, "--quick", "--out", folder.path("a/b")});
  EXPECT_EQ(outcome.code, kOk) << outcome.err;
  Diagnostics problems;
  std::ifstream file(folder.path("a/b/report.json"));
  const std::string text((std::istreambuf_iterator<char>(file)), {});
  EXPECT_NE(parse_json(text, "report.json", problems).find("time_s"), nullptr);
  EXPECT_TRUE(std::filesystem::exists(folder.path("a/b/links.csv")));
}

TEST(Out, AFileInTheWayIsLeftAsItIs) {
  const cli_test::Folder folder;
  const std::string file = folder.file("results", "precious");
  for (const std::string& path : {file, file + "/below"}) {
    const auto outcome = weft_cli({"run", kQuickstart, "--quick", "--out", path});
    EXPECT_EQ(outcome.code, kBadInput);
    EXPECT_EQ(outcome.out, "");
    EXPECT_THAT(outcome.err, HasSubstr(path));
  }
  EXPECT_THAT(folder.names(), testing::ElementsAre("results"));
  std::ifstream in(file);
  EXPECT_EQ(std::string((std::istreambuf_iterator<char>(in)), {}), "precious");
}

TEST(Out, AFolderInThePlaceOfTheReportLeavesNoHalfWrittenFile) {
  const cli_test::Folder folder;
  std::filesystem::create_directories(folder.path("out/report.json/inside"));
  const auto outcome = weft_cli({"run", kQuickstart, "--quick", "--out", folder.path("out")});
  EXPECT_EQ(outcome.code, kBadInput);
  EXPECT_EQ(outcome.out, "");
  EXPECT_THAT(outcome.err, HasSubstr("report.json"));
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(folder.path("out")))
    names.push_back(entry.path().filename().string());
  EXPECT_THAT(names, testing::ElementsAre("report.json"));
}

TEST(Out, AFolderThatCannotBeMadeIsRefused) {
  for (const std::string path : {"/proc/weft", "/dev/full", "/dev/null/x"}) {
    const auto outcome = weft_cli({"run", kQuickstart, "--quick", "--out", path});
    EXPECT_EQ(outcome.code, kBadInput) << path;
    EXPECT_EQ(outcome.out, "") << path;
    EXPECT_THAT(outcome.err, HasSubstr(path));
  }
}

TEST(Out, AWrongScenarioLeavesNoFolder) {
  const cli_test::Folder folder;
  EXPECT_EQ(weft_cli({"run", cli_test::data("wrong_unit.json"), "--out", folder.path("out")}).code,
            kBadInput);
  EXPECT_THAT(folder.names(), IsEmpty());
}

TEST(Out, AFullStandardOutputIsNoSuccess) {
  std::ofstream full("/dev/full");
  ASSERT_TRUE(full);
  std::ostringstream err;
  EXPECT_EQ(run_cli({"list"}, full, err), kLimit);
  EXPECT_THAT(err.str(), HasSubstr("cannot write"));
}

TEST(NcclTests, NodesTimesGpusPerNodeAreTheRanks) {
  const auto ranks = [](const std::vector<std::string>& flags) {
    std::vector<std::string> args{"nccl-tests", "all_reduce_perf", "--json", "-b", "1M", "-e",
                                  "1M",         "--fabric"};
    args.insert(args.end(), flags.begin(), flags.end());
    return cli_test::number_at(cli_test::document(weft_cli(args)), {"ranks"});
  };
  EXPECT_EQ(ranks({"dgx-a100+ib-hdr", "--nodes", "1"}), 8);
  EXPECT_EQ(ranks({"dgx-a100+ib-hdr", "--nodes", "1", "--gpus-per-node", "4"}), 4);
  EXPECT_EQ(ranks({"dgx-a100+ib-hdr", "--nodes", "5", "--gpus-per-node", "2"}), 10);
  EXPECT_EQ(ranks({"dgx-a100", "--nodes", "1"}), 8);
}

}  // namespace
}  // namespace weft
