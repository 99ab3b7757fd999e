// SPDX-License-Identifier: Apache-2.0
// A graph of operations: what runs after what. An operation starts when everything before it has finished and its own
// earliest time has come; a flow finishes when its last byte has arrived, a delay after its time, a barrier at once.
//
// A pace slows delays down: while one of its spells is open (between `opens` and `closes`, which take no time), its delays take
// `factor` times as long. So computing on a GPU is slower beside collectives, for as long as both last.
//
// The operations of one iteration of a job lie in a row, so that an iteration can run again without a copy.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "sim/core/ids.hpp"
#include "sim/core/share.hpp"
#include "sim/core/units.hpp"
#include "sim/workload/switch_tree.hpp"

namespace weft {

// What a flow occupies; shared by all operations that take the same way.
struct Way {
  std::uint32_t first = 0, count = 0;  // in Workload::shares
  Time latency{0};
  Bandwidth cap{0};
  Time wire{0};  // the part of the latency that links and nodes cause; the rest is software
  std::uint32_t tree = kNoTree;  // in Workload::trees: what happens in switches, at packet level

  static constexpr std::uint32_t kNoTree = 0xFFFF'FFFF;
};

struct Operation {
  enum class Kind : std::uint8_t { barrier, delay, flow, opens, closes };
  static constexpr std::uint32_t kNoEdge = 0xFFFF'FFFF;

  Kind kind = Kind::barrier;
  bool arrives_next =
      false;  // flow: finishes when its last byte has left, the operation behind it when that has arrived
  std::uint32_t waits_for = 0;         // operations before it
  std::uint32_t first_edge = kNoEdge;  // to what comes after, see Workload::edges
  std::uint32_t way = 0;               // flow; delay, opens, closes: the pace, 0 for none
  std::uint32_t label = 0;             // for people: index into Workload::labels
  Time time{0};                        // delay: how long; flow: added to the way's latency
  Bytes size{0};                       // flow
  Time not_before{0};                  // relative to the start of the iteration

  bool takes_time() const { return kind == Kind::delay || kind == Kind::flow; }
};

class Workload {
 public:
  struct Edge {
    std::uint32_t to = 0, next = Operation::kNoEdge;
  };

  OpId add_barrier() { return add({.kind = Operation::Kind::barrier}); }
  OpId add_delay(Time time, std::uint32_t pace = 0) {
    return add({.kind = Operation::Kind::delay, .way = pace, .time = time});
  }
  std::uint32_t add_pace(double factor) {
    paces.push_back(factor);
    return static_cast<std::uint32_t>(paces.size() - 1);
  }
  OpId add_spell(std::uint32_t pace, bool opens) {
    return add({.kind = opens ? Operation::Kind::opens : Operation::Kind::closes, .way = pace});
  }
  OpId add_flow(std::uint32_t way, Bytes size, Time extra_latency = {}) {
    return add({.kind = Operation::Kind::flow, .way = way, .time = extra_latency, .size = size});
  }
  // A flow and its arrival, of which the network model tells one after the other.
  std::pair<OpId, OpId> add_sent_flow(std::uint32_t way, Bytes size) {
    const OpId flow = add_flow(way, size);
    operations[flow].arrives_next = true;
    const OpId arrival = add_barrier();
    operations[arrival].waits_for = 1;  // for the model
    return {flow, arrival};
  }
  std::uint32_t add_way(std::span<const Share> crossed, Time latency, Bandwidth cap,
                        Time wire = {}) {
    ways.push_back({.first = static_cast<std::uint32_t>(shares.size()),
                    .count = static_cast<std::uint32_t>(crossed.size()),
                    .latency = latency,
                    .cap = cap,
                    .wire = wire});
    shares.insert(shares.end(), crossed.begin(), crossed.end());
    return static_cast<std::uint32_t>(ways.size() - 1);
  }
  void depend(OpId before, OpId after) {
    edges.push_back({after.v, operations[before].first_edge});
    operations[before].first_edge = static_cast<std::uint32_t>(edges.size() - 1);
    ++operations[after].waits_for;
  }
  std::span<const Share> shares_of(std::uint32_t way) const {
    return {shares.data() + ways[way].first, ways[way].count};
  }

  IdVector<OpId, Operation> operations;
  std::vector<Edge> edges;
  std::vector<Way> ways;
  std::vector<Share> shares;
  std::vector<SwitchTree> trees;
  std::vector<double> paces{1};  // factors
  std::vector<std::string> labels{""};

 private:
  OpId add(Operation operation) { return operations.push_back(operation); }
};

}  // namespace weft
