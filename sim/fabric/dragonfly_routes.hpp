// SPDX-License-Identifier: Apache-2.0
// Ways through a dragonfly (Kim, Dally, Scott and Abts, "Technology-Driven, Highly-Scalable Dragonfly Topology", ISCA 2008).
//
//   minimal   local - global - local: over a link between the two groups, of those the nearest ones; inside a group directly
//   valiant   by way of a third group, any: local - global - local - global - local. Twice the load in all, but even: when a
//             whole group sends to one other, minimal ways all meet at the few links between the two, 1/(a h) of what the a
//             routers with h global links each can send
//   ugal      both are offered; packets choose where they enter, by the queues there (packet::Engine::inject)
//
// Lanes.    A link is used by the lane that counts the global links taken before. So lanes and links of a way come in the order
//           local 0, global 0, local 1, global 1, local 2, and nothing waits in a circle. Three lanes.
// Assumes:  routers of a group are all joined. Ways without a link that is down are left out; there is no second local hop
//           around it. Of more than kMostGroups third groups, or kMostParallel links between two, a way has a random choice.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "sim/fabric/fabric.hpp"

namespace weft {

// Whether packets change lanes on their way.
constexpr bool uses_lanes(Routing routing) {
  return routing == Routing::minimal || routing == Routing::valiant || routing == Routing::ugal;
}
inline constexpr std::uint8_t kDragonflyLanes = 3;

// All ways from one router to another as records: this link, then any one of `count` from `next` on; 0: the last.
struct LaneHop {
  LinkId link;
  std::uint32_t next = 0;
  std::uint16_t count = 0;
  std::uint8_t lane = 0, length = 0;  // length: links from here on, this one included
};
struct LaneWays {
  std::vector<LaneHop> hops;
  std::uint16_t first = 0;    // the way begins with any of the first so many; 0: cut off
  std::uint16_t minimal = 0;  // of these so many are minimal, the others detours
};

class DragonflyRoutes {
 public:
  static constexpr std::size_t kMostGroups = 64, kMostParallel = 8;

  explicit DragonflyRoutes(const Fabric& fabric);
  // Two different routers. `usable` says which links may be taken.
  LaneWays find(NodeId from, NodeId to, Routing routing,
                const std::function<bool(LinkId)>& usable) const;

  std::size_t groups() const { return groups_; }

 private:
  struct Global {
    LinkId link;
    std::uint32_t from = 0, to = 0;  // routers
  };
  class Search;
  const std::vector<Global>& between(std::uint32_t a, std::uint32_t b) const {
    return globals_[a * groups_ + b];
  }
  LinkId local(std::uint32_t from, std::uint32_t to) const;

  const Fabric& fabric_;
  std::size_t groups_ = 0;
  std::vector<std::uint32_t> group_;                                   // by router
  std::vector<std::vector<Global>> globals_;                           // by group and group
  std::vector<std::vector<std::pair<std::uint32_t, LinkId>>> locals_;  // by router: neighbours
};

}  // namespace weft
