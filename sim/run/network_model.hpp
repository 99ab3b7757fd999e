// SPDX-License-Identifier: Apache-2.0
// The one interface behind which analytic and fluid networks stand, and a packet network will. The executor starts flows and asks when the next
// thing happens; the model says which flows have finished.
//
// A flow occupies *resources*: directed links first (resource index = LinkId), then what else the fabric counts (the shared
// two-way budget of a PCIe port, see Fabric::resources). A share says how much of the flow crosses a resource: 1 for a plain
// hop, 1/6 for one of six striped planes, more than 1 when a coupled channel crosses the same link several times.
//
// Law:      at every instant, for every resource, sum over flows of weight * rate <= capacity.
// Order:    next_event() never decreases between calls; advance(t) is called with t <= next_event() and now <= t.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "sim/core/ids.hpp"
#include "sim/core/share.hpp"
#include "sim/core/units.hpp"

namespace weft {

struct FlowRequest {
  std::span<const Share>
      shares;    // copied by the model; no resource twice. Empty: the flow takes only its latency.
  Bytes size;    // payload at weight 1
  Time latency;  // fixed part: the last byte arrives this much after the last one left
  Bandwidth cap{0};       // rate limit of the flow itself, 0 for none
  double fairness = 1;    // weight in max-min sharing (number of connections it stands for)
  std::uint64_t tag = 0;  // handed back in FlowDone
};

struct FlowDone {
  FlowId flow;
  std::uint64_t tag = 0;
  Time when;
};

// How a model solves; all options keep the result the same within the stated laws.
struct NetworkOptions {
  bool merge_classes = true;     // flows with the same shares, cap and fairness are solved as one
  bool remember_repeats = true;  // a set of flows on the same capacities is solved once
};

// What a model did, for the report.
struct NetworkCounters {
  std::uint64_t events = 0;        // instants at which something changed
  std::uint64_t solves = 0;        // components solved
  std::uint64_t remembered = 0;    // solutions taken from memory
  std::uint64_t merged_flows = 0;  // flows that shared another's class
};

class NetworkModel {
 public:
  virtual ~NetworkModel() = default;

  // Starts a flow at `now`, which is not before the last advance().
  virtual FlowId start(const FlowRequest& request, Time now) = 0;

  // The next instant at which a flow finishes or the model changes by itself; Time::never() when nothing is pending.
  // Flows started since the last advance() are taken in here, all of one instant together.
  virtual Time next_event() = 0;

  // Moves to `until` and appends the flows that finish exactly then, in order of start.
  virtual void advance(Time until, std::vector<FlowDone>& done) = 0;

  // A fault or repair: from `now` on the resource has this capacity (0: nothing passes).
  virtual void set_capacity(std::uint32_t resource, Bandwidth capacity, Time now) = 0;

  // Bytes carried so far per resource (weight * size, finished and running flows), and the time it was in use.
  virtual double carried_bytes(std::uint32_t resource) const = 0;
  virtual Time busy_time(std::uint32_t resource) const = 0;

  virtual const NetworkCounters& counters() const = 0;
};

}  // namespace weft
