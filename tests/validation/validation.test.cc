// SPDX-License-Identifier: Apache-2.0
// The shipped records: all can be predicted, and every set keeps its limits.
#include <filesystem>
#include <fstream>
#include <set>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/cli/cli_test.hpp"

namespace weft {
namespace {

using cli_test::document;
using cli_test::Folder;
using cli_test::Outcome;
using cli_test::weft_cli;
using ::testing::HasSubstr;
using ::testing::Not;

const Outcome& whole() {
  static const Outcome outcome = weft_cli({"validate", "--json", "--check-limits"});
  return outcome;
}

TEST(ShippedRecords, AreAllPredictedAndKeepTheirLimits) {
  EXPECT_EQ(whole().code, kOk) << whole().err;
  EXPECT_EQ(whole().err, "");
  const Json answer = document(whole());
  for (const Json& set : answer.find("sets")->items) {
    const std::string& name = set.find("name")->text;
    EXPECT_GT(set.find("rows")->integer, 0) << name;
    EXPECT_FALSE(set.find("cases")->items.empty()) << name;
    EXPECT_TRUE(set.find("broken_limits")->items.empty()) << name;
  }
}

TEST(ShippedRecords, HaveOneIdPerRowAndFiniteErrors) {
  std::set<std::string> ids;
  std::size_t rows = 0;
  const Json answer = document(whole());
  for (const Json& set : answer.find("sets")->items) {
    for (const Json& row : set.find("cases")->items) {
      EXPECT_TRUE(ids.insert(row.find("id")->text).second) << row.find("id")->text;
      EXPECT_GT(row.find("predicted")->number, 0);
      EXPECT_GT(row.find("measured")->number, 0);
      EXPECT_NEAR(row.find("error")->number,
                  row.find("predicted")->number / row.find("measured")->number - 1, 1e-9);
      ++rows;
    }
  }
  EXPECT_GT(rows, 3000U);
}

TEST(ShippedRecords, StandBesideWhatOthersPublish) {
  const Json answer = document(whole());
  const Json& published = *answer.find("published");
  ASSERT_FALSE(published.items.empty());
  for (const Json& entry : published.items) {
    const std::string& name = entry.find("name")->text;
    EXPECT_GT(entry.find("rows")->integer, 0) << name;
    EXPECT_FALSE(entry.find("broken_limit")->is_string()) << name;
  }
}

// Otherwise nothing would tell a fit from a prediction.
TEST(ShippedRecords, SomeMachinesAreHeldOutAndHardlyWorse) {
  const Json answer = document(whole());
  std::set<std::string> sides;
  for (const Json& group : answer.find("groups")->items) {
    if (group.find("by")->text != "machine") continue;
    sides.insert(group.find("name")->text);
    if (group.find("name")->text != "held out") continue;
    EXPECT_LT(group.find("median_abs_rel_error")->number, 0.13);
    EXPECT_LT(group.find("median_abs_rel_error_large")->number, 0.06);
  }
  EXPECT_EQ(sides, (std::set<std::string>{"fitted", "held out"}));
}

TEST(ShippedRecords, EverySetOfRecordsIsDescribed) {
  Diagnostics diagnostics;
  std::ifstream file(std::string(WEFT_SOURCE_DIR) + "/tests/validation/sets.json");
  std::stringstream text;
  text << file.rdbuf();
  const Json sets = parse_json(text.str(), "sets.json", diagnostics);
  ASSERT_TRUE(diagnostics.ok());
  std::set<std::string> described, used;
  for (const Json& set : sets.find("sets")->items) described.insert(set.find("name")->text);
  const Json answer = document(whole());
  for (const Json& set : answer.find("sets")->items) used.insert(set.find("name")->text);
  EXPECT_EQ(described, used);
}

const std::string kRecord =
    R"({"id": "mine", "set": "ours", "weft": {"kind": "p2p", "fabric": "dgx2",
    "pairs": [[0, 1]], "quantity": "bandwidth"}, "value": 145.57, "unit": "GB/s"})";

TEST(OwnRecords, AreReadFromAnyFolder) {
  const Folder folder;
  folder.file("mine.json",
              R"({"file": "mine", "area": "B", "note": "n", "n_records": 1, "records": [)" +
                  kRecord + "]}");
  folder.file("readme.txt", "not a record");
  const Outcome outcome = weft_cli({"validate", "--dataset", folder.path(""), "--json"});
  EXPECT_EQ(outcome.code, kOk) << outcome.err;
  const Json answer = document(outcome);
  const Json& set = answer.find("sets")->items.at(0);
  EXPECT_EQ(set.find("name")->text, "ours");
  EXPECT_EQ(set.find("rows")->integer, 1);
  EXPECT_NEAR(set.find("median_abs_rel_error")->number, 0, 0.01);
  EXPECT_EQ(set.find("cases")->items.at(0).find("id")->text, "mine@gpu0-gpu1");
  EXPECT_EQ(set.find("cases")->items.at(0).find("unit")->text, "GB/s");
}

TEST(OwnRecords, MayBeOneFile) {
  const Folder folder;
  const std::string path = folder.file("mine.json", R"({"records": [)" + kRecord + "]}");
  folder.file("other.json", "not even JSON");
  const Outcome outcome = weft_cli({"validate", "--dataset", path, "--json"});
  EXPECT_EQ(outcome.code, kOk) << outcome.err;
  EXPECT_EQ(document(outcome).find("all")->find("rows")->integer, 1);
}

TEST(OwnRecords, AreCheckedWithoutBeingRun) {
  const Folder folder;
  const std::string path = folder.file("mine.json", R"({"records": [)" + kRecord + "]}");
  const Outcome good = weft_cli({"check", path});
  EXPECT_EQ(good.code, kOk) << good.err;
  EXPECT_THAT(good.out, HasSubstr("ok, validation"));
  const std::string wrong = folder.file("wrong.json", R"({"records": [{"id": "x"}]})");
  const Outcome bad = weft_cli({"check", wrong});
  EXPECT_EQ(bad.code, kBadInput);
  EXPECT_THAT(bad.err, HasSubstr("the key \"weft\" is missing"));
}

TEST(OwnRecords, AllProblemsOfAllFilesAreShownAtOnce) {
  const Folder folder;
  folder.file("a.json", R"({"records": [{"id": "x"}, )" + kRecord + "]}");
  folder.file("b.json", R"({"records": [{"id": "y", "weft": {"kind": "moe"}}]})");
  folder.file("c.json", "{");
  const Outcome outcome = weft_cli({"validate", "--dataset", folder.path("")});
  EXPECT_EQ(outcome.code, kBadInput);
  EXPECT_EQ(outcome.out, "");
  EXPECT_THAT(outcome.err,
              HasSubstr("a.json:1:14: error: /records/0: the key \"weft\" is missing"));
  EXPECT_THAT(outcome.err, HasSubstr("not yet: cases of kind \"moe\""));
  EXPECT_THAT(outcome.err, HasSubstr("c.json:1:1: error: not JSON"));
  EXPECT_THAT(outcome.err, Not(HasSubstr("the key \"records\"")));
}

TEST(OwnRecords, WhatCannotBePredictedIsNamedBesideTheRest) {
  const Folder folder;
  std::string lost = kRecord;
  lost.replace(lost.find("mine"), 4, "lost");
  lost.replace(lost.find("dgx2"), 4, "dgx9");
  folder.file("a.json", R"({"records": [)" + lost + ", " + kRecord + "]}");
  const Outcome outcome = weft_cli({"validate", "--dataset", folder.path(""), "--json"});
  EXPECT_EQ(outcome.code, kBadInput);
  EXPECT_THAT(outcome.err, HasSubstr("a.json:1:14: error: lost: cannot be predicted"));
  EXPECT_THAT(outcome.err, HasSubstr("dgx9"));
  EXPECT_EQ(document(outcome).find("sets")->items.at(0).find("rows")->integer, 1);
}

TEST(OwnRecords, ALimitThatIsMissedIsExitCodeFour) {
  const Folder folder;
  std::string far = kRecord;
  far.replace(far.find("145.57"), 6, "50.5");
  folder.file("a.json", R"({"sets": [{"name": "ours", "limit": {"median": 0.1}}], "records": [)" +
                            far + "]}");
  EXPECT_EQ(weft_cli({"validate", "--dataset", folder.path("")}).code, kOk);
  const Outcome outcome = weft_cli({"validate", "--dataset", folder.path(""), "--check-limits"});
  EXPECT_EQ(outcome.code, kLimit);
  EXPECT_THAT(outcome.err, HasSubstr("limit: ours: median 1.8"));
}

TEST(OwnRecords, AreChosenByNameOrPattern) {
  const Folder folder;
  std::string other = kRecord;
  other.replace(other.find("mine"), 4, "your");
  folder.file("a.json", R"({"records": [)" + other + ", " + kRecord + "]}");
  const auto rows = [&](const std::string& only) {
    const Outcome outcome =
        weft_cli({"validate", "--dataset", folder.path(""), "--json", "--only", only});
    if (outcome.code != kOk) return std::string(outcome.err);
    return std::to_string(document(outcome).find("all")->find("rows")->integer);
  };
  EXPECT_EQ(rows("ours"), "2");
  EXPECT_EQ(rows("mi*"), "1");
  EXPECT_THAT(rows("mime"), HasSubstr("did you mean \"mine\"?"));
}

TEST(OwnRecords, AFolderThatIsNotThereOrEmptyIsRefused) {
  const Folder folder;
  EXPECT_EQ(weft_cli({"validate", "--dataset", folder.path("none")}).code, kBadInput);
  EXPECT_EQ(weft_cli({"validate", "--dataset", folder.path("")}).code, kBadInput);
}

TEST(Page, IsWrittenWithItsPlotsAndTheNotesBesideIt) {
  const Folder folder;
  folder.file("page.notes.md", "## Notes\n\nBy hand.\n");
  const Outcome outcome =
      weft_cli({"validate", "--only", "tartan-p100-packet-*", "--page", folder.path("page.md")});
  EXPECT_EQ(outcome.code, kOk) << outcome.err;
  EXPECT_EQ(folder.names(), (std::vector<std::string>{"page", "page.md", "page.notes.md"}));
  std::ifstream file(folder.path("page.md"));
  std::stringstream text;
  text << file.rdbuf();
  EXPECT_THAT(text.str(), HasSubstr("By hand."));
  EXPECT_TRUE(std::filesystem::exists(folder.path("page") + "/p2p-size-sweeps.svg"));
}

TEST(Page, OntoAFolderLeavesNothing) {
  const Folder folder;
  std::filesystem::create_directory(folder.path("page"));
  const Outcome outcome =
      weft_cli({"validate", "--only", "tartan-p100-packet-*", "--page", folder.path("page")});
  EXPECT_EQ(outcome.code, kBadInput);
  EXPECT_THAT(outcome.err, HasSubstr("this is a folder, not a file"));
  EXPECT_EQ(folder.names(), (std::vector<std::string>{"page"}));
  EXPECT_TRUE(std::filesystem::is_empty(folder.path("page")));
}

}  // namespace
}  // namespace weft
