// SPDX-License-Identifier: Apache-2.0
// Seconds in floating point, as kernels, closed forms and fits give them, become a Time: the nearest picosecond, halves away
// from zero. What does not fit saturates, as sums of times do.
//
// Example:  time_from_seconds(1.5e-6) is 1500000 ps.
#pragma once

#include "sim/core/units.hpp"

namespace weft {

constexpr Time time_from_seconds(double seconds) {
  const double ps = seconds * 1e12;
  return Time{ps < 0 ? -units_detail::rounded(-ps) : units_detail::rounded(ps)};
}

}  // namespace weft
