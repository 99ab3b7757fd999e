// SPDX-License-Identifier: Apache-2.0
// In the network (SHARP and its kin): the switches between the servers form a tree over the ranks. Every rank sends its vector
// once, switches add what comes from below and pass one sum on, the root multicasts the result down.
//
// Edges, S the vector, n ranks (over the rank's NIC to the root of the tree and back; ranks share the links of the tree, see
// SwitchTree):
//
//   kind            rank -> switch    switch -> rank
//   all_reduce      S                 S
//   reduce_scatter  S                 S/n
//   all_gather      S/n               S, its own part included
//   broadcast       S from the root   S, to the root as well
//   reduce          S                 S to the root
//
// Against 2 S (n - 1) / n each way of a ring. A vector goes up every link of the tree once whatever n is.
// Rounds:   2, pipelined: one phase, one channel, steps = 2 ways between a rank and the root.
// Cap:      shape.network_rate, what a port of a switch reduces.
// Reference: Graham et al., "Scalable Hierarchical Aggregation Protocol (SHArP)", COMHPC 2016.
#include <utility>

#include "models/collectives/algorithms.hpp"
#include "models/collectives/parts.hpp"
#include "models/collectives/switch_work.hpp"

namespace weft::collectives {
namespace {

struct Steps : SwitchWork {
  // Of its rank's own part, or of the root's alone, else of the whole vector.
  bool sends(std::uint32_t r) const { return sums() || !whole() || r == root; }
  bool takes(std::uint32_t r) const { return to_all() || !whole() || r == root; }

  void operator()(const StepSink& sink) const {
    const std::uint32_t units = whole() ? 1 : n;
    for (std::uint32_t r = 0; r < n; ++r) {
      if (!sends(r)) continue;
      const bool own = !sums() && !whole();
      sink({.round = 0,
            .src = r,
            .dst = kSwitch,
            .unit_count = own ? 1 : units,
            .unit = own ? r : 0,
            .reduces = sums()});
    }
    for (std::uint32_t r = 0; r < n; ++r) {
      if (!takes(r)) continue;
      const bool own = !to_all() && !whole();
      sink({.round = 1,
            .src = kSwitch,
            .dst = r,
            .unit_count = own ? 1 : units,
            .unit = own ? r : 0});
    }
  }
};

bool supports(CollectiveKind kind, const GroupShape& shape) {
  return shape.network_reduces && switches_do(kind);
}

Schedule build(const CollectiveRequest& request, const GroupShape& shape) {
  const std::uint32_t n = shape.ranks;
  const Steps steps{{request.kind, n, request.root}};
  Schedule schedule = start(kInNetwork.name, request, shape, steps.whole() ? 1 : n);
  if (n == 1) return schedule;
  Channel channel{.form = Channel::Form::in_switch, .bytes = request.size};
  const double part = steps.whole() ? 1 : 1.0 / n;
  for (std::uint32_t r = 0; r < n; ++r) {
    if (steps.sends(r)) channel.edges.push_back({r, kSwitch, steps.sums() ? 1 : part});
    if (steps.takes(r)) channel.edges.push_back({kSwitch, r, steps.to_all() ? 1 : part});
  }
  channel.chunk = chunk_of(request, channel.bytes);
  channel.steps = 2;
  channel.cap = shape.network_rate;
  set_only_channel(schedule, std::move(channel));
  schedule.steps = steps;
  return schedule;
}

}  // namespace

const AlgorithmEntry kInNetwork{
    .name = "in_network",
    .summary =
        "a tree of network switches adds and multicasts (SHARP); the vector once up and "
        "once down",
    .reference = "Graham et al., COMHPC 2016",
    .supports = supports,
    .build = build};

}  // namespace weft::collectives
