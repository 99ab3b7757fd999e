// SPDX-License-Identifier: Apache-2.0
// What must hold of one kind of server once its nodes and links are known: every GPU, and in a network every compute NIC, is
// connected to the first GPU, else a run would hang on it; with access control every PCIe switch has a root complex to send
// traffic to; a GPU joined by more NVLinks than its model has is a warning.
#pragma once

#include "sim/fabric/fabric.hpp"

namespace weft {

void check_server(const ServerType& type, bool networked, Diagnostics& out);

}  // namespace weft
