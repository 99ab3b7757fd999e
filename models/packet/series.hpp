// SPDX-License-Identifier: Apache-2.0
// A quantity over time in bounded memory: windows of equal length with the mean and the largest value of each. When there are
// more than kMost windows, neighbours merge and the windows become twice as long; so any two series of one length can be merged
// or compared after the same halvings.
//
//   hold(t, v)   the quantity has the value v from t on (bytes in a queue)
//   add(t, n)    n more at t (bytes that arrived): the mean of a window is then the rate, per picosecond
//
// Times do not go back.
// Example: 1,000 B from 0 us, 0 B from 1 us, in windows of 2 us: mean 500, most 1,000.
#pragma once

#include <algorithm>
#include <cstddef>
#include <vector>

#include "sim/core/units.hpp"

namespace weft::packet {

class Series {
 public:
  static constexpr std::size_t kMost = 4096;

  explicit Series(Time window) : window_(std::max(window, Time{1})) {}

  void hold(Time when, double value) {
    fill_to(when);
    value_ = value;
    bin(when).most = std::max(bin(when).most, value);
  }
  void add(Time when, double amount) {
    fill_to(when);
    bin(when).area += amount;
  }

  // After finish(): the windows up to `end`, the last one perhaps not whole.
  void finish(Time end) { fill_to(end); }
  Time window() const { return window_; }
  std::size_t size() const { return bins_.size(); }
  double mean(std::size_t i) const {
    const double length = static_cast<double>(std::min(window_, last_ - start(i)).ps);
    return length > 0 ? bins_[i].area / length : 0;
  }
  double sum(std::size_t i) const { return bins_[i].area; }  // of what was added
  double most(std::size_t i) const { return bins_[i].most; }
  Time start(std::size_t i) const { return window_ * static_cast<std::int64_t>(i); }

 private:
  struct Bin {
    double area = 0, most = 0;
  };

  Bin& bin(Time when) { return bins_[static_cast<std::size_t>(when.ps / window_.ps)]; }

  void fill_to(Time when) {
    while (when.ps / window_.ps >= static_cast<std::int64_t>(kMost)) halve();
    const auto needed = static_cast<std::size_t>(when.ps / window_.ps) + 1;
    while (last_ < when) {
      const auto i = static_cast<std::size_t>(last_.ps / window_.ps);
      if (i >= bins_.size()) bins_.resize(i + 1, {0, value_});
      const Time end = std::min(when, start(i + 1));
      bins_[i].area += value_ * static_cast<double>((end - last_).ps);
      last_ = end;
    }
    if (bins_.size() < needed) bins_.resize(needed, {0, value_});
  }

  void halve() {
    for (std::size_t i = 0; i < bins_.size(); ++i) {
      Bin& into = bins_[i / 2];
      into = i % 2 == 0 ? bins_[i]
                        : Bin{into.area + bins_[i].area, std::max(into.most, bins_[i].most)};
    }
    bins_.resize((bins_.size() + 1) / 2);
    window_ = 2 * window_;
  }

  Time window_, last_{0};
  double value_ = 0;
  std::vector<Bin> bins_;
};

}  // namespace weft::packet
