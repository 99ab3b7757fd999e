// SPDX-License-Identifier: Apache-2.0
// A group seen as servers and lanes. Lane l joins the l-th rank (the head) of every server; there are as many lanes as the
// smallest server has ranks. Rank j of a server belongs to lane j % lanes; where j >= lanes it works through that head.
// Equal servers: every rank is a head and a lane is a rail. A server of one rank: one lane, that of leaders.
#pragma once

#include <cstdint>
#include <vector>

#include "models/collectives/parts.hpp"

namespace weft::collectives {

struct Rails {
  explicit Rails(const GroupShape& shape);

  std::uint32_t lanes = 0;
  std::vector<Ranks> servers;
  std::vector<std::uint32_t> server_of, index_of;  // by rank

  std::uint32_t count() const { return static_cast<std::uint32_t>(servers.size()); }
  std::uint32_t head(std::uint32_t server, std::uint32_t lane) const {
    return servers[server][lane];
  }
  std::uint32_t lane_of(std::uint32_t rank) const { return index_of[rank] % lanes; }
  bool is_head(std::uint32_t rank) const { return index_of[rank] < lanes; }
  std::uint32_t size_of(std::uint32_t server) const {
    return static_cast<std::uint32_t>(servers[server].size());
  }
  // Ranks of the server that belong to the lane.
  std::uint32_t lane_size(std::uint32_t server, std::uint32_t lane) const {
    return (size_of(server) - lane + lanes - 1) / lanes;
  }
  bool any_server_above(std::uint32_t ranks) const;

  // Makes `rank` a head by changing places inside its server.
  void promote(std::uint32_t rank);
};

// An edge that carries `units` units of equal size.
struct CountedEdge {
  std::uint32_t src = 0, dst = 0;
  std::uint64_t units = 0;
};
// A channel of such edges, where `all` units make `size` bytes. Weights are ratios of counts: alike edges stay exactly alike,
// whatever the sizes of units round to.
Channel counted(Channel::Form form, const std::vector<CountedEdge>& edges, Bytes size,
                std::uint64_t all);

// Joins consecutive units of one transfer into one step.
class Runs {
 public:
  Runs(const StepSink& sink, Step transfer) : sink_(sink), step_(transfer) { step_.unit_count = 0; }
  ~Runs() { flush(); }
  Runs(const Runs&) = delete;
  Runs& operator=(const Runs&) = delete;
  void add(std::uint64_t unit) {
    if (step_.unit_count > 0 && step_.unit + step_.unit_count == unit) {
      ++step_.unit_count;
      return;
    }
    flush();
    step_.unit = unit;
    step_.unit_count = 1;
  }

 private:
  void flush() {
    if (step_.unit_count > 0) sink_(step_);
    step_.unit_count = 0;
  }
  const StepSink& sink_;
  Step step_;
};

}  // namespace weft::collectives
