// SPDX-License-Identifier: Apache-2.0
// What a person should know of the channels found: links that rings cannot use, detours through hosts, rails that cross.
#pragma once

#include <string>
#include <vector>

#include "models/nccl/connect.hpp"

namespace weft::nccl {

void note_node(const ServerType& type, const Machine& machine, const Paths& paths,
               const Rules& rules, const NodeChannels& channels, std::vector<std::string>& notes);
void note_communicator(const NcclTopology& topology, const Rules& rules, const JoinPlan& plan,
                       bool trays_apart, std::vector<std::string>& notes);

}  // namespace weft::nccl
