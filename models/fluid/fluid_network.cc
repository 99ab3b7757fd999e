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

std::int64_t later(std::int64_t since, std::int64_t wait) {
  return wait >= kNever - since ? kNever : since + wait;
}

std::uint64_t class_hash(const FlowRequest& request) {
  std::uint64_t hash = mix_bits(static_cast<std::uint64_t>(request.cap.bps) ^
                                std::bit_cast<std::uint64_t>(request.fairness));
  for (const Share& share : request.shares) {
    hash = (hash ^ share.resource ^ std::bit_cast<std::uint64_t>(share.weight)) *
           0x9E3779B97F4A7C15ULL;
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
  clocks_.resize(capacities.size());
  completions_.resize(clocks_.size());
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
      classes_[id].cap != request.cap) {
    return false;
  }
  for (std::size_t i = 0; i < hops.size(); ++i) {
    if (hops[i].resource != request.shares[i].resource ||
        hops[i].weight != request.shares[i].weight)
      return false;
  }
  return true;
}

std::uint32_t FluidNetwork::define_class(const FlowRequest& request, std::uint64_t hash) {
  const double cap = request.cap.bps > 0 ? request.cap.bytes_per_ps() : MaxMin::kUnlimited;
  const std::uint32_t id = solver_.define(request.shares, request.fairness, cap);
  if (id >= classes_.size()) {
    classes_.resize(id + 1);
    memberships_.resize(id + 1);
    clocks_.resize(capacities_.size() + id + 1);
    completions_.resize(clocks_.size());
  }
  Class& c = classes_[id];
  c = Class{};
  c.fairness = request.fairness;
  c.cap = request.cap;
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
  table_.assign(
      std::max(table_.size(), std::bit_ceil(std::max<std::size_t>(4 * (table_used_ + 1), 1024))),
      kNone);
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

double FluidNetwork::reading(const Clock& clock) const {
  return clock.served + clock.level * static_cast<double>(now_ - clock.since);
}

// Bytes that each flow of a class would have been served, had it been there from the beginning.
double FluidNetwork::served(std::uint32_t id) const {
  const Class& c = classes_[id];
  const std::uint32_t clock = memberships_[id].clock;
  return clock == kNone ? c.base : c.base + c.fairness * (reading(clocks_[clock]) - c.from);
}

void FluidNetwork::touch(std::uint32_t clock) {
  if (clocks_[clock].touched) return;
  clocks_[clock].touched = true;
  touched_.push_back(clock);
}

void FluidNetwork::wind(Clock& clock) {
  clock.served = clock.members == 0 ? 0 : reading(clock);
  clock.since = now_;
}

void FluidNetwork::set_due(std::uint32_t id) {
  const Class& c = classes_[id];
  memberships_[id].due = c.from + (flows_[c.top].target - c.base) / c.fairness;
}

void FluidNetwork::enter_clock(std::uint32_t id, std::uint32_t to) {
  Clock& clock = clocks_[to];
  wind(clock);
  classes_[id].from = clock.served;
  memberships_[id].clock = to;
  set_due(id);
  const double due = memberships_[id].due;
  clock.first = clock.members == 0 ? due : std::min(clock.first, due);
  if (clock.members++ == 0) clock.stale = false;
  touch(to);
}

void FluidNetwork::leave_clock(std::uint32_t id) {
  Membership& membership = memberships_[id];
  Clock& clock = clocks_[membership.clock];
  --clock.members;
  if (membership.due <= clock.first) {
    clock.stale = true;
    touch(membership.clock);
  }
  membership.clock = kNone;
}

void FluidNetwork::find_first(std::uint32_t id) {
  Clock& clock = clocks_[id];
  clock.stale = false;
  if (clock.members == 0) return;
  clock.first = MaxMin::kUnlimited;
  if (id >= capacities_.size()) {
    clock.first = memberships_[id - capacities_.size()].due;
    return;
  }
  for (const MaxMin::User& user : solver_.users(id)) {
    const Membership& m = memberships_[user.variable];
    if (m.clock == id) clock.first = std::min(clock.first, m.due);
  }
}

void FluidNetwork::join(std::uint32_t id, std::uint32_t flow_id) {
  Class& c = classes_[id];
  Flow& flow = flows_[flow_id];
  if (c.count == 0) {
    c.base = c.starts = 0;
    flow.target = flow.size;
    c.top = flow_id;
    ++live_classes_;
  } else {
    const double before = served(id);
    flow.target = before + flow.size;
    c.starts += before;
    c.top = meld(c.top, flow_id);
    ++counters_.merged_flows;
    const std::uint32_t clock = memberships_[id].clock;
    if (clock != kNone && c.top == flow_id) {
      set_due(id);
      clocks_[clock].first = std::min(clocks_[clock].first, memberships_[id].due);
      touch(clock);
    }
  }
  solver_.set_count(id, ++c.count);
  if (c.count == 1) {
    for (const MaxMin::Hop& hop : solver_.hops(id)) {
      if (solver_.users(hop.resource).size() == 1) busy_since_[hop.resource] = now_;
    }
  }
}

FlowId FluidNetwork::start(const FlowRequest& request, Time now) {
  WEFT_CHECK(request.latency.ps >= 0, request.latency);
  move_to(now);
  const std::uint32_t id = new_flow();
  const bool instant = request.size.count <= 0 || request.shares.empty();
  flows_[id] = {.size = request.size.value(),
                .latency = request.latency.ps,
                .tag = request.tag,
                .order = started_++};
  enter(id, request, instant);
  return FlowId{id};
}

// A flow without bytes to send is only on its way.
void FluidNetwork::enter(std::uint32_t id, const FlowRequest& request, bool instant) {
  Flow& flow = flows_[id];
  if (instant) {
    deliveries_.add(later(now_, flow.latency), id);
    return;
  }
  flow.of_class = class_of(request);
  join(flow.of_class, id);
}

// Whole picoseconds until a clock reads `due`, counted from its last change of level.
std::int64_t FluidNetwork::completion(const Clock& clock, double due) const {
  const double units = due - clock.served;
  if (!(units > 0)) return clock.since;
  if (!(clock.level > 0)) return kNever;
  if (clock.exact.bps > 0 && units == std::floor(units) && units * clock.weight < 9e18) {
    const std::int64_t bytes =
        static_cast<std::int64_t>(units) * static_cast<std::int64_t>(clock.weight);
    return later(clock.since, transfer_time({bytes}, clock.exact).ps);
  }
  const double wait = units / clock.level;
  if (!(wait < 9e18)) return kNever;
  return later(clock.since,
               static_cast<std::int64_t>(std::ceil(wait - kRoundingSlack - wait * kRelativeSlack)));
}

void FluidNetwork::relevel(std::uint32_t resource) {
  Clock& clock = clocks_[resource];
  wind(clock);
  const MaxMin::Group& group = solver_.group(resource);
  clock.level = group.level;
  const bool exact = group.lead < MaxMin::kCap && group.weight >= 1 && group.weight < 1e15 &&
                     group.weight == std::floor(group.weight);
  clock.exact = exact ? capacities_[group.lead] : Bandwidth{};
  clock.weight = exact ? group.weight : 0;
  touch(resource);
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
    for (const std::uint32_t resource : solver_.relevelled()) relevel(resource);
    for (const std::uint32_t id : solver_.moved()) {
      Class& c = classes_[id];
      c.base = served(id);
      if (memberships_[id].clock != kNone) leave_clock(id);
      const std::uint32_t lead = solver_.lead(id);
      if (lead < MaxMin::kCap) {
        enter_clock(id, lead);
        continue;
      }
      const auto own = static_cast<std::uint32_t>(capacities_.size() + id);
      Clock& clock = clocks_[own];
      clock.level = solver_.cap_level(id);
      const bool exact = c.fairness >= 1 && c.fairness == std::floor(c.fairness);
      clock.exact = exact ? c.cap : Bandwidth{};
      clock.weight = exact ? c.fairness : 0;
      enter_clock(id, own);
    }
  }
  for (const std::uint32_t id : touched_) {
    Clock& clock = clocks_[id];
    clock.touched = false;
    if (clock.stale) find_first(id);
    completions_.set(id, clock.members == 0 ? kNever : completion(clock, clock.first));
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
    if (solver_.users(hop.resource).empty())
      busy_[hop.resource] += now_ - busy_since_[hop.resource];
  }
  c.finished = 0;
  --live_classes_;
}

// The classes of a clock that have a flow due now.
void FluidNetwork::collect_due(std::uint32_t id) {
  const Clock& clock = clocks_[id];
  if (id >= capacities_.size()) {
    due_.push_back(static_cast<std::uint32_t>(id - capacities_.size()));
    return;
  }
  // Spares the others the exact computation; generous by what that computation may round.
  const double most = (reading(clock) + 2 * clock.level) * (1 + 1e-9);
  for (const MaxMin::User& user : solver_.users(id)) {
    const Membership& m = memberships_[user.variable];
    if (m.clock == id && m.due <= most && completion(clock, m.due) <= now_)
      due_.push_back(user.variable);
  }
}

void FluidNetwork::complete(std::uint32_t id) {
  Class& c = classes_[id];
  const Clock& clock = clocks_[memberships_[id].clock];
  do {
    const std::uint32_t done = c.top;
    Flow& flow = flows_[done];
    c.finished += flow.size;
    c.starts -= flow.target - flow.size;
    flow.of_class = kNone;
    c.top = pop(done);
    --c.count;
    if (flow.latency == 0) {
      ready_.push_back(done);
    } else {
      deliveries_.add(later(now_, flow.latency), done);
    }
    if (c.top == kNone) break;
    set_due(id);
  } while (completion(clock, memberships_[id].due) <= now_);
  solver_.set_count(id, c.count);
  if (c.count == 0) close(id);
}

// A class without flows.
void FluidNetwork::close(std::uint32_t id) {
  if (memberships_[id].clock != kNone) leave_clock(id);
  leave_resources(id);
  if (!options_.merge_classes) solver_.forget(id);
}

void FluidNetwork::deliver(std::vector<FlowDone>& done) {
  const auto earlier = [this](std::uint32_t a, std::uint32_t b) {
    return flows_[a].order < flows_[b].order;
  };
  if (!std::is_sorted(ready_.begin(), ready_.end(), earlier))
    std::sort(ready_.begin(), ready_.end(), earlier);
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
    due_clocks_.clear();
    due_.clear();
    completions_.collect(due_clocks_);
    for (const std::uint32_t clock : due_clocks_) {
      collect_due(clock);
      clocks_[clock].stale = true;
      touch(clock);
    }
    for (const std::uint32_t id : due_) complete(id);
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
    bytes += user.weight * (c.finished + std::max(0.0, c.count * served(user.variable) - c.starts));
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
