// SPDX-License-Identifier: Apache-2.0
// How far off a calibrated machine is on what it was not fitted to: some rows are kept, the rest is predicted with an interval.
//
//   sizes         kept: the rows nearest to a few sizes of every table; predicted: the others. Of every kind of copies, of memory
//                 kernels and of products of one precision (by their work): every other size between the least and the largest
//                 is predicted, so that a machine of one GPU has something to be held to
//   groups        each number of ranks in turn is left out whole, and predicted from the others
//   collectives   each collective in turn
//
// error     predicted / measured - 1.   covered: |ln(predicted / measured)| within `half_width`.
// Rows that are not fitted for what the log says of them (tables.hpp) are not predicted either.
// Faults   are looked for in what is kept, as a fit does (faults.hpp): a machine with a slow link is predicted with it. What started
//          together with a transfer over the faulty part is neither fitted nor predicted.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "calibrate/fit/faults.hpp"
#include "calibrate/fit/fit.hpp"

namespace weft {

struct HeldOutRow {
  MeasuredPoint point;
  double predicted = 0, sd = 0;
  double half_width = 0;  // of the 90 % interval of the logarithm
  bool covered = false;
  double error() const { return predicted / point.measured - 1; }
};

struct HoldOut {
  std::vector<HeldOutRow> rows;
  std::size_t fitted = 0;           // rows that were kept
  std::size_t spoilt = 0;           // rows beside a faulty part
  std::vector<std::string> faults;  // each once, as FoundFault::what() says it
  double median = 0, p90 = 0, bias = 0, coverage = 0;
};

// Kept are the observations for which `keep` holds. Empty when nothing is left to fit or to predict.
HoldOut hold_out(const FitMachine& machine, const FitData& data,
                 const std::function<bool(const MeasuredPoint&)>& keep, const FitOptions& options);
HoldOut hold_out_sizes(const FitMachine& machine, const FitData& data,
                       const std::vector<Bytes>& sizes, const FitOptions& options);
HoldOut hold_out_groups(const FitMachine& machine, const FitData& data, const FitOptions& options);
HoldOut hold_out_collectives(const FitMachine& machine, const FitData& data,
                             const FitOptions& options);

// The figures of collectives, copies and kernels apart; kinds without rows are not there.
struct HeldOutKind {
  std::string name;
  HoldOut of;
};
std::vector<HeldOutKind> kinds_of(const HoldOut& found);

// What people are to know of the faults: which ones, and what became of the rows beside them.
std::vector<std::string> fault_notes(const HoldOut& found);

void add_rows(HoldOut& to, const HoldOut& from);  // and the figures over all
void summarise(HoldOut& result);

}  // namespace weft
