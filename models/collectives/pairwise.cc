// SPDX-License-Identifier: Apache-2.0
// Pairwise: all_to_all in N - 1 rounds, each a permutation: every rank sends to one and receives from one.
//
// Partner:  rank XOR round when N is a power of two (an exchange of pairs), else rank + round, modulo N.
// Traffic:  that of direct; never two senders to one receiver in a round.
// Phases:   none: what a round takes depends on the pairs it meets.
// Reference: Thakur, Rabenseifner and Gropp, "Optimization of collective communication operations in MPICH", IJHPCA 2005.
#include "models/collectives/algorithms.hpp"
#include "models/collectives/parts.hpp"

namespace weft::collectives {
namespace {

struct Steps {
  std::uint32_t n;

  void operator()(const StepSink& sink) const {
    const bool exchange = (n & (n - 1)) == 0;
    for (std::uint32_t round = 1; round < n; ++round) {
      for (std::uint32_t src = 0; src < n; ++src) {
        const std::uint32_t dst = exchange ? src ^ round : (src + round) % n;
        sink({.round = round - 1, .src = src, .dst = dst, .unit = std::uint64_t{src} * n + dst});
      }
    }
  }
};

Schedule build(const CollectiveRequest& request, const GroupShape& shape) {
  const std::uint32_t n = shape.ranks;
  Schedule schedule = start(kPairwise.name, request, shape, std::uint64_t{n} * n);
  if (n == 1) return schedule;
  schedule.rounds = n - 1;
  schedule.steps = Steps{n};
  return schedule;
}

}  // namespace

const AlgorithmEntry kPairwise{
    .name = "pairwise",
    .summary = "all_to_all as N - 1 permutations, one partner at a time",
    .reference = "Thakur, Rabenseifner and Gropp, IJHPCA 2005",
    .supports = [](CollectiveKind kind,
                   const GroupShape&) { return kind == CollectiveKind::all_to_all; },
    .build = build};

}  // namespace weft::collectives
