// SPDX-License-Identifier: Apache-2.0
// Double binary tree: two trees over the same ranks, each with half of the data, a rank inner in at most one of them.
//
// Trees:    balanced, numbered in order, so that inner nodes stand at odd positions and leaves at even ones. The second
//           tree is the first one mirrored (N even) or turned by one (N odd): there the inner nodes are the even ones.
//           Depth floor(log2 N). Positions follow the ring order of the channel, so near ranks stay near.
//           broadcast, reduce: both trees span the other N - 1 ranks; the root hangs above both.
// Data:     all_reduce: chunks are added on the way up and come back down, both at once. K chunks per tree.
// Traffic:  an edge carries half of its channel's data, each way in all_reduce. A rank that is inner in one tree sends and
//           receives at most 3 / 2 + 1 / 2 = 2 times its data, a leaf of both once.
// Rounds:   all_reduce 2 D + K - 1, D the depth of a tree; broadcast, reduce D + K - 1, D counted from the root.
// Assumes:  ranks alike. A library's chains inside servers below a tree of servers are another algorithm.
// Reference: Sanders, Speck and Traff, "Two-tree algorithms for full bandwidth broadcast, reduction and scan", Parallel
//           Computing 2009.
#include <algorithm>
#include <utility>

#include "models/collectives/algorithms.hpp"
#include "models/collectives/parts.hpp"

namespace weft::collectives {
namespace {

struct Link {
  std::uint32_t child, parent;
  std::uint32_t height;  // of the child above the lowest leaf below it
  std::uint32_t depth;   // of the child below the root, at least 1
};

struct Tree {
  std::vector<Link> links;
  std::uint32_t root = 0;
  std::uint32_t depth = 0;
};

// The tree over positions [low, high) with `low` even; returns the root's height. `ranks` maps positions to ranks.
std::uint32_t grow(std::uint32_t low, std::uint32_t high, std::uint32_t depth, const Ranks& ranks,
                   Tree& tree, std::uint32_t& root) {
  const std::uint32_t n = high - low;
  if (n == 1) {
    root = ranks[low];
    return 0;
  }
  // An odd number of positions to the left, so that all inner nodes stand at odd ones.
  const std::uint32_t middle = low + (n / 2 % 2 == 1 ? n / 2 : n / 2 - 1);
  root = ranks[middle];
  std::uint32_t height = 0;
  const auto hang = [&](std::uint32_t from, std::uint32_t to) {
    std::uint32_t child = 0;
    const std::uint32_t below = grow(from, to, depth + 1, ranks, tree, child);
    tree.links.push_back({child, ranks[middle], below, depth + 1});
    height = std::max(height, below + 1);
  };
  hang(low, middle);
  if (middle + 1 < high) hang(middle + 1, high);
  return height;
}

Tree tree_over(const Ranks& ranks, bool below_root, std::uint32_t root) {
  Tree tree;
  tree.links.reserve(ranks.size());
  std::uint32_t top = 0;
  const std::uint32_t height =
      grow(0, static_cast<std::uint32_t>(ranks.size()), below_root ? 1 : 0, ranks, tree, top);
  if (below_root) tree.links.push_back({top, root, height, 1});
  tree.root = below_root ? root : top;
  tree.depth = height + (below_root ? 1 : 0);
  return tree;
}

Ranks second_order(Ranks ranks) {
  if (ranks.size() % 2 == 0) {
    std::reverse(ranks.begin(), ranks.end());
  } else {
    std::rotate(ranks.begin(), ranks.begin() + 1, ranks.end());
  }
  return ranks;
}

struct Steps {
  std::vector<Tree> trees;  // two per channel
  std::uint32_t pieces;
  bool up, down;

  std::uint32_t rounds() const {
    std::uint32_t rounds = 0;
    for (const Tree& tree : trees)
      rounds = std::max(rounds, (up && down ? 2 : 1) * tree.depth + pieces - 1);
    return rounds;
  }

  void operator()(const StepSink& sink) const {
    const std::uint32_t last = rounds();
    for (std::uint32_t round = 0; round < last; ++round) {
      for (std::uint32_t t = 0; t < trees.size(); ++t) {
        const std::uint64_t first = std::uint64_t{t} * pieces;
        for (const Link& link : trees[t].links) {
          // Unsigned: before its first round the piece is huge.
          const std::uint32_t rising = round - link.height;
          const std::uint32_t falling = round - (up ? trees[t].depth : 0) - (link.depth - 1);
          if (up && rising < pieces) {
            sink({.round = round,
                  .src = link.child,
                  .dst = link.parent,
                  .unit = first + rising,
                  .channel = t / 2,
                  .reduces = true});
          }
          if (down && falling < pieces) {
            sink({.round = round,
                  .src = link.parent,
                  .dst = link.child,
                  .unit = first + falling,
                  .channel = t / 2});
          }
        }
      }
    }
  }
};

bool supports(CollectiveKind kind, const GroupShape&) {
  using enum CollectiveKind;
  return kind == all_reduce || kind == broadcast || kind == reduce;
}

Schedule build(const CollectiveRequest& request, const GroupShape& shape) {
  const std::uint32_t n = shape.ranks, trees = 2 * channel_count(request);
  const bool rooted = request.kind != CollectiveKind::all_reduce;
  const std::uint32_t pieces = pieces_of(request, unit_size(request.size, trees, 0));
  Schedule schedule = start(kDoubleBinaryTree.name, request, shape, std::uint64_t{trees} * pieces);
  if (n == 1) return schedule;
  Steps steps{{},
              pieces,
              request.kind != CollectiveKind::broadcast,
              request.kind != CollectiveKind::reduce};
  Phase phase;
  for (std::uint32_t t = 0; t < trees; ++t) {
    Ranks order = ring_order(shape, t / 2);
    if (rooted) {
      order = turned_to(std::move(order), request.root);
      order.erase(order.begin());
    }
    steps.trees.push_back(
        tree_over(t % 2 == 0 ? order : second_order(std::move(order)), rooted, request.root));
    const Tree& tree = steps.trees.back();
    Channel channel{.form = Channel::Form::tree,
                    .bytes = schedule.size_of_units(std::uint64_t{t} * pieces, pieces)};
    channel.edges.reserve(tree.links.size() * (rooted ? 1 : 2));
    for (const Link& link : tree.links) {
      if (steps.up) channel.edges.push_back({link.child, link.parent, 1});
      if (steps.down) channel.edges.push_back({link.parent, link.child, 1});
    }
    channel.chunk = chunk_of(request, channel.bytes);
    channel.steps = (rooted ? 1 : 2) * tree.depth;
    phase.channels.push_back(std::move(channel));
  }
  schedule.rounds = steps.rounds();
  schedule.phases.push_back(std::move(phase));
  schedule.steps = std::move(steps);
  return schedule;
}

}  // namespace

const AlgorithmEntry kDoubleBinaryTree{
    .name = "double_binary_tree",
    .summary =
        "two complementary trees with half of the data each; full bandwidth at logarithmic latency",
    .reference = "Sanders, Speck and Traff, Parallel Computing 2009",
    .supports = supports,
    .build = build};

}  // namespace weft::collectives
