// SPDX-License-Identifier: Apache-2.0
#include "sim/fabric/dragonfly_routes.hpp"

#include <algorithm>
#include <map>
#include <optional>

#include "sim/core/hash.hpp"

namespace weft {
namespace {

std::uint16_t u16(std::size_t v) { return static_cast<std::uint16_t>(v); }

}  // namespace

DragonflyRoutes::DragonflyRoutes(const Fabric& fabric)
    : fabric_(fabric),
      group_(fabric.switches().size(), kNoResource),
      locals_(fabric.switches().size()) {
  const auto switches = fabric.switches();
  const auto each_link = [&](std::uint32_t router, Tier tier, auto&& visit) {
    for (const LinkId l : fabric.out_links(switches[router])) {
      const Link& link = fabric.link(l);
      if (link.tier == tier) visit(l, fabric.node(link.to).index);
    }
  };
  for (std::uint32_t first = 0; first < group_.size(); ++first) {
    if (group_[first] != kNoResource) continue;
    const auto group = static_cast<std::uint32_t>(groups_++);
    group_[first] = group;
    each_link(first, Tier::group, [&](LinkId, std::uint32_t to) { group_[to] = group; });
  }
  globals_.resize(groups_ * groups_);
  for (std::uint32_t r = 0; r < group_.size(); ++r) {
    each_link(r, Tier::group, [&](LinkId l, std::uint32_t to) { locals_[r].emplace_back(to, l); });
    std::ranges::sort(locals_[r]);
    each_link(r, Tier::global, [&](LinkId l, std::uint32_t to) {
      globals_[group_[r] * groups_ + group_[to]].push_back({l, r, to});
    });
  }
}

LinkId DragonflyRoutes::local(std::uint32_t from, std::uint32_t to) const {
  const auto found =
      std::ranges::lower_bound(locals_[from], to, {}, &std::pair<std::uint32_t, LinkId>::first);
  return found != locals_[from].end() && found->first == to ? found->second : LinkId{};
}

// One pair of routers. A block is what may be done at a router: to leave for another group, or to end.
class DragonflyRoutes::Search {
 public:
  Search(const DragonflyRoutes& routes, const std::function<bool(LinkId)>& usable,
         std::uint32_t from, std::uint32_t to)
      : routes_(routes),
        usable_(usable),
        from_(from),
        to_(to),
        salt_(mix64(from ^ to)) {}  // the same both ways

  LaneWays run(Routing routing) {
    const std::uint32_t source = routes_.group_[from_], goal = routes_.group_[to_];
    std::vector<LaneHop> minimal, detours;
    if (source == goal) {
      minimal = final(0, from_);
    } else {
      minimal = leave(0, from_, goal);
      const auto nearest = std::ranges::min_element(minimal, {}, &LaneHop::length);
      if (nearest != minimal.end())
        std::erase_if(minimal,
                      [least = nearest->length](const LaneHop& hop) { return hop.length > least; });
    }
    if (source != goal && routing != Routing::minimal) {
      for (const std::uint32_t middle : middles(source, goal)) {
        const std::vector<LaneHop> around = leave(0, from_, middle);
        detours.insert(detours.end(), around.begin(), around.end());
      }
    }
    if (routing == Routing::valiant && !detours.empty()) minimal.clear();
    // The block of the source comes first.
    LaneWays out;
    out.minimal = u16(minimal.size());
    out.hops = std::move(minimal);
    out.hops.insert(out.hops.end(), detours.begin(), detours.end());
    out.first = u16(out.hops.size());
    out.hops.insert(out.hops.end(), hops_.begin(), hops_.end());
    for (LaneHop& hop : out.hops) {
      if (hop.count > 0) hop.next += out.first;
    }
    return out;
  }

 private:
  struct Block {
    std::uint32_t next = 0;
    std::uint16_t count = 0;
    std::uint8_t length = 0;  // of the longest way on
  };

  std::vector<std::uint32_t> middles(std::uint32_t source, std::uint32_t goal) const {
    std::vector<std::uint32_t> out;
    for (std::uint32_t g = 0; g < routes_.groups_; ++g) {
      if (g != source && g != goal) out.push_back(g);
    }
    return some(std::move(out), kMostGroups);
  }

  // At most so many, chosen by the pair of routers.
  template <class T>
  std::vector<T> some(std::vector<T> all, std::size_t most) const {
    if (all.size() <= most) return all;
    std::uint64_t state = salt_;
    for (std::size_t i = 0; i < most; ++i) {
      state = mix64(state);
      std::swap(all[i], all[i + state % (all.size() - i)]);
    }
    all.resize(most);
    return all;
  }

  Block store(const std::vector<LaneHop>& hops) {
    Block block{static_cast<std::uint32_t>(hops_.size()), u16(hops.size()), 0};
    for (const LaneHop& hop : hops) block.length = std::max(block.length, hop.length);
    hops_.insert(hops_.end(), hops.begin(), hops.end());
    return block;
  }

  LaneHop hop(LinkId link, std::uint8_t lane, const Block& behind) const {
    return {link, behind.next, behind.count, lane, static_cast<std::uint8_t>(behind.length + 1)};
  }

  // In the group of the destination; empty when the local link is down. Not called at the destination itself.
  std::vector<LaneHop> final(std::uint8_t lane, std::uint32_t at) const {
    const LinkId link = routes_.local(at, to_);
    if (!link.valid() || !usable_(link)) return {};
    return {{link, 0, 0, lane, 1}};
  }

  // What may be done behind a global link, at `at` with so many of them taken; none: nothing.
  std::optional<Block> arrived(std::uint8_t lane, std::uint32_t at) {
    if (at == to_) return Block{};
    const std::uint64_t key = std::uint64_t{lane} << 32 | at;
    const auto known = arrived_.find(key);
    if (known != arrived_.end()) return known->second;
    const std::uint32_t goal = routes_.group_[to_];
    const std::vector<LaneHop> hops =
        routes_.group_[at] == goal ? final(lane, at) : leave(lane, at, goal);
    std::optional<Block> block;
    if (!hops.empty()) block = store(hops);
    return arrived_.emplace(key, block).first->second;
  }

  // From `at` to another group: its own global links, or a local one to a router that has some. As many records as global
  // links, so that each is as likely.
  std::vector<LaneHop> leave(std::uint8_t lane, std::uint32_t at, std::uint32_t group) {
    struct Exit {
      Global global;
      Block behind;
    };
    std::map<std::uint32_t, std::vector<Exit>> exits;  // by router
    std::vector<Global> usable = routes_.between(routes_.group_[at], group);
    std::erase_if(usable, [this](const Global& global) { return !usable_(global.link); });
    for (const Global& global : some(std::move(usable), kMostParallel)) {
      const LinkId there = global.from == at ? LinkId{} : routes_.local(at, global.from);
      if (global.from != at && (!there.valid() || !usable_(there))) continue;
      if (const auto behind = arrived(static_cast<std::uint8_t>(lane + 1), global.to))
        exits[global.from].push_back({global, *behind});
    }
    std::vector<LaneHop> out;
    for (const auto& [router, all] : exits) {
      std::vector<LaneHop> over;
      for (const Exit& exit : all) over.push_back(hop(exit.global.link, lane, exit.behind));
      if (router != at) {
        const LaneHop first = hop(routes_.local(at, router), lane, store(over));
        over.assign(over.size(), first);
      }
      out.insert(out.end(), over.begin(), over.end());
    }
    return out;
  }

  const DragonflyRoutes& routes_;
  const std::function<bool(LinkId)>& usable_;
  std::uint32_t from_, to_;
  std::uint64_t salt_;
  std::vector<LaneHop> hops_;
  std::map<std::uint64_t, std::optional<Block>> arrived_;
};

LaneWays DragonflyRoutes::find(NodeId from, NodeId to, Routing routing,
                               const std::function<bool(LinkId)>& usable) const {
  return Search(*this, usable, fabric_.node(from).index, fabric_.node(to).index).run(routing);
}

}  // namespace weft
