// SPDX-License-Identifier: Apache-2.0
// Direct: every piece goes from where it is to where it is wanted in one hop, all at once.
//
// Data:     all_to_all, all_gather, reduce_scatter: N (N - 1) pairs, 1 / N of the vector each. all_reduce: reduce_scatter,
//           then all_gather. gather, scatter: N - 1 pairs with the root, 1 / N each. broadcast, reduce: N - 1 pairs with the
//           root, the whole vector each. send_recv: rank r to rank (r + 1) % N.
// Traffic:  least possible for a rank of the all-kinds; the root's link carries N - 1 times the vector in broadcast, reduce.
// Rounds:   1; all_reduce 2. `channels` and `chunk` change nothing: no data is forwarded.
// Reference: Thakur, Rabenseifner and Gropp, "Optimization of collective communication operations in MPICH", IJHPCA 2005.
#include <utility>

#include "models/collectives/algorithms.hpp"
#include "models/collectives/parts.hpp"

namespace weft::collectives {
namespace {

void spread(std::uint32_t n, std::uint32_t round, bool reducing, const StepSink& sink) {
  for (std::uint32_t src = 0; src < n; ++src) {
    for (std::uint32_t dst = 0; dst < n; ++dst) {
      if (src != dst) {
        sink({.round = round,
              .src = src,
              .dst = dst,
              .unit = reducing ? dst : src,
              .reduces = reducing});
      }
    }
  }
}

struct AllPairs {
  CollectiveKind kind;
  std::uint32_t n;

  void operator()(const StepSink& sink) const {
    if (kind == CollectiveKind::all_to_all) {
      for (std::uint32_t src = 0; src < n; ++src) {
        for (std::uint32_t dst = 0; dst < n; ++dst) {
          if (src != dst) sink({.src = src, .dst = dst, .unit = std::uint64_t{src} * n + dst});
        }
      }
      return;
    }
    std::uint32_t round = 0;
    if (kind != CollectiveKind::all_gather) spread(n, round++, true, sink);
    if (kind != CollectiveKind::reduce_scatter) spread(n, round, false, sink);
  }
};

struct WithRoot {
  CollectiveKind kind;
  std::uint32_t n, root;

  bool outward() const {
    return kind == CollectiveKind::broadcast || kind == CollectiveKind::scatter;
  }
  bool whole() const { return kind == CollectiveKind::broadcast || kind == CollectiveKind::reduce; }

  void operator()(const StepSink& sink) const {
    for (std::uint32_t r = 0; r < n; ++r) {
      if (r == root) continue;
      sink({.src = outward() ? root : r,
            .dst = outward() ? r : root,
            .unit = whole() ? 0 : r,
            .reduces = kind == CollectiveKind::reduce});
    }
  }
};

struct Neighbours {
  std::uint32_t n;

  void operator()(const StepSink& sink) const {
    for (std::uint32_t r = 0; r < n; ++r) sink({.src = r, .dst = (r + 1) % n, .unit = r});
  }
};

bool supports(CollectiveKind, const GroupShape&) { return true; }

Schedule build(const CollectiveRequest& request, const GroupShape& shape) {
  using enum CollectiveKind;
  const std::uint32_t n = shape.ranks;
  const bool whole = request.kind == broadcast || request.kind == reduce;
  const std::uint64_t units = request.kind == all_to_all ? std::uint64_t{n} * n : whole ? 1 : n;
  Schedule schedule = start(kDirect.name, request, shape, units);
  if (n == 1) return schedule;
  schedule.rounds = 1;
  const auto add_phase = [&schedule](Channel channel) {
    Phase phase;
    phase.channels.push_back(std::move(channel));
    schedule.phases.push_back(std::move(phase));
  };
  switch (request.kind) {
    case all_reduce:
      add_phase(all_pairs(n, fraction(request.size, 1, n)));
      schedule.rounds = 2;
      [[fallthrough]];
    case all_to_all:
    case all_gather:
    case reduce_scatter:
      add_phase(all_pairs(n, fraction(request.size, 1, n)));
      schedule.steps = AllPairs{request.kind, n};
      break;
    case broadcast:
    case reduce:
    case gather:
    case scatter: {
      const WithRoot steps{request.kind, n, request.root};
      Channel channel{.form = Channel::Form::direct,
                      .bytes = steps.whole() ? request.size : fraction(request.size, 1, n)};
      for (std::uint32_t r = 0; r < n; ++r) {
        if (r == request.root) continue;
        channel.edges.push_back(steps.outward() ? Edge{request.root, r, 1}
                                                : Edge{r, request.root, 1});
      }
      add_phase(std::move(channel));
      schedule.steps = steps;
      break;
    }
    case send_recv: {
      Channel channel{.form = Channel::Form::direct, .bytes = request.size};
      for (std::uint32_t r = 0; r < n; ++r) channel.edges.push_back({r, (r + 1) % n, 1});
      add_phase(std::move(channel));
      schedule.steps = Neighbours{n};
      break;
    }
  }
  return schedule;
}

}  // namespace

const AlgorithmEntry kDirect{.name = "direct",
                             .summary = "every pair that has something to exchange does so at once",
                             .reference = "Thakur, Rabenseifner and Gropp, IJHPCA 2005",
                             .supports = supports,
                             .build = build};

}  // namespace weft::collectives
