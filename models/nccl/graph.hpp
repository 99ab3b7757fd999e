// SPDX-License-Identifier: Apache-2.0
// The channels NCCL derives from a machine: rings, trees, NVLS and CollNet channels, first inside every node, then joined
// across nodes. A node here is what NCCL calls one: the GPUs that see each other without a network (a server, or a whole NVL72
// domain).
//
// NCCL searches on numbers it assumes (GB/s per NVLink by compute capability, 12 GB/s for PCIe gen3 x16 ...), not on what the
// hardware does; bw_intra and bw_inter are those beliefs. They select; simulated time comes from the fabric.
// Source: NCCL src/graph (paths, search, connect, trees, rings), releases 2.5 to 2.30.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "sim/core/config.hpp"
#include "sim/core/ids.hpp"
#include "sim/fabric/fabric.hpp"

namespace weft {

// A release of NCCL, compared by number: {2, 27, 7}.
struct NcclVersion {
  int major = 2, minor = 27, patch = 7;
  auto operator<=>(const NcclVersion&) const = default;
};

// How far apart two devices are, nearest first; NCCL's own order and names.
enum class NcclPath : std::uint8_t { loc, nvl, nvb, c2c, pix, pxb, p2c, pxn, phb, sys, net, none };
constexpr auto enum_names(NcclPath) {
  using enum NcclPath;
  return std::array<EnumName<NcclPath>, 12>{{{loc, "LOC"},
                                             {nvl, "NVL"},
                                             {nvb, "NVB"},
                                             {c2c, "C2C"},
                                             {pix, "PIX"},
                                             {pxb, "PXB"},
                                             {p2c, "P2C"},
                                             {pxn, "PXN"},
                                             {phb, "PHB"},
                                             {sys, "SYS"},
                                             {net, "NET"},
                                             {none, "DIS"}}};
}

enum class NcclPattern : std::uint8_t {
  ring,
  tree,
  collnet_chain,
  nvls,
  collnet_direct,
};
constexpr auto enum_names(NcclPattern) {
  using enum NcclPattern;
  return std::array<EnumName<NcclPattern>, 5>{{{ring, "ring"},
                                               {tree, "tree"},
                                               {collnet_chain, "collnet_chain"},
                                               {nvls, "nvls"},
                                               {collnet_direct, "collnet_direct"}}};
}

// How a tree's channel hangs in a node. The first GPU of a channel talks to the parent node; with two other nodes as children,
// a split tree takes both at the second GPU, a balanced one takes one at the second and one at the first, a chain both at the
// first.
enum class NcclTreeShape : std::uint8_t { balanced, split, chain };
constexpr auto enum_names(NcclTreeShape) {
  using enum NcclTreeShape;
  return std::array<EnumName<NcclTreeShape>, 3>{
      {{balanced, "balanced"}, {split, "split"}, {chain, "chain"}}};
}

// One channel inside one node: the GPUs in the order data visits them, entering by one NIC and leaving by another.
struct NcclChannel {
  std::vector<std::uint32_t> gpus;  // local ranks; NVLS: the head of the channel first
  std::int32_t nic_in = -1;  // positions among the server's compute NICs; -1 on a single node
  std::int32_t nic_out = -1;
};

// What the search yields for one pattern on one node.
struct NcclGraph {
  NcclPattern pattern = NcclPattern::ring;
  NcclTreeShape tree_shape = NcclTreeShape::chain;  // trees only; of the weakest node
  std::vector<NcclChannel> channels;
  double bw_intra = 0, bw_inter = 0;  // GB/s of one channel, as NCCL believes
  double latency_inter = 0;           // us, of the NICs used
  NcclPath type_intra = NcclPath::none, type_inter = NcclPath::none;
  bool cross_nic = false;      // a ring enters and leaves a node by different NICs
  bool same_channels = false;  // all channels visit the GPUs in the same order
};

// What NCCL's environment variables change in the search; read from the scenario or --env, never from the process.
struct NcclEnvironment {
  std::map<std::string, std::string>
      variables;  // "NCCL_CROSS_NIC" -> "0"; names and values were checked
  const std::string* find(const std::string& name) const {
    const auto it = variables.find(name);
    return it == variables.end() ? nullptr : &it->second;
  }
};

// The channels of a communicator over several nodes: rings close over all ranks, trees are double binary trees over nodes
// with chains inside.
struct NcclConnections {
  // rings[c]: all ranks in ring order; nics[c][r]: by rank, positions of the NICs by which the ring enters and leaves the
  // rank's node, -1 where the neighbour is local.
  struct Ring {
    std::vector<std::uint32_t> ranks;
    std::vector<std::array<std::int32_t, 2>> nics;
  };
  // up[r]: parent of rank r, kNoRank at the root; nics[r]: the NIC towards the parent, -1 when local; child_nics[r]: the NIC
  // towards children in other nodes, -1 when there are none.
  struct Tree {
    std::vector<std::uint32_t> up;
    std::vector<std::int32_t> nics, child_nics;
  };
  static constexpr std::uint32_t kNoRank = 0xFFFF'FFFF;
  std::vector<Ring> rings;
  // One per ring: those of a pair of channels c and c + search channels are a double binary tree.
  std::vector<Tree> trees;
  std::vector<std::uint32_t>
      nvls_heads;  // local ranks that own a part of the data, one per NIC or per GPU
};

// What NCCL finds for a communicator.
struct NcclTopology {
  NcclVersion version;
  std::size_t ranks = 0, nodes = 0;
  std::vector<std::uint32_t> node_of_rank;  // in the order of ranks
  std::size_t least_local_ranks = 0, most_local_ranks = 0;
  double least_nic_bw =
      0;  // GB/s of the slowest NIC port in use, as NCCL believes; 0 within one node
  int min_compute_capability = 0, max_compute_capability = 0;  // 90 for 9.0
  bool amd_cpu = false, nvswitch = false, nvls = false, collnet = false;
  std::map<NcclPattern, NcclGraph>
      graphs;  // of the weakest node, as NCCL takes the minimum over nodes
  NcclConnections connections;
  std::uint32_t p2p_channels = 0, p2p_channels_per_peer = 0, nvls_channels = 0;
  std::vector<std::string>
      notes;  // what a person should know: an unclosed NVLink ring, an odd node count ...
};

// How many of a set of channels go in and out of every NIC of every node.
struct NcclNicUse {
  std::uint32_t node = 0;
  std::int32_t nic = 0;
  std::uint32_t in = 0, out = 0;
};
std::vector<NcclNicUse> nccl_ring_nic_use(const NcclTopology& topology);

// Searches and connects. `gpus` in rank order; ranks of one server must be neighbours (as nccl-tests and MPI place them).
// Throws InputError when ranks cannot reach each other, GPUs are not NCCL's, or a variable has no meaning.
NcclTopology nccl_topology(const Fabric& fabric, std::span<const NodeId> gpus, NcclVersion version,
                           const NcclEnvironment& environment);

}  // namespace weft
