// SPDX-License-Identifier: Apache-2.0
// Sums and multicast in switches: closed forms, bytes on links, windows, buffers. The naive engine does not know trees; in its
// place every random network also runs with all ports looked at after every event, where nothing is made up later, and must do
// the same to the picosecond.
#include <algorithm>
#include <cstdlib>
#include <map>
#include <set>

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <rapidcheck.h>
#include <rapidcheck/gtest.h>

#include "tests/packet/plan.hpp"

namespace weft::test {
namespace {

using packet::CollectiveSpec;
using packet::Engine;
using packet::Guard;
using packet::NodeSpec;
using packet::PortSpec;
using packet::Store;
using packet::SumTo;
using packet::TreeSpec;

constexpr std::int64_t kGrain = 4096;

PortSpec cable(Bandwidth wire, Time delay, Guard guard = Guard::credit) {
  PortSpec port;
  port.wire = wire;
  port.delay = delay;
  port.guard = guard;
  port.credit = 1 << 20;
  port.xon = 2 * kGrain;
  port.headroom = 1 << 20;
  return port;
}

// A tree of switches with members on them; every cable may differ.
struct Network {
  Plan plan;
  TreeSpec tree;
  std::vector<std::uint32_t> switches, members;  // nodes

  std::uint32_t add_switch(NodeSpec node = {}) {
    switches.push_back(plan.add_node(node));
    tree.switches.emplace_back();
    return static_cast<std::uint32_t>(switches.size() - 1);
  }
  std::uint32_t add_below(std::uint32_t parent, const PortSpec& port, NodeSpec node = {}) {
    const std::uint32_t s = add_switch(node);
    const std::uint32_t up = plan.add_cable(switches[s], switches[parent], port);
    tree.switches[s] = {parent, up, up + 1};
    return s;
  }
  void add_member(std::uint32_t at, const PortSpec& port) {
    members.push_back(plan.add_node({.endpoint = true}));
    const std::uint32_t up = plan.add_cable(members.back(), switches[at], port);
    tree.members.push_back({at, {up}, {up + 1}});
  }
};

Network star(int members, const PortSpec& port) {
  Network net;
  net.add_switch();
  for (int m = 0; m < members; ++m) net.add_member(0, port);
  return net;
}

struct Ran {
  std::map<std::uint64_t, Time> ends;  // by tag
  std::vector<packet::PortStats> ports;
  packet::EngineCounters counters;
  std::int64_t held = 0;
  std::size_t live = 0;
};

struct Started {
  CollectiveSpec spec;
  Time start{0};
};

Ran run_net(const Network& net, const std::vector<Started>& collectives,
            const std::vector<PlannedFlow>& flows = {}, bool settled = false) {
  Engine engine(net.plan.options);
  for (const NodeSpec& node : net.plan.nodes) engine.add_node(node);
  for (const PortSpec& port : net.plan.ports) engine.add_port(port);
  engine.finish_build();
  const std::uint32_t tree = engine.add_tree(net.tree);
  Ran out;
  const auto until = [&](Time when) {
    while (engine.next_event() <= when && engine.next_event() < Time::never()) {
      engine.run(when, settled ? 1 : 100'000);
      if (settled) engine.settle();
      for (const packet::FlowEnd& end : engine.ended()) out.ends[end.tag] = end.when;
      engine.ended().clear();
      EXPECT_LT(engine.counters().alarms, 5'000'000U);
    }
  };
  for (std::size_t i = 0; i < collectives.size(); ++i) {
    until(collectives[i].start);
    CollectiveSpec spec = collectives[i].spec;
    spec.tree = tree;
    spec.tag = spec.account = i;
    engine.start_collective(spec, collectives[i].start);
  }
  for (std::size_t f = 0; f < flows.size(); ++f) {
    packet::FlowSpec spec;
    spec.bytes = flows[f].spec.bytes;
    spec.ack_every = 0;
    spec.tag = spec.account = 1000 + f;
    spec.path = engine.add_path(flows[f].path, 1);
    const Time start = collectives.empty() ? Time{0} : collectives.back().start;
    engine.start(std::move(spec), start);
  }
  until(Time::never());
  engine.check_conservation();
  for (std::uint32_t p = 0; p < engine.port_count(); ++p) out.ports.push_back(engine.stats(p));
  out.counters = engine.counters();
  out.held = engine.held();
  out.live = engine.live_packets();
  EXPECT_EQ(out.held, 0) << "bytes of buffers that nobody holds any more";
  EXPECT_EQ(out.live, 0U) << "packets left in the network";
  return out;
}

Time on_wire(std::int64_t packets, Bandwidth wire) {
  return transfer_time(Bytes{packets * kGrain}, wire);
}

CollectiveSpec sum_to_all(std::int64_t bytes, std::uint32_t window = 1 << 20) {
  CollectiveSpec spec;
  spec.bytes = bytes;
  spec.window = window;
  return spec;
}

// The vector up, one packet behind it the same down: n does not matter.
TEST(SumInASwitch, TakesTheVectorOncePlusOnePacket) {
  for (const int n : {2, 3, 8, 64}) {
    const Ran out = run_net(star(n, cable(100_Gbps, 700_ns)), {{sum_to_all(kGrain * 500)}});
    EXPECT_EQ(out.ends.at(0), on_wire(501, 100_Gbps) + 1400_ns) << n;
    for (const packet::PortStats& port : out.ports) EXPECT_EQ(port.bytes, kGrain * 500);
    EXPECT_EQ(out.counters.combined, n * kGrain * 500);
    EXPECT_EQ(out.counters.made, n * kGrain * 500);
    EXPECT_EQ(out.counters.delivered, n * kGrain * 500);
  }
}

TEST(SumInASwitch, IsAsFastAsTheSlowestMember) {
  Network net = star(8, cable(100_Gbps, 700_ns));
  net.plan.ports[net.tree.members[5].up.front()].wire = 20_Gbps;
  const Ran out = run_net(net, {{sum_to_all(kGrain * 500)}});
  EXPECT_EQ(out.ends.at(0), on_wire(500, 20_Gbps) + on_wire(1, 100_Gbps) + 1400_ns);
}

TEST(SumInSwitches, CrossesEveryLinkOfTheTreeOnce) {
  Network net;
  net.add_switch();
  for (int leaf = 0; leaf < 4; ++leaf) {
    const std::uint32_t s = net.add_below(0, cable(100_Gbps, 300_ns));
    for (int m = 0; m < 1 + leaf; ++m) net.add_member(s, cable(100_Gbps, 700_ns));
  }
  const Ran out = run_net(net, {{sum_to_all(kGrain * 300 + 5)}});
  for (const packet::PortStats& port : out.ports) EXPECT_EQ(port.bytes, kGrain * 300 + 5);
  // Four links one after the other, each a packet behind the one before; the last packet has five bytes.
  const Time odd = transfer_time(Bytes{5}, 100_Gbps);
  EXPECT_GE(out.ends.at(0), on_wire(300, 100_Gbps) + 2000_ns);
  EXPECT_LE(out.ends.at(0), on_wire(303, 100_Gbps) + 4 * odd + 2000_ns);
}

// At most the window is in the switches: throughput = min(line rate, window / round trip).
TEST(SumInASwitch, IsBoundByItsBufferOverTheRoundTrip) {
  for (const std::int64_t window : {1, 2, 4, 8, 16, 64}) {
    constexpr std::int64_t kPackets = 2000;
    const Ran out = run_net(star(4, cable(100_Gbps, 1_us)),
                            {{sum_to_all(kGrain * kPackets, static_cast<std::uint32_t>(window))}});
    const Time round_trip = on_wire(2, 100_Gbps) + 2_us;
    const double rate = std::min((100_Gbps).bytes_per_s(),
                                 static_cast<double>(window * kGrain) / round_trip.seconds());
    const double reached = kGrain * kPackets / out.ends.at(0).seconds();
    EXPECT_NEAR(reached, rate, 0.01 * rate) << window;
  }
}

TEST(SumInASwitch, IsPacedByItsLimit) {
  CollectiveSpec spec = sum_to_all(kGrain * 1000);
  spec.cap = 25_Gbps;
  const Ran out = run_net(star(4, cable(100_Gbps, 1_us)), {{spec}});
  const Time expected = on_wire(1000, 25_Gbps);
  EXPECT_NEAR(out.ends.at(0).seconds(), expected.seconds(), 0.01 * expected.seconds());
}

// Reads and stores (NVLink): S (1 + 1/n) each way, pipelined.
TEST(ReadAndStore, MovesTheVectorAndAPartOfItBothWays) {
  for (const std::int64_t n : {2, 4, 8}) {
    CollectiveSpec spec = sum_to_all(kGrain * 64 * n + 77);
    spec.sum = SumTo::in_turn;
    spec.store = Store::sums;
    const Ran out = run_net(star(static_cast<int>(n), cable(100_Gbps, 200_ns)), {{spec}});
    std::int64_t up = 0;
    for (std::size_t p = 0; p < out.ports.size(); p += 2) {
      up += out.ports[p].bytes;
      EXPECT_EQ(out.ports[p].bytes, out.ports[p + 1].bytes);
      EXPECT_NEAR(out.ports[p].bytes, spec.bytes * (1 + 1.0 / n), kGrain);
    }
    EXPECT_EQ(up, spec.bytes * (n + 1));
    const double wire = spec.bytes * (1 + 1.0 / n) / (100_Gbps).bytes_per_s();
    EXPECT_GT(out.ends.at(0).seconds(), wire);
    EXPECT_LT(out.ends.at(0).seconds(), 1.02 * wire + 4e-6);
  }
}

struct Work {
  SumTo sum;
  Store store;
  double up, down;  // of the vector, on the links of a member that is not the root
};
TEST(Kinds, MoveWhatTheyMust) {
  constexpr std::int64_t kMembers = 4, kBytes = kGrain * 4 * 100;
  for (const Work& work :
       {Work{SumTo::in_turn, Store::nothing, 1, 1.0 / kMembers},
        Work{SumTo::nobody, Store::own, 1.0 / kMembers, 1}, Work{SumTo::nobody, Store::root, 0, 1},
        Work{SumTo::root, Store::nothing, 1, 0}}) {
    CollectiveSpec spec = sum_to_all(kBytes);
    spec.sum = work.sum;
    spec.store = work.store;
    spec.root = 2;
    const Ran out = run_net(star(kMembers, cable(100_Gbps, 200_ns)), {{spec}});
    ASSERT_TRUE(out.ends.contains(0));
    EXPECT_EQ(static_cast<double>(out.ports[0].bytes), work.up * kBytes);
    EXPECT_EQ(static_cast<double>(out.ports[1].bytes), work.down * kBytes);
    EXPECT_LT(out.ends.at(0).seconds(), 1.05 * kBytes / (100_Gbps).bytes_per_s() + 2e-6);
  }
}

// The buffer of a multicast packet is taken once and free when the last copy has left, so credits bound it as if it went one
// way, and the slowest of its ports sets the rate.
TEST(Multicast, HoldsItsBufferOnceUntilTheLastCopyHasLeft) {
  for (const std::int64_t packets : {1, 2, 4, 16}) {
    PortSpec port = cable(100_Gbps, 1_us);
    port.credit = packets * kGrain;
    CollectiveSpec spec = sum_to_all(kGrain * 1000);
    spec.sum = SumTo::nobody;
    spec.store = Store::root;
    const Ran out = run_net(star(6, port), {{spec}});
    const Time round_trip = on_wire(2, 100_Gbps) + 2_us;
    const double rate =
        std::min((100_Gbps).bytes_per_s(), static_cast<double>(port.credit) / round_trip.seconds());
    EXPECT_NEAR(kGrain * 1000 / out.ends.at(0).seconds(), rate, 0.01 * rate) << packets;
  }
  Network slow = star(6, cable(100_Gbps, 1_us));
  slow.plan.ports[slow.tree.members[3].down.front()].wire = 10_Gbps;
  CollectiveSpec spec = sum_to_all(kGrain * 1000);
  spec.sum = SumTo::nobody;
  spec.store = Store::root;
  const Ran out = run_net(slow, {{spec}});
  EXPECT_GT(out.ends.at(0), on_wire(1000, 10_Gbps));
  EXPECT_GT(out.ports[0].stalls, 0U);  // the sender waits for the slowest
}

// A port that is too slow fills the shared buffer of its switch; PAUSE reaches the one who sends, and nothing is lost.
TEST(Multicast, IsStoppedByPfcWhenOneOfItsPortsIsSlow) {
  Network net;
  net.add_switch({.buffer = 300'000, .alpha = 1});
  for (int m = 0; m < 4; ++m) net.add_member(0, cable(100_Gbps, 500_ns, Guard::pause));
  net.plan.ports[net.tree.members[3].down.front()].wire = 25_Gbps;
  CollectiveSpec spec = sum_to_all(kGrain * 2000);
  spec.sum = SumTo::nobody;
  spec.store = Store::root;
  const Ran out = run_net(net, {{spec}});
  EXPECT_GT(out.ports[0].pauses, 0U);
  EXPECT_EQ(out.counters.dropped, 0);
  EXPECT_EQ(out.counters.delivered, 4 * kGrain * 2000);
  // What the fast ports have queued is what their shared buffers wait for elsewhere: none of it is counted again.
  EXPECT_NEAR(out.ends.at(0).seconds(), on_wire(2000, 25_Gbps).seconds(), 4e-6);
}

// ---- random trees

[[maybe_unused]] const int kFewerCases = setenv("RC_PARAMS", "max_success=150", 0);

// What the random networks had.
struct Seen {
  std::uint64_t runs = 0, pauses = 0, stalls = 0;
};
Seen seen;

int between(int low, int high) { return *rc::gen::inRange(low, high + 1); }

PortSpec random_cable(Guard guard) {
  PortSpec port = cable(Bandwidth{between(10, 400) * 1'000'000'000L + between(0, 9) * 7},
                        Time{between(0, 2'000'000)}, guard);
  port.processing = Time{between(0, 1) * between(0, 300'000)};
  port.cut_through = between(0, 1) == 1;
  port.payload = between(0, 1) * 1024;
  port.overhead = 26;
  port.credit = kGrain * between(1, 40);
  // Whatever is on its way and one more packet at either end, at the highest rate.
  port.headroom = 500'000;
  return port;
}

RC_GTEST_PROP(RandomTrees, EndWithNothingLeftAndTheSameWhenLookedAt, ()) {
  const Guard guard = between(0, 1) == 1 ? Guard::credit : Guard::pause;
  const auto node = [&] {
    return NodeSpec{.buffer = guard == Guard::pause ? 12'000L * between(1, 10) : 0, .alpha = 1};
  };
  Network net;
  net.add_switch(node());
  const int switches = between(1, 5);
  for (int s = 1; s < switches; ++s)
    net.add_below(static_cast<std::uint32_t>(between(0, s - 1)), random_cable(guard), node());
  // Leaves need members; others may have some.
  std::set<std::uint32_t> parents;
  for (const auto& each : net.tree.switches) {
    if (each.parent != packet::kNone) parents.insert(each.parent);
  }
  for (int s = 0; s < switches; ++s) {
    const bool inner = parents.contains(static_cast<std::uint32_t>(s));
    for (int m = between(inner ? 0 : 1, 3); m > 0; --m)
      net.add_member(static_cast<std::uint32_t>(s), random_cable(guard));
  }
  if (net.tree.members.size() < 2) net.add_member(0, random_cable(guard));
  const auto n = static_cast<int>(net.tree.members.size());
  std::vector<Started> collectives;
  Time start{0};
  for (int i = between(1, 4); i > 0; --i) {
    CollectiveSpec spec =
        sum_to_all(between(1, 200'000), static_cast<std::uint32_t>(between(1, 30)));
    const std::vector<std::pair<SumTo, Store>> works{
        {SumTo::all, Store::nothing},     {SumTo::in_turn, Store::sums},
        {SumTo::in_turn, Store::nothing}, {SumTo::nobody, Store::own},
        {SumTo::nobody, Store::root},     {SumTo::root, Store::nothing}};
    std::tie(spec.sum, spec.store) = works[static_cast<std::size_t>(between(0, 5))];
    spec.root = static_cast<std::uint32_t>(between(0, n - 1));
    if (between(0, 2) == 0) spec.cap = Bandwidth{between(1, 200) * 1'000'000'000L};
    start += Time{between(0, 5'000'000)};
    collectives.push_back({spec, start});
  }
  // Others between two members of one switch, through the same ports.
  std::vector<PlannedFlow> flows;
  for (int i = between(0, 4); i > 0; --i) {
    const auto& a = net.tree.members[static_cast<std::size_t>(between(0, n - 1))];
    const auto& b = net.tree.members[static_cast<std::size_t>(between(0, n - 1))];
    if (a.at != b.at) continue;
    PlannedFlow flow;
    flow.spec.bytes = between(1, 200'000);
    flow.path = way({a.up.front(), b.down.front()});
    flows.push_back(std::move(flow));
  }
  const Ran lazy = run_net(net, collectives, flows),
            looked_at = run_net(net, collectives, flows, true);
  RC_ASSERT(lazy.ends.size() == collectives.size() + flows.size());
  RC_ASSERT(lazy.counters.dropped == 0);
  RC_ASSERT(lazy.held == 0);
  RC_ASSERT(lazy.live == 0U);
  RC_ASSERT(lazy.ends == looked_at.ends);
  for (std::size_t p = 0; p < lazy.ports.size(); ++p) {
    const packet::PortStats &a = lazy.ports[p], &b = looked_at.ports[p];
    RC_ASSERT(std::tie(a.packets, a.bytes, a.busy, a.peak_queue, a.pauses, a.stalls) ==
              std::tie(b.packets, b.bytes, b.busy, b.peak_queue, b.pauses, b.stalls));
  }
  ++seen.runs;
  for (const packet::PortStats& port : lazy.ports) {
    seen.pauses += port.pauses;
    seen.stalls += port.stalls;
  }
  const Ran again = run_net(net, collectives, flows);
  RC_ASSERT(again.ends == lazy.ends);
}

TEST(RandomTrees, HadWhatTheyAreToProve) {
  if (seen.runs < 100) GTEST_SKIP() << "few networks";
  EXPECT_GT(seen.pauses, seen.runs / 10);
  EXPECT_GT(seen.stalls, seen.runs);
}

}  // namespace
}  // namespace weft::test
