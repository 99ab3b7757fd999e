// SPDX-License-Identifier: Apache-2.0
// Memory of repeats: a set of flow classes on given remaining capacities is filled once and looked up afterwards.
//
// Key:    128 bits: sums, over the variables and resources of the region, of a hash of what filling depends on (variable: hops,
//         fairness, cap, count; resource: index, capacity left by others). Sums do not depend on the order of discovery.
// Policy: the first sight of a key leaves only the key; the second stores the solution. Long runs without a repeat (random
//         sizes) make the memory ask only at arrivals until one is found again.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace weft {

// Mixes 64 bits well (the finisher of SplitMix64).
constexpr std::uint64_t mix_bits(std::uint64_t x) {
  x += 0x9E3779B97F4A7C15ULL;
  x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9ULL;
  x = (x ^ (x >> 27)) * 0x94D049BB133111EBULL;
  return x ^ (x >> 31);
}

struct RepeatKey {
  std::uint64_t low = 0, high = 0;

  void add(std::uint64_t hash) {
    low += hash;
    high += hash * (hash | 1);
  }
  friend bool operator==(const RepeatKey&, const RepeatKey&) = default;
};

class Repeats {
 public:
  static constexpr std::uint32_t kNone = 0xFFFFFFFFu;

  struct Lead {
    std::uint32_t variable, resource;
  };
  struct Level {
    std::uint32_t resource;
    double level, weight;  // see MaxMin::Group
    std::uint32_t group_lead;
  };
  struct Solution {
    std::vector<Lead> leads;
    std::vector<Level> levels;
  };

  // Is it worth building the key?
  bool interested(bool arrivals) const { return arrivals || misses_ < kPatience; }

  // The stored solution, or null. When null, `store` says whether this key was seen before.
  const Solution* find(const RepeatKey& key, bool& store);
  Solution& insert(const RepeatKey& key);
  void clear();

 private:
  static constexpr std::uint32_t kPatience = 512;  // misses in a row
  static constexpr std::size_t kMostKeys = std::size_t{1} << 16;
  static constexpr std::size_t kMostValues = std::size_t{1} << 22;  // levels stored

  struct Slot {
    RepeatKey key;
    std::uint32_t solution = kNone;
    bool used = false;
  };
  Slot& slot_of(const RepeatKey& key);
  void account();

  std::vector<Slot> slots_;
  std::vector<Solution> solutions_;
  std::size_t keys_ = 0, values_ = 0, counted_ = 0;
  std::uint32_t misses_ = 0;
};

}  // namespace weft
