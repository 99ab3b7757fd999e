// SPDX-License-Identifier: Apache-2.0
// Recursive halving and doubling: partners at distances N / 2, N / 4 ... 1 exchange halves of what they still care for.
//
// Data:     reduce_scatter: log2 N rounds, each rank sends the half it gives up and adds the half it keeps.
//           all_gather: the same backwards, doubling what is held. all_reduce: one after the other.
// Any N:    the largest power of two p of ranks takes part; each of the N - p others is folded into a neighbour: it hands
//           its data over in a first round and gets its result in a last one (all in ranks 0 .. 2 (N - p) - 1, odd ones act).
// Traffic:  as little as a ring for the ranks that take part when N = p; a folded rank costs its neighbour the vector again.
// Rounds:   all_reduce 2 log2 p + 2 (N != p); reduce_scatter, all_gather log2 p + 2 (N != p).
// Phases:   none. Partners change from round to round: no channel moves at one rate.
// Reference: Thakur, Rabenseifner and Gropp, "Optimization of collective communication operations in MPICH", IJHPCA 2005.
#include <utility>

#include "models/collectives/algorithms.hpp"
#include "models/collectives/parts.hpp"

namespace weft::collectives {
namespace {

struct Steps {
  CollectiveKind kind;
  std::uint32_t n;
  std::uint32_t p = 1U << floor_log2(n);  // ranks that take part
  std::uint32_t folded = n - p;

  bool whole() const { return kind == CollectiveKind::all_reduce; }
  std::uint32_t units() const { return whole() ? p : n; }
  std::uint32_t rounds() const { return (whole() ? 2 : 1) * floor_log2(n) + (folded > 0 ? 2 : 0); }
  std::uint32_t rank(std::uint32_t i) const { return i < folded ? 2 * i + 1 : i + folded; }
  // Participant i cares for units [first(i), first(i + 1)): its own, and those of the rank folded into it.
  std::uint32_t first(std::uint32_t i) const {
    return whole() ? i : i < folded ? 2 * i : i + folded;
  }

  void operator()(const StepSink& sink) const {
    std::uint32_t round = 0;
    // Blocks [low, high) of participant `from` to participant `to`.
    const auto exchange = [&](std::uint32_t from, std::uint32_t to, std::uint32_t low,
                              std::uint32_t high, bool reduces) {
      sink({.round = round,
            .src = rank(from),
            .dst = rank(to),
            .unit_count = first(high) - first(low),
            .unit = first(low),
            .reduces = reduces});
    };
    // Between a folded rank and its participant.
    const auto fold = [&](std::uint32_t i, bool in, std::uint32_t unit, std::uint32_t count) {
      if (count == 0) return;
      const std::uint32_t away = 2 * i, active = 2 * i + 1;
      sink({.round = round,
            .src = in ? away : active,
            .dst = in ? active : away,
            .unit_count = count,
            .unit = unit,
            .reduces = in && kind != CollectiveKind::all_gather});
    };
    const bool gathers_only = kind == CollectiveKind::all_gather;
    for (std::uint32_t i = 0; i < folded; ++i)
      gathers_only ? fold(i, true, 2 * i, 1) : fold(i, true, 0, units());
    if (folded > 0) ++round;
    if (!gathers_only) {
      for (std::uint32_t distance = p / 2; distance > 0; distance /= 2, ++round) {
        for (std::uint32_t i = 0; i < p; ++i) {
          const std::uint32_t low =
              (i ^ distance) & ~(distance - 1);  // the half that the partner keeps
          exchange(i, i ^ distance, low, low + distance, true);
        }
      }
    }
    if (kind != CollectiveKind::reduce_scatter) {
      for (std::uint32_t distance = 1; distance < p; distance *= 2, ++round) {
        for (std::uint32_t i = 0; i < p; ++i) {
          const std::uint32_t low = i & ~(distance - 1);
          exchange(i, i ^ distance, low, low + distance, false);
        }
      }
    }
    for (std::uint32_t i = 0; i < folded; ++i) {
      if (whole()) {
        fold(i, false, 0, units());
      } else if (gathers_only) {
        fold(i, false, 0, 2 * i);
        fold(i, false, 2 * i + 1, n - 2 * i - 1);
      } else {
        fold(i, false, 2 * i, 1);
      }
    }
  }
};

bool supports(CollectiveKind kind, const GroupShape&) {
  using enum CollectiveKind;
  return kind == all_reduce || kind == all_gather || kind == reduce_scatter;
}

Schedule build(const CollectiveRequest& request, const GroupShape& shape) {
  const Steps steps{request.kind, shape.ranks};
  Schedule schedule = start(kHalvingDoubling.name, request, shape, steps.units());
  if (shape.ranks == 1) return schedule;
  schedule.rounds = steps.rounds();
  schedule.steps = steps;
  return schedule;
}

}  // namespace

const AlgorithmEntry kHalvingDoubling{
    .name = "halving_doubling",
    .summary = "partners at halving, then doubling distances exchange halves; logarithmic rounds",
    .reference = "Thakur, Rabenseifner and Gropp, IJHPCA 2005",
    .supports = supports,
    .build = build};

}  // namespace weft::collectives
