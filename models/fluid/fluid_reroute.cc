// SPDX-License-Identifier: Apache-2.0
// A running flow takes another way: what it has left to send leaves its class and joins that of the new way.
#include <algorithm>

#include "models/fluid/fluid_network.hpp"
#include "sim/core/check.hpp"

namespace weft {

// Takes a flow out of its class before it has completed. What it has moved is booked as finished.
void FluidNetwork::withdraw(std::uint32_t flow_id) {
  Flow& flow = flows_[flow_id];
  const std::uint32_t id = flow.of_class;
  Class& c = classes_[id];
  const double left = std::clamp(flow.target - served(id), 0.0, flow.size);
  c.finished += flow.size - left;
  c.starts -= flow.target - flow.size;
  flow.size = left;
  // The heap again without it.
  std::vector<std::uint32_t> rest = {c.top};
  for (std::size_t i = 0; i < rest.size(); ++i) {
    for (std::uint32_t child = flows_[rest[i]].child; child != kNone; child = flows_[child].sibling)
      rest.push_back(child);
  }
  c.top = kNone;
  for (const std::uint32_t each : rest) {
    flows_[each].child = flows_[each].sibling = kNone;
    if (each != flow_id) c.top = c.top == kNone ? each : meld(c.top, each);
  }
  flow.child = flow.sibling = flow.of_class = kNone;
  solver_.set_count(id, --c.count);
  if (c.count > 0) {
    if (memberships_[id].clock == kNone) return;
    set_due(id);
    clocks_[memberships_[id].clock].stale = true;
    touch(memberships_[id].clock);
    return;
  }
  close(id);
}

void FluidNetwork::reroute(FlowId flow_id, const FlowRequest& request, Time now) {
  move_to(now);
  Flow& flow = flows_[flow_id.v];
  if (flow.of_class == kNone) return;  // its last byte has left
  WEFT_CHECK(flow.tag == request.tag, flow.tag, request.tag);
  withdraw(flow_id.v);
  flow.latency = request.latency.ps;
  enter(flow_id.v, request, request.shares.empty());
}

}  // namespace weft
