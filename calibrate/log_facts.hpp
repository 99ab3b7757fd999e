// SPDX-License-Identifier: Apache-2.0
// What a measurement says by itself, before any model is asked: how many ranks there were, what the small messages cost, which
// rows do not fit the others, what the printed "bus bandwidth" means on the wire. Pure functions of a measurement.
//
// nccl-tests prints algbw = bytes / time and busbw = algbw x f, where f undoes the traffic a ring would need:
//   all_reduce 2 (n-1)/n; all_gather, reduce_scatter, all_to_all, gather, scatter (n-1)/n; broadcast, reduce, send_recv 1
// so f tells n. With reduction in the switch a GPU sends and receives algbw (1 + 1/n) only, and busbw may exceed the link.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "calibrate/measurement.hpp"

namespace weft {

// ---- ranks

// The factor f of a collective among n ranks; 0 when the name is not known.
double bus_factor(std::string_view collective, int ranks);

struct RankGuess {
  std::optional<int> ranks;  // most likely; absent when the rows allow no statement
  int fewest = 0, most = 0;  // all counts that agree with the rounding of the rows; 0: none
  double factor_low = 0, factor_high = 0;  // what busbw / algbw may be
  std::size_t agree = 0, total = 0;        // samples that allow it, of those that say something
};
// From busbw / algbw, each within its rounding. Of several counts that fit, the one that most powers of two divide is the
// likely one (16 rather than 17): GPUs come in nodes of 2, 4, 8.
RankGuess infer_ranks(const MeasuredRun& run);
// Samples whose busbw / algbw lies outside the guess by more than 1 %, by index.
std::vector<std::size_t> factor_outliers(const MeasuredRun& run, double factor);

// ---- averages and limits

// The mean that nccl-tests prints last, from the samples; 0 without any.
double average_busbw_gbs(const MeasuredRun& run);

struct Plateau {
  Time time{0};    // median over the sizes
  Bytes up_to{0};  // the largest size that still takes this long
};
// The time that messages take whatever their size, when sizes that differ by 4 and more take the same. Robust against single
// outliers such as a first row that pays for the warm-up.
std::optional<Plateau> fixed_cost(const MeasuredRun& run);

struct Asymptote {
  double busbw_gbs = 0;    // median over the largest sizes
  bool saturated = false;  // doubling the size no longer helps
};
// Absent when every size is on the plateau: then the rate says nothing about a link.
std::optional<Asymptote> asymptotic_busbw(const MeasuredRun& run);

// ---- rows that do not fit

struct Anomaly {
  enum class Kind {
    warm_up,             // the first size is slower than the next
    slower_than_larger,  // takes longer than the next larger size
    cliff,               // bandwidth falls to 60 % or less of the size before
  };
  Kind kind;
  Bytes bytes{0};  // the odd size; of a cliff, the first size below it
  double factor = 1;
  std::string text;
};
std::vector<Anomaly> anomalies(const MeasuredRun& run);

// ---- readings of a number

struct WireReading {
  double ring_gbs = 0;       // each way per GPU if a ring or tree did it: busbw
  double in_switch_gbs = 0;  // each way per GPU if the switch reduced: algbw (1 + 1/n)
};
std::optional<WireReading> wire_reading(const MeasuredRun& run);

struct LinkEstimate {
  double gbs = 0;
  std::string reading;  // "ring" or "nvls"
};
// What the run says about a link of `raw`: never more than that. Absent when no reading fits below it.
std::optional<LinkEstimate> link_estimate(const MeasuredRun& run, Bandwidth raw);

// What one GPU sends into the network in an all-to-all among nodes of `gpus_per_node`: busbw (n - g)/(n - 1).
std::optional<double> network_gbs(const MeasuredRun& run, int gpus_per_node);

struct RawShare {
  double ratio = 0;
  bool low = false;    // below what links of any kind sustain when nothing is wrong
  bool above = false;  // more than the wire: another link, another unit, or reduction in the switch
};
RawShare share_of_raw(double measured_gbs, Bandwidth raw);

// ---- matrices

double median_gbs(const MeasuredMatrix& matrix);
std::optional<Time> median_latency(const MeasuredMatrix& matrix);
// Whether peer access made a difference: the matrices with it on and off differ by more than 2 %. Absent without a pair of
// matrices to compare.
std::optional<bool> peer_access_works(const Measurement& measurement);

double median(std::vector<double> values);

}  // namespace weft
