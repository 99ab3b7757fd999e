// SPDX-License-Identifier: Apache-2.0
#include "models/nccl/tuner_file.hpp"

#include <limits>

#include <fmt/format.h>

#include "sim/core/diagnostics.hpp"

namespace weft {
namespace {

std::string_view collective_of(CollectiveKind kind) {
  switch (kind) {
    case CollectiveKind::all_reduce:
      return "allreduce";
    case CollectiveKind::all_gather:
      return "allgather";
    case CollectiveKind::reduce_scatter:
      return "reducescatter";
    case CollectiveKind::broadcast:
      return "broadcast";
    case CollectiveKind::reduce:
      return "reduce";
    default:
      throw InputError(
          "error: --export-tuner: NCCL does not tune sends and receives\n"
          "    export all_reduce, all_gather, reduce_scatter, broadcast or reduce\n");
  }
}

}  // namespace

std::string tuner_csv(CollectiveKind kind, std::span<const NcclRow> rows, std::size_t nodes,
                      std::size_t ranks) {
  const std::string_view collective = collective_of(kind);
  std::string out =
      "# collective_type,min_bytes,max_bytes,algorithm,protocol,channels,nNodes,nRanks,numPipeOps,"
      "regBuff\n";
  std::int64_t from = 0;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const NcclRow& row = rows[i];
    const bool last = i + 1 == rows.size();
    if (!last && rows[i + 1].algorithm == row.algorithm && rows[i + 1].protocol == row.protocol &&
        rows[i + 1].channels == row.channels)
      continue;
    const std::int64_t to =
        last ? std::numeric_limits<std::int64_t>::max() : rows[i + 1].bytes.count - 1;
    out += fmt::format("{},{},{},{},{},{},{},{},-1,-1\n", collective, from, to, row.algorithm,
                       row.protocol, row.channels, nodes, ranks);
    from = to < std::numeric_limits<std::int64_t>::max() ? to + 1 : to;
  }
  return out;
}

}  // namespace weft
