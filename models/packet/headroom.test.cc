// SPDX-License-Identifier: Apache-2.0
#include "models/packet/headroom.hpp"

#include <gtest/gtest.h>

namespace weft::packet {
namespace {

// Added by hand: 4178 + (4178 + 64 + 2 x 100 m x 5 ns/m x 50 GB/s + 0.2 us x 50 GB/s + 905 x 64) x 3
TEST(Headroom, AddsUpWhatStillArrives) {
  HeadroomFacts facts;
  facts.rate = 400_Gbps;
  facts.delay = cable_delay(100);
  facts.phy = 200_ns;
  facts.response = longest_response(facts.rate);
  facts.lossless_mtu = 4178;
  facts.port_mtu = 4178 + 64;
  facts.cell_use = 3;
  EXPECT_EQ(headroom(facts), 4178 + (4242 + 50'000 + 10'000 + 57'920) * 3);
}

TEST(Headroom, QuantaAreOfTheStandard) {
  EXPECT_EQ(pause_quanta(100_Gbps), 394);
  EXPECT_EQ(pause_quanta(200_Gbps), 453);
  EXPECT_EQ(pause_quanta(400_Gbps), 905);
  EXPECT_EQ(pause_quanta(800_Gbps), 905);
  EXPECT_EQ(pause_quanta(1_Gbps), 67);
  EXPECT_EQ(longest_response(100_Gbps).ps, 394 * 64 * 80);
}

TEST(Headroom, CellsOfSmallPacketsAreMostlyEmpty) {
  EXPECT_DOUBLE_EQ(worst_cell_use(1, 64), 1);
  EXPECT_DOUBLE_EQ(worst_cell_use(254, 84), 254.0 / 84);  // Tomahawk 4 and 5
  EXPECT_DOUBLE_EQ(worst_cell_use(192, 64), 3);           // Spectrum-4
  EXPECT_DOUBLE_EQ(worst_cell_use(144, 64), 2.25);        // Spectrum-2
  // One byte beyond a cell takes two; that is worse where the smallest packet nearly fills its cell.
  EXPECT_DOUBLE_EQ(worst_cell_use(64, 60), 128.0 / 65);
  EXPECT_DOUBLE_EQ(worst_cell_use(96, 64), 192.0 / 97);
}

TEST(Headroom, FiveNanosecondsPerMetre) { EXPECT_EQ(cable_delay(40), 200_ns); }

}  // namespace
}  // namespace weft::packet
