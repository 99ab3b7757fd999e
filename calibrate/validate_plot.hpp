// SPDX-License-Identifier: Apache-2.0
// Two plots as SVG: bandwidth against size in small multiples, and predicted against measured on one diagonal.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace weft {

struct SweepPoint {
  double bytes = 0, measured = 0, predicted = 0;
};

struct SweepPanel {
  std::string title, subtitle;
  std::vector<SweepPoint> points;  // by size
};

// Logarithmic both ways; all panels have the sizes in common, each has its own bandwidths. Dots were measured, the line is
// predicted.
std::string sweeps_svg(std::string_view title, const std::vector<SweepPanel>& panels);

struct ScatterSeries {
  std::string name;
  std::vector<SweepPoint> points;  // `bytes` unused
};

// Logarithmic; the diagonal is a perfect prediction, the band around it is a factor of 1.25 either way.
std::string scatter_svg(std::string_view title, std::string_view unit,
                        const std::vector<ScatterSeries>& series);

}  // namespace weft
