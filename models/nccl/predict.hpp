// SPDX-License-Identifier: Apache-2.0
// The question most people ask of weft: what will my nccl-tests table show?
//
//   NcclSetup setup{.version = {2, 18, 3}, .harness = fabric's default};
//   for (const NcclRow& row : predict_nccl(fabric, gpus, CollectiveKind::all_reduce, sizes, setup)) ...
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "models/nccl/graph.hpp"
#include "sim/core/units.hpp"
#include "sim/run/scenario.hpp"
#include "sim/workload/schedule.hpp"

namespace weft {

// How the benchmark starts its operations.
enum class NcclHarness : std::uint8_t { process_per_gpu, one_process, graph, unknown };
constexpr auto enum_names(NcclHarness) {
  using enum NcclHarness;
  return std::array<EnumName<NcclHarness>, 4>{{{process_per_gpu, "process-per-gpu"},
                                               {one_process, "one-process"},
                                               {graph, "graph"},
                                               {unknown, "unknown"}}};
}

struct NcclSetup {
  NcclVersion version;
  NcclEnvironment environment;
  NcclHarness harness = NcclHarness::unknown;
  std::string algorithm,
      protocol;  // forced: "ring", "tree", "nvls", "nvls_tree", "pat" ...; "ll", "ll128", "simple"
  Fidelity fidelity = Fidelity::fluid;
};

struct NcclRow {
  Bytes bytes;  // as nccl-tests counts them
  Time time{0};
  double algbw_gbs = 0, busbw_gbs = 0;
  std::string algorithm, protocol;
  std::uint32_t channels = 0, threads = 0;
  // "server0/gpu0:nvsw0", "latency", "its channels, then server0/nic0:leaf0" ...
  std::string bottleneck;
};

// One row per size. Throws InputError (no such algorithm here, unknown release), LimitReached.
std::vector<NcclRow> predict_nccl(const Fabric& fabric, std::span<const NodeId> gpus,
                                  CollectiveKind kind, std::span<const Bytes> sizes,
                                  const NcclSetup& setup);
// With the topology that nccl_topology() found for these GPUs, release and variables: it rests on how devices are joined and on
// raw rates, not on costs, efficiencies and delays, so what changes only those need not search again.
std::vector<NcclRow> predict_nccl(const Fabric& fabric, std::span<const NodeId> gpus,
                                  CollectiveKind kind, std::span<const Bytes> sizes,
                                  const NcclSetup& setup, const NcclTopology& topology);

// "2.18", "2.18.3", "v2.18.3-1" and nccl-headers numbers such as 21803; nullopt when it is none or not 2.5 to 2.30.
std::optional<NcclVersion> parse_nccl_version(std::string_view text);
// "2.18.3"; "2.18" for the last of its series.
std::string version_text(NcclVersion version);

}  // namespace weft
