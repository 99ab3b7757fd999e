// SPDX-License-Identifier: Apache-2.0
#include <utility>

#include "models/collectives/algorithms.hpp"
#include "models/collectives/hierarchical.hpp"
#include "models/collectives/rails.hpp"

namespace weft::collectives {
namespace {

// Said for broadcast; reduce runs every edge backwards and every round from the end.
struct Steps {
  Rails rails;  // the root is a head
  std::uint32_t root, pieces;
  bool reduces;
  std::vector<std::uint32_t> chain{};  // servers, the root's first

  std::uint32_t m() const { return rails.count(); }
  bool scatters() const { return rails.lanes > 1; }
  std::uint32_t middle() const { return m() > 1 ? m() - 2 + pieces : 0; }
  std::uint32_t rounds() const { return scatters() + middle() + spreads(); }
  bool spreads() const { return rails.any_server_above(1); }

  template <class F>  // f(edge from, edge to, lane)
  void for_scatter(const F& f) const {
    const std::uint32_t server = rails.server_of[root];
    for (std::uint32_t lane = 0; lane < rails.lanes; ++lane) {
      if (rails.head(server, lane) != root) f(root, rails.head(server, lane), lane);
    }
  }
  template <class F>
  void for_spread(std::uint32_t server, const F& f) const {
    for (std::uint32_t lane = 0; lane < rails.lanes; ++lane) {
      for (std::uint32_t j = 0; j < rails.size_of(server); ++j) {
        // The root has all of it to give, so it need not get it; but it adds its own to every lane of a reduce.
        if (j != lane && (reduces || rails.servers[server][j] != root)) {
          f(rails.head(server, lane), rails.servers[server][j], lane);
        }
      }
    }
  }

  void operator()(const StepSink& sink) const {
    std::uint32_t round = 0;
    const auto whole_lane = [&](std::uint32_t from, std::uint32_t to, std::uint32_t lane,
                                bool adds) {
      sink({.round = round,
            .src = reduces ? to : from,
            .dst = reduces ? from : to,
            .unit_count = pieces,
            .unit = std::uint64_t{lane} * pieces,
            .channel = lane,
            .reduces = adds});
    };
    const auto scatter = [&] {
      for_scatter([&](std::uint32_t from, std::uint32_t to, std::uint32_t lane) {
        whole_lane(from, to, lane, false);
      });
      if (scatters()) ++round;
    };
    const auto spread = [&] {
      for (std::uint32_t server = 0; server < m(); ++server) {
        for_spread(server, [&](std::uint32_t from, std::uint32_t to, std::uint32_t lane) {
          whole_lane(from, to, lane, reduces);
        });
      }
      if (spreads()) ++round;
    };
    reduces ? spread() : scatter();
    for (std::uint32_t turn = 0; turn < middle(); ++turn, ++round) {
      for (std::uint32_t lane = 0; lane < rails.lanes; ++lane) {
        for (std::uint32_t p = 0; p + 1 < m(); ++p) {
          // Hop p of the way of the data; for reduce counted from the far end of the chain.
          const std::uint32_t piece = turn - p;
          if (piece >= pieces) continue;
          const std::uint32_t from = reduces ? m() - 1 - p : p, to = reduces ? from - 1 : from + 1;
          sink({.round = round,
                .src = rails.head(chain[from], lane),
                .dst = rails.head(chain[to], lane),
                .unit = std::uint64_t{lane} * pieces + piece,
                .channel = lane,
                .reduces = reduces});
        }
      }
    }
    reduces ? scatter() : spread();
  }
};

}  // namespace

Schedule build_hierarchical_rooted(const CollectiveRequest& request, const GroupShape& shape) {
  Rails rails(shape);
  rails.promote(request.root);
  const std::uint32_t lanes = rails.lanes, servers = rails.count();
  const std::uint32_t pieces =
      servers > 1 ? pieces_of(request, unit_size(request.size, lanes, 0)) : 1;
  const bool reduces = request.kind == CollectiveKind::reduce;
  Steps steps{std::move(rails), request.root, pieces, reduces};
  for (std::uint32_t i = 0; i < servers; ++i) {
    steps.chain.push_back((steps.rails.server_of[request.root] + i) % servers);
  }
  Schedule schedule = start(kHierarchical.name, request, shape, std::uint64_t{lanes} * pieces);
  if (shape.ranks == 1) return schedule;

  // Lanes carry the same to a byte: edges count in lanes.
  const auto edge = [reduces](std::uint32_t from, std::uint32_t to) {
    return reduces ? CountedEdge{to, from, 1} : CountedEdge{from, to, 1};
  };
  const auto in_lanes = [&](const std::vector<CountedEdge>& edges, Phase& phase) {
    if (!edges.empty())
      phase.channels.push_back(counted(Channel::Form::direct, edges, request.size, lanes));
  };
  Phase scatter, across, spread;
  std::vector<CountedEdge> edges;
  const auto collect = [&](std::uint32_t from, std::uint32_t to, std::uint32_t) {
    edges.push_back(edge(from, to));
  };
  steps.for_scatter(collect);
  in_lanes(edges, scatter);
  for (std::uint32_t server = 0; server < servers; ++server) {
    edges.clear();
    steps.for_spread(server, collect);
    in_lanes(edges, spread);
  }
  for (std::uint32_t lane = 0; servers > 1 && lane < lanes; ++lane) {
    Channel channel{.form = Channel::Form::chain,
                    .bytes = schedule.size_of_units(std::uint64_t{lane} * pieces, pieces)};
    for (std::uint32_t p = 0; p + 1 < servers; ++p) {
      const std::uint32_t from = reduces ? servers - 1 - p : p, to = reduces ? from - 1 : from + 1;
      channel.edges.push_back(
          {steps.rails.head(steps.chain[from], lane), steps.rails.head(steps.chain[to], lane), 1});
    }
    channel.chunk = chunk_of(request, channel.bytes);
    channel.steps = servers - 1;
    across.channels.push_back(std::move(channel));
  }
  for (Phase* phase : {reduces ? &spread : &scatter, &across, reduces ? &scatter : &spread}) {
    if (!phase->channels.empty()) schedule.phases.push_back(std::move(*phase));
  }
  schedule.rounds = steps.rounds();
  schedule.steps = std::move(steps);
  return schedule;
}

}  // namespace weft::collectives
