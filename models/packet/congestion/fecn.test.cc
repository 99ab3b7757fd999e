// SPDX-License-Identifier: Apache-2.0
#include <memory>

#include <gtest/gtest.h>

#include "models/packet/congestion/catalog.hpp"
#include "models/packet/packet_engine.hpp"

namespace weft::packet {
namespace {

constexpr SenderFacts kFacts{{100'000'000'000}, {10'000'000}, 4096, {0}};

double gbps(CongestionControl& control, Time now) {
  return static_cast<double>(control.rate(now).bps) * 1e-9;
}

TEST(Fecn, EachBecnMovesTheSenderOneEntryAlongItsTable) {
  const auto control = kFecn.make(kFacts, {});
  EXPECT_DOUBLE_EQ(gbps(*control, 0_us), 100);
  control->on_cnp(1_us);
  EXPECT_NEAR(gbps(*control, 1_us), 100 / 1.125, 1e-6);
  for (int i = 0; i < 7; ++i) control->on_cnp(2_us);
  EXPECT_NEAR(gbps(*control, 2_us), 50, 1e-6);
  for (int i = 0; i < 1000; ++i) control->on_cnp(3_us);
  EXPECT_NEAR(gbps(*control, 3_us), 100 / (1 + 127 / 8.0), 1e-6);
}

TEST(Fecn, EachTimerMovesItBack) {
  const auto control = kFecn.make(kFacts, {});
  for (int i = 0; i < 8; ++i) control->on_cnp(1_us);
  EXPECT_NEAR(gbps(*control, 153_us), 50, 1e-6);
  EXPECT_NEAR(gbps(*control, 154_us), 100 / (1 + 7 / 8.0), 1e-6);
  EXPECT_NEAR(gbps(*control, 3 * 154_us), 100 / (1 + 5 / 8.0), 1e-6);
  EXPECT_DOUBLE_EQ(gbps(*control, 10_ms), 100);
  control->on_cnp(10_ms);  // what is beyond the first entry is not saved up
  EXPECT_NEAR(gbps(*control, 10_ms), 100 / 1.125, 1e-6);
}

TEST(Fecn, FirstAndLastEntryAreWhatTheManagerSets) {
  CongestionSpec spec;
  spec.fecn = FecnSpec{.increase = 4, .limit = 10, .least = 2, .step = 0.5};
  const auto control = kFecn.make(kFacts, spec);
  EXPECT_NEAR(gbps(*control, 0_us), 50, 1e-6);
  control->on_cnp(1_us);
  EXPECT_NEAR(gbps(*control, 1_us), 25, 1e-6);
  for (int i = 0; i < 9; ++i) control->on_cnp(1_us);
  EXPECT_NEAR(gbps(*control, 1_us), 100 / 6.0, 1e-6);
  EXPECT_NEAR(gbps(*control, 100_ms), 50, 1e-6);
}

// a, b -> s -> t -> d: the port to d is the root of congestion; the port from s to t only waits for its buffer.
TEST(Fecn, OnlyTheRootOfCongestionMarks) {
  for (const bool roots : {true, false}) {
    Engine engine({});
    const std::uint32_t s = engine.add_node({}), t = engine.add_node({});
    const std::uint32_t d = engine.add_node({.endpoint = true});
    const auto cable = [&](std::uint32_t from, std::uint32_t to, Bandwidth wire, Guard there) {
      PortSpec port;
      port.from = from;
      port.to = to;
      port.wire = wire;
      port.delay = 500_ns;
      port.guard = there;
      port.credit = 64 * 4096;
      port.ecn = {16 * 4096, 16 * 4096 + 1, 1, roots};
      const std::uint32_t p = engine.add_port(port);
      std::swap(port.from, port.to);
      port.guard = there == Guard::credit ? Guard::endpoint : Guard::credit;
      engine.join(p, engine.add_port(port));
      return p;
    };
    std::uint32_t up[2];
    for (std::uint32_t& each : up)
      each = cable(engine.add_node({.endpoint = true}), s, 100_Gbps, Guard::credit);
    const std::uint32_t trunk = cable(s, t, 400_Gbps, Guard::credit);
    const std::uint32_t root = cable(t, d, 50_Gbps, Guard::endpoint);
    engine.finish_build();
    for (const std::uint32_t each : up) {
      FlowSpec flow;
      flow.bytes = 4'000'000;
      flow.path = engine.add_path({each, trunk, root}, 2);
      flow.back = engine.add_path(
          {engine.spec(root).reverse, engine.spec(trunk).reverse, engine.spec(each).reverse});
      flow.label = flow.tag = each;
      engine.start(std::move(flow), Time{0});
    }
    while (engine.next_event() < 1_s) {
      engine.run(1_s);
      engine.ended().clear();
    }
    EXPECT_EQ(engine.counters().delivered, 8'000'000);
    EXPECT_GT(engine.stats(root).marks, 1000U);
    if (roots) {
      EXPECT_LT(engine.stats(trunk).marks, engine.stats(root).marks / 10);
    } else {
      EXPECT_GT(engine.stats(trunk).marks, engine.stats(root).marks / 2);
    }
  }
}

}  // namespace
}  // namespace weft::packet
