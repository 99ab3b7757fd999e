// SPDX-License-Identifier: Apache-2.0
#include "sim/fabric/generators.hpp"

#include <map>
#include <set>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace weft {
namespace {

using ::testing::HasSubstr;

// `servers` servers of `nics` NICs with `ports` ports of 100 Gb/s.
std::vector<HostPort> hosts(std::uint32_t servers, std::uint32_t nics = 1,
                            std::uint32_t ports = 1) {
  std::vector<HostPort> out;
  for (std::uint32_t s = 0; s < servers; ++s) {
    for (std::uint32_t n = 0; n < nics; ++n) {
      for (std::uint32_t p = 0; p < ports; ++p)
        out.push_back({s, n, p, 100_Gbps, fmt::format("server{}/nic{}", s, n)});
    }
  }
  return out;
}

NetworkSpec network(Generator generator, int radix) {
  NetworkSpec spec;
  spec.generator = generator;
  spec.switch_model.ports = radix;
  return spec;
}

NetworkPlan plan(const NetworkSpec& spec, const std::vector<HostPort>& ports) {
  Diagnostics out;
  NetworkPlan result = plan_network(spec, ports, 100_Gbps, out);
  EXPECT_TRUE(out.ok()) << out.text();
  return result;
}

std::string problems(const NetworkSpec& spec, const std::vector<HostPort>& ports) {
  Diagnostics out;
  plan_network(spec, ports, 100_Gbps, out);
  return out.text();
}

std::size_t cables(const NetworkPlan& plan, Tier tier) {
  return static_cast<std::size_t>(std::ranges::count(plan.cables, tier, &PlannedCable::tier));
}
std::size_t switches(const NetworkPlan& plan, int level) {
  return static_cast<std::size_t>(std::ranges::count(plan.switches, level, &PlannedSwitch::level));
}

// Cables at every switch, hosts' included.
std::vector<std::size_t> degrees(const NetworkPlan& plan) {
  std::vector<std::size_t> out(plan.switches.size(), 0);
  for (const PlannedCable& cable : plan.cables) {
    if ((cable.a & PlannedCable::kHost) == 0) ++out[cable.a];
    ++out[cable.b];
  }
  return out;
}

// The switch of each host port; every port has exactly one.
std::vector<std::uint32_t> leaf_of(const NetworkPlan& plan, std::size_t ports) {
  constexpr std::uint32_t kNone = 0xFFFF'FFFF;
  std::vector<std::uint32_t> out(ports, kNone);
  for (const PlannedCable& cable : plan.cables) {
    if ((cable.a & PlannedCable::kHost) == 0) continue;
    const std::uint32_t host = cable.a & ~PlannedCable::kHost;
    EXPECT_EQ(out[host], kNone);
    out[host] = cable.b;
  }
  EXPECT_EQ(std::ranges::count(out, kNone), 0);
  return out;
}

TEST(SingleSwitch, JoinsEveryPort) {
  const NetworkPlan p = plan(network(Generator::single_switch, 16), hosts(2, 8));
  EXPECT_EQ(p.switches.size(), 1u);
  EXPECT_EQ(cables(p, Tier::access), 16u);
  EXPECT_EQ(p.cables.size(), 16u);
}

TEST(SingleSwitch, RefusesMorePortsThanItHas) {
  EXPECT_THAT(problems(network(Generator::single_switch, 16), hosts(17)),
              HasSubstr("17 NIC ports do not fit one switch of 16"));
}

// Al-Fares et al.: k pods, k^3/4 hosts, k^2/2 edge and k^2/2 aggregation switches, k^2/4 cores, every port used.
TEST(FatTree, FullThreeLevelsHaveTheClosedFormCounts) {
  for (const std::size_t k : {4, 6, 8, 10, 12, 14, 16}) {
    NetworkSpec spec = network(Generator::fat_tree, static_cast<int>(k));
    spec.tiers = 3;
    const std::size_t n = k * k * k / 4;
    const NetworkPlan p = plan(spec, hosts(static_cast<std::uint32_t>(n)));
    EXPECT_EQ(switches(p, 1), k * k / 2) << k;
    EXPECT_EQ(switches(p, 2), k * k / 2) << k;
    EXPECT_EQ(switches(p, 3), k * k / 4) << k;
    EXPECT_EQ(cables(p, Tier::access), n);
    EXPECT_EQ(cables(p, Tier::leaf_spine), n);
    EXPECT_EQ(cables(p, Tier::spine_core), n);
    for (const std::size_t degree : degrees(p)) EXPECT_EQ(degree, k);
  }
}

TEST(FatTree, FullTwoLevelsUseEveryPort) {
  for (const std::size_t k : {4, 8, 16, 64}) {
    NetworkSpec spec = network(Generator::fat_tree, static_cast<int>(k));
    spec.tiers = 2;
    const NetworkPlan p = plan(spec, hosts(static_cast<std::uint32_t>(k * k / 2)));
    EXPECT_EQ(switches(p, 1), k);
    EXPECT_EQ(switches(p, 2), k / 2);
    for (const std::size_t degree : degrees(p)) EXPECT_EQ(degree, k);
  }
}

TEST(FatTree, TakesTheFewestLevelsByDefault) {
  const NetworkSpec spec = network(Generator::fat_tree, 8);
  EXPECT_EQ(switches(plan(spec, hosts(4)), 2), 0u);
  EXPECT_EQ(switches(plan(spec, hosts(32)), 3), 0u);
  EXPECT_GT(switches(plan(spec, hosts(33)), 3), 0u);
}

TEST(FatTree, SixtyFourPortsReach65536HostsInThreeLevels) {
  NetworkSpec spec = network(Generator::fat_tree, 64);
  spec.tiers = 3;
  const NetworkPlan p = plan(spec, hosts(8192, 8));
  EXPECT_EQ(switches(p, 1), 2048u);
  EXPECT_EQ(switches(p, 2), 2048u);
  EXPECT_EQ(switches(p, 3), 1024u);
  for (const std::size_t degree : degrees(p)) EXPECT_EQ(degree, 64u);
  EXPECT_THAT(problems(spec, hosts(65537)), HasSubstr("do not fit cores of 64 ports"));
}

// Uplinks are planned for full leaves: with a quarter of the hosts 2 : 1 is built as 0.5 : 1.
TEST(Clos, ARatioThatIsNotBuiltIsTold) {
  NetworkSpec spec = network(Generator::leaf_spine, 64);
  spec.oversubscription = 2;
  EXPECT_EQ(problems(spec, hosts(64)), "");
  const std::string told = problems(spec, hosts(8));
  EXPECT_THAT(told, HasSubstr("0.5 : 1 is built, not 2 : 1"));
  EXPECT_THAT(told, HasSubstr("\"hosts_per_leaf\": 8"));
  spec.hosts_per_leaf = 8;
  EXPECT_EQ(problems(spec, hosts(8)), "");
}

TEST(Clos, OversubscriptionChangesTheUplinksOnly) {
  for (const double ratio : {1.0, 2.0, 3.0, 4.0}) {
    NetworkSpec spec = network(Generator::leaf_spine, 64);
    spec.oversubscription = ratio;
    const NetworkPlan p = plan(spec, hosts(128));
    EXPECT_EQ(switches(p, 1), 4u);
    EXPECT_EQ(cables(p, Tier::access), 128u);
    // A fraction of an uplink is rounded up.
    EXPECT_EQ(cables(p, Tier::leaf_spine), 4 * static_cast<std::size_t>(std::ceil(32 / ratio)))
        << ratio;
  }
}

TEST(Clos, AsManyUplinksGoToEverySpine) {
  NetworkSpec spec = network(Generator::leaf_spine, 64);
  spec.hosts_per_leaf = 28;
  for (const std::int64_t spines : {1, 2, 3, 5, 8, 32}) {
    spec.spines = spines;
    const NetworkPlan p = plan(spec, hosts(56));
    EXPECT_EQ(switches(p, 2), static_cast<std::size_t>(spines));
    std::map<std::pair<std::uint32_t, std::uint32_t>, std::size_t> parallel;
    for (const PlannedCable& cable : p.cables) {
      if (cable.tier == Tier::leaf_spine) ++parallel[{cable.a, cable.b}];
    }
    EXPECT_EQ(parallel.size(), 2 * static_cast<std::size_t>(spines));
    for (const auto& [pair, count] : parallel) EXPECT_EQ(count, parallel.begin()->second) << spines;
    EXPECT_GE(cables(p, Tier::leaf_spine), 56u);
  }
}

TEST(Clos, FatTreeHonoursTheNumberOfSpines) {
  NetworkSpec spec = network(Generator::fat_tree, 16);
  spec.hosts_per_leaf = 7;
  spec.spines = 3;
  const NetworkPlan p = plan(spec, hosts(14));
  EXPECT_EQ(switches(p, 2), 3u);
  EXPECT_EQ(cables(p, Tier::leaf_spine), 2 * 9u);  // 7 uplinks become 9, three to each spine
}

TEST(Clos, HostsPerLeafIsTheWidthOfALeaf) {
  NetworkSpec spec = network(Generator::leaf_spine, 64);
  spec.hosts_per_leaf = 4;
  const NetworkPlan p = plan(spec, hosts(10));
  EXPECT_EQ(switches(p, 1), 3u);
  const auto leaves = leaf_of(p, 10);
  for (std::size_t h = 0; h < 10; ++h)
    EXPECT_EQ(p.switches[leaves[h]].name, fmt::format("leaf{}", h / 4));
}

TEST(Clos, ReportsWhatDoesNotFit) {
  NetworkSpec wide = network(Generator::leaf_spine, 64);
  wide.hosts_per_leaf = 40;
  EXPECT_THAT(problems(wide, hosts(80)),
              HasSubstr("a leaf needs 40 ports down and 40 up, the switch has 64"));
  NetworkSpec flat = network(Generator::fat_tree, 8);
  flat.tiers = 1;
  EXPECT_THAT(problems(flat, hosts(8)),
              HasSubstr("2 leaves cannot be joined without a second level"));
  NetworkSpec low = network(Generator::fat_tree, 8);
  low.tiers = 2;
  EXPECT_THAT(problems(low, hosts(64)), HasSubstr("do not fit spines of 8 ports"));
  NetworkSpec few = network(Generator::leaf_spine, 8);
  few.spines = 2;
  EXPECT_THAT(problems(few, hosts(32)),
              HasSubstr("8 leaves with 2 cables to each of 2 spines do not fit 8 ports"));
  NetworkSpec both = network(Generator::fat_tree, 8);
  both.tiers = 3;
  both.spines = 4;
  EXPECT_THAT(problems(both, hosts(64)), HasSubstr("counts the second of two levels"));
}

TEST(RailOptimised, HundredTwentyEightServersOfEight) {
  NetworkSpec spec = network(Generator::rail_optimised, 64);
  spec.tiers = 2;
  const NetworkPlan p = plan(spec, hosts(128, 8));
  EXPECT_EQ(switches(p, 1), 32u);  // 4 pods of 32 servers x 8 rails
  EXPECT_EQ(switches(p, 2), 16u);
  EXPECT_EQ(cables(p, Tier::access), 1024u);
  EXPECT_EQ(cables(p, Tier::leaf_spine), 1024u);
  for (const std::size_t degree : degrees(p)) EXPECT_EQ(degree, 64u);
}

TEST(RailOptimised, ALeafHoldsOneRailOfOnePod) {
  NetworkSpec spec = network(Generator::rail_optimised, 16);
  spec.tiers = 2;
  const auto ports = hosts(20, 2, 2);
  const NetworkPlan p = plan(spec, ports);
  const auto leaves = leaf_of(p, ports.size());
  for (std::size_t h = 0; h < ports.size(); ++h) {
    EXPECT_EQ(p.switches[leaves[h]].name,
              fmt::format("rail{}/leaf{}", ports[h].rail * 2 + ports[h].port, ports[h].server / 8));
  }
}

TEST(RailOptimised, ThreeLevelsReach65536) {
  NetworkSpec spec = network(Generator::rail_optimised, 64);
  spec.tiers = 3;
  const NetworkPlan p = plan(spec, hosts(8192, 8));
  EXPECT_EQ(switches(p, 1), 2048u);
  EXPECT_EQ(switches(p, 2), 2048u);
  EXPECT_EQ(switches(p, 3), 1024u);
  EXPECT_EQ(cables(p, Tier::spine_core), 65536u);
}

TEST(Dragonfly, EveryTwoGroupsHaveTheSameNumberOfGlobalCables) {
  for (const std::size_t groups : {2, 3, 5, 9, 33}) {
    NetworkSpec spec = network(Generator::dragonfly, 64);
    const std::size_t routers = 8, per_router = 4, global = 4;
    spec.routers_per_group = routers;
    spec.hosts_per_router = per_router;
    spec.global_links_per_router = global;
    const NetworkPlan p =
        plan(spec, hosts(static_cast<std::uint32_t>(groups * routers * per_router)));
    EXPECT_EQ(p.switches.size(), groups * routers);
    EXPECT_EQ(cables(p, Tier::group), groups * routers * (routers - 1) / 2);
    std::map<std::pair<std::size_t, std::size_t>, std::size_t> between;
    std::vector<std::size_t> used(p.switches.size(), 0);
    for (const PlannedCable& cable : p.cables) {
      if (cable.tier != Tier::global) continue;
      ++between[std::minmax<std::size_t>(cable.a / routers, cable.b / routers)];
      ++used[cable.a];
      ++used[cable.b];
    }
    EXPECT_EQ(between.size(), groups * (groups - 1) / 2);
    const std::size_t rounds = routers * global / (groups - 1);
    for (const auto& [pair, count] : between) EXPECT_EQ(count, rounds) << groups;
    for (const std::size_t count : used) EXPECT_LE(count, global);
    // Each group uses the same number of its global ports.
    EXPECT_EQ(cables(p, Tier::global), groups * (groups - 1) / 2 * rounds);
  }
}

TEST(Dragonfly, ReportsWhatDoesNotFit) {
  NetworkSpec spec = network(Generator::dragonfly, 16);
  spec.routers_per_group = 8;
  spec.hosts_per_router = 8;
  spec.global_links_per_router = 4;
  EXPECT_THAT(problems(spec, hosts(8)),
              HasSubstr("a router needs 8 + 7 + 4 ports, the switch has 16"));
  spec.hosts_per_router = 1;
  spec.routers_per_group = 2;
  spec.global_links_per_router = 1;
  EXPECT_THAT(problems(spec, hosts(8)),
              HasSubstr("4 groups need 3 global links per group, there are 2"));
}

TEST(Torus, EveryPointHasTwoNeighboursPerDimension) {
  const std::vector<std::vector<std::int64_t>> shapes{{5},    {4, 4}, {3, 4, 5},
                                                      {2, 6}, {1, 7}, {2, 2, 2}};
  for (const auto& dims : shapes) {
    NetworkSpec spec = network(Generator::torus, 64);
    spec.dims = dims;
    std::size_t points = 1, degree = 0;
    for (const std::int64_t d : dims) {
      points *= static_cast<std::size_t>(d);
      degree += d > 2 ? 2 : d == 2 ? 1 : 0;
    }
    const NetworkPlan p = plan(spec, hosts(static_cast<std::uint32_t>(points)));
    EXPECT_EQ(p.switches.size(), points);
    EXPECT_EQ(cables(p, Tier::torus), points * degree / 2);
    for (const std::size_t d : degrees(p)) EXPECT_EQ(d, degree + 1);
    std::set<std::pair<std::uint32_t, std::uint32_t>> pairs;
    for (const PlannedCable& cable : p.cables) {
      if (cable.tier == Tier::torus) {
        EXPECT_TRUE(pairs.insert(std::minmax(cable.a, cable.b)).second);
      }
    }
  }
}

TEST(Torus, ReportsImpossibleShapes) {
  NetworkSpec spec = network(Generator::torus, 8);
  EXPECT_THAT(problems(spec, hosts(4)), HasSubstr("a torus needs \"dims\""));
  spec.dims = {4, 0};
  EXPECT_THAT(problems(spec, hosts(4)), HasSubstr("0 is not a possible size"));
  spec.dims = {2};
  EXPECT_THAT(problems(spec, hosts(16)), HasSubstr("8 NIC ports at each of 2 points"));
}

CableEntry cable(std::string a, std::string b, std::int64_t count = 1) {
  CableEntry out;
  out.a = std::move(a);
  out.b = std::move(b);
  out.count = count;
  return out;
}

TEST(Explicit, JoinsWhatIsListed) {
  NetworkSpec spec = network(Generator::explicit_list, 8);
  spec.switches = {"a", "b"};
  spec.cables = {cable("server0/nic0", "a"), cable("server1/nic0", "b"), cable("a", "b", 3)};
  const NetworkPlan p = plan(spec, hosts(2));
  EXPECT_EQ(cables(p, Tier::access), 2u);
  EXPECT_EQ(cables(p, Tier::cable), 3u);
}

TEST(Explicit, TheCablesOfANicTakeItsPortsInTurn) {
  NetworkSpec spec = network(Generator::explicit_list, 8);
  spec.switches = {"a", "b"};
  spec.cables = {cable("server0/nic0", "a"), cable("server0/nic0", "b"),
                 cable("server1/nic0", "b", 2), cable("a", "b")};
  const NetworkPlan p = plan(spec, hosts(2, 1, 2));
  EXPECT_EQ(leaf_of(p, 4), (std::vector<std::uint32_t>{0, 1, 1, 1}));
  spec.cables.push_back(cable("server0/nic0", "a"));
  EXPECT_THAT(problems(spec, hosts(2, 1, 2)), HasSubstr("\"server0/nic0\" has no free port"));
}

TEST(Explicit, ReportsWhatIsNotListed) {
  NetworkSpec spec = network(Generator::explicit_list, 8);
  spec.switches = {"a", "a", "b"};
  spec.cables = {cable("server0/nic0", "c"), cable("d", "a"), cable("b", "b")};
  const std::string text = problems(spec, hosts(1));
  EXPECT_THAT(text, HasSubstr("the switch \"a\" is listed twice"));
  EXPECT_THAT(text, HasSubstr("\"c\" is not a listed switch"));
  EXPECT_THAT(text, HasSubstr("\"d\" is not a NIC such as server0/nic0 or a listed switch"));
  EXPECT_THAT(text, HasSubstr("a cable from a switch to itself"));
}

TEST(Generators, RefuseKeysTheyDoNotRead) {
  NetworkSpec spec = network(Generator::fat_tree, 8);
  spec.dims = {2, 2};
  spec.routers_per_group = 4;
  const std::string text = problems(spec, hosts(4));
  EXPECT_THAT(text, HasSubstr("the generator \"fat-tree\" does not use \"dims\""));
  EXPECT_THAT(text, HasSubstr("does not use \"routers_per_group\""));
  NetworkSpec torus = network(Generator::torus, 8);
  torus.dims = {4};
  torus.oversubscription = 2;
  EXPECT_THAT(problems(torus, hosts(4)), HasSubstr("does not use \"oversubscription\""));
}

}  // namespace
}  // namespace weft
