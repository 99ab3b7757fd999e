// SPDX-License-Identifier: Apache-2.0
#include "models/analytic/analytic_network.hpp"

#include <algorithm>
#include <cmath>

#include "sim/core/check.hpp"

namespace weft {
namespace {

std::int64_t later(std::int64_t since, std::int64_t wait) {
  return wait >= Time::never().ps - since ? Time::never().ps : since + wait;
}

}  // namespace

AnalyticNetwork::AnalyticNetwork(std::span<const Bandwidth> capacities)
    : resources_(capacities.size()) {
  for (std::size_t r = 0; r < capacities.size(); ++r) resources_[r].capacity = capacities[r];
}

void AnalyticNetwork::move_to(Time now) {
  if (now.ps == now_) return;
  const Time next = next_event();
  WEFT_CHECK(now.ps > now_ && now <= next, now, now_, next);
  now_ = now.ps;
}

FlowId AnalyticNetwork::start(const FlowRequest& request, Time now) {
  move_to(now);
  std::uint32_t id = static_cast<std::uint32_t>(flows_.size());
  if (free_.empty()) {
    flows_.emplace_back();
  } else {
    id = free_.back();
    free_.pop_back();
  }
  Flow& flow = flows_[id];
  flow.shares.assign(request.shares.begin(), request.shares.end());
  flow.size = request.size;
  flow.latency = request.latency;
  flow.cap = request.cap;
  flow.fairness = request.fairness;
  flow.tag = request.tag;
  flow.order = started_++;
  flow.begin = flow.leave = -1;
  for (const Share& share : flow.shares) {
    WEFT_CHECK(share.resource < resources_.size() && share.weight > 0, share.resource,
               share.weight);
  }
  if (flow.size.count <= 0 || flow.shares.empty()) {
    arriving_.add(later(now_, flow.latency.ps), id);
  } else {
    fresh_.push_back(id);
  }
  return FlowId{id};
}

// On the resources, from now on. Whole multiples of a load go through the exact division.
Time AnalyticNetwork::duration(const Flow& flow) const {
  Time longest = flow.cap.bps > 0 ? transfer_time(flow.size, flow.cap) : Time{0};
  for (const Share& share : flow.shares) {
    const Resource& resource = resources_[share.resource];
    const double factor = resource.load / flow.fairness;
    Time time;
    if (factor >= 1 && factor == std::floor(factor) && factor * flow.size.value() < 9e18) {
      time = transfer_time(flow.size * static_cast<std::int64_t>(factor), resource.capacity);
    } else if (resource.capacity.bps <= 0) {
      time = Time::never();
    } else {
      const double ps = flow.size.value() * factor / resource.capacity.bytes_per_ps();
      time = ps < 9e18 ? Time{static_cast<std::int64_t>(std::ceil(ps - 1e-6 - ps * 1e-13))}
                       : Time::never();
    }
    const std::int64_t wait = std::max<std::int64_t>(0, resource.free_at - now_);
    longest = std::max(longest, time == Time::never() ? time : Time{later(wait, time.ps)});
  }
  return longest;
}

// What the flows of this instant bring keeps those of later instants waiting.
void AnalyticNetwork::book(const Flow& flow) {
  for (const Share& share : flow.shares) {
    Resource& resource = resources_[share.resource];
    const double ps = flow.size.value() * share.weight / resource.capacity.bytes_per_ps();
    const std::int64_t from = std::max(resource.free_at, now_);
    resource.free_at = ps < 9e18 ? later(from, static_cast<std::int64_t>(ps)) : Time::never().ps;
  }
}

void AnalyticNetwork::settle() {
  if (fresh_.empty()) return;
  ++counters_.events;
  for (const std::uint32_t id : fresh_) {
    for (const Share& share : flows_[id].shares)
      resources_[share.resource].load += share.weight * flows_[id].fairness;
  }
  for (const std::uint32_t id : fresh_) {
    Flow& flow = flows_[id];
    const Time time = duration(flow);
    if (time == Time::never()) {
      waiting_.push_back(id);
      continue;
    }
    flow.begin = now_;
    flow.leave = later(now_, std::max<std::int64_t>(time.ps, 1));
    const double rate = flow.size.value() / static_cast<double>(flow.leave - flow.begin);
    for (const Share& share : flow.shares) {
      Resource& resource = resources_[share.resource];
      if (resource.running++ == 0) resource.since = now_;
      resource.rate += rate * share.weight;
      resource.moment += rate * share.weight * static_cast<double>(now_);
    }
    leaving_.add(flow.leave, id);
  }
  for (const std::uint32_t id : fresh_) {
    for (const Share& share : flows_[id].shares) resources_[share.resource].load = 0;
    if (flows_[id].begin == now_ && flows_[id].leave > now_) book(flows_[id]);
  }
  fresh_.clear();
}

Time AnalyticNetwork::next_event() {
  settle();
  return {std::min(leaving_.next(), arriving_.next())};
}

void AnalyticNetwork::leave(std::uint32_t id) {
  const Flow& flow = flows_[id];
  const double rate = flow.size.value() / static_cast<double>(flow.leave - flow.begin);
  for (const Share& share : flow.shares) {
    Resource& resource = resources_[share.resource];
    resource.booked += share.weight * flow.size.value();
    resource.rate -= rate * share.weight;
    resource.moment -= rate * share.weight * static_cast<double>(flow.begin);
    if (--resource.running == 0) {
      resource.busy += now_ - resource.since;
      resource.rate = resource.moment = 0;
    }
  }
  arriving_.add(later(now_, flow.latency.ps), id);
}

void AnalyticNetwork::advance(Time until, std::vector<FlowDone>& done) {
  const Time next = next_event();
  WEFT_CHECK(until.ps >= now_ && until <= next, until, now_, next);
  now_ = until.ps;
  if (until != next || until == Time::never()) return;
  taken_.clear();
  if (leaving_.next() == now_) leaving_.take(taken_);
  for (const std::uint32_t id : taken_) leave(id);
  taken_.clear();
  if (arriving_.next() == now_) arriving_.take(taken_);
  std::sort(taken_.begin(), taken_.end(),
            [this](std::uint32_t a, std::uint32_t b) { return flows_[a].order < flows_[b].order; });
  for (const std::uint32_t id : taken_) {
    done.push_back({FlowId{id}, flows_[id].tag, until});
    free_.push_back(id);
  }
}

void AnalyticNetwork::set_capacity(std::uint32_t resource, Bandwidth capacity, Time now) {
  WEFT_CHECK(resource < resources_.size() && capacity.bps >= 0, resource, capacity);
  move_to(now);
  settle();
  resources_[resource].capacity = capacity;
  fresh_.swap(waiting_);
}

double AnalyticNetwork::carried_bytes(std::uint32_t r) const {
  const Resource& resource = resources_[r];
  return resource.booked +
         std::max(0.0, resource.rate * static_cast<double>(now_) - resource.moment);
}

Time AnalyticNetwork::busy_time(std::uint32_t r) const {
  const Resource& resource = resources_[r];
  return {resource.busy + (resource.running > 0 ? now_ - resource.since : 0)};
}

}  // namespace weft
