// SPDX-License-Identifier: Apache-2.0
// The analytic model: every flow gets its finish time in closed form when it starts; nothing is simulated in between.
//
// Law:      a flow started at t is done at t + latency + the longest of size / cap and, over its resources r, of wait_r + size
//           load_r / (phi C_r), where load_r = sum over the flows started at the same instant that cross r of w phi, and wait_r
//           is the work of earlier instants that r has still to do. So no resource ever carries more than its capacity.
// Agrees:   exactly with the fluid model for a lone flow and for n equal flows started together on one resource.
// Assumes:  earlier flows go first instead of sharing, and nobody takes up what another flow leaves unused; so the time is
//           too long where loads differ along a path. It is a fast estimate, not a bound: for that see bounds.hpp.
// Faults:   a change of capacity acts on flows that start afterwards. Over a resource without capacity a flow waits, and
//           starts when all its resources have some.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "sim/engine/calendar.hpp"
#include "sim/run/network_model.hpp"

namespace weft {

class AnalyticNetwork final : public NetworkModel {
 public:
  explicit AnalyticNetwork(std::span<const Bandwidth> capacities);

  FlowId start(const FlowRequest& request, Time now) override;
  Time next_event() override;
  void advance(Time until, std::vector<FlowDone>& done) override;
  void set_capacity(std::uint32_t resource, Bandwidth capacity, Time now) override;
  // Booked evenly over the flow's time on the resource.
  double carried_bytes(std::uint32_t resource) const override;
  Time busy_time(std::uint32_t resource) const override;
  const NetworkCounters& counters() const override { return counters_; }

 private:
  struct Flow {
    std::vector<Share> shares;  // kept by the slot, so that later flows find the memory
    Bytes size;
    Time latency;
    Bandwidth cap;
    double fairness = 1;
    std::uint64_t tag = 0, order = 0;
    std::int64_t begin = 0, leave = 0;  // on the resources
  };
  struct Resource {
    Bandwidth capacity;
    double load = 0;    // of this instant's flows
    double booked = 0;  // bytes of flows that have left
    double rate = 0;    // of flows on it, bytes per picosecond
    double moment = 0;  // sum of rate * begin over them: what runs now is rate * now - moment
    std::uint32_t running = 0;
    std::int64_t busy = 0, since = 0;
    std::int64_t free_at = 0;  // when the work of earlier instants is done
  };

  void move_to(Time now);
  void settle();
  Time duration(const Flow& flow) const;
  void book(const Flow& flow);
  void leave(std::uint32_t flow);

  std::vector<Resource> resources_;
  std::vector<Flow> flows_;
  std::vector<std::uint32_t> free_, fresh_, waiting_, taken_;
  Calendar leaving_, arriving_;
  std::int64_t now_ = 0;
  std::uint64_t started_ = 0;
  NetworkCounters counters_;
};

}  // namespace weft
