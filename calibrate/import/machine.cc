// SPDX-License-Identifier: Apache-2.0
#include "calibrate/import/machine.hpp"

#include <algorithm>
#include <map>
#include <numeric>
#include <set>

#include <fmt/format.h>

namespace weft {
namespace {

// No part to date has more NVLinks (NVLink 4 and 5: 18).
constexpr int kMostLinksOfAnyPart = 18;

// The sums by which a board without switches is known: links of a P100, V100, A100 and H100.
bool is_whole_part(int links) { return links == 4 || links == 6 || links == 12 || links == 18; }

// The bridge cards that join two PCIe GPUs have 1, 2 or 4 links, three of them 12; one that sits loosely shows fewer.
bool may_be_bridge(int links) { return links <= 4 || links == 12; }

class Groups {
 public:
  explicit Groups(std::size_t n) : parent_(n) { std::iota(parent_.begin(), parent_.end(), 0U); }
  std::size_t root(std::size_t x) {
    while (parent_[x] != x) x = parent_[x] = parent_[parent_[x]];
    return x;
  }
  void join(std::size_t a, std::size_t b) { parent_[root(a)] = root(b); }

 private:
  std::vector<std::size_t> parent_;
};

// Parts from the device up to its socket.
std::vector<std::size_t> way_up(const Machine& machine, std::size_t part) {
  std::vector<std::size_t> out;
  for (std::size_t at = machine.parts[part].parent; at != kNoPart; at = machine.parts[at].parent)
    out.push_back(at);
  return out;
}

Distance tree_distance(const Machine& machine, std::size_t a, std::size_t b) {
  if (a == b) return Distance::self;
  const std::vector<std::size_t> up_a = way_up(machine, a), up_b = way_up(machine, b);
  for (std::size_t i = 0; i < up_a.size(); ++i) {
    const auto at = std::ranges::find(up_b, up_a[i]);
    if (at == up_b.end()) continue;
    if (machine.parts[up_a[i]].kind == NodeKind::cpu)
      return machine.tree_unknown ? Distance::unknown : Distance::phb;
    return i == 0 && at == up_b.begin() ? Distance::pix : Distance::pxb;
  }
  return machine.parts[a].host == machine.parts[b].host ? Distance::sys : Distance::unknown;
}

// Links of every pair of an island, or nullopt where the pairs differ or some have none. One slow end lowers all of its pairs.
bool joins_all(const Island& island, const std::vector<std::vector<int>>& count,
               const std::vector<int>& most) {
  return std::ranges::all_of(island.gpus, [&](std::size_t a) {
    return std::ranges::all_of(island.gpus, [&](std::size_t b) {
      return a == b || (count[a][b] > 0 && count[a][b] == std::min(most[a], most[b]));
    });
  });
}

Wiring wiring_of(const Island& island, const std::vector<std::vector<int>>& count,
                 const std::vector<int>& most, int of_part, Imported& out) {
  const int peers = static_cast<int>(island.gpus.size()) - 1;
  int links = 0;
  for (const std::size_t g : island.gpus) links = std::max(links, most[g]);
  if (peers == 1) {
    if (may_be_bridge(links) || links < of_part) return Wiring::pairs;
    return Wiring::switched;
  }
  if (!joins_all(island, count, most)) return Wiring::mesh;
  const int as_mesh = links * peers;
  if (of_part > 0) return as_mesh > of_part ? Wiring::switched : Wiring::mesh;
  if (as_mesh > kMostLinksOfAnyPart) return Wiring::switched;
  if (!is_whole_part(as_mesh) && is_whole_part(links)) return Wiring::switched;
  if (is_whole_part(links)) {
    out.note(
        ImportNote::Kind::unknown,
        fmt::format("wiring of {} GPUs with NV{} in every cell: read as a mesh, since {} x {} = {} "
                    "links is a whole "
                    "part; behind NVSwitches it would be a part with {} links: add --gpu MODEL",
                    peers + 1, links, peers, links, as_mesh, links));
  }
  return Wiring::mesh;
}

}  // namespace

bool is_hidden_switch(std::string_view target) { return target.starts_with("fffffff"); }

std::string_view word(Distance distance) {
  switch (distance) {
    case Distance::self:
      return "X";
    case Distance::pix:
      return "PIX";
    case Distance::pxb:
      return "PXB";
    case Distance::phb:
      return "PHB";
    case Distance::node:
      return "NODE";
    case Distance::sys:
      return "SYS";
    case Distance::unknown:
      break;
  }
  return "unknown";
}

std::string_view word(Wiring wiring) {
  switch (wiring) {
    case Wiring::none:
      return "none";
    case Wiring::pairs:
      return "pairs";
    case Wiring::mesh:
      return "mesh";
    case Wiring::switched:
      return "switched";
    case Wiring::unknown:
      break;
  }
  return "unknown";
}

std::size_t Machine::add(MachinePart part) {
  const std::size_t at = parts.size();
  if (part.kind == NodeKind::gpu) gpus.push_back(at);
  if (part.kind == NodeKind::nic) nics.push_back(at);
  if (part.kind == NodeKind::pcie_switch) bridges.push_back(at);
  if (part.kind == NodeKind::cpu) sockets.push_back(at);
  parts.push_back(std::move(part));
  return at;
}

Wiring Machine::wiring() const {
  if (nvlink_unknown) return Wiring::unknown;
  const auto largest = std::ranges::max_element(
      islands, {}, [](const Island& island) { return island.gpus.size(); });
  return largest == islands.end() ? Wiring::none : largest->wiring;
}

std::size_t Machine::host_count() const {
  std::set<std::string_view> hosts;
  for (const std::size_t socket : sockets) hosts.insert(parts[socket].host);
  return std::max<std::size_t>(1, hosts.size());
}

void find_distances(Machine& machine) {
  std::vector<std::size_t> devices = machine.gpus;
  devices.insert(devices.end(), machine.nics.begin(), machine.nics.end());
  machine.distances.assign(devices.size(), {});
  for (std::size_t i = 0; i < devices.size(); ++i) {
    for (const std::size_t other : devices)
      machine.distances[i].push_back(tree_distance(machine, devices[i], other));
  }
}

void find_wiring(Machine& machine, int links_of_part, Imported& out) {
  const std::size_t n = machine.gpus.size();
  std::vector<std::vector<int>> count(n, std::vector<int>(n, 0));
  std::vector<int> sum(n, 0), most(n, 0), to_switches(n, 0);
  Groups groups(n);
  for (const NvlinkPair& pair : machine.pairs) {
    count[pair.a][pair.b] = count[pair.b][pair.a] = pair.count;
    for (const std::size_t end : {pair.a, pair.b}) {
      sum[end] += pair.count;
      most[end] = std::max(most[end], pair.count);
    }
    groups.join(pair.a, pair.b);
  }
  // Switches of a host are told apart from those of another; hidden ones stand outside of the hosts and join them all.
  std::map<std::string, std::size_t, std::less<>> first_at;
  for (const NvlinkEnd& end : machine.switch_ends) {
    to_switches[end.gpu] += end.count;
    const std::string domain = is_hidden_switch(end.target) ? "" : machine.gpu(end.gpu).host;
    groups.join(end.gpu, first_at.emplace(domain, end.gpu).first->second);
  }
  std::map<std::size_t, Island> by_root;
  for (std::size_t g = 0; g < n; ++g) {
    if (sum[g] + to_switches[g] > 0) by_root[groups.root(g)].gpus.push_back(g);
  }
  machine.links.assign(n, 0);
  machine.islands.clear();
  for (auto& [root, island] : by_root) {
    island.wiring = to_switches[island.gpus.front()] > 0
                        ? Wiring::switched
                        : wiring_of(island, count, most, links_of_part, out);
    for (const std::size_t g : island.gpus) {
      const int seen = island.wiring == Wiring::switched ? most[g] : sum[g];
      machine.links[g] = to_switches[g] > 0 ? to_switches[g] : seen;
    }
    machine.islands.push_back(std::move(island));
  }
  for (const NvlinkEnd& end : machine.hidden_ends) machine.links[end.gpu] += end.count;
  std::ranges::sort(machine.islands, {}, [](const Island& island) { return island.gpus.front(); });
}

void find_rails(Machine& machine) {
  const std::size_t gpus = machine.gpus.size(), nics = machine.nics.size();
  std::vector<bool> near_some(nics, false), used(nics, false);
  for (std::size_t n = 0; n < nics; ++n) {
    for (std::size_t g = 0; g < gpus; ++g)
      near_some[n] = near_some[n] || machine.gpu_to_nic(g, n) < Distance::sys;
  }
  const bool any_near = std::ranges::find(near_some, true) != near_some.end();
  const auto same_socket = [&](std::size_t g, std::size_t n) {
    const auto up = [&](std::size_t part) { return way_up(machine, part); };
    const std::vector<std::size_t> a = up(machine.gpus[g]), b = up(machine.nics[n]);
    return !a.empty() && !b.empty() && a.back() == b.back();
  };
  machine.rails.assign(gpus, {});
  std::vector<std::size_t> load(nics, 0);
  const auto choose = [&](Rail& rail) {
    for (const std::size_t n : rail.nearest) {
      used[n] = true;
      if (rail.nic == kNoPart || load[n] < load[rail.nic]) rail.nic = n;
    }
    if (rail.nic != kNoPart) ++load[rail.nic];
  };
  for (std::size_t g = 0; g < gpus; ++g) {
    Rail& rail = machine.rails[g];
    rail.gpu = g;
    for (std::size_t n = 0; n < nics; ++n)
      rail.distance = std::min(rail.distance, machine.gpu_to_nic(g, n));
    for (std::size_t n = 0; n < nics; ++n) {
      // A GPU far from all NICs takes those that serve another GPU; over C2C, those of its own CPU.
      bool fits = machine.gpu_to_nic(g, n) == rail.distance;
      if (rail.distance == Distance::sys) fits = near_some[n] || !any_near;
      if (rail.distance == Distance::sys && machine.coherent) fits = same_socket(g, n);
      if (fits && rail.distance != Distance::unknown) rail.nearest.push_back(n);
    }
    if (rail.distance < Distance::sys) choose(rail);
  }
  for (Rail& rail : machine.rails) {
    if (rail.distance == Distance::sys) choose(rail);
  }
  const bool any_used = std::ranges::find(used, true) != used.end();
  for (std::size_t n = 0; n < nics; ++n)
    machine.parts[machine.nics[n]].compute = used[n] || !any_used;
}

}  // namespace weft
