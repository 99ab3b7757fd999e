// SPDX-License-Identifier: Apache-2.0
#include "models/link/infiniband.hpp"

#include "models/link/law.test.hpp"

namespace weft {
namespace {

TestedLink infiniband(const std::string& speed, const std::string& mtu = "4 KiB") {
  return test_link(kInfinibandLink, R"("class": "infiniband", "width": 4, "speed": ")" + speed +
                                        R"(", "mtu": ")" + mtu + R"(")");
}

TEST(InfinibandLaw, RawRateIsTheDataRateOfFourLanes) {
  EXPECT_EQ(infiniband("sdr").law.raw, 8_Gbps);
  EXPECT_EQ(infiniband("ddr").law.raw, 16_Gbps);
  EXPECT_EQ(infiniband("qdr").law.raw, 32_Gbps);
  EXPECT_NEAR(static_cast<double>(infiniband("fdr").law.raw.bps), 54.5454e9, 1e6);
  EXPECT_EQ(infiniband("edr").law.raw, 100_Gbps);
  EXPECT_EQ(infiniband("hdr").law.raw, 200_Gbps);
  EXPECT_EQ(infiniband("ndr").law.raw, 400_Gbps);
  EXPECT_EQ(infiniband("xdr").law.raw, 800_Gbps);
}

// Measured by ib_write_bw: 196.64 Gb/s at 4 MiB, 196.38 at 2 MiB, one queue pair.
TEST(InfinibandLaw, HdrDeliversWhatWritesMeasure) {
  EXPECT_NEAR(infiniband("hdr").gbps(), 196.75, 0.01);
  EXPECT_NEAR(infiniband("hdr").gbps() / 196.64, 1, 0.002);
  EXPECT_NEAR(infiniband("hdr").gbps() / 196.38, 1, 0.002);
}

// Measured: 11728.47 MiB/s in a public perftest report, 96.6 Gb/s in another: the law is at the better of the two.
TEST(InfinibandLaw, EdrDeliversWhatTheBestWritesMeasure) {
  EXPECT_NEAR(infiniband("edr").gbps(), 11728.47 * 1048576 * 8 / 1e9, 0.1);
}

TEST(InfinibandLaw, NewerSpeedsKeepTheShareOfHdr) {
  EXPECT_NEAR(infiniband("ndr").gbps(), 393.5, 0.1);
  EXPECT_NEAR(infiniband("xdr").gbps(), 787.0, 0.1);
}

TEST(InfinibandLaw, HeadersWeighMoreOnSmallPackets) {
  EXPECT_NEAR(infiniband("hdr", "256 B").law.efficiency(), 256.0 / 282 * 0.99, 1e-12);
}

TEST(InfinibandLaw, MissingAndImpossibleFactsAreReported) {
  EXPECT_EQ(test_link(kInfinibandLink, R"("class": "infiniband")").problems.size(), 2u);
  EXPECT_EQ(infiniband("hdr100").problem(), R"("hdr100" is not an InfiniBand speed)");
  EXPECT_EQ(infiniband("hdr", "8 KiB").problem(), "an InfiniBand packet carries at most 4 KiB");
}

}  // namespace
}  // namespace weft
