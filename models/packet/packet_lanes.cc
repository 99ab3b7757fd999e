// SPDX-License-Identifier: Apache-2.0
// Ways over virtual lanes: minimal ways and detours of a dragonfly, between the chains that lead from the sender's memory to
// its router and from the receiver's router to its memory.
#include <algorithm>
#include <set>
#include <unordered_map>

#include "models/packet/packet_network.hpp"
#include "sim/core/check.hpp"

namespace weft {

// `links`: in order up to the first router, then all that may be taken between routers, then in order from the last one on.
packet::Path PacketNetwork::add_lane_path(const std::vector<LinkId>& links, Routing routing,
                                          Bound bound) {
  const auto inner = [&](LinkId l) {
    return fabric_.node(fabric_.link(l).from).kind == NodeKind::network_switch &&
           fabric_.node(fabric_.link(l).to).kind == NodeKind::network_switch;
  };
  const auto begin = std::ranges::find_if(links, inner);
  auto end = links.end();
  while (!inner(*std::prev(end))) --end;
  WEFT_CHECK(begin != links.begin() && end != links.end(), links.size());
  const NodeId from = fabric_.link(*std::prev(begin)).to, to = fabric_.link(*end).from;
  const std::set<LinkId> usable(begin, end);
  if (!dragonfly_) dragonfly_ = std::make_unique<DragonflyRoutes>(fabric_);
  const auto may = [&](LinkId l) { return usable.contains(l); };
  LaneWays ways = dragonfly_->find(from, to, routing, may);
  if (ways.first == 0) ways = dragonfly_->find(from, to, Routing::valiant, may);
  WEFT_CHECK(ways.first > 0, from, to);

  std::vector<packet::PathHop> records;
  const auto chain = [&](auto first, auto last) {
    for (auto at = first; at != last; ++at)
      records.push_back({at->v, static_cast<std::uint32_t>(records.size() + 1), 1,
                         answers(*at, bound), false, 0, 0, 0});
  };
  chain(links.begin(), begin);
  const auto base = static_cast<std::uint32_t>(records.size());
  records.back().count = ways.first;
  if (ways.minimal < ways.first) records.back().minimal = static_cast<std::uint8_t>(ways.minimal);
  const auto tail = static_cast<std::uint32_t>(base + ways.hops.size());
  for (const LaneHop& hop : ways.hops) {
    packet::PathHop& record = records.emplace_back();
    record.port = hop.link.v;
    record.next = hop.count > 0 ? base + hop.next : tail;
    record.count = hop.count > 0 ? hop.count : std::uint16_t{1};
    record.lane = static_cast<std::uint8_t>(hop.lane + 1) & 7U;
    record.length = hop.length & 7U;
  }
  chain(end, links.end());
  records[tail].lane = 1;  // out of the lanes again
  records.back().count = 0;
  return engine_.add_path(std::move(records), 1);
}

// Of the longest way: there and back, and a packet on each wire.
Time PacketNetwork::round_trip_of(const packet::Path& path) const {
  std::unordered_map<std::uint32_t, Time> known;
  const auto visit = [&](const auto& self, std::uint32_t record) -> Time {
    if (const auto found = known.find(record); found != known.end()) return found->second;
    const packet::PathHop& hop = engine_.hop(record);
    Time longest{0};
    for (std::uint32_t i = 0; i < hop.count; ++i)
      longest = std::max(longest, self(self, hop.next + i));
    if (const LinkId l{hop.port}; crosses_network(l)) {
      const Link& link = fabric_.link(l);
      longest += 2 * (link.delay + fabric_.node(link.to).latency) +
                 transfer_time(Bytes{grain_}, link.rate);
    }
    known.emplace(record, longest);
    return longest;
  };
  Time longest{0};
  for (std::uint32_t i = 0; i < path.count; ++i)
    longest = std::max(longest, visit(visit, path.first + i));
  return longest;
}

}  // namespace weft
