// SPDX-License-Identifier: Apache-2.0
// What collectives in switches have in common, whether the switch stands in a server (in_switch) or in the network (in_network):
// what a kind makes of a vector, and a schedule of one channel.
#pragma once

#include <cstdint>
#include <utility>

#include "models/collectives/algorithms.hpp"

namespace weft::collectives {

struct SwitchWork {
  CollectiveKind kind;
  std::uint32_t n, root;

  // The vector has no parts of ranks.
  bool whole() const { return kind == CollectiveKind::broadcast || kind == CollectiveKind::reduce; }
  // The switch adds what all ranks send.
  bool sums() const {
    return kind != CollectiveKind::all_gather && kind != CollectiveKind::broadcast;
  }
  // All ranks get all of it.
  bool to_all() const {
    return kind != CollectiveKind::reduce_scatter && kind != CollectiveKind::reduce;
  }
};

inline bool switches_do(CollectiveKind kind) {
  using enum CollectiveKind;
  return kind == all_reduce || kind == reduce_scatter || kind == all_gather || kind == broadcast ||
         kind == reduce;
}

inline void set_only_channel(Schedule& schedule, Channel channel) {
  schedule.rounds = channel.steps;
  Phase phase;
  phase.channels.push_back(std::move(channel));
  schedule.phases.push_back(std::move(phase));
}

}  // namespace weft::collectives
