// SPDX-License-Identifier: Apache-2.0
#include "sim/workload/placement.hpp"

#include <algorithm>
#include <cstdint>
#include <map>
#include <tuple>

#include "sim/core/hash.hpp"
#include "sim/core/random.hpp"

namespace weft {
namespace {

constexpr std::size_t kSwitchedRings =
    8;  // through switches all orders are alike; several keep more chunks in flight
constexpr std::size_t kMostPackingWork = 40'000'000;
constexpr std::size_t kMostMeshGpus = 9;  // cycles of a mesh are enumerated: 8! ways

// Directed Hamiltonian cycles over 0 .. n-1 that start at 0 and use only pairs with links.
void cycles_from(const std::vector<std::vector<int>>& links, std::vector<std::uint32_t>& path,
                 std::vector<std::uint8_t>& used, std::vector<std::vector<std::uint32_t>>& out) {
  const std::size_t n = links.size();
  if (path.size() == n) {
    if (links[path.back()][0] > 0) out.push_back(path);
    return;
  }
  for (std::uint32_t next = 1; next < n; ++next) {
    if (used[next] != 0 || links[path.back()][next] == 0) continue;
    used[next] = 1;
    path.push_back(next);
    cycles_from(links, path, used, out);
    path.pop_back();
    used[next] = 0;
  }
}

using Cycle = std::vector<std::uint32_t>;

// Cycles taken one by one while each of their links has a lane left, the one that leaves most behind first; `turn` shuffles
// equals.
std::vector<Cycle> pack(std::vector<Cycle> all, std::vector<std::vector<int>> lanes,
                        std::uint64_t turn) {
  std::vector<Cycle> chosen;
  while (true) {
    std::size_t best = 0;
    std::tuple<int, int, std::uint64_t> most{0, 0, 0};
    std::size_t kept = 0;
    for (std::size_t c = 0; c < all.size(); ++c) {
      int least = 1 << 30, sum = 0;
      for (std::size_t i = 0; i < all[c].size(); ++i) {
        const int left = lanes[all[c][i]][all[c][(i + 1) % all[c].size()]];
        least = std::min(least, left);
        sum += left;
      }
      if (least == 0) continue;
      if (kept != c) all[kept] = std::move(all[c]);
      const std::tuple score{least, sum, mix64(turn * 0x9e3779b97f4a7c15ULL + kept)};
      if (std::get<0>(most) == 0 || score > most) {
        most = score;
        best = kept;
      }
      ++kept;
    }
    all.resize(kept);
    if (kept == 0) return chosen;
    chosen.push_back(all[best]);
    const Cycle& cycle = chosen.back();
    for (std::size_t i = 0; i < cycle.size(); ++i) --lanes[cycle[i]][cycle[(i + 1) % cycle.size()]];
  }
}

// Cycles that share the links: every link counts as two half-rate lanes, as rings of half the rate are worth having (K4 has
// six directed cycles but no three of them are disjoint). The best of several packings; no more than the poorest GPU has.
std::vector<Cycle> shared_cycles(const std::vector<std::vector<int>>& links) {
  std::vector<Cycle> all, best;
  Cycle path{0};
  std::vector<std::uint8_t> used(links.size(), 0);
  used[0] = 1;
  cycles_from(links, path, used, all);
  std::vector<std::vector<int>> lanes = links;
  std::size_t bound = SIZE_MAX;
  for (auto& row : lanes) {
    std::size_t sum = 0;
    for (int& lane : row) sum += static_cast<std::size_t>(lane *= 2);
    bound = std::min(bound, sum);
  }
  const std::size_t turns =
      std::clamp<std::size_t>(kMostPackingWork / (1 + all.size() * links.size() * bound), 1, 256);
  for (std::size_t turn = 0; turn < turns && best.size() < bound; ++turn) {
    auto packing = pack(all, lanes, turn);
    if (packing.size() > best.size()) best = std::move(packing);
  }
  return best;
}

// The links of the pair that join it without a switch between.
int direct_links(const Fabric& fabric, NodeId a, NodeId b) {
  int count = 0;
  for (const LinkId l : fabric.out_links(a)) {
    if (fabric.link(l).to == b && fabric.link(l).tier == Tier::scale_up)
      count += fabric.link(l).count;
  }
  return count;
}

// Ring orders inside one server, as positions in `gpus`.
std::vector<std::vector<std::uint32_t>> server_orders(Routes& routes,
                                                      std::span<const NodeId> gpus) {
  const std::size_t n = gpus.size();
  std::vector<std::uint32_t> identity(n);
  for (std::uint32_t i = 0; i < n; ++i) identity[i] = i;
  const bool switched = n > 1 && routes.peers_over_scale_up(gpus[0], gpus[1]) &&
                        direct_links(routes.fabric(), gpus[0], gpus[1]) == 0;
  if (switched) return std::vector(kSwitchedRings, identity);
  if (n < 3 || n > kMostMeshGpus) return {identity};
  // How many times the rate of the slowest link a pair has.
  std::vector<std::vector<std::int64_t>> rates(n, std::vector<std::int64_t>(n, 0));
  std::int64_t slowest = INT64_MAX;
  for (std::size_t i = 0; i < n; ++i) {
    for (std::size_t j = 0; j < n; ++j) {
      if (i == j || !routes.peers_over_scale_up(gpus[i], gpus[j])) continue;
      for (const LinkId l : routes.fabric().out_links(gpus[i])) {
        const Link& link = routes.fabric().link(l);
        if (link.to != gpus[j] || link.tier != Tier::scale_up || link.rate.bps <= 0) continue;
        rates[i][j] += link.rate.bps;
        slowest = std::min(slowest, std::max<std::int64_t>(1, link.rate.bps / link.count));
      }
    }
  }
  constexpr std::int64_t kMostLanes = 32;
  std::vector<std::vector<int>> links(n, std::vector<int>(n, 0));
  for (std::size_t i = 0; i < n; ++i) {
    for (std::size_t j = 0; j < n; ++j)
      links[i][j] = static_cast<int>(std::min(kMostLanes, rates[i][j] / slowest));
  }
  auto cycles = shared_cycles(links);
  return cycles.empty() ? std::vector<std::vector<std::uint32_t>>{identity} : cycles;
}

// How many NICs the GPUs are near to, all together.
std::size_t near_nics(Routes& routes, std::span<const NodeId> gpus) {
  std::vector<NodeId> all;
  for (const NodeId gpu : gpus) {
    const auto& nics = routes.nics_of(gpu);
    all.insert(all.end(), nics.begin(), nics.end());
  }
  std::ranges::sort(all);
  return static_cast<std::size_t>(std::unique(all.begin(), all.end()) - all.begin());
}

}  // namespace

std::vector<std::uint32_t> nic_owners(Routes& routes, std::span<const NodeId> gpus) {
  std::vector<std::uint32_t> owners;
  std::vector<NodeId> owned;
  for (std::uint32_t p = 0; p < gpus.size(); ++p) {
    const auto& nics = routes.nics_of(gpus[p]);
    if (nics.empty() || std::ranges::find(owned, nics.front()) != owned.end()) continue;
    owned.push_back(nics.front());
    owners.push_back(p);
  }
  if (owners.empty()) owners.push_back(0);
  return owners;
}

// Positions in the fabric's GPUs, in rank order.
std::vector<std::uint32_t> Placement::candidates(std::size_t per_server) const {
  const auto gpus = fabric_.gpus();
  std::vector<std::uint32_t> out;
  std::size_t of_server = 0;
  for (std::uint32_t i = 0; i < gpus.size(); ++i) {
    if (i > 0 && fabric_.node(gpus[i]).server != fabric_.node(gpus[i - 1]).server) of_server = 0;
    if (of_server++ < per_server && taken_[i] == 0) out.push_back(i);
  }
  return out;
}

std::size_t Placement::free(std::size_t per_server) const { return candidates(per_server).size(); }

std::optional<std::vector<NodeId>> Placement::take(std::size_t count, PlacementPolicy policy,
                                                   std::uint64_t job, std::size_t per_server) {
  const auto gpus = fabric_.gpus();
  std::vector<std::uint32_t> order = candidates(per_server);
  if (order.size() < count) return std::nullopt;
  if (policy == PlacementPolicy::spread) {
    std::map<std::uint32_t, std::uint32_t> seen;  // GPUs of the server so far
    std::vector<std::uint32_t> turn(gpus.size());
    for (const std::uint32_t i : order) turn[i] = seen[fabric_.node(gpus[i]).server.v]++;
    std::ranges::stable_sort(order, {}, [&](std::uint32_t i) { return turn[i]; });
  } else if (policy == PlacementPolicy::random) {
    Random random(seed_, "placement", job);
    const auto shuffled = random.permutation(static_cast<std::uint32_t>(order.size()));
    std::vector<std::uint32_t> mixed;
    for (const std::uint32_t i : shuffled) mixed.push_back(order[i]);
    order = std::move(mixed);
  }
  std::vector<NodeId> out;
  for (std::size_t i = 0; i < count; ++i) {
    taken_[order[i]] = 1;
    out.push_back(gpus[order[i]]);
  }
  return out;
}

GroupShape group_shape(Routes& routes, std::span<const NodeId> gpus) {
  const Fabric& fabric = routes.fabric();
  GroupShape shape;
  shape.ranks = static_cast<std::uint32_t>(gpus.size());
  std::map<std::uint32_t, std::size_t> server_of;
  for (std::uint32_t r = 0; r < gpus.size(); ++r) {
    const std::uint32_t server = fabric.node(gpus[r]).server.v;
    const auto [at, fresh] = server_of.emplace(server, shape.servers.size());
    if (fresh) shape.servers.emplace_back();
    shape.servers[at->second].push_back(r);
  }
  if (gpus.empty()) return shape;

  if (shape.servers.size() == 1) {
    const ServerType& type = fabric.type_of(fabric.node(gpus.front()).server);
    shape.switch_reduces = gpus.size() > 1 && type.reduction.has_value();
    if (type.reduction && type.reduction->rate) {
      // Given per port; a GPU has many.
      std::int64_t ports = 0;
      for (const LinkId l : fabric.out_links(gpus.front())) {
        if (fabric.node(fabric.link(l).to).kind == NodeKind::nvswitch)
          ports += fabric.link(l).count;
      }
      shape.switch_rate = *type.reduction->rate * ports;
    }
    for (std::size_t i = 1; i < gpus.size() && shape.switch_reduces; ++i) {
      shape.switch_reduces = routes.peers_over_scale_up(gpus[0], gpus[i]) &&
                             direct_links(fabric, gpus[0], gpus[i]) == 0;
    }
    shape.orders = server_orders(routes, gpus);
    return shape;
  }

  if (fabric.network() && fabric.network()->switch_model.reduction) {
    shape.network_reduces = true;
    shape.network_rate = fabric.network()->switch_model.reduction->rate.value_or(Bandwidth{0});
  }

  // One ring per NIC near the group's GPUs; all servers rotate their order to that NIC's GPU, every second one backwards, so that
  // each hop between servers joins two GPUs of the same position (one rail).
  std::map<std::uint32_t, std::vector<std::vector<std::uint32_t>>>
      orders_of_type;  // by first server of a kind and size
  std::vector<std::vector<std::vector<std::uint32_t>>> inner;
  std::size_t rings = 1;
  std::vector<std::vector<std::uint32_t>>
      entries;  // per server: positions of the GPUs that own a NIC each
  for (const auto& ranks : shape.servers) {
    std::vector<NodeId> nodes;
    for (const std::uint32_t r : ranks) nodes.push_back(gpus[r]);
    const std::uint32_t key = fabric.server(fabric.node(nodes.front()).server).type << 16 |
                              static_cast<std::uint32_t>(nodes.size());
    const bool whole =
        nodes.size() == fabric.type_of(fabric.node(nodes.front()).server).gpus.size();
    auto found = orders_of_type.find(key);
    if (found == orders_of_type.end() || !whole) {
      found =
          orders_of_type.insert_or_assign(whole ? key : 0xFFFF'FFFF, server_orders(routes, nodes))
              .first;
    }
    inner.push_back(found->second);
    std::vector<std::uint32_t> owners = nic_owners(routes, nodes);
    rings = std::max({rings, owners.size(), near_nics(routes, nodes)});
    entries.push_back(std::move(owners));
  }
  constexpr std::size_t kMostRingRanks = std::size_t{1} << 22;  // all orders together
  rings = std::max<std::size_t>(1, std::min(rings, kMostRingRanks / gpus.size()));
  for (std::size_t k = 0; k < rings; ++k) {
    std::vector<std::uint32_t>& order = shape.orders.emplace_back();
    for (std::size_t s = 0; s < shape.servers.size(); ++s) {
      std::vector<std::uint32_t> ring = inner[s][k % inner[s].size()];
      const auto start = std::ranges::find(ring, entries[s][k % entries[s].size()]);
      std::rotate(ring.begin(), start, ring.end());
      if (s % 2 == 1) std::ranges::reverse(ring);
      for (const std::uint32_t position : ring) order.push_back(shape.servers[s][position]);
    }
  }
  return shape;
}

}  // namespace weft
