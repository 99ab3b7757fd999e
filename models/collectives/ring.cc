// SPDX-License-Identifier: Apache-2.0
// Ring: every rank receives from the one before and sends to the one after, all the time.
//
// Data:     cut over the channels, each channel's part into N pieces, one named after each rank of its ring order.
//           reduce_scatter: N - 1 rounds, a piece travels once around and collects; it ends at the rank it is named after.
//           all_gather: N - 1 rounds, the other way to read it. all_reduce: first one, then the other.
//           broadcast, reduce: the ring is cut open at the root: a chain of N - 1 edges, pipelined in chunks.
// Traffic:  an edge carries k (N - 1) / N of its channel's data, k = 2 for all_reduce, 1 for all_gather and reduce_scatter;
//           all of it in a chain. Optimal for the rank that moves most.
// Rounds:   k (N - 1); chain of K chunks: N - 2 + K.
// Reference: Patarasuk and Yuan, "Bandwidth optimal all-reduce algorithms for clusters of workstations", JPDC 2009.
#include <utility>

#include "models/collectives/algorithms.hpp"
#include "models/collectives/parts.hpp"

namespace weft::collectives {
namespace {

struct Ring {
  std::vector<Ranks> orders;  // per channel
  std::uint32_t n;
  bool reduces, gathers;

  std::uint32_t rounds() const { return (reduces ? n - 1 : 0) + (gathers ? n - 1 : 0); }

  void operator()(const StepSink& sink) const {
    for (std::uint32_t round = 0; round < rounds(); ++round) {
      const bool reducing = reduces && round < n - 1;
      const std::uint32_t turn = reducing ? round : round - (reduces ? n - 1 : 0);
      for (std::uint32_t c = 0; c < orders.size(); ++c) {
        for (std::uint32_t p = 0; p < n; ++p) {
          // The piece named after the rank at position q starts its journey at q + 1 when it collects, at q when it spreads.
          const std::uint32_t q = (p + 2 * n - turn - (reducing ? 1 : 0)) % n;
          sink({.round = round,
                .src = orders[c][p],
                .dst = orders[c][(p + 1) % n],
                .unit = std::uint64_t{c} * n + orders[c][q],
                .channel = c,
                .reduces = reducing});
        }
      }
    }
  }
};

struct Chain {
  std::vector<Ranks> orders;  // from the first sender to the last receiver
  std::uint32_t n, pieces;
  bool reduces;

  void operator()(const StepSink& sink) const {
    for (std::uint32_t round = 0; round < n - 2 + pieces; ++round) {
      for (std::uint32_t c = 0; c < orders.size(); ++c) {
        for (std::uint32_t p = round < pieces ? 0 : round - pieces + 1; p <= round && p < n - 1;
             ++p) {
          sink({.round = round,
                .src = orders[c][p],
                .dst = orders[c][p + 1],
                .unit = std::uint64_t{c} * pieces + (round - p),
                .channel = c,
                .reduces = reduces});
        }
      }
    }
  }
};

Schedule build_chain(const CollectiveRequest& request, const GroupShape& shape) {
  const std::uint32_t n = shape.ranks, channels = channel_count(request);
  const std::uint32_t pieces = pieces_of(request, unit_size(request.size, channels, 0));
  const bool reduces = request.kind == CollectiveKind::reduce;
  Schedule schedule = start(kRing.name, request, shape, std::uint64_t{channels} * pieces);
  if (n == 1) return schedule;
  Chain chain{{}, n, pieces, reduces};
  Phase phase;
  for (std::uint32_t c = 0; c < channels; ++c) {
    chain.orders.push_back(turned_to(ring_order(shape, c), request.root, reduces));
    Channel channel{.form = Channel::Form::chain,
                    .bytes = schedule.size_of_units(std::uint64_t{c} * pieces, pieces)};
    for (std::uint32_t p = 0; p + 1 < n; ++p)
      channel.edges.push_back({chain.orders[c][p], chain.orders[c][p + 1], 1});
    channel.chunk = chunk_of(request, channel.bytes);
    channel.steps = n - 1;
    phase.channels.push_back(std::move(channel));
  }
  schedule.rounds = n - 2 + pieces;
  schedule.phases.push_back(std::move(phase));
  schedule.steps = std::move(chain);
  return schedule;
}

Schedule build_ring(const CollectiveRequest& request, const GroupShape& shape) {
  const std::uint32_t n = shape.ranks, channels = channel_count(request);
  Schedule schedule = start(kRing.name, request, shape, std::uint64_t{channels} * n);
  if (n == 1) return schedule;
  Ring ring{{},
            n,
            request.kind != CollectiveKind::all_gather,
            request.kind != CollectiveKind::reduce_scatter};
  Phase phase;
  for (std::uint32_t c = 0; c < channels; ++c) {
    ring.orders.push_back(ring_order(shape, c));
    const Bytes data = schedule.size_of_units(std::uint64_t{c} * n, n);
    Channel channel{.form = Channel::Form::ring, .bytes = fraction(data, ring.rounds(), n)};
    channel.edges.reserve(n);
    for (std::uint32_t p = 0; p < n; ++p)
      channel.edges.push_back({ring.orders[c][p], ring.orders[c][(p + 1) % n], 1});
    channel.chunk = chunk_of(request, unit_size(data, n, 0));
    channel.steps = ring.rounds();
    phase.channels.push_back(std::move(channel));
  }
  schedule.rounds = ring.rounds();
  schedule.phases.push_back(std::move(phase));
  schedule.steps = std::move(ring);
  return schedule;
}

bool supports(CollectiveKind kind, const GroupShape&) {
  using enum CollectiveKind;
  return kind == all_reduce || kind == all_gather || kind == reduce_scatter || kind == broadcast ||
         kind == reduce;
}

Schedule build(const CollectiveRequest& request, const GroupShape& shape) {
  const bool chain =
      request.kind == CollectiveKind::broadcast || request.kind == CollectiveKind::reduce;
  return chain ? build_chain(request, shape) : build_ring(request, shape);
}

}  // namespace

const AlgorithmEntry kRing{
    .name = "ring",
    .summary = "each rank passes pieces to the next; best bandwidth, N - 1 hops of latency",
    .reference = "Patarasuk and Yuan, JPDC 2009",
    .supports = supports,
    .build = build};

}  // namespace weft::collectives
