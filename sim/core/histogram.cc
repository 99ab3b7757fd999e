// SPDX-License-Identifier: Apache-2.0
#include "sim/core/histogram.hpp"

#include <algorithm>
#include <bit>
#include <cmath>

namespace weft {
namespace {

constexpr unsigned kSubBits = 6;                    // 64 bins per octave
constexpr std::uint64_t kExact = 2ULL << kSubBits;  // magnitudes below have a bin each

std::uint64_t magnitude(std::int64_t value) {
  const auto bits = static_cast<std::uint64_t>(value);
  return value < 0 ? 0 - bits : bits;
}

std::size_t bin_of(std::uint64_t magnitude) {
  if (magnitude < kExact) return magnitude;
  const unsigned shift = static_cast<unsigned>(std::bit_width(magnitude)) - kSubBits - 1;
  return (static_cast<std::size_t>(shift) << kSubBits) + (magnitude >> shift);
}

struct Span {
  std::uint64_t low, high;
};
Span span_of(std::size_t bin) {
  if (bin < kExact) return {bin, bin};
  const std::size_t shift = (bin >> kSubBits) - 1;
  const std::uint64_t low = (bin - (shift << kSubBits)) << shift;
  return {low, low + ((1ULL << shift) - 1)};
}

std::int64_t signed_value(std::uint64_t magnitude, bool negative) {
  if (negative) return static_cast<std::int64_t>(0 - magnitude);
  return static_cast<std::int64_t>(magnitude);
}

void add(std::vector<std::uint64_t>& bins, std::size_t bin, std::uint64_t times) {
  if (bins.size() <= bin) bins.resize(bin + 1);
  bins[bin] += times;
}

void add(std::vector<std::uint64_t>& bins, const std::vector<std::uint64_t>& others) {
  if (bins.size() < others.size()) bins.resize(others.size());
  for (std::size_t i = 0; i < others.size(); ++i) bins[i] += others[i];
}

}  // namespace

void Histogram::record(std::int64_t value, std::uint64_t times) {
  if (times == 0) return;
  add(value < 0 ? negative_ : positive_, bin_of(magnitude(value)), times);
  count_ += times;
  sum_ += static_cast<Sum>(value) * static_cast<Sum>(times);
  min_ = std::min(min_, value);
  max_ = std::max(max_, value);
}

void Histogram::merge(const Histogram& other) {
  add(positive_, other.positive_);
  add(negative_, other.negative_);
  count_ += other.count_;
  sum_ += other.sum_;
  min_ = std::min(min_, other.min_);
  max_ = std::max(max_, other.max_);
}

double Histogram::mean() const {
  return empty() ? 0 : static_cast<double>(sum_) / static_cast<double>(count_);
}

std::vector<Histogram::Bin> Histogram::bins() const {
  std::vector<Bin> out;
  for (std::size_t i = negative_.size(); i-- > 0;) {
    const Span span = span_of(i);
    // The bin of -2^63 is cut at the end of the type.
    const std::uint64_t far = std::min(span.high, std::uint64_t{1} << 63);
    if (negative_[i] > 0)
      out.push_back({signed_value(far, true), signed_value(span.low, true), negative_[i]});
  }
  for (std::size_t i = 0; i < positive_.size(); ++i) {
    const Span span = span_of(i);
    if (positive_[i] > 0)
      out.push_back({signed_value(span.low, false), signed_value(span.high, false), positive_[i]});
  }
  return out;
}

std::int64_t Histogram::quantile(double q) const {
  if (empty()) return 0;
  const double wanted = std::ceil(std::clamp(q, 0.0, 1.0) * static_cast<double>(count_));
  if (wanted <= 1) return min_;
  if (wanted >= static_cast<double>(count_)) return max_;
  const auto rank = static_cast<std::uint64_t>(wanted);
  std::uint64_t passed = 0;
  for (const Bin& bin : bins()) {
    passed += bin.count;
    if (passed >= rank) return std::clamp(bin.low + (bin.high - bin.low) / 2, min_, max_);
  }
  return max_;
}

}  // namespace weft
