// SPDX-License-Identifier: Apache-2.0
// Topology files of NCCL as clouds ship them and people post them, T12.
#include "sim/core/text.hpp"
#include "tests/import_machines/import_machine_test.hpp"

namespace weft::test {
namespace {

using testing::AllOf;
using testing::Contains;
using testing::Each;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;
using testing::SizeIs;
using Kind = ImportNote::Kind;

const Json& pcie_of(const Reading& reading, const std::string& device) {
  for (const Json& link : at(reading.facts(), "/pcie_links").items) {
    if (link.find("device")->text == device) return link;
  }
  throw std::out_of_range(device);
}

TEST(T12, DevicesAreToldByTheirClassWhenLeavesAreMissing) {
  const Reading reading = import_file("cloud-8xa100-8ib-static-no-leaves.xml");
  EXPECT_EQ(count_at(reading.facts(), "/counts/gpus"), 8);
  EXPECT_EQ(count_at(reading.facts(), "/counts/nics"), 8);
  EXPECT_EQ(count_at(reading.facts(), "/counts/pcie_switches"), 4);
  EXPECT_EQ(text_at(reading.facts(), "/nvlink/wiring"), "unknown");
  EXPECT_EQ(at(reading.facts(), "/gpus/0/nvlinks").kind, Json::Kind::null);
  EXPECT_EQ(distance(reading.facts(), "0003:00:00.0", "0103:00:00.0"), "PIX");
  EXPECT_THAT(notes(reading, Kind::belief), Contains(HasSubstr("adds them when it runs")));
}

TEST(T12, WhatTheStaticFileLeavesOutIsAskedFor) {
  const std::string name = "cloud-8xa100-8ib-static-no-leaves.xml";
  EXPECT_THAT(import_file(name).imported.open_questions, ElementsAre(HasSubstr("--gpu")));
  EXPECT_THAT(import_file(name, {{"gpu", "a100-sxm4-40gb"}}).imported.open_questions,
              ElementsAre(HasSubstr("--nvlink")));
  const Reading told = import_file(name, {{"gpu", "a100-sxm4-40gb"}, {"nvlink", "switched"}});
  EXPECT_DOUBLE_EQ(nvlink_raw_gbs(fabric_of(told), "gpu0"), 300);
  const Reading bare = import_file(name, {{"gpu", "a100-sxm4-40gb"}, {"nvlink", "none"}});
  EXPECT_DOUBLE_EQ(nvlink_raw_gbs(fabric_of(bare), "gpu0"), 0);
}

TEST(T12, CommentsAreSkippedAndPcieIsGenerationThree) {
  const Reading reading = import_file("cloud-8xa100-4nic-static-with-comments.xml");
  EXPECT_EQ(count_at(reading.facts(), "/counts/gpus"), 8);
  EXPECT_EQ(count_at(reading.facts(), "/counts/nics"), 4);
  EXPECT_EQ(pcie_of(reading, "0000:10:1c.0").find("gts")->number, 8);
  EXPECT_EQ(pcie_of(reading, "0000:10:1c.0").find("width")->integer, 16);
  EXPECT_NEAR(pcie_of(reading, "0000:10:1b.0").find("gbs")->number, 15.754, 0.001);
  EXPECT_THAT(notes(reading, Kind::ignored), Contains(HasSubstr("5 comments")));
}

TEST(T12, TwoPairsOfTwelveLinksAndAQuestionAboutPcie) {
  const Reading reading = import_file("cloud-4xa100pcie-pairs-empty-linkspeed.xml");
  EXPECT_EQ(text_at(reading.facts(), "/nvlink/wiring"), "pairs");
  EXPECT_EQ(count_at(reading.facts(), "/nvlink/edges"), 2);
  for (const Json& pair : at(reading.facts(), "/nvlink/pairs").items)
    EXPECT_EQ(pair.find("links")->integer, 12);
  EXPECT_EQ(pcie_of(reading, "GPU0").find("gts")->kind, Json::Kind::null);
  EXPECT_EQ(pcie_of(reading, "GPU0").find("gbs")->kind, Json::Kind::null);
  EXPECT_THAT(notes(reading, Kind::unknown),
              Contains(HasSubstr("how fast is PCIe at GPU0, GPU1, GPU2, GPU3?")));
  EXPECT_THAT(notes(reading, Kind::belief), Contains(HasSubstr("link_speed \"\" of 4 devices")));
  const Fabric fabric = fabric_of(reading);
  EXPECT_DOUBLE_EQ(nvlink_raw_gbs(fabric, "gpu2"), 300);
  const double way = copy_between(fabric, "gpu0", "gpu3").bandwidth_gbs;
  EXPECT_GT(way, 1);
  EXPECT_LT(way, 64);
}

TEST(T12, AGraphDumpIsRefusedAsAChannelGraph) {
  const Reading reading = import_text("nccl-xml", capture("graph-dump-not-a-topology.xml"));
  EXPECT_FALSE(reading.ok());
  EXPECT_THAT(reading.diagnostics.text(),
              AllOf(HasSubstr("capture:1:1"), HasSubstr("channel graph, not a machine")));
}

TEST(T12, AGraphDumpIsReadAsWhatItIs) {
  const Reading reading = import_text("nccl-graph", capture("graph-dump-not-a-topology.xml"));
  ASSERT_TRUE(reading.ok()) << reading.diagnostics.text();
  EXPECT_THAT(column(at(reading.facts(), "/graphs"), "algorithm"),
              ElementsAre("ring", "tree", "collnet chain"));
  EXPECT_THAT(at(reading.facts(), "/graphs/1/channels").items, SizeIs(4));
  EXPECT_THAT(texts(at(reading.facts(), "/graphs/0/channels/1")),
              ElementsAre("gpu0", "gpu3", "gpu2", "gpu1"));
  EXPECT_FALSE(reading.imported.server.is_object());
  EXPECT_FALSE(import_text("nccl-graph", capture("gb10-soc-c2c-no-gdr.xml")).ok());
}

TEST(T12, LinksToAbsentGpusAreCountedAsHidden) {
  const Reading reading = import_file("v100-hybridmesh-4of8-visible.xml");
  EXPECT_EQ(count_at(reading.facts(), "/nvlink/hidden_links"), 6);
  EXPECT_THAT(column(at(reading.facts(), "/nvlink/hidden"), "target"),
              ElementsAre("0000:85:00.0", "0000:86:00.0", "0000:89:00.0", "0000:8a:00.0"));
  EXPECT_EQ(count_at(reading.facts(), "/nvlink/edges"), 6);
  EXPECT_EQ(count_at(reading.facts(), "/nvlink/links"), 9);
  for (const Json& links : at(reading.facts(), "/nvlink/links_per_gpu").items)
    EXPECT_EQ(links.integer, 6);
  const Fabric fabric = fabric_of(reading);
  EXPECT_EQ(fabric.gpus().size(), 4U);
  EXPECT_DOUBLE_EQ(nvlink_raw_gbs(fabric, "gpu0"), 4 * 25.78125);
}

TEST(T12, BareMetalShowsBridgesSwitchesAndFullSpeed) {
  const Reading reading = import_file("h200-baremetal-one-numa-node.xml");
  EXPECT_EQ(count_at(reading.facts(), "/counts/pcie_switches"), 3);
  EXPECT_EQ(distance(reading.facts(), "GPU1", "mlx5_1"), "PIX");
  EXPECT_EQ(distance(reading.facts(), "GPU1", "mlx5_2"), "PHB");
  EXPECT_EQ(pcie_of(reading, "GPU0").find("gts")->number, 32);
  EXPECT_THAT(notes(reading, Kind::warning), IsEmpty());
  const Fabric fabric = fabric_of(reading);
  EXPECT_DOUBLE_EQ(nvlink_raw_gbs(fabric, "gpu2"), 450);
  EXPECT_EQ(fabric.types().front().gpu_specs.front().name, "h200-sxm5");
  // Four switches with 5, 5, 4 and 4 links, by their addresses.
  EXPECT_EQ(fabric.link(link(fabric, "gpu0:nvswitch0")).count, 4);
  EXPECT_EQ(fabric.link(link(fabric, "gpu0:nvswitch1")).count, 5);
}

TEST(T12, AVirtualMachineHasAFlatTreeAndASlowerLink) {
  const Reading reading = import_file("h200-vm-flat-numa-minus-one.xml");
  EXPECT_EQ(count_at(reading.facts(), "/counts/sockets"), 1);
  EXPECT_EQ(count_at(reading.facts(), "/counts/pcie_switches"), 0);
  EXPECT_EQ(distance(reading.facts(), "GPU0", "mlx5_0"), "unknown");
  EXPECT_THAT(column(at(reading.facts(), "/rails"), "distance"), Each("unknown"));
  EXPECT_EQ(pcie_of(reading, "GPU0").find("gts")->number, 16);
  EXPECT_THAT(notes(reading, Kind::warning),
              Contains(HasSubstr("16 GT/s where h200-sxm5 has PCIe 5")));
  EXPECT_THAT(notes(reading, Kind::unknown), Contains(HasSubstr("which NIC is near which GPU")));
  EXPECT_THAT(notes(reading, Kind::belief), Contains(HasSubstr("numaid -1")));
  EXPECT_THAT(notes(reading, Kind::belief), Contains(HasSubstr("every NIC is PHB from every GPU")));
  EXPECT_EQ(fabric_of(reading).nics().size(), 8U);
}

TEST(T12, AnSocWithC2cHasNoDirectPathAndFourLanes) {
  const Reading reading = import_file("gb10-soc-c2c-no-gdr.xml");
  EXPECT_NEAR(pcie_of(reading, "roce0").find("gbs")->number, 15.75, 0.01);
  EXPECT_DOUBLE_EQ(at(reading.facts(), "/gpus/0/c2c/gbs").number, 43.125 * 8);
  EXPECT_EQ(count_at(reading.facts(), "/gpus/0/c2c/links"), 8);
  EXPECT_THAT(notes(reading, Kind::read), Contains(HasSubstr("no GPU allows GPUDirect RDMA")));
  EXPECT_THAT(notes(reading, Kind::warning),
              Contains(HasSubstr("slower than the ports of roce0 (15.75 GB/s for 200 Gb/s)")));
  EXPECT_THAT(reading.imported.open_questions, ElementsAre(HasSubstr("--gpu")));
  const Reading told = import_file("gb10-soc-c2c-no-gdr.xml", {{"gpu", "rtx-5090"}});
  EXPECT_EQ(text_at(told.imported.server, "/gpudirect_rdma"), "none");
  const CopyAnswer way = copy_between(fabric_of(told, 2), "server0/gpu0", "server1/gpu0");
  EXPECT_THAT(way.path, HasSubstr("dram0"));
  EXPECT_LE(way.bandwidth_gbs, 15.76);
}

TEST(T12, TwoHostsAreOneNvlinkDomain) {
  const Reading reading = import_file("gb300-two-trays-healthy.xml");
  EXPECT_EQ(count_at(reading.facts(), "/counts/hosts"), 2);
  ASSERT_THAT(at(reading.facts(), "/nvlink/domains").items, SizeIs(1));
  EXPECT_THAT(at(reading.facts(), "/nvlink/domains/0/gpus").items, SizeIs(8));
  const Fabric fabric = fabric_of(reading);
  const CopyAnswer way = copy_between(fabric, "gpu0", "gpu7");
  EXPECT_THAT(way.path, AllOf(HasSubstr("nvswitch"), Not(HasSubstr("cpu"))));
  EXPECT_DOUBLE_EQ(nvlink_raw_gbs(fabric, "gpu7"), 900);
}

// ---- what NCCL takes a speed for

TEST(NcclXml, SpeedsAreComparedByPrefixWithTwoSpellings) {
  const std::string file = capture("h200-baremetal-one-numa-node.xml");
  const auto with_speed = [&](const std::string& speed) {
    std::string text = file;
    const std::string known = "32.0 GT/s PCIe";
    for (std::size_t at = text.find(known); at != std::string::npos; at = text.find(known, at + 1))
      text.replace(at, known.size(), speed);
    return import_text("nccl-xml", text);
  };
  const Reading newer = with_speed("32.0 GT/s PCIe"), older = with_speed("32 GT/s"),
                neither = with_speed("32.0 GT/s");
  for (const Reading* reading : {&newer, &older}) {
    EXPECT_THAT(notes(*reading, Kind::belief), Not(Contains(HasSubstr("link_speed"))));
  }
  EXPECT_THAT(notes(neither, Kind::belief),
              Contains(HasSubstr("\"32.0 GT/s\" of 9 devices is none of its spellings: taken for "
                                 "8 GT/s instead of 32")));
  EXPECT_EQ(pcie_of(neither, "GPU0").find("gts")->number, 32);
  EXPECT_EQ(to_text(neither.imported.server), to_text(newer.imported.server));
}

TEST(NcclXml, ASpeedOfNoGenerationIsUnknown) {
  const Reading reading =
      import_text("nccl-xml", R"(<system version="1"><cpu numaid="0" affinity="ff" arch="x86_64">
    <pci busid="0000:01:00.0" class="0x030200" vendor="0x10de" device="0x2335" link_speed="Unknown" link_width="x">
      <gpu dev="0" sm="90" rank="0" gdr="1"/></pci></cpu></system>)");
  ASSERT_TRUE(reading.ok()) << reading.diagnostics.text();
  EXPECT_EQ(pcie_of(reading, "GPU0").find("gbs")->kind, Json::Kind::null);
  EXPECT_THAT(notes(reading, Kind::warning), Contains(HasSubstr("counts as unknown")));
}

TEST(NcclXml, BothEndsOfALinkAreCountedOnceAndMustAgree) {
  const auto pair = [](int there, int back) {
    return import_text("nccl-xml", R"(<system version="1"><cpu numaid="0">
      <pci busid="0000:01:00.0" class="0x030200"><gpu dev="0" sm="80"><nvlink target="0000:02:00.0" count=")" +
                                       std::to_string(there) + R"(" tclass="0x030200"/></gpu></pci>
      <pci busid="0000:02:00.0" class="0x030200"><gpu dev="1" sm="80"><nvlink target="0000:01:00.0" count=")" +
                                       std::to_string(back) +
                                       R"(" tclass="0x030200"/></gpu></pci></cpu></system>)");
  };
  EXPECT_EQ(count_at(pair(4, 4).facts(), "/nvlink/links"), 4);
  EXPECT_THAT(notes(pair(4, 4), Kind::warning), Not(Contains(HasSubstr("counts 4 NVLinks"))));
  EXPECT_EQ(count_at(pair(4, 3).facts(), "/nvlink/links"), 3);
  EXPECT_THAT(notes(pair(4, 3), Kind::warning),
              Contains(HasSubstr("counts 4 NVLinks to GPU1, which counts 3 back")));
}

TEST(NcclXml, ProblemsAreNamedByLineAndAllAtOnce) {
  const Reading reading = import_text("nccl-xml", R"(<system version="1"><cpu numaid="0">
  <pci busid="0000:01:00.0" class="0x030200"><gpu dev="0"><nvlink target="x" count="many"/></gpu></pci>
  <pci busid="0000:01:00.0" class="0x030200"/>
</cpu></system>)");
  EXPECT_THAT(
      reading.diagnostics.text(),
      AllOf(HasSubstr("capture:2:59: error: count=\"many\""),
            HasSubstr("capture:3:3: error: busid \"0000:01:00.0\" stands here a second time")));
}

TEST(NcclXml, ACutFileIsRefusedWhereverItEnds) {
  const std::string text = capture("gb10-soc-c2c-no-gdr.xml");
  const std::size_t whole = text.rfind("</system>") + std::string("</system>").size();
  for (std::size_t length = 0; length < whole; ++length) {
    const Reading reading = import_text("nccl-xml", text.substr(0, length));
    EXPECT_FALSE(reading.ok()) << length;
    EXPECT_FALSE(reading.diagnostics.text().empty());
  }
  EXPECT_TRUE(import_text("nccl-xml", text.substr(0, whole)).ok());
}

}  // namespace
}  // namespace weft::test
