// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "sim/core/text.hpp"
#include "sim/fabric/fabric.hpp"
#include "tests/support/fabric_text.hpp"

namespace weft {
namespace {

using testing::build_from;
using testing::catalogue_fabric;
using testing::cluster;
using testing::fabric_from;
using ::testing::HasSubstr;
using testing::problems_of;
using testing::server;

const std::string kSwitch =
    R"("generator": "single-switch", "switch": {"ports": 64, "link": LINK})";

// NVLinks between every two GPUs.
std::vector<std::vector<int>> adjacency(const Fabric& fabric) {
  const auto gpus = fabric.gpus();
  std::vector<std::vector<int>> out(gpus.size(), std::vector<int>(gpus.size(), 0));
  for (std::size_t i = 0; i < gpus.size(); ++i) {
    for (const LinkId l : fabric.out_links(gpus[i])) {
      const auto j = std::ranges::find(gpus, fabric.link(l).to);
      if (j != gpus.end())
        out[i][static_cast<std::size_t>(j - gpus.begin())] += fabric.link(l).count;
    }
  }
  return out;
}

// `nvidia-smi topo -m` of a DGX-1V, DDP benchmark README of github.com/pytorch/pytorch (dgx1v-nvlink-adjacency).
TEST(Catalogue, Dgx1V100HasTheMeasuredAdjacency) {
  const std::vector<std::vector<int>> expected{{0, 1, 1, 2, 2, 0, 0, 0}, {1, 0, 2, 1, 0, 2, 0, 0},
                                               {1, 2, 0, 2, 0, 0, 1, 0}, {2, 1, 2, 0, 0, 0, 0, 1},
                                               {2, 0, 0, 0, 0, 1, 1, 2}, {0, 2, 0, 0, 1, 0, 2, 1},
                                               {0, 0, 1, 0, 1, 2, 0, 2}, {0, 0, 0, 1, 2, 1, 2, 0}};
  EXPECT_EQ(adjacency(catalogue_fabric("dgx1-v100")), expected);
}

// P2P access matrix that Tartan measured, scale_up_p2p_test/dgx1_ascending.txt (dgx1p-nvlink-adjacency).
TEST(Catalogue, Dgx1P100HasTheMeasuredAdjacency) {
  const std::vector<std::vector<int>> expected{{0, 1, 1, 1, 1, 0, 0, 0}, {1, 0, 1, 1, 0, 1, 0, 0},
                                               {1, 1, 0, 1, 0, 0, 1, 0}, {1, 1, 1, 0, 0, 0, 0, 1},
                                               {1, 0, 0, 0, 0, 1, 1, 1}, {0, 1, 0, 0, 1, 0, 1, 1},
                                               {0, 0, 1, 0, 1, 1, 0, 1}, {0, 0, 0, 1, 1, 1, 1, 0}};
  EXPECT_EQ(adjacency(catalogue_fabric("dgx1-p100")), expected);
}

TEST(Catalogue, EveryGpuOfADgx2HasOneLinkToEachOfSixSwitches) {
  const Fabric fabric = catalogue_fabric("dgx2");
  ASSERT_EQ(fabric.gpus().size(), 16u);
  for (const NodeId gpu : fabric.gpus()) {
    std::set<NodeId> switches;
    for (const LinkId l : fabric.out_links(gpu)) {
      if (fabric.node(fabric.link(l).to).kind != NodeKind::nvswitch) continue;
      EXPECT_EQ(fabric.link(l).count, 1);
      switches.insert(fabric.link(l).to);
    }
    EXPECT_EQ(switches.size(), 6u);
  }
}

// ---- structure

TEST(Build, EveryLinkIsTheReverseOfItsReverse) {
  const Fabric fabric = fabric_from(cluster(3, server(4), kSwitch));
  for (std::size_t i = 0; i < fabric.link_count(); ++i) {
    const Link& link = fabric.link(LinkId{i});
    const Link& back = fabric.link(link.reverse);
    EXPECT_EQ(back.reverse, LinkId{i});
    EXPECT_EQ(back.from, link.to);
    EXPECT_EQ(back.to, link.from);
    EXPECT_EQ(back.rate, link.rate);
  }
}

TEST(Build, OutLinksAreAllLinksByTheirFirstEnd) {
  const Fabric fabric = fabric_from(cluster(3, server(4), kSwitch));
  std::size_t seen = 0;
  for (std::size_t n = 0; n < fabric.node_count(); ++n) {
    for (const LinkId l : fabric.out_links(NodeId{n})) {
      EXPECT_EQ(fabric.link(l).from, NodeId{n});
      ++seen;
    }
  }
  EXPECT_EQ(seen, fabric.link_count());
}

TEST(Build, ServersFollowEachOtherAndKeepTheOrderOfTheirFile) {
  const Fabric fabric = fabric_from(cluster(3, server(2), kSwitch));
  EXPECT_EQ(fabric.server_count(), 3u);
  EXPECT_EQ(fabric.node_count(), 3 * 5 + 1u);
  EXPECT_EQ(fabric.link_count(), 2 * (3 * 4 + 6u));
  EXPECT_EQ(fabric.gpus().size(), 6u);
  EXPECT_EQ(fabric.name(fabric.gpus()[3]), "server1/gpu1");
  EXPECT_EQ(fabric.name(fabric.nics()[5]), "server2/nic1");
  EXPECT_EQ(fabric.name(fabric.switches()[0]), "switch0");
}

TEST(Build, KindsOfServersMayBeMixed) {
  const Fabric fabric = fabric_from(fmt::format(
      R"({{"kind": "fabric", "server": [{{"count": 2, "server": {}}}, {{"count": 3, "server": {}}}], "network": {{{}}}}})",
      server(4), server(1), kSwitch));
  EXPECT_EQ(fabric.server_count(), 5u);
  EXPECT_EQ(fabric.gpus().size(), 2 * 4 + 3u);
  EXPECT_EQ(fabric.types().size(), 2u);
  EXPECT_EQ(fabric.server(ServerId{4}).type, 1u);
}

TEST(Build, BundlesCarryTheSumOfTheirLinks) {
  const Fabric fabric = fabric_from(
      R"({"kind": "server", "nodes": [{"id": "gpu[0-1]", "kind": "gpu", "model": {}}],
          "links": [{"a": "gpu0", "b": "gpu1", "link": LINK, "count": 3}]})");
  ASSERT_EQ(fabric.link_count(), 2u);
  EXPECT_EQ(fabric.link(LinkId{0}).raw, 300_Gbps);
  EXPECT_EQ(fabric.link(LinkId{0}).count, 3);
  EXPECT_EQ(fabric.link(LinkId{0}).tier, Tier::scale_up);
}

TEST(Build, PairingsPairAsTheySay) {
  const auto names = [](const std::string& entry) {
    const Fabric fabric = fabric_from(fmt::format(
        R"({{"kind": "server", "nodes": [{{"id": "gpu[0-3]", "kind": "gpu", "model": {{}}}}, {{"id": "sw[0-3]", "kind": "nvswitch"}}],
            "links": [{{"a": "gpu[0-3]", "b": "sw[0-3]", "link": LINK}}, {}]}})",
        entry));
    std::vector<std::string> out;
    for (std::size_t i = 32; i < fabric.link_count(); i += 2) {
      out.push_back(fabric.name(fabric.link(LinkId{i}).from) + ":" +
                    fabric.name(fabric.link(LinkId{i}).to));
    }
    return join(out, " ");
  };
  EXPECT_EQ(names(R"({"a": "gpu[0-3]", "b": "sw[0-3]", "pair": "each", "link": LINK})"),
            "gpu0:sw0 gpu1:sw1 gpu2:sw2 gpu3:sw3");
  EXPECT_EQ(names(R"({"a": "gpu[0-3]", "b": "sw[0-1]", "pair": "block", "link": LINK})"),
            "gpu0:sw0 gpu1:sw0 gpu2:sw1 gpu3:sw1");
  EXPECT_EQ(names(R"({"a": "gpu[0-1]", "b": "sw[0-1]", "link": LINK})"),
            "gpu0:sw0 gpu0:sw1 gpu1:sw0 gpu1:sw1");
  EXPECT_EQ(names(R"({"a": "gpu[0-2]", "b": "gpu[0-2]", "link": LINK})"),
            "gpu0:gpu1 gpu0:gpu2 gpu1:gpu2");
}

TEST(Build, ATwoWayBudgetIsSharedByBothDirections) {
  const std::string half = R"({"class": "pcie", "rate": "100 Gb/s", "duplex_factor": 0.75})";
  const Fabric fabric =
      fabric_from(cluster(2, server(2, fmt::format(R"(, "staging": {{}})")), kSwitch));
  EXPECT_EQ(fabric.resource_count(), fabric.link_count());
  std::string text = server(2);
  text.replace(text.find("\"link\": {\"class\": \"ethernet\"", text.find("\"links\"")),
               testing::kLinkText.size() + 8, "\"link\": " + half);
  const Fabric shared = fabric_from(cluster(2, text, kSwitch));
  ASSERT_EQ(shared.resource_count(), shared.link_count() + 4);
  for (const ServerId s : {ServerId{0}, ServerId{1}}) {
    const Link& link = shared.link(LinkId{shared.server(s).link_base});
    EXPECT_EQ(link.duplex, shared.link_count() + 2 * s.v);
    EXPECT_EQ(shared.link(link.reverse).duplex, link.duplex);
    EXPECT_EQ(shared.capacity(link.duplex), 150_Gbps);
  }
  EXPECT_EQ(shared.capacities().size(), shared.resource_count());
}

TEST(Build, APlannedCableMayHaveItsOwnLink) {
  const Fabric fabric = fabric_from(
      cluster(2, server(1), R"("generator": "explicit", "switch": {"ports": 8, "link": LINK},
      "switches": ["a", "b"], "cables": [{"a": "server0/nic0", "b": "a"}, {"a": "server1/nic0", "b": "b"},
      {"a": "a", "b": "b", "count": 2, "link": {"class": "ethernet", "rate": "25 Gb/s"}}])"));
  EXPECT_EQ(fabric.link(*fabric.find_link("a:b#1")).raw, 25_Gbps);
  EXPECT_EQ(fabric.link(*fabric.find_link("server0/nic0:a")).raw, 100_Gbps);
}

// ---- problems, one test for each

std::string box(const std::string& nodes, const std::string& links = "") {
  return fmt::format(R"({{"kind": "server", "nodes": [{}], "links": [{}]}})", nodes, links);
}
const std::string kTwo =
    R"({"id": "gpu[0-1]", "kind": "gpu", "model": {}}, {"id": "sw0", "kind": "nvswitch"})";
const std::string kJoin = R"({"a": "gpu[0-1]", "b": "sw0", "link": LINK})";

TEST(BuildProblems, AnIdThatIsNoRange) {
  EXPECT_THAT(problems_of(box(R"({"id": "gpu[3-1]", "kind": "gpu", "model": {}})")),
              HasSubstr("\"gpu[3-1]\" is not a name or a range"));
}
TEST(BuildProblems, AModelIsMissing) {
  EXPECT_THAT(problems_of(box(R"({"id": "gpu0", "kind": "gpu"})")),
              HasSubstr("the GPU's model is missing"));
  EXPECT_THAT(problems_of(box(kTwo + R"(, {"id": "nic0", "kind": "nic"})", kJoin)),
              HasSubstr("the NIC's model is missing"));
}
TEST(BuildProblems, ANetworkSwitchInAServer) {
  EXPECT_THAT(problems_of(box(kTwo + R"(, {"id": "tor", "kind": "switch"})", kJoin)),
              HasSubstr("a network switch is not part of a server"));
}
TEST(BuildProblems, AccessControlWithoutARootComplex) {
  const auto with = [](const char* more, const char* more_links) {
    return fmt::format(R"({{"kind": "server", "acs": true, "nodes": [
        {{"id": "gpu[0-1]", "kind": "gpu", "model": {{}}}}, {{"id": "plx0", "kind": "pcie_switch"}}{}],
        "links": [{{"a": "gpu[0-1]", "b": "plx0", "link": LINK}}{}]}})",
                       more, more_links);
  };
  EXPECT_THAT(problems_of(with("", "")), HasSubstr("no way from \"plx0\" to a root complex"));
  // A socket behind a GPU is none.
  const std::string cpu = R"(, {"id": "cpu0", "kind": "cpu"})";
  EXPECT_THAT(problems_of(with(cpu.c_str(), R"(, {"a": "gpu0", "b": "cpu0", "link": LINK})")),
              HasSubstr("no way from \"plx0\" to a root complex"));
  EXPECT_EQ(problems_of(with(cpu.c_str(), R"(, {"a": "plx0", "b": "cpu0", "link": LINK})")), "");
}
TEST(BuildProblems, AnUnknownRole) {
  EXPECT_THAT(
      problems_of(box(
          kTwo + R"(, {"id": "nic0", "kind": "nic", "role": "storrage", "model": {"link": LINK}})",
          kJoin)),
      HasSubstr("\"storrage\" is not a role"));
}
TEST(BuildProblems, AnIdUsedTwice) {
  EXPECT_THAT(problems_of(box(kTwo + R"(, {"id": "gpu1", "kind": "cpu"})", kJoin)),
              HasSubstr("the id \"gpu1\" is used twice"));
}
TEST(BuildProblems, ALinkToNowhere) {
  EXPECT_THAT(problems_of(box(kTwo, R"({"a": "gpu[0-1]", "b": "sv0", "link": LINK})")),
              HasSubstr("there is no node \"sv0\", did you mean \"sw0\"?"));
  EXPECT_THAT(problems_of(box(kTwo, R"({"a": "gpu[0-", "b": "sw0", "link": LINK})")),
              HasSubstr("\"gpu[0-\" is not a name or a range"));
}
TEST(BuildProblems, PairingsThatDoNotMatch) {
  EXPECT_THAT(
      problems_of(box(kTwo, R"({"a": "gpu[0-1]", "b": "sw0", "pair": "each", "link": LINK})")),
      HasSubstr("\"each\" pairs 2 nodes with 1"));
  EXPECT_THAT(
      problems_of(box(kTwo, R"({"a": "sw0", "b": "gpu[0-1]", "pair": "block", "link": LINK})")),
      HasSubstr("1 nodes cannot be split into 2 equal blocks"));
}
TEST(BuildProblems, ALinkToItself) {
  EXPECT_THAT(
      problems_of(box(kTwo, R"({"a": "gpu[0-1]", "b": "gpu[0-1]", "pair": "each", "link": LINK})")),
      HasSubstr("a link from \"gpu0\" to itself"));
}
TEST(BuildProblems, ALinkWithoutARate) {
  const auto empty = [](const LinkSpec&, Diagnostics&) { return LinkLaw{}; };
  const LinkClassEntry entry{LinkClass::ethernet, "", "", empty};
  const LinkClassEntry* const classes[] = {&entry};
  Diagnostics out;
  LinkSpec spec;
  link_law(spec, classes, out);
  spec.link_class = LinkClass::cxl;
  link_law(spec, classes, out);
  EXPECT_THAT(out.text(), HasSubstr("this ethernet link has no rate"));
  EXPECT_THAT(out.text(), HasSubstr("no law for links of class \"cxl\""));
}
TEST(BuildProblems, AServerWithoutGpus) {
  EXPECT_THAT(problems_of(box(R"({"id": "cpu0", "kind": "cpu"})")),
              HasSubstr("a server without GPUs"));
}
TEST(BuildProblems, APartThatIsNotConnected) {
  EXPECT_THAT(problems_of(box(kTwo, R"({"a": "gpu0", "b": "sw0", "link": LINK})")),
              HasSubstr("the GPU \"gpu1\" is not connected to \"gpu0\""));
  const std::string loose =
      box(kTwo + R"(, {"id": "nic0", "kind": "nic", "model": {"link": LINK}})", kJoin);
  EXPECT_EQ(problems_of(loose), "");  // harmless while there is no network
  EXPECT_THAT(problems_of(cluster(2, loose, kSwitch)),
              HasSubstr("the NIC \"nic0\" is not connected to \"gpu0\""));
}
TEST(BuildProblems, AServerWithoutANicInANetwork) {
  EXPECT_THAT(problems_of(cluster(2, box(kTwo, kJoin), kSwitch)),
              HasSubstr("a server without a compute NIC cannot join the network"));
}
TEST(BuildProblems, ServersWithoutANetwork) {
  EXPECT_THAT(
      problems_of(fmt::format(R"({{"kind": "fabric", "servers": 2, "server": {}}})", server(1))),
      HasSubstr("2 servers and no network"));
}
TEST(BuildProblems, MoreLinksThanCanBeHeld) {
  EXPECT_THAT(problems_of(cluster(1'000'000, server(16), kSwitch)),
              HasSubstr(fmt::format("links in the servers alone, more than the {}", kMostLinks)));
}
TEST(BuildProblems, NoLinkBetweenSwitches) {
  EXPECT_THAT(
      problems_of(cluster(2, server(1), R"("generator": "leaf-spine", "switch": {"ports": 8})")),
      HasSubstr("neither the network nor its switch names a link"));
}
TEST(BuildProblems, ANicWithoutACable) {
  EXPECT_THAT(
      problems_of(cluster(
          2, server(1),
          R"("generator": "explicit", "switch": {"ports": 8, "link": LINK}, "switches": ["a"],
                                                  "cables": [{"a": "server0/nic0", "b": "a"}])")),
      HasSubstr("server1/nic0 has no cable"));
}
TEST(BuildProblems, ServersCountedTwice) {
  EXPECT_THAT(problems_of(fmt::format(
                  R"({{"kind": "fabric", "servers": 2, "server": [{{"count": 1, "server": {}}}]}})",
                  server(1))),
              HasSubstr("the array of \"server\" already counts the servers"));
  EXPECT_THAT(problems_of(R"({"kind": "fabric", "server": []})"), HasSubstr("no servers"));
}

}  // namespace
}  // namespace weft
