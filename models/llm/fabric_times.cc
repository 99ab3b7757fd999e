// SPDX-License-Identifier: Apache-2.0
#include "models/llm/fabric_times.hpp"

#include <algorithm>
#include <cmath>

namespace weft {
namespace {

constexpr std::int64_t kMostPairs = 256, kMostRanks = 256;

}  // namespace

FabricTimes::FabricTimes(const Fabric& fabric, CollectiveTimer& timer, std::vector<NodeId> gpus)
    : timer_(timer), gpus_(std::move(gpus)) {
  const auto server = fabric.node(gpus_.front()).server;
  per_server_ =
      std::ranges::count_if(gpus_, [&](NodeId gpu) { return fabric.node(gpu).server == server; });
}

double FabricTimes::collective(GroupSpan span, CollectiveKind kind, double bytes) {
  if (span.ranks < 2 || bytes <= 0) return 0;
  if (span.ranks <= kMostRanks) return at({span, kind, false}, bytes).at(bytes);
  // A larger ring has as many more hops; bytes per rank hardly grow.
  const Line most = at({{kMostRanks, span.stride}, kind, false}, bytes);
  const Line half = at({{kMostRanks / 2, span.stride}, kind, false}, bytes);
  const double ranks = static_cast<double>(span.ranks), measured = kMostRanks;
  const double hops = std::max(0.0, most.start - half.start) * (ranks - measured) / (measured / 2);
  const double share = (1 - 1 / ranks) / (1 - 1 / measured);
  return Line{most.start + hops, most.per_byte * share}.at(bytes);
}

double FabricTimes::send(std::int64_t distance, double bytes) {
  const Key key{{2, distance}, CollectiveKind::send_recv, true};
  return bytes <= 0 ? 0 : at(key, bytes).at(bytes);
}

FabricTimes::Line FabricTimes::at(const Key& key, double bytes) {
  Curve& curve = curves_[key];
  const int below = static_cast<int>(std::floor(std::log2(std::max(bytes, 1.0)) / 2));
  const double low = std::exp2(2 * below), high = 4 * low;
  const double from = measured(key, curve, below), to = measured(key, curve, below + 1);
  const double per_byte = (to - from) / (high - low);
  return {from - per_byte * low, per_byte};
}

double FabricTimes::measured(const Key& key, Curve& curve, int power) {
  const auto [found, fresh] = curve.try_emplace(power, 0);
  if (fresh) found->second = run(key, std::exp2(2 * power));
  return found->second;
}

double FabricTimes::run(const Key& key, double size) {
  const auto ranks = std::ssize(gpus_);
  const auto gpu = [&](std::int64_t rank) { return gpus_[static_cast<std::size_t>(rank)]; };
  if (key.one_way) {
    std::vector<Lockstep::Pair> pairs;
    const std::int64_t distance = std::min(key.span.stride, ranks - 1);
    for (std::int64_t i = 0; i < std::min({distance, ranks - distance, kMostPairs}); ++i)
      pairs.emplace_back(gpu(i), gpu(i + distance));
    return timer_.send_seconds(size, pairs);
  }
  const std::int64_t block = key.span.ranks * key.span.stride;
  const std::int64_t reach = (key.span.ranks - 1) * key.span.stride;
  const std::int64_t blocks = std::max<std::int64_t>(std::min(per_server_, ranks) / block, 1);
  std::vector<Lockstep::Group> groups;
  for (std::int64_t b = 0; b < blocks; ++b) {
    const std::int64_t side = std::min({key.span.stride, ranks - reach - b * block, kMostPairs});
    for (std::int64_t j = 0; j < side; ++j) {
      Lockstep::Group& group = groups.emplace_back();
      for (std::int64_t i = 0; i < key.span.ranks; ++i)
        group.push_back(gpu(b * block + j + i * key.span.stride));
    }
  }
  return timer_.seconds(key.kind, size, groups);
}

}  // namespace weft
