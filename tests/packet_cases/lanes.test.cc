// SPDX-License-Identifier: Apache-2.0
// Traffic classes of jobs: virtual lanes of links with credits, priorities of Ethernet with a PAUSE of their own.
#include <algorithm>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "sim/core/check.hpp"
#include "tests/packet_cases/crowd.hpp"

namespace weft {
namespace {

Report crowd(const std::string& network_class, int victims_class,
             const std::string& buffer = "4 MB", const std::string& more = "") {
  return test::crowd(
      network_class,
      fmt::format(R"("fidelity": "packet", "models": {{"packet": {{"congestion_control": "none",
          "buffer": "{}", "ecn": {{"enabled": false}}{}}}}})",
                  buffer, more),
      std::to_string(victims_class));
}

TEST(VirtualLanes, KeepAVictimAtItsShare) {
  const Report shared = crowd("infiniband", 1), own = crowd("infiniband", 2);
  EXPECT_GT(shared.job("victim").slowdown.most, 3) << "behind the hogs, which fill the credits";
  EXPECT_LT(own.job("victim").slowdown.most, 1.02);
  // The hogs lose nothing: their host is what limits them.
  EXPECT_NEAR(own.job("hog").finish_s, shared.job("hog").finish_s, 0.01 * own.time_s);
}

TEST(Priorities, ArePausedOneByOne) {
  const Report shared = crowd("ethernet", 1), own = crowd("ethernet", 2);
  ASSERT_GT(shared.network.pauses, 0U);
  ASSERT_GT(own.network.pauses, 0U);
  EXPECT_EQ(shared.network.dropped + own.network.dropped, 0U);
  EXPECT_GT(shared.job("victim").slowdown.most, 1.2);
  EXPECT_LT(own.job("victim").slowdown.most, 1.02);
  EXPECT_EQ(shared.observed.victims.size(), 1U);
  EXPECT_TRUE(own.observed.victims.empty());
}

// Headroom is held for every class that is in use: it has to fit as well.
TEST(Priorities, ShareABuffer) {
  EXPECT_NO_THROW(crowd("ethernet", 7, "8 MB"));
  EXPECT_THROW(crowd("ethernet", 7, "3 MB"), LimitReached);
}

// Two flows from different hosts to one, with weights: each has its share until the heavier one ends.
TEST(Weights, AreSharesWhereClassesMeet) {
  for (const auto& [weights, share] :
       {std::pair{"[1, 1]", 0.5}, std::pair{"[3, 1]", 0.75}, std::pair{"[1, 4]", 0.2}}) {
    for (const char* network_class : {"ethernet", "infiniband"}) {
      test::TinyOptions options;
      options.servers = 3;
      options.network = test::single_switch();
      options.network_class = network_class;
      const Report report = test::run(
          test::fabric_from("gpu g -- 400 Gb/s, 0 ns -- nic n", options),
          fmt::format(
              R"("fidelity": "packet", "models": {{"packet": {{"weights": {}, "congestion_control": "none"}}}}, "jobs": [
              {{"name": "a", "flows": [{{"src": "server0/g", "dst": "server2/g", "size": "20 MB"}}]}},
              {{"name": "b", "traffic_class": 2, "flows": [{{"src": "server1/g", "dst": "server2/g", "size": "20 MB"}}]}}])",
              weights));
      const double faster = std::max(share, 1 - share);
      const double first = std::min(report.job("a").time_s, report.job("b").time_s);
      EXPECT_NEAR(first, 20e6 / (faster * 12.5e9), 0.02 * first) << weights << " " << network_class;
      if (share != 0.5) {
        EXPECT_EQ(report.job("a").time_s<report.job("b").time_s, share> 0.5) << weights;
      }
    }
  }
}

TEST(TrafficClasses, OfOneJobChangeNothing) {
  EXPECT_EQ(crowd("infiniband", 1).job("hog").finish_s,
            crowd("infiniband", 1, "4 MB", R"(, "weights": [5])").job("hog").finish_s);
}

}  // namespace
}  // namespace weft
