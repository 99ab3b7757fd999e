// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "models/packet/congestion/incast.test.hpp"

namespace weft::packet {
namespace {

// Sixteen senders whose first windows do not fit: 200 kB of buffer, of which one port may fill half.
IncastSpec overload() {
  IncastSpec spec;
  spec.scheme = CongestionScheme::receiver;
  spec.senders = 16;
  spec.guard = Guard::drop;
  spec.buffer = 200'000;
  spec.recovery = Recovery::selective;
  return spec;
}

TEST(Trimming, WhatDoesNotFitIsAskedForAgainWithoutATimeout) {
  Incast run(overload());
  run.run(3_ms);
  const EngineCounters& counted = run.engine().counters();
  EXPECT_GT(run.bottleneck().trims, 100u);
  EXPECT_EQ(counted.retransmitted, run.bottleneck().trims);
  EXPECT_EQ(counted.dropped, static_cast<std::int64_t>(run.bottleneck().trims) * 4096);
  EXPECT_EQ(run.bottleneck().drops, 0u);  // no header was lost
  EXPECT_EQ(counted.timeouts, 0u);
  EXPECT_GT(run.total_share(2), 0.99);
  EXPECT_GT(run.jain(2), 0.99);
  EXPECT_LE(run.queue().most(2), 104'096);
}

TEST(Trimming, EveryFlowEndsAndTheLinkIsNeverIdle) {
  IncastSpec spec = overload();
  spec.bytes = 1'000'000;
  Incast run(spec);
  run.run(1_s);
  EXPECT_EQ(run.finished(), 16u);
  // Payload of all, once; the first packet's way; at most one idle round trip at the end of the pulls.
  const Time least = transfer_time(Bytes{16'000'000}, spec.rate) + 2 * spec.delay;
  EXPECT_GE(run.last_end(), least);
  EXPECT_LE(run.last_end(), least + Time{least.ps / 50} + 2 * run.facts().base_rtt);
}

TEST(Trimming, WithoutItTheSameOverloadLosesPackets) {
  IncastSpec spec = overload();
  spec.scheme = CongestionScheme::none;
  Incast run(spec);
  run.run(1_ms);
  EXPECT_EQ(run.bottleneck().trims, 0u);
  EXPECT_GT(run.bottleneck().drops, 100u);
}

TEST(Trimming, AWindowOfOnePacketIsStillPulledAtTheRateOfItsRoundTrip) {
  IncastSpec spec = overload();
  spec.senders = 1;
  spec.parameters.receiver.emplace().initial_window = 1;
  Incast run(spec);
  run.run(4_ms);
  const double packet = 8.0 * spec.grain / 100e9;
  EXPECT_NEAR(run.share(0, 2), packet / run.facts().base_rtt.seconds(), 0.02 * packet / 5e-6);
  EXPECT_EQ(run.bottleneck().trims, 0u);
}

}  // namespace
}  // namespace weft::packet
