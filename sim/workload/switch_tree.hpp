// SPDX-License-Identifier: Apache-2.0
// Switches that add and multicast for a group: a tree whose leaves are the ranks.
//
//   Scale-up   Every rank hangs on the same NVSwitches; each of these is a tree of one switch (a plane) and takes a part of the
//              vector in proportion to its links.
//   Network    The switches where the ranks' NICs are plugged in, joined by shortest ways to a root: a switch that is as near to
//              the furthest of them as any, and if there are several one of them by hash. A vector goes up every link of
//              the tree once and down once, whatever the number of ranks.
// Reference: Graham et al., "Scalable Hierarchical Aggregation Protocol (SHArP): a hardware architecture for efficient data
//            reduction", COMHPC 2016.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "sim/core/ids.hpp"
#include "sim/core/units.hpp"
#include "sim/workload/schedule.hpp"

namespace weft {

class Routes;

struct SwitchTree {
  static constexpr std::uint32_t kRoot = 0xFFFF'FFFF;

  struct Switch {
    NodeId node;
    std::uint32_t parent = kRoot;  // index; parents come before their children
    LinkId up, down;               // to the parent and back
    Time height{0};                // latency to the root
  };
  struct Member {
    std::uint32_t at = 0;          // index of its switch
    std::vector<LinkId> up, down;  // from the rank to that switch, and back, in order
    Time latency{0};               // of `up`
  };

  std::vector<Switch> switches;  // the root first
  std::vector<Member> members;   // by rank
  CollectiveKind kind = CollectiveKind::all_reduce;
  std::uint32_t root_rank = 0;  // broadcast, reduce
  bool reads_and_stores =
      false;        // a rank asks for the sum of its part and stores it into all, as over NVLink
  double part = 1;  // of the vector that takes this tree
  std::optional<Bytes> buffer;  // of one reduction in a switch
};

// One tree per plane that all of them hang on; empty when there is none.
std::vector<SwitchTree> scale_up_trees(const Routes& routes, std::span<const NodeId> gpus);

// nullopt where a rank has no NIC, its way to it is striped, or no switch reaches all.
std::optional<SwitchTree> network_tree(Routes& routes, std::span<const NodeId> gpus, bool gpudirect,
                                       std::uint64_t hash);

}  // namespace weft
