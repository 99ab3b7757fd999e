// SPDX-License-Identifier: Apache-2.0
// A receiver-driven scheme over a network of NICs and switches: what is trimmed is told to the sender, once.
#include <gtest/gtest.h>

#include "tests/support/tiny.hpp"

namespace weft {
namespace {

TEST(Trimming, AnIncastEndsWithoutATimeout) {
  test::TinyOptions options;
  options.servers = 4;
  options.network = test::leaf_spine(2, 2);
  options.network_class = "ethernet";
  const Report report = test::run(
      test::fabric_from("gpu g -- 400 Gb/s, 0 ns -- nic n", options),
      R"("fidelity": "packet", "workload": {"pattern": "incast", "size": "1 MB"}, "models": {"packet": {
           "congestion_control": "receiver", "pfc": {"enabled": false}, "buffer": "20 KB"}})");
  EXPECT_GT(report.network.dropped_bytes, 0) << "of the packets that were trimmed";
  EXPECT_GT(report.network.retransmitted, 0U);
  EXPECT_EQ(report.network.timeouts, 0U);
  // Three senders share one link.
  EXPECT_LT(report.jobs.front().slowdown.most, 3.5);
  EXPECT_LT(report.network.control_hops, 3 * report.network.packet_hops);
}

}  // namespace
}  // namespace weft
