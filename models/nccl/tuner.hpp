// SPDX-License-Identifier: Apache-2.0
// NCCL's choice of algorithm and protocol for one operation: for each combination latency + bytes / bandwidth from the
// channels it found and the tables of its release; the least wins. NCCL_ALGO and NCCL_PROTO narrow the choice.
//
// The result is what NCCL believes. How long the operation takes is simulated (plan.hpp).
// Source: NCCL src/graph/tuning.cc and src/enqueue.cc, releases 2.5 to 2.30.
#pragma once

#include <vector>

#include "models/nccl/graph.hpp"
#include "models/nccl/releases.hpp"
#include "sim/core/diagnostics.hpp"
#include "sim/core/units.hpp"
#include "sim/workload/schedule.hpp"

namespace weft {

struct NcclChoice {
  NcclAlgorithm algorithm = NcclAlgorithm::ring;
  NcclProtocol protocol = NcclProtocol::simple;
  double believed_us = 0;
};

// What may be chosen from: NCCL_ALGO and NCCL_PROTO as the release reads them ("ring,tree", "^ll128",
// "ring;allreduce:tree"). Problems of the text go to `out`.
struct NcclFilter {
  // [collective][algorithm or protocol]; by default all, LL128 only where it is safe.
  enum class Use : std::uint8_t { off, on, where_safe };
  std::array<std::array<Use, kNcclAlgorithms>, 9> algorithms;
  std::array<std::array<Use, kNcclProtocols>, 9> protocols;
};
NcclFilter nccl_filter(const NcclEnvironment& environment, Diagnostics& out);

// Every combination that this machine and release offer for the operation, cheapest first; empty when none is left.
// Only all_reduce, all_gather, reduce_scatter, broadcast and reduce are chosen for; the rest are sends and receives.
std::vector<NcclChoice> nccl_choices(const NcclTopology& topology, const NcclRelease& release,
                                     const NcclFilter& filter, CollectiveKind kind, Bytes bytes);

}  // namespace weft
