// SPDX-License-Identifier: Apache-2.0
// Weighted max-min fair sharing by progressive filling over flow classes, solved again only where something changed.
//
// A variable v is a class of n_v equal flows with fairness phi_v and rate limit cap_v; each of its flows runs at rate x_v and
// uses w_vr x_v of resource r, which has capacity C_r. Write x_v = phi_v l_v; l_v is the *level* of v.
//
//   feasible   sum over v of n_v w_vr phi_v l_v <= C_r   for every r,      l_v <= cap_v / phi_v   for every v
//   max-min    no l_v can grow without shrinking an l_u <= l_v. Equivalently: every v is at its cap, or crosses a saturated
//              resource on which no level is higher than its own (its bottleneck).
//   filling    Raise one common level l from 0 and stop ("freeze") variables as their bottlenecks fill up. With the frozen
//              ones taken off, r is full at
//                  lambda_r = (C_r - sum over frozen v of n_v w_vr phi_v l_v) / (sum over free v of n_v w_vr phi_v).
//              The r with the smallest lambda_r saturates next; its free variables freeze at l = lambda_r: r is their *lead*.
//              Freezing below lambda_q can only raise lambda_q, so an outdated key in the heap is a lower bound and is
//              corrected when popped.
//
// Result: a lead per variable and a level per lead. Most changes move levels and leave leads alone, so a caller that keeps
// time per lead has little to do: see moved() and relevelled().
//
// What a change can reach. Filling is a sweep over levels, so the old and the new sweep agree up to the first level L at which
// a changed resource behaves differently. On a resource that lost a variable, gained one or has a new capacity, this is
// min(lambda_r before, lambda'_r), where lambda'_r fills r alone with the old levels of its variables as limits. Every variable
// below L keeps its level; of the rest only those connected to a changed resource through variables at L or above can change.
// Large connected parts are kept in the order of their last sweep (cluster.hpp), which continues at L.
//
// Ties: resources whose lambda agree within kSnap freeze at one level, bit for bit, so that equal flows stay equal.
// Same bits: sums run in the order in which variables joined or froze; nothing depends on addresses or hashes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <vector>

#include "models/fluid/cluster.hpp"
#include "models/fluid/level_queue.hpp"
#include "models/fluid/repeats.hpp"
#include "sim/run/network_model.hpp"

namespace weft {

class MaxMin {
 public:
  static constexpr double kUnlimited = std::numeric_limits<double>::infinity();
  static constexpr std::uint32_t kNone = std::numeric_limits<std::uint32_t>::max();
  static constexpr std::uint32_t kCap = kNone - 1;  // the lead of a variable at its cap
  static constexpr double kSnap = 1e-12;
  static constexpr std::size_t kClusterSize =
      48;  // variables from which a part is kept in compact form

  // One crossing of a variable with a resource; `place` is its position in the resource's list of users.
  struct Hop {
    std::uint32_t resource = 0;
    std::uint32_t place = 0;
    double weight = 1;
  };
  struct User {
    std::uint32_t variable = 0;
    std::uint32_t hop = 0;  // index into the hops of all variables
    double weight = 1;
  };
  // When the resource that saturated first at a level was filled by free variables alone, the level is exactly
  // capacity(lead) / weight; otherwise weight is 0.
  struct Group {
    double level = 0;
    double weight = 0;
    std::uint32_t lead = kNone;
  };

  explicit MaxMin(std::span<const double> capacities, bool remember_repeats = false,
                  std::size_t cluster_size = kClusterSize);

  // A variable without flows. `cap` is per flow; kUnlimited for none. Slots of forgotten variables are used again.
  std::uint32_t define(std::span<const Share> shares, double fairness, double cap);
  void forget(std::uint32_t variable);
  void set_count(std::uint32_t variable, std::uint32_t count);
  void set_capacity(std::uint32_t resource, double capacity);

  bool dirty() const { return !dirty_.empty(); }
  // Brings everything up to date.
  void solve();
  // Since the last solve(): variables that have another lead than before (newly used ones included), and leads whose level is
  // not what it was. A variable moves or keeps its lead; with its lead it takes on the lead's level.
  std::span<const std::uint32_t> moved() const { return moved_; }
  std::span<const std::uint32_t> relevelled() const { return relevelled_; }
  // Of a resource in relevelled(); valid until the next solve().
  const Group& group(std::uint32_t resource) const { return groups_[resources_[resource].group]; }

  std::uint32_t lead(std::uint32_t variable) const { return variables_[variable].lead; }
  double level(std::uint32_t variable) const { return level_of(variables_[variable]); }
  double fairness(std::uint32_t variable) const { return variables_[variable].fairness; }
  double cap_level(std::uint32_t variable) const { return variables_[variable].cap_level; }
  double rate(std::uint32_t variable) const { return level(variable) * fairness(variable); }
  double capacity(std::uint32_t resource) const { return resources_[resource].capacity; }
  std::span<const Hop> hops(std::uint32_t variable) const {
    return {hops_.data() + variables_[variable].first_hop, variables_[variable].hop_count};
  }
  std::span<const User> users(std::uint32_t resource) const { return resources_[resource].users; }

  std::uint64_t solves() const { return solves_; }          // connected regions filled
  std::uint64_t remembered() const { return remembered_; }  // fillings taken from memory
  void clear_memory() { repeats_.clear(); }

 private:
  struct Variable {
    double total = 0;  // fairness * count
    double cap_level = 0;
    double fairness = 1;
    std::uint32_t first_hop = 0, hop_count = 0;
    std::uint32_t count = 0;
    std::uint32_t lead = kNone;  // kNone: not solved since it came into use
    std::uint32_t mark = 0;      // last round in which it was part of what is solved
    std::uint32_t next_free = kNone;
    std::uint64_t identity = 0;  // hash of hops, fairness and cap
  };
  struct Resource {
    double capacity = 0;
    double level = kUnlimited;  // lambda_r when it leads a variable
    std::vector<User> users;
    std::uint32_t mark = 0;
    std::uint32_t group = 0;
    std::uint32_t cluster = kNone, local = 0;
    bool dirty = false;
    bool tighter = false;  // dirty, and not only because variables left
  };
  struct Filling {  // a resource of the region being solved
    double left = 0;
    double weight = 0;
    double old_level = 0;
    std::uint32_t free = 0;
    bool touched = false;  // some of its capacity was taken before it saturated
  };
  struct Place {
    std::uint32_t record = 0;  // in its cluster
    std::uint32_t frozen = 0;  // last round in which it was frozen
    std::uint32_t loose = 0;   // last round in which it was taken off its cap
  };
  struct Key {
    double level;
    std::uint32_t resource;
  };

  double level_of(const Variable& variable) const {
    if (variable.lead < kCap) return resources_[variable.lead].level;
    return variable.lead == kCap ? variable.cap_level : kUnlimited;
  }
  void attach(std::uint32_t variable);
  void detach(std::uint32_t variable);
  void mark_dirty(std::uint32_t resource, bool tighter);
  bool settle_alone(std::uint32_t variable);
  double first_difference(const Resource& resource) const;
  void gather(std::uint32_t seed, double floor);
  void fill();
  void freeze(std::uint32_t variable, std::uint32_t lead, double level);
  void move(std::uint32_t variable, std::uint32_t lead);
  void lead_at(std::uint32_t resource, double old_level);
  bool recall(RepeatKey& key, bool& store);
  void keep(const RepeatKey& key);
  void solve_region(std::uint32_t seed, double floor);

  // Clusters, in cluster.cc.
  void join_cluster(std::uint32_t variable);
  void leave_cluster(std::uint32_t variable);
  void recount_in_cluster(std::uint32_t variable, double old_total);
  void drop_cluster(std::uint32_t cluster);
  std::uint32_t build_cluster(std::uint32_t seed);
  void add_record(Cluster& cluster, std::uint32_t variable);
  void solve_cluster(std::uint32_t cluster, double floor);
  template <std::uint32_t kStride, bool kUniform>
  void sweep(Cluster& cluster, std::size_t first);

  std::vector<Variable> variables_;
  std::vector<Resource> resources_;
  std::vector<Hop> hops_;
  std::vector<Filling> fillings_;              // by resource
  std::vector<Place> places_;                  // by variable
  std::vector<std::uint32_t> free_by_length_;  // oldest forgotten variable with that many hops
  std::vector<std::uint32_t> last_by_length_;
  std::vector<std::uint32_t> dirty_, touched_, moved_, relevelled_;
  std::vector<std::uint32_t> region_resources_, region_variables_, capped_;
  std::vector<Key> heap_;
  std::vector<Group> groups_;
  LevelQueue queue_;
  std::vector<double> old_level_, free_at_start_;  // by local resource of the cluster being swept
  std::vector<Cluster> clusters_;
  std::vector<std::uint32_t> free_clusters_;
  std::uint32_t round_ = 0;
  std::uint64_t solves_ = 0, remembered_ = 0;
  std::size_t cluster_size_ = kClusterSize;
  bool remember_ = false;
  bool arrivals_ = false;  // since the last solve
  Repeats repeats_;
};

}  // namespace weft
