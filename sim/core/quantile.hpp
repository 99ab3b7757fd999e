// SPDX-License-Identifier: Apache-2.0
// A quantile of a sample: between the two values nearest to it, as numpy does by default.
//
// Law:       with n values in order, the value at place share x (n - 1), counted from 0; straight between two places.
// Example:   quantile({1, 2, 4}, 0.75) is 3.
// Reference: Hyndman and Fan, "Sample Quantiles in Statistical Packages", The American Statistician 1996: number 7.
#pragma once

#include <algorithm>
#include <cstddef>
#include <functional>

#include "sim/core/check.hpp"

namespace weft {

// `sorted` is not empty; `value` makes a double of what it holds.
template <class Sample, class Value = std::identity>
double quantile(const Sample& sorted, double share, Value value = {}) {
  WEFT_CHECK(sorted.size() > 0 && share >= 0 && share <= 1, sorted.size(), share);
  const double at = share * static_cast<double>(sorted.size() - 1);
  const auto below = static_cast<std::size_t>(at);
  const std::size_t above = std::min(below + 1, sorted.size() - 1);
  const double low = std::invoke(value, sorted[below]), high = std::invoke(value, sorted[above]);
  return low + (at - static_cast<double>(below)) * (high - low);
}

}  // namespace weft
