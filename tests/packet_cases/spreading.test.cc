// SPDX-License-Identifier: Apache-2.0
// Static hashing of few large flows (case P15) is throwing balls into bins; a bond of two ports (case P07) is two bins.
#include <algorithm>
#include <cmath>
#include <numeric>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "tests/support/tiny.hpp"

namespace weft {
namespace {

// Mean of the fullest of `bins` when `balls` are thrown: P(max <= m) = balls! [x^balls] (sum_{j <= m} x^j / j!)^bins / bins^balls.
double mean_fullest(int balls, int bins) {
  const auto at_most = [&](int m) {
    std::vector<double> product(static_cast<std::size_t>(balls) + 1, 0.0);
    product[0] = 1;
    for (int bin = 0; bin < bins; ++bin) {
      std::vector<double> next(product.size(), 0.0);
      for (int i = 0; i <= balls; ++i) {
        for (int j = 0; j <= std::min(m, balls - i); ++j)
          next[static_cast<std::size_t>(i + j)] +=
              product[static_cast<std::size_t>(i)] / std::tgamma(j + 1);
      }
      product = next;
    }
    return product.back() * std::tgamma(balls + 1) / std::pow(bins, balls);
  };
  double mean = 0;
  for (int m = 0; m < balls; ++m) mean += 1 - at_most(m);
  return mean;
}

TEST(BallsInBins, MeanOfTheFullest) {
  EXPECT_NEAR(mean_fullest(2, 2), 1.5, 1e-9);
  EXPECT_NEAR(mean_fullest(3, 2), 2.25, 1e-9);
  EXPECT_NEAR(mean_fullest(8, 8), 2.60, 0.005);
}

constexpr double kFlowSeconds = 64e6 * 8 / 100e9;

// `flows` flows of 64 MB from one leaf to another over as many spines as `uplinks`, all at 100 Gb/s: how many flows' worth the
// worst uplink carries.
double worst_load(const Fabric& fabric, int flows, std::uint64_t seed, int queue_pairs) {
  std::string list;
  for (int i = 0; i < flows; ++i)
    list += fmt::format(R"({}{{"src": "server{}/g", "dst": "server{}/g", "size": "64 MB"}})",
                        i == 0 ? "" : ", ", i, flows + i);
  const Report report =
      test::run(fabric, fmt::format(R"("seed": {}, "jobs": [{{"queue_pairs": {}, "flows": [{}]}}])",
                                    seed, queue_pairs, list));
  return report.time_s / kFlowSeconds;
}

Fabric leaves(int hosts, int spines) {
  test::TinyOptions options;
  options.servers = 2 * hosts;
  options.network = test::leaf_spine(hosts, spines);
  options.nic = options.cable = "100 Gb/s, 0 ns";
  return test::fabric_from("gpu g -- 400 Gb/s, 0 ns -- nic n", options);
}

std::vector<double> loads(const Fabric& fabric, int flows, int queue_pairs, int seeds) {
  std::vector<double> out;
  for (int seed = 1; seed <= seeds; ++seed)
    out.push_back(worst_load(fabric, flows, static_cast<std::uint64_t>(seed), queue_pairs));
  std::ranges::sort(out);
  return out;
}

double mean(const std::vector<double>& values) {
  return std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
}

TEST(StaticHashing, TheWorstUplinkIsTheFullestBin) {
  for (const auto& [flows, uplinks] : {std::pair{8, 8}, std::pair{16, 16}, std::pair{4, 8}}) {
    SCOPED_TRACE(fmt::format("{} flows over {} uplinks", flows, uplinks));
    const double expected = mean_fullest(flows, uplinks);
    EXPECT_NEAR(mean(loads(leaves(flows, uplinks), flows, 1, 1000)), expected, 0.05 * expected);
  }
}

TEST(StaticHashing, TheSameSeedTakesTheSamePaths) {
  const Fabric fabric = leaves(8, 8);
  EXPECT_EQ(worst_load(fabric, 8, 7, 1), worst_load(fabric, 8, 7, 1));
}

// Flows of one queue pair each are whole balls; four or sixteen a flow are smaller ones.
TEST(StaticHashing, MoreQueuePairsLowerTheTail) {
  const Fabric fabric = leaves(8, 8);
  double tail = 9, middle = 9;
  for (const int pairs : {1, 4, 16}) {
    const std::vector<double> sorted = loads(fabric, 8, pairs, 200);
    const double p99 = sorted[sorted.size() * 99 / 100];
    EXPECT_LT(p99, 0.8 * tail) << pairs << " queue pairs";
    EXPECT_LT(mean(sorted), 0.85 * middle) << pairs << " queue pairs";
    tail = p99;
    middle = mean(sorted);
  }
}

}  // namespace
}  // namespace weft
