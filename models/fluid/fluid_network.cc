// SPDX-License-Identifier: Apache-2.0
#include "models/fluid/fluid_network.hpp"

#include <algorithm>
#include <bit>
#include <cmath>

#include "sim/core/check.hpp"

namespace weft {
namespace {

constexpr std::int64_t kNever = Time::never().ps;

// A completion this little after a whole picosecond belongs to it: rates carry a few units of the last place, and equal flows
// that came to their rate along different sums must not end up a picosecond apart.
constexpr double kRoundingSlack = 1e-6, kRelativeSlack = 1e-13;

std::int64_t later(std::int64_t since, std::int64_t wait) { return wait >= kNever - since ? kNever : since + wait; }

std::uint64_t class_hash(const FlowRequest& request) {
  std::uint64_t hash = mix_bits(static_cast<std::uint64_t>(request.cap.bps) ^ std::bit_cast<std::uint64_t>(request.fairness));
  for (const Share& share : request.shares) {
    hash = (hash ^ share.resource ^ std::bit_cast<std::uint64_t>(share.weight)) * 0x9E3779B97F4A7C15ULL;
    hash ^= hash >> 29;
  }
  return hash;
}

std::vector<double> in_bytes_per_ps(std::span<const Bandwidth> capacities) {
  std::vector<double> out;
  out.reserve(capacities.size());
  for (const Bandwidth capacity : capacities) out.push_back(capacity.bytes_per_ps());
  return out;
}

}  // namespace

FluidNetwork::FluidNetwork(std::span<const Bandwidth> capacities, NetworkOptions options)
    : solver_(in_bytes_per_ps(capacities), options.remember_repeats && options.merge_classes),
      capacities_(capacities.begin(), capacities.end()),
      carried_(capacities.size()),
      busy_(capacities.size()),
      busy_since_(capacities.size()),
      options_(options) {
  completions_.resize(MinTree::kFan);
}

std::uint32_t FluidNetwork::new_flow() {
  if (first_free_ == kNone) {
    flows_.emplace_back();
    return static_cast<std::uint32_t>(flows_.size() - 1);
  }
  const std::uint32_t flow = first_free_;
  first_free_ = flows_[flow].sibling;
  return flow;
}

bool FluidNetwork::same_class(std::uint32_t id, const FlowRequest& request) const {
  const std::span<const MaxMin::Hop> hops = solver_.hops(id);
  if (hops.size() != request.shares.size() || solver_.fairness(id) != request.fairness ||
      classes_[id].cap_bps != request.cap) {
    return false;
  }
  for (std::size_t i = 0; i < hops.size(); ++i) {
    if (hops[i].resource != request.shares[i].resource || hops[i].weight != request.shares[i].weight) return false;
  }
  return true;
}

std::uint32_t FluidNetwork::define_class(const FlowRequest& request, std::uint64_t hash) {
  const double cap = request.cap.bps > 0 ? request.cap.bytes_per_ps() : MaxMin::kUnlimited;
  const std::uint32_t id = solver_.define(request.shares, request.fairness, cap);
  if (id >= classes_.size()) {
    classes_.resize(id + 1);
    completions_.resize(classes_.size());
  }
  Class& c = classes_[id];
  c = Class{};
  c.cap = cap;
  c.cap_bps = request.cap;
  c.hash = hash;
  return id;
}

std::uint32_t FluidNetwork::class_of(const FlowRequest& request) {
  if (!options_.merge_classes) return define_class(request, 0);
  if (2 * (table_used_ + 1) > table_.size()) purge_classes();
  const std::uint64_t hash = class_hash(request);
  std::size_t at = static_cast<std::size_t>(hash >> 7) & (table_.size() - 1);
  while (table_[at] != kNone) {
    const std::uint32_t id = table_[at];
    if (classes_[id].hash == hash && same_class(id, request)) return id;
    at = (at + 1) & (table_.size() - 1);
  }
  const std::uint32_t id = define_class(request, hash);
  table_[at] = id;
  ++table_used_;
  return id;
}

// Empty classes stay known, so that the next flow of their kind finds everything in place; they go when they are the majority.
void FluidNetwork::purge_classes() {
  if (table_used_ >= 1024 && 2 * live_classes_ < table_used_) {
    for (std::uint32_t& id : table_) {
      if (id != kNone && classes_[id].count == 0) {
        solver_.forget(id);
        id = kNone;
      }
    }
    solver_.clear_memory();
  }
  std::vector<std::uint32_t> kept;
  kept.reserve(table_used_);
  for (const std::uint32_t id : table_) {
    if (id != kNone) kept.push_back(id);
  }
  std::sort(kept.begin(), kept.end());
  table_used_ = kept.size();
  table_.assign(std::max(table_.size(), std::bit_ceil(std::max<std::size_t>(4 * (table_used_ + 1), 1024))), kNone);
  for (const std::uint32_t id : kept) {
    std::size_t at = static_cast<std::size_t>(classes_[id].hash >> 7) & (table_.size() - 1);
    while (table_[at] != kNone) at = (at + 1) & (table_.size() - 1);
    table_[at] = id;
  }
}

// Two roots become one; the earlier target, then the earlier start, wins.
std::uint32_t FluidNetwork::meld(std::uint32_t a, std::uint32_t b) {
  const Flow &x = flows_[a], &y = flows_[b];
  if (y.target < x.target || (y.target == x.target && y.order < x.order)) std::swap(a, b);
  flows_[b].sibling = flows_[a].child;
  flows_[a].child = b;
  return a;
}

// The heap without its root: children are melded in pairs from the left, then the pairs from the right.
std::uint32_t FluidNetwork::pop(std::uint32_t root) {
  std::uint32_t next = flows_[root].child, pairs = kNone;
  while (next != kNone) {
    const std::uint32_t a = next, b = flows_[a].sibling;
    if (b == kNone) {
      flows_[a].sibling = pairs;
      pairs = a;
      break;
    }
    next = flows_[b].sibling;
    const std::uint32_t pair = meld(a, b);
    flows_[pair].sibling = pairs;
    pairs = pair;
  }
  std::uint32_t out = pairs;
  if (pairs != kNone) {
    next = flows_[pairs].sibling;
    flows_[out].sibling = kNone;
    while (next != kNone) {
      const std::uint32_t after = flows_[next].sibling;
      out = meld(out, next);
      flows_[out].sibling = kNone;
      next = after;
    }
  }
  return out;
}

void FluidNetwork::serve(Class& c) {
  if (now_ != c.since) c.served += c.rate * static_cast<double>(now_ - c.since);
  c.since = now_;
}

void FluidNetwork::touch(std::uint32_t id) {
  if (classes_[id].touched) return;
  classes_[id].touched = true;
  touched_.push_back(id);
}

void FluidNetwork::join(std::uint32_t id, std::uint32_t flow_id) {
  Class& c = classes_[id];
  Flow& flow = flows_[flow_id];
  if (c.count == 0) {
    c.since = now_;
    c.served = c.rate = c.starts = 0;
    c.exact = {};
    ++live_classes_;
  } else {
    serve(c);
    ++counters_.merged_flows;
  }
  flow.target = c.served + flow.size;
  c.starts += c.served;
  c.top = c.top == kNone ? flow_id : meld(c.top, flow_id);
  solver_.set_count(id, ++c.count);
  if (c.count == 1) {
    for (const MaxMin::Hop& hop : solver_.hops(id)) {
      if (solver_.users(hop.resource).size() == 1) busy_since_[hop.resource] = now_;
    }
  }
  touch(id);
}

FlowId FluidNetwork::start(const FlowRequest& request, Time now) {
  WEFT_CHECK(request.latency.ps >= 0, request.latency);
  move_to(now);
  const std::uint32_t id = new_flow();
  const bool instant = request.size.count <= 0 || request.shares.empty();
  Flow& flow = flows_[id];
  flow = {.target = 0,
          .size = request.size.value(),
          .latency = request.latency.ps,
          .tag = request.tag,
          .order = started_++,
          .of_class = kNone,
          .child = kNone,
          .sibling = kNone};
  if (instant) {
    deliveries_.add(later(now_, flow.latency), id);
  } else {
    flow.of_class = class_of(request);
    join(flow.of_class, id);
  }
  return FlowId{id};
}

// Whole picoseconds until a class has served `target`, counted from its last change of rate.
std::int64_t FluidNetwork::completion(const Class& c, double target) const {
  const double bytes = target - c.served;
  if (!(bytes > 0)) return c.since;
  if (!(c.rate > 0)) return kNever;
  if (c.exact.bps > 0 && bytes == std::floor(bytes) && bytes * static_cast<double>(c.divisor) < 9e18) {
    const Time wait = transfer_time({static_cast<std::int64_t>(bytes) * c.divisor}, c.exact);
    return later(c.since, wait.ps);
  }
  const double wait = bytes / c.rate;
  if (!(wait < 9e18)) return kNever;
  return later(c.since, static_cast<std::int64_t>(std::ceil(wait - kRoundingSlack - wait * kRelativeSlack)));
}

void FluidNetwork::settle_rate(std::uint32_t id) {
  Class& c = classes_[id];
  serve(c);
  c.rate = solver_.rate(id);
  c.exact = {};
  const MaxMin::Group& group = solver_.group(id);
  if (group.lead == MaxMin::kNone) {
    c.exact = c.cap_bps;
    c.divisor = 1;
  } else if (group.weight > 0) {
    const double divisor = group.weight / solver_.fairness(id);
    if (divisor >= 1 && divisor < 1e15 && divisor == std::floor(divisor)) {
      c.exact = capacities_[group.lead];
      c.divisor = static_cast<std::int64_t>(divisor);
    }
  }
  touch(id);
}

// Takes in what has started, ended or changed at this instant.
void FluidNetwork::settle() {
  if (touched_.empty() && !solver_.dirty()) return;
  if (counted_at_ != now_) {
    counted_at_ = now_;
    ++counters_.events;
  }
  if (solver_.dirty()) {
    solver_.solve();
    for (const std::uint32_t id : solver_.changed()) settle_rate(id);
  }
  for (const std::uint32_t id : touched_) {
    Class& c = classes_[id];
    c.touched = false;
    completions_.set(id, c.count == 0 ? kNever : completion(c, flows_[c.top].target));
  }
  touched_.clear();
}

Time FluidNetwork::next_event() {
  settle();
  return {std::min(completions_.min(), deliveries_.next())};
}

void FluidNetwork::move_to(Time now) {
  if (now.ps == now_) return;
  WEFT_CHECK(now.ps > now_, now, now_);
  const Time next = next_event();
  WEFT_CHECK(now <= next, now, next);
  now_ = now.ps;
}

void FluidNetwork::leave_resources(std::uint32_t id) {
  Class& c = classes_[id];
  for (const MaxMin::Hop& hop : solver_.hops(id)) {
    carried_[hop.resource] += c.finished * hop.weight;
    if (solver_.users(hop.resource).empty()) busy_[hop.resource] += now_ - busy_since_[hop.resource];
  }
  c.finished = 0;
  --live_classes_;
}

// Completes the flows of a class that are due now.
void FluidNetwork::complete(std::uint32_t id) {
  Class& c = classes_[id];
  do {
    const std::uint32_t done = c.top;
    Flow& flow = flows_[done];
    c.finished += flow.size;
    c.starts -= flow.target - flow.size;
    c.top = pop(done);
    --c.count;
    if (flow.latency == 0) {
      ready_.push_back(done);
    } else {
      deliveries_.add(later(now_, flow.latency), done);
    }
  } while (c.top != kNone && completion(c, flows_[c.top].target) <= now_);
  serve(c);
  solver_.set_count(id, c.count);
  if (c.count > 0) {
    touch(id);
    return;
  }
  completions_.set(id, kNever);
  leave_resources(id);
  if (!options_.merge_classes) solver_.forget(id);
}

void FluidNetwork::deliver(std::vector<FlowDone>& done) {
  const auto earlier = [this](std::uint32_t a, std::uint32_t b) { return flows_[a].order < flows_[b].order; };
  if (!std::is_sorted(ready_.begin(), ready_.end(), earlier)) std::sort(ready_.begin(), ready_.end(), earlier);
  for (const std::uint32_t id : ready_) {
    Flow& flow = flows_[id];
    done.push_back({FlowId{id}, flow.tag, {now_}});
    // First freed, first used: slots keep the order of starts.
    flow.sibling = kNone;
    if (first_free_ == kNone) {
      first_free_ = id;
    } else {
      flows_[last_free_].sibling = id;
    }
    last_free_ = id;
  }
  ready_.clear();
}

void FluidNetwork::advance(Time until, std::vector<FlowDone>& done) {
  const Time next = next_event();
  WEFT_CHECK(until.ps >= now_ && until <= next, until, now_, next);
  now_ = until.ps;
  if (until != next) return;
  if (until == Time::never()) return;
  if (completions_.min() == now_) {
    due_.clear();
    completions_.collect(due_);
    for (const std::uint32_t id : due_) {
      completions_.set(id, kNever);
      complete(id);
    }
  }
  if (deliveries_.next() == now_) deliveries_.take(ready_);
  deliver(done);
}

void FluidNetwork::set_capacity(std::uint32_t resource, Bandwidth capacity, Time now) {
  WEFT_CHECK(resource < capacities_.size() && capacity.bps >= 0, resource, capacity);
  move_to(now);
  capacities_[resource] = capacity;
  solver_.set_capacity(resource, capacity.bytes_per_ps());
}

double FluidNetwork::carried_bytes(std::uint32_t resource) const {
  double bytes = carried_[resource];
  for (const MaxMin::User& user : solver_.users(resource)) {
    const Class& c = classes_[user.variable];
    const double served = c.served + c.rate * static_cast<double>(now_ - c.since);
    bytes += user.weight * (c.finished + std::max(0.0, c.count * served - c.starts));
  }
  return bytes;
}

Time FluidNetwork::busy_time(std::uint32_t resource) const {
  const std::int64_t running = solver_.users(resource).empty() ? 0 : now_ - busy_since_[resource];
  return {busy_[resource] + running};
}

const NetworkCounters& FluidNetwork::counters() const {
  counters_.solves = solver_.solves();
  counters_.remembered = solver_.remembered();
  return counters_;
}

}  // namespace weft
