// SPDX-License-Identifier: Apache-2.0
// Where a plan is carried out: on real GPUs (probe/cuda) or on a made-up machine (probe/synthetic).
//
// A test is prepared once (memory, connections) and then run as often as the session wants. What cannot be done is thrown as
// TestFailed: it is recorded and the run goes on.
#pragma once

#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

#include "calibrate/measurement.hpp"
#include "calibrate/probe/plan.hpp"

namespace weft {

struct TestFailed : std::runtime_error {
  using std::runtime_error::runtime_error;
};
// There is no machine of this kind here: exit code 3.
struct NoMachine : std::runtime_error {
  using std::runtime_error::runtime_error;
};

class PreparedTest {
 public:
  virtual ~PreparedTest() = default;
  // One run: a time of each part. A copy has a part for each of its transfers; an overlap four: product and collective alone,
  // then beside each other; all else one.
  virtual std::vector<Time> once() = 0;
  // Of the multiprocessors, right after a run.
  virtual std::optional<Frequency> clock() { return std::nullopt; }
  // Of a tool that does its own repeats: its result instead of once().
  virtual std::vector<MessageTest> messages() { return {}; }
};

class ProbeBackend {
 public:
  virtual ~ProbeBackend() = default;
  virtual ProbeMachine machine() = 0;
  virtual std::unique_ptr<PreparedTest> prepare(const PlannedTest& test) = 0;
  // A process that only takes part in what another one measures: does so until that has ended. False: it is not one.
  virtual bool serve() { return false; }
  // A test left the device unusable for this process: a fresh one must go on.
  virtual bool broken() const { return false; }
  virtual bool restarts() const { return true; }  // whether a fresh process may
  // Seconds since some instant, as far as tests are concerned.
  virtual double now() = 0;
};

}  // namespace weft
