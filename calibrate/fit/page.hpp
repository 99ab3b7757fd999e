// SPDX-License-Identifier: Apache-2.0
// A calibration as one HTML page that needs nothing else: measured and predicted times and bandwidths against size, errors,
// parameters with their intervals, and what these measurements do not tell.
#pragma once

#include <string>
#include <vector>

#include "calibrate/fit/check.hpp"
#include "calibrate/fit/fit.hpp"

namespace weft {

struct CalibrationPage {
  std::string title, fabric, instrument;
  std::vector<std::string> notes;
  const FitResult* fitted = nullptr;  // to all rows
  // Of `weft calibrate check`: the rows that were left out, which then are those that are shown.
  const HoldOut* left_out = nullptr;
  std::string how;  // "sizes but 32 KiB, 1 MiB and 1 GiB"
};

std::string calibration_page(const CalibrationPage& page);

}  // namespace weft
