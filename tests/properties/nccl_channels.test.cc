// SPDX-License-Identifier: Apache-2.0
// What holds for NCCL's channels on every server of the catalogue, any GPUs of it, any release and several such servers.
#include <algorithm>
#include <map>
#include <numeric>
#include <set>

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <rapidcheck.h>
#include <rapidcheck/gtest.h>

#include "models/catalog.hpp"
#include "models/nccl/assumed.hpp"
#include "models/nccl/graph.hpp"
#include "sim/core/loader.hpp"
#include "tools/cli/file_source.hpp"

namespace weft::properties {
namespace {

const std::vector<NcclVersion> kReleases = {
    {2, 6, 4},  {2, 8, 4},  {2, 10, 3}, {2, 12, 12}, {2, 16, 5}, {2, 18, 3}, {2, 19, 3}, {2, 20, 5},
    {2, 21, 5}, {2, 23, 4}, {2, 25, 1}, {2, 26, 2},  {2, 27, 7}, {2, 28, 9}, {2, 30, 7}};

std::vector<std::string> nvidia_servers() {
  Configs configs(WEFT_SOURCE_DIR "/configs");
  std::vector<std::string> out = configs.names("server");
  std::erase_if(out, [](const std::string& name) {
    return name.starts_with("mi300x") || name.starts_with("ascend");
  });
  return out;
}

Fabric several(const std::string& server, int count) {
  Configs configs(WEFT_SOURCE_DIR "/configs");
  Diagnostics out;
  Json document = Loader(configs, out).load_component("server", server);
  RC_ASSERT(out.ok());
  Json fabric = Json::object();
  Json head = Json::object();
  head.set("schema", 1);
  fabric.set("weft", std::move(head));
  fabric.set("kind", "fabric");
  fabric.set("name", "several");
  fabric.set("summary", "for a test");
  fabric.set("servers", count);
  fabric.set("server", std::move(document));
  if (count > 1) {
    Json network = Json::object();
    network.set("generator", "single-switch");
    Json big = Loader(configs, out).load_component("switch", "qm9700");
    big.set("ports", 4096);
    network.set("switch", std::move(big));
    fabric.set("network", std::move(network));
  }
  FabricSpec spec = read_fabric(fabric, {}, out);
  RC_ASSERT(out.ok());
  Fabric built = build_fabric(std::move(spec), link_classes(), out);
  RC_ASSERT(out.ok());
  return built;
}

bool same(const NcclTopology& a, const NcclTopology& b) {
  if (a.connections.rings.size() != b.connections.rings.size()) return false;
  for (std::size_t c = 0; c < a.connections.rings.size(); ++c) {
    if (a.connections.rings[c].ranks != b.connections.rings[c].ranks ||
        a.connections.rings[c].nics != b.connections.rings[c].nics ||
        a.connections.trees[c].up != b.connections.trees[c].up)
      return false;
  }
  return a.notes == b.notes && a.p2p_channels == b.p2p_channels;
}

void check_connections(const NcclTopology& topology) {
  RC_ASSERT(!topology.connections.rings.empty());
  RC_ASSERT(topology.connections.trees.size() == topology.connections.rings.size());
  for (const auto& ring : topology.connections.rings) {
    RC_ASSERT(ring.ranks.size() == topology.ranks);
    RC_ASSERT(std::set(ring.ranks.begin(), ring.ranks.end()).size() == topology.ranks);
  }
  for (const auto& tree : topology.connections.trees) {
    std::size_t roots = 0;
    for (std::uint32_t r = 0; r < topology.ranks; ++r) {
      std::size_t steps = 0;
      std::uint32_t at = r;
      while (tree.up[at] != NcclConnections::kNoRank && steps <= topology.ranks) {
        at = tree.up[at];
        ++steps;
      }
      RC_ASSERT(steps < topology.ranks);
      if (tree.up[r] == NcclConnections::kNoRank) ++roots;
    }
    RC_ASSERT(roots == 1U);
  }
  // Every node takes and gives each ring once.
  std::map<std::uint32_t, std::pair<std::size_t, std::size_t>> rings_of_node;
  for (const NcclNicUse& use : nccl_ring_nic_use(topology)) {
    rings_of_node[use.node].first += use.in;
    rings_of_node[use.node].second += use.out;
  }
  RC_ASSERT(rings_of_node.size() == (topology.nodes > 1 ? topology.nodes : 0U));
  for (const auto& [node, count] : rings_of_node) {
    RC_ASSERT(count.first == topology.connections.rings.size());
    RC_ASSERT(count.second == topology.connections.rings.size());
  }
}

// Each NVLink carries at most as many channels as NCCL believes it can: directed hops of rings against the links there are.
void check_nvlinks(const Fabric& fabric, std::span<const NodeId> gpus, const NcclTopology& topology,
                   NcclVersion version) {
  const NcclGraph& ring = topology.graphs.at(NcclPattern::ring);
  if (ring.type_intra != NcclPath::nvl || topology.nodes > 1) return;
  std::map<std::pair<NodeId, NodeId>, int> links;
  std::map<NodeId, int> to_switches;
  for (const NodeId gpu : gpus) {
    for (const LinkId l : fabric.out_links(gpu)) {
      const Link& link = fabric.link(l);
      if (link.link_class != LinkClass::nvlink) continue;
      if (fabric.node(link.to).kind == NodeKind::gpu) links[{gpu, link.to}] += link.count;
      if (fabric.node(link.to).kind == NodeKind::nvswitch) to_switches[gpu] += link.count;
    }
  }
  const double one =
      static_cast<double>(nccl::nvlink_speed(version, topology.min_compute_capability)) / 1000;
  std::map<std::pair<NodeId, NodeId>, double> used;
  std::map<NodeId, double> sent;
  for (const NcclChannel& channel : ring.channels) {
    for (std::size_t i = 0; channel.gpus.size() > 1 && i < channel.gpus.size(); ++i) {
      const NodeId a = gpus[channel.gpus[i]], b = gpus[channel.gpus[(i + 1) % channel.gpus.size()]];
      used[{a, b}] += ring.bw_intra;
      sent[a] += ring.bw_intra;
    }
  }
  if (topology.nvswitch) {
    for (const auto& [gpu, speed] : sent) RC_ASSERT(speed <= to_switches[gpu] * one + 0.01);
    return;
  }
  for (const auto& [hop, speed] : used) {
    RC_ASSERT(links.contains(hop));
    RC_ASSERT(speed <= links[hop] * one + 0.01);
  }
}

RC_GTEST_PROP(NcclChannels, AreSoundOnAnyGpusOfAnyServer, ()) {
  static const std::vector<std::string> names = nvidia_servers();
  const std::string name = *rc::gen::elementOf(names);
  const NcclVersion version = *rc::gen::elementOf(kReleases);
  // Before multi-node NVLink a rack of trays is several nodes, and this one has no network.
  RC_PRE(!name.starts_with("gb") || version >= (NcclVersion{2, 21, 5}));
  const Fabric fabric = several(name, 1);
  std::vector<NodeId> gpus;
  for (const NodeId gpu : fabric.gpus()) {
    if (*rc::gen::inRange(0, 4) > 0) gpus.push_back(gpu);
  }
  if (gpus.empty()) gpus.push_back(fabric.gpus()[0]);
  // Ranks need not be in the order of the server.
  for (std::size_t i = gpus.size(); *rc::gen::arbitrary<bool>() && i > 1; --i)
    std::swap(gpus[i - 1], gpus[*rc::gen::inRange<std::size_t>(0, i)]);
  const NcclTopology topology = nccl_topology(fabric, gpus, version, {});
  RC_ASSERT(topology.ranks == gpus.size());
  RC_ASSERT(topology.node_of_rank.size() == gpus.size());
  check_connections(topology);
  check_nvlinks(fabric, gpus, topology, version);
  for (const auto& [pattern, graph] : topology.graphs) {
    RC_ASSERT(graph.bw_intra > 0);
    RC_ASSERT(graph.channels.size() <= 64U);
  }
  RC_ASSERT(same(topology, nccl_topology(fabric, gpus, version, {})));
}

RC_GTEST_PROP(NcclChannels, AreSoundOverAnyNumberOfServers, ()) {
  static const std::vector<std::string> names = [] {
    std::vector<std::string> out = nvidia_servers();
    std::erase_if(out, [](const std::string& name) {
      return name.starts_with("gb") || name == "pcie-titanrtx8" || name == "sli-rtx2080";
    });
    return out;
  }();
  const std::string name = *rc::gen::elementOf(names);
  const NcclVersion version = *rc::gen::elementOf(kReleases);
  const int nodes = *rc::gen::inRange(2, 10);
  const Fabric fabric = several(name, nodes);
  const std::size_t local = fabric.gpus().size() / static_cast<std::size_t>(nodes);
  const std::size_t taken = *rc::gen::inRange<std::size_t>(1, local + 1);
  std::vector<NodeId> gpus;
  for (std::size_t g = 0; g < fabric.gpus().size(); ++g) {
    if (g % local < taken) gpus.push_back(fabric.gpus()[g]);
  }
  NcclEnvironment environment;
  environment.variables["NCCL_CROSS_NIC"] = fmt::format("{}", *rc::gen::inRange(0, 3));
  if (*rc::gen::arbitrary<bool>()) environment.variables["NCCL_PXN_DISABLE"] = "1";
  const NcclTopology topology = nccl_topology(fabric, gpus, version, environment);
  check_connections(topology);
  if (environment.variables["NCCL_CROSS_NIC"] != "0") return;
  for (const NcclChannel& channel : topology.graphs.at(NcclPattern::ring).channels)
    RC_ASSERT(channel.nic_in == channel.nic_out);
}

}  // namespace
}  // namespace weft::properties
