// SPDX-License-Identifier: Apache-2.0
#include <map>

#include <gtest/gtest.h>

#include "models/fluid/fluid_network.hpp"

namespace weft {
namespace {

// Two links of 100 Gb/s side by side.
const std::vector<Bandwidth> kTwoLinks = {100_Gbps, 100_Gbps};

class Rerouted : public testing::TestWithParam<bool> {
 protected:
  FlowRequest request(std::uint32_t link, std::uint64_t tag) {
    FlowRequest out;
    shares_[link] = {{link, 1}};
    out.shares = shares_[link];
    out.size = 1'250'000_B;  // 100 us alone
    out.tag = tag;
    return out;
  }
  std::map<std::uint64_t, Time> drain() {
    std::map<std::uint64_t, Time> out;
    std::vector<FlowDone> done;
    while (network_.next_event() < Time::never()) {
      network_.advance(network_.next_event(), done);
      for (const FlowDone& flow : done) out[flow.tag] = flow.when;
      done.clear();
    }
    return out;
  }
  void go_to(Time when) {
    std::vector<FlowDone> done;
    network_.next_event();
    network_.advance(when, done);
    EXPECT_TRUE(done.empty());
  }

  std::map<std::uint32_t, std::vector<Share>> shares_;
  FluidNetwork network_{kTwoLinks, {.merge_classes = GetParam()}};
};

// Three share a link until one leaves for the other: by 150 us each has half of its bytes.
TEST_P(Rerouted, WhatIsLeftGoesTheOtherWay) {
  FlowId second;
  for (std::uint64_t tag = 0; tag < 3; ++tag) {
    const FlowId flow = network_.start(request(0, tag), {});
    if (tag == 1) second = flow;
  }
  go_to(150_us);
  network_.reroute(second, request(1, 1), 150_us);
  const auto when = drain();
  EXPECT_NEAR(static_cast<double>(when.at(1).ps), 200e6, 2);
  EXPECT_NEAR(static_cast<double>(when.at(0).ps), 250e6, 2);
  EXPECT_EQ(when.at(0), when.at(2));
  EXPECT_NEAR(network_.carried_bytes(0), 2.5 * 1'250'000, 1);
  EXPECT_NEAR(network_.carried_bytes(1), 0.5 * 1'250'000, 1);
}

TEST_P(Rerouted, AloneItLeavesNothingBehind) {
  const FlowId flow = network_.start(request(0, 5), {});
  go_to(40_us);
  network_.set_capacity(0, {0}, 40_us);
  EXPECT_EQ(network_.next_event(), Time::never());
  network_.reroute(flow, request(1, 5), 60_us);
  const FlowId later = network_.start(request(0, 6), 60_us);
  network_.set_capacity(0, 100_Gbps, 60_us);
  EXPECT_NE(flow, later);
  const auto when = drain();
  EXPECT_NEAR(static_cast<double>(when.at(5).ps), 120e6, 2);
  EXPECT_NEAR(static_cast<double>(when.at(6).ps), 160e6, 2);
}

// Into a class that has others in it, and of a flow that is not its class's first to end.
TEST_P(Rerouted, JoinsThoseThatAreThere) {
  FlowRequest big = request(0, 0);
  big.size = 2'500'000_B;
  const FlowId last = network_.start(big, {});
  network_.start(request(0, 1), {});
  network_.start(request(1, 2), {});
  go_to(50_us);  // 25 us of each on the first link, half of the one on the second
  big = request(1, 0);
  network_.reroute(last, big, 50_us);
  const auto when = drain();
  EXPECT_NEAR(static_cast<double>(when.at(1).ps), 125e6, 2);
  EXPECT_NEAR(static_cast<double>(when.at(2).ps), 150e6, 2);
  EXPECT_NEAR(static_cast<double>(when.at(0).ps), 275e6, 2);
}

TEST_P(Rerouted, WhatHasLeftStaysWhereItIs) {
  FlowRequest slow = request(0, 9);
  slow.latency = 1_ms;
  const FlowId flow = network_.start(slow, {});
  std::vector<FlowDone> done;
  network_.advance(network_.next_event(), done);
  network_.reroute(flow, request(1, 9), 100_us);
  EXPECT_EQ(drain().at(9), 1100_us);
}

INSTANTIATE_TEST_SUITE_P(Merged, Rerouted, testing::Bool());

}  // namespace
}  // namespace weft
