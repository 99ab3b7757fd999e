// SPDX-License-Identifier: Apache-2.0
#include "sim/fabric/network_routes.hpp"

#include <algorithm>
#include <limits>

#include "sim/core/hash.hpp"

namespace weft {
namespace {

constexpr std::size_t kMostSpreadShares = 8'000'000;  // kept; beyond it ways are found anew

constexpr std::uint64_t kBeyondNics = std::uint64_t{1}
                                      << 32;  // products of next hops need not grow further

std::uint64_t pair_key(std::uint32_t from, std::uint32_t to) {
  return std::uint64_t{from} << 32 | to;
}

}  // namespace

Bandwidth Route::rate(const Fabric& fabric) const {
  if (shares.empty()) return {std::numeric_limits<std::int64_t>::max()};
  double bps = std::numeric_limits<double>::max();
  for (const Share& share : shares) {
    bps = std::min(bps, static_cast<double>(fabric.capacity(share.resource).bps) / share.weight);
  }
  return {static_cast<std::int64_t>(bps)};
}

NetworkRoutes::NetworkRoutes(const Fabric& fabric)
    : fabric_(fabric), distance_(fabric.switches().size()) {
  out_begin_.push_back(0);
  near_begin_.push_back(0);
  for (const NodeId s : fabric.switches()) {
    for (const LinkId l : fabric.out_links(s)) {
      const Node& to = fabric.node(fabric.link(l).to);
      if (to.kind == NodeKind::network_switch) out_.push_back({l, to.index});
    }
    std::vector<std::uint32_t> near;
    for (std::size_t i = out_begin_.back(); i < out_.size(); ++i) near.push_back(out_[i].to);
    std::ranges::sort(near);
    near.erase(std::unique(near.begin(), near.end()), near.end());
    near_.insert(near_.end(), near.begin(), near.end());
    out_begin_.push_back(static_cast<std::uint32_t>(out_.size()));
    near_begin_.push_back(static_cast<std::uint32_t>(near_.size()));
  }
}

const std::vector<std::uint16_t>& NetworkRoutes::distances(NodeId leaf) {
  const std::uint32_t target = fabric_.node(leaf).index;
  std::vector<std::uint16_t>& field = distance_[target];
  if (!field.empty()) return field;
  field.assign(distance_.size(), kFar);
  field[target] = 0;
  std::vector<std::uint32_t> frontier{target}, next;
  for (std::uint16_t d = 1; !frontier.empty(); ++d) {
    next.clear();
    for (const std::uint32_t at : frontier) {
      const auto reach = [&](std::uint32_t to) {
        if (field[to] != kFar) return;
        field[to] = d;
        next.push_back(to);
      };
      if (!any_down_) {
        for (std::uint32_t i = near_begin_[at]; i < near_begin_[at + 1]; ++i) reach(near_[i]);
      } else {
        for (const Hop& hop : hops(at)) {
          if (!is_down(fabric_.link(hop.link).reverse)) reach(hop.to);
        }
      }
    }
    std::swap(frontier, next);
  }
  return field;
}

bool NetworkRoutes::append(NodeId from, NodeId to, std::uint32_t nic, std::uint64_t label,
                           Routing routing, Route& out) {
  if (uses_lanes(routing)) return append_lanes(from, to, label, routing, out);
  const std::vector<std::uint16_t>& field = distances(to);
  std::uint32_t at = fabric_.node(from).index;
  if (field[at] == kFar) return false;
  const bool even = spreads(routing);
  if (even) spread(at, to, out);
  const std::size_t length = field[at];
  std::vector<std::uint64_t> products;  // of the ways that there were, up to each step
  while (field[at] > 0) {
    const auto closer = static_cast<std::uint16_t>(field[at] - 1);
    std::uint32_t n = 0;
    for (const Hop& hop : hops(at)) n += forward(hop, field, closer) ? 1U : 0U;
    if (n == 0) return false;
    std::uint32_t k = 0;
    if (routing == Routing::single) {
      // The second half of a way mirrors the first: among parallel cables down, the one that leads up from there.
      const std::size_t step = products.size(), like = std::min(step, length - 1 - step);
      k = static_cast<std::uint32_t>(nic / (like == 0 ? 1 : products[like - 1]) % n);
      products.push_back(std::min((step == 0 ? 1 : products.back()) * n, kBeyondNics));
    } else if (!even) {
      k = static_cast<std::uint32_t>(mix64(label ^ std::uint64_t{at} << 32) % n);
    }
    for (const Hop& hop : hops(at)) {
      if (!forward(hop, field, closer) || k-- != 0) continue;
      if (!even) out.add(hop.link.v, 1);
      out.hops.push_back(hop.link);
      const Link& link = fabric_.link(hop.link);
      out.latency += link.delay + fabric_.node(link.to).latency;
      at = hop.to;
      break;
    }
  }
  return true;
}

bool NetworkRoutes::append_lanes(NodeId from, NodeId to, std::uint64_t label, Routing routing,
                                 Route& out) {
  if (from == to) return true;
  if (!dragonfly_) dragonfly_ = std::make_unique<DragonflyRoutes>(fabric_);
  const LaneWays ways =
      dragonfly_->find(from, to, routing, [this](LinkId l) { return !is_down(l); });
  if (ways.first == 0) return false;
  // What of the flow comes to each record: blocks are evenly divided, those of the source half to minimal ways.
  std::vector<double> part(ways.hops.size(), 0);
  std::vector<std::uint32_t> order;
  const auto divide = [&](std::uint32_t first, std::uint32_t count, double whole) {
    for (std::uint32_t i = first; i < first + count; ++i) {
      if (part[i] == 0) order.push_back(i);
      part[i] += whole / count;
    }
  };
  const std::uint32_t detours = ways.first - ways.minimal;
  const double half = ways.minimal > 0 && detours > 0 ? 0.5 : 1;
  if (ways.minimal > 0) divide(0, ways.minimal, half);
  if (detours > 0) divide(ways.minimal, detours, half);
  // Longest first: then all of a record is known before it is handed on.
  std::map<std::uint32_t, double> load;
  for (std::uint8_t length = 2 * kDragonflyLanes; length > 0; --length) {
    for (std::size_t i = 0; i < order.size(); ++i) {
      const LaneHop hop = ways.hops[order[i]];
      if (hop.length != length) continue;
      load[hop.link.v] += part[order[i]];
      if (hop.count > 0) divide(hop.next, hop.count, part[order[i]]);
    }
  }
  for (const auto& [link, weight] : load) out.shares.push_back({link, weight});
  // Shown, and taken for the latency: a minimal way where there is one.
  const std::uint32_t shown = ways.minimal > 0 ? ways.minimal : ways.first;
  std::uint32_t at = static_cast<std::uint32_t>(mix64(label) % shown);
  while (true) {
    const LaneHop& hop = ways.hops[at];
    const Link& link = fabric_.link(hop.link);
    out.hops.push_back(hop.link);
    out.latency += link.delay + fabric_.node(link.to).latency;
    if (hop.count == 0) return true;
    at = hop.next + static_cast<std::uint32_t>(mix64(label ^ std::uint64_t{at} << 32) % hop.count);
  }
}

Time NetworkRoutes::latency(NodeId from, NodeId to) {
  const auto [found, fresh] = latency_.try_emplace(pair_key(from.v, to.v), Time{0});
  if (!fresh) return found->second;
  const std::vector<std::uint16_t>& field = distances(to);
  std::uint32_t at = fabric_.node(from).index;
  Time sum{0};
  if (field[at] == kFar) sum = Time::never();
  while (field[at] != kFar && field[at] > 0) {
    const auto closer = static_cast<std::uint16_t>(field[at] - 1);
    const auto way = hops(at);
    const auto hop =
        std::ranges::find_if(way, [&](const Hop& h) { return forward(h, field, closer); });
    if (hop == way.end()) {
      sum = Time::never();
      break;
    }
    const Link& link = fabric_.link(hop->link);
    sum += link.delay + fabric_.node(link.to).latency;
    at = hop->to;
  }
  return found->second = sum;
}

// Evenly over all shortest ways, level by level, in proportion to the rates at each branching.
void NetworkRoutes::spread_all(NodeId leaf, std::vector<double>& demand, std::span<double> load,
                               std::vector<std::uint32_t>& touched) {
  const std::vector<std::uint16_t>& field = distances(leaf);
  std::vector<std::vector<std::uint32_t>> levels;  // switches with demand, by distance
  const auto enter = [&](std::uint32_t at) {
    if (levels.size() <= field[at]) levels.resize(field[at] + std::size_t{1});
    levels[field[at]].push_back(at);
  };
  for (std::uint32_t i = 0; i < demand.size(); ++i) {
    if (demand[i] > 0 && field[i] != kFar) enter(i);
  }
  for (std::size_t d = levels.size(); d-- > 1;) {
    const auto closer = static_cast<std::uint16_t>(d - 1);
    for (const std::uint32_t at : levels[d]) {
      double total = 0;
      for (const Hop& hop : hops(at)) {
        if (forward(hop, field, closer))
          total += static_cast<double>(fabric_.link(hop.link).rate.bps);
      }
      if (total <= 0) continue;
      for (const Hop& hop : hops(at)) {
        if (!forward(hop, field, closer)) continue;
        const double share =
            demand[at] * static_cast<double>(fabric_.link(hop.link).rate.bps) / total;
        if (load[hop.link.v] == 0) touched.push_back(hop.link.v);
        load[hop.link.v] += share;
        if (demand[hop.to] == 0) enter(hop.to);
        demand[hop.to] += share;
      }
      demand[at] = 0;
    }
  }
  demand[fabric_.node(leaf).index] = 0;
}

void NetworkRoutes::spread(std::uint32_t from, NodeId leaf, Route& out) {
  const std::uint32_t target = fabric_.node(leaf).index;
  if (from == target) return;
  auto found = spread_.find(pair_key(from, target));
  if (found == spread_.end()) {
    std::vector<double> demand(distance_.size(), 0), load(fabric_.link_count(), 0);
    std::vector<std::uint32_t> touched;
    demand[from] = 1;
    spread_all(leaf, demand, load, touched);
    std::vector<Share> shares;
    for (const std::uint32_t link : touched) shares.push_back({link, load[link]});
    if (spread_size_ + shares.size() > kMostSpreadShares) {
      spread_.clear();
      spread_size_ = 0;
    }
    spread_size_ += shares.size();
    found = spread_.emplace(pair_key(from, target), std::move(shares)).first;
  }
  // Links between switches occur in no other part of a route, so they need no merging.
  out.shares.insert(out.shares.end(), found->second.begin(), found->second.end());
}

void NetworkRoutes::set_down(LinkId link, bool down) {
  if (down_.empty()) down_.assign(fabric_.link_count(), 0);
  down_[link.v] = down ? 1 : 0;
  any_down_ = std::ranges::find(down_, 1) != down_.end();
  for (auto& field : distance_) field.clear();
  spread_.clear();
  latency_.clear();
  spread_size_ = 0;
}

}  // namespace weft
