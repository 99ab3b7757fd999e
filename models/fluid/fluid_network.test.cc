// SPDX-License-Identifier: Apache-2.0
#include "models/fluid/fluid_network.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <vector>

#include "sim/core/check.hpp"

namespace weft {
namespace {

struct Luck {
  std::uint64_t state;
  std::uint64_t below(std::uint64_t n) { return mix_bits(state++) % n; }
};

struct Message {
  std::vector<Share> shares;
  Bytes size;
  Time start, latency;
  Bandwidth cap;
  double fairness = 1;
};
struct CapacityChange {
  Time when;
  std::uint32_t resource;
  Bandwidth capacity;
};

FlowRequest request_of(const Message& m, std::uint64_t tag) {
  return {.shares = m.shares, .size = m.size, .latency = m.latency, .cap = m.cap, .fairness = m.fairness, .tag = tag};
}

FlowId send(FluidNetwork& network, const Message& m, std::uint64_t tag = 0) {
  return network.start(request_of(m, tag), m.start);
}

// Runs until nothing is pending; when each tag was done.
std::map<std::uint64_t, Time> drain(FluidNetwork& network) {
  std::map<std::uint64_t, Time> when;
  std::vector<FlowDone> done;
  for (Time next = network.next_event(); next < Time::never(); next = network.next_event()) {
    network.advance(next, done);
    for (const FlowDone& d : done) when[d.tag] = d.when;
    done.clear();
  }
  return when;
}

// All messages (ordered by start) and capacity changes through a network.
std::vector<Time> simulate(FluidNetwork& network, const std::vector<Message>& messages,
                           const std::vector<CapacityChange>& changes = {}) {
  std::vector<Time> when(messages.size(), Time::never());
  std::vector<FlowDone> done;
  std::size_t next_message = 0, next_change = 0;
  for (;;) {
    Time next = network.next_event();
    if (next_message < messages.size()) next = std::min(next, messages[next_message].start);
    if (next_change < changes.size()) next = std::min(next, changes[next_change].when);
    if (next == Time::never()) return when;
    network.advance(next, done);
    for (; next_change < changes.size() && changes[next_change].when == next; ++next_change) {
      network.set_capacity(changes[next_change].resource, changes[next_change].capacity, next);
    }
    for (; next_message < messages.size() && messages[next_message].start == next; ++next_message) {
      send(network, messages[next_message], next_message);
    }
    for (const FlowDone& d : done) {
      EXPECT_EQ(d.when, next);
      when[d.tag] = d.when;
    }
    done.clear();
  }
}

// The oracle: no classes, no memory; at each event all rates anew by textbook filling, in long double; only an
// instant of completion is rounded up to a picosecond.
std::vector<Time> simulate_naively(std::vector<Bandwidth> capacities, const std::vector<Message>& messages,
                                   const std::vector<CapacityChange>& changes) {
  using Real = long double;
  std::vector<Time> when(messages.size(), Time::never());
  std::vector<Real> left, rate(messages.size(), 0);
  for (const Message& m : messages) left.push_back(static_cast<Real>(m.size.count));
  std::vector<bool> running(messages.size(), false), over(messages.size(), false);
  std::size_t next_message = 0, next_change = 0;
  Real now = 0;
  for (;;) {
    std::vector<bool> frozen(messages.size(), true);
    for (std::size_t i = 0; i < messages.size(); ++i) frozen[i] = !running[i];
    std::fill(rate.begin(), rate.end(), Real{0});
    while (std::find(frozen.begin(), frozen.end(), false) != frozen.end()) {
      std::vector<Real> level(capacities.size(), 1e300L);
      Real least = 1e300L;
      for (std::size_t r = 0; r < capacities.size(); ++r) {
        Real room = static_cast<Real>(capacities[r].bps) / 8e12L, weight = 0;
        for (std::size_t i = 0; i < messages.size(); ++i) {
          for (const Share& share : messages[i].shares) {
            if (share.resource != r || !running[i]) continue;
            if (frozen[i]) {
              room -= rate[i] * share.weight;
            } else {
              weight += static_cast<Real>(messages[i].fairness) * share.weight;
            }
          }
        }
        if (weight > 0) level[r] = std::max(room, Real{0}) / weight;
        least = std::min(least, level[r]);
      }
      for (std::size_t i = 0; i < messages.size(); ++i) {
        if (!frozen[i] && messages[i].cap.bps > 0) {
          least = std::min(least, static_cast<Real>(messages[i].cap.bps) / 8e12L / messages[i].fairness);
        }
      }
      for (std::size_t i = 0; i < messages.size(); ++i) {
        if (frozen[i]) continue;
        bool stop = messages[i].cap.bps > 0 &&
                    static_cast<Real>(messages[i].cap.bps) / 8e12L / messages[i].fairness <= least * (1 + 1e-15L);
        for (const Share& share : messages[i].shares) stop |= level[share.resource] <= least * (1 + 1e-14L);
        if (stop) rate[i] = least * messages[i].fairness, frozen[i] = true;
      }
    }
    Real next = 1e300L;
    for (std::size_t i = 0; i < messages.size(); ++i) {
      if (running[i] && rate[i] > 0) next = std::min(next, std::ceil(now + left[i] / rate[i] - 1e-6L));
    }
    if (next_message < messages.size()) next = std::min(next, static_cast<Real>(messages[next_message].start.ps));
    if (next_change < changes.size()) next = std::min(next, static_cast<Real>(changes[next_change].when.ps));
    if (next > 1e299L) return when;
    for (std::size_t i = 0; i < messages.size(); ++i) {
      if (running[i]) left[i] -= rate[i] * (next - now);
    }
    now = next;
    for (std::size_t i = 0; i < messages.size(); ++i) {
      if (running[i] && left[i] < 1e-6L) {
        running[i] = false;
        when[i] = Time{static_cast<std::int64_t>(now)} + messages[i].latency;
      }
    }
    for (; next_change < changes.size() && static_cast<Real>(changes[next_change].when.ps) <= now; ++next_change) {
      capacities[changes[next_change].resource] = changes[next_change].capacity;
    }
    for (; next_message < messages.size() && static_cast<Real>(messages[next_message].start.ps) <= now; ++next_message) {
      running[next_message] = true;
    }
  }
}

const std::vector<Bandwidth> kLink{400_Gbps};

TEST(FluidNetwork, LoneFlowTakesLatencyPlusTransferTime) {
  for (const std::int64_t size : {1, 7, 4096, 1'000'003, 1'234'567'891}) {
    for (const Bandwidth rate : {400_Gbps, Bandwidth{145'588'235'294}, Bandwidth{7'000'003}}) {
      FluidNetwork network(std::vector<Bandwidth>{rate, 900_Gbps});
      send(network, {{{0, 1}, {1, 1}}, {size}, 3_us, 500_ns});
      EXPECT_EQ(drain(network)[0], 3_us + 500_ns + transfer_time({size}, rate));
    }
  }
}

TEST(FluidNetwork, EqualFlowsShareALinkEqually) {
  for (const bool merge : {true, false}) {
    for (const std::int64_t n : {2, 3, 7, 1000}) {
      for (const Bandwidth rate : {400_Gbps, Bandwidth{145'588'235'294}}) {
        FluidNetwork network(std::vector<Bandwidth>{rate}, {.merge_classes = merge});
        for (std::int64_t i = 0; i < n; ++i) send(network, {{{0, 1}}, 4_MiB, {0}, 1_us}, static_cast<std::uint64_t>(i));
        for (const auto& [tag, when] : drain(network)) EXPECT_EQ(when, 1_us + transfer_time(4_MiB * n, rate)) << tag;
      }
    }
  }
}

TEST(FluidNetwork, SharesWeighOnTheResource) {
  FluidNetwork network(std::vector<Bandwidth>{60_Gbps, 60_Gbps});
  send(network, {{{0, 1.0 / 6}}, 1_MiB, {0}, {0}}, 0);
  send(network, {{{1, 3}}, 1_MiB, {0}, {0}}, 1);
  auto when = drain(network);
  EXPECT_EQ(when[0], transfer_time(1_MiB, 360_Gbps));
  EXPECT_EQ(when[1], transfer_time(1_MiB, 20_Gbps));
  EXPECT_NEAR(network.carried_bytes(0), (1 << 20) / 6.0, 1e-6);
  EXPECT_NEAR(network.carried_bytes(1), 3.0 * (1 << 20), 1e-6);
}

TEST(FluidNetwork, FairnessIsTheRatioOfRates) {
  FluidNetwork network(kLink);
  send(network, {{{0, 1}}, 3_MiB, {0}, {0}, {0}, 3}, 0);
  send(network, {{{0, 1}}, 1_MiB, {0}, {0}, {0}, 1}, 1);
  auto when = drain(network);
  EXPECT_EQ(when[0], transfer_time(4_MiB, 400_Gbps));
  EXPECT_EQ(when[1], when[0]);
}

TEST(FluidNetwork, WhatACapLeavesGoesToTheOthers) {
  FluidNetwork network(kLink);
  send(network, {{{0, 1}}, 1_MiB, {0}, {0}, 100_Gbps}, 0);
  send(network, {{{0, 1}}, 3_MiB, {0}, {0}}, 1);
  auto when = drain(network);
  EXPECT_EQ(when[0], transfer_time(1_MiB, 100_Gbps));
  EXPECT_EQ(when[1], transfer_time(3_MiB, 300_Gbps));
}

TEST(FluidNetwork, AFlowHoldsItsResourcesUntilTheLastByteLeft) {
  FluidNetwork network(kLink);
  send(network, {{{0, 1}}, 50_KB, {0}, 10_us});  // leaves at 1 us, arrives at 11 us
  std::vector<FlowDone> done;
  EXPECT_EQ(network.next_event(), 1_us);
  network.advance(1_us, done);
  EXPECT_TRUE(done.empty());
  EXPECT_EQ(network.busy_time(0), 1_us);
  send(network, {{{0, 1}}, 50_KB, 1_us, {0}}, 1);
  EXPECT_EQ(network.next_event(), 2_us);
  network.advance(2_us, done);
  ASSERT_EQ(done.size(), 1);
  EXPECT_EQ(done[0].tag, 1);
  network.advance(11_us, done);
  ASSERT_EQ(done.size(), 2);
  EXPECT_EQ(done[1].when, 11_us);
  EXPECT_EQ(network.busy_time(0), 2_us);
}

TEST(FluidNetwork, EmptyMessagesTakeTheirLatency) {
  FluidNetwork network(kLink);
  send(network, {{{0, 1}}, {0}, 1_us, 2_us}, 7);
  send(network, {{}, 5_MiB, 1_us, 2_us}, 8);
  send(network, {{{0, 1}}, {0}, 1_us, {0}}, 9);
  auto when = drain(network);
  EXPECT_EQ(when[7], 3_us);
  EXPECT_EQ(when[8], 3_us);
  EXPECT_EQ(when[9], 1_us);
  EXPECT_EQ(network.busy_time(0), Time{0});
}

TEST(FluidNetwork, FlowsOfOneInstantAreReportedInOrderOfStart) {
  FluidNetwork network(std::vector<Bandwidth>(8, 400_Gbps), {.merge_classes = false});
  std::vector<FlowDone> done;
  for (int round = 0; round < 3; ++round) {
    const Time now = network.next_event() == Time::never() ? Time{round * 1'000'000} : Time{0};
    for (std::uint32_t i = 0; i < 8; ++i) send(network, {{{(i * 5 + static_cast<std::uint32_t>(round)) % 8, 1}}, 1_KB, now, {0}}, i);
    done.clear();
    network.advance(network.next_event(), done);
    ASSERT_EQ(done.size(), 8);
    for (std::uint64_t i = 0; i < 8; ++i) EXPECT_EQ(done[i].tag, i);
  }
}

TEST(FluidNetwork, CapacityChangesMidFlight) {
  FluidNetwork network(kLink);
  const auto when = simulate(network, {{{{0, 1}}, 100_KB, {0}, {0}}}, {{1_us, 0, 100_Gbps}, {3_us, 0, 200_Gbps}});
  EXPECT_EQ(when[0], 4_us);  // 50 KB + 25 KB, and 25 KB at 25 GB/s
}

TEST(FluidNetwork, WithoutCapacityAFlowStallsUntilThereIsSome) {
  FluidNetwork network(std::vector<Bandwidth>{{0}});
  send(network, {{{0, 1}}, 50_KB, {0}, 1_us});
  EXPECT_EQ(network.next_event(), Time::never());
  network.set_capacity(0, 400_Gbps, 5_us);
  EXPECT_EQ(network.next_event(), 6_us);
  std::vector<FlowDone> done;
  network.advance(Time{5'500'000}, done);
  network.set_capacity(0, {0}, Time{5'500'000});
  EXPECT_EQ(network.next_event(), Time::never());
  EXPECT_NEAR(network.carried_bytes(0), 25e3, 1e-6);
  network.set_capacity(0, 400_Gbps, 9_us);
  EXPECT_EQ(drain(network)[0], Time{10'500'000});
}

TEST(FluidNetwork, FlowsOfDifferentInstantsNeedNoAdvanceBetween) {
  FluidNetwork network(kLink);
  send(network, {{{0, 1}}, 100_KB, {0}, {0}}, 0);
  send(network, {{{0, 1}}, 100_KB, 1_us, {0}}, 1);
  auto when = drain(network);
  EXPECT_EQ(when[0], 3_us);
  EXPECT_EQ(when[1], 4_us);
}

TEST(FluidNetwork, AllToAllOfEqualSizesEndsInOneEvent) {
  for (const bool merge : {true, false}) {
    const std::uint32_t n = 37;
    FluidNetwork network(std::vector<Bandwidth>(2 * n, Bandwidth{123'456'789'011}), {.merge_classes = merge});
    for (std::uint32_t i = 0; i < n; ++i) {
      for (std::uint32_t j = 0; j < n; ++j) {
        if (i != j) send(network, {{{i, 1}, {n + j, 1}}, 999_KB, {0}, {0}});
      }
    }
    std::vector<FlowDone> done;
    network.advance(network.next_event(), done);
    EXPECT_EQ(done.size(), n * (n - 1));
    EXPECT_EQ(done[0].when, transfer_time(999_KB * (n - 1), Bandwidth{123'456'789'011}));
    EXPECT_EQ(network.next_event(), Time::never());
  }
}

struct Case {
  std::vector<Bandwidth> capacities;
  std::vector<Message> messages;
  std::vector<CapacityChange> changes;
};

Case random_case(std::uint64_t seed) {
  Luck luck{seed << 32};
  Case out;
  const std::size_t resources = 1 + luck.below(10);
  const bool equal = luck.below(2) == 0;
  for (std::size_t r = 0; r < resources; ++r) out.capacities.push_back({equal ? 400'000'000'000 : static_cast<std::int64_t>(1 + luck.below(400)) * 1'000'000'007});
  const std::size_t kinds = 1 + luck.below(8);
  std::vector<Message> kind(kinds);
  for (Message& m : kind) {
    const std::size_t hops = 1 + luck.below(std::min<std::size_t>(4, resources));
    const double weights[] = {1, 1, 1, 1, 1.0 / 6, 3};
    while (m.shares.size() < hops) {
      const auto r = static_cast<std::uint32_t>(luck.below(resources));
      bool known = false;
      for (const Share& share : m.shares) known |= share.resource == r;
      if (!known) m.shares.push_back({r, weights[luck.below(6)]});
    }
    if (luck.below(4) == 0) m.cap = {static_cast<std::int64_t>(1 + luck.below(200)) * 1'000'000'000};
    if (luck.below(3) == 0) m.fairness = static_cast<double>(1 + luck.below(4)) / 2;
    m.latency = {static_cast<std::int64_t>(luck.below(3) * 700'000)};
  }
  Time now{0};
  for (std::size_t i = 5 + luck.below(40); i-- > 0;) {
    Message m = kind[luck.below(kinds)];
    m.size = {static_cast<std::int64_t>(luck.below(3) == 0 ? 100'000 : 1 + luck.below(2'000'000))};
    if (luck.below(2) == 0) now += Time{static_cast<std::int64_t>(luck.below(20'000'000))};
    m.start = now;
    out.messages.push_back(m);
  }
  if (luck.below(2) == 0) {
    for (Time when{5'000'000}; when < now; when += Time{static_cast<std::int64_t>(1 + luck.below(60'000'000))}) {
      const auto r = static_cast<std::uint32_t>(luck.below(resources));
      out.changes.push_back({when, r, luck.below(6) == 0 ? Bandwidth{0} : Bandwidth{static_cast<std::int64_t>(1 + luck.below(400)) * 1'000'000'000}});
    }
    for (std::uint32_t r = 0; r < resources; ++r) out.changes.push_back({now + 1_ms, r, 100_Gbps});
  }
  return out;
}

TEST(FluidNetwork, RandomCasesAgreeWithANaiveSimulation) {
  for (std::uint64_t seed = 0; seed < 200; ++seed) {
    const Case c = random_case(seed);
    FluidNetwork network(c.capacities);
    const std::vector<Time> mine = simulate(network, c.messages, c.changes);
    const std::vector<Time> naive = simulate_naively(c.capacities, c.messages, c.changes);
    for (std::size_t i = 0; i < mine.size(); ++i) {
      ASSERT_LE(std::abs(mine[i].ps - naive[i].ps), 1) << "seed " << seed << " flow " << i;
    }
  }
}

// Large enough for the solver's clusters: everybody sends to everybody, with caps, weights and late starters.
TEST(FluidNetwork, LargeConnectedCasesAgreeWithANaiveSimulation) {
  for (std::uint64_t seed = 0; seed < 6; ++seed) {
    Luck luck{(seed << 32) + 99};
    const std::uint32_t n = 9;
    Case c;
    c.capacities.assign(2 * n, 400_Gbps);
    Time now{0};
    for (std::uint32_t i = 0; i < n; ++i) {
      for (std::uint32_t j = 0; j < n; ++j) {
        Message m{{{i, 1}, {n + j, seed % 2 == 0 ? 1.0 : 0.5 + static_cast<double>(luck.below(3))}},
                  {static_cast<std::int64_t>(100'000 + luck.below(900'000))}, now, 1_us};
        if (seed > 3 && luck.below(5) == 0) m.cap = {static_cast<std::int64_t>(1 + luck.below(60)) * 1'000'000'000};
        if (seed % 3 == 2 && luck.below(8) == 0) now += Time{static_cast<std::int64_t>(luck.below(3'000'000))};
        c.messages.push_back(m);
      }
    }
    if (seed > 2) c.changes = {{now + 20_us, 3, 100_Gbps}, {now + 40_us, 3, {0}}, {now + 60_us, 3, 800_Gbps}};
    FluidNetwork network(c.capacities, {.merge_classes = seed % 2 == 0});
    const std::vector<Time> mine = simulate(network, c.messages, c.changes);
    const std::vector<Time> naive = simulate_naively(c.capacities, c.messages, c.changes);
    for (std::size_t i = 0; i < mine.size(); ++i) {
      ASSERT_LE(std::abs(mine[i].ps - naive[i].ps), 1) << "seed " << seed << " flow " << i;
    }
  }
}

TEST(FluidNetwork, MergedUnmergedAndRememberedAgree) {
  for (std::uint64_t seed = 0; seed < 200; ++seed) {
    const Case c = random_case(seed);
    FluidNetwork merged(c.capacities, {true, true}), forgetful(c.capacities, {true, false}), single(c.capacities, {false, false});
    const std::vector<Time> a = simulate(merged, c.messages, c.changes), b = simulate(forgetful, c.messages, c.changes),
                            d = simulate(single, c.messages, c.changes);
    for (std::size_t i = 0; i < a.size(); ++i) {
      ASSERT_LE(std::abs(a[i].ps - b[i].ps), 1) << "seed " << seed << " flow " << i;
      ASSERT_LE(std::abs(a[i].ps - d[i].ps), 1) << "seed " << seed << " flow " << i;
    }
  }
}

TEST(FluidNetwork, EveryByteCrossesEveryResourceAndNoneIsOverloaded) {
  for (std::uint64_t seed = 0; seed < 100; ++seed) {
    Case c = random_case(seed);
    c.changes.clear();
    FluidNetwork network(c.capacities);
    simulate(network, c.messages);
    std::vector<double> expected(c.capacities.size());
    for (const Message& m : c.messages) {
      for (const Share& share : m.shares) expected[share.resource] += share.weight * m.size.value();
    }
    for (std::uint32_t r = 0; r < expected.size(); ++r) {
      ASSERT_NEAR(network.carried_bytes(r), expected[r], 1e-9 * expected[r]);
      ASSERT_LE(network.carried_bytes(r),
                static_cast<double>(network.busy_time(r).ps) * c.capacities[r].bytes_per_ps() * (1 + 1e-9));
    }
  }
}

TEST(FluidNetwork, CarriedBytesGrowWithTime) {
  FluidNetwork network(kLink);
  for (std::uint64_t i = 0; i < 3; ++i) send(network, {{{0, 1}}, 50_KB * static_cast<std::int64_t>(i + 1), {0}, {0}}, i);
  std::vector<FlowDone> done;
  for (std::int64_t t = 0; t <= 6'000'000; t += 250'000) {
    while (network.next_event().ps < t) network.advance(network.next_event(), done);
    network.advance(Time{t}, done);
    EXPECT_NEAR(network.carried_bytes(0), static_cast<double>(t) * 0.05, 1e-6);
    EXPECT_EQ(network.busy_time(0), Time{t});
  }
}

TEST(FluidNetwork, RepeatedPhasesAreSolvedOnce) {
  FluidNetwork network(std::vector<Bandwidth>(12, 400_Gbps));
  Time now{0};
  Time length{0};
  for (int phase = 0; phase < 20; ++phase) {
    for (std::uint32_t i = 0; i < 6; ++i) {
      for (std::uint32_t j = 6; j < 12; ++j) send(network, {{{i, 1}, {j, 1.0 + (i + j) % 2}}, 1_MiB, now, {0}}, i);
    }
    std::vector<FlowDone> done;
    while (network.next_event() < Time::never()) {
      const Time next = network.next_event();
      network.advance(next, done);
      if (network.next_event() == Time::never()) {
        if (phase > 0) {
          EXPECT_EQ(next - now, length);
        }
        length = next - now;
        now = next;
      }
    }
    EXPECT_EQ(done.size(), 36);
  }
  EXPECT_GT(network.counters().remembered, 15);
  EXPECT_LT(network.counters().solves, 10);
}

TEST(FluidNetwork, AThousandKindsComeAndGo) {
  FluidNetwork network(std::vector<Bandwidth>(100, 400_Gbps));
  for (std::uint32_t round = 0; round < 30; ++round) {
    const Time now = round == 0 ? Time{0} : Time{round * 1'000'000'000LL};
    for (std::uint32_t i = 0; i < 500; ++i) {
      const std::uint32_t a = i % 50, b = 50 + (i / 50 + round) % 50;
      send(network, {{{a, 1}, {b, 1.0 + round * 0.125}}, 1_KB, now, {0}}, i);
    }
    EXPECT_EQ(drain(network).size(), 500);
  }
}

TEST(FluidNetwork, StartingInThePastIsABug) {
  FluidNetwork network(kLink);
  send(network, {{{0, 1}}, 50_KB, 2_us, {0}});
  EXPECT_THROW(send(network, {{{0, 1}}, 50_KB, 1_us, {0}}), Bug);
  EXPECT_THROW(send(network, {{{0, 1}}, 50_KB, 4_us, {0}}), Bug);  // beyond the next event
}

}  // namespace
}  // namespace weft
