// SPDX-License-Identifier: Apache-2.0
// A made-up machine: a fabric of the catalogue whose true parameters nobody is told.
//
// Hidden:   links of one kind share a payload efficiency and a delay that differ from the catalogue's; so do the start-ups of
//           copies, staging, NICs, switches, the costs of NCCL's kernels and proxies, and what kernels reach of the data sheet.
//           Factors are drawn within what machines of one kind differ by, from the seed and the name of the part alone.
// Fault:    one part of server 0 is not what its data sheet says. What the machine tells about itself does not change.
//             slow-link       an NVLink (of a switched machine: all of one GPU; without any: a GPU's PCIe) at half its rate
//             half-width      the PCIe link of one GPU trained at half its lanes
//             wrong-affinity  a NIC sits below another switch than the one it is said to be on; of one server alone, two GPUs
// Truth:    the document is an ordinary fabric: what a fit finds can be looked up in it by JSON pointer.
#pragma once

#include <cstdint>
#include <string>

#include "sim/core/diagnostics.hpp"
#include "sim/core/json.hpp"

namespace weft {

enum class ProbeFault { none, slow_link, half_width, wrong_affinity };

struct HiddenMachine {
  Json document;
  std::string fault;  // in words, with the parts it is about; empty: none
};

// `documented` is a resolved fabric or server. Reports a fault that it has no place for.
HiddenMachine hide_machine(const Json& documented, std::uint64_t seed, ProbeFault fault,
                           Diagnostics& out);

}  // namespace weft
