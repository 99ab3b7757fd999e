// SPDX-License-Identifier: Apache-2.0
// Joins the channels of all nodes: rings in the order of nodes, trees as double binary trees over nodes.
//
// NCCL runs every searched channel twice (channels c and c + n), so that the two trees of a double binary tree have one each;
// then more copies, where the release or NCCL_MIN_NCHANNELS asks for them. Which NIC a rank uses follows from its place: the
// first GPU of a channel uses the NIC by which the channel came in, all others the one by which it leaves.
// Two nodes that look alike meet rail to rail. Where a ring leaves a node by another NIC than it came by, channels come in
// mirrored pairs and odd nodes exchange them, so that the NICs of one rail meet; over an odd number of nodes the last and the
// first node are both even and meet across rails.
#pragma once

#include <span>
#include <vector>

#include "models/nccl/graph.hpp"
#include "models/nccl/search.hpp"

namespace weft::nccl {

// One node's part in a communicator. Channels hold indices; `rank_of` and `nic_of` turn them into ranks and NICs.
struct NodeChannels {
  Channels ring, tree, nvls, chain, direct;
  std::vector<std::uint32_t> rank_of;  // local rank of each GPU index
  std::vector<std::int32_t> nic_of;    // NIC position of each NET
};

struct NodePlace {
  const NodeChannels* channels = nullptr;
  std::uint32_t first_rank = 0;
};

struct JoinPlan {
  std::size_t searched = 0;  // channels per node
  std::vector<std::uint32_t>
      source;  // of each compute channel: below `searched` the first of its pair
  bool swap_odd_nodes = false;
  int swap_from = 0;  // the cross_nic of its own ring with which an odd node takes part
};

// Where node n stands in the two trees over `nodes` nodes.
struct TreePlace {
  std::int64_t parent = -1;   // node; -1 at the root
  bool second_child = false;  // of its parent
};
TreePlace place_in_tree(std::size_t nodes, std::size_t node, bool second_tree);

NcclConnections join_nodes(std::span<const NodePlace> nodes, std::size_t ranks,
                           const JoinPlan& plan);

// NIC position that a GPU of a node uses for a channel; -1 without NICs.
std::int32_t nic_for(const NodeChannels& node, const Channels& channels, std::size_t channel,
                     std::size_t gpu);

}  // namespace weft::nccl
