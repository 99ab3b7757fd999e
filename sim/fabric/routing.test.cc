// SPDX-License-Identifier: Apache-2.0
#include "sim/fabric/routing.hpp"

#include <map>
#include <set>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "sim/core/text.hpp"
#include "sim/fabric/routes.test.hpp"
#include "tests/support/conservation.hpp"
#include "tests/support/tiny.hpp"

namespace weft {
namespace {

using test::catalogue_fabric;
using test::fabric_from;
using test::hop_names;
using test::leaf_spine;
using test::link;
using test::node;
using test::not_conserved;
using test::route_of;
using test::single_switch;
using test::TinyOptions;
using test::weight_of;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

// ---- inside a server

TEST(Routes, AGpuReachesItselfWithoutCrossingAnything) {
  const Fabric fabric = fabric_from("gpu a -- 400 Gb/s, 500 ns -- gpu b");
  Routes routes(fabric);
  const Route route = route_of(routes, "a", "a");
  EXPECT_THAT(route.shares, IsEmpty());
  EXPECT_EQ(route.latency, 0_ns);
  EXPECT_GT(routes.transfer(node(fabric, "a"), node(fabric, "a"))->rate(fabric), 1'000'000_Gbps);
}

TEST(Routes, ADirectLinkIsTakenWhole) {
  const Fabric fabric = fabric_from("gpu a -- 400 Gb/s, 500 ns, x3 -- gpu b");
  Routes routes(fabric);
  const auto transfer = routes.transfer(node(fabric, "a"), node(fabric, "b"));
  ASSERT_TRUE(transfer);
  EXPECT_EQ(transfer->via, Via::direct);
  EXPECT_EQ(transfer->rate(fabric), 400_Gbps * 3);
  EXPECT_EQ(transfer->latency(), 500_ns);
  EXPECT_EQ(weight_of(fabric, transfer->legs[0].route, "a:b"), 1);
}

TEST(Routes, LatencyIsTheSumOfDelaysAndOfTheNodesBetween) {
  const Fabric fabric = fabric_from("gpu g[0-1] -- 400 Gb/s, 70 ns -- nvswitch s 110 ns");
  Routes routes(fabric);
  EXPECT_EQ(route_of(routes, "g0", "g1").latency, 70_ns + 110_ns + 70_ns);
}

TEST(Routes, ThereIsNoWayThroughAGpu) {
  const Fabric fabric =
      fabric_from("gpu a -- 400 Gb/s, 500 ns -- gpu b; b -- 400 Gb/s, 500 ns -- gpu c");
  Routes routes(fabric);
  EXPECT_FALSE(routes.peers_over_scale_up(node(fabric, "a"), node(fabric, "c")));
  EXPECT_FALSE(routes.transfer(node(fabric, "a"), node(fabric, "c")));
}

TEST(Routes, Dgx2StripesEvenlyOverSixPlanes) {
  const Fabric fabric = catalogue_fabric("dgx2");
  Routes routes(fabric);
  for (const auto& [dst, hops] : {std::pair{"gpu1", 2}, std::pair{"gpu15", 3}}) {
    const Route route = route_of(routes, "gpu0", dst);
    EXPECT_EQ(route.shares.size(), 6U * hops);
    EXPECT_EQ(route.hops.size(), hops);
    for (const Share& share : route.shares)
      EXPECT_NEAR(share.weight, 1.0 / 6, 1e-12) << fabric.resource_name(share.resource);
    EXPECT_THAT(not_conserved(fabric, route, node(fabric, "gpu0"), node(fabric, dst)), IsEmpty());
    // All six links of the GPU together.
    EXPECT_NEAR(route.rate(fabric).bytes_per_s(),
                6 * fabric.link(link(fabric, "gpu0:nvswitch0")).rate.bytes_per_s(), 1e3);
  }
}

TEST(Routes, H100StripesInProportionToItsLinks) {
  const Fabric fabric = catalogue_fabric("hgx-h100");
  Routes routes(fabric);
  const Route route = route_of(routes, "gpu2", "gpu5");
  const double links[] = {5, 4, 4, 5};
  for (int s = 0; s < 4; ++s) {
    EXPECT_NEAR(weight_of(fabric, route, fmt::format("gpu2:nvswitch{}", s)), links[s] / 18, 1e-12);
    EXPECT_NEAR(weight_of(fabric, route, fmt::format("nvswitch{}:gpu5", s)), links[s] / 18, 1e-12);
  }
  EXPECT_EQ(route.shares.size(), 8U);
}

TEST(Routes, SwitchEdgesOfAGpuSumToOne) {
  const Fabric fabric = catalogue_fabric("hgx-h100");
  Routes routes(fabric);
  for (const bool up : {true, false}) {
    Route route;
    ASSERT_TRUE(routes.append_to_switches(node(fabric, "gpu3"), up, route));
    double sum = 0;
    for (const Share& share : route.shares) {
      const Link& crossed = fabric.link(LinkId{share.resource});
      EXPECT_EQ(fabric.name(up ? crossed.from : crossed.to), "gpu3");
      sum += share.weight;
    }
    EXPECT_NEAR(sum, 1, 1e-12);
  }
  const Fabric mesh = catalogue_fabric("dgx1-p100");
  Routes mesh_routes(mesh);
  Route none;
  EXPECT_FALSE(mesh_routes.append_to_switches(node(mesh, "gpu0"), true, none));
}

TEST(Routes, ARelayPassesTheFastestCommonNeighbour) {
  const Fabric fabric =
      fabric_from(R"(gpu a -- 100 Gb/s, 1 us -- gpu slow; slow -- 400 Gb/s, 1 us -- gpu z
                                       a -- 300 Gb/s, 1 us -- gpu fast; fast -- 200 Gb/s, 1 us -- z
                                       a -- 900 Gb/s, 1 us -- gpu stranger)",
                  {.server = R"("copy": {"latency": "9 us"})"});
  Routes routes(fabric);
  const auto transfer =
      routes.transfer(node(fabric, "a"), node(fabric, "z"), {.via = Via::relay, .copy_call = true});
  ASSERT_TRUE(transfer);
  ASSERT_EQ(transfer->legs.size(), 2U);
  EXPECT_THAT(hop_names(fabric, transfer->legs[0].route), ElementsAre("a:fast"));
  EXPECT_THAT(hop_names(fabric, transfer->legs[1].route), ElementsAre("fast:z"));
  // Two serial copies: 1 / (1/300 + 1/200) = 120.
  EXPECT_NEAR(static_cast<double>(transfer->rate(fabric).bps), 120e9, 1);
  EXPECT_EQ(transfer->latency(), 2 * (9_us + 1_us));
}

TEST(Routes, ARelayNeedsACommonNeighbourAndPeerAccess) {
  const std::string text =
      "gpu a -- 400 Gb/s, 500 ns -- gpu b; b -- 400 Gb/s, 500 ns -- gpu c; c -- 400 Gb/s, 500 ns "
      "-- gpu d";
  const Fabric fabric = fabric_from(text);
  Routes routes(fabric);
  const auto relayed = [](Routes& r, std::string_view src, std::string_view dst,
                          bool peer_access = true) {
    return r
        .transfer(node(r.fabric(), src), node(r.fabric(), dst),
                  {.via = Via::relay, .peer_access = peer_access})
        .has_value();
  };
  EXPECT_TRUE(relayed(routes, "a", "c"));
  EXPECT_FALSE(relayed(routes, "a", "d"));
  EXPECT_FALSE(relayed(routes, "a", "c", false));
  const Fabric off = fabric_from(text, {.server = R"("peer_access": {"nvlink": false})"});
  Routes off_routes(off);
  EXPECT_FALSE(relayed(off_routes, "a", "c"));
}

// Two sockets; on the first, two PCIe switches.
const char* const kTree = R"(gpu g[0-1] -- 100 Gb/s, 100 ns, duplex 0.75 -- pcie_switch p0 50 ns
                             gpu h -- 100 Gb/s, 100 ns, duplex 0.75 -- pcie_switch p1 50 ns
                             gpu far -- 100 Gb/s, 100 ns, duplex 0.75 -- pcie_switch p2 50 ns
                             p0 -- 100 Gb/s, 100 ns, duplex 0.75 -- cpu c0 80 ns; p1 -- 100 Gb/s, 100 ns, duplex 0.75 -- c0
                             p2 -- 100 Gb/s, 100 ns, duplex 0.75 -- cpu c1 80 ns; c0 -- 200 Gb/s, 100 ns -- c1
                             dram d0 -- 800 Gb/s, 60 ns -- c0; dram d1 -- 800 Gb/s, 60 ns -- c1)";

TEST(Routes, PeerAccessOverPcieReachesAsFarAsItSays) {
  struct Row {
    const char* reach;
    bool same_switch, same_socket, other_socket;
  };
  for (const Row& row : {Row{"none", false, false, false}, Row{"switch", true, false, false},
                         Row{"socket", true, true, false}, Row{"all", true, true, true}}) {
    const Fabric fabric = fabric_from(
        kTree, {.server = fmt::format(R"("peer_access": {{"pcie": "{}"}})", row.reach)});
    Routes routes(fabric);
    const auto direct = [&](std::string_view dst) {
      const auto transfer = routes.transfer(node(fabric, "g0"), node(fabric, dst));
      EXPECT_TRUE(transfer) << row.reach;
      EXPECT_EQ(
          routes.transfer(node(fabric, "g0"), node(fabric, dst), {.via = Via::direct}).has_value(),
          transfer->via == Via::direct);
      // Peer access that is switched off always stages.
      EXPECT_EQ(routes.transfer(node(fabric, "g0"), node(fabric, dst), {.peer_access = false})->via,
                Via::host);
      return transfer->via == Via::direct;
    };
    EXPECT_EQ(direct("g1"), row.same_switch) << row.reach;
    EXPECT_EQ(direct("h"), row.same_socket) << row.reach;
    EXPECT_EQ(direct("far"), row.other_socket) << row.reach;
  }
}

TEST(Routes, StagingPassesDramAndDrawsOnTheTwoWayBudgets) {
  const Fabric fabric = fabric_from(kTree, {.server = R"("peer_access": {"pcie": "all"},
                                                       "staging": {"rate": "70 Gb/s", "latency": "20 us"})"});
  Routes routes(fabric);
  const auto staged = routes.transfer(node(fabric, "g0"), node(fabric, "g1"),
                                      {.via = Via::host, .copy_call = true});
  ASSERT_TRUE(staged);
  const Leg& leg = staged->legs.front();
  EXPECT_THAT(hop_names(fabric, leg.route),
              ElementsAre("g0:p0", "p0:c0", "c0:d0", "d0:c0", "c0:p0", "p0:g1"));
  EXPECT_EQ(leg.cap, 70_Gbps);
  EXPECT_EQ(leg.startup, 20_us);
  EXPECT_EQ(leg.route.latency, 4 * 100_ns + 2 * 60_ns + 2 * (50_ns + 80_ns));
  EXPECT_THAT(not_conserved(fabric, leg.route, node(fabric, "g0"), node(fabric, "g1")), IsEmpty());
  // Both ways through the uplink of p0, one way through each GPU's port.
  EXPECT_EQ(weight_of(leg.route, fabric.link(link(fabric, "p0:c0")).duplex), 2);
  EXPECT_EQ(weight_of(leg.route, fabric.link(link(fabric, "g0:p0")).duplex), 1);
  EXPECT_EQ(weight_of(leg.route, fabric.link(link(fabric, "g1:p0")).duplex), 1);
  // The uplink's budget of 2 x 100 x 0.75 is drawn on twice: 75; the pipeline allows 70.
  EXPECT_EQ(leg.route.rate(fabric), 75_Gbps);
  EXPECT_EQ(staged->rate(fabric), 70_Gbps);
  // Across sockets the uplinks are not shared, so the ports' rate remains.
  EXPECT_EQ(routes.transfer(node(fabric, "g0"), node(fabric, "far"), {.via = Via::host})
                ->legs[0]
                .route.rate(fabric),
            100_Gbps);
  // Peer to peer draws on no budget.
  for (const Share& share : route_of(routes, "g0", "g1").shares)
    EXPECT_LT(share.resource, fabric.link_count());
}

TEST(Routes, AccessControlSendsTrafficBelowASwitchToTheRootComplexAndBack) {
  const Fabric fabric =
      fabric_from(kTree, {.server = R"("peer_access": {"pcie": "all"}, "acs": true)"});
  Routes routes(fabric);
  const Route below = route_of(routes, "g0", "g1");
  EXPECT_THAT(hop_names(fabric, below), ElementsAre("g0:p0", "p0:c0", "c0:p0", "p0:g1"));
  EXPECT_EQ(below.latency, 4 * 100_ns + 2 * 50_ns + 80_ns);
  // Twice through the uplink of p0: one way the budget of 2 x 100 x 0.75 allows 75.
  EXPECT_EQ(weight_of(below, fabric.link(link(fabric, "p0:c0")).duplex), 2);
  EXPECT_EQ(below.rate(fabric), 75_Gbps);
  // What passes a root complex anyway is as before, and draws on no budget.
  for (const char* dst : {"h", "far"}) {
    const Route beyond = route_of(routes, "g0", dst);
    EXPECT_EQ(beyond.rate(fabric), 100_Gbps);
    for (const Share& share : beyond.shares) EXPECT_LT(share.resource, fabric.link_count());
  }
}

TEST(Routes, AccessControlChangesNoPermissionAndNoNvlink) {
  const Fabric fabric = fabric_from(
      std::string(kTree) + "; g0 -- 400 Gb/s, 100 ns -- h",
      {.server = R"("peer_access": {"pcie": "switch"}, "gpudirect_rdma": "switch", "acs": true)"});
  Routes routes(fabric);
  EXPECT_EQ(routes.transfer(node(fabric, "g0"), node(fabric, "g1"))->via, Via::direct);
  EXPECT_EQ(routes.transfer(node(fabric, "g1"), node(fabric, "h"))->via, Via::host);
  EXPECT_THAT(hop_names(fabric, route_of(routes, "g0", "h")), ElementsAre("g0:h"));
}

TEST(Routes, AccessControlDetoursNicsBelowTheGpusSwitch) {
  const auto way = [](const char* acs, bool outward) {
    const Fabric fabric = catalogue_fabric(fmt::format(
        R"({{"use": "dgx-a100+ib-hdr", "set": {{"/servers": 2, "/server/acs": {}}}}})", acs));
    Routes routes(fabric);
    const NodeId gpu = node(fabric, "server0/gpu0");
    const auto attachment = routes.attach(gpu, {.outward = outward});
    EXPECT_TRUE(routes.gpudirect(gpu, attachment->nic));
    EXPECT_EQ(attachment->cap, 0_Gbps);
    return hop_names(fabric, attachment->route);
  };
  EXPECT_THAT(way("false", true), Not(Contains(HasSubstr("cpu"))));
  EXPECT_THAT(way("true", true), Contains(HasSubstr("cpu")).Times(2));
  EXPECT_THAT(way("true", false), Contains(HasSubstr("cpu")).Times(2));
}

TEST(Routes, WithoutDramThereIsNoStaging) {
  const Fabric fabric = fabric_from("gpu g[0-1] -- 100 Gb/s, 100 ns -- cpu c",
                                    {.server = R"("peer_access": {"pcie": "none"})"});
  Routes routes(fabric);
  EXPECT_FALSE(routes.transfer(node(fabric, "g0"), node(fabric, "g1")));
}

TEST(Routes, NetworkIsNoWayInsideAServer) {
  const Fabric fabric = catalogue_fabric("dgx1-v100+ib-edr");
  Routes routes(fabric);
  const NodeId a = node(fabric, "server0/gpu0");
  EXPECT_FALSE(routes.transfer(a, node(fabric, "server0/gpu1"), {.via = Via::network}));
  for (const Via via : {Via::direct, Via::relay, Via::host}) {
    EXPECT_FALSE(routes.transfer(a, node(fabric, "server1/gpu1"), {.via = via}));
  }
  EXPECT_EQ(routes.transfer(a, node(fabric, "server1/gpu1"))->via, Via::network);
}

// ---- NICs

std::vector<std::string> nics_of(Routes& routes, std::string_view gpu) {
  std::vector<std::string> out;
  for (const NodeId nic : routes.nics_of(node(routes.fabric(), gpu)))
    out.push_back(routes.fabric().name(nic));
  return out;
}

TEST(Routes, GpusOfOneSwitchShareItsNic) {
  const Fabric fabric = catalogue_fabric("dgx1-v100");
  Routes routes(fabric);
  for (int g = 0; g < 8; ++g)
    EXPECT_THAT(nics_of(routes, fmt::format("gpu{}", g)), ElementsAre(fmt::format("nic{}", g / 2)));
}

TEST(Routes, TwoGpusThatSeeTwoNicsStartAtDifferentOnes) {
  const Fabric fabric = catalogue_fabric("dgx-a100");
  Routes routes(fabric);
  for (int s = 0; s < 4; ++s) {
    const std::string first = fmt::format("nic{}", 2 * s), second = fmt::format("nic{}", 2 * s + 1);
    EXPECT_THAT(nics_of(routes, fmt::format("gpu{}", 2 * s)), ElementsAre(first, second));
    EXPECT_THAT(nics_of(routes, fmt::format("gpu{}", 2 * s + 1)), ElementsAre(second, first));
  }
}

TEST(Routes, StorageNicsCarryNoTraffic) {
  const Fabric fabric = catalogue_fabric("dgx2");
  Routes routes(fabric);
  for (const NodeId gpu : fabric.gpus()) {
    for (const NodeId nic : routes.nics_of(gpu)) EXPECT_FALSE(fabric.name(nic).starts_with("snic"));
  }
}

TEST(Routes, ChannelsTakeAGpusNicsInTurn) {
  const Fabric fabric =
      fabric_from("gpu g -- 400 Gb/s, 0 ns -- pcie_switch p; nic n[0-3] -- 100 Gb/s, 0 ns -- p",
                  {.servers = 2, .network = single_switch()});
  Routes routes(fabric);
  EXPECT_THAT(nics_of(routes, "server1/g"),
              ElementsAre("server1/n0", "server1/n1", "server1/n2", "server1/n3"));
  for (std::uint32_t channel = 0; channel < 6; ++channel) {
    const Route route = route_of(routes, "server0/g", "server1/g", {.channel = channel});
    EXPECT_EQ(weight_of(fabric, route, fmt::format("server0/p:server0/n{}", channel % 4)), 1)
        << channel;
    EXPECT_EQ(weight_of(fabric, route, fmt::format("server1/n{}:server1/p", channel % 4)), 1)
        << channel;
  }
}

TEST(Routes, TwoGpusShareFourNicsHalfAndHalf) {
  const Fabric fabric = fabric_from(
      "gpu g[0-1] -- 400 Gb/s, 0 ns -- pcie_switch p; nic n[0-3] -- 100 Gb/s, 0 ns -- p",
      {.servers = 2, .network = single_switch()});
  Routes routes(fabric);
  EXPECT_THAT(nics_of(routes, "server0/g0"),
              ElementsAre("server0/n0", "server0/n1", "server0/n2", "server0/n3"));
  EXPECT_THAT(nics_of(routes, "server0/g1"),
              ElementsAre("server0/n2", "server0/n3", "server0/n0", "server0/n1"));
}

TEST(Routes, BeyondGpudirectDataPassesHostMemory) {
  // The NIC hangs on the other socket, out of reach of RDMA.
  const std::string server =
      R"(gpu g -- 100 Gb/s, 100 ns -- cpu c0; c0 -- 200 Gb/s, 100 ns -- cpu c1
                                nic n -- 100 Gb/s, 100 ns -- c1; dram d0 -- 800 Gb/s, 60 ns -- c0; dram d1 -- 800 Gb/s, 60 ns -- c1)";
  for (const bool rdma : {false, true}) {
    TinyOptions options{.servers = 2, .network = single_switch()};
    options.server = fmt::format(R"("gpudirect_rdma": "{}", "staging": {{"rate": "30 Gb/s"}})",
                                 rdma ? "all" : "socket");
    const Fabric fabric = fabric_from(server, options);
    Routes routes(fabric);
    const auto transfer = routes.transfer(node(fabric, "server0/g"), node(fabric, "server1/g"));
    ASSERT_TRUE(transfer);
    const Route& route = transfer->legs.front().route;
    EXPECT_EQ(weight_of(fabric, route, "server0/c0:server0/d0"), rdma ? 0 : 1);
    EXPECT_EQ(transfer->legs.front().cap, rdma ? 0_Gbps : 30_Gbps);
    EXPECT_THAT(not_conserved(fabric, route, node(fabric, "server0/g"), node(fabric, "server1/g")),
                IsEmpty());
  }
}
// ---- every pair of every catalogue server

TEST(Routes, EveryWayOfTheCatalogueConservesFlowAndNamesNoResourceTwice) {
  for (const char* name :
       {"dgx1-p100", "dgx2", "hgx-h100", "dgx-a100", "pcie-l40sx8", "summitdev-node", "mi300x",
        "gb200-nvl72", "pcie-rtx4090x8", "nvlink-bridge-pairs", "ascend-910b"}) {
    const Fabric fabric = catalogue_fabric(name);
    Routes routes(fabric);
    for (const NodeId a : fabric.gpus()) {
      for (const NodeId b : fabric.gpus()) {
        for (const auto via : {std::optional<Via>{}, std::optional{Via::direct},
                               std::optional{Via::relay}, std::optional{Via::host}}) {
          if (a == b || a.v > fabric.gpus()[1].v) continue;
          const auto transfer = routes.transfer(a, b, {.via = via});
          if (!via) {
            ASSERT_TRUE(transfer) << name;
          }
          if (!transfer) continue;
          NodeId at = a;
          for (const Leg& leg : transfer->legs) {
            ASSERT_FALSE(leg.route.hops.empty());
            EXPECT_EQ(fabric.link(leg.route.hops.front()).from, at) << name;
            const NodeId end = fabric.link(leg.route.hops.back()).to;
            ASSERT_THAT(not_conserved(fabric, leg.route, at, end), IsEmpty()) << name;
            std::set<std::uint32_t> resources;
            for (const Share& share : leg.route.shares)
              EXPECT_TRUE(resources.insert(share.resource).second) << name;
            at = end;
          }
          EXPECT_EQ(at, b) << name;
        }
      }
    }
  }
}

}  // namespace
}  // namespace weft
