// SPDX-License-Identifier: Apache-2.0
// A large connected part of a MaxMin system in compact form, kept between sweeps.
//
// One record per variable: the resources it crosses, as indices local to the cluster with its lead in front, its total
// fairness, and weights where they are not all 1. Records of one lead lie in a bucket, and the buckets are listed in the order
// in which they froze, so
//   - "everything at level L or above" is the tail of the list;
//   - taking a bucket off the resources, and putting it on again at its new level, is one pass over its records;
//   - the lead itself is dealt with once per bucket, by the bucket's weight;
//   - a lead whose free weight is still that of its bucket freezes without a look at its users.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <vector>

namespace weft {

struct Cluster {
  static constexpr std::uint32_t kNone = std::numeric_limits<std::uint32_t>::max();

  struct Bucket {
    std::vector<std::uint32_t> records;
    double weight = 0;        // sum of total * weight on the lead
    std::uint32_t place = 0;  // in the order; an older entry of the same lead means nothing
  };
  struct Segment {
    double level = 0;
    std::uint32_t lead = kNone;    // local; kNone: one variable at its cap
    std::uint32_t record = kNone;  // that variable's; kNone when it has left
  };
  // Two numbers that change together: [kLeft] capacity not used by frozen variables; [kFree] total * weight of free ones, 0
  // outside a sweep. A vector of the compiler's, because this is the innermost loop.
  typedef double Sum __attribute__((vector_size(16)));
  static constexpr int kLeft = 0, kFree = 1;

  std::uint32_t stride =
      0;  // hops per record; shorter paths are filled up with local resource 0, which is nothing
  bool uniform = true;   // all weights are 1
  bool capped = false;   // some variable has a cap
  bool begun = false;    // false: no level in it is known yet
  std::size_t live = 0;  // records in use
  std::size_t sweeps = 0;
  std::uint32_t solved = 0;              // last round
  std::vector<std::uint32_t> resources;  // global index of a local one
  std::vector<Sum> sums;                 // by local
  std::vector<Bucket> buckets;           // by local
  std::vector<Segment> order;            // ascending, but for caps that came in below
  std::vector<std::uint32_t> waiting;    // records that are new
  std::vector<std::uint32_t> variables;  // by record; kNone when not in use
  std::vector<std::uint32_t>
      slots;  // by record: place in its bucket, in waiting, or in order (at its cap)
  std::vector<std::uint32_t>
      blocks;  // block_size(stride) per record: its total (two places), then its hops
  std::vector<double> weights;  // stride per record, unless uniform
  std::vector<std::uint32_t> free_records;

  double weight(std::size_t record, std::uint32_t hop) const {
    return uniform ? 1.0 : weights[record * stride + hop];
  }
  // What a sweep reads of a record lies together, and not across more cache lines than it must.
  static constexpr std::size_t block_size(std::size_t hops) { return (hops + 2 + 3) / 4 * 4; }
  std::uint32_t* path(std::size_t record) {
    return blocks.data() + record * block_size(stride) + 2;
  }
  double total(std::size_t record) const {
    double out;
    std::memcpy(&out, blocks.data() + record * block_size(stride), sizeof out);
    return out;
  }
  void set_total(std::size_t record, double total) {
    std::memcpy(blocks.data() + record * block_size(stride), &total, sizeof total);
  }
  double lead_weight(std::size_t record) const { return total(record) * weight(record, 0); }
  void clear();
  void put_in_front(std::uint32_t record, std::uint32_t local);
  void insert(std::uint32_t local, std::uint32_t record);  // into a bucket
  void remove(std::uint32_t local, std::uint32_t record);  // from a bucket
};

}  // namespace weft
