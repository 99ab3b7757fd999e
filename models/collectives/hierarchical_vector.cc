// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <utility>

#include "models/collectives/algorithms.hpp"
#include "models/collectives/hierarchical.hpp"
#include "models/collectives/rails.hpp"

namespace weft::collectives {
namespace {

// Lane l's data is cut into one piece per server, which the ring turns around: for all_reduce unit l M + q, for the others
// the parts of the ranks of server q on the lane.
struct Steps {
  Rails rails;
  CollectiveKind kind;

  bool whole() const { return kind == CollectiveKind::all_reduce; }
  bool reduces() const { return kind != CollectiveKind::all_gather; }
  bool gathers() const { return kind != CollectiveKind::reduce_scatter; }
  std::uint32_t m() const { return rails.count(); }
  std::uint64_t units() const {
    return whole() ? std::uint64_t{rails.lanes} * m() : rails.server_of.size();
  }
  std::uint64_t piece_units(std::uint32_t lane, std::uint32_t q) const {
    return whole() ? 1 : rails.lane_size(q, lane);
  }
  std::uint64_t lane_units(std::uint32_t lane) const {
    std::uint64_t sum = 0;
    for (std::uint32_t q = 0; q < m(); ++q) sum += piece_units(lane, q);
    return sum;
  }
  // Ranks that are no heads exist, and have a part of their own to hand over or to get.
  bool surplus() const { return !whole() && rails.any_server_above(rails.lanes); }
  bool inside() const { return rails.any_server_above(1); }

  template <class F>
  void for_piece(std::uint32_t lane, std::uint32_t q, const F& f) const {
    if (whole()) return f(std::uint64_t{lane} * m() + q);
    for (std::uint32_t j = lane; j < rails.size_of(q); j += rails.lanes)
      f(std::uint64_t{rails.servers[q][j]});
  }

  void operator()(const StepSink& sink) const {
    std::uint32_t round = 0;
    if (reduces() && inside()) in_server(round++, true, sink);
    if (!reduces() && surplus()) with_heads(round++, true, sink);
    for (std::uint32_t turn = 0; reduces() && turn + 1 < m(); ++turn)
      around(round++, turn, true, sink);
    for (std::uint32_t turn = 0; gathers() && turn + 1 < m(); ++turn)
      around(round++, turn, false, sink);
    if (gathers() && inside()) in_server(round++, false, sink);
    if (!gathers() && surplus()) with_heads(round++, false, sink);
  }

  // Every rank gives every head its lane's data, or every head gives its lane's data to every rank.
  void in_server(std::uint32_t round, bool in, const StepSink& sink) const {
    for (const Ranks& server : rails.servers) {
      for (std::uint32_t lane = 0; lane < rails.lanes; ++lane) {
        for (std::uint32_t j = 0; j < server.size(); ++j) {
          if (j == lane) continue;
          Runs runs(sink, {.round = round,
                           .src = in ? server[j] : server[lane],
                           .dst = in ? server[lane] : server[j],
                           .channel = lane,
                           .reduces = in});
          for (std::uint32_t q = 0; q < m(); ++q) {
            for_piece(lane, q, [&](std::uint64_t unit) {
              if (whole() || in || unit != server[j]) runs.add(unit);
            });
          }
        }
      }
    }
  }
  // The parts of surplus ranks to or from their heads.
  void with_heads(std::uint32_t round, bool in, const StepSink& sink) const {
    for (const Ranks& server : rails.servers) {
      for (std::uint32_t j = rails.lanes; j < server.size(); ++j) {
        const std::uint32_t head = server[j % rails.lanes];
        sink({.round = round,
              .src = in ? server[j] : head,
              .dst = in ? head : server[j],
              .unit = server[j],
              .channel = j % rails.lanes});
      }
    }
  }
  void around(std::uint32_t round, std::uint32_t turn, bool reducing, const StepSink& sink) const {
    for (std::uint32_t lane = 0; lane < rails.lanes; ++lane) {
      for (std::uint32_t p = 0; p < m(); ++p) {
        Runs runs(sink, {.round = round,
                         .src = rails.head(p, lane),
                         .dst = rails.head((p + 1) % m(), lane),
                         .channel = lane,
                         .reduces = reducing});
        for_piece(lane, (p + 2 * m() - turn - (reducing ? 1 : 0)) % m(),
                  [&runs](std::uint64_t unit) { runs.add(unit); });
      }
    }
  }

  std::uint32_t turns() const { return (m() - 1) * (whole() ? 2 : 1); }
  std::uint32_t rounds() const {
    return turns() + (reduces() && inside()) + (!reduces() && surplus()) + (gathers() && inside()) +
           (!gathers() && surplus());
  }
};

Phase in_server_phase(const Steps& steps, bool in, Bytes size) {
  Phase phase;
  std::vector<std::uint64_t> lane_units;
  for (std::uint32_t lane = 0; lane < steps.rails.lanes; ++lane)
    lane_units.push_back(steps.lane_units(lane));
  for (const Ranks& server : steps.rails.servers) {
    if (server.size() == 1) continue;
    std::vector<CountedEdge> edges;
    for (std::uint32_t lane = 0; lane < steps.rails.lanes; ++lane) {
      for (std::uint32_t j = 0; j < server.size(); ++j) {
        if (j == lane) continue;
        const bool has_own = !steps.whole() && !in && j % steps.rails.lanes == lane;
        edges.push_back({in ? server[j] : server[lane], in ? server[lane] : server[j],
                         lane_units[lane] - (has_own ? 1 : 0)});
      }
    }
    phase.channels.push_back(counted(Channel::Form::direct, edges, size, steps.units()));
  }
  return phase;
}

Phase with_heads_phase(const Steps& steps, bool in, Bytes size) {
  Phase phase;
  for (const Ranks& server : steps.rails.servers) {
    if (server.size() == steps.rails.lanes) continue;
    std::vector<CountedEdge> edges;
    for (std::uint32_t j = steps.rails.lanes; j < server.size(); ++j) {
      const std::uint32_t head = server[j % steps.rails.lanes];
      edges.push_back({in ? server[j] : head, in ? head : server[j], 1});
    }
    phase.channels.push_back(counted(Channel::Form::direct, edges, size, steps.units()));
  }
  return phase;
}

Phase ring_phase(const Steps& steps, const CollectiveRequest& request) {
  Phase phase;
  const std::uint32_t m = steps.m();
  for (std::uint32_t lane = 0; lane < steps.rails.lanes; ++lane) {
    const std::uint64_t all = steps.lane_units(lane);
    std::vector<CountedEdge> edges;
    std::uint64_t largest = 0;
    for (std::uint32_t p = 0; p < m; ++p) {
      // Collecting, server p never sends its own piece; spreading, never that of the next one.
      std::uint64_t units = 0;
      if (steps.reduces()) units += all - steps.piece_units(lane, p);
      if (steps.gathers()) units += all - steps.piece_units(lane, (p + 1) % m);
      edges.push_back({steps.rails.head(p, lane), steps.rails.head((p + 1) % m, lane), units});
      largest = std::max(largest, steps.piece_units(lane, p));
    }
    Channel channel = counted(Channel::Form::ring, edges, request.size, steps.units());
    channel.chunk = chunk_of(request, fraction(request.size, largest, steps.units()));
    channel.steps = steps.turns();
    phase.channels.push_back(std::move(channel));
  }
  return phase;
}

}  // namespace

Schedule build_hierarchical_vector(const CollectiveRequest& request, const GroupShape& shape) {
  Steps steps{Rails(shape), request.kind};
  Schedule schedule = start(kHierarchical.name, request, shape, steps.units());
  if (shape.ranks == 1) return schedule;
  if (steps.reduces() && steps.inside())
    schedule.phases.push_back(in_server_phase(steps, true, request.size));
  if (!steps.reduces() && steps.surplus())
    schedule.phases.push_back(with_heads_phase(steps, true, request.size));
  if (steps.m() > 1) schedule.phases.push_back(ring_phase(steps, request));
  if (steps.gathers() && steps.inside())
    schedule.phases.push_back(in_server_phase(steps, false, request.size));
  if (!steps.gathers() && steps.surplus())
    schedule.phases.push_back(with_heads_phase(steps, false, request.size));
  schedule.rounds = steps.rounds();
  schedule.steps = std::move(steps);
  return schedule;
}

}  // namespace weft::collectives
