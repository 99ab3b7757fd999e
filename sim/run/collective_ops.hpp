// SPDX-License-Identifier: Apache-2.0
// From a schedule to operations on the fabric.
//
// Coupled.  A pipelined channel moves at one rate on all its edges, so it is one flow whose share of a link is the number of
//           times the channel crosses it. What latency does to it goes in as a cap or a fixed time (S data of the channel,
//           N ranks, c chunk, s slice, alpha latency of a hop, r_hop lone rate of a hop):
//             ring       cap = min(chunks in flight) N c / sum(alpha + s / r_hop): one rotation moves N chunks; c shrinks to
//                        S / N when the data is shorter than one rotation, and the cap becomes (N-1) serial hops
//             tree       the fill, steps x (slowest alpha + c / r), before the bytes
//             chain      the fill, sum(alpha + c / r_hop) but for the slowest c / r_hop
//             direct     the slowest alpha
//             in_switch  steps x half a path
//             paced      as given, at the mean latency of the hops inside servers and of those between
// Expanded. Every transfer of the schedule is a flow that waits until the data it forwards is there and until the sends of its
//           rank in the round before have left; where there is no pipeline, until that round's receives are there too.
// In switches. Packet by packet a collective in switches is one operation per tree of them (see SwitchTree), which the network
//           model runs whole; between servers it is coupled at the other levels, expanded or not.
#pragma once

#include <map>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "sim/core/diagnostics.hpp"
#include "sim/fabric/routing.hpp"
#include "sim/run/scenario.hpp"
#include "sim/workload/schedule.hpp"
#include "sim/workload/workload.hpp"

namespace weft {

struct CollectiveOptions {
  CollectiveCosts costs;
  Routing routing = Routing::ecmp;
  bool expand = false;
  bool packets = false;  // the network itself takes the latency of links and nodes
  bool peer_access = true, gpudirect = true;  // see TransferOptions
  // Host time to issue the operation. It runs beside the operation before, so it only counts where it is longer.
  Time issue{0};
  std::uint64_t hash = 0;   // of the job, part of every flow's label
  std::uint32_t label = 0;  // of the operations
};

// Whether its channels run from ranks to switches and back.
bool in_switches(const Schedule& schedule);

// The trees that such a collective runs in. Throws InputError.
std::vector<SwitchTree> switch_trees(Routes& routes, std::span<const NodeId> gpus,
                                     const CollectiveOptions& options);

// Builds operations; keeps scratch space between calls so that thousands of groups cost little.
class CollectiveBuilder {
 public:
  CollectiveBuilder(Routes& routes, Workload& workload);

  // Appends one iteration of `schedule` over `gpus` (rank order) and returns its last operation. Throws LimitReached when the
  // expanded form does not fit memory, InputError when two ranks cannot reach each other.
  OpId append(const Schedule& schedule, std::span<const NodeId> gpus,
              const CollectiveOptions& options, OpId after);

  // Drops the ways that it keeps for groups that come again.
  void forget() { paced_.clear(); }

  // From now on a way that spreads over all shortest ways between two leaves has one share for the whole journey, numbered from
  // the fabric's resources on: thousands of groups are added up before their journeys become links.
  void keep_journeys() { keeps_journeys_ = true; }
  // The links in place of the journeys, each resource once, in order.
  void expand_journeys(std::vector<Share>& shares);

 private:
  struct Hop {
    Time alpha{0};
    Bandwidth rate{0};
    Bandwidth cap{0};
  };
  // The near half of all ways between servers that start or end at one rank, and how much of the channel goes through it.
  struct Half {
    Routes::Attachment attachment;
    Bandwidth rate{0};
    double load = 0;
    std::uint32_t nic = 0, port = 0;  // which of the attachment's choices
    bool named = false;               // the NIC was asked for
    std::uint32_t next = 0;  // another choice of the same rank and direction, kNoHalf at the end
  };
  static constexpr std::uint32_t kNoHalf = 0xFFFF'FFFF;

  OpId append_phase(const Phase& phase, std::span<const NodeId> gpus,
                    const CollectiveOptions& options, OpId after);
  OpId append_steps(const Schedule& schedule, std::span<const NodeId> gpus,
                    const CollectiveOptions& options, OpId after);
  // The trees of switches that the running collective needs.
  OpId append_trees(const Schedule& schedule, const Channel& channel, std::span<const NodeId> gpus,
                    const CollectiveOptions& options, OpId after);
  // A library's channels, packet by packet: rings, trees, chains and direct edges as transfers.
  OpId append_channels(const Schedule& schedule, std::span<const NodeId> gpus,
                       const CollectiveOptions& options, OpId after);
  void join_network(const Schedule& schedule, std::span<const NodeId> gpus,
                    const CollectiveOptions& options);
  void load_network(const Channel& channel, const CollectiveRequest& request);
  // `channel` 0 .. of a phase; flows of a direct channel are dealt to the NICs of a GPU by their ends.
  TransferOptions transfer_options(const Edge& edge, std::uint32_t channel,
                                   const CollectiveOptions& options) const;
  // The way of an edge, into route_.
  Hop route_edge(const Edge& edge, std::span<const NodeId> gpus, std::uint32_t channel,
                 const CollectiveOptions& options);
  // The same, added to the load of the channel instead; ways between servers cost a few operations each.
  Hop load_edge(const Edge& edge, std::span<const NodeId> gpus, std::uint32_t channel,
                const CollectiveOptions& options);
  std::uint32_t half(NodeId gpu, std::uint32_t rank, const Routes::Door& door);
  // What a paced channel occupies and the mean latency of its hops, software left out. A copy through host memory has one
  // pipeline per pair of GPUs: the channels that cross it share its rate.
  struct StagedEdge {
    std::pair<std::uint32_t, std::uint32_t> ranks;
    Bandwidth rate{0};
  };
  struct Paced {
    std::vector<Share> shares;
    std::vector<StagedEdge> staged;
    Bandwidth cap{0};
    Time local{0}, network{0};
  };
  void append_all_paced(const Phase& phase, std::span<const NodeId> gpus,
                        const CollectiveOptions& options, OpId after, OpId done);
  Paced pace(const Channel& channel, std::span<const NodeId> gpus, std::uint32_t c,
             const CollectiveOptions& options);
  void append_paced(const Channel& channel, const Paced& paced, Bandwidth cap,
                    const CollectiveOptions& options, OpId after, OpId done);
  void start_channel(std::size_t ranks);
  void accumulate(const Route& route, double weight);
  void accumulate(std::uint32_t resource, double weight);
  std::vector<Share> take_shares();
  void note_journeys(std::uint32_t leaf, const std::vector<double>& demand);
  std::vector<double>& demand_towards(NodeId leaf);

  Routes& routes_;
  Workload& workload_;
  Route route_;                                 // of the last edge
  std::uint32_t owners_ = 1;                    // NIC owners of the group's first server
  bool dealt_ = false;                          // the running channel is direct
  std::optional<SwitchTree> tree_;              // between servers, of a collective in switches
  const CollectiveRequest* request_ = nullptr;  // of the running collective
  std::vector<double> load_;                    // by resource
  std::vector<std::uint32_t> touched_;
  std::vector<Half> halves_;  // of the running channel
  std::vector<std::uint32_t>
      half_of_;  // by 2 * rank + direction: index into halves_, valid when stamped
  std::vector<std::uint32_t> stamp_;
  std::uint32_t now_ = 0;
  std::uint64_t group_ = 0;                                         // of the running collective
  std::map<std::pair<std::uint64_t, std::uint64_t>, Paced> paced_;  // by Channel::same_as and group
  std::map<std::uint32_t, std::vector<double>> demand_;  // by destination leaf: by source switch
  bool keeps_journeys_ = false;
  struct Journey {
    std::uint32_t from = 0, leaf = 0;  // index of a switch, node of a leaf
  };
  std::vector<Journey> journeys_;  // by resource beyond those of the fabric
  std::map<std::pair<std::uint32_t, std::uint32_t>, std::uint32_t> journey_ids_;
};

}  // namespace weft
