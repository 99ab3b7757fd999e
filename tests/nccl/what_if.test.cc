// SPDX-License-Identifier: Apache-2.0
// Questions people asked about machines of several nodes, by the thread they asked them in, against what the model answers.
#include <map>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "models/nccl/predict.hpp"
#include "tests/support/tiny.hpp"

namespace weft {
namespace {

using enum CollectiveKind;
constexpr NcclVersion kRelease{2, 27, 7};
constexpr NcclVersion kNewest{2, 30, 7};

Fabric catalogue(const std::string& name, int nodes, const std::string& more = {}) {
  return test::catalogue_fabric(
      fmt::format(R"({{"use": "{}", "set": {{"/servers": {}{}}}}})", name, nodes, more));
}

// The first `per_node` GPUs of every server, in rank order.
std::vector<NodeId> first_gpus(const Fabric& fabric, std::size_t per_node) {
  std::vector<NodeId> out;
  std::map<ServerId, std::size_t> taken;
  for (const NodeId gpu : fabric.gpus())
    if (taken[fabric.node(gpu).server]++ < per_node) out.push_back(gpu);
  return out;
}

NcclRow predict(const Fabric& fabric, CollectiveKind kind, Bytes bytes,
                const std::string& algorithm = {}, std::size_t per_node = 8,
                NcclVersion version = kRelease) {
  NcclSetup setup;
  setup.version = version;
  setup.harness = NcclHarness::process_per_gpu;
  setup.algorithm = algorithm;
  const Bytes sizes[] = {bytes};
  return predict_nccl(fabric, first_gpus(fabric, per_node), kind, sizes, setup).front();
}

// nccl#2409: 2 x 8 H100, 8 x 400G RoCE, NCCL 2.31. Healthy 456 GB/s, one pair 48.4.
TEST(P01, HealthyPairOfNodes) {
  const Fabric fabric = catalogue("hgx-h100+roce-400g", 2);
  EXPECT_NEAR(predict(fabric, all_reduce, 1_GiB, {}, 8, kNewest).busbw_gbs / 456, 1, 0.15);
  EXPECT_NEAR(predict(fabric, send_recv, 1_GiB, {}, 8, kNewest).busbw_gbs / 48.4, 1, 0.1);
}

// 128 KiB per 10 us are 13.1 GB/s of every NIC, as measured: 216.5 GB/s along NVLS trees, 112 along rings.
TEST(P01, AChunkThatCostsTenMicrosecondsLimitsEveryConnection) {
  const Fabric fabric =
      catalogue("hgx-h100+roce-400g", 2, R"(, "/server/nodes/5/model/proxy/chunk_time": "10 us")");
  EXPECT_NEAR(predict(fabric, send_recv, 1_GiB, {}, 8, kNewest).busbw_gbs, 13, 2);
  EXPECT_NEAR(predict(fabric, all_reduce, 1_GiB, {}, 8, kNewest).busbw_gbs / 216.5, 1, 0.15);
  EXPECT_NEAR(predict(fabric, all_reduce, 1_GiB, "ring", 8, kNewest).busbw_gbs / 112, 1, 0.1);
  // Rails add up, so a rail at line rate is no proof.
  const double four = predict(fabric, send_recv, 1_GiB, {}, 4).busbw_gbs;
  EXPECT_NEAR(four / predict(fabric, send_recv, 1_GiB).busbw_gbs, 1, 0.1);
}

// nccl-tests#196: on two nodes trees send the data once each way, so the bus bandwidth exceeds the NICs; not on more.
TEST(P02, TwoNodesBeatTheirNics) {
  const Fabric two = catalogue("hgx-h100+roce-400g", 2), four = catalogue("hgx-h100+roce-400g", 4);
  EXPECT_LE(predict(two, all_reduce, 1_GiB, "ring").busbw_gbs, 400);
  const double tree = predict(two, all_reduce, 1_GiB, "nvls_tree").busbw_gbs;
  EXPECT_GT(tree, 400);
  EXPECT_LE(tree, 750);
  for (const char* algorithm : {"ring", "tree", "nvls_tree"})
    EXPECT_LE(predict(four, all_reduce, 1_GiB, algorithm).busbw_gbs, 420) << algorithm;
  // Plain trees show it where NVLink leaves room: 8 x 200G beside 600 GB/s NVLink.
  const Fabric a100 = catalogue("dgx-a100+ib-hdr", 2);
  EXPECT_LE(predict(a100, all_reduce, 1_GiB, "ring").busbw_gbs, 200);
  EXPECT_GT(predict(a100, all_reduce, 1_GiB, "tree").busbw_gbs, 200);
  EXPECT_LE(predict(catalogue("dgx-a100+ib-hdr", 4), all_reduce, 1_GiB, "tree").busbw_gbs, 210);
}

// nccl#1368: 5 x 8 H100 with four 400G RoCE ports each. Rings 190 GB/s, trees 150, which win at small sizes, the more so the
// more nodes.
Fabric four_rails(int nodes) {
  return test::catalogue_fabric(fmt::format(
      R"({{"weft": {{"schema": 1}}, "kind": "fabric", "name": "test", "summary": "for a test", "servers": {},
          "server": {{"use": "hgx-h100", "set": {{
            "/nodes/5": {{"id": "nic[0-3]", "kind": "nic", "model": "cx7-roce-400g"}},
            "/links/1": {{"a": "plx[0-7]", "b": "nic[0-3]", "pair": "block", "link": "pcie5-x16"}}}}}},
          "network": {{"generator": "single-switch", "switch": "tomahawk5-128x400g"}},
          "sources": {{"": "assumed: a test"}}}})",
      nodes));
}

TEST(P03, RingsWinAtLargeSizesAndTreesAtSmallOnes) {
  const Fabric fabric = four_rails(5);
  const double ring = predict(fabric, all_reduce, 1_GiB, "ring").busbw_gbs;
  const double tree = predict(fabric, all_reduce, 1_GiB, "tree").busbw_gbs;
  EXPECT_NEAR(ring / 190, 1, 0.1);
  EXPECT_NEAR(tree / 150, 1, 0.1);
  EXPECT_LT(tree, ring);
}

TEST(P03, TheSizeFromWhichRingsWinGrowsWithTheNodes) {
  const auto crossover = [](int nodes) {
    const Fabric fabric = four_rails(nodes);
    for (Bytes bytes = 64_KiB; bytes <= 4_GiB; bytes = bytes * 2) {
      if (predict(fabric, all_reduce, bytes, "ring").time <
          predict(fabric, all_reduce, bytes, "tree").time)
        return bytes;
    }
    return 8_GiB;
  };
  const Bytes five = crossover(5), twenty = crossover(20);
  EXPECT_GT(five, 64_KiB);
  EXPECT_GT(twenty, five);
  EXPECT_LE(twenty, 4_GiB);
}

// nccl#1357: one GPU per node gains nothing from more NICs; four GPUs at NICs of their own do.
TEST(P04, OneGpuUsesOneNicsWorth) {
  const Fabric fabric = catalogue("hgx-h100+ib-ndr", 2);
  const double one = predict(fabric, all_reduce, 1_GiB, {}, 1).busbw_gbs;
  EXPECT_NEAR(one, 50, 7.5);
  EXPECT_GE(predict(fabric, all_reduce, 1_GiB, {}, 4).busbw_gbs, 3 * one);
  // The port and, right behind it, the GPU's own PCIe link: NICs beside it would not help.
  EXPECT_EQ(predict(fabric, all_reduce, 1_GiB, {}, 1).bottleneck,
            "server0/nic0:rail0/leaf0, then server0/gpu0:server0/plx0");
}

// nccl#1856: 40 GB/s over 2 nodes, 20 over 3, 40 over 4. Rings that come in by one NIC and leave by the other close over even
// numbers of nodes only. Where the rails meet on one switch that costs nothing here; where a thin trunk joins them it does.
Fabric two_rails(int nodes, bool one_switch, int gpus = 2) {
  std::string cables;
  for (int n = 0; n < nodes; ++n) {
    for (int rail = 0; rail < 2; ++rail)
      cables += fmt::format(R"({{"a": "server{}/nic{}", "b": "s{}"}}, )", n, rail, rail);
  }
  const std::string network =
      one_switch ? R"({"generator": "single-switch", "switch": "qm9700"})"
                 : fmt::format(R"({{"generator": "explicit", "switch": "qm9700", "link": "ib-edr",
                                    "switches": ["s0", "s1"], "cables": [{}{{"a": "s0", "b": "s1"}}]}})",
                               cables);
  return test::catalogue_fabric(fmt::format(
      R"({{"weft": {{"schema": 1}}, "kind": "fabric", "name": "test", "summary": "for a test", "servers": {0},
          "server": {{"weft": {{"schema": 1}}, "kind": "server", "name": "box", "summary": "for a test",
            "nodes": [{{"id": "gpu[0-{2}]", "kind": "gpu", "model": "h100-pcie"}}, {{"id": "cpu[0-1]", "kind": "cpu"}},
                      {{"id": "dram[0-1]", "kind": "dram"}}, {{"id": "plx[0-1]", "kind": "pcie_switch"}},
                      {{"id": "nic[0-1]", "kind": "nic", "model": "cx7-ndr"}}],
            "links": [{{"a": "gpu[0-{2}]", "b": "plx[0-1]", "pair": "block", "link": "pcie5-x16"}},
                      {{"a": "nic[0-1]", "b": "plx[0-1]", "pair": "each", "link": "pcie5-x16"}},
                      {{"a": "plx[0-1]", "b": "cpu[0-1]", "pair": "each", "link": "pcie5-x16"}},
                      {{"a": "dram[0-1]", "b": "cpu[0-1]", "pair": "each", "link": "dram-ddr5-4800x8"}},
                      {{"a": "cpu0", "b": "cpu1", "link": "upi-16"}}],
            "peer_access": {{"nvlink": false, "pcie": "all"}}, "gpudirect_rdma": "switch",
            "staging": {{"rate": "37 GB/s", "latency": "10 us"}}, "sources": {{"": "assumed: a test"}}}},
          "network": {1}, "sources": {{"": "assumed: a test"}}}})",
      nodes, network, gpus - 1));
}

double all_gather_busbw(const Fabric& fabric, const char* cross_nic) {
  NcclSetup setup;
  setup.version = {2, 27, 3};
  setup.environment.variables["NCCL_CROSS_NIC"] = cross_nic;
  const Bytes sizes[] = {1_GiB};
  return predict_nccl(fabric, fabric.gpus(), all_gather, sizes, setup).front().busbw_gbs;
}

TEST(P05, OddNumbersOfNodesCrossBetweenRails) {
  const auto busbw = [](int nodes, bool one_switch, const char* cross_nic) {
    return all_gather_busbw(two_rails(nodes, one_switch), cross_nic);
  };
  const double two = busbw(2, false, "2");
  EXPECT_GT(busbw(3, false, "2") / two, 0.4);
  EXPECT_LT(busbw(3, false, "2") / two, 0.65);
  EXPECT_NEAR(busbw(4, false, "2") / two, 1, 0.05);
  EXPECT_GT(busbw(3, false, "0"), 1.5 * busbw(3, false, "2"));  // each ring on one rail
  EXPECT_NEAR(busbw(3, true, "2") / busbw(2, true, "2"), 1, 0.05);
  EXPECT_NEAR(busbw(3, true, "1") / busbw(2, true, "1"), 1, 0.05);
}

// The eight GPUs of the report: what two nodes reach is predicted (2, the default, or 0), and three on one switch are no slower.
TEST(P05, OnOneSwitchParityCostsNothing) {
  for (const char* cross_nic : {"0", "1", "2"}) {
    const double two = all_gather_busbw(two_rails(2, true, 8), cross_nic);
    if (*cross_nic != '1') {
      EXPECT_NEAR(two / 40, 1, 0.25) << cross_nic;
    }
    for (const int nodes : {3, 4})
      EXPECT_NEAR(all_gather_busbw(two_rails(nodes, true, 8), cross_nic) / two, 1, 0.05)
          << cross_nic << " " << nodes;
  }
}

// nccl#1086: without peer access a pair below one PCIe switch shares its way to host memory; access control that redirects
// peer-to-peer traffic to the root complex does the same.
double both_ways(const Fabric& fabric, const char* dst, bool peers) {
  const Report report = test::run(
      fabric, fmt::format(R"("workload": {{"p2p": {{"src": "gpu0", "dst": "{}", "size": "256 MiB",
                                "bidirectional": true, "peer_access": {}}}}})",
                          dst, peers));
  return 2 * 268.435456e-3 / report.time_s;
}
constexpr const char* kNear = "gpu1";  // below the switch of gpu0
constexpr const char* kFar = "gpu7";   // of the other socket

TEST(P06, PairsBelowOneSwitchFallBehindWithoutPeerAccess) {
  const Fabric fabric = test::catalogue_fabric("pcie-a100x8");
  EXPECT_LT(both_ways(fabric, kNear, false), 0.8 * both_ways(fabric, kFar, false));
  EXPECT_GE(both_ways(fabric, kNear, true), 0.99 * both_ways(fabric, kFar, true));
  EXPECT_GT(both_ways(fabric, kNear, true), 2 * both_ways(fabric, kNear, false));
}

TEST(P06, PairsBelowOneSwitchFallBehindWithAccessControl) {
  const auto box = [](bool acs) {
    return test::catalogue_fabric(
        fmt::format(R"({{"use": "pcie-a100x8", "set": {{"/acs": {}}}}})", acs));
  };
  const Fabric on = box(true), off = box(false);
  EXPECT_LT(both_ways(on, kNear, true), 0.8 * both_ways(on, kFar, true));
  EXPECT_NEAR(both_ways(on, kNear, true) / both_ways(on, kNear, false), 1, 0.1);
  EXPECT_GT(both_ways(off, kNear, true), 2 * both_ways(on, kNear, true));
  EXPECT_DOUBLE_EQ(both_ways(off, kNear, true),
                   both_ways(test::catalogue_fabric("pcie-a100x8"), kNear, true));
}

// NCCL does not ask whether access control is on: it sends over PCIe as before, and takes longer.
TEST(P06, AccessControlSlowsCollectivesOverPcie) {
  const auto busbw = [](const char* acs) {
    const Fabric fabric = test::catalogue_fabric(
        fmt::format(R"({{"use": "pcie-a100x8", "set": {{"/acs": {}}}}})", acs));
    return predict(fabric, all_reduce, 256_MiB).busbw_gbs;
  };
  EXPECT_LT(busbw("true"), 0.6 * busbw("false"));
}

// nccl#1712: the size that reaches half of the peak grows as the ring does; large sizes do not care.
TEST(P10, HalfOfThePeakNeedsSizesThatGrowWithTheNodes) {
  NcclSetup setup;
  setup.version = kRelease;
  setup.algorithm = "ring";
  setup.protocol = "simple";
  std::map<int, double> half, large;
  for (const int nodes : {4, 8, 16, 32}) {
    const Fabric fabric = catalogue("dgx-a100+ib-hdr", nodes);
    std::vector<Bytes> sizes;
    for (double bytes = 65'536; bytes < 8.6e9; bytes *= 1.1892071150027210667)  // fourth root of 2
      sizes.push_back({static_cast<std::int64_t>(bytes)});
    const auto rows = predict_nccl(fabric, first_gpus(fabric, 1), all_reduce, sizes, setup);
    large[nodes] = rows.back().busbw_gbs;
    for (const NcclRow& row : rows) {
      if (row.busbw_gbs < large[nodes] / 2) continue;
      half[nodes] = row.bytes.value();
      break;
    }
    EXPECT_NEAR(large[nodes] / large[4], 1, 0.1);
  }
  for (const int nodes : {8, 16, 32}) EXPECT_NEAR(half[nodes] / half[nodes / 2], 2, 0.5) << nodes;
}

}  // namespace
}  // namespace weft
