// SPDX-License-Identifier: Apache-2.0
// The smallest PCIe tree behind a matrix. Devices at most PIX apart share a bridge, at most PXB apart a root port, at most NODE
// apart a NUMA node; each class nests in the next. GPUs of one affinity share a NUMA node whatever their cell says.
#include <algorithm>
#include <map>
#include <numeric>
#include <utility>

#include <fmt/format.h>

#include "calibrate/import/machine_parts.hpp"
#include "calibrate/import/topo_m.hpp"
#include "models/catalog.hpp"
#include "sim/core/text.hpp"
#include "sim/fabric/fabric.hpp"

namespace weft {
namespace {

using Kind = ImportNote::Kind;
using Class = std::vector<std::size_t>;  // devices: GPUs, then NICs

constexpr std::size_t kMostMatchSteps = 200'000;

// Classes of devices, in the order of their first member.
template <class Near>
std::vector<Class> classes_of(const Class& devices, Near&& near) {
  std::vector<Class> out;
  std::vector<bool> placed(devices.size(), false);
  for (std::size_t first = 0; first < devices.size(); ++first) {
    if (placed[first]) continue;
    placed[first] = true;
    Class members{devices[first]};
    for (std::size_t at = 0; at < members.size(); ++at) {
      for (std::size_t i = 0; i < devices.size(); ++i) {
        if (placed[i] || !near(members[at], devices[i])) continue;
        placed[i] = true;
        members.push_back(devices[i]);
      }
    }
    std::ranges::sort(members);
    out.push_back(std::move(members));
  }
  return out;
}

class Tree {
 public:
  Tree(Machine& machine, Imported& out)
      : machine_(machine), out_(out), all_(machine.distances.size()) {
    std::iota(all_.begin(), all_.end(), std::size_t{0});
  }

  void build() {
    const std::vector<Class> nodes = classes_of(all_, [&](std::size_t a, std::size_t b) {
      return apart(a, b) <= Distance::node || same_affinity(a, b);
    });
    Class left_over;
    for (const Class& node : nodes) {
      if (!is_gpu(node.front())) {
        left_over.insert(left_over.end(), node.begin(), node.end());
        continue;
      }
      MachinePart socket{.kind = NodeKind::cpu};
      socket.name = fmt::format("cpu{}", machine_.sockets.size());
      const MachinePart& first = part(node.front());
      socket.numa = first.numa;
      socket.cpus = first.cpus;
      hang(node, machine_.add(std::move(socket)));
    }
    place_left_over(left_over);
    compare();
  }

 private:
  MachinePart& part(std::size_t device) {
    const std::size_t gpus = machine_.gpus.size();
    return machine_.parts[device < gpus ? machine_.gpus[device] : machine_.nics[device - gpus]];
  }
  bool is_gpu(std::size_t device) const { return device < machine_.gpus.size(); }
  Distance apart(std::size_t a, std::size_t b) const { return machine_.distances[a][b]; }

  bool same_affinity(std::size_t a, std::size_t b) {
    if (!is_gpu(a) || !is_gpu(b)) return false;
    const MachinePart &x = part(a), &y = part(b);
    if (!x.numa.empty() || !y.numa.empty()) return x.numa == y.numa;
    return x.cpus == y.cpus;  // both unknown: nothing tells them apart
  }

  std::size_t add_bridge(std::size_t above) {
    MachinePart bridge{.kind = NodeKind::pcie_switch};
    bridge.name = fmt::format("plx{}", machine_.bridges.size());
    bridge.parent = above;
    return machine_.add(std::move(bridge));
  }

  void hang(const Class& devices, std::size_t socket) {
    const auto within = [&](Distance most) {
      return [this, most](std::size_t a, std::size_t b) { return apart(a, b) <= most; };
    };
    for (const Class& port : classes_of(devices, within(Distance::pxb))) {
      if (port.size() == 1) {
        part(port.front()).parent = socket;
        continue;
      }
      const std::vector<Class> leaves = classes_of(port, within(Distance::pix));
      const std::size_t top = add_bridge(socket);
      // The smallest tree: one lone device may sit at the upper bridge, two would be PIX apart.
      bool lone_above = false;
      for (const Class& leaf : leaves) {
        const bool stays =
            leaves.size() == 1 || (leaf.size() == 1 && !std::exchange(lone_above, true));
        const std::size_t bridge = stays ? top : add_bridge(top);
        for (const std::size_t device : leaf) part(device).parent = bridge;
      }
    }
  }

  // NICs that are SYS to every GPU stand on NUMA nodes that no GPU shows. With C2C the GPU is SYS to its own CPU's NICs.
  void place_left_over(const Class& nics) {
    if (nics.empty()) return;
    std::vector<std::string> names;
    for (const std::size_t nic : nics) names.push_back(part(nic).name);
    if (machine_.coherent && !machine_.sockets.empty()) {
      const std::vector<std::size_t> sockets = machine_.sockets;
      std::vector<Class> shares(sockets.size());
      for (std::size_t i = 0; i < nics.size(); ++i)
        shares[i * sockets.size() / nics.size()].push_back(nics[i]);
      for (std::size_t s = 0; s < sockets.size(); ++s) hang(shares[s], sockets[s]);
      out_.note(Kind::unknown,
                fmt::format("socket of {}: SYS everywhere; shared out evenly in their order",
                            join(names, ", ")));
      return;
    }
    MachinePart socket{.kind = NodeKind::cpu};
    socket.name = fmt::format("cpu{}", machine_.sockets.size());
    hang(nics, machine_.add(std::move(socket)));
    out_.note(Kind::unknown,
              fmt::format("NUMA node of {}: none that a GPU is on; one more is added for them",
                          join(names, ", ")));
  }

  // Where the tree says something else than the matrix, no tree could have agreed.
  void compare() {
    std::size_t sys_inside = 0, other = 0;
    std::string first_sys, first_other;
    for (std::size_t a = 0; a < all_.size(); ++a) {
      for (std::size_t b = a + 1; b < all_.size(); ++b) {
        const Distance shown = apart(a, b), built = distance_in_tree(a, b);
        if (shown == Distance::unknown || shown == built) continue;
        if (shown == Distance::node && built == Distance::phb) continue;
        const std::string pair = fmt::format("{} and {}", part(a).name, part(b).name);
        if (shown == Distance::sys) {
          if (!is_gpu(a) || machine_.coherent) continue;  // NICs that were put on one node
          if (sys_inside++ == 0) first_sys = pair;
        } else if (other++ == 0) {
          first_other = fmt::format("{} are {} and would be {}", pair, word(shown), word(built));
        }
      }
    }
    if (sys_inside > 0) {
      out_.note(Kind::warning, fmt::format("{} pairs are SYS although they share a NUMA node, such "
                                           "as {}: a virtual machine or firmware hides "
                                           "the bridges; they are kept on one node",
                                           sys_inside, first_sys));
    }
    if (other > 0)
      out_.note(Kind::warning, fmt::format("{} cells fit no PCIe tree: {}", other, first_other));
  }

  Distance distance_in_tree(std::size_t a, std::size_t b) {
    std::vector<std::size_t> up_a, up_b;
    for (std::size_t at = part(a).parent; at != kNoPart; at = machine_.parts[at].parent)
      up_a.push_back(at);
    for (std::size_t at = part(b).parent; at != kNoPart; at = machine_.parts[at].parent)
      up_b.push_back(at);
    if (up_a.back() != up_b.back()) return Distance::sys;
    if (up_a.front() == up_b.front() && up_a.size() > 1) return Distance::pix;
    return up_a.size() > 1 && up_b.size() > 1 && up_a[up_a.size() - 2] == up_b[up_b.size() - 2]
               ? Distance::pxb
               : Distance::phb;
  }

  Machine& machine_;
  Imported& out_;
  Class all_;
};

// ---- what a mesh hides

// Finds which GPU of a catalogue server each GPU of the capture is: NVLinks must agree, sockets and NICs should.
class Match {
 public:
  Match(const Machine& machine, const ServerType& type)
      : machine_(machine), n_(machine.gpus.size()) {
    if (type.gpus.size() != n_) return;
    here_.assign(n_ * n_, 0);
    there_ = here_;
    for (const NvlinkPair& pair : machine.pairs)
      here_[pair.a * n_ + pair.b] = here_[pair.b * n_ + pair.a] = pair.count;
    switch_.assign(n_, kNoPart);
    socket_.assign(n_, kNoPart);
    std::map<std::uint32_t, std::size_t> gpu_at, socket_of_switch;
    for (std::size_t g = 0; g < n_; ++g) gpu_at[type.gpus[g]] = g;
    for (const Link& link : type.links) {
      const NodeKind to = type.nodes[link.to.v].kind;
      if (type.nodes[link.from.v].kind == NodeKind::pcie_switch && to == NodeKind::cpu)
        socket_of_switch[link.from.v] = link.to.v;
    }
    for (const Link& link : type.links) {
      const auto from = gpu_at.find(link.from.v), to = gpu_at.find(link.to.v);
      if (from == gpu_at.end()) continue;
      if (to != gpu_at.end() && link.link_class == LinkClass::nvlink)
        there_[from->second * n_ + to->second] += link.count;
      if (type.nodes[link.to.v].kind != NodeKind::pcie_switch) continue;
      switch_[from->second] = link.to.v;
      socket_[from->second] =
          socket_of_switch.contains(link.to.v) ? socket_of_switch[link.to.v] : kNoPart;
    }
    chosen_.assign(n_, kNoPart);
    used_.assign(n_, false);
    search(0);
  }

  bool found() const { return best_score_ >= 0; }
  bool one_switch(std::size_t a, std::size_t b) const {
    return switch_[best_[a]] != kNoPart && switch_[best_[a]] == switch_[best_[b]];
  }

 private:
  void search(std::size_t g) {
    if (++steps_ > kMostMatchSteps) return;
    if (g == n_) {
      const int score = agreement();
      if (score > best_score_) {
        best_score_ = score;
        best_ = chosen_;
      }
      return;
    }
    for (std::size_t t = 0; t < n_; ++t) {
      if (used_[t]) continue;
      bool fits = true;
      for (std::size_t other = 0; other < g && fits; ++other)
        fits = here_[g * n_ + other] == there_[t * n_ + chosen_[other]];
      if (!fits) continue;
      used_[t] = true;
      chosen_[g] = t;
      search(g + 1);
      used_[t] = false;
    }
  }

  // Pairs whose sockets agree, and pairs below one switch that see all NICs from equally far.
  int agreement() const {
    int score = 0;
    for (std::size_t a = 0; a < n_; ++a) {
      for (std::size_t b = 0; b < a; ++b) {
        const MachinePart &x = machine_.gpu(a), &y = machine_.gpu(b);
        const bool together = x.numa.empty() ? x.cpus == y.cpus : x.numa == y.numa;
        const bool there = socket_[chosen_[a]] == socket_[chosen_[b]];
        score += together == there ? 1 : 0;
        if (switch_[chosen_[a]] != switch_[chosen_[b]]) continue;
        bool same = true;
        for (std::size_t n = 0; n < machine_.nics.size(); ++n)
          same = same && machine_.gpu_to_nic(a, n) == machine_.gpu_to_nic(b, n);
        score += same ? 1 : 0;
      }
    }
    return score;
  }

  const Machine& machine_;
  std::size_t n_ = 0, steps_ = 0;
  std::vector<int> here_, there_;
  std::vector<std::size_t> switch_, socket_, chosen_, best_;
  std::vector<bool> used_;
  int best_score_ = -1;
};

// GPUs joined by NVLink do not show what lies between them on PCIe. If the mesh is that of a catalogue server, pairs below one
// switch there are taken to be below one switch here.
void assume_switches(Machine& machine, const ImportOptions& options, Imported& out) {
  if (machine.wiring() != Wiring::mesh || options.catalogue == nullptr) return;
  const GpuChoice gpu = choose_gpu(machine, options);
  if (gpu.name.empty()) return;
  const auto twin = find_twin(machine, gpu, *options.catalogue);
  if (!twin || !twin->same_gpu) return;
  Diagnostics quiet;
  Loader loader(*options.catalogue, quiet);
  FabricSpec spec = read_fabric(loader.load_component("server", twin->name), {}, quiet);
  if (!quiet.ok()) return;
  const Fabric fabric = build_fabric(std::move(spec), link_classes(), quiet);
  if (!quiet.ok()) return;
  const Match match(machine, fabric.types().front());
  if (!match.found()) return;
  std::vector<std::string> pairs;
  for (std::size_t a = 0; a < machine.gpus.size(); ++a) {
    for (std::size_t b = a + 1; b < machine.gpus.size(); ++b) {
      if (!match.one_switch(a, b) || machine.distances[a][b] != Distance::unknown) continue;
      if (machine.gpu(a).numa != machine.gpu(b).numa || machine.gpu(a).cpus != machine.gpu(b).cpus)
        continue;
      machine.distances[a][b] = machine.distances[b][a] = Distance::pix;
      pairs.push_back(fmt::format("{} and {}", machine.gpu(a).name, machine.gpu(b).name));
    }
  }
  if (!pairs.empty()) {
    out.note(Kind::unknown, fmt::format("PCIe below GPUs joined by NVLink: as in {}, which has "
                                        "this mesh, a switch is assumed above {}",
                                        twin->name, join(pairs, ", ")));
  }
}

}  // namespace

void build_topo_tree(Machine& machine, const ImportOptions& options, Imported& out) {
  assume_switches(machine, options, out);
  Tree(machine, out).build();
}

}  // namespace weft
