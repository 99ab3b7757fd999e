// SPDX-License-Identifier: Apache-2.0
#include "sim/workload/schedule.hpp"

#include "sim/core/check.hpp"

namespace weft {

Bytes Schedule::size_of_unit(std::uint64_t unit) const {
  WEFT_DCHECK(unit < units, unit, units);
  switch (request.kind) {
    case CollectiveKind::all_to_all:
      return unit_size(request.size, ranks, unit % ranks);
    case CollectiveKind::send_recv:
      return request.size;
    default:
      return unit_size(request.size, units, unit);
  }
}

Bytes Schedule::size_of_units(std::uint64_t first, std::uint64_t count) const {
  WEFT_DCHECK(first + count <= units, first, count, units);
  switch (request.kind) {
    case CollectiveKind::all_to_all: {
      // Rows of `ranks` units, each row adds up to `size`: the difference of two prefix sums.
      const auto prefix = [this](std::uint64_t n) {
        return request.size * static_cast<std::int64_t>(n / ranks) +
               unit_range_size(request.size, ranks, 0, n % ranks);
      };
      return prefix(first + count) - prefix(first);
    }
    case CollectiveKind::send_recv:
      return request.size * static_cast<std::int64_t>(count);
    default:
      return unit_range_size(request.size, units, first, count);
  }
}

}  // namespace weft
