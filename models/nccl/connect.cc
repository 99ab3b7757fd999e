// SPDX-License-Identifier: Apache-2.0
#include "models/nccl/connect.hpp"

#include <bit>

namespace weft::nccl {
namespace {

constexpr std::uint32_t kNoRank = NcclConnections::kNoRank;

// In-order binary tree rooted at 0: even places hold inner nodes, odd ones leaves; a place's lowest set bit is its height.
TreePlace place_in_binary_tree(std::size_t nodes, std::size_t node) {
  if (node == 0) return {};
  const std::size_t height = std::size_t{1} << std::countr_zero(node);
  std::size_t parent = (node ^ height) | (height << 1);
  if (parent >= nodes) parent = node ^ height;
  return {static_cast<std::int64_t>(parent), node > parent};
}

// Which GPU of a channel meets the children in other nodes.
std::size_t child_gpu(const Channels& channels, std::size_t channel, std::size_t gpus,
                      bool second_child) {
  std::size_t step = 0;
  if (channels.shape == Shape::balanced_tree) step = second_child ? 0 : 1;
  if (channels.shape == Shape::split_tree) step = 1;
  return channels.gpus[channel * gpus + (gpus > 1 ? step : 0)];
}

NcclConnections::Ring join_ring(std::span<const NodePlace> nodes, std::size_t ranks,
                                std::size_t channel, const JoinPlan& plan) {
  NcclConnections::Ring ring;
  ring.nics.assign(ranks, {-1, -1});
  ring.ranks.reserve(ranks);
  for (std::size_t n = 0; n < nodes.size(); ++n) {
    const NodeChannels& node = *nodes[n].channels;
    const std::size_t gpus = node.rank_of.size();
    const bool exchanged =
        plan.swap_odd_nodes && n % 2 == 1 && node.ring.cross_nic >= plan.swap_from;
    const std::size_t from = exchanged ? channel ^ 1 : channel;
    const std::size_t first = node.ring.gpus[from * gpus],
                      last = node.ring.gpus[from * gpus + gpus - 1];
    for (std::size_t i = 0; i < gpus; ++i)
      ring.ranks.push_back(nodes[n].first_rank + node.rank_of[node.ring.gpus[from * gpus + i]]);
    if (nodes.size() == 1) continue;
    ring.nics[nodes[n].first_rank + node.rank_of[first]][0] =
        nic_for(node, node.ring, channel, first);
    ring.nics[nodes[n].first_rank + node.rank_of[last]][1] =
        nic_for(node, node.ring, channel, last);
  }
  return ring;
}

NcclConnections::Tree join_tree(std::span<const NodePlace> nodes, std::size_t ranks,
                                std::size_t channel, bool second_tree) {
  NcclConnections::Tree tree;
  tree.up.assign(ranks, kNoRank);
  tree.nics.assign(ranks, -1);
  tree.child_nics.assign(ranks, -1);
  for (std::size_t n = 0; n < nodes.size(); ++n) {
    const NodeChannels& node = *nodes[n].channels;
    const std::size_t gpus = node.rank_of.size();
    const auto rank = [&](std::size_t i) {
      return nodes[n].first_rank + node.rank_of[node.tree.gpus[channel * gpus + i]];
    };
    for (std::size_t i = 1; i < gpus; ++i) tree.up[rank(i)] = rank(i - 1);
    const TreePlace place = place_in_tree(nodes.size(), n, second_tree);
    if (place.parent < 0) continue;
    const NodePlace& above = nodes[static_cast<std::size_t>(place.parent)];
    const std::size_t gpu = child_gpu(above.channels->tree, channel, above.channels->rank_of.size(),
                                      place.second_child);
    const std::uint32_t parent = above.first_rank + above.channels->rank_of[gpu];
    tree.up[rank(0)] = parent;
    tree.nics[rank(0)] = nic_for(node, node.tree, channel, node.tree.gpus[channel * gpus]);
    tree.child_nics[parent] = nic_for(*above.channels, above.channels->tree, channel, gpu);
  }
  return tree;
}

}  // namespace

TreePlace place_in_tree(std::size_t nodes, std::size_t node, bool second_tree) {
  if (!second_tree) return place_in_binary_tree(nodes, node);
  // The second tree mirrors the first, or is shifted by one node when their number is odd: inner nodes of one are leaves of
  // the other.
  const auto other = [&](std::size_t n) {
    return nodes % 2 == 1 ? (n + nodes - 1) % nodes : nodes - 1 - n;
  };
  const auto back = [&](std::size_t n) { return nodes % 2 == 1 ? (n + 1) % nodes : nodes - 1 - n; };
  TreePlace place = place_in_binary_tree(nodes, other(node));
  if (place.parent >= 0)
    place.parent = static_cast<std::int64_t>(back(static_cast<std::size_t>(place.parent)));
  return place;
}

std::int32_t nic_for(const NodeChannels& node, const Channels& channels, std::size_t channel,
                     std::size_t gpu) {
  const std::size_t gpus = node.rank_of.size();
  const std::size_t end = channels.gpus[channel * gpus] == gpu ? 0 : 1;
  const std::int16_t net = channels.nets[channel][end];
  return net < 0 ? -1 : node.nic_of[static_cast<std::size_t>(net)];
}

NcclConnections join_nodes(std::span<const NodePlace> nodes, std::size_t ranks,
                           const JoinPlan& plan) {
  NcclConnections out;
  const std::size_t n = plan.searched;
  out.rings.reserve(plan.source.size());
  out.trees.reserve(plan.source.size());
  std::vector<std::int64_t> ring_at(n, -1), tree_at(2 * n, -1);
  for (const std::uint32_t source : plan.source) {
    const std::size_t channel = source % n;
    // Copies are copied, not joined again.
    if (ring_at[channel] >= 0) {
      out.rings.push_back(out.rings[static_cast<std::size_t>(ring_at[channel])]);
    } else {
      ring_at[channel] = static_cast<std::int64_t>(out.rings.size());
      out.rings.push_back(join_ring(nodes, ranks, channel, plan));
    }
    if (tree_at[source] >= 0) {
      out.trees.push_back(out.trees[static_cast<std::size_t>(tree_at[source])]);
    } else {
      tree_at[source] = static_cast<std::int64_t>(out.trees.size());
      out.trees.push_back(join_tree(nodes, ranks, channel, source >= n));
    }
  }
  return out;
}

}  // namespace weft::nccl
