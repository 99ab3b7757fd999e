// SPDX-License-Identifier: Apache-2.0
// Collectives in switches on the fabric: planes of NVSwitches, or a tree of network switches.
#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "sim/core/check.hpp"
#include "sim/core/hash.hpp"
#include "sim/run/collective_ops.hpp"

namespace weft {
namespace {

bool reduces(CollectiveKind kind) {
  return kind != CollectiveKind::all_gather && kind != CollectiveKind::broadcast;
}

bool spreads_result(CollectiveKind kind) {
  return kind != CollectiveKind::reduce_scatter && kind != CollectiveKind::reduce;
}

bool in_one_server(const Fabric& fabric, std::span<const NodeId> gpus) {
  return std::ranges::all_of(gpus, [&](NodeId gpu) {
    return fabric.node(gpu).server == fabric.node(gpus.front()).server;
  });
}

}  // namespace

bool in_switches(const Schedule& schedule) {
  return !schedule.phases.empty() && !schedule.phases.front().channels.empty() &&
         schedule.phases.front().channels.front().form == Channel::Form::in_switch;
}

std::vector<SwitchTree> switch_trees(Routes& routes, std::span<const NodeId> gpus,
                                     const CollectiveOptions& options) {
  const Fabric& fabric = routes.fabric();
  std::vector<SwitchTree> trees;
  if (in_one_server(fabric, gpus)) {
    trees = scale_up_trees(routes, gpus);
  } else if (auto tree = network_tree(routes, gpus, options.gpudirect, mix64(options.hash))) {
    trees.push_back(std::move(*tree));
  }
  if (trees.empty()) {
    throw InputError(fmt::format(
        "error: no tree of switches joins {} and the other ranks\n    each rank needs one way to "
        "them: links to the same NVSwitch, or a NIC that is cabled to the network\n",
        fabric.name(gpus.front())));
  }
  return trees;
}

void CollectiveBuilder::join_network(const Schedule& schedule, std::span<const NodeId> gpus,
                                     const CollectiveOptions& options) {
  tree_.reset();
  if (in_switches(schedule) && !in_one_server(routes_.fabric(), gpus))
    tree_ = std::move(switch_trees(routes_, gpus, options).front());
}

// A sum crosses a link of the tree once; without one, what all ranks below sent or take does.
void CollectiveBuilder::load_network(const Channel& channel, const CollectiveRequest& request) {
  std::vector<double> up(tree_->switches.size(), 0), down(up);
  channel.for_each_edge([&](const Edge& edge) {
    const bool rises = edge.dst == kSwitch;
    const SwitchTree::Member& member = tree_->members[rises ? edge.src : edge.dst];
    (rises ? up : down)[member.at] += edge.weight;
  });
  for (std::size_t i = tree_->switches.size() - 1; i > 0; --i) {
    const SwitchTree::Switch& each = tree_->switches[i];
    up[each.parent] += up[i];
    down[each.parent] += down[i];
    const double rises = reduces(request.kind) ? 1 : up[i];
    const double falls = spreads_result(request.kind) ? 1 : down[i];
    if (rises > 0) accumulate(each.up.v, rises);
    if (falls > 0) accumulate(each.down.v, falls);
  }
}

OpId CollectiveBuilder::append_trees(const Schedule& schedule, const Channel& channel,
                                     std::span<const NodeId> gpus, const CollectiveOptions& options,
                                     OpId after) {
  std::vector<SwitchTree> trees =
      tree_ ? std::vector{*tree_} : switch_trees(routes_, gpus, options);
  const double size = schedule.request.size.value();
  const double scale = size > 0 ? channel.bytes.value() / size : 1;  // see in_switch
  // The network itself takes the latency of links and switches.
  const double steps = channel.form == Channel::Form::paced ? channel.local_steps
                                                            : channel.steps / (tree_ ? 1.0 : 2.0);
  const Time each = tree_ ? options.costs.network_step : options.costs.step;
  const Time software{static_cast<std::int64_t>(steps * static_cast<double>(each.ps) + 0.5)};
  const OpId done = workload_.add_barrier();
  std::int64_t left = schedule.request.size.count;
  for (std::size_t t = 0; t < trees.size(); ++t) {
    SwitchTree& tree = trees[t];
    tree.kind = schedule.request.kind;
    tree.root_rank = schedule.request.root;
    const bool last = t + 1 == trees.size();
    const std::int64_t bytes = last ? left : static_cast<std::int64_t>(size * tree.part);
    left -= bytes;
    start_channel(gpus.size());
    channel.for_each_edge([&](const Edge& edge) {
      const bool rises = edge.dst == kSwitch;
      const SwitchTree::Member& member = tree.members[rises ? edge.src : edge.dst];
      for (const LinkId link : rises ? member.up : member.down)
        accumulate(link.v, edge.weight * scale);
    });
    if (tree_) load_network(channel, schedule.request);
    const Bandwidth cap =
        channel.cap.bps > 0 ? scaled(channel.cap, tree.part / scale) : Bandwidth{0};
    const std::uint32_t way = workload_.add_way(take_shares(), software, cap);
    workload_.ways[way].tree = static_cast<std::uint32_t>(workload_.trees.size());
    workload_.trees.push_back(std::move(tree));
    const OpId op = workload_.add_flow(way, Bytes{bytes});
    workload_.operations[op].label = options.label;
    workload_.depend(after, op);
    workload_.depend(op, done);
  }
  return done;
}

}  // namespace weft
