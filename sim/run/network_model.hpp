// SPDX-License-Identifier: Apache-2.0
// The one interface behind which analytic, fluid and packet networks stand. The executor starts flows and asks when the next
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
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "sim/core/ids.hpp"
#include "sim/core/share.hpp"
#include "sim/core/units.hpp"
#include "sim/run/observation.hpp"

namespace weft {

class Fabric;
struct PacketSpec;
struct SwitchTree;

struct FlowRequest {
  std::span<const Share>
      shares;    // copied by the model; no resource twice. Empty: the flow takes only its latency.
  Bytes size;    // payload at weight 1
  Time latency;  // fixed part: the last byte arrives this much after the last one left
  Bandwidth cap{0};       // rate limit of the flow itself, 0 for none
  double fairness = 1;    // weight in max-min sharing (number of connections it stands for)
  std::uint64_t tag = 0;  // handed back in FlowDone
  // Packet level: also a FlowDone with this tag when the last byte has left.
  std::optional<std::uint64_t> left_tag;
  std::uint32_t way = 0;  // requests of one number have the same shares
  Time wire{0};           // the part of `latency` that the links and nodes of the way cause
  std::uint8_t traffic_class = 1;  // packet level: priority, service level or virtual lane
  // Packet level: the flow is a collective in these switches over a vector of `size`; they outlive the model.
  const SwitchTree* tree = nullptr;
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
  // Of the packet level only; both outlive the model.
  const Fabric* fabric = nullptr;
  const PacketSpec* packet = nullptr;
  std::uint8_t traffic_classes = 1;  // in use: 1 .. this many
  bool cuts = false;  // what is on a link that goes down is lost, and comes again another way
  std::uint64_t seed = 1;
  bool hypothetical =
      false;  // links beyond any machine: what is derived from their rates need not fit
};

// What a model did, for the report.
struct NetworkCounters {
  std::uint64_t events = 0;        // instants at which something changed
  std::uint64_t solves = 0;        // components solved
  std::uint64_t remembered = 0;    // solutions taken from memory
  std::uint64_t merged_flows = 0;  // flows that shared another's class
  // packet level
  std::uint64_t packet_hops = 0,
                control_hops = 0;  // packets over links; acks, CNPs and PAUSE frames
  std::uint64_t retransmitted = 0, timeouts = 0;
  std::int64_t dropped_bytes = 0;
  std::uint64_t dropped = 0, marks = 0, pauses = 0, stalls = 0;  // stalls: for lack of credit
  Time paused{0};                                                // of all links together
};

// What the queue in front of a link went through.
struct QueueReport {
  Bytes peak{0};
  Time paused{0};
  std::uint64_t marks = 0, drops = 0;
};

// A parameter as it was used, and where it comes from.
struct Setting {
  std::string name, value, source;
};

class NetworkModel {
 public:
  virtual ~NetworkModel() = default;

  // Starts a flow at `now`, which is not before the last advance().
  virtual FlowId start(const FlowRequest& request, Time now) = 0;

  // The next instant at which a flow finishes or the model changes by itself; Time::never() when nothing is pending.
  // Flows started since the last advance() are taken in here, all of one instant together.
  virtual Time next_event() = 0;

  // next_event() for a caller that does nothing itself before `horizon`: the model may go ahead on its own up to there, or to
  // the first flow that finishes.
  virtual Time run_until(Time /*horizon*/) { return next_event(); }

  // Moves to `until` and appends the flows that finish exactly then, in order of start.
  virtual void advance(Time until, std::vector<FlowDone>& done) = 0;

  // A fault or repair: from `now` on the resource has this capacity (0: nothing passes).
  virtual void set_capacity(std::uint32_t resource, Bandwidth capacity, Time now) = 0;

  // What is left of a running flow goes by the way of this request, which has the tag of the one that started it.
  virtual void reroute(FlowId /*flow*/, const FlowRequest& /*request*/, Time /*now*/) {}

  // Bytes carried so far per resource (weight * size, finished and running flows), and the time it was in use.
  virtual double carried_bytes(std::uint32_t resource) const = 0;
  virtual Time busy_time(std::uint32_t resource) const = 0;

  virtual const NetworkCounters& counters() const = 0;

  // Packet level: why nothing can move any more, empty when unknown; queues; the parameters used.
  virtual std::string why_stuck() const { return {}; }
  virtual std::optional<QueueReport> queue_report(std::uint32_t /*resource*/) const { return {}; }
  virtual std::vector<Setting> settings() const { return {}; }

  // Records a resource in windows of so long; before the run. False: this model cannot.
  virtual bool watch(std::uint32_t /*resource*/, Time /*every*/) { return false; }
  // Records what arrives of the flows of this tag, likewise.
  virtual bool watch_flow(std::uint64_t /*tag*/, Time /*every*/) { return false; }
  // What was seen, after the run.
  virtual Observation observation() { return {}; }
};

}  // namespace weft
