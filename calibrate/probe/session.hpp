// SPDX-License-Identifier: Apache-2.0
// Carries out a plan: repeats each test, writes what it said, goes on after one that failed.
#pragma once

#include <functional>
#include <string>

#include "calibrate/probe/backend.hpp"
#include "calibrate/probe/plan.hpp"
#include "calibrate/probe/result_file.hpp"

namespace weft {

struct SessionHooks {
  std::function<bool()> stop;                    // asked between runs; may be empty
  std::function<void(const std::string&)> tell;  // one line for people; may be empty
  std::function<void(std::size_t, std::size_t, const PlannedTest&)> progress;  // may be empty
};

enum class SessionEnd { complete, stopped, broken };
struct SessionResult {
  SessionEnd end = SessionEnd::complete;
  std::size_t done = 0, failed = 0, skipped = 0;  // skipped: done by an earlier run
};

SessionResult run_session(const ProbePlan& plan, ProbeBackend& backend, ResultFile& file,
                          const SessionHooks& hooks);

// The measurement of one test: what its runs say, in the form of the file. `runs[i][part]`.
Measurement measurement_of(const PlannedTest& test, const std::vector<std::vector<Time>>& runs,
                           std::optional<Frequency> clock);

}  // namespace weft
