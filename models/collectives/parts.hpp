// SPDX-License-Identifier: Apache-2.0
// What several algorithms share: the empty schedule to fill in, orders of ranks, cuts into pipelined pieces, channels over
// all pairs of a group.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "sim/workload/schedule.hpp"

namespace weft::collectives {

using Ranks = std::vector<std::uint32_t>;

// Default slot of a pipelined channel: one of the eight steps of a 4 MiB buffer.
inline constexpr Bytes kChunk = 512_KiB;
// A pipeline of more pieces than this fills no better; it bounds the steps of huge messages.
inline constexpr std::uint32_t kMaxPieces = 64;
// More edges than this are generated when read instead of stored (4 MiB per channel).
inline constexpr std::uint64_t kStoredEdges = std::uint64_t{1} << 18;

// A schedule without steps: all that one rank alone needs.
Schedule start(std::string_view algorithm, const CollectiveRequest& request,
               const GroupShape& shape, std::uint64_t units);

// At least one channel.
std::uint32_t channel_count(const CollectiveRequest& request);

// The ranks in the order of channel `channel`: shape.orders in turn, else 0, 1, 2 ...
Ranks ring_order(const GroupShape& shape, std::uint32_t channel);

// `order` turned so that it starts (or, with `last`, ends) with `rank`.
Ranks turned_to(Ranks order, std::uint32_t rank, bool last = false);

// The chunk asked for or the default, not more than `bytes`; and the pieces that `bytes` are pipelined in.
Bytes chunk_of(const CollectiveRequest& request, Bytes bytes);
std::uint32_t pieces_of(const CollectiveRequest& request, Bytes bytes);

// `a * numerator / denominator`, rounded to the nearest byte.
Bytes fraction(Bytes a, std::uint64_t numerator, std::uint64_t denominator);

// Every rank of the group to every other, `bytes` each.
Channel all_pairs(Ranks group, Bytes bytes);
Channel all_pairs(std::uint32_t ranks, Bytes bytes);

constexpr std::uint32_t floor_log2(std::uint32_t n) {
  std::uint32_t k = 0;
  while (n >> (k + 1) != 0) ++k;
  return k;
}
constexpr std::uint32_t ceil_log2(std::uint32_t n) { return n <= 1 ? 0 : floor_log2(n - 1) + 1; }

}  // namespace weft::collectives
