// SPDX-License-Identifier: Apache-2.0
#include "models/nccl/machine.hpp"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <deque>
#include <map>
#include <numeric>

#include <fmt/format.h>

#include "sim/core/diagnostics.hpp"

namespace weft::nccl {
namespace {

constexpr std::uint32_t kNone = 0xFFFF'FFFF;
constexpr int kUnstatedCapability = 80;  // fabrics made by hand may leave out what the GPU is

bool is_scale_up(LinkClass c) {
  using enum LinkClass;
  return c == nvlink || c == ualink || c == xgmi || c == hccs;
}
bool joins_sockets(LinkClass c) { return c == LinkClass::socket || c == LinkClass::c2c; }
bool is_host_bus(LinkClass c) {
  return !is_scale_up(c) && !joins_sockets(c) && c != LinkClass::memory;
}

// Generation 3 x16 carries 15.754 GB/s raw and counts as 12; generations and widths double.
Speed pcie_speed(Bandwidth raw, const Rules& rules) {
  const double steps = std::round(std::log2(raw.gbytes_per_s() / 15.754));
  const Speed speed = static_cast<Speed>(static_cast<double>(kPcieSpeed) * std::exp2(steps));
  // A generation unknown to the release counts as generation 3.
  const Speed fastest_known = kPcieSpeed << (rules.pcie_known_generation - 3);
  return speed > fastest_known ? kPcieSpeed : speed;
}

bool starts_with(const std::string& text, std::string_view head) {
  return text.compare(0, head.size(), head) == 0;
}

// The file does not name the processor; its links do.
CpuKind kind_of_cpu(const ServerType& type) {
  for (const LinkEntry& entry : type.spec.links) {
    const std::string& name = entry.link.name;
    if (starts_with(name, "qpi")) return CpuKind::broadwell;
    if (starts_with(name, "xgmi-") && entry.link.link_class == LinkClass::socket)
      return CpuKind::amd;
    if (starts_with(name, "xbus") || starts_with(name, "dram-power")) return CpuKind::power;
    if (starts_with(name, "clink") || starts_with(name, "hccs-kunpeng")) return CpuKind::arm;
  }
  for (const Link& link : type.links) {
    if (type.nodes[link.from.v].kind != NodeKind::cpu) continue;
    if (type.nodes[link.to.v].kind == NodeKind::gpu && link.link_class == LinkClass::c2c)
      return CpuKind::arm;
    if (type.nodes[link.to.v].kind != NodeKind::cpu || link.link_class != LinkClass::socket)
      continue;
    // UPI: three links of 10.4 or 11.2 GT/s carry 62 to 67 GB/s, of 16 GT/s 96, of 20 GT/s 120.
    const double rate = link.raw.gbytes_per_s();
    if (rate < 45) return CpuKind::broadwell;
    if (rate < 80) return CpuKind::skylake;
    return rate < 110 ? CpuKind::sapphire_rapids : CpuKind::emerald_rapids;
  }
  // One socket: nothing crosses it, and AMD is what such GPU servers have.
  return CpuKind::amd;
}

class Builder {
 public:
  Builder(const ServerType& type, std::span<const std::uint32_t> gpus, const NicPorts& ports,
          const Rules& rules)
      : type_(type), rules_(rules), ports_(ports), place_(type.nodes.size(), kNone) {
    host_ = hosts_of(type);
    adjacent_.resize(type.nodes.size());
    for (std::uint32_t l = 0; l < type.links.size(); ++l)
      adjacent_[type.links[l].from.v].push_back(l);
    rank_of_.assign(type.gpus.size(), kNone);
    for (std::uint32_t r = 0; r < gpus.size(); ++r) rank_of_[gpus[r]] = r;
    for (std::uint32_t p = 0; p < type.gpus.size(); ++p) position_[type.gpus[p]] = p;
    for (std::uint32_t p = 0; p < type.nics.size(); ++p) nic_position_[type.nics[p]] = p;
    number_hosts(gpus);
  }

  Machine run() {
    machine_.cpu = kind_of_cpu(type_);
    machine_.gpudirect = type_.spec.gpudirect_rdma != Reach::none;
    grow_trees();
    adopt_orphans();
    add_nvlinks();
    add_c2c();
    join_sockets();
    for (const std::uint32_t cpu : machine_.of(DeviceKind::cpu)) uplink_last(cpu, kNone);
    allow_peers();
    return std::move(machine_);
  }

 private:
  const Node& node(std::uint32_t local) const { return type_.nodes[local]; }
  bool wanted(std::uint32_t local) const { return host_number_[host_[local]] != kNone; }

  void number_hosts(std::span<const std::uint32_t> gpus) {
    host_number_.assign(type_.nodes.size(), kNone);
    std::vector<std::uint32_t> used;
    for (const std::uint32_t g : gpus) used.push_back(host_[type_.gpus[g]]);
    std::ranges::sort(used);
    used.erase(std::unique(used.begin(), used.end()), used.end());
    for (std::uint32_t h = 0; h < used.size(); ++h) host_number_[used[h]] = h;
    machine_.hosts = static_cast<std::uint32_t>(std::max<std::size_t>(used.size(), 1));
  }

  std::uint32_t add(DeviceKind kind, std::uint32_t host, std::uint32_t local = 0) {
    Device device;
    device.kind = kind;
    device.local = local;
    device.host = host;
    auto& list = machine_.by_kind[static_cast<std::size_t>(kind)];
    device.index = static_cast<std::uint32_t>(list.size());
    const auto id = static_cast<std::uint32_t>(machine_.devices.size());
    list.push_back(id);
    machine_.devices.push_back(std::move(device));
    return id;
  }

  // Links are kept fastest first; equal ones in the order of their coming. Parallel ones add up.
  void half_link(std::uint32_t from, std::uint32_t to, Wire wire, Speed speed) {
    auto& list = machine_.devices[from].links;
    std::uint32_t id = kNone;
    for (const std::uint32_t l : list) {
      if (machine_.links[l].to == to && machine_.links[l].wire == wire) id = l;
    }
    if (id == kNone) {
      id = static_cast<std::uint32_t>(machine_.links.size());
      machine_.links.push_back({from, to, kNone, wire, 0});
      list.push_back(id);
    }
    machine_.links[id].speed += speed;
    auto at = std::ranges::find(list, id);
    while (at != list.begin() && machine_.links[*std::prev(at)].speed < machine_.links[id].speed) {
      std::iter_swap(at, std::prev(at));
      --at;
    }
  }
  void link(std::uint32_t a, std::uint32_t b, Wire wire, Speed speed) {
    half_link(a, b, wire, speed);
    half_link(b, a, wire, speed);
    pair_up(a, b, wire);
  }
  void pair_up(std::uint32_t a, std::uint32_t b, Wire wire) {
    const auto find = [&](std::uint32_t from, std::uint32_t to) {
      for (const std::uint32_t l : machine_.devices[from].links) {
        if (machine_.links[l].to == to && machine_.links[l].wire == wire) return l;
      }
      return kNone;
    };
    const std::uint32_t there = find(a, b), back = find(b, a);
    machine_.links[there].reverse = back;
    machine_.links[back].reverse = there;
  }

  void grow_trees() {
    std::vector<std::uint32_t> cpus, roots;
    for (std::uint32_t n = 0; n < type_.nodes.size(); ++n) {
      if (node(n).kind == NodeKind::cpu && wanted(n)) cpus.push_back(n);
    }
    for (const std::uint32_t n : cpus) place_[n] = add(DeviceKind::cpu, host_number_[host_[n]]);
    for (const std::uint32_t n : cpus) descend(n);
    // Switches without a socket above them: NCCL always has one.
    for (std::uint32_t n = 0; n < type_.nodes.size(); ++n) {
      if (node(n).kind != NodeKind::pcie_switch || !wanted(n) || place_[n] != kNone) continue;
      const std::uint32_t cpu = cpu_of(host_number_[host_[n]]);
      place_[n] = add(DeviceKind::pci, machine_.devices[cpu].host);
      link(place_[n], cpu, Wire::pcie, kPcieSpeed);
      descend(n);
    }
  }

  // Depth first, children in the order of the file, as bus numbers are given.
  void descend(std::uint32_t local) {
    for (const std::uint32_t l : adjacent_[local]) {
      const Link& edge = type_.links[l];
      const std::uint32_t child = edge.to.v;
      if (!is_host_bus(edge.link_class) || place_[child] != kNone || !wanted(child)) continue;
      const Speed speed = pcie_speed(edge.raw, rules_);
      switch (node(child).kind) {
        case NodeKind::gpu:
          hang_gpu(child, place_[local], speed);
          break;
        case NodeKind::nic:
          hang_nic(child, place_[local], speed);
          break;
        case NodeKind::pcie_switch:
          place_[child] = add(DeviceKind::pci, host_number_[host_[child]]);
          link(place_[child], place_[local], Wire::pcie, speed);
          descend(child);
          break;
        default:
          break;
      }
    }
  }

  void hang_gpu(std::uint32_t local, std::uint32_t parent, Speed speed) {
    const std::uint32_t position = position_.at(local);
    if (rank_of_[position] == kNone) return;
    place_[local] = add(DeviceKind::gpu, host_number_[host_[local]], local);
    Device& device = machine_.devices[place_[local]];
    device.rank = rank_of_[position];
    const int stated = parse_compute_capability(type_.gpu_specs[position].compute_capability);
    device.compute_capability = stated > 0 ? stated : kUnstatedCapability;
    for (std::uint32_t p = 0; p < position; ++p) {
      if (host_[type_.gpus[p]] == host_[local]) ++device.number;
    }
    link(place_[local], parent, Wire::pcie, speed);
  }

  void hang_nic(std::uint32_t local, std::uint32_t parent, Speed speed) {
    const auto found = nic_position_.find(local);
    if (found == nic_position_.end() || ports_.empty()) return;
    const std::uint32_t position = found->second;
    if (ports_[position].empty()) return;
    place_[local] = add(DeviceKind::nic, host_number_[host_[local]], local);
    link(place_[local], parent, Wire::pcie, speed);
    for (const Speed port : ports_[position]) {
      const std::uint32_t net = add(DeviceKind::net, host_number_[host_[local]]);
      Device& device = machine_.devices[net];
      device.nic = static_cast<std::int32_t>(position);
      device.speed = port;
      device.gpudirect = machine_.gpudirect && type_.nic_specs[position].gpudirect;
      device.collnet = true;
      link(place_[local], net, Wire::network, port);
    }
  }

  std::uint32_t cpu_of(std::uint32_t host) {
    for (const std::uint32_t cpu : machine_.of(DeviceKind::cpu)) {
      if (machine_.devices[cpu].host == host) return cpu;
    }
    return add(DeviceKind::cpu, host);
  }

  // GPUs and NICs that reach their socket by other links (NVLink, C2C) have a PCIe port all the same.
  void adopt_orphans() {
    const auto parent_of = [&](std::uint32_t local) {
      for (const std::uint32_t l : adjacent_[local]) {
        const std::uint32_t other = type_.links[l].to.v;
        if (node(other).kind == NodeKind::cpu && place_[other] != kNone) return place_[other];
      }
      return cpu_of(host_number_[host_[local]]);
    };
    for (std::uint32_t p = 0; p < type_.gpus.size(); ++p) {
      const std::uint32_t local = type_.gpus[p];
      if (rank_of_[p] == kNone || place_[local] != kNone) continue;
      const auto& port = type_.gpu_specs[p].pcie;
      Speed speed = kPcieSpeed;
      if (port) {
        const int generation =
            port->generation > rules_.pcie_known_generation ? 3 : port->generation;
        speed = static_cast<Speed>(static_cast<double>(kPcieSpeed) * std::exp2(generation - 3) *
                                   port->width / 16);
      }
      hang_gpu(local, parent_of(local), speed);
    }
    for (const std::uint32_t local : type_.nics) {
      if (place_[local] == kNone && wanted(local)) hang_nic(local, parent_of(local), kPcieSpeed);
    }
  }

  void add_nvlinks() {
    for (const std::uint32_t local : type_.gpus) {
      if (place_[local] == kNone) continue;
      const int cc = machine_.devices[place_[local]].compute_capability;
      const Speed one = nvlink_speed(rules_.version, cc);
      for (const std::uint32_t l : adjacent_[local]) {
        const Link& edge = type_.links[l];
        if (edge.link_class != LinkClass::nvlink) continue;
        const std::uint32_t other = edge.to.v;
        if (node(other).kind == NodeKind::nvswitch) {
          if (machine_.count(DeviceKind::nvs) == 0) add(DeviceKind::nvs, 0);
          link(place_[local], machine_.of(DeviceKind::nvs)[0], Wire::nvlink, one * edge.count);
        } else if (place_[other] != kNone && node(other).kind == NodeKind::gpu) {
          half_link(place_[local], place_[other], Wire::nvlink, one * edge.count);
          if (other < local) pair_up(place_[local], place_[other], Wire::nvlink);
        } else if (place_[other] != kNone && node(other).kind == NodeKind::cpu) {
          link(place_[local], place_[other], Wire::nvlink, one * edge.count);
        }
      }
    }
  }

  void add_c2c() {
    if (rules_.version < NcclVersion{2, 19, 0}) return;
    for (const std::uint32_t local : type_.gpus) {
      if (place_[local] == kNone) continue;
      for (const std::uint32_t l : adjacent_[local]) {
        const Link& edge = type_.links[l];
        if (edge.link_class != LinkClass::c2c || node(edge.to.v).kind != NodeKind::cpu) continue;
        if (place_[edge.to.v] == kNone) continue;
        link(place_[local], place_[edge.to.v], Wire::c2c, edge.raw.bps / 8'000'000);
      }
    }
  }

  void join_sockets() {
    const Speed speed = socket_speed(rules_.version, machine_.cpu);
    const auto& cpus = machine_.of(DeviceKind::cpu);
    for (std::size_t i = 0; i < cpus.size(); ++i) {
      for (std::size_t j = i + 1; j < cpus.size(); ++j) {
        if (machine_.devices[cpus[i]].host == machine_.devices[cpus[j]].host)
          link(cpus[i], cpus[j], Wire::socket, speed);
      }
    }
  }

  // The way up is walked after the ways down.
  void uplink_last(std::uint32_t device, std::uint32_t parent) {
    auto& list = machine_.devices[device].links;
    if (parent != kNone) {
      const auto up = std::ranges::find_if(list, [&](std::uint32_t l) {
        return machine_.links[l].to == parent && machine_.links[l].wire == Wire::pcie;
      });
      if (up != list.end()) {
        const std::uint32_t id = *up;
        list.erase(up);
        list.push_back(id);
      }
    }
    const std::vector<std::uint32_t> copy = list;
    for (const std::uint32_t l : copy) {
      const MachineLink& edge = machine_.links[l];
      if (edge.wire == Wire::pcie && edge.to != parent) uplink_last(edge.to, device);
    }
  }

  // The pairs that the driver gives peer access: over NVLink, and over PCIe as far as the server allows.
  void allow_peers() {
    const auto& gpus = machine_.of(DeviceKind::gpu);
    std::vector<std::uint32_t> local_of(gpus.size());
    for (const std::uint32_t local : type_.gpus) {
      if (place_[local] != kNone) local_of[machine_.devices[place_[local]].index] = local;
    }
    machine_.peer_access.assign(gpus.size(), std::vector<bool>(gpus.size(), true));
    for (std::size_t i = 0; i < gpus.size(); ++i) {
      for (std::size_t j = 0; j < gpus.size(); ++j) {
        if (i != j) machine_.peer_access[i][j] = may_reach(gpus[i], gpus[j]);
      }
    }
  }

  std::uint32_t pcie_parent(std::uint32_t device) const {
    for (auto l = machine_.devices[device].links.rbegin();
         l != machine_.devices[device].links.rend(); ++l) {
      if (machine_.links[*l].wire == Wire::pcie) return machine_.links[*l].to;
    }
    return kNone;
  }
  std::uint32_t socket_of(std::uint32_t device) const {
    while (device != kNone && machine_.devices[device].kind != DeviceKind::cpu)
      device = pcie_parent(device);
    return device;
  }
  bool may_reach(std::uint32_t a, std::uint32_t b) const {
    const auto joined = [&](std::uint32_t x, std::uint32_t y) {
      return std::ranges::any_of(machine_.devices[x].links, [&](std::uint32_t l) {
        const MachineLink& edge = machine_.links[l];
        return edge.wire == Wire::nvlink &&
               (edge.to == y || machine_.devices[edge.to].kind == DeviceKind::nvs);
      });
    };
    const PeerAccess& peers = type_.spec.peer_access;
    if (peers.nvlink && joined(a, b) && joined(b, a)) return true;
    switch (peers.pcie) {
      case Reach::none:
        return false;
      case Reach::same_switch: {
        const std::uint32_t up = pcie_parent(a);
        return up == pcie_parent(b) && machine_.devices[up].kind == DeviceKind::pci;
      }
      case Reach::same_socket:
        return socket_of(a) == socket_of(b);
      case Reach::all:
        return machine_.devices[a].host == machine_.devices[b].host;
    }
    return false;
  }

  const ServerType& type_;
  const Rules& rules_;
  const NicPorts& ports_;
  Machine machine_;
  std::vector<std::uint32_t> place_;  // device of each local node
  std::vector<std::uint32_t> host_, host_number_, rank_of_;
  std::map<std::uint32_t, std::uint32_t> position_, nic_position_;
  std::vector<std::vector<std::uint32_t>> adjacent_;
};

}  // namespace

int parse_compute_capability(std::string_view text) {
  const std::size_t dot = text.find('.');
  if (dot == std::string_view::npos) return 0;
  int high = 0, low = 0;
  const char* end = text.data() + text.size();
  const auto [p, e] = std::from_chars(text.data(), text.data() + dot, high);
  const auto [q, f] = std::from_chars(text.data() + dot + 1, end, low);
  if (e != std::errc{} || f != std::errc{} || p != text.data() + dot || q != end) return 0;
  if (high < 1 || high > 99 || low < 0 || low > 9) return 0;
  return high * 10 + low;
}

std::vector<std::uint32_t> hosts_of(const ServerType& type) {
  std::vector<std::uint32_t> root(type.nodes.size());
  std::iota(root.begin(), root.end(), 0U);
  const auto find = [&](std::uint32_t n) {
    while (root[n] != n) n = root[n] = root[root[n]];
    return n;
  };
  bool switched = false;
  for (const Node& node : type.nodes) switched = switched || node.kind == NodeKind::nvswitch;
  for (const Link& link : type.links) {
    // NVLinks through switches reach other trays; everything else stays inside one.
    const bool across = type.nodes[link.from.v].kind == NodeKind::nvswitch ||
                        type.nodes[link.to.v].kind == NodeKind::nvswitch;
    if (!across) root[find(link.from.v)] = find(link.to.v);
  }
  std::vector<std::uint32_t> out(type.nodes.size(), 0);
  if (!switched) return out;
  for (std::uint32_t n = 0; n < out.size(); ++n) out[n] = find(n);
  return out;
}

Machine build_machine(const ServerType& type, std::span<const std::uint32_t> gpus,
                      const NicPorts& ports, const Rules& rules) {
  for (const std::uint32_t g : gpus) {
    const GpuSpec& spec = type.gpu_specs[g];
    if (spec.vendor.empty() && spec.compute_capability.empty()) continue;
    if (parse_compute_capability(spec.compute_capability) > 0 &&
        (spec.vendor.empty() || spec.vendor == "nvidia"))
      continue;
    throw InputError(fmt::format(
        "error: {} is {} of {}, compute capability \"{}\"\n    NCCL drives NVIDIA GPUs only\n",
        type.node_names[type.gpus[g]], spec.name.empty() ? "a GPU" : spec.name,
        spec.vendor.empty() ? "an unnamed vendor" : spec.vendor, spec.compute_capability));
  }
  return Builder(type, gpus, ports, rules).run();
}

}  // namespace weft::nccl
