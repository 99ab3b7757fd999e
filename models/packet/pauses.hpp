// SPDX-License-Identifier: Apache-2.0
// Who paused whom, for how long, and because of which queue: the spreading tree of PFC, in memory that does not grow with time.
//
// A PAUSE is blamed on the longest queue of the switch that sends it in which packets of the paused link wait. Where that queue
// is stopped by a PAUSE itself, the chain goes on; its end is where the load is more than the link. Which flows fill that end is
// sampled: at each PAUSE the flow at the head of the queue counts one, and the heaviest are kept with the space-saving counter
// (Metwally, Agrawal and El Abbadi, ICDT 2005; counts are too high by at most total / kSlots).
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <map>
#include <utility>
#include <vector>

#include "models/packet/packet.hpp"
#include "sim/core/units.hpp"

namespace weft::packet {

// The most frequent of a stream of numbers.
class HeavyHitters {
 public:
  static constexpr std::size_t kSlots = 32;
  struct Slot {
    std::uint64_t key = 0, count = 0;
  };

  void add(std::uint64_t key) {
    ++total_;
    Slot* least = slots_.data();
    for (Slot& slot : slots_) {
      if (slot.count > 0 && slot.key == key) {
        ++slot.count;
        return;
      }
      if (slot.count < least->count) least = &slot;
    }
    least->key = key;
    ++least->count;
  }
  std::uint64_t total() const { return total_; }
  // Most frequent first, of equals the smaller key.
  std::vector<Slot> ranked() const {
    std::vector<Slot> out;
    for (const Slot& slot : slots_) {
      if (slot.count > 0) out.push_back(slot);
    }
    std::ranges::sort(out, [](const Slot& a, const Slot& b) {
      return a.count != b.count ? a.count > b.count : a.key < b.key;
    });
    return out;
  }

 private:
  std::array<Slot, kSlots> slots_{};
  std::uint64_t total_ = 0;
};

class PauseLog {
 public:
  struct Edge {
    std::uint64_t pauses = 0;
    Time time{0};
  };
  using Edges = std::map<std::pair<std::uint32_t, std::uint32_t>, Edge>;  // paused port, cause

  void size(std::size_t gates) { gates_.resize(gates); }

  // A PAUSE is sent because of this queue, at whose head a packet of that account waits.
  void sample(std::uint32_t cause, std::uint64_t account) { culprits_[cause].add(account); }

  void begin(std::uint32_t port, std::size_t gate, std::uint32_t cause, Time now) {
    gates_[gate].since = now;
    gates_[gate].cause = cause;
    ++edges_[{port, cause}].pauses;
  }
  void end(std::uint32_t port, std::size_t gate, Time now) {
    Gate& held = gates_[gate];
    if (held.since.ps < 0) return;
    held.total += now - held.since;
    edges_[{port, held.cause}].time += now - held.since;
    held.since = Time{-1};
  }
  Time total(std::size_t gate, Time now) const {
    const Gate& held = gates_[gate];
    return held.total + (held.since.ps < 0 ? Time{0} : now - held.since);
  }
  bool empty() const { return edges_.empty(); }
  // With what has not ended by now.
  Edges edges(std::size_t classes, Time now) const {
    Edges out = edges_;
    for (std::size_t g = 0; g < gates_.size(); ++g) {
      if (gates_[g].since.ps >= 0)
        out[{static_cast<std::uint32_t>(g / classes), gates_[g].cause}].time +=
            now - gates_[g].since;
    }
    return out;
  }
  const std::map<std::uint32_t, HeavyHitters>& culprits() const { return culprits_; }

 private:
  struct Gate {
    Time since{-1}, total{0};
    std::uint32_t cause = kNone;
  };

  std::vector<Gate> gates_;
  Edges edges_;
  std::map<std::uint32_t, HeavyHitters> culprits_;  // by cause
};

}  // namespace weft::packet
