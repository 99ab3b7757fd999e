// SPDX-License-Identifier: Apache-2.0
// Which few measurements would make a prediction surer.
//
//   C    covariance of the logarithms of the parameters: the catalogue's priors, or what a calibration left of them
//   g    slope of ln(what is predicted) to them; its variance is g'Cg
//   j    slope of ln(a measurement) to them, w its error (noise and what weft is off by)
//   A measurement takes (g'Cj)^2 / (j'Cj + w^2) off the variance and leaves C - Cj j'C / (j'Cj + w^2): the best is taken, C is
//   what it leaves, and so on. What is left is then propagated as a prediction's interval is (intervals.hpp), so that the
//   uncertainty before is the one that a prediction has.
// Assumes: a linear model for the choice. Whether a measurement can be made is for people to say.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "calibrate/fit/intervals.hpp"

namespace weft {

struct SuggestedMeasurement {
  std::string what;      // "all_reduce of 8, 32 MiB"
  double sd_before = 0;  // of the prediction, relative
  double sd_after = 0;
  std::string about;  // the parameter that it tells most of
};

// The catalogue's knowledge of a fabric as a calibration that has measured nothing.
Calibration prior_calibration(const FitMachine& machine);

// What could be measured on the machine: collectives by size and group, copies by size, kernels of its GPU.
FitData measurable(const FitMachine& machine, std::int64_t servers);

// `predict`: as for propagate(), one number.
std::vector<SuggestedMeasurement> suggest(const FitMachine& machine, const Calibration& calibration,
                                          const FitData& could_measure,
                                          const std::function<double(const ValueChanges&)>& predict,
                                          std::size_t most);

}  // namespace weft
