// SPDX-License-Identifier: Apache-2.0
// A table of nccl-tests from 8 B to 8 GiB: search, choices and simulation together.
#include "models/nccl/predict.hpp"

#include <vector>

#include <benchmark/benchmark.h>
#include <fmt/format.h>

#include "tools/cli/cli.hpp"

namespace weft {
namespace {

void all_reduce_table(benchmark::State& state) {
  Diagnostics problems;
  const Fabric fabric =
      load_fabric("hgx-h100+ib-ndr", {{"/servers", Json(state.range(0) / 8)}}, problems).fabric;
  std::vector<Bytes> sizes;
  for (Bytes bytes = 8_B; bytes <= 8_GiB; bytes = bytes * 2) sizes.push_back(bytes);
  const std::vector<NodeId> gpus(fabric.gpus().begin(), fabric.gpus().end());
  for (auto _ : state) {
    benchmark::DoNotOptimize(
        predict_nccl(fabric, gpus, CollectiveKind::all_reduce, sizes, NcclSetup{}));
  }
}
BENCHMARK(all_reduce_table)->Arg(8)->Arg(128)->Arg(1024)->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace weft
