// SPDX-License-Identifier: Apache-2.0
// Matrices as people post them, T01 to T11: what was in them and what a fabric of them does.
#include <algorithm>

#include "sim/fabric/analysis.hpp"
#include "tests/import_machines/import_machine_test.hpp"

namespace weft::test {
namespace {

using testing::Contains;
using testing::Each;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;
using Kind = ImportNote::Kind;

constexpr const char* kMesh = "v100-8gpu-hybridmesh-1nic.txt";
constexpr const char* kMeshRenumbered = "v100-8gpu-hybridmesh-other-numbering.txt";

std::vector<std::int64_t> links_per_gpu(const Reading& reading) {
  std::vector<std::int64_t> out;
  for (const Json& links : at(reading.facts(), "/nvlink/links_per_gpu").items)
    out.push_back(links.integer);
  return out;
}

// All GPUs send `size` to all others; GB/s that each GPU sends.
double all_to_all_gbs(const Fabric& fabric) {
  const Report report = run(fabric, R"("jobs": [{"pattern": "all_to_all", "size": "64 MiB"}])");
  const double peers = static_cast<double>(fabric.gpus().size()) - 1;
  return peers * (64_MiB).value() / report.time_s * 1e-9;
}

double seconds(const Fabric& fabric, const std::string& collective) {
  return run(fabric, R"("jobs": [{"collective": ")" + collective + R"(", "size": "1 GiB"}])")
      .time_s;
}

TEST(T01, SixteenEdgesOfTwentyFourLinksAndSixLinksAtEachGpu) {
  for (const char* name : {kMesh, kMeshRenumbered}) {
    const Reading reading = import_file(name);
    EXPECT_EQ(count_at(reading.facts(), "/nvlink/edges"), 16);
    EXPECT_EQ(count_at(reading.facts(), "/nvlink/links"), 24);
    EXPECT_EQ(text_at(reading.facts(), "/nvlink/wiring"), "mesh");
    EXPECT_THAT(links_per_gpu(reading), testing::AllOf(testing::SizeIs(8), Each(6)));
  }
}

TEST(T01, PairsAcrossSocketsHaveNoNvlink) {
  const Reading reading = import_file(kMesh);
  EXPECT_EQ(distance(reading.facts(), "GPU0", "GPU5"), "SYS");
  const Fabric fabric = fabric_of(reading);
  for (const LinkId id : fabric.out_links(node(fabric, "gpu0")))
    EXPECT_NE(fabric.link(id).to, node(fabric, "gpu5"));
}

TEST(T01, LinksAmongFiveGpusHoldThreeToSevenAndNoEdgeThatClosesTheRing) {
  const Reading reading = import_file(kMesh);
  EXPECT_EQ(distance(reading.facts(), "GPU3", "GPU7"), "NV1");
  for (const char* other : {"GPU0", "GPU1", "GPU2"})
    EXPECT_EQ(distance(reading.facts(), other, "GPU7"), "SYS");
}

TEST(T01, TheNicKeepsTheNameOfItsColumn) {
  const Reading reading = import_file(kMesh);
  EXPECT_THAT(column(at(reading.facts(), "/nics"), "name"), ElementsAre("mlx5_0"));
  for (const char* gpu : {"GPU0", "GPU1"})
    EXPECT_EQ(distance(reading.facts(), gpu, "mlx5_0"), "NODE");
  for (const char* gpu : {"GPU2", "GPU3"})
    EXPECT_EQ(distance(reading.facts(), gpu, "mlx5_0"), "PIX");
  for (const char* gpu : {"GPU4", "GPU5", "GPU6", "GPU7"})
    EXPECT_EQ(distance(reading.facts(), gpu, "mlx5_0"), "SYS");
}

TEST(T01, TheSameMachineUnderOtherNumbersAnswersTheSame) {
  const Fabric first = fabric_of(import_file(kMesh)),
               second = fabric_of(import_file(kMeshRenumbered));
  for (const char* collective :
       {"all_reduce", "all_gather", "reduce_scatter", "broadcast", "all_to_all"}) {
    const double expected = seconds(first, collective);
    EXPECT_NEAR(seconds(second, collective), expected, 0.01 * expected) << collective;
  }
}

TEST(T01, TheMeshIsThatOfTheCatalogue) {
  const Fabric imported = fabric_of(import_file(kMesh)), known = catalogue_fabric("dgx1-v100");
  for (const char* collective : {"all_reduce", "all_to_all"}) {
    const double expected = seconds(known, collective);
    EXPECT_NEAR(seconds(imported, collective), expected, 0.01 * expected) << collective;
  }
}

TEST(T02, SixteenGpusBehindSwitchesAreNoMesh) {
  const Reading reading = import_file("v100-16gpu-nvswitch-10nic.txt");
  EXPECT_EQ(text_at(reading.facts(), "/nvlink/wiring"), "switched");
  EXPECT_EQ(count_at(reading.facts(), "/nvlink/edges"), 0);
  EXPECT_THAT(links_per_gpu(reading), testing::AllOf(testing::SizeIs(16), Each(6)));
}

TEST(T02, AGpuInjectsSixLinksHoweverManyPeersItHas) {
  const Fabric fabric = fabric_of(import_file("v100-16gpu-nvswitch-10nic.txt"));
  const double sent = all_to_all_gbs(fabric);
  EXPECT_LE(sent, 150);
  EXPECT_GE(sent, 0.9 * 145.6);  // 16/17 of six links of 25.78 GB/s
  EXPECT_LE(copy_between(fabric, "gpu0", "gpu9").bandwidth_gbs, 150);
}

TEST(T02, EightNicsServeGpusAndTwoDoNot) {
  const Reading reading = import_file("v100-16gpu-nvswitch-10nic.txt");
  EXPECT_EQ(count_at(reading.facts(), "/counts/nics"), 10);
  EXPECT_THAT(texts(at(reading.facts(), "/nics_not_used")), ElementsAre("mlx5_4", "mlx5_5"));
  EXPECT_EQ(fabric_of(reading).nics().size(), 8U);
  for (std::size_t g = 0; g < 16; g += 2) {
    const std::string rail = "/rails/" + std::to_string(g) + "/nic";
    EXPECT_EQ(text_at(reading.facts(), rail),
              text_at(reading.facts(), "/rails/" + std::to_string(g + 1) + "/nic"));
  }
}

TEST(T03, EightNicsAreUsedAndTwoFarOnesAreNot) {
  const Reading reading = import_file("dgx-a100-10nic-8numa.txt");
  EXPECT_THAT(texts(at(reading.facts(), "/nics_not_used")), ElementsAre("NIC8", "NIC9"));
  EXPECT_THAT(notes(reading, Kind::read), Contains(HasSubstr("not used for GPU traffic")));
  for (const char* gpu : {"0", "1"})
    EXPECT_THAT(texts(at(reading.facts(), std::string("/rails/") + gpu + "/nearest")),
                ElementsAre("NIC0", "NIC1"));
  std::vector<std::string> rails = column(at(reading.facts(), "/rails"), "nic");
  EXPECT_THAT(rails, ElementsAre("NIC0", "NIC1", "NIC2", "NIC3", "NIC4", "NIC5", "NIC6", "NIC7"));
}

TEST(T03, NumaNodesAreThoseOfTheCapture) {
  const Reading reading = import_file("dgx-a100-10nic-8numa.txt");
  EXPECT_THAT(column(at(reading.facts(), "/gpus"), "numa"),
              ElementsAre("3", "3", "1", "1", "7", "7", "5", "5"));
}

TEST(T04, FourGpusHaveNoNicNearerThanTheOtherSockets) {
  const Reading reading = import_file("a100-8gpu-4numa-3nic.txt");
  for (int g = 0; g < 8; ++g) {
    const std::string rail = "/rails/" + std::to_string(g) + "/distance";
    EXPECT_EQ(text_at(reading.facts(), rail), g < 4 ? "PXB" : "SYS");
  }
  EXPECT_THAT(notes(reading, Kind::warning),
              Contains(HasSubstr("GPU4, GPU5, GPU6, GPU7: no NIC nearer than SYS")));
  EXPECT_THAT(notes(reading, Kind::warning), Contains(HasSubstr("shared unevenly")));
}

TEST(T04, TheWayToAnotherNodeCrossesTheCpuInterconnect) {
  const Fabric fabric = fabric_of(import_file("a100-8gpu-4numa-3nic.txt"), 2);
  const CopyAnswer far = copy_between(fabric, "server0/gpu4", "server1/gpu4");
  const CopyAnswer near = copy_between(fabric, "server0/gpu0", "server1/gpu0");
  // GPUs 4 and 5 are on the third NUMA node, which has no NIC.
  EXPECT_THAT(far.path, HasSubstr("server0/cpu2 server0/cpu"));
  EXPECT_THAT(near.path, Not(HasSubstr("cpu")));
}

TEST(T04, ABondIsOneDeviceWithTwoPorts) {
  const Reading reading = import_file("a100-8gpu-2numa-bonded-nic.txt");
  EXPECT_EQ(count_at(reading.facts(), "/counts/nics"), 3);
  EXPECT_EQ(text_at(reading.facts(), "/nics/2/device"), "mlx5_bond_0");
  EXPECT_EQ(count_at(reading.facts(), "/nics/2/ports"), 2);
  EXPECT_EQ(count_at(reading.facts(), "/nics/0/ports"), 1);
  const Fabric fabric = fabric_of(reading);
  EXPECT_EQ(fabric.types().front().nic_specs.at(2).ports, 2);
}

TEST(T05, RailsFollowDistancesNotNumbers) {
  const Reading reading = import_file("hgx-h100-10nic-tabs.txt");
  EXPECT_THAT(column(at(reading.facts(), "/rails"), "nic"),
              ElementsAre("NIC0", "NIC1", "NIC2", "NIC5", "NIC6", "NIC7", "NIC8", "NIC9"));
  const Fabric fabric = fabric_of(reading, 2);
  EXPECT_THAT(copy_between(fabric, "server0/gpu3", "server1/gpu3").path, HasSubstr("server0/nic5"));
}

TEST(T06, AllThreeOfTheNewestMachinesAreRead) {
  const Reading b300 = import_file("b300-8gpu-8nic-dualport-bonds.txt");
  EXPECT_THAT(column(at(b300.facts(), "/rails"), "nic"),
              ElementsAre("NIC0", "NIC1", "NIC2", "NIC3", "NIC4", "NIC5", "NIC6", "NIC7"));
  const Reading gb200 = import_file("gb200-4gpu-8nic.txt");
  EXPECT_THAT(links_per_gpu(gb200), ElementsAre(18, 18, 18, 18));
  EXPECT_EQ(text_at(gb200.facts(), "/gpus/3/numa"), "1,19-25,27-33");
  EXPECT_EQ(text_at(gb200.facts(), "/gpus/3/memory_numa"), "26");
  const Reading gh200 = import_file("gh200-1gpu-4nic.txt");
  EXPECT_EQ(count_at(gh200.facts(), "/counts/gpus"), 1);
  EXPECT_THAT(at(gh200.facts(), "/nvlink/pairs").items, IsEmpty());
}

TEST(T06, OnGraceSysIsTheWayOverC2c) {
  const Reading reading = import_file("gb200-4gpu-8nic.txt");
  EXPECT_THAT(notes(reading, Kind::warning), Contains(HasSubstr("the way leads over C2C")));
  const Fabric fabric = fabric_of(reading);
  bool found = false;
  for (const LinkId id : fabric.out_links(node(fabric, "gpu2"))) {
    const Link& link = fabric.link(id);
    if (link.link_class != LinkClass::c2c) continue;
    found = true;
    EXPECT_EQ(fabric.name(link.to), "cpu1");
    EXPECT_GT(link.raw.gbytes_per_s(), 200);
  }
  EXPECT_TRUE(found);
}

TEST(T07, OnePcieSwitchAndNoRootPortBetweenNeighbours) {
  const Reading reading = import_file("pcie-8gpu-node-pix-sys.txt", {{"gpu", "l40s"}});
  const Fabric fabric = fabric_of(reading);
  EXPECT_EQ(copy_between(fabric, "gpu1", "gpu2").path, "gpu1 plx0 gpu2");
  EXPECT_EQ(copy_between(fabric, "gpu0", "gpu4").path, "gpu0 cpu0 cpu1 gpu4");
}

TEST(T07, WithoutASpeedItAsksOrSaysWhatItAssumes) {
  const Reading asks = import_file("pcie-8gpu-node-pix-sys.txt");
  EXPECT_FALSE(asks.imported.server.is_object());
  EXPECT_THAT(asks.imported.open_questions, Contains(HasSubstr("--gpu")));
  const Reading assumes = import_file("pcie-8gpu-node-pix-sys.txt", {{"gpu", "l40s"}});
  EXPECT_THAT(notes(assumes, Kind::unknown), Contains(HasSubstr("pcie4-x16 is assumed")));
  const Reading told =
      import_file("pcie-8gpu-node-pix-sys.txt", {{"gpu", "l40s"}, {"pcie", "pcie4-x8"}});
  EXPECT_THAT(notes(told, Kind::unknown), Not(Contains(HasSubstr("PCIe links: "))));
  EXPECT_LT(copy_between(fabric_of(told), "gpu1", "gpu2").bandwidth_gbs,
            0.6 * copy_between(fabric_of(assumes), "gpu1", "gpu2").bandwidth_gbs);
}

TEST(T07, AllSysStillHasTwoSocketsAndANicWithGpu6) {
  const Reading reading = import_file("pcie-8gpu-all-sys-2nic-tabs.txt", {{"gpu", "l40s"}});
  EXPECT_EQ(count_at(reading.facts(), "/counts/sockets"), 2);
  EXPECT_EQ(text_at(reading.facts(), "/rails/6/distance"), "PHB");
  EXPECT_THAT(notes(reading, Kind::warning), Contains(HasSubstr("share a NUMA node")));
  EXPECT_THAT(copy_between(fabric_of(reading), "gpu3", "gpu4").path, HasSubstr("cpu0 cpu1"));
}

TEST(T07, BridgesAreCountedAsTheLabelsSay) {
  EXPECT_EQ(
      count_at(import_file("cloud-8gpu-phb-sys-no-nvlink.txt").facts(), "/counts/pcie_switches"),
      0);
  const Fabric fabric =
      fabric_of(import_file("pcie-8gpu-pxb-pix-2nic-legacy.txt", {{"gpu", "t4"}}));
  const AffinityMatrix matrix = affinity_matrix(fabric.types().front());
  EXPECT_EQ(matrix.cells[2][3], "PIX");
  EXPECT_EQ(matrix.cells[0][3], "PXB");
  EXPECT_EQ(matrix.cells[0][4], "SYS");
}

TEST(T08, APairIsFarFasterThanTwoCardsWithoutABridge) {
  for (const char* name : {"h100nvl-8gpu-bridge-pairs-2nic.txt", "ws-4gpu-nv4-pairs-1nic.txt",
                           "ws-3gpu-nv4-pair-plus-one.txt"}) {
    const Fabric fabric = fabric_of(import_file(name));
    const auto exchange = [&](const std::string& a, const std::string& b) {
      return run(fabric, R"("jobs": [{"flows": [{"src": ")" + a + R"(", "dst": ")" + b +
                             R"(", "size": "64 MiB"}, {"src": ")" + b + R"(", "dst": ")" + a +
                             R"(", "size": "64 MiB"}]}])")
          .time_s;
    };
    EXPECT_GT(exchange("gpu1", "gpu2"), 3 * exchange("gpu0", "gpu1")) << name;
  }
}

TEST(T08, FourLinksOfAGa102BridgeCarryWhatTheOwnerMeasured) {
  const Fabric fabric = fabric_of(import_file("ws-3gpu-nv4-pair-plus-one.txt"));
  EXPECT_DOUBLE_EQ(nvlink_raw_gbs(fabric, "gpu0"), 4 * 14.0625);
  const double pair = copy_between(fabric, "gpu0", "gpu1").bandwidth_gbs;
  EXPECT_LE(pair, 56.25);
  EXPECT_GE(pair, 47);
  EXPECT_NEAR(pair, 52.24, 0.05 * 52.24);  // measured with sendrecv
}

TEST(T09, ThreeOfFourLinksCarryThreeQuartersAndAreUnusual) {
  const std::string text = capture("ws-2gpu-bridge-nv3-partial.txt");
  std::string healthy = text;
  for (std::size_t at = healthy.find("NV3"); at != std::string::npos; at = healthy.find("NV3"))
    healthy[at + 2] = '4';
  const Reading partial = import_text("topo-m", text), whole = import_text("topo-m", healthy);
  EXPECT_DOUBLE_EQ(nvlink_raw_gbs(fabric_of(partial), "gpu0"),
                   0.75 * nvlink_raw_gbs(fabric_of(whole), "gpu0"));
  EXPECT_THAT(notes(partial, Kind::warning),
              Contains(HasSubstr("3 NVLinks, which is unusual: rtx-3090 has 4")));
  EXPECT_THAT(notes(whole, Kind::warning), IsEmpty());
}

TEST(T10, EscapeCodesChangeNothing) {
  const std::string text = capture("ansi-underlined-header-2gpu.txt");
  std::string plain = text;
  for (const std::string code : {"\x1b[4m", "\x1b[0m"}) {
    ASSERT_NE(plain.find(code), std::string::npos);
    plain.erase(plain.find(code), code.size());
  }
  const Reading escaped = import_text("topo-m", text), clean = import_text("topo-m", plain);
  ASSERT_TRUE(escaped.ok());
  EXPECT_EQ(to_text(escaped.facts()), to_text(clean.facts()));
  EXPECT_EQ(to_text(escaped.imported.server), to_text(clean.imported.server));
  EXPECT_EQ(count_at(escaped.facts(), "/counts/gpus"), 2);
}

TEST(T10, ColumnsOutOfStepAreReadByTheirOrder) {
  const Reading reading = import_file("container-2of8gpu-10nic-ragged.txt");
  EXPECT_EQ(distance(reading.facts(), "GPU0", "GPU1"), "NV18");
  EXPECT_THAT(column(at(reading.facts(), "/rails"), "nic"), ElementsAre("NIC5", "NIC6"));
  EXPECT_EQ(text_at(reading.facts(), "/gpus/1/cpus"), "48-95,144-191");
}

TEST(T10, AHeaderWithoutNicsTakesDistancesFromTheirRows) {
  const Reading reading = import_file("h800-8gpu-header-without-nic-columns.txt");
  EXPECT_EQ(count_at(reading.facts(), "/counts/nics"), 4);
  EXPECT_EQ(distance(reading.facts(), "GPU1", "NIC0"), "PIX");
  EXPECT_EQ(distance(reading.facts(), "GPU7", "NIC3"), "PIX");
  EXPECT_EQ(distance(reading.facts(), "NIC0", "NIC1"), "unknown");
}

TEST(T10, EachDamagedAffinityIsNamedAndNotUsed) {
  const Reading reading = import_file("h800-8gpu-header-without-nic-columns.txt");
  for (const int gpu : {0, 1, 2, 3, 7}) {
    EXPECT_EQ(at(reading.facts(), "/gpus/" + std::to_string(gpu) + "/cpus").kind, Json::Kind::null)
        << gpu;
    EXPECT_THAT(notes(reading, Kind::warning),
                Contains(HasSubstr("CPU affinity of GPU" + std::to_string(gpu) + " is ")));
  }
  EXPECT_EQ(text_at(reading.facts(), "/gpus/4/cpus"), "32-63,96-127");
  EXPECT_THAT(to_text(reading.facts()), Not(HasSubstr("\"0-31")));
}

TEST(T11, SixLinksToEachOfThreePeersAreAMesh) {
  const Reading reading = import_file("h100-4gpu-nv6-interleaved-cpus.txt");
  EXPECT_EQ(text_at(reading.facts(), "/nvlink/wiring"), "mesh");
  EXPECT_EQ(text_at(reading.facts(), "/gpus/0/cpus"), "6,14,22,30");
  const Fabric fabric = fabric_of(reading);
  EXPECT_DOUBLE_EQ(fabric.link(link(fabric, "gpu0:gpu1")).raw.gbytes_per_s(), 150);
  EXPECT_DOUBLE_EQ(nvlink_raw_gbs(fabric, "gpu0"), 450);
  const double pair = copy_between(fabric, "gpu0", "gpu1").bandwidth_gbs,
               all = all_to_all_gbs(fabric);
  EXPECT_LE(pair, 150);
  EXPECT_NEAR(all, 3 * pair, 0.02 * all);
}

TEST(T11, AnH800SendsTwoHundred) {
  for (const char* name : {"h800-8gpu-vm-11nic.txt", "h800-8gpu-header-without-nic-columns.txt"}) {
    const Fabric fabric = fabric_of(import_file(name));
    EXPECT_DOUBLE_EQ(nvlink_raw_gbs(fabric, "gpu5"), 200);
    EXPECT_LE(copy_between(fabric, "gpu0", "gpu5").bandwidth_gbs, 200);
    EXPECT_GE(copy_between(fabric, "gpu0", "gpu5").bandwidth_gbs, 160);
  }
}

TEST(T11, ALegendMayBeMissingAndSocketsUneven) {
  const Reading reading = import_file("t4-4gpu-lopsided-numa.txt", {{"gpu", "t4"}});
  EXPECT_THAT(notes(reading, Kind::warning), IsEmpty());
  EXPECT_EQ(count_at(reading.facts(), "/counts/sockets"), 2);
  const Fabric fabric = fabric_of(reading);
  EXPECT_THAT(copy_between(fabric, "gpu0", "gpu1").path, HasSubstr("cpu0 cpu1"));
  EXPECT_THAT(copy_between(fabric, "gpu1", "gpu3").path, Not(HasSubstr("cpu0")));
}

}  // namespace
}  // namespace weft::test
