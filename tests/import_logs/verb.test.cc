// SPDX-License-Identifier: Apache-2.0
// weft import of logs from the command line, and weft check of what it writes.
#include <filesystem>

#include <gmock/gmock.h>

#include "tests/cli/cli_test.hpp"

namespace weft {
namespace {

using cli_test::document;
using cli_test::import_log;
using cli_test::weft_cli;
using testing::HasSubstr;

class ImportLog : public testing::Test {
 protected:
  cli_test::Folder folder_;
};

TEST_F(ImportLog, WhatIsWrittenPassesTheCheck) {
  const std::pair<const char*, const char*> captures[] = {
      {"nccl-tests", "h100-8gpu-allreduce-nvls.log"},
      {"nvbandwidth", "nvbandwidth-0.10-h100-8gpu.txt"},
      {"p2p", "p2p-4gpu-no-peer-access.txt"},
      {"perftest", "ib_write_bw-bidirectional-4qp-400g.txt"},
      {"moe-log", "moe-dispatch-2node-vs-4node.txt"}};
  for (const auto& [kind, name] : captures) {
    const std::string path = folder_.path(std::string(kind) + ".json");
    const auto imported = weft_cli({"import", kind, import_log(name), "-o", path});
    ASSERT_EQ(imported.code, kOk) << kind << imported.err;
    const auto checked = weft_cli({"check", path, "--json"});
    EXPECT_EQ(checked.code, kOk) << checked.err;
    EXPECT_EQ(document(checked).find("files")->items.at(0).find("kind")->text, "measurement");
  }
}

TEST_F(ImportLog, AConfigJsonBecomesAModel) {
  const std::string path = folder_.path("mine.json");
  const auto imported =
      weft_cli({"import", "hf-config", import_log("hf/qwen3-30b-a3b.json"), "-o", path, "--json"});
  ASSERT_EQ(imported.code, kOk) << imported.err;
  const auto checked = weft_cli({"check", path, import_log("hf/qwen3-30b-a3b.json"), "--json"});
  EXPECT_EQ(checked.code, kOk) << checked.err;
  for (const Json& file : document(checked).find("files")->items)
    EXPECT_EQ(file.find("kind")->text, "llm");
  const auto again = weft_cli({"explain", "qwen3-30b-a3b", "--json"});
  EXPECT_EQ(document(again).find("entries")->items.at(0).find("llm")->find("parameters")->integer,
            document(imported).find("facts")->find("parameters")->integer);
}

TEST_F(ImportLog, AModelOfAnUnknownFamilyIsNotWritten) {
  const auto outcome =
      weft_cli({"import", "hf-config", folder_.file("odd.json", R"({"model_type": "gemma9"})"),
                "-o", folder_.path("out.json")});
  EXPECT_EQ(outcome.code, kBadInput);
  EXPECT_THAT(outcome.err, HasSubstr("see configs/llms"));
}

TEST_F(ImportLog, AWrongMeasurementIsReportedAtItsPlace) {
  const auto outcome = weft_cli({"check", folder_.file("bad.json", R"({"weft": {"schema": 1},
 "kind": "measurement", "name": "bad", "tool": "nccl-tests",
 "runs": [{"samples": [{"bytes": "8 B", "algbw": "1 GB", "busbww": "1 GB/s"}]}],
 "sources": {"": "measured: by hand"}})")});
  EXPECT_EQ(outcome.code, kBadInput);
  EXPECT_THAT(outcome.err, HasSubstr("bad.json:3:"));
  EXPECT_THAT(outcome.err, HasSubstr("\"1 GB\""));
  EXPECT_THAT(outcome.err, HasSubstr("did you mean \"busbw\""));
}

TEST_F(ImportLog, AMeasurementWithoutANumberIsNone) {
  const auto outcome = weft_cli({"check", folder_.file("empty.json", R"({"weft": {"schema": 1},
 "kind": "measurement", "name": "empty", "tool": "nvbandwidth", "sources": {}})")});
  EXPECT_EQ(outcome.code, kBadInput);
  EXPECT_THAT(outcome.err, HasSubstr("nothing was measured"));
}

// A device is written to, never replaced; what cannot take the text is an error, and a link stays a link.
TEST_F(ImportLog, OutputGoesWhereItPoints) {
  const auto to = [](const std::string& path) {
    return weft_cli(
        {"import", "nccl-tests", import_log("h100-8gpu-allreduce-nvls.log"), "-o", path});
  };
  if (std::filesystem::is_character_file("/dev/full")) {
    const auto full = to("/dev/full");
    EXPECT_EQ(full.code, kBadInput);
    EXPECT_THAT(full.err, HasSubstr("/dev/full: error: cannot write this file"));
    EXPECT_TRUE(std::filesystem::is_character_file("/dev/full"));
  }
  EXPECT_EQ(to(folder_.path("none/x.json")).code, kBadInput);
  const std::string real = folder_.file("real.json", "old"), link = folder_.path("link.json");
  std::filesystem::create_symlink(real, link);
  EXPECT_EQ(to(link).code, kOk);
  EXPECT_TRUE(std::filesystem::is_symlink(link));
  EXPECT_EQ(weft_cli({"check", real}).code, kOk);
  EXPECT_THAT(folder_.names(), testing::UnorderedElementsAre("link.json", "real.json"));
}

}  // namespace
}  // namespace weft
