// SPDX-License-Identifier: Apache-2.0
// The fluid model: bytes are a liquid, and at every instant the running flows share the resources max-min fairly (MaxMin).
//
// Law:      a flow holds its resources from its start until its last byte has left, and is done `latency` later:
//           alone: start + latency + transfer_time(size, min over resources of capacity / weight, and cap);
//           n equal flows started together on one resource: start + latency + transfer_time(n size, capacity).
// Assumes:  rates jump to their fair share at once (no ramp, no queue, no loss); a message is long against a packet.
// Rounding: a completion becomes integer picoseconds once per period of constant rate, rounding up, and exactly (128 bit)
//           where the rate is a quotient of whole numbers. Bytes served stay in double precision.
// Classes:  flows with equal shares, cap and fairness are one variable of the solver. A class counts the bytes that each of
//           its flows has been served; a flow that joins notes the count at which it will be complete, and is never touched
//           again until then.
// Clocks:   all classes that a resource limits run at its level, so the resource keeps the time for them: a clock that counts
//           bytes served per unit of fairness. A class notes the count at which its first flow completes; when the level
//           changes, only the clock is touched. A class at its cap has a clock of its own.
// Example:  1 MiB over a 50 GB/s link with 1 us: done after 1 us + 20.97152 us.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "models/fluid/max_min.hpp"
#include "models/fluid/min_tree.hpp"
#include "sim/engine/calendar.hpp"
#include "sim/run/network_model.hpp"

namespace weft {

class FluidNetwork final : public NetworkModel {
 public:
  // capacities[r] is that of resource r; zero: nothing passes until set_capacity().
  explicit FluidNetwork(std::span<const Bandwidth> capacities, NetworkOptions options = {});

  FlowId start(const FlowRequest& request, Time now) override;
  Time next_event() override;
  void advance(Time until, std::vector<FlowDone>& done) override;
  void set_capacity(std::uint32_t resource, Bandwidth capacity, Time now) override;
  void reroute(FlowId flow, const FlowRequest& request, Time now) override;
  double carried_bytes(std::uint32_t resource) const override;
  Time busy_time(std::uint32_t resource) const override;
  const NetworkCounters& counters() const override;

 private:
  static constexpr std::uint32_t kNone = MaxMin::kNone;

  struct Flow {
    double target = 0;  // complete when its class has served this many bytes
    double size = 0;
    std::int64_t latency = 0;
    std::uint64_t tag = 0;
    std::uint64_t order = 0;         // of start
    std::uint32_t of_class = kNone;  // until its last byte has left
    std::uint32_t child = kNone;     // pairing heap by target, then order
    std::uint32_t sibling = kNone;   // or the next free slot
  };

  // Index = variable of the solver.
  struct Class {
    double base = 0;  // bytes served per flow when the clock read `from`
    double from = 0;
    double fairness = 1;
    double finished = 0;  // bytes of completed flows not yet booked on the resources
    double starts = 0;    // sum over running flows of the bytes served before they joined
    std::uint32_t count = 0;
    std::uint32_t top = kNone;  // flow that completes first
    Bandwidth cap;
    std::uint64_t hash = 0;
  };
  struct Membership {
    double due = 0;  // reading of the clock at which the class's first flow completes
    std::uint32_t clock = kNone;
  };

  // Index = resource; then one for each class, for when it runs at its cap.
  struct Clock {
    double served = 0;  // bytes per unit of fairness, at `since`
    double level = 0;   // its speed per picosecond
    std::int64_t since = 0;
    double first = 0;   // least due of its members
    double weight = 0;  // when exact is not 0: level = exact / weight
    Bandwidth exact;
    std::uint32_t members = 0;
    bool touched = false;  // its next completion must be computed
    bool stale = false;    // `first` must be found among the members
  };

  std::uint32_t class_of(const FlowRequest& request);
  std::uint32_t define_class(const FlowRequest& request, std::uint64_t hash);
  bool same_class(std::uint32_t id, const FlowRequest& request) const;
  void purge_classes();
  std::uint32_t new_flow();
  void join(std::uint32_t id, std::uint32_t flow);
  void withdraw(std::uint32_t flow);
  void leave_resources(std::uint32_t id);
  double reading(const Clock& clock) const;
  double served(std::uint32_t id) const;
  void touch(std::uint32_t clock);
  void wind(Clock& clock);
  void enter_clock(std::uint32_t id, std::uint32_t clock);
  void leave_clock(std::uint32_t id);
  void set_due(std::uint32_t id);
  void find_first(std::uint32_t clock);
  void move_to(Time now);
  void settle();
  void relevel(std::uint32_t resource);
  std::int64_t completion(const Clock& clock, double due) const;
  void collect_due(std::uint32_t clock);
  void complete(std::uint32_t id);
  void close(std::uint32_t id);
  void enter(std::uint32_t id, const FlowRequest& request, bool instant);
  std::uint32_t meld(std::uint32_t a, std::uint32_t b);
  std::uint32_t pop(std::uint32_t root);
  void deliver(std::vector<FlowDone>& done);

  MaxMin solver_;
  MinTree completions_;  // by clock
  Calendar deliveries_;  // flows whose last byte has left
  std::vector<Class> classes_;
  std::vector<Membership> memberships_;  // by class
  std::vector<Clock> clocks_;
  std::vector<Flow> flows_;
  std::uint32_t first_free_ = kNone, last_free_ = kNone;
  std::vector<std::uint32_t> table_;  // open addressing: hash to class
  std::size_t live_classes_ = 0, table_used_ = 0;
  std::vector<Bandwidth> capacities_;
  std::vector<double> carried_;  // booked bytes per resource
  std::vector<std::int64_t> busy_, busy_since_;
  std::vector<std::uint32_t> touched_, due_clocks_, due_, ready_;
  std::int64_t now_ = 0;
  std::int64_t counted_at_ = -1;  // instant of the last counted event
  std::uint64_t started_ = 0;
  NetworkOptions options_;
  mutable NetworkCounters counters_;
};

}  // namespace weft
