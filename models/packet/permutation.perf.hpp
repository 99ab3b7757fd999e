// SPDX-License-Identifier: Apache-2.0
// What the packet benchmarks share: the traffic of the field's drivers (every host sends to another, one N-cycle), a wire of
// 100 Gb/s and 1 us, and the figures that are reported.
//
//   items per second = packet-hops, acks included; alarms = alarms per packet-hop; bytes = of engine state per host;
//   per_window = alarms within one link delay, the lookahead of partitions
#pragma once

#include <cstdint>
#include <numeric>
#include <utility>
#include <vector>

#include <benchmark/benchmark.h>

#include "models/packet/packet_engine.hpp"

namespace weft::packet {

// SplitMix64 (Steele et al., 2014), so that other simulators can be given the same permutation.
struct SplitMix {
  std::uint64_t state;
  std::uint64_t next() {
    std::uint64_t z = (state += 0x9E37'79B9'7F4A'7C15ULL);
    z = (z ^ (z >> 30)) * 0xBF58'476D'1CE4'E5B9ULL;
    z = (z ^ (z >> 27)) * 0x94D0'49BB'1331'11EBULL;
    return z ^ (z >> 31);
  }
};

// Sattolo's algorithm: no host sends to itself.
inline std::vector<std::uint32_t> permutation_of(std::uint32_t hosts, SplitMix& random) {
  std::vector<std::uint32_t> to(hosts);
  std::iota(to.begin(), to.end(), 0U);
  for (std::uint32_t i = hosts - 1; i > 0; --i) std::swap(to[i], to[random.next() % i]);
  return to;
}

// Both directions of a link; what the `host` end takes in is never held up. Returns the port from `a` to `b`.
inline std::uint32_t join_nodes(Engine& engine, PortSpec spec, std::uint32_t a, std::uint32_t b,
                                bool host) {
  spec.from = a;
  spec.to = b;
  spec.wire = Bandwidth{100'000'000'000};
  spec.delay = Time{1'000'000};
  const std::uint32_t there = engine.add_port(spec);
  std::swap(spec.from, spec.to);
  if (host) spec.guard = Guard::endpoint;
  engine.join(there, engine.add_port(spec));
  return there;
}

class PermutationFigures {
 public:
  // Runs until all flows have ended.
  void run(benchmark::State& state, Engine& engine, std::size_t flows) {
    std::size_t ended = 0;
    while (ended < flows && engine.next_event() < Time::never()) {
      engine.run(Time::never());
      ended += engine.ended().size();
      engine.ended().clear();
    }
    if (ended < flows) state.SkipWithError("flows are left");
    hops_ += engine.counters().hops + engine.counters().control_hops;
    alarms_ += engine.counters().alarms;
    bytes_ = static_cast<double>(engine.memory()) / static_cast<double>(flows);
    simulated_ += engine.now();
  }
  void report(benchmark::State& state) const {
    const auto alarms = static_cast<double>(alarms_);
    state.SetItemsProcessed(static_cast<std::int64_t>(hops_));
    state.counters["alarms"] = alarms / static_cast<double>(hops_);
    state.counters["per_window"] = alarms / (simulated_.seconds() / 1e-6);
    state.counters["bytes"] = bytes_;
  }

 private:
  std::uint64_t hops_ = 0, alarms_ = 0;
  double bytes_ = 0;
  Time simulated_{0};
};

}  // namespace weft::packet
