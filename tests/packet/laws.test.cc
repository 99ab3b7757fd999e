// SPDX-License-Identifier: Apache-2.0
// What the packet engine must do by itself: closed forms, shares, loss and its recovery, deadlock. Each plan also runs on the
// naive engine.
#include <algorithm>
#include <set>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "tests/packet/plan.hpp"

namespace weft::test {
namespace {

using packet::Guard;
using packet::kControlBytes;
using packet::PortSpec;
using packet::Recovery;

Outcome run_both(const Plan& plan, std::vector<std::uint32_t>* cycle = nullptr) {
  std::size_t live = 0;
  const Outcome engine = run_engine(plan, cycle, &live);
  EXPECT_EQ(differences(engine, run_reference(plan)), "");
  if (cycle == nullptr) {
    EXPECT_EQ(live, 0U) << "packets left in the network";
  }
  return engine;
}

PlannedFlow flow_over(const std::vector<std::uint32_t>& ports, std::int64_t bytes) {
  PlannedFlow flow;
  flow.spec.bytes = bytes;
  flow.spec.ack_every = 0;
  flow.path = way(ports);
  return flow;
}

std::int64_t on_wire(const PortSpec& port, std::int64_t bytes) {
  if (port.payload == 0) return bytes;
  return bytes + (bytes + port.payload - 1) / port.payload * port.overhead;
}

// Store and forward: packet k leaves a port when it is there and packet k-1 has left.
Time store_and_forward(const Plan& plan, const std::vector<std::uint32_t>& ports,
                       std::int64_t bytes) {
  std::vector<Time> free_at(ports.size(), Time{0});
  Time last{0};
  for (std::int64_t sent = 0; sent < bytes; sent += plan.options.grain) {
    Time at{0};
    for (std::size_t i = 0; i < ports.size(); ++i) {
      const PortSpec& port = plan.ports[ports[i]];
      const std::int64_t size = std::min<std::int64_t>(plan.options.grain, bytes - sent);
      free_at[i] = std::max(at, free_at[i]) + transfer_time(Bytes{on_wire(port, size)}, port.wire);
      at = free_at[i] + port.delay + port.processing;
    }
    last = at;
  }
  return last;
}

TEST(LoneFlow, IsTheClosedFormPacketByPacketOverOneToSixHops) {
  constexpr std::int64_t kRates[] = {100'000'000'000, 25'781'250'000,  400'000'000'000,
                                     3'000'000'007,   200'000'000'000, 1'234'567'891};
  constexpr std::int64_t kPayloads[] = {4096, 256, 0, 1024, 512, 4096};
  for (std::uint32_t hops = 1; hops <= 6; ++hops) {
    for (const std::int64_t bytes : {1L, 4095L, 4096L, 4097L, 1'000'003L}) {
      Plan plan;
      std::vector<std::uint32_t> ports;
      std::uint32_t at = plan.add_node({.endpoint = true});
      for (std::uint32_t i = 0; i < hops; ++i) {
        const std::uint32_t next = plan.add_node({.endpoint = i + 1 == hops});
        PortSpec port;
        port.wire = Bandwidth{kRates[i]};
        port.payload = kPayloads[i];
        port.overhead = port.payload > 0 ? 26 : 0;
        port.delay = Time{517'003 + i};
        port.processing = Time{i * 99'991};
        ports.push_back(plan.add_cable(at, next, port));
        at = next;
      }
      plan.flows.push_back(flow_over(ports, bytes));
      EXPECT_EQ(run_both(plan).flows[0].finish, store_and_forward(plan, ports, bytes))
          << hops << " hops, " << bytes << " bytes";
    }
  }
}

TEST(LoneFlow, CutsThroughBehindTheHeader) {
  for (std::int64_t hops = 1; hops <= 6; ++hops) {
    Plan plan;
    std::vector<std::uint32_t> ports;
    std::uint32_t at = plan.add_node({.endpoint = true});
    for (std::int64_t i = 0; i < hops; ++i) {
      const std::uint32_t next = plan.add_node({.endpoint = i + 1 == hops});
      PortSpec port;
      port.wire = 100_Gbps;
      port.delay = 500_ns;
      port.cut_through = true;
      ports.push_back(plan.add_cable(at, next, port));
      at = next;
    }
    plan.flows.push_back(flow_over(ports, 1'000'003));
    const Time header = transfer_time(Bytes{kControlBytes}, 100_Gbps);
    EXPECT_EQ(run_both(plan).flows[0].finish,
              hops * 500_ns + (hops - 1) * header + transfer_time(Bytes{1'000'003}, 100_Gbps));
  }
}

// Sizes beyond 32 bits (S03), with a larger grain.
TEST(LoneFlow, DoesNotOverflow) {
  for (const std::int64_t bytes :
       {(1L << 31) - 1, 1L << 31, 1L << 32, 6'467'616'768L, 12'935'233'536L, 1'000'000'000'000L}) {
    Plan plan;
    plan.options.grain = 16 << 20;
    const std::uint32_t a = plan.add_node({.endpoint = true}), s = plan.add_node();
    const std::uint32_t b = plan.add_node({.endpoint = true});
    PortSpec port;
    port.wire = 100_Gbps;
    port.delay = 1_us;
    const std::vector<std::uint32_t> ports{plan.add_cable(a, s, port), plan.add_cable(s, b, port)};
    plan.flows.push_back(flow_over(ports, bytes));
    const Outcome out = run_engine(plan);
    EXPECT_EQ(out.flows[0].finish, store_and_forward(plan, ports, bytes)) << bytes;
    EXPECT_EQ(out.counters.delivered, bytes);
    EXPECT_EQ(out.ports[ports[1]].bytes, bytes);
  }
}

TEST(EqualFlows, ShareALinkAndEndWithinOnePercent) {
  for (const int n : {2, 3, 7}) {
    Plan plan;
    const std::uint32_t a = plan.add_node({.endpoint = true}),
                        b = plan.add_node({.endpoint = true});
    PortSpec port;
    port.wire = 100_Gbps;
    port.delay = 1_us;
    const std::uint32_t wire = plan.add_cable(a, b, port);
    for (int i = 0; i < n; ++i) plan.flows.push_back(flow_over({wire}, 16 << 20));
    const Outcome out = run_engine(plan);
    const Time expected = 1_us + transfer_time(Bytes{n * (16L << 20)}, 100_Gbps);
    for (const FlowOutcome& flow : out.flows)
      EXPECT_NEAR(flow.finish.seconds(), expected.seconds(), 0.01 * expected.seconds());
  }
}

// min(line rate, credits / round trip), the law of every credit loop.
TEST(Credits, BoundTheRateByBufferOverRoundTrip) {
  for (const std::int64_t packets : {1, 2, 4, 8, 16, 64}) {
    Plan plan;
    const std::uint32_t a = plan.add_node({.endpoint = true}), s = plan.add_node();
    const std::uint32_t b = plan.add_node({.endpoint = true});
    PortSpec port;
    port.wire = 100_Gbps;
    port.delay = 1_us;
    port.guard = Guard::credit;
    port.credit = packets * 4096;
    const std::uint32_t up = plan.add_cable(a, s, port), down = plan.add_cable(s, b, port);
    constexpr std::int64_t kBytes = 4096 * 2000;
    plan.flows.push_back(flow_over({up, down}, kBytes));
    const Outcome out = run_both(plan);
    // A packet's credit comes back after both links have carried it and both delays have passed.
    const Time round_trip = 2 * transfer_time(Bytes{4096}, 100_Gbps) + 2_us;
    const double rate =
        std::min((100_Gbps).bytes_per_s(), static_cast<double>(port.credit) / round_trip.seconds());
    EXPECT_NEAR(kBytes / out.flows[0].finish.seconds(), rate, 0.02 * rate) << packets;
  }
}

TEST(Classes, ShareByWeightAndSaveNoTurns) {
  Plan plan;
  plan.options.classes = 3;
  plan.options.weights = {3, 1};
  const std::uint32_t a = plan.add_node({.endpoint = true}), b = plan.add_node({.endpoint = true});
  PortSpec port;
  port.wire = 100_Gbps;
  const std::uint32_t wire = plan.add_cable(a, b, port);
  // Class 1 alone for a while, then class 2 beside it: from then on 3 to 1.
  plan.flows.push_back(flow_over({wire}, 4096 * 4000));
  plan.flows.push_back(flow_over({wire}, 4096 * 500));
  plan.flows[1].spec.traffic_class = 2;
  plan.flows[1].start = transfer_time(Bytes{4096 * 1000}, 100_Gbps);
  const Outcome out = run_both(plan);
  const Time taken = out.flows[1].finish - plan.flows[1].start;
  EXPECT_NEAR(taken.seconds(), transfer_time(Bytes{4096 * 2000}, 100_Gbps).seconds(), 3e-6);
}

// Two senders to one port at half their sum; with PFC nothing is lost, without it what does not fit is, and is sent again.
Plan incast(Guard guard, Recovery recovery) {
  Plan plan;
  const std::uint32_t s = plan.add_node({.buffer = 200'000, .alpha = 1});
  PortSpec port;
  port.wire = 100_Gbps;
  port.delay = 500_ns;
  port.guard = guard;
  port.xon = 8192;
  port.headroom = 60'000;
  std::vector<std::uint32_t> cables;
  std::vector<std::uint32_t> memories;
  for (int i = 0; i < 3; ++i) {
    const std::uint32_t memory = plan.add_node({.endpoint = true}), nic = plan.add_node();
    PortSpec inside;
    inside.wire = 400_Gbps;
    inside.guard = Guard::credit;
    inside.credit = 65536;
    memories.push_back(plan.add_cable(memory, nic, inside));
    cables.push_back(plan.add_cable(nic, s, port));
  }
  plan.ports[cables[1]].wire =
      73_Gbps;  // else one of them loses every packet, in step with the other
  for (int i = 0; i < 2; ++i) {
    PlannedFlow flow;
    give_way(flow, plan, {memories[i], cables[i], cables[2] + 1, memories[2] + 1}, 1, 1);
    flow.spec.bytes = 4096 * 1000;
    flow.spec.recovery = recovery;
    flow.spec.timeout = 1_ms;
    plan.flows.push_back(std::move(flow));
  }
  return plan;
}

TEST(Loss, NeverHappensUnderPfcWithItsHeadroom) {
  const Outcome out = run_both(incast(Guard::pause, Recovery::none));
  EXPECT_EQ(out.counters.dropped, 0);
  EXPECT_GT(out.ports[2].pauses + out.ports[6].pauses, 0U);
  EXPECT_LT(out.flows[0].finish, Time::never());
  EXPECT_LT(out.flows[1].finish, Time::never());
}

TEST(Loss, IsMendedByGoBackNAndWithFewerRepeatsBySelectiveRepeat) {
  const Outcome back = run_both(incast(Guard::drop, Recovery::go_back_n));
  const Outcome selective = run_both(incast(Guard::drop, Recovery::selective));
  for (const Outcome* out : {&back, &selective}) {
    EXPECT_GT(out->counters.dropped, 0);
    EXPECT_GT(out->counters.naks, 0U);
    EXPECT_EQ(out->counters.delivered, 2 * 4096 * 1000);
    EXPECT_EQ(out->counters.injected,
              out->counters.delivered + out->counters.dropped + out->counters.discarded);
  }
  EXPECT_LT(selective.counters.retransmitted, back.counters.retransmitted);
}

TEST(Loss, OfTheTailIsFoundByTimeout) {
  Plan plan = incast(Guard::drop, Recovery::go_back_n);
  plan.flows.pop_back();
  plan.flows[0].spec.bytes = 4096 * 4;
  plan.nodes[0].buffer =
      4096 * 2;  // of four packets at line rate some are lost, the last among them
  plan.ports[4 * 2 + 1 + 1].wire = 10_Gbps;
  plan.ports[4 * 2 + 1 + 2].wire = 10_Gbps;
  const Outcome out = run_both(plan);
  EXPECT_GT(out.counters.timeouts, 0U);
  EXPECT_GE(out.flows[0].finish, 1_ms);
  EXPECT_EQ(out.counters.delivered, 4096 * 4);
}

// Three switches in a ring, each flow two of its links: all wait for buffer that the next one holds.
TEST(Deadlock, OfARingOfBuffersIsNamed) {
  for (const Guard guard : {Guard::credit, Guard::pause}) {
    Plan plan;
    PortSpec port;
    port.wire = 100_Gbps;
    port.delay = 1_us;
    port.guard = guard;
    port.credit = 4096;
    port.xoff = 4096;
    port.headroom = 1 << 20;
    std::vector<std::uint32_t> ring, hosts;
    for (int i = 0; i < 3; ++i) plan.add_node();
    for (std::uint32_t i = 0; i < 3; ++i) ring.push_back(plan.add_cable(i, (i + 1) % 3, port));
    for (std::uint32_t i = 0; i < 3; ++i)
      hosts.push_back(plan.add_cable(plan.add_node({.endpoint = true}), i, port));
    for (std::uint32_t i = 0; i < 3; ++i) {
      plan.flows.push_back(
          flow_over({hosts[i], ring[i], ring[(i + 1) % 3], hosts[(i + 2) % 3] + 1}, 4096 * 500));
    }
    std::vector<std::uint32_t> cycle;
    const Outcome out = run_both(plan, &cycle);
    for (const FlowOutcome& flow : out.flows) EXPECT_EQ(flow.finish, Time::never());
    EXPECT_EQ(std::set<std::uint32_t>(cycle.begin(), cycle.end()),
              std::set<std::uint32_t>(ring.begin(), ring.end()));
  }
}

}  // namespace
}  // namespace weft::test
