// SPDX-License-Identifier: Apache-2.0
// What the uncertainty of a calibration means for a prediction.
//
// Law:     the delta method on logarithms: with the covariance C = R R' of the parameters' logarithms, the variance of ln f is
//          the sum over columns r of R of (ln f(theta + r) - ln f(theta))^2. One prediction per column.
//          What weft itself is off by (ModelError, times the scale that the fit found) is added to it: a calibrated number is
//          no measurement.
// Assumes: ln f is nearly linear within a standard deviation. A switch of algorithm inside it shows as a step.
#pragma once

#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "calibrate/fit/patch.hpp"

namespace weft {

// Values by pointer, as a command line would set them.
using ValueChanges = std::vector<std::pair<std::string, Json>>;

// All values of a calibration, each e^steps[k] off (nudged back at a bound); no steps: as they are.
ValueChanges values_off(const Calibration& calibration, const std::vector<double>& steps = {});

// Standard deviations of ln f for every output of `predict`, which gives positive numbers, the same many on each call. It is
// asked with all values of the calibration set, never with some of them: what a fabric does not say has no value of its own.
std::vector<double> propagate(
    const Calibration& calibration,
    const std::function<std::vector<double>(const ValueChanges&)>& predict);

// What is predicted, as far as it decides how far off weft itself is: collectives by their size and reach, copies, steps of
// training; anything else (an inference job, several jobs at once) is taken as the worst of collectives.
enum class PredictedKind { collective, copy, step, other };
struct PredictedThing {
  PredictedKind kind = PredictedKind::other;
  Bytes bytes{0};
  bool across = false;  // servers
};

// The factor that a 90 % interval of a new measurement goes up and down by: `sd` of the parameters, from propagate(), and what
// weft is off by beside them.
double interval_factor(const Calibration& calibration, double sd, const PredictedThing& what);

}  // namespace weft
