// SPDX-License-Identifier: Apache-2.0
// The oldest model of a message: time = latency + bytes / rate, in as many pieces as the measurement needs. A collective has
// several: NCCL changes protocol and algorithm with size, and each has its own pair.
//
// Fit:      pieces by dynamic programming over the sizes; in each, least squares of the relative error; the fewest pieces whose
//           worst error is 5 %, and at most 6. Latency and 1/rate are never negative.
// Cliffs:   a size at which bandwidth falls off ends a piece. No line is drawn through it.
// Example:  1 KiB to 1 GiB on four cards: 18.5 us flat, then 25.3 GB/s busbw.
#pragma once

#include <optional>
#include <vector>

#include "calibrate/log_facts.hpp"

namespace weft {

struct LatencyBandwidthPiece {
  Bytes from{0}, to{0};
  double latency_us = 0;
  double us_per_byte = 0;
};

struct LatencyBandwidth {
  std::vector<LatencyBandwidthPiece> pieces;  // ascending, without overlap
  std::vector<Anomaly> cliffs;                // where the line was not drawn through
  double worst_error = 0;                     // largest |fitted / measured - 1|
  double small_message_us = 0;                // fitted time of the smallest size
  double algbw_gbs = 0;                       // of the last piece, as sizes grow without end

  // Outside the measured sizes the first and last piece go on; between pieces the nearer one below.
  double time_us(Bytes bytes) const;
};

// Absent with fewer than two sizes.
std::optional<LatencyBandwidth> fit_latency_bandwidth(const MeasuredRun& run);

}  // namespace weft
