// SPDX-License-Identifier: Apache-2.0
// weft import from the command line: what it prints, what it writes, what it refuses.
#include <gmock/gmock.h>

#include "tests/cli/cli_test.hpp"

namespace weft {
namespace {

using cli_test::document;
using cli_test::weft_cli;
using testing::AllOf;
using testing::Contains;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

std::string data(const std::string& name) {
  return std::string(WEFT_SOURCE_DIR) + "/tests/import_machines/data/" + name;
}
const std::string kMesh = data("v100-8gpu-hybridmesh-1nic.txt");

class Import : public testing::Test {
 protected:
  cli_test::Folder folder_;
};

TEST_F(Import, WritesAServerThatTheOtherVerbsTake) {
  const std::string path = folder_.path("node.json");
  const auto outcome = weft_cli({"import", "topo-m", kMesh, "-o", path});
  ASSERT_EQ(outcome.code, kOk) << outcome.err;
  EXPECT_THAT(outcome.out, AllOf(HasSubstr("16 pairs of GPUs joined by 24 NVLinks"),
                                 HasSubstr("written: " + path)));
  EXPECT_THAT(folder_.names(), testing::ElementsAre("node.json"));
  const auto topo = document(weft_cli({"topo", path, "--json"}));
  EXPECT_EQ(cli_test::number_at(topo, {"gpus"}), 8);
  EXPECT_EQ(topo.find("fabric")->text, "node");
  const auto copies = document(weft_cli({"p2p", path, "--json"}));
  EXPECT_EQ(copies.find("pairs")->items.size(), 56U);
  const std::string scenario = folder_.file(
      "run.json",
      R"({"fabric": {"use": "node.json"}, "workload": {"collective": "all_reduce", "size": "1 MiB"}})");
  EXPECT_EQ(weft_cli({"run", scenario}).code, kOk);
}

TEST_F(Import, JsonIsOneDocumentWithAllParts) {
  const Json json = document(weft_cli({"import", "topo-m", kMesh, "--json"}));
  EXPECT_EQ(json.find("kind")->text, "topo-m");
  for (const char* list :
       {"read", "ignored", "unknown", "warnings", "nccl_believes", "open_questions"}) {
    ASSERT_NE(json.find(list), nullptr) << list;
    EXPECT_TRUE(json.find(list)->is_array()) << list;
  }
  EXPECT_EQ(cli_test::number_at(json, {"facts", "nvlink", "edges"}), 16);
  EXPECT_THAT(json.find("unknown")->items,
              Contains(testing::Field(&Json::text, HasSubstr("v100-sxm2 is assumed"))));
}

TEST_F(Import, NothingIsWrittenWhileAQuestionIsOpen) {
  const std::string path = folder_.file("node.json", "as it was");
  const auto outcome =
      weft_cli({"import", "topo-m", data("t4-4gpu-lopsided-numa.txt"), "-o", path});
  EXPECT_EQ(outcome.code, kBadInput);
  EXPECT_EQ(outcome.out, "");
  EXPECT_THAT(outcome.err, AllOf(HasSubstr("nothing was written"), HasSubstr("add --gpu MODEL")));
  std::ifstream kept(path);
  EXPECT_EQ(std::string(std::istreambuf_iterator<char>(kept), {}), "as it was");
  EXPECT_EQ(
      weft_cli({"import", "topo-m", data("t4-4gpu-lopsided-numa.txt"), "-o", path, "--gpu", "t4"})
          .code,
      kOk);
}

TEST_F(Import, ARefusedFileNamesItsPlace) {
  const auto outcome = weft_cli({"import", "nccl-xml", data("graph-dump-not-a-topology.xml")});
  EXPECT_EQ(outcome.code, kBadInput);
  EXPECT_EQ(outcome.out, "");
  EXPECT_THAT(outcome.err, AllOf(HasSubstr("graph-dump-not-a-topology.xml:1:1: error: "),
                                 HasSubstr("channel graph")));
}

TEST_F(Import, WordsThatItDoesNotKnowAreRefusedWithTheNearest) {
  EXPECT_THAT(weft_cli({"import", "topom", kMesh}).err, HasSubstr("did you mean \"topo-m\"?"));
  EXPECT_THAT(weft_cli({"import", "topo-m", kMesh, "--gpu", "v100-sxm"}).err,
              HasSubstr("did you mean \"v100-sxm2\"?"));
  EXPECT_THAT(weft_cli({"import", "topo-m", kMesh, "--nvlink", "none"}).err,
              HasSubstr("--nvlink means nothing to \"topo-m\""));
  EXPECT_THAT(weft_cli({"import", "topo-m", folder_.path("absent.txt")}).err,
              HasSubstr("cannot read"));
}

TEST_F(Import, ANoteSaysWhatNcclTakesTheMachineFor) {
  const auto outcome = weft_cli({"import", "nccl-xml", data("h200-vm-flat-numa-minus-one.xml")});
  EXPECT_EQ(outcome.code, kOk);
  EXPECT_THAT(outcome.out, AllOf(HasSubstr("NCCL believes"), HasSubstr("line 2: numaid -1")));
}

TEST_F(Import, ImportersAreListedAndExplained) {
  const auto list = weft_cli({"list", "importers"});
  EXPECT_THAT(list.out, AllOf(HasSubstr("topo-m"), HasSubstr("nccl-xml"), HasSubstr("nccl-graph")));
  EXPECT_THAT(weft_cli({"explain", "nccl-xml"}).out, HasSubstr("src/graph/xml.cc"));
}

}  // namespace
}  // namespace weft
