// SPDX-License-Identifier: Apache-2.0
#include "models/fluid/fluid_network.hpp"

#include <vector>

#include <benchmark/benchmark.h>

namespace weft {
namespace {

// Steps of n flows, each alone on its two links, as in a ring collective; one solver variable per flow.
void ring_steps(benchmark::State& state) {
  const auto n = static_cast<std::uint32_t>(state.range(0));
  FluidNetwork network(std::vector<Bandwidth>(2 * n, 50_GBps),
                       {.merge_classes = false, .remember_repeats = false});
  std::vector<FlowDone> done;
  Time now{0};
  for (auto _ : state) {
    for (std::uint32_t i = 0; i < n; ++i) {
      const Share path[] = {{i, 1}, {n + (i + 1) % n, 1}};
      network.start({.shares = path, .size = 1_MB, .latency = 1_us, .tag = i}, now);
    }
    for (Time next = network.next_event(); next < Time::never(); next = network.next_event()) {
      network.advance(next, done);
      now = next;
    }
    done.clear();
  }
  state.SetItemsProcessed(state.iterations() * n);
}
BENCHMARK(ring_steps)->Arg(64)->Arg(1024)->Arg(16384);

// All-to-all over input and output links. Argument 1: sizes differ (every completion solves again), 0: equal.
void all_to_all(benchmark::State& state) {
  const auto n = static_cast<std::uint32_t>(state.range(0));
  for (auto _ : state) {
    FluidNetwork network(std::vector<Bandwidth>(2 * n, 50_GBps));
    std::uint64_t luck = 0;
    for (std::uint32_t i = 0; i < n; ++i) {
      for (std::uint32_t j = 0; j < n; ++j) {
        const Share path[] = {{i, 1}, {n + j, 1}};
        const auto more =
            static_cast<std::int64_t>(state.range(1) != 0 ? mix_bits(luck++) % 900'000 : 0);
        network.start({.shares = path, .size = {100'000 + more}, .latency = 1_us}, Time{0});
      }
    }
    std::vector<FlowDone> done;
    for (Time next = network.next_event(); next < Time::never(); next = network.next_event())
      network.advance(next, done);
    benchmark::DoNotOptimize(done.data());
  }
  state.SetItemsProcessed(state.iterations() * n * n);
}
BENCHMARK(all_to_all)
    ->Args({64, 0})
    ->Args({256, 0})
    ->Args({16, 1})
    ->Args({64, 1})
    ->Unit(benchmark::kMillisecond);

// The same flows again and again, with and without the memory of repeats.
void repeated_phases(benchmark::State& state) {
  const std::uint32_t n = 48;
  FluidNetwork network(std::vector<Bandwidth>(2 * n, 50_GBps),
                       {.remember_repeats = state.range(0) != 0});
  std::vector<FlowDone> done;
  Time now{0};
  for (auto _ : state) {
    for (std::uint32_t i = 0; i < n; ++i) {
      for (std::uint32_t j = 0; j < n; ++j) {
        const Share path[] = {{i, 1}, {n + j, 1}};
        network.start({.shares = path, .size = 100_KB}, now);
      }
    }
    for (Time next = network.next_event(); next < Time::never(); next = network.next_event()) {
      network.advance(next, done);
      now = next;
    }
    done.clear();
  }
  state.SetItemsProcessed(state.iterations() * n * n);
}
BENCHMARK(repeated_phases)->Arg(0)->Arg(1)->Unit(benchmark::kMicrosecond);

}  // namespace
}  // namespace weft
