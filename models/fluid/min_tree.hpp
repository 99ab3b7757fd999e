// SPDX-License-Identifier: Apache-2.0
// The earliest of many times that change often and in bulk: a tree of minima with sixteen children per node. Changes mark
// their node; minima are brought up to date when somebody asks, so a thousand changes in one instant cost little more each
// than a store. No allocation once the number of slots stops growing.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <vector>

namespace weft {

class MinTree {
 public:
  static constexpr std::int64_t kNever = std::numeric_limits<std::int64_t>::max();
  static constexpr std::size_t kFan = 16;

  void resize(std::size_t slots) {
    if (!levels_.empty() && slots <= levels_[0].times.size()) return;
    std::size_t n = std::max(
        kFan, round_up(std::max(slots, levels_.empty() ? 0 : 2 * levels_[0].times.size())));
    std::size_t level = 0;
    for (;; ++level) {
      if (level == levels_.size()) levels_.emplace_back();
      levels_[level].times.resize(n, kNever);
      levels_[level].stale.resize(n / kFan, 1);
      levels_[level].queue.clear();
      for (std::size_t node = 0; node < n / kFan; ++node) {
        levels_[level].stale[node] = 1;
        levels_[level].queue.push_back(static_cast<std::uint32_t>(node));
      }
      if (n == kFan) break;
      n = round_up(n / kFan);
    }
  }

  void set(std::size_t slot, std::int64_t time) {
    Level& leaves = levels_[0];
    if (leaves.times[slot] == time) return;
    leaves.times[slot] = time;
    touch(leaves, slot / kFan);
  }
  std::int64_t at(std::size_t slot) const { return levels_[0].times[slot]; }

  std::int64_t min() {
    if (levels_.empty()) return kNever;
    for (std::size_t level = 0; level < levels_.size(); ++level) {
      Level& here = levels_[level];
      for (const std::uint32_t node : here.queue) {
        here.stale[node] = 0;
        const std::int64_t least = min_of(here, node);
        if (level + 1 == levels_.size()) {
          root_ = least;
        } else if (levels_[level + 1].times[node] != least) {
          levels_[level + 1].times[node] = least;
          touch(levels_[level + 1], node / kFan);
        }
      }
      here.queue.clear();
    }
    return root_;
  }

  // Appends the slots whose time is min(), ascending.
  void collect(std::vector<std::uint32_t>& slots) {
    const std::int64_t time = min();
    if (time != kNever) collect(levels_.size() - 1, 0, time, slots);
  }

 private:
  struct Level {
    std::vector<std::int64_t> times;
    std::vector<unsigned char> stale;  // per node of sixteen
    std::vector<std::uint32_t> queue;  // stale nodes
  };

  static std::size_t round_up(std::size_t n) { return (n + kFan - 1) / kFan * kFan; }
  static void touch(Level& level, std::size_t node) {
    if (level.stale[node] != 0) return;
    level.stale[node] = 1;
    level.queue.push_back(static_cast<std::uint32_t>(node));
  }
  static std::int64_t min_of(const Level& level, std::size_t node) {
    const std::int64_t* times = level.times.data() + node * kFan;
    std::int64_t least = times[0];
    for (std::size_t i = 1; i < kFan; ++i) least = times[i] < least ? times[i] : least;
    return least;
  }
  void collect(std::size_t level, std::size_t node, std::int64_t time,
               std::vector<std::uint32_t>& slots) const {
    const std::int64_t* times = levels_[level].times.data() + node * kFan;
    for (std::size_t i = 0; i < kFan; ++i) {
      if (times[i] != time) continue;
      if (level == 0) {
        slots.push_back(static_cast<std::uint32_t>(node * kFan + i));
      } else {
        collect(level - 1, node * kFan + i, time, slots);
      }
    }
  }

  std::vector<Level> levels_;
  std::int64_t root_ = kNever;
};

}  // namespace weft
