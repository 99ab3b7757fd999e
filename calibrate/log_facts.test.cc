// SPDX-License-Identifier: Apache-2.0
#include "calibrate/log_facts.hpp"

#include <cmath>

#include <gtest/gtest.h>

namespace weft {
namespace {

double cents(double gbs) { return std::round(gbs * 100) / 100; }

// A run as nccl-tests would print it: rates rounded to two decimals.
MeasuredRun run_of(std::string collective, int ranks, std::vector<std::pair<Bytes, double>> times) {
  MeasuredRun run;
  run.collective = std::move(collective);
  run.ranks = ranks;
  for (const auto& [bytes, us] : times) {
    CollectiveSample sample;
    sample.bytes = bytes;
    sample.time = time_from_us(us);
    const double algbw = bytes.value() / us / 1e3;
    sample.algbw = *bandwidth_from_gbytes(cents(algbw));
    sample.busbw = *bandwidth_from_gbytes(cents(algbw * bus_factor(run.collective, ranks)));
    run.samples.push_back(sample);
  }
  return run;
}

TEST(Ranks, AreInferredFromTheFactorAtEveryCount) {
  for (const char* collective : {"all_reduce", "all_gather", "all_to_all"}) {
    for (int ranks = 2; ranks <= 64; ++ranks) {
      const RankGuess guess =
          infer_ranks(run_of(collective, ranks, {{1_GiB, 2500}, {4_GiB, 9000}, {8_GiB, 17900}}));
      EXPECT_LE(guess.fewest, ranks) << collective;
      EXPECT_GE(guess.most, ranks) << collective;
      EXPECT_EQ(guess.agree, guess.total);
      if (ranks % 8 == 0) {
        EXPECT_EQ(guess.ranks, ranks) << collective;
      }
    }
  }
}

TEST(Ranks, SmallRatesAndPlainCollectivesSayNothing) {
  EXPECT_FALSE(infer_ranks(run_of("all_reduce", 8, {{8_B, 20}, {64_B, 20}})).ranks);
  EXPECT_FALSE(infer_ranks(run_of("broadcast", 8, {{1_GiB, 2500}})).ranks);
  EXPECT_FALSE(infer_ranks({}).ranks);
}

TEST(Ranks, OneDamagedRowDoesNotMislead) {
  MeasuredRun run = run_of("all_reduce", 16, {{1_GiB, 2500}, {2_GiB, 4800}, {4_GiB, 9000}});
  run.samples[1].busbw.bps /= 10;
  const RankGuess guess = infer_ranks(run);
  EXPECT_EQ(guess.ranks, 16);
  EXPECT_EQ(guess.agree, 2U);
  EXPECT_EQ(factor_outliers(run, bus_factor("all_reduce", 16)), std::vector<std::size_t>{1});
}

TEST(Factors, AreThoseOfNcclTests) {
  EXPECT_DOUBLE_EQ(bus_factor("all_reduce", 8), 1.75);
  EXPECT_DOUBLE_EQ(bus_factor("all_gather", 4), 0.75);
  EXPECT_DOUBLE_EQ(bus_factor("send_recv", 4), 1);
  EXPECT_EQ(bus_factor("hypercube", 4), 0);
  EXPECT_EQ(bus_factor("all_reduce", 0), 0);
}

TEST(FixedCost, IsTheMedianOfThePlateau) {
  const auto flat = fixed_cost(
      run_of("all_reduce", 4, {{1_KiB, 55}, {2_KiB, 20}, {4_KiB, 20.5}, {8_KiB, 21}, {1_MiB, 90}}));
  ASSERT_TRUE(flat);
  EXPECT_NEAR(flat->time.us(), 20.75, 0.01);
  EXPECT_EQ(flat->up_to, 8_KiB);
}

TEST(FixedCost, TimesThatGrowOrJumpAreNone) {
  EXPECT_FALSE(fixed_cost(run_of("all_reduce", 4, {{1_MiB, 100}, {2_MiB, 200}, {4_MiB, 400}})));
  EXPECT_FALSE(fixed_cost(run_of("all_reduce", 4, {{1_MiB, 2300}, {2_MiB, 1100}, {4_MiB, 600}})));
  EXPECT_FALSE(fixed_cost(run_of("all_reduce", 4, {{1_MiB, 100}})));
}

TEST(Asymptote, LeavesThePlateauOut) {
  EXPECT_FALSE(asymptotic_busbw(run_of("all_reduce", 4, {{1_KiB, 20}, {4_KiB, 20}, {8_KiB, 20}})));
  const auto limit = asymptotic_busbw(
      run_of("all_reduce", 4, {{1_KiB, 20}, {8_KiB, 20}, {1_GiB, 64000}, {2_GiB, 128000}}));
  ASSERT_TRUE(limit);
  EXPECT_NEAR(limit->busbw_gbs, 25.17, 0.02);
  EXPECT_TRUE(limit->saturated);
}

TEST(LinkEstimate, NeverExceedsTheLink) {
  const MeasuredRun run = run_of("all_reduce", 8, {{2_GiB, 7983.5}});  // 470.7 GB/s busbw
  EXPECT_EQ(link_estimate(run, 600_GBps)->reading, "ring");
  EXPECT_EQ(link_estimate(run, 450_GBps)->reading, "nvls");
  EXPECT_FALSE(link_estimate(run, 200_GBps));  // no reading makes this the rate of such a link
}

TEST(Network, ShareOfAnAllToAllThatLeavesTheNode) {
  const MeasuredRun run = run_of("all_to_all", 16, {{1_GiB, 20000}});
  const double busbw = run.samples[0].busbw.gbytes_per_s();
  EXPECT_NEAR(*network_gbs(run, 8), busbw * 8 / 15, 1e-9);
  EXPECT_NEAR(*network_gbs(run, 1), busbw, 1e-9);
  EXPECT_FALSE(network_gbs(run, 16));
}

TEST(PeerAccess, IsConcludedFromEqualMatrices) {
  const auto matrix = [](bool on, double gbs) {
    MeasuredMatrix m;
    m.peer_access = on;
    m.pairs = {{"gpu0", "gpu1", bandwidth_from_gbytes(gbs), {}},
               {"gpu1", "gpu0", bandwidth_from_gbytes(gbs * 1.01), {}}};
    return m;
  };
  Measurement m;
  m.matrices = {matrix(false, 5.9)};
  EXPECT_FALSE(peer_access_works(m).has_value());
  m.matrices.push_back(matrix(true, 5.95));
  EXPECT_EQ(peer_access_works(m), false);
  m.matrices.back() = matrix(true, 24);
  EXPECT_EQ(peer_access_works(m), true);
  m.matrices.back() = matrix(true, 5.0);  // slower is a difference too
  EXPECT_EQ(peer_access_works(m), true);
}

TEST(Median, OfEvenAndOddCounts) {
  EXPECT_EQ(median({3, 1, 2}), 2);
  EXPECT_EQ(median({4, 1, 2, 3}), 2.5);
  EXPECT_EQ(median({}), 0);
}

}  // namespace
}  // namespace weft
