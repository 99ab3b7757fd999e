// SPDX-License-Identifier: Apache-2.0
// Logs of nccl-tests as people post them. What the reader makes of each, and what can be concluded without a model.
#include "calibrate/latency_bandwidth.hpp"
#include "calibrate/log_facts.hpp"
#include "tests/import_logs/import_log_test.hpp"

namespace weft::import_test {
namespace {

using Note = ImportNote::Kind;

TEST(NcclCases, N01BusbwAboveTheLinkIsReadAsReductionInTheSwitch) {
  const Result log = import_case("nccl-tests", "h100-8gpu-allreduce-nvls.log");
  ASSERT_TRUE(log.ok()) << log.text();
  EXPECT_EQ(log.word("/collective"), "all_reduce");
  EXPECT_EQ(log.number("/ranks"), 8);
  EXPECT_EQ(log.number("/nodes"), 1);
  EXPECT_NEAR(log.number("/average_printed"), 448.212, 1e-9);
  EXPECT_NEAR(log.number("/average_recomputed"), 448.212, 0.01);
  const Bandwidth nvlink4 = 450_GBps;
  const auto estimate = link_estimate(log.run(), nvlink4);
  ASSERT_TRUE(estimate);
  EXPECT_EQ(estimate->reading, "nvls");
  EXPECT_LE(estimate->gbs, 450);
  EXPECT_NEAR(estimate->gbs, 303, 1);
  EXPECT_TRUE(log.notes(Note::read, "NVLS"));
  EXPECT_TRUE(share_of_raw(log.number("/busbw_gbs"), nvlink4).above);
}

TEST(NcclCases, N02SweepIsFittedFromLatencyToAsymptote) {
  const Result log = import_case("nccl-tests", "rtx4090-4gpu-p2p-driver-allreduce.log");
  ASSERT_TRUE(log.ok()) << log.text();
  EXPECT_EQ(log.number("/rows"), 21);
  EXPECT_NEAR(log.number("/average_recomputed"), 13.3111, 0.0005);
  EXPECT_NEAR(log.number("/latency_us"), 18.5, 0.5);
  EXPECT_EQ(log.number("/latency_up_to"), 8192);
  const auto fit = fit_latency_bandwidth(log.run());
  ASSERT_TRUE(fit);
  EXPECT_GE(fit->pieces.size(), 2U);
  EXPECT_GE(fit->small_message_us, 18);
  EXPECT_LE(fit->small_message_us, 21);
  EXPECT_NEAR(fit->algbw_gbs * bus_factor("all_reduce", 4), 25.3, 1);
  for (const CollectiveSample& sample : log.run().samples) {
    const double error = std::abs(fit->time_us(sample.bytes) / us_of(*sample.time) - 1);
    EXPECT_LT(error, sample.bytes >= 16_MiB ? 0.05 : 0.25) << sample.bytes.count;
  }
  EXPECT_TRUE(fit->cliffs.empty());
}

TEST(NcclCases, N03ConstantTimeIsAFixedCostAndNoBandwidth) {
  const Result log = import_case("nccl-tests", "v2.18-socket-2rank-mpirun-tagged.log");
  ASSERT_TRUE(log.ok()) << log.text();
  EXPECT_EQ(log.number("/rows"), 8);
  EXPECT_EQ(log.word("/version"), "2.18.0");
  EXPECT_EQ(log.word("/collective"), "all_reduce");
  EXPECT_FALSE(log.flag("/collective_inferred"));
  EXPECT_NEAR(log.number("/latency_us"), 4370, 10);
  EXPECT_EQ(log.number("/latency_up_to"), 8 << 20);
  EXPECT_TRUE(log.notes(Note::read, "fixed cost of 4.37"));
  EXPECT_NEAR(log.number("/busbw_gbs"), 2.3, 0.05);  // not the 0.24 of the plateau
  EXPECT_TRUE(log.notes(Note::warning, "ranks 0 and 1 share one GPU"));
  EXPECT_EQ(log.measurement.setup.at("nGpus"), "1");
  EXPECT_EQ(log.word("/nccl"), "22907");
}

TEST(NcclCases, N04OldColumnsWithoutValidation) {
  const Result log = import_case("nccl-tests", "v100-16rank-validation-off-old.log");
  ASSERT_TRUE(log.ok()) << log.text();
  EXPECT_EQ(log.number("/rows"), 12);
  EXPECT_TRUE(log.notes(Note::read, "not validated"));
  for (const CollectiveSample& sample : log.run().samples) EXPECT_FALSE(sample.wrong);
  EXPECT_EQ(log.number("/ranks"), 16);
  EXPECT_TRUE(log.flag("/ranks_inferred"));
  EXPECT_TRUE(log.notes(Note::read, "about 16 ranks, inferred"));
}

TEST(NcclCases, N04SmallSizesDoNotTellTheRanksAndTheReaderAsks) {
  const Result log = import_case("nccl-tests", "a100-2rank-old-error-column-interleaved.log");
  ASSERT_TRUE(log.ok()) << log.text();
  EXPECT_EQ(log.number("/rows"), 7);
  EXPECT_TRUE(log.is_null("/ranks"));
  EXPECT_TRUE(log.notes(Note::unknown, "how many ranks"));
  EXPECT_EQ(log.run().samples.front().wrong, 0.0);
  ImportOptions answered;
  answered.answers = {{"ranks", "2"}, {"collective", "all_reduce"}};
  const Result again =
      import_case("nccl-tests", "a100-2rank-old-error-column-interleaved.log", answered);
  EXPECT_EQ(again.number("/ranks"), 2);
  EXPECT_EQ(again.word("/collective"), "all_reduce");
}

TEST(NcclCases, N05WrongDataAreRefusedUnlessForced) {
  const Result log = import_case("nccl-tests", "a100-2node-ll128-socket-corrupt.log");
  EXPECT_FALSE(log.ok());
  EXPECT_NE(log.text().find("wrong results in 1 of 2 samples"), std::string::npos) << log.text();
  EXPECT_FALSE(log.imported.measurement.is_object());
  ImportOptions forced;
  forced.force = true;
  const Result kept = import_case("nccl-tests", "a100-2node-ll128-socket-corrupt.log", forced);
  ASSERT_TRUE(kept.ok()) << kept.text();
  EXPECT_TRUE(kept.measurement.forced);
  EXPECT_FALSE(kept.measurement.problems.empty());
  EXPECT_EQ(kept.measurement.setup.at("nccl"), "2.10.3+cuda11.6");
}

TEST(NcclCases, N06AllToAllWithLogLinesInTheTable) {
  const Result log = import_case("nccl-tests", "vm-2x2-alltoall-interleaved-info.log");
  ASSERT_TRUE(log.ok()) << log.text();
  EXPECT_EQ(log.number("/rows"), 13);
  EXPECT_EQ(log.number("/ranks"), 4);
  EXPECT_EQ(log.word("/collective"), "all_to_all");
  const auto network = network_gbs(log.run(), 2);
  ASSERT_TRUE(network);
  EXPECT_NEAR(*network, 33.5, 0.2);
  EXPECT_TRUE(share_of_raw(*network, 25_GBps).above);   // one 200G NIC cannot do that
  EXPECT_FALSE(share_of_raw(*network, 50_GBps).above);  // one of 400G can
}

TEST(NcclCases, N07WithoutHashAndWithAPromptBelow) {
  const Result tcpx = import_case("nccl-tests", "h100-2x8-allgather-tcpx-no-hash-prefix.log");
  ASSERT_TRUE(tcpx.ok()) << tcpx.text();
  EXPECT_EQ(tcpx.number("/rows"), 11);
  EXPECT_EQ(tcpx.number("/ranks"), 16);
  EXPECT_NEAR(tcpx.number("/average_recomputed"), 40.6043, 0.0005);
  const Result gb10 = import_case("nccl-tests", "gb10-2node-allgather.log");
  ASSERT_TRUE(gb10.ok()) << gb10.text();
  EXPECT_EQ(gb10.number("/rows"), 3);
  EXPECT_EQ(gb10.number("/nodes"), 2);
  EXPECT_NEAR(gb10.number("/average_recomputed"), 21.4033, 0.005);
  EXPECT_EQ(gb10.word("/devices/1/bus"), "000f:01:00");
  const RawShare share = share_of_raw(gb10.number("/busbw_gbs"), 25_GBps);
  EXPECT_GE(share.ratio, 0.88);
  EXPECT_LE(share.ratio, 0.90);
  EXPECT_FALSE(share.low);
}

TEST(NcclCases, N08SlowRowIsAnAnomalyAndBusbwAboveTheNicsIsAccepted) {
  const Result vm = import_case("nccl-tests", "h200-2x8-allreduce-vm-flat-topology.log");
  ASSERT_TRUE(vm.ok()) << vm.text();
  EXPECT_EQ(vm.number("/rows"), 6);
  EXPECT_NEAR(vm.number("/average_recomputed"), 27.5091, 0.001);
  bool odd = false;
  for (const Anomaly& anomaly : anomalies(vm.run())) {
    odd |= anomaly.kind == Anomaly::Kind::slower_than_larger && anomaly.bytes.count == 100663296;
  }
  EXPECT_TRUE(odd);
  EXPECT_TRUE(vm.notes(Note::warning, "96 MiB out-of-place takes"));
  const Result metal = import_case("nccl-tests", "h200-2x8-allreduce-baremetal.log");
  ASSERT_TRUE(metal.ok()) << metal.text();
  EXPECT_TRUE(metal.measurement.problems.empty());
  EXPECT_EQ(metal.number("/ranks"), 16);
  EXPECT_NEAR(metal.number("/average_recomputed"), 475.782, 0.01);
}

TEST(NcclCases, N09GluedTagsAndACliff) {
  const Result log = import_case("nccl-tests", "h100-3x8-allreduce-collapse-glued-tags.log");
  ASSERT_TRUE(log.ok()) << log.text();
  EXPECT_EQ(log.number("/rows"), 10);
  EXPECT_EQ(log.number("/ranks"), 24);
  const auto fit = fit_latency_bandwidth(log.run());
  ASSERT_TRUE(fit);
  ASSERT_EQ(fit->cliffs.size(), 1U);
  EXPECT_EQ(fit->cliffs[0].bytes, 64_MiB);
  EXPECT_NEAR(fit->cliffs[0].factor, 5.6, 0.05);
  for (const LatencyBandwidthPiece& piece : fit->pieces)
    EXPECT_TRUE(piece.to < 64_MiB || piece.from >= 64_MiB) << "a line through the cliff";
  const Result second = import_case("nccl-tests", "h100-5x8-allreduce-timestamped.log");
  ASSERT_TRUE(second.ok()) << second.text();
  EXPECT_EQ(second.number("/ranks"), 40);
  EXPECT_EQ(second.number("/rows"), 1);
}

TEST(NcclCases, N10ShareOfTheRawLink) {
  const Result pair = import_case("nccl-tests", "pair-nvlink-bridge-47gbs.log");
  const RawShare bridge = share_of_raw(pair.number("/busbw_gbs"), Bandwidth{4 * 112'500'000'000});
  EXPECT_NEAR(bridge.ratio, 0.84, 0.01);
  EXPECT_FALSE(bridge.low);
  const Result h100 = import_case("nccl-tests", "h100pcie-2gpu-bridge-allreduce.log");
  const RawShare low = share_of_raw(h100.number("/busbw_gbs"), 300_GBps);
  EXPECT_NEAR(low.ratio, 0.39, 0.01);
  EXPECT_TRUE(low.low);
  EXPECT_EQ(h100.number("/ranks"), 2);
}

TEST(NcclCases, N11CrashWithoutRows) {
  const Result log = import_case("nccl-tests", "rtx5090-alltoall-crash-no-rows.log");
  EXPECT_FALSE(log.ok());
  EXPECT_NE(log.text().find("no measurements; run failed with: illegal memory access"),
            std::string::npos)
      << log.text();
  EXPECT_FALSE(log.imported.measurement.is_object());
}

TEST(NcclCases, N11OneDirectionOnly) {
  const Result log = import_case("nccl-tests", "h200nvl-8gpu-single-table.log");
  ASSERT_TRUE(log.ok()) << log.text();
  EXPECT_EQ(log.number("/rows"), 1);
  ASSERT_EQ(log.run().samples.size(), 1U);
  EXPECT_EQ(log.run().samples[0].buffers, Buffers::out_of_place);
  EXPECT_EQ(log.run().samples[0].bytes.count, 34359738368);
  EXPECT_EQ(log.number("/ranks"), 8);
  EXPECT_TRUE(share_of_raw(log.number("/busbw_gbs"), 450_GBps).low);  // no NVLink limit
}

TEST(NcclCases, N12LatencyDoesNotFollowTheFirstRow) {
  const Result log = import_case("nccl-tests", "pcie-2x8-alltoall-mpi-noise-first-row-outlier.log");
  ASSERT_TRUE(log.ok()) << log.text();
  EXPECT_EQ(log.number("/rows"), 5);
  EXPECT_GE(log.number("/latency_us"), 29);
  EXPECT_LE(log.number("/latency_us"), 31);
  EXPECT_EQ(log.find("/busbw_gbs"), nullptr);
  EXPECT_EQ(log.number("/ranks"), 16);
}

TEST(NcclCases, N12TwoRowsOfOneSizeAreTwoRuns) {
  const Result log =
      import_case("nccl-tests", "h100-8x8-allreduce-validation-off-before-after.log");
  ASSERT_TRUE(log.ok()) << log.text();
  ASSERT_EQ(log.measurement.runs.size(), 2U);
  EXPECT_NEAR(log.run(0).samples[0].busbw.gbytes_per_s(), 104.20, 1e-9);
  EXPECT_NEAR(log.run(1).samples[0].busbw.gbytes_per_s(), 279.78, 1e-9);
  EXPECT_EQ(log.run(0).ranks, 64);
}

TEST(NcclCases, P01FourNicsPerNode) {
  const Result log = import_case("nccl-tests", "h100-2x8-allreduce-4nic.log");
  ASSERT_TRUE(log.ok()) << log.text();
  EXPECT_NEAR(log.number("/average_recomputed"), 194.675, 0.005);
  EXPECT_EQ(log.number("/nodes"), 2);
}

}  // namespace
}  // namespace weft::import_test
