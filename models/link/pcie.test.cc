// SPDX-License-Identifier: Apache-2.0
#include "models/link/pcie.hpp"

#include "models/link/cxl.hpp"
#include "models/link/law.test.hpp"

namespace weft {
namespace {

TestedLink pcie(int generation, int width, const std::string& payload) {
  return test_link(kPcieLink, R"("class": "pcie", "generation": )" + std::to_string(generation) +
                                  R"(, "width": )" + std::to_string(width) +
                                  R"(, "max_payload": ")" + payload + R"(")");
}

TEST(PcieLaw, RawRateIsTransfersTimesLanesAfterLineCoding) {
  EXPECT_EQ(pcie_rate(1, 1), 2_Gbps);    // 250 MB/s
  EXPECT_EQ(pcie_rate(2, 16), 64_Gbps);  // 8 GB/s
  EXPECT_NEAR(pcie_rate(3, 16).gbytes_per_s(), 15.754, 0.001);
  EXPECT_NEAR(pcie_rate(4, 16).gbytes_per_s(), 31.508, 0.001);
  EXPECT_NEAR(pcie_rate(5, 16).gbytes_per_s(), 63.015, 0.001);
  EXPECT_EQ(pcie_rate(6, 16), 944_Gbps);  // 118 GB/s: 236 of 256 bytes of each flit
}

TEST(PcieLaw, EveryGenerationIsFasterThanTheOneBeforeAndWidthScales) {
  for (int generation = 2; generation <= 6; ++generation) {
    EXPECT_GT(pcie_rate(generation, 1), pcie_rate(generation - 1, 1));
    EXPECT_NEAR(static_cast<double>(pcie_rate(generation, 16).bps),
                16 * static_cast<double>(pcie_rate(generation, 1).bps), 16.0);
  }
}

TEST(PcieLaw, LargerPayloadsAreMoreEfficient) {
  const double small = pcie(4, 16, "128 B").law.efficiency();
  EXPECT_NEAR(small, 128.0 / 152 * 0.95, 1e-12);
  EXPECT_GT(pcie(4, 16, "256 B").law.efficiency(), small);
  EXPECT_GT(pcie(4, 16, "4 KiB").law.efficiency(), pcie(4, 16, "256 B").law.efficiency());
}

// Measured: DMA of one direction on generation 3 x16 is 12 to 13 GB/s.
TEST(PcieLaw, GenerationThreeDeliversWhatDmaMeasures) {
  EXPECT_NEAR(pcie(3, 16, "128 B").gbytes(), 12.60, 0.01);
  EXPECT_NEAR(pcie(3, 16, "256 B").gbytes(), 13.68, 0.01);
}

// Measured: 26.0 GB/s from host to an A100, 24.2 between peers: the law lies between, 3 to 4 % from each.
TEST(PcieLaw, GenerationFourLiesBetweenHostAndPeerCopies) {
  const double law = pcie(4, 16, "128 B").gbytes();
  EXPECT_GT(law, 24.2);
  EXPECT_LT(law, 26.0);
  EXPECT_NEAR(law / 26.0, 1, 0.04);
}

// Measured: 55.43 and 55.06 GB/s on an H200: the law is 1.3 % and 0.6 % below.
TEST(PcieLaw, GenerationFiveDeliversWhatHostCopiesMeasure) {
  EXPECT_NEAR(pcie(5, 16, "256 B").gbytes() / 55.43, 1, 0.02);
  EXPECT_NEAR(pcie(5, 16, "256 B").gbytes() / 55.06, 1, 0.02);
}

TEST(PcieLaw, FlitModeHasNoSequenceNumberOrCheckSumInThePacket) {
  EXPECT_EQ(pcie(6, 16, "256 B").law.overhead, 16_B);
  EXPECT_EQ(pcie(5, 16, "256 B").law.overhead, 24_B);
  EXPECT_NEAR(pcie(6, 16, "256 B").gbytes(), 105.5, 0.1);
}

TEST(PcieLaw, DuplexFactorPassesThrough) {
  const TestedLink link = test_link(
      kPcieLink,
      R"("class": "pcie", "generation": 3, "width": 16, "max_payload": "128 B", "duplex_factor": 0.75)");
  EXPECT_EQ(link.law.duplex_factor, 0.75);
}

TEST(PcieLaw, AStatedRateAndEfficiencyReplaceTheComputedOnes) {
  const TestedLink link =
      test_link(kPcieLink, R"("class": "pcie", "rate": "100 Gb/s", "efficiency": 0.9)");
  EXPECT_TRUE(link.problems.empty()) << link.problem();
  EXPECT_EQ(link.payload_rate(), 90_Gbps);
}

TEST(PcieLaw, MissingAndImpossibleFactsAreReportedWithACure) {
  const TestedLink bare = test_link(kPcieLink, R"("class": "pcie")");
  ASSERT_EQ(bare.problems.size(), 2u);
  EXPECT_EQ(bare.problem(), R"(the link's "generation" is missing)");
  EXPECT_EQ(bare.problems[0].pointer, "/link");
  EXPECT_EQ(bare.problems[0].place.line, 1u);
  EXPECT_NE(bare.problems[0].cure.find("1 to 6"), std::string::npos);
  EXPECT_EQ(pcie(7, 16, "256 B").problem(), "PCIe generation 7 is not known");
  EXPECT_EQ(pcie(5, 6, "256 B").problem(), "PCIe has no x6");
}

TEST(CxlLaw, FlitsAndHeaderSlotsTakeTheirShare) {
  const TestedLink two = test_link(kCxlLink, R"("class": "cxl", "generation": 2, "width": 8)");
  EXPECT_NEAR(two.gbytes(), 32.0 * 8 / 8 * 128 / 130 * 64 / 68 * 0.8 * 0.95, 0.001);
  const TestedLink three = test_link(kCxlLink, R"("class": "cxl", "generation": 3, "width": 16)");
  EXPECT_NEAR(three.gbytes(), 128.0 * 238 / 256 * 0.8 * 0.95, 0.001);
  EXPECT_EQ(test_link(kCxlLink, R"("class": "cxl", "generation": 4, "width": 16)").problem(),
            "CXL generation 4 is not known");
}

}  // namespace
}  // namespace weft
