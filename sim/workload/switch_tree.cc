// SPDX-License-Identifier: Apache-2.0
#include "sim/workload/switch_tree.hpp"

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "sim/fabric/routing.hpp"

namespace weft {
namespace {

// The links of a way one after the other, from where it begins; nullopt when it branches.
std::optional<std::vector<LinkId>> in_order(const Fabric& fabric, const Route& route, NodeId from) {
  std::map<NodeId, LinkId> next;
  std::size_t count = 0;
  for (const Share& share : route.shares) {
    if (share.resource >= fabric.link_count()) continue;
    ++count;
    if (!next.try_emplace(fabric.link(LinkId{share.resource}).from, share.resource).second)
      return std::nullopt;
  }
  std::vector<LinkId> out;
  for (auto at = next.find(from); at != next.end() && out.size() < count;
       at = next.find(fabric.link(out.back()).to))
    out.push_back(at->second);
  if (out.size() < count) return std::nullopt;
  return out;
}

// As near to the furthest leaf as any switch, then to all of them; one of those that are by hash.
std::optional<NodeId> root_of(Routes& routes, const std::set<NodeId>& leaves, std::uint64_t hash) {
  const Fabric& fabric = routes.fabric();
  std::vector<NodeId> best;
  std::pair<std::uint64_t, std::uint64_t> least;
  for (const NodeId candidate : fabric.switches()) {
    std::pair<std::uint64_t, std::uint64_t> far{0, 0};
    bool reaches = true;
    for (const NodeId leaf : leaves) {
      const std::uint16_t hops = routes.network().distances(leaf)[fabric.node(candidate).index];
      reaches = reaches && hops != NetworkRoutes::kFar;
      far = {std::max<std::uint64_t>(far.first, hops), far.second + hops};
    }
    if (!reaches || (!best.empty() && far > least)) continue;
    if (!best.empty() && far < least) best.clear();
    least = far;
    best.push_back(candidate);
  }
  if (best.empty()) return std::nullopt;
  return best[hash % best.size()];
}

// Joins a leaf to the tree along a shortest way from the root, as far as it is not there yet.
bool join(Routes& routes, NodeId leaf, std::uint64_t hash, SwitchTree& tree,
          std::map<NodeId, std::uint32_t>& known) {
  if (known.contains(leaf)) return true;
  const Fabric& fabric = routes.fabric();
  Route way;
  if (!routes.network().append(tree.switches.front().node, leaf, 0, hash, Routing::ecmp, way))
    return false;
  const auto links = in_order(fabric, way, tree.switches.front().node);
  if (!links) return false;
  for (const LinkId down : *links) {
    const Link& link = fabric.link(down);
    if (known.contains(link.to)) continue;
    SwitchTree::Switch added;
    added.node = link.to;
    added.parent = known.at(link.from);
    added.up = link.reverse;
    added.down = down;
    const SwitchTree::Switch& parent = tree.switches[added.parent];
    added.height = parent.height + fabric.link(added.up).delay + fabric.node(parent.node).latency;
    known.emplace(link.to, static_cast<std::uint32_t>(tree.switches.size()));
    tree.switches.push_back(added);
  }
  return true;
}

}  // namespace

std::vector<SwitchTree> scale_up_trees(const Routes& routes, std::span<const NodeId> gpus) {
  const Fabric& fabric = routes.fabric();
  std::map<NodeId, SwitchTree> planes;
  std::map<NodeId, double> rates;
  for (const NodeId gpu : gpus) {
    for (const LinkId up : fabric.out_links(gpu)) {
      const Link& link = fabric.link(up);
      if (fabric.node(link.to).kind != NodeKind::nvswitch) continue;
      SwitchTree& plane = planes[link.to];
      plane.members.push_back({0, {up}, {link.reverse}, link.delay + fabric.node(link.to).latency});
      const auto rate = static_cast<double>(link.rate.bps);
      const auto [known, fresh] = rates.try_emplace(link.to, rate);
      known->second = std::min(known->second, rate);
    }
  }
  double total = 0;
  for (const auto& [node, plane] : planes) {
    if (plane.members.size() == gpus.size()) total += rates[node];
  }
  std::vector<SwitchTree> out;
  for (auto& [node, plane] : planes) {
    if (plane.members.size() != gpus.size()) continue;
    plane.switches.push_back({.node = node});
    plane.reads_and_stores = true;
    plane.part = rates[node] / total;
    const auto& reduction = fabric.type_of(fabric.node(gpus.front()).server).reduction;
    if (reduction) plane.buffer = reduction->buffer;
    out.push_back(std::move(plane));
  }
  return out;
}

std::optional<SwitchTree> network_tree(Routes& routes, std::span<const NodeId> gpus, bool gpudirect,
                                       std::uint64_t hash) {
  const Fabric& fabric = routes.fabric();
  if (!fabric.network()) return std::nullopt;
  SwitchTree tree;
  std::set<NodeId> leaves;
  std::vector<NodeId> leaf_of;
  for (const NodeId gpu : gpus) {
    Routes::Door door{.gpudirect = gpudirect};
    const auto out = routes.attach(gpu, door);
    door.outward = false;
    const auto back = routes.attach(gpu, door);
    if (!out || !back || out->leaf != back->leaf) return std::nullopt;
    auto up = in_order(fabric, out->route, gpu);
    auto down = in_order(fabric, back->route, out->leaf);
    if (!up || !down) return std::nullopt;
    tree.members.push_back({0, std::move(*up), std::move(*down), out->route.latency});
    leaf_of.push_back(out->leaf);
    leaves.insert(out->leaf);
  }
  const auto root = root_of(routes, leaves, hash);
  if (!root) return std::nullopt;
  tree.switches.push_back({.node = *root});
  std::map<NodeId, std::uint32_t> known{{*root, 0}};
  for (std::size_t r = 0; r < gpus.size(); ++r) {
    if (!join(routes, leaf_of[r], hash, tree, known)) return std::nullopt;
    tree.members[r].at = known.at(leaf_of[r]);
  }
  const auto& reduction = fabric.network()->switch_model.reduction;
  if (reduction) tree.buffer = reduction->buffer;
  return tree;
}

}  // namespace weft
