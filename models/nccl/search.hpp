// SPDX-License-Identifier: Apache-2.0
// NCCL's search for channels inside one node.
//
// A trial fixes a pattern, a speed per channel, the classes of ways allowed inside and towards NICs, and whether a ring may
// leave by another NIC than it came in by. Depth first, it lays channels through the GPUs, taking each channel's speed off
// every link it crosses, and keeps the set of channels that moves most (then the one with fewest hops). Between trials the
// demands are relaxed in a fixed order: same order of GPUs in all channels, then any order; simpler trees; farther classes;
// crossing NICs; lower speed. A second pass raises the speed again where the channels found allow it.
// The number of recursion steps is bounded as NCCL bounds it, so the result depends on nothing but the machine.
#pragma once

#include <array>
#include <vector>

#include "models/nccl/paths.hpp"

namespace weft::nccl {

enum class Shape : std::uint8_t { ring, balanced_tree, split_tree, chain, nvls, collnet_direct };

// A set of channels; while searching also what the trial demands.
struct Channels {
  Shape shape = Shape::ring;
  bool collnet = false;
  std::size_t least = 1, most = 1;
  std::size_t count = 0;
  Speed inside = 0, network = 0;  // of one channel
  NcclPath type_inside = NcclPath::none, type_network = NcclPath::none;
  int cross_nic = 0;  // 0 same NIC, 1 any, 2 mirrored pairs
  bool same_order = false;
  bool plain = false;  // nothing fitted: one channel in plain order
  std::int64_t hops = 0;
  std::vector<std::uint16_t> gpus;                // count x GPUs, in order; indices
  std::vector<std::array<std::int16_t, 2>> nets;  // count, in and out; indices
};

struct Request {
  Shape shape = Shape::ring;
  std::size_t least = 1, most = 1;
  bool collnet = false;
};

struct SearchSettings {
  int cross_nic = 2;  // NCCL_CROSS_NIC
};

// Never empty except for NVLS and CollNet: where nothing fits, one channel of 0.1 GB/s in plain order.
Channels find_channels(Machine& machine, const Paths& paths, const Rules& rules,
                       const SearchSettings& settings, const Request& request);

// ---- one trial

class Trial {
 public:
  Trial(Machine& machine, const Paths& paths, const Rules& rules);
  // Lays channels as `demands` asks and replaces `best` by what is better. Returns what is left of `budget`: 0 out of steps,
  // -1 as many channels as allowed.
  std::int64_t run(const Channels& demands, Channels& best, std::int64_t budget);

 private:
  enum class Order : std::uint8_t { any, as_numbered, as_last };
  static constexpr std::size_t kNever = ~std::size_t{0};

  void next_channel();
  void from_networks();
  void from_network(std::size_t net);
  void start_at(std::int32_t net, std::size_t gpu, Order order);
  void visit(std::size_t gpu, std::size_t step, std::size_t leave_at, Order order);
  void leave(std::size_t gpu, std::size_t step, Order order);
  bool may_leave_by(std::size_t net, std::size_t step) const;
  void go_on(std::size_t gpu, std::size_t step, std::size_t leave_at, Order order);
  void finish();
  void lay_nvls(std::size_t head);
  void lay_direct(std::size_t head);
  bool better(const Channels& than) const;
  void keep();

  bool take(DeviceKind a, std::size_t i, DeviceKind b, std::size_t j, double share = 1);
  void give_back(DeviceKind a, std::size_t i, DeviceKind b, std::size_t j, double share = 1);
  bool charge(const Path& path, std::uint32_t start, Speed speed);
  void move(const Path& path, std::uint32_t start, std::size_t steps, Speed speed);
  bool is_cut(const Path& path, std::uint32_t start) const;
  Speed part(bool inside, double share) const;
  Speed need_back(std::uint32_t start, const MachineLink& link, Speed forward) const;

  void rank_neighbours();
  void offer_next(std::size_t gpu, int towards_net);
  void sort_by_net(std::size_t bottom);
  struct Wishes {
    std::array<std::uint16_t, 2> gpus;
    std::size_t count;
  };
  Wishes nvs_wishes(std::size_t gpu) const;
  void offer_nvs_neighbours(std::size_t gpu);
  void prefer_neighbours(std::size_t gpu, std::size_t bottom);
  const std::vector<std::size_t>& nets_for(std::int32_t gpu);
  std::vector<std::size_t> list_nets(std::int32_t gpu) const;
  std::uint16_t last_order(std::size_t step) const {
    return now_.gpus[(now_.count - 1) * gpus_ + step];
  }
  Speed pcie_of(std::size_t gpu) const;

  Machine& machine_;
  const Paths& paths_;
  const Rules& rules_;
  const std::size_t gpus_, nets_;
  const bool nvs_;
  Channels now_;
  Channels* best_ = nullptr;
  std::int64_t* steps_ = nullptr;
  struct Neighbour {
    std::uint16_t gpu;
    Speed speed;  // whole GB/s
    std::size_t hops;
  };
  std::vector<std::vector<Neighbour>> neighbours_;
  std::vector<std::uint16_t> offers_;  // a stack: what each step still has to try
  bool pays_back_ = false;
  std::vector<std::uint64_t> used_;  // by GPU: bit c when channel c has passed it
  std::vector<std::vector<std::size_t>> net_lists_;
};

}  // namespace weft::nccl
