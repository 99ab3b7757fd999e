// SPDX-License-Identifier: Apache-2.0
#include "calibrate/probe/timing.hpp"

#include <algorithm>
#include <cmath>

#include "sim/core/quantile.hpp"

namespace weft {
namespace {

constexpr double kFence = 3;               // spreads beyond the quartiles
constexpr double kAgree = 0.01;            // of the median: never an outlier
constexpr double kUnsettled = 0.1;         // spread over median
constexpr std::size_t kTellQuartiles = 4;  // runs from which quartiles mean something

Time rounded(double ps) { return Time{static_cast<std::int64_t>(std::llround(ps))}; }

}  // namespace

std::optional<RepeatedTime> summarise(std::vector<Time> runs) {
  if (runs.empty()) return std::nullopt;
  std::ranges::sort(runs, {}, &Time::ps);
  const auto in_ps = [](Time run) { return static_cast<double>(run.ps); };
  const double low = quantile(runs, 0.25, in_ps), median = quantile(runs, 0.5, in_ps),
               high = quantile(runs, 0.75, in_ps);
  RepeatedTime out;
  out.median = rounded(median);
  SampleRepeats& repeats = out.repeats;
  repeats.repeats = static_cast<int>(runs.size());
  repeats.fastest = runs.front();
  repeats.slowest = runs.back();
  repeats.spread = rounded(high - low);
  if (runs.size() < kTellQuartiles) return out;
  const double reach = std::max(kFence * (high - low), kAgree * median);
  for (const Time run : runs) {
    const auto ps = static_cast<double>(run.ps);
    if (ps < low - reach || ps > high + reach) repeats.outliers.push_back(run);
  }
  if (high - low > kUnsettled * median) repeats.unsettled = true;
  return out;
}

bool wants_more(const RepeatRules& rules, int done, double elapsed) {
  if (done >= rules.most || elapsed >= rules.timeout) return false;
  return done < rules.least || elapsed < rules.seconds;
}

}  // namespace weft
