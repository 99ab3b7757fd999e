// SPDX-License-Identifier: Apache-2.0
// Plots as SVG: rates or times against size in small multiples, predicted against measured on one diagonal, errors against size,
// and parameters with their intervals.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace weft {

// As HTML and SVG write it.
std::string html_escape(std::string_view text);

struct SweepPoint {
  double bytes = 0, measured = 0, predicted = 0;
  double low = 0, high = 0;  // interval of the prediction; 0: none
  bool hollow = false;       // took no part
};

struct SweepPanel {
  std::string title, subtitle;
  std::vector<SweepPoint> points;  // by size
};

// Logarithmic both ways; all panels have the sizes in common, each has its own bandwidths. Dots were measured, the line is
// predicted, with its interval where there is one; hollow dots took no part.
std::string sweeps_svg(std::string_view title, const std::vector<SweepPanel>& panels,
                       std::string_view unit = "GB/s");

struct ScatterSeries {
  std::string name;
  std::vector<SweepPoint> points;  // `bytes` unused
};

// Logarithmic; the diagonal is a perfect prediction, the band around it is a factor of 1.25 either way.
std::string scatter_svg(std::string_view title, std::string_view unit,
                        const std::vector<ScatterSeries>& series);

// predicted / measured - 1 against size; the grey band is the middle one of the intervals of each size.
std::string errors_svg(std::string_view title, const std::vector<ScatterSeries>& series);

// A value over what it was taken for before, with its interval; grey where nothing is known beyond the prior.
struct Whisker {
  std::string name;
  double low = 0, value = 0, high = 0;  // over the prior
  bool known = false;
};
std::string whiskers_svg(std::string_view title, const std::vector<Whisker>& whiskers);

}  // namespace weft
