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
                const std::string& algorithm = {}, std::size_t per_node = 8) {
  NcclSetup setup;
  setup.version = kRelease;
  setup.harness = NcclHarness::process_per_gpu;
  setup.algorithm = algorithm;
  const Bytes sizes[] = {bytes};
  return predict_nccl(fabric, first_gpus(fabric, per_node), kind, sizes, setup).front();
}

// nccl#2409: 2 x 8 H100, 8 x 400G RoCE. Healthy 456 GB/s.
TEST(P01, HealthyPairOfNodes) {
  const Fabric fabric = catalogue("hgx-h100+roce-400g", 2);
  EXPECT_NEAR(predict(fabric, all_reduce, 1_GiB).busbw_gbs / 456, 1, 0.15);
}

// 128 KiB per 10 us is 13.1 GB/s, as measured; rings of 16 channels then reach 16 times that, measured 216.
TEST(P01, AChunkThatCostsTenMicrosecondsLimitsEveryConnection) {
  const Fabric fabric =
      catalogue("hgx-h100+roce-400g", 2, R"(, "/server/nodes/5/model/proxy/chunk_time": "10 us")");
  EXPECT_NEAR(predict(fabric, send_recv, 1_GiB).busbw_gbs, 13, 2);
  EXPECT_NEAR(predict(fabric, all_reduce, 1_GiB, "ring").busbw_gbs, 216.5, 216.5 * 0.1);
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

// nccl#1368: trees win at small sizes, the more so the more nodes; rings stay below the NICs. That a tree loses a fifth of its
// rate at large sizes (150 against 190 GB/s measured) is not modelled.
TEST(P03, TreesWinAtSmallSizesAndMoreSoOverMoreNodes) {
  const auto ring_over_tree = [](int nodes) {
    const Fabric fabric = catalogue("hgx-h100+ib-ndr", nodes);
    return predict(fabric, all_reduce, 64_KiB, "ring").time.seconds() /
           predict(fabric, all_reduce, 64_KiB, "tree").time.seconds();
  };
  const double five = ring_over_tree(5);
  EXPECT_GT(five, 1);
  EXPECT_GT(ring_over_tree(10), five);
  const double ring = predict(catalogue("hgx-h100+ib-ndr", 5), all_reduce, 4_GiB, "ring").busbw_gbs;
  EXPECT_LE(ring, 400);
  EXPECT_GE(ring, 0.8 * 400);
}

// nccl#1357: one GPU per node gains nothing from more NICs; four GPUs at NICs of their own do.
TEST(P04, OneGpuUsesOneNicsWorth) {
  const Fabric fabric = catalogue("hgx-h100+ib-ndr", 2);
  const double one = predict(fabric, all_reduce, 1_GiB, {}, 1).busbw_gbs;
  EXPECT_NEAR(one, 50, 7.5);
  EXPECT_GE(predict(fabric, all_reduce, 1_GiB, {}, 4).busbw_gbs, 3 * one);
}

// nccl#1086: without peer access a pair below one PCIe switch shares its way to host memory; ACS does the same.
TEST(P06, PairsBelowOneSwitchFallBehindWithoutPeerAccess) {
  const Fabric fabric = test::catalogue_fabric("pcie-a100x8");
  const auto both_ways = [&](const char* dst, bool peers) {
    const Report report = test::run(
        fabric, fmt::format(R"("workload": {{"p2p": {{"src": "gpu0", "dst": "{}", "size": "256 MiB",
                                "bidirectional": true, "peer_access": {}}}}})",
                            dst, peers));
    return 2 * 268.435456e-3 / report.time_s;
  };
  EXPECT_LT(both_ways("gpu1", false), 0.8 * both_ways("gpu7", false));
  EXPECT_GE(both_ways("gpu1", true), 0.99 * both_ways("gpu7", true));
  EXPECT_GT(both_ways("gpu1", true), 2 * both_ways("gpu1", false));
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
