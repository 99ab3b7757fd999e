// SPDX-License-Identifier: Apache-2.0
// How long collectives take on a fabric, each measured once in the simulator: for a span of ranks and a few sizes, all its groups
// in one block of GPUs run at once at fluid level, and what is between two sizes is interpolated: a start-up and a rate. Groups of
// more than 256 ranks are extrapolated. What other blocks do at the same time is not seen: it matters only where blocks share
// links above them (oversubscribed networks, large strides).
#pragma once

#include <algorithm>
#include <map>
#include <vector>

#include "models/llm/estimate.hpp"
#include "sim/fabric/fabric.hpp"
#include "sim/run/collective_timer.hpp"

namespace weft {

class FabricTimes final : public CollectiveTimes {
 public:
  // `gpus` by rank. Fabric and timer outlive this object.
  FabricTimes(const Fabric& fabric, CollectiveTimer& timer, std::vector<NodeId> gpus);

  double collective(GroupSpan span, CollectiveKind kind, double bytes) override;
  double send(std::int64_t distance, double bytes) override;

 private:
  struct Key {
    GroupSpan span;
    CollectiveKind kind = CollectiveKind::all_reduce;
    bool one_way = false;
    auto operator<=>(const Key&) const = default;
  };
  using Curve = std::map<int, double>;  // seconds by power of four bytes

  struct Line {
    double start = 0, per_byte = 0;
    double at(double bytes) const { return std::max(0.0, start + per_byte * bytes); }
  };
  Line at(const Key& key, double bytes);
  double measured(const Key& key, Curve& curve, int power);
  double run(const Key& key, double size);

  CollectiveTimer& timer_;
  std::vector<NodeId> gpus_;
  std::int64_t per_server_ = 1;
  std::map<Key, Curve> curves_;
};

}  // namespace weft
