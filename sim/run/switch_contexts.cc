// SPDX-License-Identifier: Apache-2.0
// Switches reduce for so many groups at a time; a group that finds no context left does without.
#include <fmt/format.h>

#include "sim/run/jobs.hpp"

namespace weft {

// A group holds a context in each of its switches from the beginning of the run to its end, as a communicator does.
bool JobBuilder::take_contexts(const GroupPlan& group, const CollectiveOptions& options,
                               JobPlan& job) {
  const ServerType& type = fabric_.type_of(fabric_.node(group.gpus.front()).server);
  std::vector<NodeId> needed;
  for (const SwitchTree& tree : switch_trees(routes_, group.gpus, options)) {
    for (const SwitchTree::Switch& each : tree.switches) needed.push_back(each.node);
  }
  const bool inside = fabric_.node(needed.front()).kind == NodeKind::nvswitch;
  const auto& reduction = inside ? type.reduction : fabric_.network()->switch_model.reduction;
  if (!reduction || reduction->contexts == 0) return true;  // no number is known
  for (const NodeId node : needed) {
    if (contexts_[node] < reduction->contexts) continue;
    job.notes.push_back(
        fmt::format("{} has no context left ({} taken): the group of {} runs a ring",
                    fabric_.name(node), reduction->contexts, fabric_.name(group.gpus.front())));
    return false;
  }
  for (const NodeId node : needed) ++contexts_[node];
  return true;
}

}  // namespace weft
