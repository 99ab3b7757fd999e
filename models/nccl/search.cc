// SPDX-License-Identifier: Apache-2.0
#include "models/nccl/search.hpp"

#include <algorithm>
#include <cmath>

namespace weft::nccl {

Trial::Trial(Machine& machine, const Paths& paths, const Rules& rules)
    : machine_(machine),
      paths_(paths),
      rules_(rules),
      gpus_(machine.count(DeviceKind::gpu)),
      nets_(machine.count(DeviceKind::net)),
      nvs_(machine.count(DeviceKind::nvs) > 0),
      used_(gpus_) {
  pays_back_ = machine.cpu == CpuKind::power;
  for (std::size_t g = 0; g < gpus_; ++g)
    pays_back_ = pays_back_ || machine.at(DeviceKind::gpu, g).compute_capability < 80;
  rank_neighbours();
}

std::int64_t Trial::run(const Channels& demands, Channels& best, std::int64_t budget) {
  now_ = demands;
  now_.count = 0;
  now_.hops = 0;
  now_.gpus.assign(now_.most * gpus_, 0);
  now_.nets.assign(now_.most, {-1, -1});
  best_ = &best;
  steps_ = &budget;
  net_lists_.assign(gpus_ + 1, {});
  next_channel();
  return budget;
}

void Trial::next_channel() {
  if (nets_ > 0) return from_networks();
  if (now_.shape == Shape::nvls) return start_at(-1, now_.count, Order::any);
  if (now_.count == 0) {
    start_at(-1, 0, Order::as_numbered);
  } else {
    start_at(-1, last_order(0), Order::as_last);
  }
  if (now_.same_order && now_.count > 0) return;
  for (std::size_t g = 0; g < gpus_; ++g) start_at(-1, g, Order::any);
}

void Trial::from_networks() {
  const Speed whole = now_.network / 1000 * 1000;  // NICs are counted in whole GB/s
  const std::vector<std::size_t>& list = nets_for(-1);
  const bool heads_only = now_.shape == Shape::nvls || now_.shape == Shape::collnet_direct;
  for (std::size_t i = 0; i < list.size(); ++i) {
    const std::size_t n = list[rules_.rotates_nets ? (now_.count + i) % list.size() : i];
    Device& net = machine_.devices[machine_.of(DeviceKind::net)[n]];
    if (now_.collnet && !net.collnet) continue;
    if (net.speed < whole) continue;
    const bool mirrored =
        rules_.cross_pairs && now_.count % 2 == 1 &&
        (rules_.cross_any_pattern ? now_.cross_nic != 0
                                  : now_.cross_nic == 2 && now_.shape == Shape::ring);
    if (mirrored && now_.nets[now_.count - 1][1] != static_cast<std::int16_t>(n)) continue;
    now_.nets[now_.count] = {static_cast<std::int16_t>(n), static_cast<std::int16_t>(n)};
    net.speed -= whole;
    if (!heads_only) {
      from_network(n);
      net.speed += whole;
      continue;
    }
    bool found = false;
    const std::int32_t head = paths_.gpu_of(n);
    if (now_.count < list.size() && head >= 0) {
      bool taken = false;
      for (std::size_t c = 0; c < now_.count; ++c) taken = taken || now_.gpus[c * gpus_] == head;
      if (!taken) {
        start_at(static_cast<std::int32_t>(n), static_cast<std::size_t>(head), Order::any);
        found = true;
      }
    }
    net.speed += whole;
    if (found) return;
  }
}

void Trial::from_network(std::size_t net) {
  const auto n = static_cast<std::int32_t>(net);
  if (now_.count > 0 && (now_.same_order || !rules_.replay_is_alone))
    start_at(n, last_order(0), Order::as_last);
  if (now_.count > 0 && now_.same_order) return;
  if (now_.count == 0 && !(rules_.skips_pci_order_on_nvs && nvs_)) {
    // A first reference; short and not on the account.
    std::int64_t trifle = 1 << 10;
    std::int64_t* account = steps_;
    steps_ = &trifle;
    start_at(n, 0, Order::as_numbered);
    steps_ = account;
    if (trifle == -1) *steps_ = -1;
  }
  const std::int32_t own = paths_.gpu_of(net);
  if (rules_.local_gpu_first && own >= 0) start_at(n, static_cast<std::size_t>(own), Order::any);
  if (rules_.local_gpus_only) {
    for (const std::size_t g : paths_.nearest(DeviceKind::net, net, DeviceKind::gpu)) {
      if (!rules_.local_gpu_first || static_cast<std::int32_t>(g) != own)
        start_at(n, g, Order::any);
    }
    return;
  }
  Speed widest = 0;
  std::size_t fewest = 0;
  for (std::size_t g = 0; g < gpus_; ++g) {
    const Path& path = paths_.between(DeviceKind::net, net, DeviceKind::gpu, g);
    if (path.speed > widest || (path.speed == widest && path.hops() < fewest)) {
      widest = path.speed;
      fewest = path.hops();
    }
  }
  if (widest < now_.network / 1000 * 1000) return;
  for (std::size_t i = 0; i < gpus_; ++i) {
    const std::size_t g = rules_.rotates_nets ? (now_.count + i) % gpus_ : i;
    const Path& path = paths_.between(DeviceKind::net, net, DeviceKind::gpu, g);
    if (path.speed == widest && path.hops() == fewest) start_at(n, g, Order::any);
  }
}

void Trial::start_at(std::int32_t net, std::size_t gpu, Order order) {
  const bool from_net = net >= 0;
  const auto n = static_cast<std::size_t>(net);
  if (from_net && !take(DeviceKind::net, n, DeviceKind::gpu, gpu)) return;
  std::size_t leave_at = kNever;
  if (nets_ > 0) {
    leave_at = now_.shape == Shape::ring ? gpus_ - 1 : now_.shape == Shape::split_tree ? 1 : 0;
  }
  const std::uint64_t bit = std::uint64_t{1} << now_.count;
  used_[gpu] ^= bit;
  visit(gpu, 0, leave_at, order);
  used_[gpu] ^= bit;
  if (from_net) give_back(DeviceKind::net, n, DeviceKind::gpu, gpu);
}

void Trial::visit(std::size_t gpu, std::size_t step, std::size_t leave_at, Order order) {
  if (*steps_ <= 0) return;
  --*steps_;
  now_.gpus[now_.count * gpus_ + step] = static_cast<std::uint16_t>(gpu);
  if (step == leave_at) return leave(gpu, step, order);
  if (now_.shape == Shape::nvls) return lay_nvls(gpu);
  if (now_.shape == Shape::collnet_direct) return lay_direct(gpu);
  go_on(gpu, step, leave_at, order);
}

bool Trial::may_leave_by(std::size_t net, std::size_t step) const {
  const auto [in, out] = now_.nets[now_.count];
  const auto same = static_cast<std::int16_t>(net);
  const bool one_port = same == in;
  if (now_.shape == Shape::chain && !one_port) return false;
  const bool mirrors = rules_.cross_pairs && now_.count % 2 == 1;
  if (rules_.cross_retry == 2 && now_.shape == Shape::ring && now_.cross_nic == 2) {
    if (mirrors && same != now_.nets[now_.count - 1][0]) return false;
  } else if (rules_.cross_retry == 2) {
    if (now_.cross_nic == 0 && !one_port) return false;
  } else {
    if (now_.cross_nic != 1 && !one_port) return false;
    if (now_.cross_nic != 0 && mirrors && same != now_.nets[now_.count - 1][0]) return false;
  }
  // The second GPU of a balanced tree shares the first one's NIC.
  return now_.shape != Shape::balanced_tree || step == 0 || same == out;
}

void Trial::leave(std::size_t gpu, std::size_t step, Order order) {
  const bool balanced = now_.shape == Shape::balanced_tree;
  const std::size_t again = balanced && step == 0 ? 1 : kNever;
  const double share = balanced ? 0.5 : 1;
  const std::vector<std::size_t>& list = nets_for(static_cast<std::int32_t>(gpu));
  for (const std::size_t n : list) {
    if (!may_leave_by(n, step)) continue;
    if (!take(DeviceKind::gpu, gpu, DeviceKind::net, n, share)) continue;
    now_.nets[now_.count][1] = static_cast<std::int16_t>(n);
    visit(gpu, step, again, order);
    give_back(DeviceKind::gpu, gpu, DeviceKind::net, n, share);
  }
}

void Trial::go_on(std::size_t gpu, std::size_t step, std::size_t leave_at, Order order) {
  if (step + 1 < gpus_) {
    const std::size_t bottom = offers_.size();
    switch (order) {
      case Order::as_numbered:
        offers_.push_back(static_cast<std::uint16_t>(step + 1));
        break;
      case Order::as_last:
        offers_.push_back(last_order(step + 1));
        break;
      case Order::any:
        offer_next(gpu, leave_at == kNever ? 0 : leave_at == step + 1 ? 1 : -1);
        break;
    }
    const std::size_t top = offers_.size();
    const std::uint64_t bit = std::uint64_t{1} << now_.count;
    for (std::size_t i = bottom; i<top&& * steps_> 0; ++i) {
      const std::size_t g = offers_[i];
      if (!take(DeviceKind::gpu, gpu, DeviceKind::gpu, g)) continue;
      used_[g] ^= bit;
      visit(g, step + 1, leave_at, order);
      used_[g] ^= bit;
      give_back(DeviceKind::gpu, gpu, DeviceKind::gpu, g);
    }
    offers_.resize(bottom);
    return;
  }
  if (nets_ == 0 && now_.shape == Shape::ring && gpus_ > 1) {
    const std::size_t first = now_.gpus[now_.count * gpus_];
    if (!take(DeviceKind::gpu, gpu, DeviceKind::gpu, first)) return;
    finish();
    give_back(DeviceKind::gpu, gpu, DeviceKind::gpu, first);
    return;
  }
  finish();
}

void Trial::finish() {
  if (*steps_ <= 0) return;
  --*steps_;
  ++now_.count;
  if (better(*best_)) {
    keep();
    if (now_.count == now_.most) *steps_ = -1;
  }
  if (now_.count < now_.most) next_channel();
  --now_.count;
}

bool Trial::better(const Channels& than) const {
  if (now_.count < now_.least) return false;
  const auto volume = [](const Channels& c, Speed speed) {
    return static_cast<Speed>(c.count) * speed;
  };
  if (now_.shape == Shape::nvls) {
    // Each channel is one more GPU that pulls.
    return (now_.count > than.count && now_.count <= gpus_) ||
           (rules_.rotates_nets && volume(now_, now_.network) > volume(than, than.network));
  }
  const Speed here = volume(now_, now_.inside), there = volume(than, than.inside);
  if (rules_.crossing_costs) {
    // Staying on one's NIC is worth 15 %.
    const double target = 1 - (than.cross_nic - now_.cross_nic) * 0.15;
    const double bar = static_cast<double>(there) * target;
    if (static_cast<double>(here) != bar) return static_cast<double>(here) > bar;
  } else if (here != there) {
    return here > there;
  }
  return now_.shape == than.shape && now_.cross_nic == than.cross_nic && now_.hops < than.hops;
}

void Trial::keep() {
  const std::size_t least = best_->least, most = best_->most;
  Channels copy = now_;
  copy.gpus.resize(now_.count * gpus_);
  copy.nets.resize(now_.count);
  copy.least = least;
  copy.most = most;
  *best_ = std::move(copy);
}

// A head: the NVSwitches read every GPU once, the head twice, and write likewise.
void Trial::lay_nvls(std::size_t head) {
  const auto share = [&](std::size_t g) { return g == head ? 2.0 : 1.0; };
  std::size_t down = 0, up = 0;
  while (down < gpus_ && take(DeviceKind::nvs, 0, DeviceKind::gpu, down, share(down))) ++down;
  if (down == gpus_) {
    while (up < gpus_ && take(DeviceKind::gpu, up, DeviceKind::nvs, 0, share(up))) ++up;
    if (up == gpus_) finish();
  }
  while (up > 0) {
    --up;
    give_back(DeviceKind::gpu, up, DeviceKind::nvs, 0, share(up));
  }
  while (down > 0) {
    --down;
    give_back(DeviceKind::nvs, 0, DeviceKind::gpu, down, share(down));
  }
}

// A head that exchanges an equal share with every other GPU.
void Trial::lay_direct(std::size_t head) {
  if (gpus_ == 1) return finish();
  const double share = 1.0 / static_cast<double>(gpus_ - 1);
  std::size_t out = 0, in = 0;
  while (out < gpus_ && take(DeviceKind::gpu, head, DeviceKind::gpu, out, share)) ++out;
  if (out == gpus_) {
    while (in < gpus_ && take(DeviceKind::gpu, in, DeviceKind::gpu, head, share)) ++in;
    if (in == gpus_) {
      std::size_t step = 1;
      for (std::size_t g = 0; g < gpus_; ++g) {
        if (g != head) now_.gpus[now_.count * gpus_ + step++] = static_cast<std::uint16_t>(g);
      }
      finish();
    }
  }
  while (in > 0) {
    --in;
    give_back(DeviceKind::gpu, in, DeviceKind::gpu, head, share);
  }
  while (out > 0) {
    --out;
    give_back(DeviceKind::gpu, head, DeviceKind::gpu, out, share);
  }
}

}  // namespace weft::nccl
