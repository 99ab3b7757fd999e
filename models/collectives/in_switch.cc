// SPDX-License-Identifier: Apache-2.0
// In the switch (NVLS and its kin): a rank asks the switch for the sum of all ranks' copies of its part (multimem.ld_reduce)
// and stores a result through the switch into all ranks (multimem.st). Rank r works on part r, all ranks at once.
//
// Edges, S the vector, n ranks (both ways over the rank's own links to the switch):
//
//   kind            rank -> switch                     switch -> rank
//   all_reduce      S for the sums + S/n stored        S/n sum of its part + S stored by all
//   reduce_scatter  S                                  S/n
//   all_gather      S/n                                S
//   broadcast       S from the root                    S, to the root as well
//   reduce          S                                  S to the root
//
// The read of a part fetches it from every rank, the reader included, and a multicast store arrives at every rank, the
// writer included: hence S (1 + 1/n) each way for all_reduce, not S, and not 2 S (n - 1) / n as for a ring.
// Rounds:   4 for all_reduce, else 2; pipelined in truth: one phase, one channel, steps = rounds half paths.
// Cap:      shape.switch_rate, the reduction's limit per rank.
// Reference: Klenk, Jiang, Thorson and Dennison, "An in-network architecture for accelerating shared-memory multiprocessor
//           collectives", ISCA 2020.
#include <utility>

#include "models/collectives/algorithms.hpp"
#include "models/collectives/parts.hpp"
#include "models/collectives/switch_work.hpp"

namespace weft::collectives {
namespace {

struct Steps : SwitchWork {
  bool active(std::uint32_t r) const { return !whole() || r == root; }

  void operator()(const StepSink& sink) const {
    const std::uint32_t units = whole() ? 1 : n;
    const auto part = [this](std::uint32_t r) { return whole() ? 0 : r; };
    std::uint32_t round = 0;
    if (sums()) {
      for (std::uint32_t r = 0; r < n; ++r) {
        sink({.round = round, .src = r, .dst = kSwitch, .unit_count = units, .reduces = true});
      }
      ++round;
      for (std::uint32_t r = 0; r < n; ++r) {
        if (active(r)) sink({.round = round, .src = kSwitch, .dst = r, .unit = part(r)});
      }
      ++round;
    }
    if (to_all()) {
      for (std::uint32_t r = 0; r < n; ++r) {
        if (active(r)) sink({.round = round, .src = r, .dst = kSwitch, .unit = part(r)});
      }
      ++round;
      for (std::uint32_t r = 0; r < n; ++r)
        sink({.round = round, .src = kSwitch, .dst = r, .unit_count = units});
    }
  }
};

bool supports(CollectiveKind kind, const GroupShape& shape) {
  return shape.switch_reduces && switches_do(kind);
}

Schedule build(const CollectiveRequest& request, const GroupShape& shape) {
  const std::uint32_t n = shape.ranks;
  const Steps steps{{request.kind, n, request.root}};
  Schedule schedule = start(kInSwitch.name, request, shape, steps.whole() ? 1 : n);
  if (n == 1) return schedule;
  const bool both = steps.sums() && steps.to_all();
  Channel channel{.form = Channel::Form::in_switch,
                  .bytes = both ? fraction(request.size, n + 1, n) : request.size};
  const double part = both ? 1 : 1.0 / n;  // of channel.bytes, where a rank moves only its own part
  for (std::uint32_t r = 0; r < n; ++r) {
    const double own = steps.whole() ? (r == request.root ? 1 : 0) : part;
    const double up = steps.sums() ? 1 : own;
    const double down = steps.to_all() ? 1 : own;
    if (up > 0) channel.edges.push_back({r, kSwitch, up});
    if (down > 0) channel.edges.push_back({kSwitch, r, down});
  }
  channel.chunk = chunk_of(request, channel.bytes);
  channel.steps = both ? 4 : 2;
  channel.cap = shape.switch_rate;
  set_only_channel(schedule, std::move(channel));
  schedule.steps = steps;
  return schedule;
}

}  // namespace

const AlgorithmEntry kInSwitch{
    .name = "in_switch",
    .summary = "the switch adds and multicasts; each rank moves the vector about once",
    .reference = "Klenk, Jiang, Thorson and Dennison, ISCA 2020",
    .supports = supports,
    .build = build};

}  // namespace weft::collectives
