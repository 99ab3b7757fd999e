// SPDX-License-Identifier: Apache-2.0
// The expanded form of a collective: every transfer of its schedule is a flow.
#include <algorithm>
#include <map>
#include <tuple>

#include <fmt/format.h>

#include "sim/core/check.hpp"
#include "sim/run/collective_ops.hpp"

namespace weft {
namespace {

constexpr std::uint64_t kMostStates = 200'000'000;  // ranks x units
constexpr std::uint64_t kMostSteps = 30'000'000;

}  // namespace

OpId CollectiveBuilder::append_steps(const Schedule& schedule, std::span<const NodeId> gpus,
                                     const CollectiveOptions& options, OpId after) {
  const std::uint64_t states = std::uint64_t{schedule.ranks + 1} * schedule.units;
  if (states > kMostStates) {
    throw LimitReached(fmt::format(
        "the expanded form of {} over {} ranks needs {} states, more than {}; run it coupled",
        schedule.algorithm, schedule.ranks, states, kMostStates));
  }
  const auto rank_index = [&](std::uint32_t rank) {
    return rank == kSwitch ? schedule.ranks : rank;
  };
  // What a rank does in the running round and did in its last one before.
  struct Turn {
    std::uint32_t round = 0;
    std::vector<OpId> now, before;
  };
  using Turns = std::map<std::pair<std::uint32_t, std::uint32_t>, Turn>;  // (channel, rank)
  const auto turn_of = [](Turns& turns, std::uint32_t rank, const Step& step) -> Turn& {
    Turn& turn = turns[{step.channel, rank}];
    if (turn.round != step.round) {
      turn.before = std::move(turn.now);
      turn.now.clear();
      turn.round = step.round;
    }
    return turn;
  };
  // Without a pipeline a rank exchanges with its partners round by round (MPI_Sendrecv).
  const bool in_rounds = schedule.phases.empty();
  // Who last wrote (rank, unit); a round's writes count from the next round on.
  std::vector<OpId> writer(states);
  struct Write {
    std::uint64_t state;
    OpId op;
    bool reduces;
  };
  std::vector<Write> written;
  std::uint32_t round = 0;
  const auto end_round = [&] {
    std::ranges::stable_sort(written, {}, &Write::state);
    for (std::size_t i = 0; i < written.size();) {
      std::size_t end = i;
      while (end < written.size() && written[end].state == written[i].state) ++end;
      OpId& last = writer[written[i].state];
      const bool keeps_old = last.valid() && written[i].reduces;
      if (end - i == 1 && !keeps_old) {
        last = written[i].op;
      } else {
        const OpId all = workload_.add_barrier();
        if (keeps_old) workload_.depend(last, all);
        for (std::size_t k = i; k < end; ++k) workload_.depend(written[k].op, all);
        last = all;
      }
      i = end;
    }
    written.clear();
  };
  Turns sends, receives;
  struct KnownWay {
    std::uint32_t way = 0;
    Time alpha{0};
    bool made = false;
  };
  std::map<std::pair<std::uint32_t, std::uint64_t>, KnownWay> ways;  // (channel, src and dst)
  const OpId done = workload_.add_barrier();
  dealt_ = !schedule.phases.empty() &&
           schedule.phases.front().channels.front().form == Channel::Form::direct;
  std::uint64_t count = 0;
  schedule.steps([&](const Step& step) {
    if (++count > kMostSteps) {
      throw LimitReached(
          fmt::format("more than {} transfers in the expanded form; run it coupled", kMostSteps));
    }
    if (step.round != round) {
      end_round();
      round = step.round;
    }
    const Bytes size = schedule.size_of_units(step.unit, step.unit_count);
    KnownWay& known = ways[{step.channel, std::uint64_t{step.src} << 32 | step.dst}];
    if (!known.made) {
      const Hop hop = route_edge({step.src, step.dst, 1}, gpus, step.channel, options);
      known = options.packets
                  ? KnownWay{workload_.add_way(route_.shares, hop.alpha, hop.cap, route_.latency),
                             {},
                             true}
                  : KnownWay{workload_.add_way(route_.shares, {0}, hop.cap), hop.alpha, true};
    }
    // The sender is free when the last byte has left; the data is there a latency later.
    OpId op, arrival;
    if (options.packets) {
      std::tie(op, arrival) = workload_.add_sent_flow(known.way, size);
    } else {
      op = workload_.add_flow(known.way, size);
      arrival = workload_.add_delay(known.alpha);
      workload_.depend(op, arrival);
    }
    workload_.operations[op].label = workload_.operations[arrival].label = options.label;
    const std::uint64_t src = std::uint64_t{rank_index(step.src)} * schedule.units + step.unit;
    const std::uint64_t dst = std::uint64_t{rank_index(step.dst)} * schedule.units + step.unit;
    bool waits = false;
    OpId last_dependency;
    for (std::uint32_t u = 0; u < step.unit_count; ++u) {
      const OpId before = writer[src + u];
      if (!before.valid() || before == last_dependency) continue;
      workload_.depend(before, op);
      last_dependency = before;
      waits = true;
    }
    const auto wait_for_the_round_before = [&](Turn& turn) {
      for (const OpId before : turn.before) {
        if (before == last_dependency) continue;
        workload_.depend(before, op);
        waits = true;
      }
    };
    Turn& mine = turn_of(sends, step.src, step);
    wait_for_the_round_before(mine);
    mine.now.push_back(op);
    if (in_rounds) {
      wait_for_the_round_before(turn_of(receives, step.src, step));
      turn_of(receives, step.dst, step).now.push_back(arrival);
    }
    if (!waits) workload_.depend(after, op);
    for (std::uint32_t u = 0; u < step.unit_count; ++u)
      written.push_back({dst + u, arrival, step.reduces});
    workload_.depend(arrival, done);
  });
  if (workload_.operations[done].waits_for == 0) workload_.depend(after, done);
  return done;
}

}  // namespace weft
