// SPDX-License-Identifier: Apache-2.0
// A link that goes down in mid-run: what is lost or waits until traffic takes another way, at both levels.
#include <algorithm>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "sim/core/check.hpp"
#include "sim/core/diagnostics.hpp"
#include "tests/support/tiny.hpp"

namespace weft {
namespace {

Fabric two_spines(const std::string& network_class = "ethernet") {
  test::TinyOptions options;
  options.servers = 8;
  options.network = test::leaf_spine(4, 2);
  options.network_class = network_class;
  return test::fabric_from("gpu g -- 400 Gb/s, 0 ns -- nic n", options);
}

constexpr const char* kFlow =
    R"("jobs": [{"name": "job", "flows": [{"src": "server0/g", "dst": "server4/g", "size": "50 MB"}]}])";

std::string at(std::string_view level, const std::string& jobs, const std::string& faults = {}) {
  return fmt::format(
      R"("fidelity": "{}", "observe": {{"top": 1000}}, "models": {{"packet": {{"congestion_control": "none"}}}}, {}{}{})",
      level, jobs, faults.empty() ? "" : R"(, "faults": )", faults);
}

// The link from the first leaf to a spine that the flow takes.
std::string uplink(const Fabric& fabric) {
  for (const LinkReport& link : test::run(fabric, at("fluid", kFlow)).links) {
    if (link.id.starts_with("leaf0:spine")) return link.id;
  }
  return {};
}

std::string down(const std::string& link, const std::string& more) {
  return fmt::format(R"([{{"target": "{}", "do": "down", "at": "1 ms"{}}}])", link, more);
}

constexpr const char* kReroute = R"(, "detect": "200 us", "reroute": "300 us")";

TEST(Reroute, FluidFlowsWaitForIt) {
  const Fabric fabric = two_spines();
  const Report healthy = test::run(fabric, at("fluid", kFlow));
  const Report broken = test::run(fabric, at("fluid", kFlow, down(uplink(fabric), kReroute)));
  EXPECT_NEAR(broken.time_s - healthy.time_s, 500e-6, 1e-9);
  // What had gone over the first spine stays there, the rest takes the other.
  double over[2] = {0, 0};
  for (const LinkReport& link : broken.links) {
    if (link.id.starts_with("leaf0:spine")) over[link.id == uplink(fabric) ? 0 : 1] += link.bytes;
  }
  EXPECT_NEAR(over[0], 12.5e6, 1e3);
  EXPECT_NEAR(over[0] + over[1], 50e6, 1);
}

TEST(Reroute, PacketsSentMeanwhileAreLostAndComeAgain) {
  for (const char* network_class : {"ethernet", "infiniband"}) {
    SCOPED_TRACE(network_class);
    const Fabric fabric = two_spines(network_class);
    const Report healthy = test::run(fabric, at("packet", kFlow));
    const Report broken = test::run(fabric, at("packet", kFlow, down(uplink(fabric), kReroute)));
    // Half a millisecond at 12.5 GB/s, and what was on the wire.
    const auto lost = static_cast<double>(broken.network.dropped_bytes);
    EXPECT_NEAR(lost, 6.25e6, 0.02 * 6.25e6);
    EXPECT_EQ(healthy.network.dropped_bytes, 0);
    EXPECT_EQ(broken.flows[0].seen.dropped, broken.network.dropped_bytes);
    EXPECT_GE(static_cast<double>(broken.flows[0].seen.retransmitted), lost);
    EXPECT_NEAR(broken.time_s - healthy.time_s, 500e-6, 20e-6);
  }
}

TEST(Reroute, AnOutageThatEndsIsLeftAgain) {
  const Fabric fabric = two_spines();
  const std::string fault = down(uplink(fabric), std::string(R"(, "until": "2 ms")") + kReroute);
  for (const char* level : {"fluid", "packet"}) {
    SCOPED_TRACE(level);
    const Report broken = test::run(fabric, at(level, kFlow, fault));
    EXPECT_NEAR(broken.time_s, 50e6 / 12.5e9 + 500e-6, 40e-6);
    double back = 0;
    for (const LinkReport& link : broken.links) {
      if (link.id == uplink(fabric)) back = link.bytes;
    }
    // 1 ms before, and again from 0.5 ms after the repair to the end at 4.5 ms.
    EXPECT_NEAR(back, 12.5e6 + 2e-3 * 12.5e9, 0.1 * 37.5e6);
  }
}

// Everybody crosses the fabric; credits and PFC must not keep what was lost.
TEST(Reroute, CrowdsGetThroughAndTheSameSeedSaysTheSame) {
  const std::string jobs =
      R"("jobs": [{"name": "shuffle", "pattern": "all_to_all", "gpus": 4, "placement": {"policy": "random"}, "size": "1 MB"},
         {"name": "reduce", "collective": "all_reduce", "algorithm": "ring", "expand": true, "size": "8 MB", "start": "700 us"}])";
  for (const char* network_class : {"ethernet", "infiniband"}) {
    const Fabric fabric = two_spines(network_class);
    const std::string faults =
        R"([{"target": "leaf0:spine0", "do": "down", "at": "100 us", "until": "900 us", "detect": "50 us", "reroute": "50 us"},
            {"target": "leaf1:spine1", "do": "down", "at": "1200 us", "reroute": "80 us"}])";
    for (const char* level : {"analytic", "fluid", "packet"}) {
      SCOPED_TRACE(fmt::format("{} {}", network_class, level));
      const Report one = test::run(fabric, at(level, jobs, faults));
      EXPECT_EQ(one.fingerprint, test::run(fabric, at(level, jobs, faults)).fingerprint);
      for (const FlowReport& flow : one.flows) EXPECT_GT(flow.finish_s, flow.start_s);
    }
  }
}

TEST(Reroute, WithoutAnotherWayIsRefused) {
  const Fabric fabric = two_spines();
  try {
    test::run(fabric, at("fluid", kFlow, down("server0/n:leaf0", kReroute)));
    FAIL();
  } catch (const InputError& error) {
    EXPECT_THAT(error.what(), testing::HasSubstr("no way around it: server0/g cannot reach"));
  }
}

}  // namespace
}  // namespace weft
