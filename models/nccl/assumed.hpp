// SPDX-License-Identifier: Apache-2.0
// What NCCL takes for granted, by release: how fast it believes links are, which channel speeds it tries, and where the
// rules of its search changed. These are beliefs for choosing channels, not the speed of anything.
//
// Speeds are whole MB/s (thousandths of a GB/s): NCCL itself rounds to 0.001 GB/s whenever it subtracts, so integers compare
// as its numbers do.
// Source: tags v2.5.6-2 to v2.30.7-1 of github.com/NVIDIA/nccl, src/graph/topo.h and search.cc for the numbers, search.cc,
// paths.cc, connect.cc, init.cc and transport/nvls.cc for the rules. Each row names the first tag that has it.
#pragma once

#include <cstdint>
#include <span>

#include "models/nccl/graph.hpp"

namespace weft::nccl {

using Speed = std::int64_t;  // MB/s

inline constexpr Speed kLocalSpeed = 5'000'000;  // within a device
inline constexpr Speed kPcieSpeed = 12'000;      // gen 3 x16; others in proportion

enum class CpuKind : std::uint8_t {
  broadwell,  // Intel with QPI
  skylake,    // Intel with UPI up to 11.2 GT/s
  sapphire_rapids,
  emerald_rapids,
  amd,
  power,
  arm
};
constexpr bool is_intel(CpuKind kind) { return kind <= CpuKind::emerald_rapids; }

Speed nvlink_speed(NcclVersion version, int compute_capability);  // of one link
Speed socket_speed(NcclVersion version, CpuKind kind);            // between two sockets
// The channel speeds the search tries, fastest first.
std::span<const Speed> trial_speeds(NcclVersion version, int compute_capability, bool network);

// Recursion steps the search may take.
struct Budgets {
  std::int64_t all, trial, tree_trial, same_order_trial;
};

// When a graph's channels are doubled at half the speed so that more thread blocks share the work.
enum class Doubling : std::uint8_t {
  never,
  from_25,         // channels of 25 GB/s and more
  hopper_from_50,  // before Hopper from 25 GB/s, on Hopper from 50
  few_fast         // from 25; after Ampere not when under 50 with more than 4 channels
};

// How a GPU picks among NICs at the same distance.
enum class NicChoice : std::uint8_t {
  by_device,     // device number modulo the NICs
  in_turn,       // the GPUs that share the NICs take turns
  mirrored_bits  // device number with its bits reversed, so that neighbours land far apart
};

// In which order the search offers NICs.
enum class NicOrder : std::uint8_t { as_listed, fastest, nearest, preferred, preferred_gpu_first };

// Which compute channels NVLink SHARP uses.
struct NvlsCounts {
  std::uint32_t hopper, blackwell, blackwell_one_node;
};

// Everything in which releases differ besides numbers.
struct Rules {
  NcclVersion version;
  std::uint32_t most_channels;  // per communicator
  Budgets budgets;
  bool relay_through_gpu;     // NVB: over the NVLinks of one GPU between
  bool relay_to_nic;          // PXN
  bool any_relay_gpu;         // PXN by any NVLink peer near the NIC, else only by the NIC's own GPU
  bool c2c_to_nic;            // P2C
  bool one_link_per_channel;  // a channel is at most as fast as one NVLink
  bool total_ends;            // stop once channels add up to what a GPU's links carry
  bool total_limits_start;    // first speed such that the fewest channels fit into it
  Doubling doubling;
  bool doubles_before_raise;  // channels are doubled before the second pass
  bool raise_rings;           // second pass tries faster rings, too
  bool split_below_80, tree_by_nodes, split_always;
  bool chain_after_balanced;  // Hopper: a chain when the balanced tree does not fit
  bool chain_early,
      chain_late;  // the chain in place of a split tree: before farther classes, or after crossing NICs
  bool tree_as_many_as_ring;  // tree channels: exactly as many as ring channels
  bool both_ways_checked;     // trees look at the path in both directions
  bool nvs_neighbours_first, nvs_neighbours_only;
  bool not_same_only;       // AMD sockets: no search for different orders through them
  bool types_from_machine;  // starts at the nearest and ends at the farthest pair there is
  bool rotates_nets;        // channel c starts at the c-th NIC
  bool replay_is_alone;     // same order: nothing but the last channel's order is tried
  bool local_gpus_only;     // starts only at the GPUs local to the NIC
  bool local_gpu_first;     // and the NIC's own GPU before them
  bool skips_pci_order_on_nvs;
  bool two_nvlink_halves_two_rings;
  NicChoice nic_choice;
  NicOrder nic_order;
  int cross_retry;  // value of crossNic in the second try: 1 any NIC, 2 pairs of mirrored channels
  bool crossing_costs;     // channels that leave by another NIC must be 15 % better
  bool cross_pairs;        // odd channels mirror the NICs of the even ones
  bool cross_any_pattern;  // ... in trees, too
  bool swap_odd_nodes;     // odd nodes exchange the rings of a pair
  bool swap_needs_even_nodes;
  int swap_cross_nic;  // ... when the ring's cross_nic is at least this
  bool swap_by_node;   // each node looks at its own ring, not at the widest of all
  bool nvls_graph;     // NVLS channels are searched
  std::uint32_t nvls_most_heads;
  std::uint32_t nvls_least_gpus;
  NvlsCounts nvls;
  bool nvls_extends_channels;  // all channels of the communicator grow to the NVLS ones
  bool hopper_doubles, hopper_doubles_blackwell;
  std::uint32_t hopper_doubles_below;
  bool multi_node_nvlink;  // MNNVL: hosts that share NVSwitches are one node
  bool collnet_direct;
  int pcie_known_generation;
  int net_channels_per_peer;      // -1: by scale
  bool peer_channels_by_network;  // per peer as many as the NICs need, fewer for many peers
  bool nvls_by_nic;               // Blackwell over several nodes: by speed of the NICs
  NcclPath p2p_level(CpuKind cpu, std::size_t gpus) const;
  NcclPath farther(NcclPath type) const;  // the next class that the release knows
};
Rules rules_of(NcclVersion version);

}  // namespace weft::nccl
