// SPDX-License-Identifier: Apache-2.0
// What a collective moves, said twice:
//
//   steps     every transfer of data, in rounds; the verifier executes them symbolically and the expanded form of a run
//             turns each into a flow.
//   phases    the same traffic as pipelined channels that each move at one rate on all their edges; the coupled form of a
//             run turns each channel into one flow. Empty when no such form is true (halving-doubling, pairwise).
//
// Units.    The data is cut into `units` numbered pieces. all_reduce, reduce, broadcast: the vector of `size` bytes in equal
//           pieces. reduce_scatter, all_gather, gather, scatter: unit u belongs to rank u % ranks; `size` is the whole
//           vector (all ranks' parts), as nccl-tests counts it. all_to_all: units ranks^2, unit s * ranks + d goes from s to
//           d; `size` is what one rank sends in all, its own part included. send_recv: unit r goes from rank r to
//           rank (r + 1) % ranks; `size` is one rank's message.
// Ranks.    0 .. ranks-1. The pseudo-rank kSwitch is the reduction unit of the switches all ranks hang on.
#pragma once

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
  all_reduce, all_gather, reduce_scatter, all_to_all, broadcast, reduce, gather, scatter, send_recv
};
constexpr auto enum_names(CollectiveKind) {
  using enum CollectiveKind;
  return std::array<EnumName<CollectiveKind>, 9>{{{all_reduce, "all_reduce"}, {all_gather, "all_gather"},
      {reduce_scatter, "reduce_scatter"}, {all_to_all, "all_to_all"}, {broadcast, "broadcast"}, {reduce, "reduce"},
      {gather, "gather"}, {scatter, "scatter"}, {send_recv, "send_recv"}}};
}

inline constexpr std::uint32_t kSwitch = 0xFFFF'FFFF;

// Bytes that unit `unit` of `units` covers when `size` bytes are cut as evenly as whole bytes allow (sums to `size`).
constexpr Bytes unit_size(Bytes size, std::uint64_t units, std::uint64_t unit) {
  const std::int64_t n = static_cast<std::int64_t>(units);
  const std::int64_t u = static_cast<std::int64_t>(unit);
  return {size.count / n + (u < size.count % n ? 1 : 0)};
}

// One transfer. All transfers of a round read what the rounds before left behind.
struct Step {
  std::uint32_t round = 0;
  std::uint32_t src = 0, dst = 0;
  std::uint32_t unit = 0, unit_count = 1;  // consecutive units
  std::uint32_t channel = 0;
  bool reduces = false;                    // adds to what dst holds, else replaces it
};

// How many times a channel's `bytes` cross from src to dst.
struct Edge {
  std::uint32_t src = 0, dst = 0;
  double weight = 1;
};

struct Channel {
  enum class Form {
    ring,       // edges in ring order; each rank forwards what it received one step before
    tree,       // edges child to parent and parent to child, chunks pipelined through `depth` levels each way
    chain,      // a pipeline through `edges` in order (broadcast, reduce)
    direct,     // all edges at once, nothing is forwarded
    in_switch,  // edges to and from kSwitch
  };
  Form form = Form::direct;
  std::vector<Edge> edges;
  Bytes bytes;               // that cross an edge of weight 1
  Bytes chunk{0};            // a rank's buffer slot: what is sent before the next hop may follow; 0: the whole
  Bytes slice{0};            // what is sent before the receiver is told; 0: the chunk
  std::uint32_t steps = 1;   // serial hops the last byte makes: ring 2 (N-1) for all_reduce, tree 2 depth, direct 1
  Bandwidth cap{0};          // limit of the channel itself (SMs, protocol, switch reduction), 0 for none
};

// Channels of a phase run together; a phase starts when the one before has finished everywhere.
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
// by the caller. orders: preferred ring orders over all ranks, one per channel (from the fabric); empty: 0, 1, 2 ...
struct GroupShape {
  std::uint32_t ranks = 1;
  std::vector<std::vector<std::uint32_t>> servers;
  std::vector<std::vector<std::uint32_t>> orders;
  bool switch_reduces = false;   // all ranks hang on switches that reduce and multicast
  Bandwidth switch_rate{0};      // limit of that reduction per rank, 0 for none
};

struct Schedule {
  std::string algorithm;
  CollectiveRequest request;
  std::uint32_t ranks = 1;
  std::uint32_t units = 1;
  std::uint32_t rounds = 0;
  std::vector<Phase> phases;
  // Calls the sink for every transfer, rounds ascending. Empty units (size smaller than units) are included.
  std::function<void(const std::function<void(const Step&)>&)> steps;

  Bytes size_of_unit(std::uint32_t unit) const;  // see Units above
};

// One algorithm of the catalogue.
struct AlgorithmEntry {
  std::string_view name;       // "ring", "double_binary_tree" ...
  std::string_view summary;
  std::string_view reference;
  bool (*supports)(CollectiveKind kind, const GroupShape& shape);
  Schedule (*build)(const CollectiveRequest& request, const GroupShape& shape);
};

}  // namespace weft
