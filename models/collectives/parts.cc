// SPDX-License-Identifier: Apache-2.0
#include "models/collectives/parts.hpp"

#include <algorithm>
#include <numeric>
#include <utility>

#include "sim/core/check.hpp"

namespace weft::collectives {

Schedule start(std::string_view algorithm, const CollectiveRequest& request,
               const GroupShape& shape, std::uint64_t units) {
  WEFT_CHECK(shape.ranks > 0 && request.root < shape.ranks, shape.ranks, request.root);
  WEFT_CHECK(request.size.count >= 0, request.size);
  Schedule schedule;
  schedule.algorithm = algorithm;
  schedule.request = request;
  schedule.ranks = shape.ranks;
  schedule.units = units;
  schedule.steps = [](const StepSink&) {};
  return schedule;
}

std::uint32_t channel_count(const CollectiveRequest& request) {
  return std::max(request.channels, 1U);
}

Ranks ring_order(const GroupShape& shape, std::uint32_t channel) {
  if (!shape.orders.empty()) {
    const Ranks& order = shape.orders[channel % shape.orders.size()];
    WEFT_CHECK(order.size() == shape.ranks, order.size(), shape.ranks);
    return order;
  }
  Ranks order(shape.ranks);
  std::iota(order.begin(), order.end(), 0U);
  return order;
}

Ranks turned_to(Ranks order, std::uint32_t rank, bool last) {
  auto at = std::find(order.begin(), order.end(), rank);
  WEFT_CHECK(at != order.end(), rank);
  if (last) ++at;
  std::rotate(order.begin(), at, order.end());
  return order;
}

Bytes chunk_of(const CollectiveRequest& request, Bytes bytes) {
  return std::min(bytes, request.chunk.count > 0 ? request.chunk : kChunk);
}

std::uint32_t pieces_of(const CollectiveRequest& request, Bytes bytes) {
  const std::int64_t chunk = chunk_of(request, bytes).count;
  if (chunk <= 0) return 1;
  return static_cast<std::uint32_t>(
      std::min<std::int64_t>((bytes.count + chunk - 1) / chunk, kMaxPieces));
}

Bytes fraction(Bytes a, std::uint64_t numerator, std::uint64_t denominator) {
  // Quotient and remainder apart: a * numerator may not fit.
  const std::int64_t n = static_cast<std::int64_t>(numerator);
  const std::int64_t d = static_cast<std::int64_t>(denominator);
  return {a.count / d * n + (a.count % d * n + d / 2) / d};
}

Channel all_pairs(Ranks group, Bytes bytes) {
  Channel channel{.form = Channel::Form::direct, .bytes = bytes};
  const std::uint64_t n = group.size();
  auto generate = [group = std::move(group)](const EdgeSink& sink) {
    for (const std::uint32_t src : group) {
      for (const std::uint32_t dst : group) {
        if (src != dst) sink({src, dst, 1});
      }
    }
  };
  if (n * (n - 1) > kStoredEdges) {
    channel.generate = std::move(generate);
  } else {
    channel.edges.reserve(n * (n - 1));
    generate([&channel](const Edge& edge) { channel.edges.push_back(edge); });
  }
  return channel;
}

Channel all_pairs(std::uint32_t ranks, Bytes bytes) {
  Ranks group(ranks);
  std::iota(group.begin(), group.end(), 0U);
  return all_pairs(std::move(group), bytes);
}

}  // namespace weft::collectives
