// SPDX-License-Identifier: Apache-2.0
// Which trials are run, in which order: the outer loop of the search.
#include <algorithm>

#include "models/nccl/search.hpp"

namespace weft::nccl {
namespace {

struct Limits {
  Speed per_channel = 0;  // the widest way any GPU has
  Speed per_gpu = 0;      // all NVLinks of a GPU together, or its PCIe
};

Limits limits_of(const Machine& machine, const Paths& paths, const Rules& rules) {
  const bool network = machine.count(DeviceKind::net) > 0;
  const std::size_t gpus = machine.count(DeviceKind::gpu);
  if (!network && gpus == 1) return {kLocalSpeed, kLocalSpeed};
  Limits out;
  const DeviceKind target = network ? DeviceKind::net : DeviceKind::gpu;
  for (std::size_t g = 0; g < gpus; ++g) {
    const Device& gpu = machine.at(DeviceKind::gpu, g);
    for (std::size_t i = 0; i < machine.count(target); ++i) {
      const Path& path = paths.between(DeviceKind::gpu, g, target, i);
      if (path.hops() == 0) continue;
      Speed speed = path.speed;
      if (rules.one_link_per_channel && path.type == NcclPath::nvl)
        speed = std::min(speed, nvlink_speed(rules.version, gpu.compute_capability));
      out.per_channel = std::max(out.per_channel, speed);
    }
    Speed nvlink = 0, pcie = 0;
    for (const std::uint32_t l : gpu.links) {
      const MachineLink& link = machine.links[l];
      if (link.wire == Wire::nvlink) nvlink += link.speed;
      if (link.wire == Wire::pcie) pcie = link.speed;
    }
    out.per_gpu = std::max({out.per_gpu, nvlink, pcie});
  }
  return out;
}

// Two groups of NVLink peers with something slower between.
bool two_nvlink_halves(const Machine& machine, const Paths& paths) {
  const std::size_t gpus = machine.count(DeviceKind::gpu);
  std::vector<std::size_t> group(gpus), size(gpus, 0);
  for (std::size_t g = 0; g < gpus; ++g) group[g] = g;
  for (std::size_t g = 0; g < gpus; ++g) {
    for (std::size_t p = g + 1; p < gpus; ++p) {
      if (paths.between(DeviceKind::gpu, g, DeviceKind::gpu, p).type == NcclPath::nvl)
        group[p] = group[g];
    }
  }
  for (const std::size_t g : group) ++size[g];
  return std::ranges::count_if(size, [](std::size_t n) { return n > 1; }) == 2;
}

void double_channels(Channels& c, int least_capability, std::size_t gpus, Doubling rule) {
  if (c.count == 0 || c.shape == Shape::nvls) return;
  switch (rule) {
    case Doubling::never:
      return;
    case Doubling::from_25:
      if (c.inside < 25'000) return;
      break;
    case Doubling::hopper_from_50:
      if (!(least_capability <= 80 && c.inside >= 25'000) &&
          !(least_capability <= 90 && c.inside >= 50'000))
        return;
      break;
    case Doubling::few_fast:
      if (c.inside < 25'000) return;
      if (least_capability > 80 && c.inside < 50'000 && c.count > 4) return;
      break;
  }
  const std::size_t count = std::min(c.count * 2, c.most);
  for (std::size_t i = c.count; i < count; ++i) {
    for (std::size_t g = 0; g < gpus; ++g) c.gpus.push_back(c.gpus[(i - c.count) * gpus + g]);
    c.nets.push_back(c.nets[i - c.count]);
  }
  const auto parts = static_cast<Speed>((count + c.count - 1) / c.count);
  c.inside /= parts;
  c.network /= parts;
  c.count = count;
}

class Relaxation {
 public:
  Relaxation(Machine& machine, const Paths& paths, const Rules& rules,
             const SearchSettings& settings)
      : machine_(machine),
        paths_(paths),
        rules_(rules),
        trial_(machine, paths, rules),
        limits_(limits_of(machine, paths, rules)),
        gpus_(machine.count(DeviceKind::gpu)),
        network_(machine.count(DeviceKind::net) > 0) {
    least_capability_ = 999;
    for (std::size_t g = 0; g < gpus_; ++g)
      least_capability_ =
          std::min(least_capability_, machine.at(DeviceKind::gpu, g).compute_capability);
    cross_nic_ = settings.cross_nic;
  }

  Channels run(const Request& request) {
    if (!prepare(request)) return best_;
    descend();
    if (rules_.doubles_before_raise)
      double_channels(best_, least_capability_, gpus_, rules_.doubling);
    raise();
    if (!rules_.doubles_before_raise)
      double_channels(best_, least_capability_, gpus_, rules_.doubling);
    if (best_.count == 0 && !best_.collnet && best_.shape != Shape::nvls) plain_order();
    return best_;
  }

 private:
  // False when the pattern cannot exist here.
  bool prepare(const Request& request) {
    best_.shape = request.shape;
    best_.collnet = request.collnet;
    best_.least = request.least;
    best_.most = request.most;
    const bool crosses = request.shape == Shape::ring || request.shape == Shape::balanced_tree ||
                         request.shape == Shape::split_tree || !rules_.total_limits_start;
    cross_nic_ = machine_.count(DeviceKind::net) > 1 && crosses ? cross_nic_ : 0;
    best_.cross_nic = cross_nic_ == 1 ? 1 : 0;
    nearest_inside_ = gpus_ == 1 ? NcclPath::loc : NcclPath::nvl;
    if (rules_.types_from_machine) {
      if (gpus_ > 1) {
        nearest_inside_ = paths_.least(DeviceKind::gpu);
        farthest_inside_ = paths_.most(DeviceKind::gpu);
      }
      if (network_) {
        nearest_net_ = paths_.least(DeviceKind::net);
        farthest_net_ = paths_.most(DeviceKind::net);
      }
      // Balanced trees of older GPUs come back through sockets.
      if (rules_.version >= NcclVersion{2, 29, 0} && least_capability_ < 90)
        farthest_net_ = NcclPath::sys;
    }
    best_.type_inside = nearest_inside_;
    best_.type_network = nearest_net_;
    same_first_ = request.shape != Shape::nvls;
    best_.same_order = same_first_;
    if (request.shape == Shape::nvls) {
      if (machine_.count(DeviceKind::nvs) == 0 || least_capability_ < 90) return false;
      best_.most = std::min({best_.most, gpus_, std::size_t{rules_.nvls_most_heads}});
      if (!network_) best_.least = best_.most;
    }
    if (request.shape == Shape::collnet_direct)
      best_.most = std::min(rules_.types_from_machine ? std::size_t{8} : best_.most, gpus_);
    if (gpus_ == 1 && best_.shape != Shape::ring) best_.shape = Shape::chain;
    if (rules_.split_below_80 && least_capability_ < 80 && best_.shape == Shape::balanced_tree)
      best_.shape = Shape::split_tree;
    if (rules_.two_nvlink_halves_two_rings && best_.shape == Shape::ring && best_.most >= 2 &&
        best_.least == 1 && two_nvlink_halves(machine_, paths_))
      best_.least = 2;
    speeds_ = trial_speeds(rules_.version, least_capability_, network_);
    return true;
  }

  void set_speed(std::size_t index) {
    speed_ = index;
    now_.inside = now_.network = speeds_[index];
  }
  std::size_t first_below(Speed limit) const {
    std::size_t i = 0;
    while (speeds_[i] > limit && i + 1 < speeds_.size()) ++i;
    return i;
  }
  std::size_t first_speed() const {
    double total = static_cast<double>(limits_.per_gpu);
    if (gpus_ > 1 && best_.shape != Shape::ring)
      total = total * static_cast<double>(gpus_) / static_cast<double>(gpus_ - 1);
    std::size_t i = first_below(limits_.per_channel);
    if (!rules_.total_limits_start) return i;
    const auto fits = [&](std::size_t k) {
      return speeds_[k] <= limits_.per_channel &&
             static_cast<double>(speeds_[k]) * static_cast<double>(now_.least) <= total + 0.5;
    };
    while (!fits(i) && i + 1 < speeds_.size()) ++i;
    return i;
  }

  // One trial; true when nothing better can come.
  bool attempt() {
    const Budgets& b = rules_.budgets;
    const std::int64_t budget = now_.same_order              ? b.same_order_trial
                                : now_.shape == Shape::chain ? b.tree_trial
                                                             : b.trial;
    steps_left_ -= budget;
    left_ = trial_.run(now_, best_, budget);
    if (left_ == -1 && rules_.total_ends) return true;
    const Speed total = static_cast<Speed>(best_.count) * best_.network;
    if (rules_.total_ends) return total >= limits_.per_gpu;
    return best_.count == best_.most && best_.network == limits_.per_channel;
  }

  void descend() {
    now_ = best_;
    steps_left_ = rules_.budgets.all;
    set_speed(first_speed());
    while (!attempt()) {
      if (!relax()) break;
    }
  }

  // The next weaker demand; false when there is none.
  bool relax() {
    const bool through_amd =
        machine_.cpu == CpuKind::amd && now_.type_inside == NcclPath::sys && rules_.not_same_only;
    if (now_.same_order && !through_amd) {
      now_.same_order = false;
      return true;
    }
    now_.same_order = same_first_;
    if (left_ != -1) {
      steps_left_ += left_;
    } else {
      steps_left_ = rules_.budgets.all;
    }
    if (steps_left_ < 0 && best_.count > 0) return false;

    if (rules_.chain_after_balanced && least_capability_ >= 90 &&
        now_.shape == Shape::balanced_tree) {
      now_.shape = Shape::chain;
      return true;
    }
    if (rules_.chain_after_balanced) now_.shape = best_.shape;
    if (rules_.chain_early && weaken_split()) return true;

    const NcclPath limit = network_ ? now_.type_network : farthest_inside_;
    if (now_.type_inside < limit && (best_.count == 0 || now_.type_inside < best_.type_inside)) {
      now_.type_inside = rules_.farther(now_.type_inside);
      if (now_.type_inside < NcclPath::none) return true;
    }
    now_.type_inside = nearest_inside_;
    if (network_ && now_.type_network < farthest_net_ &&
        (best_.count == 0 || now_.type_network < best_.type_network ||
         now_.type_network < (rules_.relay_to_nic ? NcclPath::pxn : NcclPath::pxb))) {
      now_.type_network = rules_.farther(now_.type_network);
      if (now_.type_network < NcclPath::none) return true;
    }
    now_.type_network = nearest_net_;

    const bool crossable =
        rules_.cross_retry == 1 || now_.shape == Shape::ring || now_.shape == Shape::balanced_tree;
    if (crossable && may_cross() && now_.cross_nic == 0) {
      now_.cross_nic = rules_.cross_retry;
      return true;
    }
    now_.cross_nic = cross_nic_ == 1 ? 1 : 0;
    if (rules_.chain_late && weaken_split()) return true;

    if (speed_ + 1 < speeds_.size() &&
        (best_.count == 0 ||
         static_cast<double>(speeds_[speed_ + 1]) / static_cast<double>(best_.network) > 0.49)) {
      set_speed(speed_ + 1);
      return true;
    }
    return false;
  }

  // True when a chain is to be tried in place of a split tree.
  bool weaken_split() {
    const bool weaker = now_.shape == Shape::split_tree;
    now_.shape = weaker ? Shape::chain : best_.shape;
    return weaker;
  }
  bool may_cross() const { return rules_.not_same_only ? cross_nic_ == 2 : cross_nic_ != 0; }

  // Second pass: the same number of channels, faster.
  void raise() {
    if (best_.count == 0) return;
    left_ = -1;
    now_ = best_;
    set_speed(first_below(best_.network));
    now_.least = best_.count;
    while (left_ != 0 && speed_ > 0) {
      if (now_.shape == Shape::ring) {
        if (!rules_.raise_rings) return;
        set_speed(speed_ - 1);
      } else if (now_.shape == Shape::nvls && rules_.raise_rings && now_.network == best_.network &&
                 now_.network < now_.inside * 2) {
        now_.least = now_.most = best_.count;
        now_.network = speeds_[--speed_];
      } else if (now_.inside == best_.inside && now_.inside < now_.network * 2) {
        now_.inside = speeds_[--speed_];
      } else {
        return;
      }
      attempt();
    }
  }

  void plain_order() {
    best_.plain = true;
    best_.count = 1;
    best_.gpus.resize(gpus_);
    for (std::size_t g = 0; g < gpus_; ++g) best_.gpus[g] = static_cast<std::uint16_t>(g);
    best_.nets.assign(1, {-1, -1});
    best_.inside = 100;
    best_.network = network_ ? 100 : best_.inside;
    best_.type_inside = NcclPath::sys;
    best_.type_network = NcclPath::sys;
    if (!network_) return;
    const auto first = static_cast<std::int16_t>(std::max(paths_.net_of(0, 0), 0));
    const auto last = static_cast<std::int16_t>(std::max(paths_.net_of(gpus_ - 1, 0), 0));
    best_.nets[0] = {first, rules_.version >= NcclVersion{2, 29, 0} ? last : first};
  }

  Machine& machine_;
  const Paths& paths_;
  const Rules& rules_;
  Trial trial_;
  const Limits limits_;
  const std::size_t gpus_;
  const bool network_;
  int least_capability_ = 0, cross_nic_ = 2;
  NcclPath nearest_inside_ = NcclPath::nvl, farthest_inside_ = NcclPath::sys;
  NcclPath nearest_net_ = NcclPath::pix, farthest_net_ = NcclPath::sys;
  bool same_first_ = true;
  std::span<const Speed> speeds_;
  std::size_t speed_ = 0;
  std::int64_t steps_left_ = 0, left_ = 0;
  Channels now_, best_;
};

}  // namespace

Channels find_channels(Machine& machine, const Paths& paths, const Rules& rules,
                       const SearchSettings& settings, const Request& request) {
  return Relaxation(machine, paths, rules, settings).run(request);
}

}  // namespace weft::nccl
