// SPDX-License-Identifier: Apache-2.0
#include "models/fluid/cluster.hpp"

#include <algorithm>
#include <cmath>

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

}  // namespace

void Cluster::clear() {
  stride = solved = 0;
  uniform = true;
  capped = begun = in_use = false;
  live = sweeps = 0;
  resources.clear();
  sums.clear();
  segment_of.clear();
  segments.clear();
  variables.clear();
  totals.clear();
  hops.clear();
  weights.clear();
}

void MaxMin::drop_cluster(std::uint32_t id) {
  Cluster& cluster = clusters_[id];
  for (std::size_t l = 1; l < cluster.resources.size(); ++l) resources_[cluster.resources[l]].cluster = kNone;
  cluster.clear();
  free_clusters_.push_back(id);
}

void MaxMin::add_record(Cluster& cluster, std::uint32_t v) {
  const Variable& variable = variables_[v];
  positions_[v] = index32(cluster.records());
  cluster.variables.push_back(v);
  cluster.totals.push_back(variable.total);
  cluster.capped |= variable.cap_level < kUnlimited;
  std::uint32_t i = 0;
  for (const Hop& hop : hops(v)) {
    cluster.hops.push_back(resources_[hop.resource].local);
    if (!cluster.uniform) cluster.weights.push_back(hop.weight);
    ++i;
  }
  for (; i < cluster.stride; ++i) {
    cluster.hops.push_back(0);
    if (!cluster.uniform) cluster.weights.push_back(0);
  }
  ++cluster.live;
  if (cluster.segments.empty() || cluster.segments.back().level < kUnlimited) {
    cluster.segments.push_back({kUnlimited, 0, Cluster::kNone, positions_[v], positions_[v], false});
  }
  cluster.segments.back().end = positions_[v] + 1;
}

// All that is connected to `seed`, whatever its level.
std::uint32_t MaxMin::build_cluster(std::uint32_t seed) {
  std::uint32_t id = index32(clusters_.size());
  if (free_clusters_.empty()) {
    clusters_.emplace_back();
  } else {
    id = free_clusters_.back();
    free_clusters_.pop_back();
  }
  Cluster& cluster = clusters_[id];
  cluster.in_use = true;
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
  cluster.segment_of.assign(cluster.resources.size(), Cluster::kNone);
  for (std::size_t l = 1; l < cluster.resources.size(); ++l) {
    cluster.sums[l].left = resources_[cluster.resources[l]].capacity;
  }
  for (const std::uint32_t v : region_variables_) add_record(cluster, v);
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
    cluster.sums.push_back({resource.capacity, 0});
    cluster.segment_of.push_back(Cluster::kNone);
  }
  add_record(cluster, v);
}

void MaxMin::leave_cluster(std::uint32_t v) {
  const Variable& variable = variables_[v];
  const std::uint32_t id = resources_[hops(v)[0].resource].cluster;
  if (id == kNone) return;
  Cluster& cluster = clusters_[id];
  recount_in_cluster(v, variable.total);  // as if it had no flows
  cluster.variables[positions_[v]] = kNone;
  --cluster.live;
  if (cluster.live == 0 || cluster.records() > 2 * cluster.live + 64 || cluster.sweeps > kMostSweeps) drop_cluster(id);
}

// Its total is not what it was: takes the difference off the resources and its segment. A variable without flows has total 0.
void MaxMin::recount_in_cluster(std::uint32_t v, double old_total) {
  const Variable& variable = variables_[v];
  const std::uint32_t id = resources_[hops(v)[0].resource].cluster;
  if (id == kNone) return;
  Cluster& cluster = clusters_[id];
  const std::size_t record = positions_[v];
  const double now = variable.count == 0 ? 0 : variable.total, more = now - old_total;
  cluster.totals[record] = now;
  if (variable.lead == kNone) return;
  const double level = level_of(variable);
  for (const Hop& hop : hops(v)) {
    const std::uint32_t local = resources_[hop.resource].local;
    cluster.sums[local].left -= level * more * hop.weight;
    if (hop.resource == variable.lead && cluster.segment_of[local] != Cluster::kNone) {
      cluster.segments[cluster.segment_of[local]].weight += more * hop.weight;
    }
  }
}

void MaxMin::solve_cluster(std::uint32_t id, double floor) {
  Cluster& cluster = clusters_[id];
  if (cluster.solved == round_) return;
  cluster.solved = round_;
  const auto first = std::find_if(cluster.segments.begin(), cluster.segments.end(),
                                  [floor](const Cluster::Segment& s) { return s.level >= floor; });
  const auto index = static_cast<std::size_t>(first - cluster.segments.begin());
  if (first == cluster.segments.end()) return;
  ++cluster.sweeps;
  if (cluster.uniform && cluster.stride <= 4) {
    switch (cluster.stride) {
      case 4: return sweep<4, true>(cluster, index);
      case 2: return sweep<2, true>(cluster, index);
      default: break;
    }
  }
  if (cluster.uniform) {
    sweep<0, true>(cluster, index);
  } else {
    sweep<0, false>(cluster, index);
  }
}

template <std::uint32_t kStride, bool kUniform>
void MaxMin::sweep(Cluster& cluster, std::size_t first_segment) {
  const std::uint32_t stride = kStride == 0 ? cluster.stride : kStride;
  const std::size_t begin = cluster.segments[first_segment].begin, records = cluster.records();
  Cluster::Sum* const sums = cluster.sums.data();

  // Take the tail off. From the very start the sums are the capacities, free of rounding.
  if (begin == 0) {
    for (std::size_t l = 1; l < cluster.resources.size(); ++l) sums[l].left = resources_[cluster.resources[l]].capacity;
  }
  for (std::size_t s = first_segment; s < cluster.segments.size(); ++s) {
    Cluster::Segment& segment = cluster.segments[s];
    segment.broken = false;
    const double level = begin == 0 || segment.level == kUnlimited ? 0 : segment.level;
    for (std::size_t k = segment.begin; k < segment.end; ++k) {
      const double total = cluster.totals[k], used = level * total;
      const std::uint32_t* hop = &cluster.hops[k * stride];
      for (std::uint32_t i = 0; i < stride; ++i) {
        const double weight = kUniform ? 1.0 : cluster.weights[k * stride + i];
        sums[hop[i]].left += kUniform ? used : used * weight;
        sums[hop[i]].free += kUniform ? total : total * weight;
      }
    }
  }
  const auto key_of = [sums](std::uint32_t l) { return Key{std::max(sums[l].left, 0.0) / sums[l].free, l}; };
  const auto later = [](const Key& a, const Key& b) {
    return a.level > b.level || (a.level == b.level && a.resource > b.resource);
  };
  heap_.clear();
  for (std::uint32_t l = 1; l < cluster.resources.size(); ++l) {
    Resource& resource = resources_[cluster.resources[l]];
    const std::uint32_t s = cluster.segment_of[l];
    if (!cluster.begun || (s != Cluster::kNone && s >= first_segment)) {
      fillings_[cluster.resources[l]].old_level = resource.level;
      resource.level = kUnlimited;
    } else if (s == Cluster::kNone) {
      fillings_[cluster.resources[l]].old_level = kUnlimited;
    }
    fillings_[cluster.resources[l]].weight = sums[l].free;
    if (sums[l].free > 0) heap_.push_back(key_of(l));
  }
  std::make_heap(heap_.begin(), heap_.end(), later);

  // The tail is written to sweep_ in its new order.
  Cluster& out = sweep_;
  out.segments.clear();
  out.variables.clear();
  out.totals.clear();
  out.hops.clear();
  out.weights.clear();
  std::size_t left = 0;
  capped_.clear();
  for (std::size_t k = begin; k < records; ++k) {
    const std::uint32_t v = cluster.variables[k];
    if (v == kNone) continue;
    ++left;
    if (cluster.capped && variables_[v].cap_level < kUnlimited) capped_.push_back(v);
  }
  std::sort(capped_.begin(), capped_.end(), [this](std::uint32_t a, std::uint32_t b) {
    const double x = variables_[a].cap_level, y = variables_[b].cap_level;
    return x < y || (x == y && a < b);
  });
  const auto put = [&](std::size_t k, double level) {
    const double total = cluster.totals[k], used = level * total;
    const std::uint32_t* hop = &cluster.hops[k * stride];
    for (std::uint32_t i = 0; i < stride; ++i) {
      const double weight = kUniform ? 1.0 : cluster.weights[k * stride + i];
      sums[hop[i]].left -= kUniform ? used : used * weight;
      sums[hop[i]].free -= kUniform ? total : total * weight;
      if (!kUniform) out.weights.push_back(weight);
    }
    // Positions of frozen records are new ones; those of free ones are still old.
    positions_[cluster.variables[k]] = index32(begin + out.variables.size());
    out.variables.push_back(cluster.variables[k]);
    out.totals.push_back(total);
    out.hops.insert(out.hops.end(), hop, hop + stride);
    frozen_[cluster.variables[k]] = round_;
    --left;
  };
  const auto break_segment = [&](std::uint32_t v) {
    const std::uint32_t lead = variables_[v].lead;
    if (lead >= kCap || resources_[lead].cluster == kNone) return;
    const std::uint32_t s = cluster.segment_of[resources_[lead].local];
    if (s != Cluster::kNone) cluster.segments[s].broken = true;
  };

  std::size_t next_cap = 0;
  Group group{-1, 0, kNone};
  while (left > 0) {
    WEFT_CHECK(!heap_.empty(), left);
    const Key top = heap_.front();
    const std::uint32_t l = top.resource, r = cluster.resources[l];
    const auto drop = [&] {
      std::pop_heap(heap_.begin(), heap_.end(), later);
      heap_.pop_back();
    };
    const auto is_free = [&](std::uint32_t v) { return frozen_[v] != round_ && positions_[v] >= begin; };
    if (sums[l].free <= kResidue * fillings_[r].weight) {
      bool any = false;
      if (sums[l].free != 0) {
        for (const User& user : resources_[r].users) any |= is_free(user.variable);
      }
      if (!any) {
        drop();
        continue;
      }
    }
    const Key now = key_of(l);
    if (now.level > top.level * (1 + kSnap)) {
      // Down to its new place.
      std::size_t hole = 0;
      for (;;) {
        std::size_t child = 2 * hole + 1;
        if (child >= heap_.size()) break;
        if (child + 1 < heap_.size() && later(heap_[child], heap_[child + 1])) ++child;
        if (!later(now, heap_[child])) break;
        heap_[hole] = heap_[child];
        hole = child;
      }
      heap_[hole] = now;
      continue;
    }
    if (next_cap < capped_.size() && variables_[capped_[next_cap]].cap_level <= now.level) {
      const std::uint32_t v = capped_[next_cap++];
      const std::size_t k = positions_[v];
      if (frozen_[v] == round_) continue;
      const double cap = variables_[v].cap_level;
      if (group.level != cap || group.lead != kNone) groups_.push_back(group = {cap, 0, kNone});
      const std::uint32_t place = index32(begin + out.variables.size());
      out.segments.push_back({cap, 0, Cluster::kNone, place, place + 1, false});
      break_segment(v);
      put(k, cap);
      move(v, kCap);
      continue;
    }
    if (group.level < 0 || now.level > group.level * (1 + kSnap)) {
      const bool exact = begin == 0 && sums[l].left == resources_[r].capacity;
      group = {now.level, exact ? sums[l].free : 0, r};
      groups_.push_back(group);
    }
    drop();
    const double weight = sums[l].free;
    const std::uint32_t place = index32(begin + out.variables.size());
    const std::uint32_t s = cluster.segment_of[l];
    if (s != Cluster::kNone && s >= first_segment && !cluster.segments[s].broken &&
        same_weight(weight, cluster.segments[s].weight)) {
      for (std::size_t k = cluster.segments[s].begin; k < cluster.segments[s].end; ++k) {
        if (cluster.variables[k] != kNone) put(k, group.level);
      }
    } else {
      for (const User& user : resources_[r].users) {
        if (!is_free(user.variable)) continue;
        break_segment(user.variable);
        put(positions_[user.variable], group.level);
        move(user.variable, r);
      }
    }
    out.segments.push_back({group.level, weight, l, place, index32(begin + out.variables.size()), false});
    resources_[r].level = group.level;
    resources_[r].group = index32(groups_.size() - 1);
    lead_at(r, fillings_[r].old_level);
  }

  for (std::size_t s = first_segment; s < cluster.segments.size(); ++s) {
    const std::uint32_t lead = cluster.segments[s].lead;
    if (lead != Cluster::kNone && cluster.segment_of[lead] == s) cluster.segment_of[lead] = Cluster::kNone;
  }
  cluster.segments.resize(first_segment);
  for (const Cluster::Segment& segment : out.segments) {
    if (segment.lead != Cluster::kNone) cluster.segment_of[segment.lead] = index32(cluster.segments.size());
    cluster.segments.push_back(segment);
  }
  const std::size_t end = begin + out.variables.size();
  const auto write_back = [](auto& to, const auto& from, std::size_t at) {
    to.resize(at);
    to.insert(to.end(), from.begin(), from.end());
  };
  write_back(cluster.variables, out.variables, begin);
  write_back(cluster.totals, out.totals, begin);
  write_back(cluster.hops, out.hops, begin * stride);
  if (!kUniform) write_back(cluster.weights, out.weights, begin * stride);
  WEFT_DCHECK(cluster.records() == end, end);
  for (Cluster::Sum& sum : cluster.sums) sum.free = 0;
  cluster.begun = true;
  ++solves_;
}

}  // namespace weft
