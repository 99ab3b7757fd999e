// SPDX-License-Identifier: Apache-2.0
// Thresholds of the shared buffer by hand: senders of 100 Gb/s into one switch, whose port to the receiver has 25 Gb/s.
#include <memory>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "models/packet/packet_engine.hpp"

namespace weft::packet {
namespace {

constexpr std::int64_t kPacket = 4096;

struct Crowd {
  NodeSpec node = {};
  PortSpec up = {};
  EngineOptions options = {};
  int senders = 1;

  // When `bytes` of every sender have arrived or are lost.
  std::unique_ptr<Engine> run(std::int64_t bytes) {
    auto made = std::make_unique<Engine>(options);
    Engine& engine = *made;
    const std::uint32_t hub = engine.add_node(node);
    const std::uint32_t receiver = engine.add_node({.endpoint = true});
    const auto cable = [&](PortSpec port, std::uint32_t from, std::uint32_t to) {
      port.from = from;
      port.to = to;
      const std::uint32_t there = engine.add_port(port);
      std::swap(port.from, port.to);
      port.guard = Guard::endpoint;
      engine.join(there, engine.add_port(port));
      return there;
    };
    PortSpec down;
    down.wire = 25_Gbps;
    egress = cable(down, hub, receiver);
    up.wire = 100_Gbps;
    ingress.clear();
    for (int i = 0; i < senders; ++i)
      ingress.push_back(cable(up, engine.add_node({.endpoint = true}), hub));
    engine.finish_build();
    for (const std::uint32_t in : ingress) {
      FlowSpec flow;
      flow.bytes = bytes;
      flow.path = engine.add_path({in, egress}, 1);
      flow.back = engine.add_path({engine.spec(egress).reverse, engine.spec(in).reverse});
      flow.label = flow.tag = in;
      engine.start(std::move(flow), Time{0});
    }
    while (engine.next_event() < 1_s) {
      engine.run(1_s);
      engine.ended().clear();
    }
    engine.check_conservation();
    return made;
  }

  std::uint32_t egress = 0;
  std::vector<std::uint32_t> ingress;
};

PortSpec lossless() {
  PortSpec port;
  port.guard = Guard::pause;
  port.headroom = 16 * kPacket;
  return port;
}
PortSpec lossy() {
  PortSpec port;
  port.guard = Guard::drop;
  return port;
}

// One port holds Q = alpha (B - Q), so alpha / (1 + alpha) of the buffer (Choudhury and Hahne, 1998).
TEST(SharedBuffer, OneQueueHoldsAlphaOfWhatItLeaves) {
  for (const double alpha : {0.25, 1.0, 4.0}) {
    Crowd crowd{.node = {.buffer = 1000 * kPacket, .alpha = alpha}, .up = lossy()};
    const auto engine = crowd.run(4000 * kPacket);
    const double share = alpha / (1 + alpha) * 1000 * kPacket;
    EXPECT_GT(engine->stats(crowd.egress).drops, 0U);
    EXPECT_NEAR(engine->stats(crowd.egress).peak_queue, share, 2 * kPacket) << alpha;
  }
}

// Two paused ingress ports hold alpha / (1 + 2 alpha) each; what still arrives behind PAUSE is in the headroom.
TEST(SharedBuffer, PausedPortsShareIt) {
  for (const int senders : {1, 2, 4}) {
    Crowd crowd{.node = {.buffer = 1000 * kPacket, .alpha = 0.5}, .up = lossless()};
    crowd.senders = senders;
    const auto engine = crowd.run(1000 * kPacket);
    EXPECT_EQ(engine->counters().dropped, 0);
    for (const std::uint32_t in : crowd.ingress) EXPECT_GT(engine->stats(in).pauses, 0U);
    const double all = senders * 0.5 / (1 + senders * 0.5) * 1000 * kPacket;
    EXPECT_NEAR(engine->stats(crowd.egress).peak_queue, all, 4 * senders * kPacket) << senders;
  }
}

TEST(SharedBuffer, AFixedThresholdIsBesideTheReserve) {
  for (const std::int64_t reserve : {0L, 10 * kPacket}) {
    Crowd crowd{.up = lossless()};
    crowd.up.xoff = 20 * kPacket;
    crowd.up.reserve = reserve;
    const auto engine = crowd.run(400 * kPacket);
    EXPECT_GT(engine->stats(crowd.ingress[0]).pauses, 0U);
    EXPECT_NEAR(engine->stats(crowd.egress).peak_queue, reserve + 20 * kPacket, 4 * kPacket);
  }
}

// XON further below the threshold: longer pauses, fewer of them.
TEST(SharedBuffer, TrafficGoesOnBelowXon) {
  std::uint64_t before = ~std::uint64_t{0};
  for (const std::int64_t xon : {2 * kPacket, 8 * kPacket, 20 * kPacket}) {
    Crowd crowd{.up = lossless()};
    crowd.up.xoff = 40 * kPacket;
    crowd.up.xon = xon;
    const auto engine = crowd.run(1000 * kPacket);
    const std::uint64_t pauses = engine->stats(crowd.ingress[0]).pauses;
    EXPECT_GT(pauses, 1U);
    EXPECT_LT(pauses, before);
    // A cycle drains `xon` at 25 Gb/s net of what arrives: three quarters of the time paused.
    const Time paused = engine->stats(crowd.ingress[0]).paused;
    EXPECT_NEAR(paused.seconds(), 0.75 * engine->now().seconds(), 0.06 * engine->now().seconds());
    before = pauses;
  }
}

// Without room behind PAUSE what is on its way is lost.
TEST(SharedBuffer, NoHeadroomNoLossless) {
  Crowd crowd{.up = lossless()};
  crowd.up.xoff = 20 * kPacket;
  crowd.up.delay = 1_us;
  crowd.up.headroom = 0;
  EXPECT_GT(crowd.run(400 * kPacket)->counters().dropped, 0);
  crowd.up.headroom = 16 * kPacket;
  EXPECT_EQ(crowd.run(400 * kPacket)->counters().dropped, 0);
}

TEST(SharedBuffer, CountsCells) {
  Crowd crowd{.node = {.buffer = 1000 * kPacket}, .up = lossy()};
  crowd.options.cell = 3000;  // a packet takes two
  const auto engine = crowd.run(4000 * kPacket);
  EXPECT_EQ(engine->stats(crowd.egress).peak_queue % 6000, 0U);
  EXPECT_NEAR(engine->stats(crowd.egress).peak_queue, 500.0 * kPacket, 2 * 6000);
}

// Bytes of credit come back when the packet has left, not when it has arrived.
TEST(Credit, NeverMoreThanGrantedIsInside) {
  for (const std::int64_t packets : {1, 3, 10}) {
    Crowd crowd;
    crowd.up.guard = Guard::credit;
    crowd.up.credit = packets * kPacket;
    const auto engine = crowd.run(100 * kPacket);
    EXPECT_EQ(engine->counters().delivered, 100 * kPacket);
    EXPECT_LE(engine->stats(crowd.egress).peak_queue, packets * kPacket);
    EXPECT_GE(engine->stats(crowd.egress).peak_queue, (packets - 1) * kPacket);
    EXPECT_GT(engine->stats(crowd.ingress[0]).stalls, 0U);
  }
}

}  // namespace
}  // namespace weft::packet
