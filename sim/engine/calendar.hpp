// SPDX-License-Identifier: Apache-2.0
// Items that wait for an instant, in one list per instant: a thousand deliveries of one picosecond cost one place in the heap.
// Finding the list of an instant is a look into a small table of recent ones; a miss only makes a second list of that instant.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <vector>

namespace weft {

class Calendar {
 public:
  static constexpr std::int64_t kNever = std::numeric_limits<std::int64_t>::max();

  void add(std::int64_t when, std::uint32_t item) {
    Recent& recent = recent_[(static_cast<std::uint64_t>(when) * 0x9E3779B97F4A7C15ULL) >> 58];
    if (recent.when != when) {
      recent.when = when;
      recent.list = new_list();
      heap_.push_back({when, opened_++, recent.list});
      std::push_heap(heap_.begin(), heap_.end(), later);
    }
    lists_[recent.list].push_back(item);
  }

  std::int64_t next() const { return heap_.empty() ? kNever : heap_.front().when; }

  // Appends everything that waits for next().
  void take(std::vector<std::uint32_t>& items) {
    const std::int64_t when = next();
    Recent& recent = recent_[(static_cast<std::uint64_t>(when) * 0x9E3779B97F4A7C15ULL) >> 58];
    if (recent.when == when) recent = {};
    while (!heap_.empty() && heap_.front().when == when) {
      std::pop_heap(heap_.begin(), heap_.end(), later);
      const std::uint32_t list = heap_.back().list;
      heap_.pop_back();
      items.insert(items.end(), lists_[list].begin(), lists_[list].end());
      lists_[list].clear();
      free_lists_.push_back(list);
    }
  }

 private:
  struct Entry {
    std::int64_t when;
    std::uint64_t order;
    std::uint32_t list;
  };
  struct Recent {
    std::int64_t when = kNever;
    std::uint32_t list = 0;
  };
  static bool later(const Entry& a, const Entry& b) {
    return a.when > b.when || (a.when == b.when && a.order > b.order);
  }
  std::uint32_t new_list() {
    if (free_lists_.empty()) {
      lists_.emplace_back();
      return static_cast<std::uint32_t>(lists_.size() - 1);
    }
    const std::uint32_t list = free_lists_.back();
    free_lists_.pop_back();
    return list;
  }

  std::vector<Entry> heap_;
  std::vector<std::vector<std::uint32_t>> lists_;
  std::vector<std::uint32_t> free_lists_;
  std::array<Recent, 64> recent_{};
  std::uint64_t opened_ = 0;
};

}  // namespace weft
