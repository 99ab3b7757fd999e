// SPDX-License-Identifier: Apache-2.0
#include "models/fluid/cluster.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

#include "models/fluid/max_min.hpp"
#include "sim/core/check.hpp"

namespace weft {
namespace {

std::uint32_t index32(std::size_t i) { return static_cast<std::uint32_t>(i); }

// Weights agree; sums of them may differ in the last places.
bool same_weight(double a, double b) { return std::abs(a - b) <= 1e-9 * a; }

// A free weight this small against what it was is a residue of sums.
constexpr double kResidue = 1e-9;
// Remaining capacities carry the rounding of every sweep; a cluster is built anew after so many.
constexpr std::size_t kMostSweeps = 1024;

// f(0) .. f(stride - 1), written out where the stride is known.
template <std::uint32_t kStride, class F>
inline void each_hop([[maybe_unused]] std::uint32_t stride, F&& f) {
  if constexpr (kStride > 0) {
    [&f]<std::uint32_t... kHop>(std::integer_sequence<std::uint32_t, kHop...>) { (f(kHop), ...); }
    (std::make_integer_sequence<std::uint32_t, kStride>{});
  } else {
    for (std::uint32_t i = 0; i < stride; ++i) f(i);
  }
}

}  // namespace

void Cluster::clear() {
  stride = solved = 0;
  uniform = true;
  capped = begun = false;
  live = sweeps = 0;
  resources.clear();
  sums.clear();
  for (Bucket& bucket : buckets) {
    bucket.records.clear();
    bucket.weight = 0;
  }
  order.clear();
  waiting.clear();
  variables.clear();
  slots.clear();
  blocks.clear();
  weights.clear();
  free_records.clear();
}

void Cluster::put_in_front(std::uint32_t record, std::uint32_t local) {
  std::uint32_t* const hops = path(record);
  const std::uint32_t at =
      index32(static_cast<std::size_t>(std::find(hops, hops + stride, local) - hops));
  std::swap(hops[0], hops[at]);
  if (!uniform) std::swap(weights[record * stride], weights[record * stride + at]);
}

void Cluster::insert(std::uint32_t local, std::uint32_t record) {
  put_in_front(record, local);
  Bucket& bucket = buckets[local];
  slots[record] = index32(bucket.records.size());
  bucket.records.push_back(record);
  bucket.weight += lead_weight(record);
}

void Cluster::remove(std::uint32_t local, std::uint32_t record) {
  Bucket& bucket = buckets[local];
  const std::uint32_t last = bucket.records.back();
  bucket.weight = bucket.records.size() == 1 ? 0 : bucket.weight - lead_weight(record);
  bucket.records[slots[record]] = last;
  slots[last] = slots[record];
  bucket.records.pop_back();
}

void MaxMin::drop_cluster(std::uint32_t id) {
  Cluster& cluster = clusters_[id];
  for (std::size_t l = 1; l < cluster.resources.size(); ++l)
    resources_[cluster.resources[l]].cluster = kNone;
  cluster.clear();
  free_clusters_.push_back(id);
}

void MaxMin::add_record(Cluster& cluster, std::uint32_t v) {
  const Variable& variable = variables_[v];
  std::uint32_t record = index32(cluster.variables.size());
  if (cluster.free_records.empty()) {
    cluster.variables.emplace_back();
    cluster.slots.emplace_back();
    cluster.blocks.resize(cluster.blocks.size() + Cluster::block_size(cluster.stride));
    if (!cluster.uniform) cluster.weights.resize(cluster.weights.size() + cluster.stride);
  } else {
    record = cluster.free_records.back();
    cluster.free_records.pop_back();
  }
  places_[v].record = record;
  cluster.variables[record] = v;
  cluster.set_total(record, variable.total);
  cluster.capped |= variable.cap_level < kUnlimited;
  const std::span<const Hop> path = hops(v);
  for (std::uint32_t i = 0; i < cluster.stride; ++i) {
    cluster.path(record)[i] = i < path.size() ? resources_[path[i].resource].local : 0;
    if (!cluster.uniform)
      cluster.weights[record * cluster.stride + i] = i < path.size() ? path[i].weight : 0;
  }
  ++cluster.live;
  if (variable.lead < kCap) {
    cluster.insert(resources_[variable.lead].local, record);
  } else if (variable.lead == kCap) {
    cluster.slots[record] = index32(cluster.order.size());
    cluster.order.push_back({variable.cap_level, Cluster::kNone, record});
  } else {
    cluster.slots[record] = index32(cluster.waiting.size());
    cluster.waiting.push_back(record);
  }
}

// All that is connected to `seed`, whatever its level. The first sweep covers the whole and makes the order.
std::uint32_t MaxMin::build_cluster(std::uint32_t seed) {
  std::uint32_t id = index32(clusters_.size());
  if (free_clusters_.empty()) {
    clusters_.emplace_back();
  } else {
    id = free_clusters_.back();
    free_clusters_.pop_back();
  }
  Cluster& cluster = clusters_[id];
  cluster.resources.push_back(kNone);
  cluster.resources.push_back(seed);
  resources_[seed].cluster = id;
  region_variables_.clear();
  for (std::size_t l = 1; l < cluster.resources.size(); ++l) {
    Resource& resource = resources_[cluster.resources[l]];
    resource.local = index32(l);
    for (const User& user : resource.users) {
      const std::span<const Hop> path = hops(user.variable);
      if (&hops_[user.hop] != path.data()) continue;  // met at its first hop
      region_variables_.push_back(user.variable);
    }
    for (const User& user : resource.users) {
      for (const Hop& hop : hops(user.variable)) {
        cluster.uniform &= hop.weight == 1;
        if (resources_[hop.resource].cluster == id) continue;
        resources_[hop.resource].cluster = id;
        cluster.resources.push_back(hop.resource);
      }
      cluster.stride = std::max(cluster.stride, variables_[user.variable].hop_count);
    }
  }
  cluster.sums.resize(cluster.resources.size());
  if (cluster.buckets.size() < cluster.resources.size())
    cluster.buckets.resize(cluster.resources.size());
  for (std::size_t l = 1; l < cluster.resources.size(); ++l) {
    cluster.sums[l][Cluster::kLeft] = resources_[cluster.resources[l]].capacity;
  }
  for (const std::uint32_t v : region_variables_) add_record(cluster, v);
  for (std::uint32_t l = 1; l < cluster.resources.size(); ++l) {
    if (cluster.buckets[l].records.empty()) continue;
    cluster.buckets[l].place = index32(cluster.order.size());
    cluster.order.push_back({0, l, Cluster::kNone});
  }
  return id;
}

// A variable came into use. It joins the one cluster it meets; where it would tie parts together, they are built anew.
void MaxMin::join_cluster(std::uint32_t v) {
  std::uint32_t id = kNone;
  bool fits = true;
  for (const Hop& hop : hops(v)) {
    const Resource& resource = resources_[hop.resource];
    if (resource.cluster == kNone) {
      fits &= resource.users.size() == 1;
      continue;
    }
    fits &= id == kNone || id == resource.cluster;
    id = resource.cluster;
  }
  if (id == kNone) return;
  Cluster& cluster = clusters_[id];
  fits &= variables_[v].hop_count <= cluster.stride;
  for (const Hop& hop : hops(v)) fits &= !cluster.uniform || hop.weight == 1;
  if (!fits) {
    for (const Hop& hop : hops(v)) {
      if (resources_[hop.resource].cluster != kNone) drop_cluster(resources_[hop.resource].cluster);
    }
    return;
  }
  for (const Hop& hop : hops(v)) {
    Resource& resource = resources_[hop.resource];
    if (resource.cluster == id) continue;
    resource.cluster = id;
    resource.local = index32(cluster.resources.size());
    resource.level = kUnlimited;
    cluster.resources.push_back(hop.resource);
    cluster.sums.push_back(Cluster::Sum{resource.capacity, 0});
    if (cluster.buckets.size() < cluster.resources.size()) cluster.buckets.emplace_back();
  }
  add_record(cluster, v);
}

void MaxMin::leave_cluster(std::uint32_t v) {
  const Variable& variable = variables_[v];
  const std::uint32_t id = resources_[hops(v)[0].resource].cluster;
  if (id == kNone) return;
  Cluster& cluster = clusters_[id];
  recount_in_cluster(v, variable.total);  // as if it had no flows
  const std::uint32_t record = places_[v].record;
  if (variable.lead < kCap) {
    cluster.remove(resources_[variable.lead].local, record);
  } else if (variable.lead == kCap) {
    cluster.order[cluster.slots[record]].record = Cluster::kNone;
  } else {
    const std::uint32_t last = cluster.waiting.back();
    cluster.waiting[cluster.slots[record]] = last;
    cluster.slots[last] = cluster.slots[record];
    cluster.waiting.pop_back();
  }
  cluster.variables[record] = kNone;
  cluster.free_records.push_back(record);
  --cluster.live;
  if (cluster.live == 0 || cluster.sweeps > kMostSweeps) drop_cluster(id);
}

// Its total is not what it was: takes the difference off the resources and its bucket. A variable without flows has total 0.
void MaxMin::recount_in_cluster(std::uint32_t v, double old_total) {
  const Variable& variable = variables_[v];
  const std::uint32_t id = resources_[hops(v)[0].resource].cluster;
  if (id == kNone) return;
  Cluster& cluster = clusters_[id];
  const std::uint32_t record = places_[v].record;
  const double now = variable.count == 0 ? 0 : variable.total, more = now - old_total;
  cluster.set_total(record, now);
  if (variable.lead == kNone) return;
  const double level = level_of(variable);
  for (const Hop& hop : hops(v))
    cluster.sums[resources_[hop.resource].local][Cluster::kLeft] -= level * more * hop.weight;
  if (variable.lead < kCap)
    cluster.buckets[resources_[variable.lead].local].weight += more * cluster.weight(record, 0);
}

void MaxMin::solve_cluster(std::uint32_t id, double floor) {
  Cluster& cluster = clusters_[id];
  if (cluster.solved == round_) return;
  cluster.solved = round_;
  const auto first =
      std::find_if(cluster.order.begin(), cluster.order.end(),
                   [&](const Cluster::Segment& s) { return s.level >= floor || !cluster.begun; });
  if (first == cluster.order.end() && cluster.waiting.empty()) return;
  const auto index = static_cast<std::size_t>(first - cluster.order.begin());
  ++cluster.sweeps;
  ++solves_;
  if (!cluster.uniform) return sweep<0, false>(cluster, index);
  switch (cluster.stride) {
    case 2:
      return sweep<2, true>(cluster, index);
    case 4:
      return sweep<4, true>(cluster, index);
    case 6:
      return sweep<6, true>(cluster, index);
    default:
      return sweep<0, true>(cluster, index);
  }
}

template <std::uint32_t kStride, bool kUniform>
void MaxMin::sweep(Cluster& cluster, std::size_t first) {
  const std::uint32_t stride = kStride == 0 ? cluster.stride : kStride;
  Cluster::Sum* const sums = cluster.sums.data();
  const std::uint32_t* const blocks = cluster.blocks.data();
  const bool whole =
      first == 0;  // nothing stays: the sums start from the capacities, free of rounding

  // Takes a record at its level off its hops, or puts it on; without the first where the bucket deals with its lead.
  const auto apply = [&](std::uint32_t record, double level, bool put, bool with_first)
      __attribute__((always_inline)) {
    const std::uint32_t* const block =
        blocks + static_cast<std::size_t>(record) * Cluster::block_size(stride);
    const std::uint32_t* const path = block + 2;
    double total;
    std::memcpy(&total, block, sizeof total);
    const Cluster::Sum take{level * total, total}, change = put ? -take : take;
    each_hop<kStride>(stride, [&](std::uint32_t i) {
      if (i == 0 && !with_first) return;
      if constexpr (kUniform) {
        sums[path[i]] += change;
      } else {
        sums[path[i]] += change * cluster.weights[static_cast<std::size_t>(record) * stride + i];
      }
    });
  };

  old_level_.assign(cluster.resources.size(), kUnlimited);
  free_at_start_.resize(cluster.resources.size());
  if (!cluster.begun) {
    for (std::size_t l = 1; l < cluster.resources.size(); ++l) {
      if (cluster.buckets[l].records.empty()) resources_[cluster.resources[l]].level = kUnlimited;
    }
  }

  // Take the tail off.
  if (whole) {
    for (std::size_t l = 1; l < cluster.resources.size(); ++l)
      sums[l][Cluster::kLeft] = resources_[cluster.resources[l]].capacity;
  }
  const double highest = cluster.order.empty() ? 0 : cluster.order.back().level;
  std::size_t left = cluster.waiting.size();
  capped_.clear();
  const auto note_cap = [&](std::uint32_t record) {
    const std::uint32_t v = cluster.variables[record];
    if (variables_[v].cap_level < kUnlimited) capped_.push_back(v);
  };
  for (std::size_t s = first; s < cluster.order.size(); ++s) {
    const Cluster::Segment& segment = cluster.order[s];
    const double level = whole ? 0 : segment.level;
    if (segment.lead != Cluster::kNone) {
      const Cluster::Bucket& bucket = cluster.buckets[segment.lead];
      if (bucket.place != s) continue;
      sums[segment.lead] += Cluster::Sum{level * bucket.weight, bucket.weight};
      for (const std::uint32_t record : bucket.records) apply(record, level, false, false);
      left += bucket.records.size();
      if (cluster.capped) std::for_each(bucket.records.begin(), bucket.records.end(), note_cap);
      Resource& resource = resources_[cluster.resources[segment.lead]];
      old_level_[segment.lead] = resource.level;
      resource.level = kUnlimited;  // until it freezes again
    } else if (segment.record != Cluster::kNone) {
      apply(segment.record, level, false, true);
      ++left;
      places_[cluster.variables[segment.record]].loose = round_;
      note_cap(segment.record);
    }
  }
  for (const std::uint32_t record : cluster.waiting) {
    apply(record, 0, false, true);
    if (cluster.capped) note_cap(record);
  }
  std::sort(capped_.begin(), capped_.end(), [this](std::uint32_t a, std::uint32_t b) {
    const double x = variables_[a].cap_level, y = variables_[b].cap_level;
    return x < y || (x == y && a < b);
  });

  const auto key_of = [sums](std::uint32_t l) {
    return LevelQueue::Key{std::max(sums[l][Cluster::kLeft], 0.0) / sums[l][Cluster::kFree], l};
  };
  queue_.clear();
  for (std::uint32_t l = 1; l < cluster.resources.size(); ++l) {
    free_at_start_[l] = sums[l][Cluster::kFree];
    if (free_at_start_[l] > 0) queue_.add(key_of(l));
  }
  queue_.start(highest);
  // A lead of the tail has no level until it freezes again.
  const auto is_free = [&](std::uint32_t v) {
    const Variable& variable = variables_[v];
    if (variable.lead < kCap) return resources_[variable.lead].level == kUnlimited;
    return variable.lead == kNone || (places_[v].loose == round_ && places_[v].frozen != round_);
  };
  const auto take_out = [&](std::uint32_t v, std::uint32_t record) {
    if (variables_[v].lead < kCap) cluster.remove(resources_[variables_[v].lead].local, record);
  };

  cluster.order.resize(first);
  std::size_t next_cap = 0;
  Group group{-1, 0, kNone};
  while (left > 0) {
    const LevelQueue::Key top = queue_.top();
    const std::uint32_t l = top.resource, r = cluster.resources[l];
    if (sums[l][Cluster::kFree] <= kResidue * free_at_start_[l]) {
      bool any = false;
      if (sums[l][Cluster::kFree] != 0) {
        for (const User& user : resources_[r].users) any |= is_free(user.variable);
      }
      if (!any) {
        queue_.pop();
        continue;
      }
    }
    const LevelQueue::Key now = key_of(l);
    if (now.level > top.level * (1 + kSnap)) {
      queue_.raise(now);
      continue;
    }
    if (next_cap < capped_.size() && variables_[capped_[next_cap]].cap_level <= now.level) {
      const std::uint32_t v = capped_[next_cap++], record = places_[v].record;
      if (!is_free(v)) continue;
      const double cap = variables_[v].cap_level;
      if (group.level != cap || group.lead != kNone) groups_.push_back(group = {cap, 0, kNone});
      take_out(v, record);
      apply(record, cap, true, true);
      cluster.slots[record] = index32(cluster.order.size());
      cluster.order.push_back({cap, Cluster::kNone, record});
      places_[v].frozen = round_;
      move(v, kCap);
      --left;
      continue;
    }
    if (group.level < 0 || now.level > group.level * (1 + kSnap)) {
      const bool exact = whole && sums[l][Cluster::kLeft] == resources_[r].capacity;
      group = {now.level, exact ? sums[l][Cluster::kFree] : 0, r};
      groups_.push_back(group);
    }
    queue_.pop();
    Cluster::Bucket& bucket = cluster.buckets[l];
    if (!same_weight(sums[l][Cluster::kFree], bucket.weight)) {
      for (const User& user : resources_[r].users) {
        const std::uint32_t v = user.variable, record = places_[v].record;
        if (variables_[v].lead == r || !is_free(v)) continue;
        take_out(v, record);
        cluster.insert(l, record);
        move(v, r);
        if (same_weight(sums[l][Cluster::kFree], bucket.weight)) break;
      }
    }
    const double level = group.level;
    for (const std::uint32_t record : bucket.records) apply(record, level, true, false);
    left -= bucket.records.size();
    sums[l][Cluster::kLeft] -= level * bucket.weight;
    sums[l][Cluster::kFree] = 0;
    bucket.place = index32(cluster.order.size());
    cluster.order.push_back({level, l, Cluster::kNone});
    resources_[r].level = level;
    resources_[r].group = index32(groups_.size() - 1);
    lead_at(r, old_level_[l]);
  }
  for (Cluster::Sum& sum : cluster.sums) sum[Cluster::kFree] = 0;
  sums[0][Cluster::kLeft] = 0;
  cluster.waiting.clear();
  cluster.begun = true;
}

}  // namespace weft
