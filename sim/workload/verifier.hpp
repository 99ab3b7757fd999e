// SPDX-License-Identifier: Apache-2.0
// Executes the steps of a Schedule symbolically and proves what every rank holds at the end, whatever the algorithm.
//
// State:    per rank (and kSwitch) and unit, the set of ranks whose contributions are in it; empty: the place holds nothing.
// Start:    broadcast, scatter: the root's {root}. all_reduce, reduce, reduce_scatter: every rank its {rank}. all_gather,
//           gather: unit u is {u % ranks} at its owner. all_to_all, send_recv: {s} at the sender s.
// Goal:     the full set, or the sender's, exactly where the collective promises it; elsewhere anything may be left behind.
// Rules:    a round reads the state that the rounds before left; a sent unit must be held; a reduction must add disjoint
//           sets (nothing counts twice); two writes of a unit in one round are a conflict unless both reduce. The switch
//           has no memory: what arrives in a round can leave in the next one only.
// Memory:   bounded: when the state would exceed about 16 MiB, the steps are run several times, a window of units each.
//
// Example:  Verification v = verify(kRing.build(request, shape)); ASSERT_TRUE(v.ok()) << v.text();
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "sim/workload/schedule.hpp"

namespace weft {

// Payload per ordered pair of ranks; kSwitch counts as one more rank.
class PairBytes {
 public:
  PairBytes() = default;
  explicit PairBytes(std::uint32_t ranks)
      : ranks_(ranks), bytes_(std::size_t{ranks + 1} * (ranks + 1), 0.0) {}
  double& at(std::uint32_t src, std::uint32_t dst) {
    return bytes_[index(src) * (ranks_ + 1) + index(dst)];
  }
  double at(std::uint32_t src, std::uint32_t dst) const {
    return bytes_[index(src) * (ranks_ + 1) + index(dst)];
  }
  std::uint32_t ranks() const { return ranks_; }
  double sent_by(std::uint32_t rank) const;
  double received_by(std::uint32_t rank) const;
  double total() const;  // every transfer once

 private:
  std::size_t index(std::uint32_t rank) const { return rank == kSwitch ? ranks_ : rank; }
  std::uint32_t ranks_ = 0;
  std::vector<double> bytes_;
};

struct Verification {
  std::vector<std::string> faults;  // the first few, by name
  std::uint64_t fault_count = 0;
  std::uint64_t step_count = 0;
  PairBytes bytes;  // of the steps

  bool ok() const { return fault_count == 0; }
  std::string text() const;  // the faults, one per line
};

Verification verify(const Schedule& schedule);

// The traffic that the phases claim, to compare with Verification::bytes.
PairBytes phase_bytes(const Schedule& schedule);

// Schedules with phases: the pairs whose payload differs by more than `tolerance` bytes, the first few by name, and edges
// that do not fit their form (a ring that does not close, a chain with a gap).
std::vector<std::string> compare_phases(const Schedule& schedule, const Verification& verification,
                                        double tolerance);

}  // namespace weft
