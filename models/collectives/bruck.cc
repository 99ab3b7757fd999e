// SPDX-License-Identifier: Apache-2.0
// Bruck: few rounds for small messages, for any N.
//
// Data:     all_gather: in round k each rank sends the first 2^k blocks it holds, counted from its own, to the rank 2^k
//           before it. all_to_all: in round k a block whose way (d - s mod N) has bit k moves 2^k ranks on.
// Traffic:  all_gather least possible. all_to_all: a block moves once per set bit of its way: about log2(N) / 2 times.
// Rounds:   ceil(log2 N).
// Phases:   none.
// Reference: Bruck, Ho, Kipnis, Upfal and Weathersby, "Efficient algorithms for all-to-all communications in multiport
//           message-passing systems", IEEE TPDS 1997.
#include <algorithm>

#include "models/collectives/algorithms.hpp"
#include "models/collectives/parts.hpp"

namespace weft::collectives {
namespace {

struct Steps {
  CollectiveKind kind;
  std::uint32_t n;

  void operator()(const StepSink& sink) const {
    for (std::uint32_t k = 0; k < ceil_log2(n); ++k) {
      kind == CollectiveKind::all_gather ? gather(k, sink) : exchange(k, sink);
    }
  }
  void gather(std::uint32_t k, const StepSink& sink) const {
    const std::uint32_t hop = 1U << k;
    const std::uint32_t blocks = std::min(hop, n - hop);
    for (std::uint32_t src = 0; src < n; ++src) {
      const std::uint32_t dst = (src + n - hop) % n;
      const std::uint32_t straight = std::min(blocks, n - src);  // blocks before the numbers wrap
      sink({.round = k, .src = src, .dst = dst, .unit_count = straight, .unit = src});
      if (straight < blocks)
        sink({.round = k, .src = src, .dst = dst, .unit_count = blocks - straight, .unit = 0});
    }
  }
  void exchange(std::uint32_t k, const StepSink& sink) const {
    const std::uint32_t hop = 1U << k;
    for (std::uint32_t s = 0; s < n; ++s) {
      for (std::uint32_t way = hop; way < n; ++way) {
        if ((way & hop) == 0) continue;
        const std::uint32_t at = (s + (way & (hop - 1))) % n;
        sink({.round = k,
              .src = at,
              .dst = (at + hop) % n,
              .unit = std::uint64_t{s} * n + (s + way) % n});
      }
    }
  }
};

Schedule build(const CollectiveRequest& request, const GroupShape& shape) {
  const std::uint32_t n = shape.ranks;
  Schedule schedule = start(kBruck.name, request, shape,
                            request.kind == CollectiveKind::all_gather ? n : std::uint64_t{n} * n);
  if (n == 1) return schedule;
  schedule.rounds = ceil_log2(n);
  schedule.steps = Steps{request.kind, n};
  return schedule;
}

}  // namespace

const AlgorithmEntry kBruck{
    .name = "bruck",
    .summary = "all_gather and all_to_all in log2 N rounds for small messages",
    .reference = "Bruck et al., IEEE TPDS 1997",
    .supports =
        [](CollectiveKind kind, const GroupShape&) {
          return kind == CollectiveKind::all_gather || kind == CollectiveKind::all_to_all;
        },
    .build = build};

}  // namespace weft::collectives
