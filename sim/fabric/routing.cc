// SPDX-License-Identifier: Apache-2.0
#include "sim/fabric/routing.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "sim/core/check.hpp"

namespace weft {
namespace {

constexpr std::int64_t kUnlimited =
    std::numeric_limits<std::int64_t>::max();  // the rate of a route that crosses nothing

bool scale_up_node(NodeKind kind) { return kind == NodeKind::gpu || kind == NodeKind::nvswitch; }
bool host_transit(NodeKind kind) { return kind == NodeKind::cpu || kind == NodeKind::pcie_switch; }

bool scale_up_link(const ServerType& type, const Link& link) {
  return scale_up_node(type.nodes[link.from.v].kind) && scale_up_node(type.nodes[link.to.v].kind);
}

}  // namespace

Bandwidth Transfer::rate(const Fabric& fabric) const {
  double seconds_per_bit = 0;
  for (const Leg& leg : legs) {
    Bandwidth rate = leg.route.rate(fabric);
    if (leg.cap.bps > 0) rate = std::min(rate, leg.cap);
    if (rate.bps <= 0) return {0};
    if (rate.bps == kUnlimited) continue;
    seconds_per_bit += 1.0 / static_cast<double>(rate.bps);
  }
  return {seconds_per_bit > 0 ? static_cast<std::int64_t>(1.0 / seconds_per_bit) : kUnlimited};
}

Time Transfer::latency() const {
  Time sum{0};
  for (const Leg& leg : legs) sum += leg.startup + leg.route.latency;
  return sum;
}

Routes::Routes(const Fabric& fabric)
    : fabric_(fabric),
      tables_(fabric.types().size()),
      nic_index_(fabric.node_count(), 0),
      network_(fabric) {
  for (std::size_t t = 0; t < tables_.size(); ++t) {
    const ServerType& type = fabric.types()[t];
    TypeTables& tables = tables_[t];
    const std::size_t n = type.nodes.size();
    tables.scale_up.assign(n * n, -1);
    tables.host.assign(n * n, -1);
    tables.out.resize(n);
    for (std::size_t l = 0; l < type.links.size(); ++l) {
      tables.out[type.links[l].from.v].push_back(static_cast<std::uint32_t>(l));
    }
    tables.nics.resize(type.gpus.size());
  }
  // Leaf by leaf, so that the NICs of a leaf (of a rail, say) have consecutive numbers; then those without a cable.
  std::vector<std::uint8_t> counted(fabric.node_count(), 0);
  std::uint32_t count = 0;
  const auto number = [&](NodeId nic) {
    if (std::exchange(counted[nic.v], 1) == 0) nic_index_[nic.v] = count++;
  };
  for (const NodeId leaf : fabric.switches()) {
    for (const LinkId l : fabric.out_links(leaf)) {
      if (fabric.node(fabric.link(l).to).kind == NodeKind::nic) number(fabric.link(l).to);
    }
  }
  for (const NodeId nic : fabric.nics()) number(nic);
}

// ---- inside a server

// All shortest ways over scale-up links that do not pass a GPU, weighted by the rates of the links at each branching.
Routes::LocalPath Routes::find_scale_up(const ServerType& type, const TypeTables& tables,
                                        std::uint32_t from, std::uint32_t to) const {
  constexpr int kUnseen = -1;
  const std::size_t n = type.nodes.size();
  std::vector<int> distance(n, kUnseen);  // to `to`
  std::vector<std::uint32_t> frontier{to}, next;
  distance[to] = 0;
  for (int d = 1; !frontier.empty() && distance[from] == kUnseen; ++d) {
    next.clear();
    for (const std::uint32_t at : frontier) {
      if (at != to && type.nodes[at].kind == NodeKind::gpu) continue;
      for (const std::uint32_t l : tables.out[at]) {
        const std::uint32_t other = type.links[l].to.v;
        if (!scale_up_link(type, type.links[l]) || distance[other] != kUnseen) continue;
        distance[other] = d;
        next.push_back(other);
      }
    }
    std::swap(frontier, next);
  }
  LocalPath path;
  if (distance[from] == kUnseen) return path;
  path.found = true;
  std::vector<double> weight(n, 0);
  weight[from] = 1;
  frontier = {from};
  std::uint32_t shown = from;
  for (int d = distance[from]; d > 0; --d) {
    next.clear();
    for (const std::uint32_t at : frontier) {
      if (at != from && type.nodes[at].kind == NodeKind::gpu) continue;
      double total = 0;
      const auto forward = [&](std::uint32_t l) {
        return scale_up_link(type, type.links[l]) && distance[type.links[l].to.v] == d - 1 &&
               (type.links[l].to.v == to || type.nodes[type.links[l].to.v].kind != NodeKind::gpu);
      };
      for (const std::uint32_t l : tables.out[at]) {
        if (forward(l)) total += static_cast<double>(type.links[l].rate.bps);
      }
      for (const std::uint32_t l : tables.out[at]) {
        if (!forward(l)) continue;
        const Link& link = type.links[l];
        const double share = weight[at] * static_cast<double>(link.rate.bps) / total;
        path.shares.push_back({l, share});
        if (weight[link.to.v] == 0) next.push_back(link.to.v);
        weight[link.to.v] += share;
        if (at == shown && path.hops.size() + static_cast<std::size_t>(d) ==
                               static_cast<std::size_t>(distance[from])) {
          path.hops.push_back(l);
          path.latency += link.delay;
          if (link.to.v != to) path.latency += type.nodes[link.to.v].latency;
        }
      }
    }
    if (!path.hops.empty()) shown = type.links[path.hops.back()].to.v;
    std::swap(frontier, next);
  }
  return path;
}

// The way with the fewest hops through PCIe switches and sockets.
Routes::LocalPath Routes::find_host(const ServerType& type, const TypeTables& tables,
                                    std::uint32_t from, std::uint32_t to) const {
  constexpr std::uint32_t kNone = 0xFFFF'FFFF;
  std::vector<std::uint32_t> by(type.nodes.size(), kNone);  // link by which a node was reached
  std::vector<std::uint32_t> queue{from};
  std::vector<std::uint8_t> seen(type.nodes.size(), 0);
  seen[from] = 1;
  for (std::size_t head = 0; head < queue.size() && seen[to] == 0; ++head) {
    const std::uint32_t at = queue[head];
    if (at != from && !host_transit(type.nodes[at].kind)) continue;
    for (const std::uint32_t l : tables.out[at]) {
      const Link& link = type.links[l];
      if (scale_up_link(type, link) || seen[link.to.v] != 0) continue;
      seen[link.to.v] = 1;
      by[link.to.v] = l;
      queue.push_back(link.to.v);
    }
  }
  LocalPath path;
  if (seen[to] == 0 || from == to) {
    path.found = from == to;
    return path;
  }
  path.found = true;
  for (std::uint32_t at = to; at != from; at = type.links[by[at]].from.v)
    path.hops.push_back(by[at]);
  std::ranges::reverse(path.hops);
  for (const std::uint32_t l : path.hops) {
    const Link& link = type.links[l];
    path.shares.push_back({l, 1});
    if (link.duplex != kNoResource) path.duplex.push_back(link.duplex);
    path.latency += link.delay;
    if (link.to.v == to) continue;
    path.latency += type.nodes[link.to.v].latency;
    path.sockets += type.nodes[link.to.v].kind == NodeKind::cpu ? 1 : 0;
    path.switches += type.nodes[link.to.v].kind == NodeKind::pcie_switch ? 1 : 0;
  }
  return path;
}

const Routes::LocalPath& Routes::local(ServerId server, bool scale_up, std::uint32_t from,
                                       std::uint32_t to) {
  const std::uint32_t t = fabric_.server(server).type;
  const ServerType& type = fabric_.types()[t];
  TypeTables& tables = tables_[t];
  std::int32_t& index = (scale_up ? tables.scale_up : tables.host)[from * type.nodes.size() + to];
  if (index < 0) {
    index = static_cast<std::int32_t>(tables.paths.size());
    tables.paths.push_back(scale_up ? find_scale_up(type, tables, from, to)
                                    : find_host(type, tables, from, to));
  }
  return tables.paths[static_cast<std::size_t>(index)];
}

void Routes::append_local(ServerId server, const LocalPath& path, bool staged, Route& out) const {
  const ServerPlace& place = fabric_.server(server);
  for (const Share& share : path.shares) out.add(share.resource + place.link_base, share.weight);
  if (staged) {
    for (const std::uint32_t d : path.duplex) out.add(d + place.duplex_base, 1);
  }
  for (const std::uint32_t l : path.hops) out.hops.push_back(LinkId{l + place.link_base});
  out.latency += path.latency;
}

bool Routes::reaches(const LocalPath& path, Reach reach) const {
  if (!path.found) return false;
  switch (reach) {
    case Reach::none:
      return false;
    case Reach::same_switch:
      return path.sockets == 0;
    case Reach::same_socket:
      return path.sockets <= 1;
    case Reach::all:
      return true;
  }
  return false;
}

// The DRAM of the nearest socket, or the socket; the first one when several are as near.
std::uint32_t Routes::nearest(ServerId server, std::uint32_t local_node, NodeKind kind) {
  const ServerType& type = fabric_.type_of(server);
  std::uint32_t best = kNoResource;
  std::size_t fewest = std::numeric_limits<std::size_t>::max();
  for (std::uint32_t i = 0; i < type.nodes.size(); ++i) {
    if (type.nodes[i].kind != kind) continue;
    const LocalPath& path = local(server, false, local_node, i);
    if (path.found && path.hops.size() < fewest) {
      fewest = path.hops.size();
      best = i;
    }
  }
  return best;
}

// Through host memory: down to the DRAM near `from`, up to `to`; both halves run at once, chunk by chunk.
bool Routes::append_staged(ServerId server, std::uint32_t from, std::uint32_t to, Route& out) {
  const std::uint32_t dram = nearest(server, from, NodeKind::dram);
  if (dram == kNoResource) return false;
  const LocalPath down = local(server, false, from, dram);
  const LocalPath up = local(server, false, dram, to);
  if (!down.found || !up.found) return false;
  append_local(server, down, true, out);
  append_local(server, up, true, out);
  return true;
}

// Device to device over PCIe; with access control, turned round by the root complex in place of a switch.
void Routes::append_peer(ServerId server, std::uint32_t from, std::uint32_t to, Route& out) {
  const ServerType& type = fabric_.type_of(server);
  const LocalPath& path = local(server, false, from, to);
  const bool redirected = type.spec.acs && path.sockets == 0 && path.switches > 0;
  if (!redirected) return append_local(server, path, false, out);
  const std::uint32_t root = nearest(server, from, NodeKind::cpu);
  WEFT_CHECK(root != kNoResource, from, to);  // see check_server
  append_local(server, local(server, false, from, root), true, out);
  append_local(server, local(server, false, root, to), true, out);
  out.latency += type.nodes[root].latency;
}

bool Routes::peers_over_scale_up(NodeId a, NodeId b) {
  const Node& from = fabric_.node(a);
  const Node& to = fabric_.node(b);
  return from.server == to.server && fabric_.type_of(from.server).spec.peer_access.nvlink &&
         local(from.server, true, from.index, to.index).found;
}

bool Routes::gpudirect(NodeId gpu, NodeId nic) {
  const Node& g = fabric_.node(gpu);
  const ServerType& type = fabric_.type_of(g.server);
  const auto position = std::ranges::find(type.nics, fabric_.node(nic).index);
  if (position == type.nics.end()) return false;
  return type.nic_specs[static_cast<std::size_t>(position - type.nics.begin())].gpudirect &&
         reaches(local(g.server, false, g.index, fabric_.node(nic).index),
                 type.spec.gpudirect_rdma);
}

std::optional<Transfer> Routes::within(NodeId src, NodeId dst, const TransferOptions& options) {
  const Node& from = fabric_.node(src);
  const Node& to = fabric_.node(dst);
  const ServerId server = from.server;
  const ServerType& type = fabric_.type_of(server);
  const Time copy = options.copy_call ? type.spec.copy.latency : Time{0};
  const bool scale_up = options.peer_access && peers_over_scale_up(src, dst);
  const bool over_pcie = options.peer_access && reaches(local(server, false, from.index, to.index),
                                                        type.spec.peer_access.pcie);
  const Via via = options.via.value_or(scale_up || over_pcie ? Via::direct : Via::host);
  Transfer out;
  out.via = via;
  if (via == Via::direct) {
    if (!scale_up && !over_pcie) return std::nullopt;
    Leg& leg = out.legs.emplace_back();
    if (scale_up) {
      append_local(server, local(server, true, from.index, to.index), false, leg.route);
    } else {
      append_peer(server, from.index, to.index, leg.route);
    }
    leg.startup = copy;
    return out;
  }
  if (via == Via::relay) {
    if (!options.peer_access) return std::nullopt;
    // Two copies one after the other through the GPU that both reach fastest.
    std::optional<std::uint32_t> best;
    Bandwidth best_rate{0};
    for (const std::uint32_t middle : type.gpus) {
      if (middle == from.index || middle == to.index || !type.spec.peer_access.nvlink) continue;
      const LocalPath& first = local(server, true, from.index, middle);
      if (!first.found) continue;
      const LocalPath& second = local(server, true, middle, to.index);
      if (!second.found) continue;
      TransferOptions direct = options;
      direct.via = Via::direct;
      const NodeId through = fabric_.local_node(server, middle);
      const Bandwidth rate = std::min(within(src, through, direct)->rate(fabric_),
                                      within(through, dst, direct)->rate(fabric_));
      if (rate > best_rate) {
        best_rate = rate;
        best = middle;
      }
    }
    if (!best) return std::nullopt;
    for (const auto& [a, b] : {std::pair{from.index, *best}, std::pair{*best, to.index}}) {
      Leg& leg = out.legs.emplace_back();
      append_local(server, local(server, true, a, b), false, leg.route);
      leg.startup = copy;
    }
    return out;
  }
  Leg& leg = out.legs.emplace_back();
  if (via != Via::host || !append_staged(server, from.index, to.index, leg.route))
    return std::nullopt;
  leg.cap = type.spec.staging.rate.value_or(Bandwidth{0});
  if (options.copy_call) leg.startup = type.spec.staging.latency;
  return out;
}

// ---- between servers

const std::vector<NodeId>& Routes::nics_of(NodeId gpu) {
  const Node& node = fabric_.node(gpu);
  const ServerType& type = fabric_.type_of(node.server);
  TypeTables& tables = tables_[fabric_.server(node.server).type];
  const std::size_t position = fabric_.gpu_position(gpu);
  std::vector<std::uint32_t>& nics = tables.nics[position];
  if (nics.empty() && !type.nics.empty()) {
    const auto nearest = [&](std::uint32_t from) {
      std::vector<std::uint32_t> found;
      std::size_t fewest = std::numeric_limits<std::size_t>::max();
      for (const std::uint32_t nic : type.nics) {
        const LocalPath& path = local(node.server, false, from, nic);
        if (!path.found || path.hops.size() > fewest) continue;
        if (path.hops.size() < fewest) found.clear();
        fewest = path.hops.size();
        found.push_back(nic);
      }
      return found;
    };
    nics = nearest(node.index);
    // GPUs that see the same NICs start at different ones.
    std::size_t before = 0;
    for (std::size_t g = 0; g < position; ++g) before += nearest(type.gpus[g]) == nics ? 1U : 0U;
    std::size_t sharing = before;
    for (std::size_t g = position; g < type.gpus.size(); ++g)
      sharing += nearest(type.gpus[g]) == nics ? 1U : 0U;
    const std::size_t first =
        sharing == 0 || nics.empty()
            ? 0
            : before * std::max<std::size_t>(1, nics.size() / sharing) % nics.size();
    std::rotate(nics.begin(), nics.begin() + static_cast<std::ptrdiff_t>(first), nics.end());
  }
  nic_scratch_.clear();
  for (const std::uint32_t nic : nics) nic_scratch_.push_back(fabric_.local_node(node.server, nic));
  return nic_scratch_;
}

std::optional<Routes::Attachment> Routes::attach(NodeId gpu, const Door& door) {
  const bool outward = door.outward;
  const auto ports_of = [&](NodeId nic) {
    std::vector<LinkId> ports;
    for (const LinkId l : fabric_.out_links(nic)) {
      if (fabric_.node(fabric_.link(l).to).kind != NodeKind::network_switch) continue;
      if (!network_.is_down(outward ? l : fabric_.link(l).reverse)) ports.push_back(l);
    }
    return ports;
  };
  // A NIC that lost its cables is left out; a GPU that has none left borrows another NIC of its server.
  const ServerType& type = fabric_.type_of(fabric_.node(gpu).server);
  const bool named = door.nic >= 0 && static_cast<std::size_t>(door.nic) < type.nics.size();
  std::vector<NodeId> near =
      named ? std::vector{fabric_.local_node(fabric_.node(gpu).server,
                                             type.nics[static_cast<std::size_t>(door.nic)])}
            : nics_of(gpu);
  const auto cut_off = [&](NodeId candidate) { return ports_of(candidate).empty(); };
  if (network_.any_down()) std::erase_if(near, cut_off);
  if (near.empty() && network_.any_down()) {
    const ServerId home = fabric_.node(gpu).server;
    for (const std::uint32_t nic : fabric_.type_of(home).nics)
      near.push_back(fabric_.local_node(home, nic));
    std::erase_if(near, cut_off);
  }
  if (near.empty()) return std::nullopt;
  Attachment out;
  out.nics = static_cast<std::uint32_t>(near.size());
  out.nic = near[door.channel % near.size()];
  const std::vector<LinkId> ports = ports_of(out.nic);
  if (ports.empty()) return std::nullopt;
  out.ports = static_cast<std::uint32_t>(ports.size());
  const LinkId up = ports[door.port % ports.size()];
  const LinkId cable = outward ? up : fabric_.link(up).reverse;
  out.leaf = fabric_.link(up).to;
  const auto cross = [&] {
    out.route.add(cable.v, 1);
    out.route.hops.push_back(cable);
    out.route.latency += fabric_.link(cable).delay + fabric_.node(out.nic).latency;
    if (outward) out.route.latency += fabric_.node(out.leaf).latency;
  };
  const ServerId server = fabric_.node(gpu).server;
  const std::uint32_t g = fabric_.node(gpu).index, n = fabric_.node(out.nic).index;
  const std::uint32_t from = outward ? g : n, to = outward ? n : g;
  if (!outward) cross();
  if (door.gpudirect && gpudirect(gpu, out.nic)) {
    append_peer(server, from, to, out.route);
  } else {
    if (!append_staged(server, from, to, out.route)) return std::nullopt;
    out.cap = fabric_.type_of(server).spec.staging.rate.value_or(Bandwidth{0});
  }
  if (outward) cross();
  return out;
}

std::optional<Transfer> Routes::across(NodeId src, NodeId dst, const TransferOptions& options) {
  const std::uint64_t port = options.channel + options.hash;
  Door door{.channel = options.channel, .port = port, .gpudirect = options.gpudirect};
  door.nic = options.src_nic;
  auto first = attach(src, door);
  door.outward = false;
  door.nic = options.dst_nic;
  const auto last = attach(dst, door);
  if (!first || !last) return std::nullopt;
  Transfer out;
  out.via = Via::network;
  Leg& leg = out.legs.emplace_back();
  leg.route = std::move(first->route);
  leg.cap = first->cap.bps > 0 && last->cap.bps > 0 ? std::min(first->cap, last->cap)
                                                    : std::max(first->cap, last->cap);
  const std::uint64_t label = options.hash ^ options.channel;
  if (!network_.append(first->leaf, last->leaf, nic_index_[last->nic.v], label, options.routing,
                       leg.route))
    return std::nullopt;
  for (const Share& share : last->route.shares) leg.route.add(share.resource, share.weight);
  leg.route.hops.insert(leg.route.hops.end(), last->route.hops.begin(), last->route.hops.end());
  leg.route.latency += last->route.latency;
  return out;
}

std::optional<Transfer> Routes::transfer(NodeId src, NodeId dst, const TransferOptions& options) {
  WEFT_CHECK(fabric_.node(src).server.valid() && fabric_.node(dst).server.valid(), src, dst);
  if (src == dst) return Transfer{Via::direct, {Leg{}}};
  if (fabric_.node(src).server == fabric_.node(dst).server) return within(src, dst, options);
  if (options.via && *options.via != Via::network) return std::nullopt;
  return across(src, dst, options);
}

bool Routes::append_to_switches(NodeId gpu, bool up, Route& out) {
  const Node& node = fabric_.node(gpu);
  const ServerType& type = fabric_.type_of(node.server);
  const TypeTables& tables = tables_[fabric_.server(node.server).type];
  const ServerPlace& place = fabric_.server(node.server);
  double total = 0;
  const auto to_switch = [&](std::uint32_t l) {
    return type.nodes[type.links[l].to.v].kind == NodeKind::nvswitch;
  };
  for (const std::uint32_t l : tables.out[node.index]) {
    if (to_switch(l)) total += static_cast<double>(type.links[l].rate.bps);
  }
  if (total <= 0) return false;
  bool first = true;
  for (const std::uint32_t l : tables.out[node.index]) {
    if (!to_switch(l)) continue;
    const Link& link = type.links[l];
    const std::uint32_t used = up ? l : link.reverse.v;
    out.add(used + place.link_base, static_cast<double>(link.rate.bps) / total);
    if (first) {
      out.hops.push_back(LinkId{used + place.link_base});
      out.latency += link.delay;
      if (up) out.latency += type.nodes[link.to.v].latency;
    }
    first = false;
  }
  return true;
}

}  // namespace weft
