// SPDX-License-Identifier: Apache-2.0
// The way NCCL takes between every two devices of a node, its class (NVL, PIX, PXB, PHB, SYS ...) and the speed it believes.
//
// A way is the widest among the shortest, grown from its end: a longer way replaces a shorter one never. GPUs are passed only
// over NVLink, and only one of them (NVB, since 2.8). Then policy bends ways:
//   - GPU pairs farther apart than the peer level, or without peer access, go through the memory of the receiver's socket;
//   - a GPU reaches a NIC by NVLink and another GPU of that NIC's switch when that is wider or avoids the socket (PXN, 2.12);
//   - without GPUDirect RDMA, NIC traffic goes through the memory of the GPU's socket.
#pragma once

#include <optional>
#include <vector>

#include "models/nccl/machine.hpp"

namespace weft::nccl {

struct Path {
  NcclPath type = NcclPath::none;
  Speed speed = 0;
  std::vector<std::uint32_t> links;  // of the machine, from its start
  std::size_t hops() const { return links.size(); }
};

// What environment variables change.
struct Policy {
  std::optional<NcclPath> p2p_level,
      gdr_level;  // NCCL_P2P_LEVEL (NCCL_P2P_DISABLE is LOC), NCCL_NET_GDR_LEVEL
  bool pxn = true, nvb = true, pxn_c2c = false;
};

class Paths {
 public:
  Paths(const Machine& machine, const Rules& rules, const Policy& policy);

  const Path& between(std::uint32_t from, std::uint32_t to) const { return ways_[slot_[to]][from]; }
  const Path& between(DeviceKind a, std::size_t i, DeviceKind b, std::size_t j) const {
    return between(machine_.of(a)[i], machine_.of(b)[j]);
  }
  // Indices of the devices of `kind` that are nearest: widest, then by class.
  std::vector<std::size_t> nearest(DeviceKind from, std::size_t index, DeviceKind kind) const;
  // The NET a GPU takes for a channel, and the GPU a NET belongs to; -1 when there is none.
  std::int32_t net_of(std::size_t gpu, std::size_t channel) const;
  std::int32_t gpu_of(std::size_t net) const { return owner_[net]; }

  // Whether two GPUs were bent apart: they copy through the memory of a socket, though a straight way may exist.
  bool through_host(std::size_t from, std::size_t to) const {
    return through_host_[from * machine_.count(DeviceKind::gpu) + to];
  }

  // Whether a NIC reads and writes a GPU's memory itself.
  bool gpudirect(std::size_t gpu, std::size_t net) const;

  // The nearest and farthest pair there is.
  NcclPath least(DeviceKind to) const;
  NcclPath most(DeviceKind to) const;

 private:
  void grow(std::uint32_t end);
  void detour(std::uint32_t via, std::uint32_t from, std::uint32_t to);
  void bend_peers();
  void mark_c2c();
  void bend_nets();
  void relay(std::size_t gpu, std::size_t net, std::int32_t owner);
  std::int32_t find_owner(std::size_t net) const;
  std::uint32_t socket_of(std::size_t gpu) const;
  Path& way(std::uint32_t from, std::uint32_t to) { return ways_[slot_[to]][from]; }

  const Machine& machine_;
  const Rules& rules_;
  const Policy& policy_;
  std::vector<std::uint32_t> slot_;  // of each device that is an end
  // What net_of asks again and again, once the ways are final.
  struct Choice {
    std::vector<std::size_t> nets;
    std::size_t sharers = 1;  // GPUs of the first of them
    std::size_t turn = 0;     // among the GPUs with the same NICs
  };
  Choice choice_of(std::size_t gpu) const;
  std::int32_t pick(std::size_t gpu, const Choice& choice, std::size_t channel) const;
  std::vector<bool> through_host_;  // by pair of GPUs
  std::vector<Choice> choices_;
  std::vector<std::int32_t> owner_;      // of each NET
  std::vector<std::vector<Path>> ways_;  // [slot of the end][device at the start]
};

}  // namespace weft::nccl
