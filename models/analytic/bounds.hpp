// SPDX-License-Identifier: Apache-2.0
// A time that no network model can beat; tests hold every model to it. The `bound_s` of a report is its first term alone, over
// the bytes that were carried.
//
// Law:      time >= max over resources r of  sum over messages m of w_mr s_m / C_r,   and
//           time >= latency_m + max over r of w_mr s_m / C_r   for every message m (it is alone at best).
//           The bound is the larger of the first plus the shortest latency of a message on that resource, and the second.
// Assumes:  capacities are raw (no fitted constant, no efficiency) and all messages start at 0. Where messages depend on
//           each other the bound still holds, it is only less sharp.
// Example:  three messages of 1 MB over one 50 GB/s link with 1 us: 61 us.
#pragma once

#include <cstdint>
#include <span>

#include "sim/core/units.hpp"
#include "sim/run/network_model.hpp"

namespace weft {

struct BoundMessage {
  std::span<const Share> shares;
  Bytes size;
  Time latency;  // propagation along its route
};

struct Bound {
  static constexpr std::uint32_t kNoResource = 0xFFFFFFFFu;
  Time time{0};                          // rounded down, so that no exact result is below it
  std::uint32_t resource = kNoResource;  // where it is attained; kNoResource: by latency alone
};

// Time::never() when a message needs a resource without capacity.
Bound lower_bound(std::span<const Bandwidth> capacities, std::span<const BoundMessage> messages);

}  // namespace weft
