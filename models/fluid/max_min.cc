// SPDX-License-Identifier: Apache-2.0
#include "models/fluid/max_min.hpp"

#include <algorithm>
#include <bit>

#include "sim/core/check.hpp"

namespace weft {
namespace {

// A level computed twice along different ways differs by a few units of the last place; what lies this close below the first
// difference is solved again too.
constexpr double kMargin = 1e-9;

std::uint64_t hash_double(std::uint64_t seed, double x) {
  return mix_bits(seed ^ std::bit_cast<std::uint64_t>(x));
}

std::uint32_t index32(std::size_t i) { return static_cast<std::uint32_t>(i); }

}  // namespace

MaxMin::MaxMin(std::span<const double> capacities, bool remember_repeats, std::size_t cluster_size)
    : resources_(capacities.size()),
      fillings_(capacities.size()),
      cluster_size_(cluster_size),
      remember_(remember_repeats) {
  for (std::size_t r = 0; r < capacities.size(); ++r) {
    WEFT_CHECK(capacities[r] >= 0, r, capacities[r]);
    resources_[r].capacity = capacities[r];
  }
}

std::uint32_t MaxMin::define(std::span<const Share> shares, double fairness, double cap) {
  WEFT_CHECK(fairness > 0 && fairness < kUnlimited, fairness);
  WEFT_CHECK(cap > 0 && !shares.empty(), cap, shares.size());
  std::uint32_t v = shares.size() < free_by_length_.size() ? free_by_length_[shares.size()] : kNone;
  if (v != kNone) {
    free_by_length_[shares.size()] = variables_[v].next_free;
  } else {
    v = index32(variables_.size());
    Variable fresh;
    fresh.first_hop = index32(hops_.size());
    fresh.hop_count = index32(shares.size());
    variables_.push_back(fresh);
    places_.emplace_back();
    hops_.resize(hops_.size() + shares.size());
  }
  Variable& variable = variables_[v];
  variable.fairness = fairness;
  variable.cap_level = cap / fairness;
  variable.total = 0;
  variable.count = 0;
  variable.lead = variable.next_free = kNone;
  Hop* hop = hops_.data() + variable.first_hop;
  for (const Share& share : shares) {
    WEFT_CHECK(share.resource < resources_.size() && share.weight > 0 && share.weight < kUnlimited,
               share.resource, share.weight);
    *hop++ = {share.resource, 0, share.weight};
  }
  if (remember_) {
    std::uint64_t hash = hash_double(hash_double(shares.size(), fairness), cap);
    for (const Share& share : shares)
      hash = hash_double(mix_bits(hash + share.resource), share.weight);
    variable.identity = hash;
  }
  return v;
}

void MaxMin::forget(std::uint32_t v) {
  Variable& variable = variables_[v];
  WEFT_DCHECK(variable.count == 0, v, variable.count);
  const std::size_t length = variable.hop_count;
  if (length >= free_by_length_.size()) {
    free_by_length_.resize(length + 1, kNone);
    last_by_length_.resize(length + 1, kNone);
  }
  // First forgotten, first used: slots then keep the order of their flows from step to step.
  variable.next_free = kNone;
  if (free_by_length_[length] == kNone) {
    free_by_length_[length] = v;
  } else {
    variables_[last_by_length_[length]].next_free = v;
  }
  last_by_length_[length] = v;
}

void MaxMin::mark_dirty(std::uint32_t r, bool tighter) {
  resources_[r].tighter |= tighter;
  if (resources_[r].dirty) return;
  resources_[r].dirty = true;
  dirty_.push_back(r);
}

void MaxMin::attach(std::uint32_t v) {
  const Variable& variable = variables_[v];
  for (std::uint32_t h = variable.first_hop; h != variable.first_hop + variable.hop_count; ++h) {
    std::vector<User>& users = resources_[hops_[h].resource].users;
    hops_[h].place = index32(users.size());
    users.push_back({v, h, hops_[h].weight});
  }
}

void MaxMin::detach(std::uint32_t v) {
  const Variable& variable = variables_[v];
  for (std::uint32_t h = variable.first_hop; h != variable.first_hop + variable.hop_count; ++h) {
    std::vector<User>& users = resources_[hops_[h].resource].users;
    const std::uint32_t place = hops_[h].place;
    if (place + 1 != users.size()) {
      users[place] = users.back();
      hops_[users[place].hop].place = place;
    }
    users.pop_back();
  }
}

void MaxMin::set_count(std::uint32_t v, std::uint32_t count) {
  Variable& variable = variables_[v];
  if (variable.count == count) return;
  const double old_total = variable.total;
  const bool joins = variable.count == 0, grows = count > variable.count;
  arrivals_ |= grows;
  variable.count = count;
  if (count == 0) {
    leave_cluster(v);
    detach(v);
    variable.total = 0;
  } else {
    variable.total = variable.fairness * count;
    touched_.push_back(v);
    if (joins) {
      variable.lead = kNone;
      attach(v);
      join_cluster(v);
    } else {
      recount_in_cluster(v, old_total);
    }
  }
  for (const Hop& hop : hops(v)) mark_dirty(hop.resource, grows);
}

void MaxMin::set_capacity(std::uint32_t r, double capacity) {
  WEFT_CHECK(r < resources_.size() && capacity >= 0, r, capacity);
  Resource& resource = resources_[r];
  if (resource.capacity == capacity) return;
  if (resource.cluster != kNone)
    clusters_[resource.cluster].sums[resource.local][Cluster::kLeft] +=
        capacity - resource.capacity;
  resource.capacity = capacity;
  mark_dirty(r, true);
}

void MaxMin::move(std::uint32_t v, std::uint32_t lead) {
  if (variables_[v].lead == lead) return;
  variables_[v].lead = lead;
  moved_.push_back(v);
}

void MaxMin::lead_at(std::uint32_t r, double old_level) {
  if (resources_[r].level != old_level) relevelled_.push_back(r);
}

// A variable that shares nothing needs no filling.
bool MaxMin::settle_alone(std::uint32_t v) {
  Variable& variable = variables_[v];
  Group group{variable.cap_level, 0, kNone};
  for (const Hop& hop : hops(v)) {
    const Resource& resource = resources_[hop.resource];
    if (resource.users.size() != 1 || resource.cluster != kNone) return false;
    const double weight = variable.total * hop.weight;
    const double level = resource.capacity / weight;
    if (level < group.level) group = {level, weight, hop.resource};
  }
  for (const Hop& hop : hops(v)) {
    resources_[hop.resource].dirty = resources_[hop.resource].tighter = false;
    if (hop.resource != group.lead) resources_[hop.resource].level = kUnlimited;
  }
  if (group.lead != kNone) {
    Resource& lead = resources_[group.lead];
    if (lead.level != group.level) {
      lead.level = group.level;
      lead.group = index32(groups_.size());
      groups_.push_back(group);
      relevelled_.push_back(group.lead);
    }
  }
  move(v, group.lead == kNone ? kCap : group.lead);
  return true;
}

// The level up to which a changed resource behaves as before, or less: lambda'_r is approached from below.
double MaxMin::first_difference(const Resource& resource) const {
  double now = 0;
  for (int pass = 0; pass < 4; ++pass) {
    double left = resource.capacity, weight = 0;
    for (const User& user : resource.users) {
      const Variable& variable = variables_[user.variable];
      const double limit = std::min(level_of(variable), variable.cap_level);
      if (limit < now) {
        left -= limit * variable.total * user.weight;
      } else {
        weight += variable.total * user.weight;
      }
    }
    if (weight == 0) return resource.level;
    const double next = left / weight;
    if (!(next > now)) break;
    now = next;
    if (now >= resource.level) break;
  }
  return std::min(now, resource.level);
}

// Collects what is connected to `seed` through variables at or above `floor`, and takes the others off the capacities.
void MaxMin::gather(std::uint32_t seed, double floor) {
  region_resources_.clear();
  region_variables_.clear();
  resources_[seed].mark = round_;
  region_resources_.push_back(seed);
  for (std::size_t next = 0; next < region_resources_.size(); ++next) {
    const std::uint32_t r = region_resources_[next];
    Resource& resource = resources_[r];
    Filling filling{resource.capacity, 0, resource.level, 0, false};
    for (const User& user : resource.users) {
      Variable& variable = variables_[user.variable];
      if (variable.mark != round_) {
        const double level = level_of(variable);
        if (level < floor) {
          filling.left -= level * variable.total * user.weight;
          filling.touched = true;
          continue;
        }
        variable.mark = round_;
        region_variables_.push_back(user.variable);
        for (const Hop& hop : hops(user.variable)) {
          if (resources_[hop.resource].mark == round_) continue;
          resources_[hop.resource].mark = round_;
          region_resources_.push_back(hop.resource);
        }
      }
      filling.weight += variable.total * user.weight;
      ++filling.free;
    }
    fillings_[r] = filling;
  }
}

void MaxMin::freeze(std::uint32_t v, std::uint32_t lead, double level) {
  const Variable& variable = variables_[v];
  places_[v].frozen = round_;
  const double used = level * variable.total;
  for (const Hop& hop : hops(v)) {
    Filling& filling = fillings_[hop.resource];
    filling.left -= used * hop.weight;
    filling.weight -= variable.total * hop.weight;
    filling.touched = true;
    --filling.free;
  }
  move(v, lead);
}

void MaxMin::fill() {
  const auto later = [](const Key& a, const Key& b) {
    return a.level > b.level || (a.level == b.level && a.resource > b.resource);
  };
  const auto key_of = [this](std::uint32_t r) {
    const Filling& filling = fillings_[r];
    return Key{std::max(filling.left, 0.0) / filling.weight, r};
  };
  heap_.clear();
  for (const std::uint32_t r : region_resources_) {
    resources_[r].level = kUnlimited;
    if (fillings_[r].free > 0) heap_.push_back(key_of(r));
  }
  std::make_heap(heap_.begin(), heap_.end(), later);
  capped_.clear();
  for (const std::uint32_t v : region_variables_) {
    if (variables_[v].cap_level < kUnlimited) capped_.push_back(v);
  }
  std::sort(capped_.begin(), capped_.end(), [this](std::uint32_t a, std::uint32_t b) {
    const double x = variables_[a].cap_level, y = variables_[b].cap_level;
    return x < y || (x == y && a < b);
  });

  std::size_t next_cap = 0;
  Group group{-1, 0, kNone};
  const auto push = [&](const Key& key) {
    heap_.push_back(key);
    std::push_heap(heap_.begin(), heap_.end(), later);
  };
  while (!heap_.empty()) {
    std::pop_heap(heap_.begin(), heap_.end(), later);
    const Key top = heap_.back();
    heap_.pop_back();
    const std::uint32_t r = top.resource;
    if (fillings_[r].free == 0) continue;
    const Key now = key_of(r);
    if (now.level > top.level * (1 + kSnap)) {
      push(now);
      continue;
    }
    if (next_cap < capped_.size() && variables_[capped_[next_cap]].cap_level <= now.level) {
      const std::uint32_t v = capped_[next_cap++];
      if (places_[v].frozen != round_) {
        const double cap = variables_[v].cap_level;
        if (group.level != cap || group.lead != kNone) groups_.push_back(group = {cap, 0, kNone});
        freeze(v, kCap, cap);
      }
      if (fillings_[r].free > 0) push(key_of(r));
      continue;
    }
    if (group.level < 0 || now.level > group.level * (1 + kSnap)) {
      groups_.push_back(group = {now.level, fillings_[r].touched ? 0 : fillings_[r].weight, r});
    }
    for (const User& user : resources_[r].users) {
      if (variables_[user.variable].mark == round_ && places_[user.variable].frozen != round_) {
        freeze(user.variable, r, group.level);
      }
    }
    resources_[r].level = group.level;
    resources_[r].group = index32(groups_.size() - 1);
    lead_at(r, fillings_[r].old_level);
  }
}

// Takes the region's solution from memory. If that has none: whether it is worth keeping this time.
bool MaxMin::recall(RepeatKey& key, bool& store) {
  for (const std::uint32_t v : region_variables_)
    key.add(mix_bits(variables_[v].identity + variables_[v].count));
  for (const std::uint32_t r : region_resources_)
    key.add(hash_double(mix_bits(r), fillings_[r].left));
  const Repeats::Solution* known = repeats_.find(key, store);
  if (known == nullptr) return false;
  for (const std::uint32_t r : region_resources_) resources_[r].level = kUnlimited;
  for (const Repeats::Level& l : known->levels) {
    Resource& resource = resources_[l.resource];
    resource.level = l.level;
    resource.group = index32(groups_.size());
    groups_.push_back({l.level, l.weight, l.group_lead});
    lead_at(l.resource, fillings_[l.resource].old_level);
  }
  for (const Repeats::Lead& l : known->leads) move(l.variable, l.resource);
  ++remembered_;
  return true;
}

void MaxMin::keep(const RepeatKey& key) {
  Repeats::Solution& solution = repeats_.insert(key);
  for (const std::uint32_t v : region_variables_) solution.leads.push_back({v, variables_[v].lead});
  for (const std::uint32_t r : region_resources_) {
    if (resources_[r].level == kUnlimited) continue;
    const Group& g = groups_[resources_[r].group];
    solution.levels.push_back({r, g.level, g.weight, g.lead});
  }
}

void MaxMin::solve_region(std::uint32_t seed, double floor) {
  if (resources_[seed].cluster != kNone) {
    solve_cluster(resources_[seed].cluster, floor);
    return;
  }
  gather(seed, floor);
  if (region_variables_.empty()) return;
  RepeatKey key;
  bool store = false;
  if (remember_ && region_variables_.size() > 4 && repeats_.interested(arrivals_) &&
      recall(key, store))
    return;
  if (region_variables_.size() < cluster_size_) {
    fill();
    ++solves_;
  } else {
    // keep() needs the region as it was gathered.
    std::vector<std::uint32_t> resources, variables;
    if (store) resources = region_resources_, variables = region_variables_;
    solve_cluster(build_cluster(seed), floor);
    if (store) region_resources_.swap(resources), region_variables_.swap(variables);
  }
  if (store) keep(key);
}

void MaxMin::solve() {
  moved_.clear();
  relevelled_.clear();
  groups_.clear();
  if (dirty_.empty()) return;
  if (++round_ == 0) {  // marks of 2^32 rounds ago would look fresh
    for (Variable& variable : variables_) variable.mark = 0;
    for (Resource& resource : resources_) resource.mark = 0;
    for (Place& place : places_) place.frozen = place.loose = 0;
    for (Cluster& cluster : clusters_) cluster.solved = 0;
    round_ = 1;
  }
  bool fresh = false;
  for (const std::uint32_t v : touched_) {
    if (variables_[v].count > 0 && !settle_alone(v)) fresh |= variables_[v].lead == kNone;
  }
  double floor = kUnlimited;
  for (const std::uint32_t r : dirty_) {
    Resource& resource = resources_[r];
    if (!resource.dirty) continue;
    if (resource.users.empty()) {
      resource.level = kUnlimited;
    } else if (floor > 0) {
      floor = std::min(floor, resource.tighter ? first_difference(resource) : resource.level);
    }
  }
  if (fresh || floor < kUnlimited) {
    if (floor < kUnlimited) floor *= 1 - kMargin;
    for (const std::uint32_t r : dirty_) {
      const Resource& resource = resources_[r];
      if (resource.dirty && resource.mark != round_ && !resource.users.empty())
        solve_region(r, floor);
    }
  }
  for (const std::uint32_t r : dirty_) resources_[r].dirty = resources_[r].tighter = false;
  dirty_.clear();
  touched_.clear();
  arrivals_ = false;
}

}  // namespace weft
