// SPDX-License-Identifier: Apache-2.0
// What a trial takes off links, and in which order it offers GPUs and NICs.
#include <algorithm>
#include <array>
#include <cmath>

#include "models/nccl/search.hpp"

namespace weft::nccl {

// Peer traffic through an Intel root complex is cut to packets of 64 B and costs a fifth more PCIe.
Speed Trial::need(const Path& path, std::uint32_t start, const MachineLink& link,
                  Speed speed) const {
  const bool cut = link.wire == Wire::pcie && path.type == NcclPath::phb &&
                   machine_.devices[start].kind == DeviceKind::gpu && is_intel(machine_.cpu);
  return cut ? speed * 6 / 5 : speed;
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

void Trial::move(const Path& path, std::uint32_t start, std::size_t steps, Speed speed) {
  for (std::size_t i = 0; i < steps; ++i) {
    MachineLink& link = machine_.links[path.links[i]];
    const Speed forward = need(path, start, link, speed);
    const Speed back = need_back(start, link, forward);
    link.speed -= forward;
    machine_.links[link.reverse].speed -= back;
  }
}

bool Trial::charge(const Path& path, std::uint32_t start, Speed speed) {
  for (std::size_t i = 0; i < path.hops(); ++i) {
    MachineLink& link = machine_.links[path.links[i]];
    const Speed forward = need(path, start, link, speed);
    const Speed back = need_back(start, link, forward);
    if (link.speed < forward || (back > 0 && machine_.links[link.reverse].speed < back)) {
      move(path, start, i, -speed);
      return false;
    }
    link.speed -= forward;
    machine_.links[link.reverse].speed -= back;
  }
  return true;
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
  const double whole = static_cast<double>(inside ? now_.inside : now_.network);
  if (!charge(path, machine_.of(a)[i], static_cast<Speed>(std::llround(whole * share))))
    return false;
  now_.hops += static_cast<std::int64_t>(path.hops());
  return true;
}

void Trial::give_back(DeviceKind a, std::size_t i, DeviceKind b, std::size_t j, double share) {
  const bool inside = a != DeviceKind::net && b != DeviceKind::net;
  const Path& path = paths_.between(a, i, b, j);
  const double whole = static_cast<double>(inside ? now_.inside : now_.network);
  move(path, machine_.of(a)[i], path.hops(), -static_cast<Speed>(std::llround(whole * share)));
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
// alike and the NIC is still far (-1), backwards, so that the last ones are near it.
std::vector<std::size_t> Trial::next_gpus(std::size_t gpu, int towards_net) const {
  struct Score {
    std::array<std::int64_t, 6> key;
    std::size_t gpu;
  };
  std::vector<Score> scores;
  scores.reserve(gpus_);
  const std::uint64_t bit = std::uint64_t{1} << now_.count;
  for (std::size_t i = 1; i < gpus_; ++i) {
    const std::size_t g = (gpu + i) % gpus_;
    const Path& path = paths_.between(DeviceKind::gpu, gpu, DeviceKind::gpu, g);
    if ((used_[g] & bit) != 0 || path.hops() == 0) continue;
    Score score{{0, 0, 0, -(path.speed / 1000), static_cast<std::int64_t>(path.hops()),
                 static_cast<std::int64_t>(i)},
                g};
    if (towards_net != 0) {
      const Path& in = paths_.between(
          DeviceKind::net, static_cast<std::size_t>(now_.nets[now_.count][0]), DeviceKind::gpu, g);
      score.key[0] = -(in.speed / 1000);
      score.key[1] = -(pcie_of(g) / 1000);
      score.key[2] = static_cast<std::int64_t>(in.hops());
    }
    scores.push_back(score);
  }
  std::ranges::sort(scores, {}, &Score::key);
  const bool alike = std::ranges::all_of(scores, [&](const Score& s) {
    return s.key[3] == scores[0].key[3] && s.key[4] == scores[0].key[4];
  });
  std::vector<std::size_t> out;
  out.reserve(scores.size());
  for (const Score& s : scores) out.push_back(s.gpu);
  if (towards_net == -1 && alike) std::ranges::reverse(out);
  if (!nvs_ || !rules_.nvs_neighbours_first) return out;

  // Behind NVSwitches every pair is equal, and few partners per GPU are best.
  const std::size_t before = (gpu + gpus_ - 1) % gpus_, after = (gpu + 1) % gpus_;
  std::vector<std::size_t> first;  // the last one comes out in front
  if (now_.shape == Shape::ring) {
    first = {after, before};
  } else if (now_.shape == Shape::split_tree || now_.shape == Shape::balanced_tree) {
    first = {before, after};
  } else {
    first = {after};
  }
  if (first.size() == 2 && before == after) first.pop_back();
  std::size_t moved = 0;
  for (const std::size_t g : first) {
    const auto at = std::ranges::find(out, g);
    if (at == out.end()) continue;
    std::rotate(out.begin(), at, at + 1);
    ++moved;
  }
  if (rules_.nvs_neighbours_only) out.resize(moved);
  return out;
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
