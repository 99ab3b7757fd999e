// SPDX-License-Identifier: Apache-2.0
// The resources of a sweep by the level at which they would saturate. Keys only rise, and the lowest is asked for again and
// again; so keys lie in bins, and only those of the lowest bin are kept in order (a small binary heap). Keys
// above the expected highest level share the last bin, which is divided anew when the sweep gets there.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <vector>

#include "sim/core/check.hpp"

namespace weft {

class LevelQueue {
 public:
  struct Key {
    double level;
    std::uint32_t resource;
  };

  void clear() {
    heap_.clear();
    all_.clear();
  }
  void add(const Key& key) { all_.push_back(key); }

  // After all add()s. `highest`: about the highest level that matters; only speed depends on it.
  void start(double highest) {
    double low = std::numeric_limits<double>::max(), high = 0;
    for (const Key& key : all_) {
      low = std::min(low, key.level);
      high = std::max(high, key.level);
    }
    divide(low, highest > low ? highest * 1.05 : high);
    next_.resize(all_.size());
    for (std::uint32_t i = 0; i < all_.size(); ++i) link(i);
  }

  const Key& top() {
    while (heap_.empty()) open_next_bin();
    return all_[heap_.front()];
  }
  void pop() {
    const std::uint32_t last = heap_.back();
    heap_.pop_back();
    if (!heap_.empty()) sink(last);
  }
  // The top has a higher key now.
  void raise(const Key& key) {
    const std::uint32_t i = heap_.front();
    all_[i].level = key.level;
    if (bin_of(key.level) <= bin_) {
      sink(i);
    } else {
      pop();
      link(i);
    }
  }

 private:
  static constexpr std::size_t kBins = 512;  // mostly one key per bin, which then needs no order
  static constexpr std::uint32_t kNone = 0xFFFFFFFFu;

  static std::uint64_t bits_of(double level) {
    return std::bit_cast<std::uint64_t>(level + 0.0);
  }  // -0 is 0
  // Bins are intervals of the bit pattern, which for numbers from 0 on ascends with the number: fine where levels are low.
  void divide(double low, double high) {
    low_ = bits_of(low);
    const std::uint64_t high_bits = bits_of(std::max(low, high));
    shift_ = std::max(0, static_cast<int>(std::bit_width(high_bits - low_)) -
                             static_cast<int>(std::bit_width(kBins - 1)));
    filled_.fill(0);
    word_ = 0;
    bin_ = -1;
  }
  std::int32_t bin_of(double level) const {
    return static_cast<std::int32_t>(
        std::min<std::uint64_t>((bits_of(level) - low_) >> shift_, kBins - 1));
  }
  void link(std::uint32_t i) {
    const auto bin = static_cast<std::size_t>(bin_of(all_[i].level));
    const std::uint64_t bit = std::uint64_t{1} << (bin % 64);
    std::uint64_t& word = filled_[bin / 64];
    next_[i] = (word & bit) != 0 ? heads_[bin] : kNone;
    heads_[bin] = i;
    word |= bit;
  }
  void open_next_bin() {
    while (filled_[word_] == 0) {
      ++word_;
      WEFT_CHECK(word_ < filled_.size(), word_);
    }
    const std::size_t bin = word_ * 64 + static_cast<std::size_t>(std::countr_zero(filled_[word_]));
    bin_ = static_cast<std::int32_t>(bin);
    filled_[word_] &= filled_[word_] - 1;
    for (std::uint32_t i = heads_[bin]; i != kNone; i = next_[i]) heap_.push_back(i);
    if (bin + 1 == kBins && heap_.size() > 16) {
      double low = std::numeric_limits<double>::infinity(), high = 0;
      for (const std::uint32_t i : heap_) {
        low = std::min(low, all_[i].level);
        high = std::max(high, all_[i].level);
      }
      if (high > low * (1 + 1e-9)) {
        // A far outlier must not put all others into one bin.
        divide(low, std::min(high, 2 * low));
        for (const std::uint32_t i : heap_) link(i);
        heap_.clear();
        return;
      }
    }
    if (heap_.size() < 2) return;
    std::make_heap(heap_.begin(), heap_.end(), [this](std::uint32_t a, std::uint32_t b) {
      return all_[a].level > all_[b].level;
    });
  }
  void sink(std::uint32_t i) {
    const double level = all_[i].level;
    const std::size_t count = heap_.size();
    std::size_t hole = 0;
    for (std::size_t child = 1; child < count; child = 2 * hole + 1) {
      child += static_cast<std::size_t>(child + 1 < count &&
                                        all_[heap_[child]].level > all_[heap_[child + 1]].level);
      if (!(level > all_[heap_[child]].level)) break;
      heap_[hole] = heap_[child];
      hole = child;
    }
    heap_[hole] = i;
  }

  std::vector<Key> all_;
  std::vector<std::uint32_t> next_;  // in its bin
  std::vector<std::uint32_t> heap_;  // of the open bin
  std::array<std::uint32_t, kBins> heads_{};
  std::array<std::uint64_t, kBins / 64> filled_{};  // bins that hold something
  std::size_t word_ = 0;                            // none below holds anything
  std::int32_t bin_ = -1;
  std::uint64_t low_ = 0;
  int shift_ = 0;
};

}  // namespace weft
