// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <bit>
#include <map>
#include <memory>
#include <set>

#include <fmt/format.h>

#include "models/nccl/graph.hpp"
#include "models/nccl/node_study.hpp"
#include "models/nccl/notes.hpp"
#include "sim/core/diagnostics.hpp"

namespace weft {
namespace nccl {
namespace {

// ---- nodes

struct Group {
  ServerId server;
  std::vector<std::uint32_t> positions;  // of its GPUs in the server, in rank order
  std::uint32_t first_rank = 0;
};

// Ranks in a row that share a server (or, without multi-node NVLink, a host) are a node.
std::vector<Group> group_ranks(const Fabric& fabric, std::span<const NodeId> gpus, bool by_host) {
  std::vector<Group> groups;
  std::set<std::pair<std::uint32_t, std::uint32_t>> closed;
  std::pair<std::uint32_t, std::uint32_t> current{~0U, ~0U};
  std::map<std::uint32_t, std::vector<std::uint32_t>> hosts;  // by type
  std::set<std::uint32_t> seen;
  for (std::uint32_t r = 0; r < gpus.size(); ++r) {
    const Node& node = fabric.node(gpus[r]);
    if (node.kind != NodeKind::gpu)
      throw InputError(fmt::format("error: {} is not a GPU\n", fabric.name(gpus[r])));
    if (!seen.insert(gpus[r].v).second)
      throw InputError(fmt::format("error: {} is given twice\n", fabric.name(gpus[r])));
    const ServerPlace& place = fabric.server(node.server);
    const ServerType& type = fabric.type_of(node.server);
    const std::uint32_t local = gpus[r].v - place.node_base;
    std::uint32_t host = 0;
    if (by_host) {
      auto& table = hosts[place.type];
      if (table.empty()) table = hosts_of(type);
      host = table[local];
    }
    const std::pair key{node.server.v, host};
    if (key != current) {
      if (!closed.insert(key).second) {
        throw InputError(
            fmt::format("error: rank {} ({}) is apart from the other ranks of its server\n"
                        "    ranks of one server must follow each other\n",
                        r, fabric.name(gpus[r])));
      }
      current = key;
      groups.push_back({node.server, {}, r});
    }
    groups.back().positions.push_back(static_cast<std::uint32_t>(fabric.gpu_position(gpus[r])));
  }
  return groups;
}

// InfiniBand ports announce round numbers: FDR is 14 Gb/s a lane, whatever the coding leaves.
Speed port_speed(const LinkSpec& link, Bandwidth raw) {
  if (link.link_class == LinkClass::infiniband && link.speed == "fdr")
    return 14'000 * std::max(link.width, 1) / 8;
  return raw.bps / 8'000'000;
}

NicPorts cabled_ports(const Fabric& fabric, ServerId server) {
  const ServerType& type = fabric.type_of(server);
  NicPorts out(type.nics.size());
  for (std::size_t p = 0; p < type.nics.size(); ++p) {
    for (const LinkId l : fabric.out_links(fabric.local_node(server, type.nics[p]))) {
      const Link& link = fabric.link(l);
      if (fabric.node(link.to).kind != NodeKind::network_switch) continue;
      const Bandwidth one{link.raw.bps / std::max<std::int64_t>(link.count, 1)};
      for (std::uint16_t i = 0; i < link.count; ++i)
        out[p].push_back(port_speed(type.nic_specs[p].link, one));
    }
  }
  return out;
}

// ---- what all nodes agree on

NcclGraph to_graph(NcclPattern pattern, const Channels& channels, const NodeChannels& node) {
  NcclGraph out;
  out.pattern = pattern;
  out.tree_shape = channels.shape == Shape::balanced_tree ? NcclTreeShape::balanced
                   : channels.shape == Shape::split_tree  ? NcclTreeShape::split
                                                          : NcclTreeShape::chain;
  const std::size_t gpus = node.rank_of.size();
  const bool heads = pattern == NcclPattern::nvls;
  for (std::size_t c = 0; c < channels.count; ++c) {
    NcclChannel channel;
    for (std::size_t i = 0; i < (heads ? std::min<std::size_t>(gpus, 1) : gpus); ++i)
      channel.gpus.push_back(node.rank_of[channels.gpus[c * gpus + i]]);
    for (std::size_t i = 0; heads && i < gpus; ++i) {
      if (i != channels.gpus[c * gpus]) channel.gpus.push_back(node.rank_of[i]);
    }
    const auto [in, out_net] = channels.nets[c];
    if (in >= 0) channel.nic_in = node.nic_of[static_cast<std::size_t>(in)];
    if (out_net >= 0) channel.nic_out = node.nic_of[static_cast<std::size_t>(out_net)];
    out.channels.push_back(std::move(channel));
  }
  out.bw_intra = static_cast<double>(channels.inside) / 1000;
  out.bw_inter = static_cast<double>(channels.network) / 1000;
  out.type_intra = channels.type_inside;
  out.type_inter = channels.type_network;
  out.cross_nic = channels.cross_nic != 0;
  out.same_channels = channels.same_order;
  return out;
}

NcclGraph weakest(NcclPattern pattern, std::span<const NodeStudy* const> kinds,
                  Channels NodeChannels::*which) {
  NcclGraph out = to_graph(pattern, kinds[0]->channels.*which, kinds[0]->channels);
  for (const NodeStudy* kind : kinds) {
    const NcclGraph other = to_graph(pattern, kind->channels.*which, kind->channels);
    if (other.channels.size() < out.channels.size()) out.channels = other.channels;
    out.bw_intra = std::min(out.bw_intra, other.bw_intra);
    out.bw_inter = std::min(out.bw_inter, other.bw_inter);
    out.type_intra = std::max(out.type_intra, other.type_intra);
    out.type_inter = std::max(out.type_inter, other.type_inter);
    out.cross_nic = out.cross_nic || other.cross_nic;
    out.same_channels = out.same_channels && other.same_channels;
    out.tree_shape = std::max(out.tree_shape, other.tree_shape);
  }
  return out;
}

// Copies up to `count` channels, each from the one as many places before as there were.
void grow(std::vector<std::uint32_t>& source, std::size_t count) {
  const std::size_t had = source.size();
  for (std::size_t c = had; c < count; ++c) source.push_back(source[c - had]);
}

std::vector<std::uint32_t> compute_channels(const NcclTopology& topology, const Rules& rules,
                                            const Variables& variables, std::size_t searched) {
  std::vector<std::uint32_t> source;
  for (std::uint32_t c = 0; c < std::min<std::size_t>(rules.most_channels, 2 * searched); ++c)
    source.push_back(c);
  if (topology.collnet) {
    const NcclGraph& chain = topology.graphs.at(NcclPattern::collnet_chain);
    if (chain.bw_intra > chain.bw_inter && topology.ranks > topology.nodes)
      grow(source, std::min<std::size_t>(rules.most_channels, source.size() * 3 / 2));
  }
  const int cc = topology.min_compute_capability;
  const bool fast_gpus = rules.hopper_doubles_blackwell ? cc >= 90 : cc == 90;
  if (rules.hopper_doubles && fast_gpus && topology.nodes > 1 &&
      topology.graphs.at(NcclPattern::ring).bw_intra > 45 &&
      source.size() < rules.hopper_doubles_below)
    grow(source, 2 * source.size());
  if (variables.max_channels)
    source.resize(std::min(source.size(), static_cast<std::size_t>(*variables.max_channels)));
  if (variables.min_channels)
    grow(source, std::min<std::size_t>(static_cast<std::size_t>(*variables.min_channels),
                                       rules.most_channels));
  return source;
}

std::uint32_t nvls_channels(const NcclTopology& topology, const Rules& rules,
                            const Variables& variables) {
  std::uint32_t count = rules.nvls.hopper;
  if (topology.max_compute_capability >= 100) {
    count = topology.nodes > 1 ? rules.nvls.blackwell : rules.nvls.blackwell_one_node;
    if (rules.nvls_by_nic && topology.nodes > 1 && topology.min_compute_capability >= 100) {
      // Source: v2.30.3-1 src/transport/nvls.cc.
      const double nic = topology.least_nic_bw;
      if (topology.nodes == 2 && nic >= 48) {
        count = 32;
      } else if (nic >= 96) {
        count = topology.least_local_ranks <= 8 ? 24 : 32;
      } else if (nic >= 48) {
        count = 24;
      }
    }
  }
  if (variables.nvls_channels) count = static_cast<std::uint32_t>(*variables.nvls_channels);
  if (variables.max_channels)
    count = std::min(count, static_cast<std::uint32_t>(*variables.max_channels));
  if (variables.min_channels)
    count = std::max(count, static_cast<std::uint32_t>(*variables.min_channels));
  return count;
}

void count_point_to_point(NcclTopology& topology, const Rules& rules, const Variables& variables,
                          const NodeStudy& kind) {
  // Source: paths.cc of each release. Kernels take powers of two.
  std::size_t channels = topology.connections.rings.size();
  if (rules.nvls_extends_channels && topology.nvls)
    channels = std::max<std::size_t>(channels, topology.nvls_channels);
  channels =
      std::min(channels, static_cast<std::size_t>(variables.max_p2p.value_or(rules.most_channels)));
  channels = std::max(channels, static_cast<std::size_t>(variables.min_p2p.value_or(1)));
  std::size_t per_peer = std::min<std::size_t>(
      rules.peer_channels_by_network ? rules.most_channels : channels, kind.peers_inside);
  if (topology.nodes > 1) {
    std::size_t net = 0;
    if (variables.net_peer) {
      net = static_cast<std::size_t>(*variables.net_peer);
    } else if (rules.net_channels_per_peer >= 0) {
      net = static_cast<std::size_t>(rules.net_channels_per_peer);
    } else if (rules.peer_channels_by_network) {
      constexpr Speed kPerChannel = 14;  // GB/s
      net = 2;
      if (kind.nets_by_speed > 0)
        net = std::max<std::size_t>(
            kind.nets_by_speed,
            static_cast<std::size_t>((kind.net_speed / 1000 + kPerChannel - 1) / kPerChannel));
    } else {
      net = 2;
      while (net * topology.ranks > channels * 4 && net > 1) net /= 2;
      net = std::max<std::size_t>(net, kind.nets_by_speed);
    }
    per_peer = std::min(per_peer, net);
  }
  per_peer = std::bit_ceil(std::max<std::size_t>(per_peer, 1));
  channels = std::bit_ceil(channels);
  if (rules.peer_channels_by_network && topology.nodes > 1 && !variables.net_peer) {
    constexpr std::size_t kPeersPerBatch = 8;
    while (per_peer * ((topology.ranks + kPeersPerBatch - 1) / kPeersPerBatch) > channels &&
           per_peer > 1)
      per_peer /= 2;
  } else {
    per_peer = std::min(per_peer, channels);
  }
  topology.p2p_channels = static_cast<std::uint32_t>(channels);
  topology.p2p_channels_per_peer = static_cast<std::uint32_t>(per_peer);
}

// The heads every node has; a head stands for the same part of the data in all of them.
std::vector<std::uint32_t> heads_of(std::span<const NodeStudy* const> kinds) {
  std::vector<std::uint32_t> least;
  for (std::size_t k = 0; k < kinds.size(); ++k) {
    const NodeChannels& c = kinds[k]->channels;
    std::vector<std::uint32_t> heads;
    for (std::size_t i = 0; i < c.nvls.count; ++i) {
      const std::uint32_t head = c.rank_of[c.nvls.gpus[i * c.rank_of.size()]];
      if (std::ranges::find(heads, head) == heads.end()) heads.push_back(head);
    }
    if (k == 0) {
      least = heads;
    } else if (heads.size() < least.size()) {
      least.resize(heads.size());
    }
  }
  return least;
}

}  // namespace

NcclTopology study_fabric(const Fabric& fabric, std::span<const NodeId> gpus, NcclVersion version,
                          const NcclEnvironment& environment) {
  if (gpus.empty()) throw InputError("error: a communicator needs at least one GPU\n");
  const Rules rules = rules_of(version);
  Variables variables = read_variables(environment);
  const bool by_host = !rules.multi_node_nvlink || !variables.mnnvl;
  const std::vector<Group> groups = group_ranks(fabric, gpus, by_host);

  NcclTopology out;
  out.version = version;
  out.ranks = gpus.size();
  out.nodes = groups.size();
  const bool network = groups.size() > 1;
  variables.collnet =
      variables.collnet && network && fabric.network() &&
      fabric.network()->switch_model.reduction &&
      static_cast<std::int64_t>(groups.size()) >= variables.collnet_nodes.value_or(2);

  using Key = std::tuple<std::uint32_t, std::vector<std::uint32_t>, NicPorts>;
  std::map<Key, std::unique_ptr<NodeStudy>> studied;
  std::vector<const NodeStudy*> kinds;
  std::vector<NodePlace> places;
  for (std::size_t n = 0; n < groups.size(); ++n) {
    const Group& group = groups[n];
    NicPorts ports;
    if (network) {
      ports = cabled_ports(fabric, group.server);
      if (std::ranges::all_of(ports, [](const auto& nic) { return nic.empty(); })) {
        throw InputError(
            fmt::format("error: {} cannot reach other {}: its own has no cabled NIC\n{}",
                        fabric.name(gpus[group.first_rank]), by_host ? "hosts" : "servers",
                        by_host ? "    without multi-node NVLink (since NCCL 2.21, "
                                  "NCCL_MNNVL_ENABLE) each host of a "
                                  "rack is a node of its own\n"
                                : ""));
      }
    }
    auto& kind = studied[{fabric.server(group.server).type, group.positions, ports}];
    if (!kind) {
      kind = study_node(fabric.type_of(group.server), group.positions, ports, rules, variables,
                        groups.size());
    }
    kinds.push_back(kind.get());
    places.push_back({&kind->channels, group.first_rank});
    for (std::size_t i = 0; i < group.positions.size(); ++i)
      out.node_of_rank.push_back(static_cast<std::uint32_t>(n));
    out.most_local_ranks = std::max(out.most_local_ranks, group.positions.size());
    out.least_local_ranks =
        n == 0 ? group.positions.size() : std::min(out.least_local_ranks, group.positions.size());
  }

  std::vector<const NodeStudy*> distinct;
  for (const auto& [key, kind] : studied) distinct.push_back(kind.get());
  // The first node leads: what is shown of a graph is its.
  std::swap(*std::ranges::find(distinct, kinds[0]), distinct[0]);
  out.min_compute_capability = distinct[0]->least_capability;
  out.nvls = true;
  for (const NodeStudy* kind : distinct) {
    out.min_compute_capability = std::min(out.min_compute_capability, kind->least_capability);
    out.max_compute_capability = std::max(out.max_compute_capability, kind->most_capability);
    out.amd_cpu = out.amd_cpu || kind->cpu == CpuKind::amd;
    out.nvswitch = out.nvswitch || kind->nvs;
    out.nvls = out.nvls && kind->channels.nvls.count > 0;
    const double nic = static_cast<double>(kind->least_nic) / 1000;
    out.least_nic_bw = out.least_nic_bw == 0 ? nic : std::min(out.least_nic_bw, nic);
    out.notes.insert(out.notes.end(), kind->notes.begin(), kind->notes.end());
  }

  out.graphs[NcclPattern::ring] = weakest(NcclPattern::ring, distinct, &NodeChannels::ring);
  out.graphs[NcclPattern::tree] = weakest(NcclPattern::tree, distinct, &NodeChannels::tree);
  const std::size_t searched = std::min(out.graphs[NcclPattern::ring].channels.size(),
                                        out.graphs[NcclPattern::tree].channels.size());
  out.graphs[NcclPattern::ring].channels.resize(searched);
  out.graphs[NcclPattern::tree].channels.resize(searched);
  if (variables.collnet) {
    NcclGraph chain = weakest(NcclPattern::collnet_chain, distinct, &NodeChannels::chain);
    out.collnet = !chain.channels.empty();
    if (out.collnet) out.graphs[NcclPattern::collnet_chain] = std::move(chain);
    NcclGraph direct = weakest(NcclPattern::collnet_direct, distinct, &NodeChannels::direct);
    if (out.collnet && !direct.channels.empty())
      out.graphs[NcclPattern::collnet_direct] = std::move(direct);
  }
  if (!rules.nvls_graph && version >= NcclVersion{2, 17, 0} && variables.nvls && !network &&
      distinct[0]->multicast && out.ranks >= rules.nvls_least_gpus &&
      out.min_compute_capability >= 90) {
    // 2.17 searches nothing: every GPU is a head.
    out.nvls = true;
    NcclGraph all = out.graphs[NcclPattern::ring];
    all.pattern = NcclPattern::nvls;
    all.channels.clear();
    for (std::uint32_t head = 0; head < out.ranks; ++head) {
      NcclChannel channel;
      channel.gpus.push_back(head);
      for (std::uint32_t r = 0; r < out.ranks; ++r) {
        if (r != head) channel.gpus.push_back(r);
      }
      all.channels.push_back(std::move(channel));
      out.connections.nvls_heads.push_back(head);
    }
    out.graphs[NcclPattern::nvls] = std::move(all);
  } else if (out.nvls) {
    out.graphs[NcclPattern::nvls] = weakest(NcclPattern::nvls, distinct, &NodeChannels::nvls);
  }
  out.nvls_channels = out.nvls ? nvls_channels(out, rules, variables) : 0;

  JoinPlan plan;
  plan.searched = searched;
  plan.source = compute_channels(out, rules, variables, searched);
  int cross_nic = 0;
  for (const NodeStudy* kind : distinct)
    cross_nic = std::max(cross_nic, kind->channels.ring.cross_nic);
  plan.swap_odd_nodes = rules.swap_odd_nodes && searched % 2 == 0 &&
                        cross_nic >= rules.swap_cross_nic &&
                        (!rules.swap_needs_even_nodes || groups.size() % 2 == 0);
  plan.swap_from = rules.swap_by_node ? rules.swap_cross_nic : 0;
  std::vector<std::uint32_t> heads = std::move(out.connections.nvls_heads);
  out.connections = join_nodes(places, out.ranks, plan);
  out.connections.nvls_heads = out.nvls && rules.nvls_graph ? heads_of(distinct) : heads;
  count_point_to_point(out, rules, variables, *kinds[0]);
  std::set<std::uint32_t> servers;
  for (const Group& group : groups) servers.insert(group.server.v);
  note_communicator(out, rules, plan, servers.size() < groups.size(), out.notes);
  return out;
}

}  // namespace nccl

NcclTopology nccl_topology(const Fabric& fabric, std::span<const NodeId> gpus, NcclVersion version,
                           const NcclEnvironment& environment) {
  return nccl::study_fabric(fabric, gpus, version, environment);
}

std::vector<NcclNicUse> nccl_ring_nic_use(const NcclTopology& topology) {
  std::map<std::pair<std::uint32_t, std::int32_t>, NcclNicUse> uses;
  const auto use = [&](std::size_t rank, std::int32_t nic) -> NcclNicUse& {
    const std::uint32_t node = topology.node_of_rank[rank];
    NcclNicUse& entry = uses[{node, nic}];
    entry.node = node;
    entry.nic = nic;
    return entry;
  };
  for (const auto& ring : topology.connections.rings) {
    for (std::size_t r = 0; r < ring.nics.size(); ++r) {
      if (ring.nics[r][0] >= 0) ++use(r, ring.nics[r][0]).in;
      if (ring.nics[r][1] >= 0) ++use(r, ring.nics[r][1]).out;
    }
  }
  std::vector<NcclNicUse> out;
  for (const auto& [key, entry] : uses) out.push_back(entry);
  return out;
}

}  // namespace weft
