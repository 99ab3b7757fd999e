// SPDX-License-Identifier: Apache-2.0
// Fast-forward of a job whose iterations repeat (`models.repeat_memory`).
//
//   Exact   Three iterations in a row in which every operation ends at the same time after their start, and of which the
//           network counts the same packets, marks, pauses and losses: the rest is taken to go on so.
//   Near    At least 16 in a row within 5 % of their mean m. The rest takes m each, and with the largest deviation d of those
//           seen and the slope s of a straight line through them the sum over n more is off by at most n d + s n^2 / 2, as long
//           as what comes deviates no more than what was seen. Not while that is more than 5 % of n m.
//
// One more iteration is then measured for what each link carries, and the others are added up without being run. Only for the
// last job that runs, and when no link changes any more: whatever else happened could end the repetition.
#pragma once

#include <cstdint>
#include <deque>
#include <optional>
#include <vector>

#include "sim/run/executor.hpp"
#include "sim/run/network_model.hpp"

namespace weft {

struct FastForward {
  std::uint32_t job = 0, simulated = 0, skipped = 0;
  Time each{0};       // that is taken for one
  Time bound{0};      // of what the end may be off by; 0: the iterations are the same
  Time deviation{0};  // largest from the mean among those seen
};

class RepeatMemory {
 public:
  static constexpr std::size_t kSame = 3, kNear = 16, kMost = 64;
  static constexpr double kTolerance = 0.05, kWorst = 0.05;

  RepeatMemory(const NetworkModel& network, std::uint32_t resources)
      : network_(network), resources_(resources) {}

  // An iteration has ended and `left` are to come: how many of these need not be run.
  Executor::Skip ended(std::uint32_t job, std::uint64_t fingerprint, Time took, std::uint32_t left);

  const std::optional<FastForward>& result() const { return result_; }
  // As if all had been run.
  double carried_bytes(std::uint32_t resource) const;
  NetworkCounters counters() const;
  std::optional<QueueReport> queue_report(std::uint32_t resource) const;

 private:
  struct Iteration {
    std::uint64_t fingerprint = 0;
    Time took{0};
    NetworkCounters counted;
  };
  struct Counted {
    double bytes = 0;
    std::optional<QueueReport> queue;
  };
  std::optional<FastForward> foresee(std::uint32_t left) const;
  std::vector<Counted> count() const;

  const NetworkModel& network_;
  std::uint32_t resources_;
  std::uint32_t job_ = 0, simulated_ = 0;
  std::deque<Iteration> seen_;
  NetworkCounters before_;             // at the end of the iteration before
  std::vector<Counted> first_, last_;  // around the iteration that was measured
  std::optional<FastForward> result_;
};

}  // namespace weft
