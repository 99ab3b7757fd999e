// SPDX-License-Identifier: Apache-2.0
#include "models/link/ethernet.hpp"

#include "models/link/law.test.hpp"
#include "models/link/slingshot.hpp"

namespace weft {
namespace {

TestedLink ethernet(const std::string& transport, const std::string& rate, const std::string& mtu) {
  return test_link(kEthernetLink, R"("class": "ethernet", "transport": ")" + transport +
                                      R"(", "rate": ")" + rate + R"(", "mtu": ")" + mtu + R"(")");
}

TEST(EthernetLaw, FrameIsThirtyEightBytesAroundItsContents) {
  for (const char* transport : {"raw", "tcp", "iwarp"}) {
    const LinkLaw law = ethernet(transport, "100 Gb/s", "9000 B").law;
    EXPECT_EQ(law.payload + law.overhead, 9038_B) << transport;
  }
  const LinkLaw roce = ethernet("roce", "100 Gb/s", "4 KiB").law;
  EXPECT_EQ(roce.payload, 4_KiB);
  EXPECT_EQ(roce.overhead, 82_B);
}

TEST(EthernetLaw, HigherTransportsDeliverLess) {
  double last = 1;
  for (const char* transport : {"raw", "tcp", "iwarp"}) {
    const double efficiency = ethernet(transport, "100 Gb/s", "9000 B").law.efficiency();
    EXPECT_LT(efficiency, last) << transport;
    last = efficiency;
  }
  EXPECT_NEAR(ethernet("tcp", "100 Gb/s", "9000 B").gbps(), 99.00, 0.01);
  EXPECT_NEAR(ethernet("tcp", "100 Gb/s", "1500 B").gbps(), 94.15, 0.01);
  EXPECT_NEAR(ethernet("iwarp", "100 Gb/s", "9000 B").gbps(), 97.99, 0.01);
}

// Measured: ib_write_bw of 64 KiB, one queue pair: 92.40 Gb/s on a 100 Gb/s and 368.48 on a 400 Gb/s adapter. The first tool
// output says 4096 B, which the law puts at 98.0 (5.7 % more); both agree with a path MTU of 1024 B to 0.6 %.
TEST(EthernetLaw, RoceWritesMeasureWhatOneKibibytePacketsDeliver) {
  EXPECT_NEAR(ethernet("roce", "100 Gb/s", "4 KiB").gbps(), 98.04, 0.01);
  EXPECT_NEAR(ethernet("roce", "100 Gb/s", "1 KiB").gbps() / 92.40, 1, 0.005);
  EXPECT_NEAR(ethernet("roce", "400 Gb/s", "1 KiB").gbps() / 368.48, 1, 0.006);
}

TEST(EthernetLaw, MissingAndImpossibleFactsAreReported) {
  EXPECT_EQ(test_link(kEthernetLink, R"("class": "ethernet")").problems.size(), 2u);
  EXPECT_EQ(ethernet("roce", "100 Gb/s", "9000 B").problem(), "RoCE's path MTU is at most 4 KiB");
  EXPECT_EQ(ethernet("tcp", "100 Gb/s", "52 B").problem(),
            "an mtu of 52 B leaves no room for data");
}

TEST(SlingshotLaw, PacketsOfTwoKibibytesDeliverNinetySevenPercent) {
  const TestedLink link =
      test_link(kSlingshotLink, R"("class": "slingshot", "rate": "200 Gb/s", "mtu": "2 KiB")");
  EXPECT_NEAR(link.gbytes(), 24.265, 0.001);
}

}  // namespace
}  // namespace weft
