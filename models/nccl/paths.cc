// SPDX-License-Identifier: Apache-2.0
#include "models/nccl/paths.hpp"

#include <algorithm>
#include <bit>

namespace weft::nccl {
namespace {

NcclPath class_of(Wire wire) {
  switch (wire) {
    case Wire::nvlink:
      return NcclPath::nvl;
    case Wire::c2c:
      return NcclPath::c2c;
    case Wire::pcie:
      return NcclPath::pix;
    case Wire::socket:
      return NcclPath::sys;
    case Wire::network:
      return NcclPath::loc;  // the port itself is no distance
  }
  return NcclPath::none;
}

std::size_t bit_mirror(std::size_t value, std::size_t power) {
  std::size_t out = 0;
  for (std::size_t low = 1, high = power >> 1; low < power; low <<= 1, high >>= 1) {
    if ((value & low) != 0) out |= high;
  }
  return out;
}

}  // namespace

Paths::Paths(const Machine& machine, const Rules& rules, const Policy& policy)
    : machine_(machine), rules_(rules), policy_(policy), slot_(machine.devices.size()) {
  for (const DeviceKind kind :
       {DeviceKind::cpu, DeviceKind::gpu, DeviceKind::net, DeviceKind::nvs}) {
    for (const std::uint32_t end : machine.of(kind)) {
      slot_[end] = static_cast<std::uint32_t>(ways_.size());
      ways_.emplace_back(machine.devices.size());
      grow(end);
    }
  }
  bend_peers();
  if (rules.c2c_to_nic) mark_c2c();
  bend_nets();
}

void Paths::grow(std::uint32_t end) {
  std::vector<Path>& ways = ways_[slot_[end]];
  ways[end] = {NcclPath::loc, kLocalSpeed, {}};
  std::vector<std::uint32_t> ring{end}, next;
  while (!ring.empty()) {
    next.clear();
    for (const std::uint32_t here : ring) {
      const Device& device = machine_.devices[here];
      for (const std::uint32_t l : device.links) {
        const MachineLink& link = machine_.links[l];
        const Device& there = machine_.devices[link.to];
        const Path& base = ways[here];
        if (here != end && device.kind == DeviceKind::gpu) {
          const bool relays = rules_.relay_through_gpu && policy_.nvb &&
                              link.wire == Wire::nvlink && there.kind == DeviceKind::gpu &&
                              base.hops() <= 1;
          if (!relays) continue;
        }
        Path& way = ways[link.to];
        const Speed speed = std::min(base.speed, link.speed);
        if (way.speed != 0 && (way.hops() <= base.hops() || way.speed >= speed)) continue;
        NcclPath type = class_of(link.wire);
        if (device.kind == DeviceKind::pci && there.kind == DeviceKind::pci) type = NcclPath::pxb;
        if (link.wire == Wire::pcie &&
            (device.kind == DeviceKind::cpu || there.kind == DeviceKind::cpu))
          type = NcclPath::phb;
        if (device.kind == DeviceKind::gpu && base.type == NcclPath::nvl && type == NcclPath::nvl &&
            base.hops() > 0)
          type = NcclPath::nvb;
        way.speed = speed;
        way.type = std::max(base.type, type);
        way.links.assign(1, link.reverse);
        way.links.insert(way.links.end(), base.links.begin(), base.links.end());
        if (std::ranges::find(next, link.to) == next.end()) next.push_back(link.to);
      }
    }
    ring.swap(next);
  }
}

std::uint32_t Paths::socket_of(std::size_t gpu) const {
  const std::uint32_t from = machine_.of(DeviceKind::gpu)[gpu];
  std::uint32_t best = machine_.of(DeviceKind::cpu)[0];
  std::size_t hops = 0;
  for (const std::uint32_t cpu : machine_.of(DeviceKind::cpu)) {
    const std::size_t h = between(from, cpu).hops();
    if (h > 0 && (hops == 0 || h < hops)) {
      best = cpu;
      hops = h;
    }
  }
  return best;
}

void Paths::detour(std::uint32_t via, std::uint32_t from, std::uint32_t to) {
  const Path& first = between(from, via);
  const Path& second = between(via, to);
  if (first.type == NcclPath::none || second.type == NcclPath::none) return;
  Path joined{std::max(first.type, second.type), std::min(first.speed, second.speed), first.links};
  const bool c2c_and_host =
      joined.type == NcclPath::phb && std::min(first.type, second.type) == NcclPath::c2c;
  if (rules_.c2c_to_nic && c2c_and_host) joined.type = NcclPath::p2c;
  if (machine_.devices[via].kind == DeviceKind::gpu) joined.type = NcclPath::pxn;
  joined.links.insert(joined.links.end(), second.links.begin(), second.links.end());
  way(from, to) = std::move(joined);
}

void Paths::bend_peers() {
  const auto& gpus = machine_.of(DeviceKind::gpu);
  through_host_.assign(gpus.size() * gpus.size(), false);
  const NcclPath level = policy_.p2p_level.value_or(rules_.p2p_level(machine_.cpu, gpus.size()));
  for (std::size_t to = 0; to < gpus.size(); ++to) {
    for (std::size_t from = 0; from < gpus.size(); ++from) {
      if (from == to) continue;
      const Path& straight = between(gpus[from], gpus[to]);
      bool allowed = straight.type <= level && machine_.peer_access[from][to];
      if (straight.type == NcclPath::nvb && straight.type <= level) {
        const auto middle = machine_.devices[machine_.links[straight.links[0]].to].index;
        allowed = machine_.peer_access[from][middle] && machine_.peer_access[middle][to];
      }
      if (allowed) continue;
      detour(socket_of(to), gpus[from], gpus[to]);
      through_host_[from * gpus.size() + to] = true;
    }
  }
}

void Paths::mark_c2c() {
  for (std::size_t g = 0; g < machine_.count(DeviceKind::gpu); ++g) {
    const std::uint32_t gpu = machine_.of(DeviceKind::gpu)[g], cpu = socket_of(g);
    for (const std::uint32_t net : machine_.of(DeviceKind::net)) {
      if (between(gpu, cpu).type != NcclPath::c2c || between(net, cpu).type != NcclPath::phb)
        continue;
      way(gpu, net).type = std::min(NcclPath::p2c, between(gpu, net).type);
      way(net, gpu).type = std::min(NcclPath::p2c, between(net, gpu).type);
    }
  }
}

bool Paths::gpudirect(std::size_t gpu, std::size_t net) const {
  const Device& card = machine_.at(DeviceKind::net, net);
  if (!card.gpudirect || !machine_.gpudirect) return false;
  NcclPath distance = between(DeviceKind::gpu, gpu, DeviceKind::net, net).type;
  if (distance == NcclPath::pxn) return true;  // the relaying GPU is near enough by construction
  if (distance == NcclPath::p2c) distance = NcclPath::c2c;
  return distance <= policy_.gdr_level.value_or(NcclPath::pxb);
}

void Paths::relay(std::size_t gpu, std::size_t net, std::int32_t owner) {
  const auto& gpus = machine_.of(DeviceKind::gpu);
  const std::uint32_t to = machine_.of(DeviceKind::net)[net];
  const Path& own = between(gpus[gpu], to);
  const NcclPath nearest_class =
      policy_.pxn_c2c && rules_.c2c_to_nic ? NcclPath::p2c : NcclPath::pxb;
  const auto fits = [&](std::size_t peer) {
    return peer != gpu && between(gpus[peer], to).type <= nearest_class &&
           between(gpus[gpu], gpus[peer]).type <= NcclPath::nvl &&
           machine_.devices[gpus[peer]].host == machine_.devices[gpus[gpu]].host;
  };
  if (rules_.any_relay_gpu) {
    if (own.type <= NcclPath::pxb) return;
    std::int32_t chosen = -1;
    for (std::size_t peer = 0; peer < gpus.size(); ++peer) {
      if (!fits(peer)) continue;
      chosen = static_cast<std::int32_t>(peer);
      if (net_of(peer, 0) == static_cast<std::int32_t>(net)) break;
    }
    if (chosen >= 0) detour(gpus[static_cast<std::size_t>(chosen)], gpus[gpu], to);
    return;
  }
  if (owner < 0 || !fits(static_cast<std::size_t>(owner))) return;
  const std::uint32_t peer = gpus[static_cast<std::size_t>(owner)];
  if (between(peer, to).speed > own.speed || own.type > NcclPath::pxn) detour(peer, gpus[gpu], to);
}

void Paths::bend_nets() {
  for (std::size_t n = 0; n < machine_.count(DeviceKind::net); ++n) {
    const std::uint32_t net = machine_.of(DeviceKind::net)[n];
    const std::int32_t owner = find_owner(n);
    for (std::size_t g = 0; g < machine_.count(DeviceKind::gpu); ++g) {
      const std::uint32_t gpu = machine_.of(DeviceKind::gpu)[g];
      if (rules_.relay_to_nic && policy_.pxn) relay(g, n, owner);
      if (between(gpu, net).type >= NcclPath::phb || gpudirect(g, n)) continue;
      const std::uint32_t cpu = socket_of(g);
      detour(cpu, net, gpu);
      detour(cpu, gpu, net);
    }
  }
  for (std::size_t n = 0; n < machine_.count(DeviceKind::net); ++n) owner_.push_back(find_owner(n));
}

std::vector<std::size_t> Paths::nearest(DeviceKind from, std::size_t index, DeviceKind kind) const {
  std::vector<std::size_t> out;
  Speed widest = 0;
  NcclPath closest = NcclPath::none;
  for (std::size_t i = 0; i < machine_.count(kind); ++i) {
    const Path& path = between(from, index, kind, i);
    if (path.speed > widest || (path.speed == widest && path.type < closest)) {
      widest = path.speed;
      closest = path.type;
      out.clear();
    }
    if (widest > 0 && path.speed == widest && path.type == closest) out.push_back(i);
  }
  return out;
}

Paths::Choice Paths::choice_of(std::size_t gpu) const {
  Choice out;
  out.nets = nearest(DeviceKind::gpu, gpu, DeviceKind::net);
  if (out.nets.empty()) return out;
  if (rules_.nic_choice == NicChoice::mirrored_bits)
    out.sharers = nearest(DeviceKind::net, out.nets[0], DeviceKind::gpu).size();
  if (rules_.nic_choice == NicChoice::in_turn) {
    out.sharers = 0;
    for (std::size_t g = 0; g < machine_.count(DeviceKind::gpu); ++g) {
      if (nearest(DeviceKind::gpu, g, DeviceKind::net) != out.nets) continue;
      if (g == gpu) out.turn = out.sharers;
      ++out.sharers;
    }
  }
  return out;
}

std::int32_t Paths::pick(std::size_t gpu, const Choice& choice, std::size_t channel) const {
  const std::size_t nets = choice.nets.size();
  if (nets == 0) return -1;
  const std::size_t number = machine_.at(DeviceKind::gpu, gpu).number;
  std::size_t at = number;
  switch (rules_.nic_choice) {
    case NicChoice::by_device:
      break;
    case NicChoice::in_turn:
      at = choice.turn + channel * choice.sharers;
      break;
    case NicChoice::mirrored_bits:
      if (std::has_single_bit(nets)) at = bit_mirror(number, nets);
      if (choice.sharers > 0) at += channel % ((nets + choice.sharers - 1) / choice.sharers);
      break;
  }
  return static_cast<std::int32_t>(choice.nets[at % nets]);
}

std::int32_t Paths::net_of(std::size_t gpu, std::size_t channel) const {
  return choices_.empty() ? pick(gpu, choice_of(gpu), channel) : pick(gpu, choices_[gpu], channel);
}

std::int32_t Paths::find_owner(std::size_t net) const {
  const std::vector<std::size_t> gpus = nearest(DeviceKind::net, net, DeviceKind::gpu);
  const std::size_t channels = rules_.nic_choice == NicChoice::by_device ? 1 : rules_.most_channels;
  // The choice repeats after as many channels as there are NICs.
  const std::size_t rounds = std::min(channels, machine_.count(DeviceKind::net));
  std::vector<Choice> choices;
  for (const std::size_t g : gpus) choices.push_back(choice_of(g));
  for (std::size_t c = 0; c < rounds; ++c) {
    for (std::size_t i = 0; i < gpus.size(); ++i) {
      if (pick(gpus[i], choices[i], c) == static_cast<std::int32_t>(net))
        return static_cast<std::int32_t>(gpus[i]);
    }
  }
  return -1;
}

NcclPath Paths::least(DeviceKind to) const {
  NcclPath out = NcclPath::sys;
  for (std::size_t i = 0; i < machine_.count(DeviceKind::gpu); ++i) {
    for (std::size_t j = 0; j < machine_.count(to); ++j) {
      if (to != DeviceKind::gpu || i != j)
        out = std::min(out, between(DeviceKind::gpu, i, to, j).type);
    }
  }
  return out;
}

NcclPath Paths::most(DeviceKind to) const {
  NcclPath out = NcclPath::loc;
  for (std::size_t i = 0; i < machine_.count(DeviceKind::gpu); ++i) {
    for (std::size_t j = 0; j < machine_.count(to); ++j) {
      if (to != DeviceKind::gpu || i != j)
        out = std::max(out, between(DeviceKind::gpu, i, to, j).type);
    }
  }
  return out;
}

}  // namespace weft::nccl
