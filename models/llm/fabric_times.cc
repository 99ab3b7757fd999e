// SPDX-License-Identifier: Apache-2.0
#include "models/llm/fabric_times.hpp"

#include <algorithm>
#include <cmath>

namespace weft {
namespace {

constexpr std::int64_t kMostPairs = 512;

}  // namespace

FabricTimes::FabricTimes(const Fabric& fabric, CollectiveTimer& timer, std::vector<NodeId> gpus)
    : timer_(timer), gpus_(std::move(gpus)) {
  const auto server = fabric.node(gpus_.front()).server;
  per_server_ =
      std::ranges::count_if(gpus_, [&](NodeId gpu) { return fabric.node(gpu).server == server; });
}

double FabricTimes::collective(GroupSpan span, CollectiveKind kind, double bytes) {
  return span.ranks < 2 ? 0 : at({span, kind, false}, bytes);
}

double FabricTimes::send(std::int64_t distance, double bytes) {
  return at({{2, distance}, CollectiveKind::send_recv, true}, bytes);
}

// Linear between powers of four: a start-up and a rate.
double FabricTimes::at(const Key& key, double bytes) {
  if (bytes <= 0) return 0;
  Curve& curve = curves_[key];
  const int below = static_cast<int>(std::floor(std::log2(std::max(bytes, 1.0)) / 2));
  const double low = std::exp2(2 * below), high = 4 * low;
  const double from = measured(key, curve, below), to = measured(key, curve, below + 1);
  return std::max(0.0, from + (to - from) * (bytes - low) / (high - low));
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
