// SPDX-License-Identifier: Apache-2.0
#include "tools/cli/nccl_channels.hpp"

#include <filesystem>
#include <fstream>
#include <sstream>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tools/cli/cli.hpp"

namespace weft {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

struct Answer {
  int code;
  std::string out, err;
};
Answer ask(const std::vector<std::string>& args) {
  std::ostringstream out, err;
  const int code = run_cli(args, out, err);
  return {code, out.str(), err.str()};
}

TEST(TopoNccl, PrintsChannelsCountsAndNotes) {
  const Answer answer = ask({"topo", "hgx-h100+ib-ndr", "--nccl", "2.22.3", "--set", "/servers=3"});
  EXPECT_EQ(answer.code, kOk) << answer.err;
  EXPECT_THAT(answer.out, AllOf(HasSubstr("NCCL 2.22.3, 24 GPUs on 3 nodes"),
                                HasSubstr("nic0 gpu0 gpu7 gpu6 gpu5 gpu4 gpu3 gpu2 gpu1 nic1"),
                                HasSubstr("16 channels, 8 heads"),
                                HasSubstr("an odd number, they close across rails")));
}

TEST(TopoNccl, VariablesAreCheckedByName) {
  const Answer wrong = ask({"topo", "hgx-h100", "--nccl", "--env", "NCL_CROSS_NIC=1"});
  EXPECT_EQ(wrong.code, kBadInput);
  EXPECT_EQ(wrong.out, "");
  EXPECT_THAT(wrong.err, HasSubstr("did you mean \"NCCL_CROSS_NIC\""));
  const Answer other = ask({"topo", "hgx-h100", "--nccl", "--env", "NCCL_CROSS_NICS=1"});
  EXPECT_EQ(other.code, kOk);
  EXPECT_THAT(other.err, AllOf(HasSubstr("it changes nothing here"),
                               HasSubstr("did you mean \"NCCL_CROSS_NIC\"")));
}

TEST(TopoNccl, JsonNamesTheGpusOfEachChannel) {
  const Answer answer = ask({"topo", "dgx1-v100", "--nccl", "2.18.3", "--gpus", "0-2,3", "--json"});
  ASSERT_EQ(answer.code, kOk) << answer.err;
  Diagnostics diagnostics;
  const Json json = parse_json(answer.out, "answer", diagnostics);
  const Json* nccl = json.find("nccl");
  ASSERT_NE(nccl, nullptr);
  EXPECT_EQ(nccl->find("ranks")->integer, 4);
  const Json* ring = nccl->find("graphs")->find("ring");
  EXPECT_EQ(ring->find("type_intra")->text, "NVL");
  std::vector<std::string> first;
  for (const Json& gpu : ring->find("channels")->items[0].find("gpus")->items)
    first.push_back(gpu.text);
  EXPECT_THAT(first, ElementsAre("gpu0", "gpu1", "gpu2", "gpu3"));
}

// The form of NCCL_GRAPH_DUMP_FILE: decimal devices before 2.21, hexadecimal since; NVLS channels name their head only.
TEST(TopoNccl, WritesTheGraphFile) {
  const std::string path =
      (std::filesystem::path(::testing::TempDir()) / "weft_graph.xml").string();
  const auto file = [&](const std::string& version) {
    const Answer answer =
        ask({"topo", "dgx1-v100+ib-edr", "--nccl", version, "--nccl-graph", path});
    EXPECT_EQ(answer.code, kOk) << answer.err;
    std::ifstream in(path);
    std::stringstream text;
    text << in.rdbuf();
    return text.str();
  };
  EXPECT_THAT(file("2.18.3"),
              AllOf(HasSubstr("<graphs version=\"1\">"),
                    HasSubstr("<graph id=\"0\" pattern=\"4\" crossnic=\"0\" nchannels=\"4\" "
                              "speedintra=\"12\" speedinter=\"12\" latencyinter=\"0\" "
                              "typeintra=\"NVL\" typeinter=\"PIX\" samechannels=\"0\">"),
                    HasSubstr("<net dev=\"3\"/>"), HasSubstr("<gpu dev=\"7\" rank=\"7\"/>")));
  EXPECT_THAT(file("2.27.7"), HasSubstr("<gpu dev=\"0x7\" rank=\"7\"/>"));
  std::filesystem::remove(path);
}

TEST(TopoNccl, SaysWhatIsWrong) {
  const struct {
    std::vector<std::string> args;
    const char* said;
  } cases[] = {
      {{"topo", "dgx2", "--nccl", "1.0"}, "\"1.0\" is not a release that is modelled"},
      {{"topo", "dgx2", "--nccl", "--gpus", "5-99"}, "\"5-99\" names no GPUs of the 16 there are"},
      {{"topo", "dgx2", "--nccl", "--gpus", "3-1"}, "\"3-1\" names no GPUs"},
      {{"topo", "dgx2", "--nccl", "--gpus", "1,1"}, "gpu1 is given twice"},
      {{"topo", "dgx2", "--nccl", "--env", "NCCL_CROSS_NIC"}, "is not NAME=VALUE"},
      {{"topo", "dgx2", "--nccl", "--env", "NCCL_CROSS_NIC=9"},
       "\"9\" is not a number from 0 to 2"},
      {{"topo", "dgx2", "--nccl", "--env", "NCCL_P2P_LEVEL=FAR"}, "\"FAR\" is not a path class"},
      {{"topo", "mi300x", "--nccl"}, "NCCL drives NVIDIA GPUs only"},
      {{"topo", "gb200-nvl72", "--nccl", "2.18.3"}, "each host of a rack is a node of its own"},
      {{"topo", "dgx2", "--env", "A=1"}, "--env requires --nccl"},
  };
  for (const auto& c : cases) {
    const Answer answer = ask(c.args);
    EXPECT_EQ(answer.code, kBadInput) << c.said;
    EXPECT_EQ(answer.out, "");
    EXPECT_THAT(answer.err, HasSubstr(c.said));
  }
}

}  // namespace
}  // namespace weft
