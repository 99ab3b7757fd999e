// SPDX-License-Identifier: Apache-2.0
// A library of collectives that chooses for itself: algorithm, channels and costs by its own rules, as NCCL does. sim knows
// none; the caller of a run plugs one in (RunContext::library), and jobs that name no algorithm of weft's own go through it
// when the scenario has the key `nccl`.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "sim/core/diagnostics.hpp"
#include "sim/fabric/fabric.hpp"
#include "sim/run/collective_ops.hpp"
#include "sim/run/scenario.hpp"

namespace weft {

struct PlannedCollective {
  Schedule schedule;  // owns all it needs
  CollectiveOptions options;
  std::string algorithm;  // as reported: "nvls/simple"
  std::uint32_t channels = 1;
  std::vector<std::string> notes;  // what a person should know about this group
};

struct CollectiveLibrary {
  // Reports what the library does not take, at its place in the file.
  std::function<void(const NcclSpec&, Diagnostics&)> check;
  // One operation of one group, ranks in order. Throws InputError. The spec has been checked.
  std::function<PlannedCollective(const Fabric&, std::span<const NodeId> gpus, CollectiveKind,
                                  Bytes, std::uint32_t root, const NcclSpec&)>
      plan;
  explicit operator bool() const { return static_cast<bool>(plan); }
};

}  // namespace weft
