// SPDX-License-Identifier: Apache-2.0
// A fabric and its load as a picture needs it: small enough for a page, whole enough to click on.
//
//   types     each kind of server once: its nodes and the cables between them
//   servers   of each, its type and how busy its busiest link is; every link's load only of some: the first ones and the
//             busiest ones
//   switches  of the network: name, level (1 leaf, 2 spine, 3 core), busiest link
//   cables    between servers and switches, parallel ones as one with the load of the busiest; beyond a cap the idlest go
//
// Load is the share of the link's payload rate over the whole run. A cable's two directions are `up` (a to b) and `down`.
#pragma once

#include "sim/core/json.hpp"
#include "sim/run/run.hpp"

namespace weft {

Json fabric_view(const RunTrail& trail);

}  // namespace weft
