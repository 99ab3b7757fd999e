// SPDX-License-Identifier: Apache-2.0
#include <utility>

#include "models/collectives/algorithms.hpp"
#include "models/collectives/hierarchical.hpp"
#include "models/collectives/rails.hpp"

namespace weft::collectives {
namespace {

struct Steps {
  Rails rails;

  bool inside() const { return rails.any_server_above(1); }
  bool across() const { return rails.count() > 1; }
  bool surplus() const { return across() && rails.any_server_above(rails.lanes); }
  std::uint32_t rounds() const { return inside() + across() + surplus(); }
  std::uint64_t unit(std::uint32_t from, std::uint32_t to) const {
    return std::uint64_t{from} * rails.server_of.size() + to;
  }

  void operator()(const StepSink& sink) const {
    std::uint32_t round = 0;
    if (inside()) to_lanes(round++, sink);
    if (across()) along_lanes(round++, sink);
    if (surplus()) from_heads(round++, sink);
  }

  // Inside a server: its own data to the end, the data of other servers to the head of the lane.
  void to_lanes(std::uint32_t round, const StepSink& sink) const {
    for (std::uint32_t m = 0; m < rails.count(); ++m) {
      const Ranks& server = rails.servers[m];
      for (const std::uint32_t src : server) {
        for (std::uint32_t j = 0; j < server.size(); ++j) {
          if (server[j] == src) continue;
          Runs runs(sink, {.round = round, .src = src, .dst = server[j]});
          for (std::uint32_t other = 0; other < rails.count(); ++other) {
            if (other == m) {
              runs.add(unit(src, server[j]));
            } else if (j < rails.lanes) {
              for (std::uint32_t k = j; k < rails.size_of(other); k += rails.lanes) {
                runs.add(unit(src, rails.servers[other][k]));
              }
            }
          }
        }
      }
    }
  }
  void along_lanes(std::uint32_t round, const StepSink& sink) const {
    for (std::uint32_t lane = 0; lane < rails.lanes; ++lane) {
      for (std::uint32_t from = 0; from < rails.count(); ++from) {
        for (std::uint32_t to = 0; to < rails.count(); ++to) {
          if (from == to) continue;
          Runs runs(sink, {.round = round,
                           .src = rails.head(from, lane),
                           .dst = rails.head(to, lane),
                           .channel = lane});
          for (const std::uint32_t src : rails.servers[from]) {
            for (std::uint32_t k = lane; k < rails.size_of(to); k += rails.lanes)
              runs.add(unit(src, rails.servers[to][k]));
          }
        }
      }
    }
  }
  void from_heads(std::uint32_t round, const StepSink& sink) const {
    for (std::uint32_t m = 0; m < rails.count(); ++m) {
      for (std::uint32_t j = rails.lanes; j < rails.size_of(m); ++j) {
        const std::uint32_t dst = rails.servers[m][j];
        Runs runs(sink, {.round = round,
                         .src = rails.head(m, j % rails.lanes),
                         .dst = dst,
                         .channel = j % rails.lanes});
        for (std::uint32_t src = 0; src < rails.server_of.size(); ++src) {
          if (rails.server_of[src] != m) runs.add(unit(src, dst));
        }
      }
    }
  }
};

Phase to_lanes_phase(const Rails& rails, Bytes size) {
  const std::uint64_t n = rails.server_of.size();
  std::vector<std::uint64_t> lane_ranks(rails.lanes, 0);
  for (std::uint32_t lane = 0; lane < rails.lanes; ++lane) {
    for (std::uint32_t m = 0; m < rails.count(); ++m) lane_ranks[lane] += rails.lane_size(m, lane);
  }
  Phase phase;
  for (std::uint32_t m = 0; m < rails.count(); ++m) {
    if (rails.size_of(m) == 1) continue;
    std::vector<CountedEdge> edges;
    for (const std::uint32_t src : rails.servers[m]) {
      for (std::uint32_t j = 0; j < rails.size_of(m); ++j) {
        const std::uint32_t dst = rails.servers[m][j];
        if (dst == src) continue;
        edges.push_back(
            {src, dst, 1 + (j < rails.lanes ? lane_ranks[j] - rails.lane_size(m, j) : 0)});
      }
    }
    phase.channels.push_back(counted(Channel::Form::direct, edges, size, n));
  }
  return phase;
}

Phase along_lanes_phase(const Rails& rails, Bytes size) {
  const std::uint64_t n = rails.server_of.size();
  const bool equal = !rails.any_server_above(rails.lanes);
  Phase phase;
  for (std::uint32_t lane = 0; lane < rails.lanes; ++lane) {
    if (equal) {
      Ranks heads;
      for (std::uint32_t m = 0; m < rails.count(); ++m) heads.push_back(rails.head(m, lane));
      phase.channels.push_back(all_pairs(std::move(heads), fraction(size, rails.lanes, n)));
      continue;
    }
    // Units between servers are a product, |from| x |to on the lane|: kept per server, multiplied per edge.
    struct End {
      std::uint32_t head;
      double sent, received;
    };
    std::vector<End> ends;
    for (std::uint32_t m = 0; m < rails.count(); ++m) {
      ends.push_back({rails.head(m, lane), static_cast<double>(rails.size_of(m)),
                      static_cast<double>(rails.lane_size(m, lane))});
    }
    Channel channel{.form = Channel::Form::direct, .bytes = fraction(size, rails.lanes, n)};
    const double scale = 1.0 / rails.lanes;
    auto generate = [ends = std::move(ends), scale](const EdgeSink& sink) {
      for (const End& from : ends) {
        for (const End& to : ends) {
          if (from.head != to.head) sink({from.head, to.head, from.sent * to.received * scale});
        }
      }
    };
    if (std::uint64_t{rails.count()} * (rails.count() - 1) > kStoredEdges) {
      channel.generate = std::move(generate);
    } else {
      generate([&channel](const Edge& edge) { channel.edges.push_back(edge); });
    }
    phase.channels.push_back(std::move(channel));
  }
  return phase;
}

Phase from_heads_phase(const Rails& rails, Bytes size) {
  const std::uint64_t n = rails.server_of.size();
  Phase phase;
  for (std::uint32_t m = 0; m < rails.count(); ++m) {
    if (rails.size_of(m) == rails.lanes) continue;
    std::vector<CountedEdge> edges;
    for (std::uint32_t j = rails.lanes; j < rails.size_of(m); ++j) {
      edges.push_back({rails.head(m, j % rails.lanes), rails.servers[m][j], n - rails.size_of(m)});
    }
    phase.channels.push_back(counted(Channel::Form::direct, edges, size, n));
  }
  return phase;
}

}  // namespace

Schedule build_hierarchical_all_to_all(const CollectiveRequest& request, const GroupShape& shape) {
  const std::uint64_t n = shape.ranks;
  Steps steps{Rails(shape)};
  Schedule schedule = start(kHierarchical.name, request, shape, n * n);
  if (n == 1) return schedule;
  if (steps.inside()) schedule.phases.push_back(to_lanes_phase(steps.rails, request.size));
  if (steps.across()) schedule.phases.push_back(along_lanes_phase(steps.rails, request.size));
  if (steps.surplus()) schedule.phases.push_back(from_heads_phase(steps.rails, request.size));
  schedule.rounds = steps.rounds();
  schedule.steps = std::move(steps);
  return schedule;
}

}  // namespace weft::collectives
