// SPDX-License-Identifier: Apache-2.0
// What a measurement holds and what a fit would miss in it.
//
//   holds    copies between GPUs   56 pairs alone by copy-engine, 4 sizes from 4 KiB to 256 MiB
//   missing  contention            no transfers that start together: what pairs share cannot be told
#pragma once

#include <string>
#include <vector>

#include "calibrate/measurement.hpp"

namespace weft {

struct MeasurementContents {
  struct Line {
    std::string what, detail;
  };
  std::vector<Line> holds, missing;
  // Samples whose repeats do not agree, and tests that failed, each with its reason.
  std::vector<Line> doubtful;
};

MeasurementContents inspect_measurement(const Measurement& measurement);

}  // namespace weft
