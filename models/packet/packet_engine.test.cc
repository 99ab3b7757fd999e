// SPDX-License-Identifier: Apache-2.0
#include "models/packet/packet_engine.hpp"

#include <utility>
#include <vector>

#include <gtest/gtest.h>

namespace weft::packet {
namespace {

// a - s = t - b: two hosts, two switches, two parallel links between them.
struct TwoWays {
  explicit TwoWays(EngineOptions options, std::int64_t buffer = 0) : engine(std::move(options)) {
    const std::uint32_t a = engine.add_node({.endpoint = true});
    const std::uint32_t b = engine.add_node({.endpoint = true});
    NodeSpec node;
    node.buffer = buffer;
    const std::uint32_t s = engine.add_node(node), t = engine.add_node(node);
    const std::uint32_t up = link(a, s, true, false), down = link(t, b, false, true);
    way[0] = link(s, t, false, false);
    way[1] = link(s, t, false, false);
    engine.finish_build();
    const std::uint32_t back = engine.spec(way[0]).reverse;
    there = engine.add_path(
        {{up, 1, 2, false}, {way[0], 3, 1, false}, {way[1], 3, 1, false}, {down, 0, 0, true}}, 1);
    here = engine.add_path({engine.spec(down).reverse, back, engine.spec(up).reverse});
  }

  // The number of packets over each way, when all has ended.
  std::pair<std::uint64_t, std::uint64_t> run(Bandwidth cap, Recovery recovery) {
    FlowSpec flow;
    flow.bytes = 400 * 4096;
    flow.path = there;
    flow.back = here;
    flow.cap = cap;
    flow.label = 7;
    flow.recovery = recovery;
    flow.timeout = 1_ms;
    engine.start(std::move(flow), Time{0});
    while (engine.ended().empty() && engine.next_event() < 1_s) engine.run(1_s);
    return {engine.stats(way[0]).packets, engine.stats(way[1]).packets};
  }

  std::uint32_t link(std::uint32_t from, std::uint32_t to, bool host_from, bool host_to) {
    PortSpec spec;
    spec.from = from;
    spec.to = to;
    spec.wire = 100_Gbps;
    spec.delay = 500_ns;
    spec.guard = host_to ? Guard::endpoint : Guard::drop;
    const std::uint32_t port = engine.add_port(spec);
    std::swap(spec.from, spec.to);
    spec.guard = host_from ? Guard::endpoint : Guard::drop;
    engine.join(port, engine.add_port(spec));
    return port;
  }

  Engine engine;
  Path there, here;
  std::uint32_t way[2];
};

EngineOptions flowlets(Time gap) {
  EngineOptions options;
  options.spread = Spread::flowlet;
  options.flowlet_gap = gap;
  return options;
}

TEST(Flowlets, KeepTheirWayWithoutAGap) {
  const auto [first, second] = TwoWays(flowlets(50_us)).run(1_Gbps, Recovery::none);
  EXPECT_EQ(first + second, 400u);
  EXPECT_TRUE(first == 0 || second == 0);
}

TEST(Flowlets, ChangeItAfterOne) {
  // A packet of 4 KiB every 32.8 us.
  const auto [first, second] = TwoWays(flowlets(20_us)).run(1_Gbps, Recovery::none);
  EXPECT_EQ(first + second, 400u);
  EXPECT_GT(first, 150u);
  EXPECT_GT(second, 150u);
}

// Sprayed packets overtake each other; to a receiver in order they are lost. Tries take other ways than the ones before.
TEST(Spray, UnderGoBackNComesToAnEnd) {
  EngineOptions options;
  options.spread = Spread::spray;
  TwoWays ways(options);
  ways.engine.set_wire(ways.way[1], 10_Gbps, Time{0});
  ways.run(Bandwidth{0}, Recovery::go_back_n);
  ASSERT_EQ(ways.engine.ended().size(), 1u);
  EXPECT_GT(ways.engine.counters().naks, 0u);
  ways.engine.check_conservation();
}

// Two planes of different speed from the sender itself: each takes the next packet when it is free, to the last one. The delay is
// long, so that each port would otherwise learn of its turns late.
TEST(Planes, ShareAFlowPacketByPacket) {
  for (std::int64_t packets = 290; packets < 310; ++packets) {
    Engine engine{EngineOptions{}};
    const std::uint32_t a = engine.add_node({.endpoint = true});
    const std::uint32_t b = engine.add_node({.endpoint = true});
    const Bandwidth wire[2] = {100_Gbps, 37_Gbps};
    std::vector<PathHop> ways;
    for (std::uint32_t i = 0; i < 2; ++i) {
      PortSpec spec;
      spec.from = a;
      spec.to = engine.add_node({});
      spec.wire = wire[i];
      spec.delay = i == 0 ? 3_us : 10_us;
      spec.guard = Guard::credit;
      spec.credit = 1 << 20;
      ways.push_back({engine.add_port(spec), 2 + i, 1, false});
      spec.from = spec.to;
      spec.to = b;
      spec.wire = 400_Gbps;
      spec.guard = Guard::endpoint;
      engine.add_port(spec);
    }
    engine.finish_build();
    ways.push_back({1, 0, 0, false});
    ways.push_back({3, 0, 0, false});
    FlowSpec flow;
    flow.bytes = packets * 4096;
    flow.ack_every = 0;
    flow.path = engine.add_path(ways, 2);
    engine.start(std::move(flow), Time{0});
    engine.run(1_s);
    ASSERT_EQ(engine.ended().size(), 1u);
    std::uint64_t taken[2] = {0, 0};
    Time free[2] = {Time{0}, Time{0}};
    for (std::int64_t k = 0; k < packets; ++k) {
      const int i = free[1] < free[0] ? 1 : 0;
      ++taken[i];
      free[i] += transfer_time(4_KiB, wire[i]);
    }
    EXPECT_EQ(engine.stats(0).packets, taken[0]) << packets;
    EXPECT_EQ(engine.stats(2).packets, taken[1]) << packets;
  }
}

}  // namespace
}  // namespace weft::packet
