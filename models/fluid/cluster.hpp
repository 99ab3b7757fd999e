// SPDX-License-Identifier: Apache-2.0
// A large connected part of a MaxMin system in compact form, in the order in which its variables froze.
//
// One record per variable: the resources it crosses, as indices local to the cluster, its total fairness, and weights where
// they are not all 1. Records of one lead are neighbours (a segment) and segments ascend by level, so
//   - "everything at level L or above" is the tail of the arrays;
//   - taking the tail off the resources, and putting it on again at new levels, reads memory once from front to back;
//   - a lead whose free variables are still exactly its segment freezes without a look at the resource's list of users.
// A removed variable leaves a hole (total 0) until its segment is written anew. New ones wait at the end, at no level.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <vector>

namespace weft {

struct Cluster {
  static constexpr std::uint32_t kNone = std::numeric_limits<std::uint32_t>::max();

  struct Segment {
    double level = 0;            // infinite for those that wait
    double weight = 0;           // sum of total * weight on the lead
    std::uint32_t lead = kNone;  // local; kNone: a cap, or waiting
    std::uint32_t begin = 0, end = 0;
    bool broken = false;         // some of its records froze elsewhere in this sweep
  };
  struct alignas(16) Sum {
    double left = 0;  // capacity not used by frozen variables
    double free = 0;  // total * weight of free ones; 0 outside a sweep
  };

  std::uint32_t stride = 0;    // hops per record; shorter paths are filled up with local resource 0, which is nothing
  bool uniform = true;         // all weights are 1
  bool capped = false;         // some variable has a cap
  bool begun = false;          // false: no level in it is known yet
  bool in_use = false;
  std::size_t live = 0;        // records that are not holes
  std::size_t sweeps = 0;
  std::uint32_t solved = 0;    // last round
  std::vector<std::uint32_t> resources;   // global index of a local one
  std::vector<Sum> sums;                  // by local
  std::vector<std::uint32_t> segment_of;  // by local: where it leads
  std::vector<Segment> segments;
  std::vector<std::uint32_t> variables;   // by record; kNone for a hole
  std::vector<double> totals;
  std::vector<std::uint32_t> hops;        // stride per record
  std::vector<double> weights;            // stride per record, unless uniform

  std::size_t records() const { return variables.size(); }
  double weight(std::size_t record, std::uint32_t hop) const { return uniform ? 1.0 : weights[record * stride + hop]; }
  void clear();
};

}  // namespace weft
