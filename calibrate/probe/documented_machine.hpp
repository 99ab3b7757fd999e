// SPDX-License-Identifier: Apache-2.0
// What a fabric says about itself, in the words of a driver: the facts that a probe would read on such a machine.
//
// Paths:  NV# with the number of NVLinks of the way, PIX below one PCIe switch, PHB at one socket, SYS across sockets. Between
//         servers there is no copy call, so no path.
#pragma once

#include "calibrate/probe/plan.hpp"
#include "sim/fabric/fabric.hpp"

namespace weft {

ProbeMachine documented_machine(const Fabric& fabric);

}  // namespace weft
