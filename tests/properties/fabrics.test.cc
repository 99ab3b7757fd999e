// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <iterator>
#include <map>
#include <set>

#include "sim/fabric/routing.hpp"
#include "sim/workload/placement.hpp"
#include "tests/properties/random_machines.hpp"
#include "tests/support/conservation.hpp"
#include "tests/support/tiny.hpp"

namespace weft::properties {
namespace {

RC_GTEST_PROP(RandomFabrics, BuildOrSayWhereAndWhyNot, ()) {
  const Built built = random_fabric();
  RC_CLASSIFY(built.ok, "built");
  if (!built.ok) {
    for (const Problem& problem : built.problems.problems()) {
      RC_ASSERT(!problem.fact.empty());
      RC_ASSERT(problem.place.line > 0U);
    }
    return;
  }
  const Fabric& fabric = built.fabric;
  RC_ASSERT(!fabric.gpus().empty());
  const std::vector<Bandwidth> capacities = fabric.capacities();
  RC_ASSERT(capacities.size() == fabric.resource_count());
  for (std::uint32_t r = 0; r < capacities.size(); ++r) {
    RC_ASSERT(capacities[r].bps > 0);
    RC_ASSERT(fabric.capacity(r) == capacities[r]);
  }
  for (std::uint32_t i = 0; i < fabric.link_count(); ++i) {
    const Link& link = fabric.link(LinkId{i});
    const Link& back = fabric.link(link.reverse);
    RC_ASSERT(back.reverse == LinkId{i});
    RC_ASSERT(back.from == link.to);
    RC_ASSERT(back.to == link.from);
    RC_ASSERT(link.from != link.to);
    RC_ASSERT(link.duplex == back.duplex);
    RC_ASSERT(link.rate <= link.raw);
    RC_ASSERT(fabric.find_link(fabric.name(LinkId{i})) == LinkId{i});
  }
  for (std::uint32_t n = 0; n < fabric.node_count(); ++n)
    RC_ASSERT(fabric.find_node(fabric.name(NodeId{n})) == NodeId{n});
}

// Fewest links from every node to `dst` in the network, NICs and switches only.
std::map<NodeId, int> network_distances(const Fabric& fabric, NodeId dst) {
  std::map<NodeId, int> out{{dst, 0}};
  std::vector<NodeId> queue{dst};
  for (std::size_t head = 0; head < queue.size(); ++head) {
    for (const LinkId l : fabric.out_links(queue[head])) {
      const NodeId other = fabric.link(l).to;
      const NodeKind kind = fabric.node(other).kind;
      const bool host = kind == NodeKind::nic && fabric.link(l).tier == Tier::access;
      if ((kind != NodeKind::network_switch && !host) ||
          !out.emplace(other, out[queue[head]] + 1).second)
        continue;
      if (!host) queue.push_back(other);
    }
  }
  return out;
}

void check_route(const Fabric& fabric, const Route& route, NodeId src, NodeId dst, bool staged) {
  RC_ASSERT(test::not_conserved(fabric, route, src, dst).empty());
  RC_ASSERT(!route.hops.empty());
  RC_ASSERT(route.latency.ps >= 0);
  std::set<std::uint32_t> resources, crossed;
  for (const Share& share : route.shares) {
    RC_ASSERT(resources.insert(share.resource).second);
    RC_ASSERT(share.weight > 0);
  }
  NodeId at = src;
  std::set<NodeId> passed{src};
  for (const LinkId hop : route.hops) {
    RC_ASSERT(fabric.link(hop).from == at);
    RC_ASSERT(resources.contains(hop.v));
    at = fabric.link(hop).to;
    if (!staged)
      RC_ASSERT(passed.insert(at).second);  // into DRAM and out again is the way of staging
    if (at != dst) RC_ASSERT(fabric.node(at).kind != NodeKind::gpu);
  }
  RC_ASSERT(at == dst);
}

RC_GTEST_PROP(RandomFabrics, EveryPairHasALoopFreeWayOrNone, ()) {
  const Built built = random_valid_fabric();
  const Fabric& fabric = built.fabric;
  Routes routes(fabric);
  for (int trial = 0; trial < 20; ++trial) {
    const NodeId src = fabric.gpus()[static_cast<std::size_t>(
        between(0, static_cast<int>(fabric.gpus().size()) - 1))];
    const NodeId dst = fabric.gpus()[static_cast<std::size_t>(
        between(0, static_cast<int>(fabric.gpus().size()) - 1))];
    TransferOptions options;
    options.peer_access = chance(80);
    options.copy_call = chance(50);
    options.channel = static_cast<std::uint32_t>(between(0, 7));
    options.hash = static_cast<std::uint64_t>(between(0, 1000));
    options.routing = any_of(
        {Routing::single, Routing::ecmp, Routing::flowlet, Routing::spray, Routing::adaptive});
    if (chance(60)) options.via = any_of({Via::direct, Via::relay, Via::host, Via::network});
    const auto transfer = routes.transfer(src, dst, options);
    if (!transfer) continue;
    RC_ASSERT(transfer->rate(fabric).bps > 0);
    if (src == dst) {
      RC_ASSERT(transfer->latency() == Time{0});
      continue;
    }
    RC_ASSERT(transfer->legs.size() == (transfer->via == Via::relay ? 2U : 1U));
    const bool across = fabric.node(src).server != fabric.node(dst).server;
    RC_ASSERT((transfer->via == Via::network) == across);
    NodeId at = src;
    for (const Leg& leg : transfer->legs) {
      const NodeId end = fabric.link(leg.route.hops.back()).to;
      check_route(fabric, leg.route, at, end, transfer->via == Via::host || across);
      at = end;
      if (!across) continue;
      // From NIC to NIC no way is shorter.
      std::vector<NodeId> nics;
      int hops = 0;
      for (const LinkId hop : leg.route.hops) {
        const Link& link = fabric.link(hop);
        const bool network = link.tier != Tier::host && link.tier != Tier::scale_up;
        if (network && nics.empty()) nics.push_back(link.from);
        if (network) nics.push_back(link.to);
        hops += network ? 1 : 0;
      }
      RC_ASSERT(network_distances(fabric, nics.back()).at(nics.front()) == hops);
    }
    RC_ASSERT(at == dst);
  }
}

RC_GTEST_PROP(RandomFabrics, LosingLinksLengthensOrCutsWaysButNeverBreaksThem, ()) {
  const Built built = random_valid_fabric();
  const Fabric& fabric = built.fabric;
  Routes routes(fabric);
  std::vector<LinkId> network, down;
  for (std::uint32_t l = 0; l < fabric.link_count(); ++l) {
    const Tier tier = fabric.link(LinkId{l}).tier;
    if (tier != Tier::host && tier != Tier::scale_up) network.push_back(LinkId{l});
  }
  const NodeId src = fabric.gpus().front(), dst = fabric.gpus().back();
  TransferOptions options;
  options.routing = any_of({Routing::single, Routing::ecmp, Routing::spray});
  const auto before = routes.transfer(src, dst, options);
  for (int i = 0; i < 5 && !network.empty(); ++i) {
    down.push_back(
        network[static_cast<std::size_t>(between(0, static_cast<int>(network.size()) - 1))]);
    routes.network().set_down(down.back(), true);
  }
  const auto without = routes.transfer(src, dst, options);
  if (without && src != dst) {
    RC_ASSERT(before.has_value());
    // Through another NIC or port the way may well be shorter; between the same switches it is not.
    const auto& old_way = before->legs.front().route.hops;
    const auto& new_way = without->legs.front().route.hops;
    const auto cables = [&](const std::vector<LinkId>& way) {
      std::vector<LinkId> out;
      std::ranges::copy_if(way, std::back_inserter(out),
                           [&](LinkId l) { return fabric.link(l).tier == Tier::access; });
      return out;
    };
    if (cables(old_way) == cables(new_way)) RC_ASSERT(new_way.size() >= old_way.size());
    for (const Share& share : without->legs.front().route.shares) {
      RC_ASSERT(std::ranges::find(down, LinkId{share.resource}) == down.end());
    }
  }
  for (const LinkId l : down) routes.network().set_down(l, false);
  const auto after = routes.transfer(src, dst, options);
  RC_ASSERT(after.has_value() == before.has_value());
  if (after && src != dst)
    RC_ASSERT(after->legs.front().route.hops == before->legs.front().route.hops);
}

RC_GTEST_PROP(RandomFabrics, EveryGroupHasOrdersOverAllItsRanks, ()) {
  const Built built = random_valid_fabric();
  Routes routes(built.fabric);
  Placement placement(built.fabric, static_cast<std::uint64_t>(between(0, 99)));
  const auto count =
      static_cast<std::size_t>(between(1, static_cast<int>(built.fabric.gpus().size())));
  const auto gpus = placement.take(
      count, any_of({PlacementPolicy::packed, PlacementPolicy::spread, PlacementPolicy::random}),
      0);
  RC_ASSERT(gpus.has_value());
  const GroupShape shape = group_shape(routes, *gpus);
  RC_ASSERT(shape.ranks == count);
  std::set<std::uint32_t> in_servers;
  for (const auto& server : shape.servers) in_servers.insert(server.begin(), server.end());
  RC_ASSERT(in_servers.size() == count);
  RC_ASSERT(!shape.orders.empty());
  for (const auto& order : shape.orders) {
    RC_ASSERT(order.size() == count);
    RC_ASSERT((std::set<std::uint32_t>(order.begin(), order.end()) == in_servers));
  }
}

}  // namespace
}  // namespace weft::properties
