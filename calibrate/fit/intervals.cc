// SPDX-License-Identifier: Apache-2.0
#include "calibrate/fit/intervals.hpp"

#include <algorithm>
#include <cmath>

#include "sim/core/check.hpp"

namespace weft {

ValueChanges values_off(const Calibration& calibration, const std::vector<double>& steps) {
  ValueChanges out;
  for (std::size_t k = 0; k < calibration.parameters.size(); ++k) {
    const Parameter& p = calibration.parameters[k];
    const double step = steps.empty() ? 0 : steps[k];
    const double value = step == 0 ? calibration.values[k] : p.nudged(calibration.values[k], step);
    for (const std::string& pointer : p.pointers)
      out.emplace_back(pointer, parameter_value(p.unit, value));
  }
  return out;
}

std::vector<double> propagate(
    const Calibration& calibration,
    const std::function<std::vector<double>(const ValueChanges&)>& predict) {
  constexpr double kNegligible = 1e-3;  // of a column: its parameters are known to a thousandth
  const std::vector<double> at = predict(values_off(calibration));
  std::vector<double> variance(at.size(), 0.0);
  const DenseMatrix root = covariance_root(calibration.covariance);
  for (std::size_t c = 0; c < root.columns; ++c) {
    double largest = 0;
    std::vector<double> column;
    for (std::size_t k = 0; k < root.rows; ++k) {
      column.push_back(root(k, c));
      largest = std::max(largest, std::abs(root(k, c)));
    }
    if (largest < kNegligible) continue;
    const std::vector<double> moved = predict(values_off(calibration, column));
    WEFT_CHECK(moved.size() == at.size(), moved.size(), at.size());
    for (std::size_t i = 0; i < at.size(); ++i) {
      if (!(at[i] > 0) || !(moved[i] > 0)) continue;
      const double step = std::log(moved[i] / at[i]);
      variance[i] += step * step;
    }
  }
  for (double& v : variance) v = std::sqrt(v);
  return variance;
}

namespace {

double model_error(const PredictedThing& what) {
  switch (what.kind) {
    case PredictedKind::collective:
      return kModelError.collective(what.bytes, what.across);
    case PredictedKind::copy:
      return kModelError.other;
    case PredictedKind::step:
      return kModelError.step;
    case PredictedKind::other:
      break;
  }
  return kModelError.worst(what.across);
}

}  // namespace

double interval_factor(const Calibration& calibration, double sd, const PredictedThing& what) {
  const double model = calibration.scale * model_error(what);
  return std::exp(student_t(kIntervalLevel, calibration.freedom) *
                  std::sqrt(sd * sd + model * model));
}

}  // namespace weft
