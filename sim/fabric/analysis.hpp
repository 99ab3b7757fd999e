// SPDX-License-Identifier: Apache-2.0
// What can be said of a fabric without running anything: counts, bisection, oversubscription, weak spots, routing cycles and
// the matrix that `nvidia-smi topo -m` prints. A link here is a duplex cable or bundle, counted once; rates are raw rates of
// one direction.
//
// Bisection.       Largest flow from the first half of the servers to the second, by max-flow (min-cut); servers are as fast
//                  inside as need be. In a fabric of one server: from the first half of its GPUs to the second, over
//                  scale-up, host and network links together. An odd one goes to the second half.
// Formula.         What the weaker half can send at all: the sum over its NIC ports (one server: over the links of its GPUs).
//                  A fabric is non-blocking in this cut when flow = formula.
// Oversubscription. Of a switch with hosts: bandwidth of its host ports over that of its links to higher switches (to any
//                  switch where there is no higher level).
// Weak spots.      Nodes and cables whose loss alone leaves GPUs without any way to other GPUs.
// Dependency cycle. Links that wait for each other in a circle when each holds data that must go on to the next, under the
//                  shortest ways of NetworkRoutes over all equal next hops. Lossless fabrics with such a cycle can deadlock
//                  (Dally and Seitz, IEEE Trans. Comput. 1987); up/down ways in a Clos have none, nor have those of a
//                  dragonfly that use lanes (DragonflyRoutes).
#pragma once

#include <array>
#include <optional>
#include <string>
#include <vector>

#include "sim/fabric/fabric.hpp"
#include "sim/fabric/network_routes.hpp"

namespace weft {

struct LinkGroup {
  Tier tier = Tier::host;
  LinkClass link_class = LinkClass::ethernet;
  std::size_t links = 0;   // duplex bundles
  std::size_t cables = 0;  // with the parallel ones of each bundle
  Bandwidth raw{0};        // all of them, one direction
};

struct Counts {
  std::size_t servers = 0, gpus = 0, nics = 0, nodes = 0, links = 0;
  std::array<std::size_t, 3> switches{};  // leaves, spines, cores
  std::vector<LinkGroup> groups;          // by tier, then class
};
Counts count_components(const Fabric& fabric);

struct Bisection {
  static constexpr std::size_t kMostLinks = 4'000'000;  // larger graphs are not solved

  struct Crossing {
    Tier tier;
    Bandwidth raw;
  };
  std::optional<Bandwidth> flow;  // none when there are no two halves, or beyond kMostLinks
  Bandwidth formula{0};
  std::vector<Crossing> crossings;  // the links of a smallest cut, by tier; their sum is `flow`
};
Bisection compute_bisection(const Fabric& fabric);

struct Oversubscription {
  std::optional<double> least,
      most;  // over the switches with hosts; none when no such switch has an uplink
  NodeId worst;
};
Oversubscription find_oversubscription(const Fabric& fabric);

struct WeakSpots {
  std::vector<NodeId> nodes;  // cut vertices, ascending
  std::vector<LinkId> links;  // bridges, the even direction of each, ascending
};
WeakSpots find_weak_spots(const Fabric& fabric);

struct DependencyCycle {
  static constexpr std::size_t kMostSteps =
      4'000'000'000;  // destinations x links; larger fabrics are not searched

  bool searched = true;
  std::vector<LinkId>
      links;  // each waits for the next, the last for the first; empty when there is none
};
DependencyCycle find_dependency_cycle(const Fabric& fabric, NetworkRoutes& routes);

// How near the GPUs and compute NICs of a server are to each other: NV6 (links between two GPUs, directly or through
// NVSwitches; XGMI1, HCCS1 ... for other classes), PIX (at most one PCIe switch), PXB (several), PHB (through one socket),
// SYS (across sockets), X (itself), - (no way).
struct AffinityMatrix {
  std::vector<std::uint32_t> locals;            // GPUs, then NICs
  std::vector<std::vector<std::string>> cells;  // [row][column]
};
AffinityMatrix affinity_matrix(const ServerType& type);

}  // namespace weft
