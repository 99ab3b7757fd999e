// SPDX-License-Identifier: Apache-2.0
#include "models/nccl/notes.hpp"

namespace weft::nccl {

void note_node(const ServerType&, const Machine&, const Paths&, const NodeChannels&,
               std::vector<std::string>&) {}
void note_communicator(const NcclTopology&, const Rules&, const JoinPlan&, bool,
                       std::vector<std::string>&) {}

}  // namespace weft::nccl
