// SPDX-License-Identifier: Apache-2.0
#include "models/analytic/bounds.hpp"

#include <algorithm>
#include <cmath>
#include <vector>

#include "sim/core/check.hpp"

namespace weft {
namespace {

// Picoseconds, rounded down by at least the error of the sum.
std::int64_t round_down(double ps) {
  const double safe = ps * (1 - 1e-12);
  return safe >= 9e18 ? Time::never().ps : static_cast<std::int64_t>(std::floor(safe));
}

}  // namespace

Bound lower_bound(std::span<const Bandwidth> capacities, std::span<const BoundMessage> messages) {
  std::vector<double> bytes(capacities.size());
  std::vector<std::int64_t> shortest(capacities.size(), Time::never().ps);
  Bound best;
  const auto consider = [&best](std::int64_t ps, std::int64_t latency, std::uint32_t resource) {
    const Time time{ps >= Time::never().ps - latency ? Time::never().ps : ps + latency};
    if (time > best.time) best = {time, resource};
  };
  for (const BoundMessage& message : messages) {
    consider(0, message.latency.ps, Bound::kNoResource);
    if (message.size.count <= 0) continue;
    for (const Share& share : message.shares) {
      WEFT_CHECK(share.resource < capacities.size(), share.resource, capacities.size());
      const double load = share.weight * message.size.value();
      bytes[share.resource] += load;
      shortest[share.resource] = std::min(shortest[share.resource], message.latency.ps);
      const Bandwidth capacity = capacities[share.resource];
      consider(capacity.bps > 0 ? round_down(load / capacity.bytes_per_ps()) : Time::never().ps,
               message.latency.ps, share.resource);
    }
  }
  for (std::uint32_t r = 0; r < capacities.size(); ++r) {
    if (bytes[r] > 0 && capacities[r].bps > 0)
      consider(round_down(bytes[r] / capacities[r].bytes_per_ps()), shortest[r], r);
  }
  return best;
}

}  // namespace weft
