// SPDX-License-Identifier: Apache-2.0
// The result of a calibration as a file that any scenario can use in place of the fabric:
//
//   {"weft": {"schema": 1}, "kind": "patch", "name": "node7", "use": "hgx-h100",
//    "set": {"/nodes/0/model/kernels/ll_step": "512 ns"},
//    "sources": {"/nodes/0/model/kernels/ll_step": "measured: nccl-tests 2.18.3; 95 % 0.5 to 0.53 us"},
//    "calibration": {"parameters": [...], "covariance": [...], "residuals": [...]}}
//
// Only what the measurements determine is set. `calibration` holds all that took part, with intervals and the covariance of
// their logarithms, so that a prediction can say how far off it may be (intervals.hpp).
#pragma once

#include <string>
#include <vector>

#include "calibrate/fit/fit.hpp"

namespace weft {

struct PatchHead {
  std::string name, base;  // base: what the patch uses, a catalogue name or a path
  std::string instrument, date;
  std::vector<std::pair<std::string, Json>> changes;  // of the base, made before the fit
};

Json write_patch(const PatchHead& head, const FitResult& fitted);

// What a prediction needs of a patch.
struct Calibration {
  std::vector<Parameter> parameters;
  std::vector<double> values;  // as the patch has them
  DenseMatrix covariance;
  double scale = 1, freedom = 4;
};
// Null with the problems reported when `document` is not a patch with a calibration, or one that was changed by hand so that
// its parts no longer belong together. Unresolved: as it lies in its file.
std::optional<Calibration> read_calibration(const Json& document, Diagnostics& out);

// Reports parameters whose values are not in `fabric`, the resolved document that the patch makes: then the fabric below the patch
// is no longer the one that was fitted.
void check_calibration(const Calibration& calibration, const Json& fabric, Place place,
                       Diagnostics& out);

std::string state_text(ParameterState state);
std::string interval_text(const FittedParameter& parameter);

}  // namespace weft
