// SPDX-License-Identifier: Apache-2.0
// The times of a scenario as functions of what a calibration knows of its fabric: what `weft run --intervals` puts intervals
// around and `weft calibrate suggest` looks for ways to make surer. One notion of both, so that they agree.
#pragma once

#include <string>
#include <vector>

#include "calibrate/fit/intervals.hpp"
#include "tools/cli/simulate.hpp"

namespace weft {

class ScenarioTimes {
 public:
  // A scenario's file, with flags. Throws InputError with all problems of it.
  ScenarioTimes(std::string path, RunOptions options);

  const Scenario& scenario() const { return scenario_; }
  // What they are the times of: the whole, then each job.
  const std::vector<PredictedThing>& things() const { return things_; }
  // In seconds, with values of the fabric changed.
  std::vector<double> at(const ValueChanges& changes);

 private:
  std::string path_;
  RunOptions options_;
  Diagnostics diagnostics_;
  RunContext context_;
  Scenario scenario_;
  std::vector<PredictedThing> things_;
};

}  // namespace weft
