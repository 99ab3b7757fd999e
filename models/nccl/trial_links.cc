// SPDX-License-Identifier: Apache-2.0
// What a trial takes off links, and in which order it offers GPUs and NICs.
#include <algorithm>
#include <array>
#include <cmath>

#include "models/nccl/search.hpp"

namespace weft::nccl {

// Peer traffic through an Intel root complex is cut to packets of 64 B and costs a fifth more PCIe.
bool Trial::is_cut(const Path& path, std::uint32_t start) const {
  return path.type == NcclPath::phb && machine_.devices[start].kind == DeviceKind::gpu &&
         is_intel(machine_.cpu);
}

// What the other direction pays: GPUs before Ampere answer reads of NICs, POWER's NVLinks to sockets are half duplex.
Speed Trial::need_back(std::uint32_t start, const MachineLink& link, Speed forward) const {
  const Device& there = machine_.devices[link.to];
  Speed back = 0;
  if (there.kind == DeviceKind::gpu && there.compute_capability < 80 &&
      machine_.devices[start].kind != DeviceKind::gpu)
    back += forward / 8;
  if (there.kind == DeviceKind::cpu && machine_.cpu == CpuKind::power && link.wire == Wire::nvlink)
    back += forward;
  return back;
}

// Takes `speed` off the first `steps` links, or gives back what is negative.
void Trial::move(const Path& path, std::uint32_t start, std::size_t steps, Speed speed) {
  const Speed cut = is_cut(path, start) ? speed * 6 / 5 : speed;
  for (std::size_t i = 0; i < steps; ++i) {
    MachineLink& link = machine_.links[path.links[i]];
    const Speed forward = link.wire == Wire::pcie ? cut : speed;
    link.speed -= forward;
    if (pays_back_) machine_.links[link.reverse].speed -= need_back(start, link, forward);
  }
}

bool Trial::charge(const Path& path, std::uint32_t start, Speed speed) {
  const Speed cut = is_cut(path, start) ? speed * 6 / 5 : speed;
  for (std::size_t i = 0; i < path.hops(); ++i) {
    MachineLink& link = machine_.links[path.links[i]];
    const Speed forward = link.wire == Wire::pcie ? cut : speed;
    const Speed back = pays_back_ ? need_back(start, link, forward) : 0;
    if (link.speed < forward || (back > 0 && machine_.links[link.reverse].speed < back)) {
      move(path, start, i, -speed);
      return false;
    }
    link.speed -= forward;
    if (back > 0) machine_.links[link.reverse].speed -= back;
  }
  return true;
}

Speed Trial::part(bool inside, double share) const {
  const Speed whole = inside ? now_.inside : now_.network;
  return share == 1 ? whole : static_cast<Speed>(std::llround(static_cast<double>(whole) * share));
}

bool Trial::take(DeviceKind a, std::size_t i, DeviceKind b, std::size_t j, double share) {
  const auto inner = [](DeviceKind kind) {
    return kind == DeviceKind::gpu || kind == DeviceKind::nvs;
  };
  const bool inside = inner(a) && inner(b);
  const Path& path = paths_.between(a, i, b, j);
  const NcclPath farthest = inside ? now_.type_inside : now_.type_network;
  if (path.type >= NcclPath::net) return false;
  // Heads of NVLS and CollNet reach all GPUs as they can.
  if (share <= 1 && !(inside && now_.shape == Shape::collnet_direct)) {
    const bool tree = now_.shape == Shape::balanced_tree || now_.shape == Shape::split_tree ||
                      now_.shape == Shape::chain;
    if (path.type > farthest) return false;
    if (tree && rules_.both_ways_checked && paths_.between(b, j, a, i).type > farthest)
      return false;
  }
  if (!charge(path, machine_.of(a)[i], part(inside, share))) return false;
  now_.hops += static_cast<std::int64_t>(path.hops());
  return true;
}

void Trial::give_back(DeviceKind a, std::size_t i, DeviceKind b, std::size_t j, double share) {
  const bool inside = a != DeviceKind::net && b != DeviceKind::net;
  const Path& path = paths_.between(a, i, b, j);
  move(path, machine_.of(a)[i], path.hops(), -part(inside, share));
  now_.hops -= static_cast<std::int64_t>(path.hops());
}

Speed Trial::pcie_of(std::size_t gpu) const {
  for (const std::uint32_t l : machine_.at(DeviceKind::gpu, gpu).links) {
    const MachineLink& link = machine_.links[l];
    if (link.wire == Wire::pcie) return std::min(link.speed, machine_.links[link.reverse].speed);
  }
  return -1;
}

// The best next GPUs first: near the NIC when the ring is about to leave (towards_net 1), else wide and near ways. When all are
// alike and the NIC is still far (-1), backwards, so that the last ones are near it. They are put on top of offers_.
void Trial::offer_next(std::size_t gpu, int towards_net) {
  if (nvs_ && rules_.nvs_neighbours_only) return offer_nvs_neighbours(gpu);
  const std::size_t bottom = offers_.size();
  const std::uint64_t bit = std::uint64_t{1} << now_.count;
  const std::vector<Neighbour>& all = neighbours_[gpu];
  bool alike = true;
  const Neighbour* first = nullptr;
  for (const Neighbour& n : all) {
    if ((used_[n.gpu] & bit) != 0) continue;
    if (first == nullptr) first = &n;
    alike = alike && n.speed == first->speed && n.hops == first->hops;
    offers_.push_back(n.gpu);
  }
  if (towards_net != 0) sort_by_net(bottom);
  if (towards_net == -1 && alike)
    std::reverse(offers_.begin() + static_cast<std::ptrdiff_t>(bottom), offers_.end());
  if (nvs_ && rules_.nvs_neighbours_first) prefer_neighbours(gpu, bottom);
}

// GPUs nearer to the NIC of the channel come first; those equally near stay in order.
void Trial::sort_by_net(std::size_t bottom) {
  struct Score {
    std::array<std::int64_t, 3> key;
    std::uint16_t gpu;
  };
  std::vector<Score> scores;
  scores.reserve(offers_.size() - bottom);
  const auto net = static_cast<std::size_t>(now_.nets[now_.count][0]);
  for (std::size_t i = bottom; i < offers_.size(); ++i) {
    const std::uint16_t g = offers_[i];
    const Path& in = paths_.between(DeviceKind::net, net, DeviceKind::gpu, g);
    scores.push_back(
        {{-(in.speed / 1000), -(pcie_of(g) / 1000), static_cast<std::int64_t>(in.hops())}, g});
  }
  std::ranges::stable_sort(scores, {}, &Score::key);
  for (std::size_t i = 0; i < scores.size(); ++i) offers_[bottom + i] = scores[i].gpu;
}

// Behind NVSwitches every pair is equal, and few partners per GPU are best: the ones before and after it, best first.
Trial::Wishes Trial::nvs_wishes(std::size_t gpu) const {
  const auto before = static_cast<std::uint16_t>((gpu + gpus_ - 1) % gpus_);
  const auto after = static_cast<std::uint16_t>((gpu + 1) % gpus_);
  Wishes out{{before, after}, 2};
  if (now_.shape == Shape::split_tree || now_.shape == Shape::balanced_tree)
    out.gpus = {after, before};
  if (now_.shape == Shape::chain || before == after) out = {{after, after}, 1};
  return out;
}

void Trial::offer_nvs_neighbours(std::size_t gpu) {
  const std::uint64_t bit = std::uint64_t{1} << now_.count;
  const Wishes wishes = nvs_wishes(gpu);
  for (std::size_t w = 0; w < wishes.count; ++w) {
    const std::uint16_t g = wishes.gpus[w];
    if (g == gpu || (used_[g] & bit) != 0) continue;
    if (paths_.between(DeviceKind::gpu, gpu, DeviceKind::gpu, g).hops() > 0) offers_.push_back(g);
  }
}

void Trial::prefer_neighbours(std::size_t gpu, std::size_t bottom) {
  const Wishes wishes = nvs_wishes(gpu);
  const auto begin = offers_.begin() + static_cast<std::ptrdiff_t>(bottom);
  for (std::size_t w = wishes.count; w-- > 0;) {
    const auto at = std::find(begin, offers_.end(), wishes.gpus[w]);
    if (at != offers_.end()) std::rotate(begin, at, at + 1);
  }
}

// All other GPUs in the order in which they are tried from one: wide ways, near ways, next numbers.
void Trial::rank_neighbours() {
  neighbours_.resize(gpus_);
  for (std::size_t gpu = 0; gpu < gpus_; ++gpu) {
    for (std::size_t i = 1; i < gpus_; ++i) {
      const std::size_t g = (gpu + i) % gpus_;
      const Path& path = paths_.between(DeviceKind::gpu, gpu, DeviceKind::gpu, g);
      if (path.hops() > 0)
        neighbours_[gpu].push_back({static_cast<std::uint16_t>(g), path.speed / 1000, path.hops()});
    }
    std::ranges::stable_sort(neighbours_[gpu], [](const Neighbour& a, const Neighbour& b) {
      return a.speed != b.speed ? a.speed > b.speed : a.hops < b.hops;
    });
  }
}

const std::vector<std::size_t>& Trial::nets_for(std::int32_t gpu) {
  auto& list = net_lists_[static_cast<std::size_t>(gpu + 1)];
  if (list.empty()) list = list_nets(gpu);
  return list;
}

// NICs to start from (gpu -1) or to leave by.
std::vector<std::size_t> Trial::list_nets(std::int32_t gpu) const {
  std::vector<std::size_t> out;
  const auto add = [&](std::size_t n) {
    if (std::ranges::find(out, n) == out.end()) out.push_back(n);
  };
  std::vector<std::size_t> gpus;
  for (std::size_t g = 0; g < gpus_; ++g) {
    if (gpu < 0 || static_cast<std::int32_t>(g) == gpu) gpus.push_back(g);
  }
  const bool back = gpu >= 0;
  if (rules_.nic_order == NicOrder::as_listed || (rules_.nic_order == NicOrder::fastest && back)) {
    for (std::size_t n = 0; n < nets_; ++n) add(n);
    return out;
  }
  if (rules_.nic_order == NicOrder::fastest) {
    struct Best {
      Speed speed = 0;
      std::size_t hops = 255, net = 0;
    };
    std::vector<Best> nets(nets_);
    Speed widest = 0;
    for (std::size_t n = 0; n < nets_; ++n) {
      nets[n].net = n;
      for (std::size_t g = 0; g < gpus_; ++g) {
        const Path& path = paths_.between(DeviceKind::net, n, DeviceKind::gpu, g);
        if (path.speed > nets[n].speed ||
            (path.speed == nets[n].speed && path.hops() < nets[n].hops))
          nets[n] = {path.speed, path.hops(), n};
      }
      widest = std::max(widest, nets[n].speed);
    }
    std::erase_if(nets, [&](const Best& b) { return b.speed < widest; });
    std::ranges::stable_sort(nets, {}, &Best::hops);
    const std::size_t turn = machine_.at(DeviceKind::gpu, 0).number;
    for (std::size_t i = 0; i < nets.size();) {
      std::size_t j = i;
      while (j < nets.size() && nets[j].hops == nets[i].hops) ++j;
      for (std::size_t k = 0; k < j - i; ++k) add(nets[i + (k + turn) % (j - i)].net);
      i = j;
    }
    return out;
  }

  const auto preferred = [&](std::size_t g, std::size_t channel) {
    return static_cast<std::size_t>(paths_.net_of(g, channel));
  };
  if (rules_.nic_order == NicOrder::preferred_gpu_first && machine_.hosts > 1) {
    std::vector<bool> done(gpus.size());
    for (std::size_t c = 0; c < nets_; ++c) {
      for (std::size_t i = 0; i < gpus.size(); ++i) {
        if (done[i] || paths_.net_of(gpus[i], 0) < 0) continue;
        const std::size_t n = preferred(gpus[i], c);
        if (c > 0 && n == preferred(gpus[i], 0)) {
          done[i] = true;
        } else {
          add(n);
        }
      }
    }
  } else if (rules_.nic_order >= NicOrder::preferred) {
    for (const std::size_t g : gpus) {
      if (paths_.net_of(g, 0) < 0) continue;
      add(preferred(g, 0));
      for (std::size_t c = 1; c < nets_ && preferred(g, c) != preferred(g, 0); ++c)
        add(preferred(g, c));
    }
  }
  for (auto type = NcclPath::loc; type <= now_.type_network;
       type = static_cast<NcclPath>(static_cast<int>(type) + 1)) {
    for (const std::size_t g : gpus) {
      std::vector<std::size_t> here;
      for (std::size_t n = 0; n < nets_; ++n) {
        if (paths_.between(DeviceKind::gpu, g, DeviceKind::net, n).type == type) here.push_back(n);
      }
      if (here.empty()) continue;
      const std::size_t turn = rules_.nic_order == NicOrder::nearest
                                   ? machine_.at(DeviceKind::gpu, g).number % here.size()
                                   : 0;
      for (std::size_t i = 0; i < here.size(); ++i) add(here[(i + turn) % here.size()]);
    }
  }
  return out;
}

}  // namespace weft::nccl
