// SPDX-License-Identifier: Apache-2.0
#include "models/fluid/max_min.hpp"

#include <vector>

#include <benchmark/benchmark.h>

namespace weft {
namespace {

// n inputs, n outputs, a variable for every pair.
std::vector<std::uint32_t> crossbar(MaxMin& solver, std::uint32_t n) {
  std::vector<std::uint32_t> ids;
  for (std::uint32_t i = 0; i < n; ++i) {
    for (std::uint32_t j = 0; j < n; ++j) {
      const Share path[] = {{i, 1}, {n + j, 1}};
      ids.push_back(solver.define(path, 1, MaxMin::kUnlimited));
    }
  }
  return ids;
}

void solve_all_anew(benchmark::State& state) {
  const auto n = static_cast<std::uint32_t>(state.range(0));
  MaxMin solver(std::vector<double>(2 * n, 0.05));
  const std::vector<std::uint32_t> ids = crossbar(solver, n);
  for (auto _ : state) {
    for (const std::uint32_t v : ids) solver.set_count(v, 1);
    solver.solve();
    for (const std::uint32_t v : ids) solver.set_count(v, 0);
    solver.solve();
  }
  state.SetItemsProcessed(state.iterations() * static_cast<std::int64_t>(ids.size()));
}
BENCHMARK(solve_all_anew)->Arg(16)->Arg(64)->Arg(256);

// Variables leave one by one in a mixed order; each time the rest is solved.
void solve_after_each_removal(benchmark::State& state) {
  const auto n = static_cast<std::uint32_t>(state.range(0));
  MaxMin solver(std::vector<double>(2 * n, 0.05));
  const std::vector<std::uint32_t> ids = crossbar(solver, n);
  for (auto _ : state) {
    state.PauseTiming();
    for (const std::uint32_t v : ids) solver.set_count(v, 1);
    solver.solve();
    state.ResumeTiming();
    std::size_t at = 0;
    for (std::size_t i = 0; i < ids.size(); ++i) {
      at = (at + 7919) % ids.size();
      solver.set_count(ids[at], 0);
      solver.solve();
    }
  }
  state.SetItemsProcessed(state.iterations() * static_cast<std::int64_t>(ids.size()));
}
BENCHMARK(solve_after_each_removal)->Arg(16)->Arg(64)->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace weft
