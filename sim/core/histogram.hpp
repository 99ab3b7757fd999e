// SPDX-License-Identifier: Apache-2.0
// A distribution of int64 values in little memory: exact below 128, then 64 bins per octave, so that every bin is at most 1/64
// as wide as its values are large.
//
// Law:      quantile(q) is within 1/128 (relative) of the ceil(q * count)-th smallest value; count, sum, minimum and maximum
//           are exact.
// Merging:  adds the bins; the result does not depend on order or grouping, so shards of a run may be joined as they come.
// Memory:   8 bytes per bin up to the largest magnitude seen: 14 KB for values up to a millisecond in ps.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <vector>

namespace weft {

class Histogram {
 public:
  struct Bin {
    std::int64_t low, high;  // both ends are inside
    std::uint64_t count;
    friend bool operator==(const Bin&, const Bin&) = default;
  };

  void record(std::int64_t value, std::uint64_t times = 1);
  void merge(const Histogram& other);

  bool empty() const { return count_ == 0; }
  std::uint64_t count() const { return count_; }
  std::int64_t min() const { return empty() ? 0 : min_; }
  std::int64_t max() const { return empty() ? 0 : max_; }
  double mean() const;  // 0 when empty
  // The middle of the bin that holds the value of that rank, never outside [min, max]; 0 when empty. 0 <= q <= 1.
  std::int64_t quantile(double q) const;
  // The bins with something in them, by rising value.
  std::vector<Bin> bins() const;

  friend bool operator==(const Histogram&, const Histogram&) = default;

 private:
  __extension__ typedef __int128 Sum;

  std::vector<std::uint64_t> positive_,
      negative_;  // by bin of the magnitude; the last bin is never empty
  std::uint64_t count_ = 0;
  Sum sum_ = 0;
  std::int64_t min_ = std::numeric_limits<std::int64_t>::max();
  std::int64_t max_ = std::numeric_limits<std::int64_t>::min();
};

}  // namespace weft
