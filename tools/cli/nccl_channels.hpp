// SPDX-License-Identifier: Apache-2.0
// NCCL's channels for people, as JSON, and in NCCL's own graph file (NCCL_GRAPH_DUMP_FILE writes it, NCCL_GRAPH_FILE reads it).
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "models/nccl/graph.hpp"
#include "sim/core/json.hpp"

namespace weft {

// What `weft topo --nccl` was asked for: a release, variables, and positions of GPUs in the fabric ("0-3,7"; empty: all).
struct NcclQuestion {
  std::string version, gpus;
  std::vector<std::string> variables;  // NAME=VALUE
};

struct NcclAnswer {
  NcclTopology topology;
  std::vector<NodeId> gpus;  // in rank order
};

// Reports all problems of the question; throws InputError when there are any or the search cannot be done.
NcclAnswer find_nccl_channels(const Fabric& fabric, const NcclQuestion& question,
                              Diagnostics& diagnostics);

std::string nccl_text(const Fabric& fabric, const NcclAnswer& answer, bool colour);
Json nccl_json(const Fabric& fabric, const NcclAnswer& answer);
std::string nccl_graph_xml(const Fabric& fabric, const NcclAnswer& answer);

}  // namespace weft
