// SPDX-License-Identifier: Apache-2.0
// Binomial tree: in every round each rank that has the data sends to one that has not.
//
// Ranks:    numbered from the root on, modulo N: v = rank - root. v sends to v + d for d = N' / 2, N' / 4 ... 1 where d is
//           below the lowest set bit of v (N' the next power of two). reduce and gather run backwards.
// Data:     broadcast, reduce: the whole vector on every edge. scatter, gather: the parts of the subtree.
// Traffic:  the root moves log2 N vectors in broadcast and reduce; least possible at the root in scatter and gather.
// Rounds:   ceil(log2 N).
// Phases:   none: nothing is pipelined, an edge is used in one round only.
// Reference: Thakur, Rabenseifner and Gropp, "Optimization of collective communication operations in MPICH", IJHPCA 2005.
#include <algorithm>

#include "models/collectives/algorithms.hpp"
#include "models/collectives/parts.hpp"

namespace weft::collectives {
namespace {

struct Steps {
  CollectiveKind kind;
  std::uint32_t n, root;

  bool outward() const {
    return kind == CollectiveKind::broadcast || kind == CollectiveKind::scatter;
  }
  bool whole() const { return kind == CollectiveKind::broadcast || kind == CollectiveKind::reduce; }

  void operator()(const StepSink& sink) const {
    const std::uint32_t rounds = ceil_log2(n);
    for (std::uint32_t round = 0; round < rounds; ++round) {
      const std::uint32_t d = 1U << (outward() ? rounds - 1 - round : round);
      for (std::uint32_t v = 0; v + d < n; v += 2 * d) {
        const std::uint32_t near = (v + root) % n, far = (v + d + root) % n;
        Step step{.round = round,
                  .src = outward() ? near : far,
                  .dst = outward() ? far : near,
                  .reduces = kind == CollectiveKind::reduce};
        if (!whole()) {
          const std::uint32_t parts = std::min(d, n - v - d);       // of the subtree below v + d
          const std::uint32_t straight = std::min(parts, n - far);  // before the ranks wrap
          step.unit = far;
          step.unit_count = straight;
          sink(step);
          if (straight == parts) continue;
          step.unit = 0;
          step.unit_count = parts - straight;
        }
        sink(step);
      }
    }
  }
};

Schedule build(const CollectiveRequest& request, const GroupShape& shape) {
  const Steps steps{request.kind, shape.ranks, request.root};
  Schedule schedule = start(kBinomial.name, request, shape, steps.whole() ? 1 : shape.ranks);
  if (shape.ranks == 1) return schedule;
  schedule.rounds = ceil_log2(shape.ranks);
  schedule.steps = steps;
  return schedule;
}

}  // namespace

const AlgorithmEntry kBinomial{
    .name = "binomial",
    .summary = "broadcast, reduce, gather and scatter along a binomial tree, log2 N rounds",
    .reference = "Thakur, Rabenseifner and Gropp, IJHPCA 2005",
    .supports =
        [](CollectiveKind kind, const GroupShape&) {
          using enum CollectiveKind;
          return kind == broadcast || kind == reduce || kind == gather || kind == scatter;
        },
    .build = build};

}  // namespace weft::collectives
