// SPDX-License-Identifier: Apache-2.0
#include "calibrate/latency_bandwidth.hpp"

#include <gtest/gtest.h>

namespace weft {
namespace {

template <class Law>
MeasuredRun run_of(Law us_of_bytes) {
  MeasuredRun run;
  run.collective = "all_reduce";
  run.ranks = 8;
  for (std::int64_t bytes = 1024; bytes <= (std::int64_t{1} << 30); bytes *= 2) {
    CollectiveSample sample;
    sample.bytes = {bytes};
    sample.time = time_from_us(us_of_bytes(static_cast<double>(bytes)));
    run.samples.push_back(sample);
  }
  return run;
}

TEST(LatencyBandwidth, OneLawIsFoundInOnePiece) {
  const auto fit =
      fit_latency_bandwidth(run_of([](double bytes) { return 20 + bytes / 25e3; }));  // 25 GB/s
  ASSERT_TRUE(fit);
  ASSERT_EQ(fit->pieces.size(), 1U);
  EXPECT_NEAR(fit->pieces[0].latency_us, 20, 1e-3);
  EXPECT_NEAR(fit->algbw_gbs, 25, 1e-3);
  EXPECT_LT(fit->worst_error, 1e-4);
}

TEST(LatencyBandwidth, ChangeOfProtocolIsAPieceOfItsOwn) {
  const auto fit = fit_latency_bandwidth(run_of([](double bytes) {
    return bytes < 1e6 ? 10 + bytes / 5e3 : 60 + bytes / 40e3;  // 5 GB/s, then 40 GB/s
  }));
  ASSERT_TRUE(fit);
  ASSERT_EQ(fit->pieces.size(), 2U);
  EXPECT_EQ(fit->pieces[0].to, 512_KiB);
  EXPECT_EQ(fit->pieces[1].from, 1_MiB);
  EXPECT_NEAR(fit->small_message_us, 10.2, 0.1);
  EXPECT_NEAR(fit->algbw_gbs, 40, 0.1);
}

TEST(LatencyBandwidth, NoLineThroughACliff) {
  const MeasuredRun run =
      run_of([](double bytes) { return 20 + bytes / (bytes < 64e6 ? 25e3 : 4e3); });
  const auto fit = fit_latency_bandwidth(run);
  ASSERT_TRUE(fit);
  ASSERT_EQ(fit->cliffs.size(), 1U);
  EXPECT_EQ(fit->cliffs[0].bytes, 64_MiB);
  EXPECT_NEAR(fit->cliffs[0].factor, 25.0 / 4, 0.1);
  for (const LatencyBandwidthPiece& piece : fit->pieces)
    EXPECT_TRUE(piece.to < 64_MiB || piece.from >= 64_MiB);
}

TEST(LatencyBandwidth, LatencyAndSlopeAreNeverNegative) {
  const auto falling =
      fit_latency_bandwidth(run_of([](double bytes) { return 100 - 1e-8 * bytes; }));
  ASSERT_TRUE(falling);
  const auto steep =
      fit_latency_bandwidth(run_of([](double bytes) { return 1e-6 * bytes * bytes / 1e6; }));
  ASSERT_TRUE(steep);
  for (const auto* fit : {&*falling, &*steep}) {
    for (const LatencyBandwidthPiece& piece : fit->pieces) {
      EXPECT_GE(piece.latency_us, 0);
      EXPECT_GE(piece.us_per_byte, 0);
    }
  }
}

TEST(LatencyBandwidth, TooFewSizesGiveNoFit) {
  MeasuredRun run = run_of([](double bytes) { return 20 + bytes / 25e3; });
  run.samples.resize(1);
  EXPECT_FALSE(fit_latency_bandwidth(run));
  EXPECT_FALSE(fit_latency_bandwidth({}));
}

TEST(Anomalies, NameWarmUpAndSlowRows) {
  MeasuredRun run = run_of([](double bytes) { return 20 + bytes / 25e3; });
  EXPECT_TRUE(anomalies(run).empty());
  run.samples[0].time = Time{60'000'000};      // 1 KiB in 60 us
  run.samples[15].time = Time{9'000'000'000};  // 32 MiB in 9 ms
  const auto found = anomalies(run);
  ASSERT_EQ(found.size(), 3U);
  EXPECT_EQ(found[0].kind, Anomaly::Kind::warm_up);
  EXPECT_EQ(found[1].bytes, 32_MiB);
  EXPECT_EQ(found[2].bytes, 32_MiB);
  EXPECT_NE(found[1].kind, found[2].kind);  // slower than 64 MiB, and a cliff
}

// Times are microseconds of four digits, not what a division left behind.
TEST(Anomalies, AnInversionNamesTheTimeWithItsUnit) {
  MeasuredRun run = run_of([](double bytes) { return 20 + bytes / 25e3; });
  run.samples[10].time = time_from_us(1234.56789);
  const auto found = anomalies(run);
  ASSERT_FALSE(found.empty());
  EXPECT_NE(found[0].text.find("takes 1235 us, "), std::string::npos) << found[0].text;
}

}  // namespace
}  // namespace weft
