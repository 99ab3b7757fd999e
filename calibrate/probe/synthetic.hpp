// SPDX-License-Identifier: Apache-2.0
// A backend without hardware: any fabric of weft as the machine, so that measuring, fitting and predicting can be tried, and
// tested, as a whole.
//
// Says:     what a data sheet says: the facts and paths of the documented fabric.
// Measures: the hidden machine (hidden_machine.hpp). Copies run packet by packet (hidden_transfers.hpp), collectives by weft's
//           model of NCCL with the hidden costs, kernels by its rooflines; each with terms that no fit knows of.
// Noise:    every test is off by a factor of its own, and every run of it by another, both normal with the given deviation; one
//           run in a hundred takes half as long again.
#pragma once

#include <memory>
#include <string>

#include "calibrate/probe/backend.hpp"
#include "calibrate/probe/hidden_machine.hpp"

namespace weft {

struct SyntheticOptions {
  std::uint64_t seed = 1;
  double noise = 0.02;
  ProbeFault fault = ProbeFault::none;
  double pace = 0;  // real seconds that every test takes, to watch or to interrupt it
};

class SyntheticBackend final : public ProbeBackend {
 public:
  // Reports what is wrong with the fabric or the fault; use the backend only when out.ok().
  SyntheticBackend(const Json& documented, const SyntheticOptions& options, Diagnostics& out);
  ~SyntheticBackend() override;

  ProbeMachine machine() override;
  std::unique_ptr<PreparedTest> prepare(const PlannedTest& test) override;
  double now() override;  // of the made-up machine: the sum of what its tests took

  // What a fit should find.
  const HiddenMachine& truth() const;

 private:
  class Truth;
  std::unique_ptr<Truth> truth_;
};

}  // namespace weft
