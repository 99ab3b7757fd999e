// SPDX-License-Identifier: Apache-2.0
// Ways between network switches. Next hops are kept per destination: one distance per switch and leaf, found by breadth-first
// search when first needed, so memory is near switches x leaves whatever the number of GPUs.
//
//   single     the k-th of n equal next hops, k = (destination NIC / product of earlier n) mod n (D-mod-k, Zahavi 2010). NICs
//              count leaf by leaf; on the second half of the way the product is that of the mirrored step, so that parallel
//              cables down are taken as they are up, and shifts do not collide
//   ecmp       by hash of the flow's label and the switch
//   flowlet, spray, adaptive   evenly over all equal next hops (what they tend to at flow level; packets differ)
//   minimal, valiant, ugal     of a dragonfly, see dragonfly_routes.hpp; evenly over the ways of each, ugal half and half: what
//              its packets choose depends on queues
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <unordered_map>
#include <vector>

#include "sim/fabric/dragonfly_routes.hpp"
#include "sim/fabric/route.hpp"

namespace weft {

// Whether this policy spreads a flow evenly.
constexpr bool spreads(Routing routing) {
  return routing == Routing::spray || routing == Routing::adaptive || routing == Routing::flowlet;
}

class NetworkRoutes {
 public:
  static constexpr std::uint16_t kFar = 0xFFFF;

  explicit NetworkRoutes(const Fabric& fabric);

  // Switch hops from every switch (by Node::index) to the switch `leaf`; kFar when cut off.
  const std::vector<std::uint16_t>& distances(NodeId leaf);

  // Appends the way from one switch to another (latencies of the switches passed, both ends included, but for the first);
  // false when they are cut off. `nic` is the position of the destination NIC, `label` that of the flow.
  bool append(NodeId from, NodeId to, std::uint32_t nic, std::uint64_t label, Routing routing,
              Route& out);

  // Latency of a shortest way, the same that append() adds; Time::never() when cut off.
  Time latency(NodeId from, NodeId to);

  // Spreads many flows to one leaf at once: demand[i] enters at the switch of index i; every link's load is added to
  // load[link]. `demand` is used up. New loads' links are appended to `touched`.
  void spread_all(NodeId leaf, std::vector<double>& demand, std::span<double> load,
                  std::vector<std::uint32_t>& touched);

  // Takes a link (one direction) out of all ways, or back in.
  void set_down(LinkId link, bool down);
  bool any_down() const { return any_down_; }
  bool is_down(LinkId link) const { return any_down_ && down_[link.v] != 0; }

 private:
  struct Hop {
    LinkId link;
    std::uint32_t to = 0;  // index of the switch
  };
  std::span<const Hop> hops(std::uint32_t from) const {
    return {out_.data() + out_begin_[from], out_.data() + out_begin_[from + 1]};
  }
  bool forward(const Hop& hop, const std::vector<std::uint16_t>& field,
               std::uint16_t closer) const {
    return field[hop.to] == closer && !is_down(hop.link);
  }
  void spread(std::uint32_t from, NodeId leaf, Route& out);
  bool append_lanes(NodeId from, NodeId to, std::uint64_t label, Routing routing, Route& out);

  const Fabric& fabric_;
  std::vector<Hop> out_;  // links between switches, by switch
  std::vector<std::uint32_t> out_begin_;
  std::vector<std::uint32_t> near_, near_begin_;        // neighbours without repeats, by switch
  std::vector<std::vector<std::uint16_t>> distance_;    // by destination index; empty until needed
  std::map<std::uint64_t, std::vector<Share>> spread_;  // (from, to) -> shares
  std::unordered_map<std::uint64_t, Time> latency_;     // (from, to)
  std::size_t spread_size_ = 0;
  std::unique_ptr<DragonflyRoutes> dragonfly_;
  std::vector<std::uint8_t> down_;
  bool any_down_ = false;
};

}  // namespace weft
