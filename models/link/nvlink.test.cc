// SPDX-License-Identifier: Apache-2.0
#include "models/link/nvlink.hpp"

#include <fmt/format.h>

#include "models/link/law.test.hpp"

namespace weft {
namespace {

// GB/s of a bundle, one direction.
double bundle(int generation, int links, const std::string& payload) {
  return links * test_link(kNvlinkLink, R"("class": "nvlink", "generation": )" +
                                            std::to_string(generation) + R"(, "payload": ")" +
                                            payload + R"(", "header": "16 B")")
                     .gbytes();
}

TEST(NvlinkLaw, RawRateIsLanesTimesLaneRate) {
  const Bandwidth expected[] = {160_Gbps, Bandwidth{206'250'000'000}, 200_Gbps, 200_Gbps, 400_Gbps};
  for (int generation = 1; generation <= 5; ++generation) {
    const TestedLink link = test_link(
        kNvlinkLink, R"("class": "nvlink", "payload": "256 B", "header": "16 B", "generation": )" +
                         std::to_string(generation));
    EXPECT_EQ(link.law.raw, expected[generation - 1]) << generation;
  }
}

// Measured: every pair of a DGX-2 at 145.57 GB/s.
TEST(NvlinkLaw, SixLinksOfGenerationTwoDeliverWhatADgx2Measures) {
  EXPECT_NEAR(bundle(2, 6, "256 B"), 145.59, 0.005);
  EXPECT_NEAR(bundle(2, 6, "256 B"), 145.57, 0.03);
}

// Measured: 18.41 GB/s between neighbours of a DGX-1 P100, 2.2 % below the law.
TEST(NvlinkLaw, OneLinkOfGenerationOneIsTwoPercentAboveAP100Pair) {
  EXPECT_NEAR(bundle(1, 1, "256 B"), 18.82, 0.01);
  EXPECT_NEAR(18.41 / bundle(1, 1, "256 B"), 0.978, 0.001);
}

// Measured, one way, GB/s: A100 270.84 to 276.9, H100 363.4 to 393.6, H200 396.4, GB200 770.
TEST(NvlinkLaw, NewerGenerationsMeasureOneToTenPercentBelowTheLaw) {
  EXPECT_NEAR(275.0 / bundle(3, 12, "256 B"), 0.974, 0.002);
  EXPECT_NEAR(376.0 / bundle(4, 18, "128 B"), 0.94, 0.002);
  EXPECT_NEAR(396.4 / bundle(4, 18, "128 B"), 0.991, 0.002);
  EXPECT_NEAR(770.0 / bundle(5, 18, "128 B"), 0.9625, 0.002);
}

TEST(NvlinkLaw, MissingFactsAreReported) {
  const TestedLink bare = test_link(kNvlinkLink, R"("class": "nvlink")");
  ASSERT_EQ(bare.problems.size(), 3u);
  EXPECT_EQ(bare.problem(), R"(the link's "generation" is missing)");
  EXPECT_EQ(test_link(kNvlinkLink,
                      R"("class": "nvlink", "generation": 6, "payload": "128 B", "header": "16 B")")
                .problem(),
            "NVLink generation 6 is not known");
}

// People enter the data sheet's total: 900 GB/s is 18 links and both directions.
TEST(NvlinkLaw, ARateOfAllLinksAndBothDirectionsRaisesAQuestion) {
  const auto asked = [](const char* facts) {
    return test_link(
               kNvlinkLink,
               fmt::format(R"("class": "nvlink", "payload": "128 B", "header": "16 B", {})", facts))
        .problems.size();
  };
  EXPECT_EQ(asked(R"("generation": 4, "rate": "900 GB/s")"), 1u);
  EXPECT_EQ(asked(R"("generation": 4, "rate": "50 GB/s")"), 1u);
  EXPECT_EQ(asked(R"("rate": "900 GB/s")"), 1u);
  EXPECT_EQ(asked(R"("generation": 4, "rate": "25 GB/s")"), 0u);
  EXPECT_EQ(asked(R"("rate": "50 GB/s")"), 0u);
  EXPECT_NEAR(bundle(4, 18, "128 B") * 9 / 8, 450, 1e-6);  // H100
  EXPECT_NEAR(bundle(3, 12, "128 B") * 9 / 8, 300, 1e-6);  // A100
  EXPECT_NEAR(bundle(4, 8, "128 B") * 9 / 8, 200, 1e-6);   // H800
}

}  // namespace
}  // namespace weft
