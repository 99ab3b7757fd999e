// SPDX-License-Identifier: Apache-2.0
// What a collective moves, said twice:
//
//   steps     every transfer of data, in rounds; the verifier executes them symbolically and the expanded form of a run
//             turns each into a flow.
//   phases    the same traffic as pipelined channels that each move at one rate on all their edges; the coupled form of a
//             run turns each channel into one flow. Empty when no such form is true (halving-doubling, pairwise).
//
// Law:      where phases exist, the payload of every pair (src, dst) is the same in both, to a few bytes of rounding per
//           channel; one rank alone has neither steps nor phases.
// Units.    The data is cut into `units` numbered pieces. all_reduce, reduce, broadcast: the vector of `size` bytes in equal
//           pieces. reduce_scatter, all_gather, gather, scatter: unit u belongs to rank u % ranks; `size` is the whole
//           vector (all ranks' parts), as nccl-tests counts it. all_to_all: units ranks^2, unit s * ranks + d goes from s to
//           d; `size` is what one rank sends in all, its own part included. send_recv: unit r goes from rank r to
//           rank (r + 1) % ranks; `size` is one rank's message.
// Ranks.    0 .. ranks-1. The pseudo-rank kSwitch is the reduction unit of the switches all ranks hang on; it
//           has no memory: what arrives in a round leaves in the next.
// Cost.     Building is O(ranks) per channel and phase; `steps` and `for_each_edge` are loops that hold nothing, so visiting
//           them costs their number: 2 N (N - 1) steps of a ring, N (N - 1) edges of a direct all_to_all.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "sim/core/config.hpp"
#include "sim/core/units.hpp"

namespace weft {

enum class CollectiveKind {
  all_reduce,
  all_gather,
  reduce_scatter,
  all_to_all,
  broadcast,
  reduce,
  gather,
  scatter,
  send_recv
};
constexpr auto enum_names(CollectiveKind) {
  using enum CollectiveKind;
  return std::array<EnumName<CollectiveKind>, 9>{{{all_reduce, "all_reduce"},
                                                  {all_gather, "all_gather"},
                                                  {reduce_scatter, "reduce_scatter"},
                                                  {all_to_all, "all_to_all"},
                                                  {broadcast, "broadcast"},
                                                  {reduce, "reduce"},
                                                  {gather, "gather"},
                                                  {scatter, "scatter"},
                                                  {send_recv, "send_recv"}}};
}

inline constexpr std::uint32_t kSwitch = 0xFFFF'FFFF;

// Bytes that unit `unit` of `units` covers when `size` bytes are cut as evenly as whole bytes allow (sums to `size`).
constexpr Bytes unit_size(Bytes size, std::uint64_t units, std::uint64_t unit) {
  const std::int64_t n = static_cast<std::int64_t>(units);
  const std::int64_t u = static_cast<std::int64_t>(unit);
  return {size.count / n + (u < size.count % n ? 1 : 0)};
}
// The same for `count` consecutive units.
constexpr Bytes unit_range_size(Bytes size, std::uint64_t units, std::uint64_t first,
                                std::uint64_t count) {
  const std::int64_t n = static_cast<std::int64_t>(units);
  const std::int64_t longer =
      size.count % n - static_cast<std::int64_t>(first);  // units from `first` on with one more
  const std::int64_t c = static_cast<std::int64_t>(count);
  return {size.count / n * c + (longer < 0 ? 0 : longer < c ? longer : c)};
}

// One transfer. All transfers of a round read what the rounds before left behind.
struct Step {
  std::uint32_t round = 0;
  std::uint32_t src = 0, dst = 0;
  std::uint32_t unit_count = 1;  // consecutive units from `unit`
  std::uint64_t unit = 0;
  std::uint32_t channel =
      0;                 // counts apart from Phase::channels: the part of the data it belongs to
  bool reduces = false;  // adds to what dst holds, else replaces it
};

// How many times a channel's `bytes` cross from src to dst. Between servers the way leaves and enters by the NICs named
// (positions among the server's compute NICs), or by NICs near the GPUs.
struct Edge {
  static constexpr std::int32_t kNearNic = -1;
  std::uint32_t src = 0, dst = 0;
  double weight = 1;
  std::int32_t src_nic = kNearNic, dst_nic = kNearNic;
};

using EdgeSink = std::function<void(const Edge&)>;
using StepSink = std::function<void(const Step&)>;

// Pipelining. A rank passes a chunk on when it has it; within the chunk the receiver is told slice by slice. So one hop
// delays the front of the data by alpha + slice / r, and a rank has at most one chunk per step of the loop in its slot:
//   ring      one rotation moves N chunks over every edge and takes R = max(N chunk / r, sum of (alpha + slice / r_hop))
//   tree      bytes / r plus the fill, steps x (alpha + chunk / r)
//   chain     the same with steps = edges
//   direct    bytes / r + alpha: nothing is forwarded
//   in_switch bytes / r + steps x half a path
//   paced     bytes / r after `lead`, local_steps hops inside servers and network_steps between: who builds the schedule
//             knows its pipeline
struct Channel {
  enum class Form {
    ring,  // edges in ring order; each rank forwards what it received one step before
    tree,  // edges child to parent and parent to child, chunks pipelined through `depth` levels each way
    chain,  // a pipeline through `edges` in order (broadcast, reduce)
    direct,  // all edges at once, nothing is forwarded; one rate for all ends when the slowest edge would
    in_switch,  // edges to and from kSwitch
    paced,      // the pipeline is given: see below
  };
  Form form = Form::direct;
  std::vector<Edge> edges;  // empty when `generate` is set: read them through for_each_edge
  std::function<void(const EdgeSink&)>
      generate;  // makes the edges where there are too many to keep (all pairs)
  Bytes bytes;   // that cross an edge of weight 1
  Bytes chunk{
      0};  // a rank's buffer slot: what is sent before the next hop may follow; 0: the whole
  Bytes slice{0};  // what is sent before the receiver is told; 0: the chunk
  std::uint32_t steps =
      1;  // edges in series that the last byte crosses: ring 2 (N-1) for all_reduce, tree 2 depth,
          // direct 1; an edge to or from kSwitch is half of a path between ranks
  Bandwidth cap{0};  // limit of the channel itself (SMs, protocol, switch reduction), 0 for none
  // paced: hops in series before the bytes count, each at the mean latency of the channel's hops of its kind.
  double local_steps = 0, network_steps = 0;
  Time lead{0};
  // Channels with the same number (not 0) have the same edges: their ways are found once.
  std::uint64_t same_as = 0;

  // Calls sink(const Edge&) for every edge, always in the same order.
  template <class Sink>
  void for_each_edge(Sink&& sink) const {
    if (generate) return generate(std::ref(sink));
    for (const Edge& edge : edges) sink(edge);
  }
};

// Channels of a phase run together, each at its own rate; a phase starts when the one before has finished everywhere.
struct Phase {
  std::vector<Channel> channels;
};

struct CollectiveRequest {
  CollectiveKind kind = CollectiveKind::all_reduce;
  Bytes size;
  std::uint32_t root = 0;      // broadcast, reduce, gather, scatter
  std::uint32_t channels = 1;  // rings or trees side by side, each with its part of the data
  Bytes chunk{0};              // 0: the algorithm's own choice
};

// The group as an algorithm sees it. `servers[i]` lists the ranks of one server, in order of their links; ranks are numbered
// by the caller; `servers` empty: all in one. Sizes may differ.
// orders: preferred ring orders over all ranks, one per channel (from the fabric); empty: 0, 1, 2 ...
struct GroupShape {
  std::uint32_t ranks = 1;
  std::vector<std::vector<std::uint32_t>> servers;
  std::vector<std::vector<std::uint32_t>> orders;
  bool switch_reduces = false;   // all ranks hang on switches that reduce and multicast
  Bandwidth switch_rate{0};      // limit of that reduction per rank, 0 for none
  bool network_reduces = false;  // the switches between the servers do
  Bandwidth network_rate{0};     // limit of that reduction per port, 0 for none
};

struct Schedule {
  std::string algorithm;
  CollectiveRequest request;
  std::uint32_t ranks = 1;
  std::uint64_t units = 1;
  std::uint32_t rounds = 0;  // one more than the round of the last step
  std::vector<Phase> phases;
  // Calls the sink for every transfer, rounds ascending. Empty units (size smaller than units) are included.
  std::function<void(const StepSink&)> steps;

  Bytes size_of_unit(std::uint64_t unit) const;  // see Units above
  Bytes size_of_units(std::uint64_t first,
                      std::uint64_t count) const;  // of `count` consecutive ones, in O(1)
};

// One algorithm of the catalogue.
struct AlgorithmEntry {
  std::string_view name;  // "ring", "double_binary_tree" ...
  std::string_view summary;
  std::string_view reference;
  bool (*supports)(CollectiveKind kind, const GroupShape& shape);
  Schedule (*build)(const CollectiveRequest& request, const GroupShape& shape);
};

}  // namespace weft
