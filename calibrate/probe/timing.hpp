// SPDX-License-Identifier: Apache-2.0
// How often a test runs and what its runs say together.
//
// Warm-up:  the first runs pay for what later ones find ready (page tables, clocks, connections); they are not counted.
// Median:   half of the runs take longer. One run that was disturbed moves it by a rank, not by its size.
// Spread:   between the first and the third quartile (linear between order statistics).
// Outlier:  a run further than three spreads from the quartiles. It is listed and stays in the median. Runs that agree to a
//           part in a hundred are never outliers: a clock of 0.5 us steps would make them.
// Example:  10, 10, 11, 11, 12, 30 us: median 11, spread 1.5 (10.25 to 11.75), outlier 30.
#pragma once

#include <optional>
#include <vector>

#include "calibrate/measured_samples.hpp"

namespace weft {

struct RepeatRules {
  int warm_up = 3, least = 7, most = 200;
  double seconds = 0.1;  // a test ends after so long when it has `least` runs
  double timeout = 30;   // and after so long with what it has
};

struct RepeatedTime {
  Time median{0};
  SampleRepeats repeats;
};
// nullopt without runs.
std::optional<RepeatedTime> summarise(std::vector<Time> runs);

// Whether one more run is due, after `done` runs that took `elapsed` seconds together.
bool wants_more(const RepeatRules& rules, int done, double elapsed);

}  // namespace weft
