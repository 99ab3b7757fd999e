// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "calibrate/import/nccl_xml.hpp"

namespace weft {
namespace {

// Hundreds of Mb/s of a lane, by the two families of spelling that NCCL knows.
TEST(NcclLaneSpeed, IsByPrefixAndGenerationThreeForTheRest) {
  EXPECT_EQ(nccl_lane_speed("2.5 GT/s"), 15);
  EXPECT_EQ(nccl_lane_speed("5 GT/s"), 30);
  EXPECT_EQ(nccl_lane_speed("5.0 GT/s PCIe"), 30);
  EXPECT_EQ(nccl_lane_speed("8 GT/s"), 60);
  EXPECT_EQ(nccl_lane_speed("16 GT/s PCIe"), 120);
  EXPECT_EQ(nccl_lane_speed("32.0 GT/s PCIe"), 240);
  EXPECT_EQ(nccl_lane_speed("64.0 GT/s PCIe"), 480);
  for (const char* text : {"32.0 GT/s", "16.0 GT/s", "", "Unknown"})
    EXPECT_EQ(nccl_lane_speed(text), 60) << text;
}

TEST(LinkSpeed, IsTheNumberOfAGeneration) {
  for (const char* text : {"32.0 GT/s", "32 GT/s", "32.0 GT/s PCIe", " 32"})
    EXPECT_EQ(parse_link_speed(text), 32) << text;
  EXPECT_EQ(parse_link_speed("2.5 GT/s PCIe"), 2.5);
  for (const char* text : {"", "Unknown", "0 GT/s", "12 GT/s", "32 GB/s", "inf"})
    EXPECT_FALSE(parse_link_speed(text)) << text;
}

TEST(PcieGeneration, FollowsTheSpeedOfALane) {
  EXPECT_EQ(pcie_generation(2.5), 1);
  EXPECT_EQ(pcie_generation(64), 6);
  EXPECT_EQ(pcie_generation(20), 0);
}

}  // namespace
}  // namespace weft
