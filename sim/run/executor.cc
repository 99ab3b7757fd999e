// SPDX-License-Identifier: Apache-2.0
#include "sim/run/executor.hpp"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "sim/core/check.hpp"

namespace weft {
namespace {

// Steps between two reports of progress. A step in which nothing ends is one look into a long stretch of packets.
constexpr std::uint64_t kProgressEvery = 1 << 8;
Time scaled(Time time, double factor) {
  return factor == 1 ? time : Time{units_detail::rounded(static_cast<double>(time.ps) * factor)};
}
constexpr std::uint32_t kMostEndless = 2'000'000;  // iterations of a job that repeats until the end

}  // namespace

void Executor::run(const std::vector<ExecutorJob>& jobs, std::vector<ScheduledChange> changes,
                   std::vector<Rerouting> reroutes) {
  jobs_ = jobs;
  plan_ = &workload_;
  first_way_[plan_] = way_base_ = 0;
  auto ways = static_cast<std::uint32_t>(workload_.ways.size());
  for (const Rerouting& rerouting : reroutes) {
    if (first_way_.try_emplace(rerouting.plan, ways).second)
      ways += static_cast<std::uint32_t>(rerouting.plan->ways.size());
  }
  if (!reroutes.empty()) flows_ = IdVector<OpId, FlowId>(workload_.operations.size());
  changes_ = std::move(changes);
  const std::size_t count = workload_.operations.size();
  job_of_.assign(count, 0);
  waiting_.assign(count, 0);
  operations_ = IdVector<OpId, OperationTimes>(count);
  paces_.assign(workload_.paces.size(), {});
  times_.assign(jobs_.size(), {});
  left_.assign(jobs_.size(), 0);
  done_.assign(jobs_.size(), 0);
  iteration_start_.assign(jobs_.size(), {});
  for (std::uint32_t j = 0; j < jobs_.size(); ++j) {
    std::fill(job_of_.begin() + jobs_[j].first_op, job_of_.begin() + jobs_[j].end_op, j);
    if (!jobs_[j].until_end) ++unfinished_;
    queue_.at(jobs_[j].start, {.target = j, .kind = kStartJob});
  }
  std::ranges::stable_sort(changes_, {}, &ScheduledChange::when);
  WEFT_CHECK(unfinished_ > 0, jobs_.size());
  const bool endless = unfinished_ < jobs_.size();

  std::vector<FlowDone> arrived;
  std::size_t changed = 0, rerouted = 0;
  std::uint64_t steps = 0;
  Time now{0};
  while (!only_endless_left()) {
    const Time change = changed < changes_.size() ? changes_[changed].when : Time::never();
    const Time turn = rerouted < reroutes.size() ? reroutes[rerouted].when : Time::never();
    const Time own = std::min({queue_.next_time(), change, turn});
    const Time next = std::min(own, network_.run_until(std::min(own, next_look)));
    if (next == Time::never()) {
      // Those on their way; when there are none, those that were never free to start.
      std::string open, closed;
      std::size_t stuck = 0, waiting = 0;
      bool lasts = false;  // some work of a fixed time
      const auto name = [&](std::size_t shown, std::uint32_t i) {
        return shown > 5 ? std::string{}
                         : fmt::format(" {}#{}",
                                       workload_.labels[workload_.operations[OpId{i}].label], i);
      };
      for (std::uint32_t i = 0; i < count; ++i) {
        const OperationTimes& times = operations_[OpId{i}];
        if (times.finished.ps >= 0) continue;
        if (times.started.ps >= 0) {
          open += name(++stuck, i);
          lasts = lasts || workload_.operations[OpId{i}].kind == Operation::Kind::delay;
        } else {
          closed += name(++waiting, i);
        }
      }
      if (stuck == 0) {
        throw LimitReached(fmt::format(
            "nothing can happen any more at {}: {} operations wait for each other ({} ...)",
            to_text(now), waiting, closed));
      }
      const std::string why = network_.why_stuck();
      throw LimitReached(
          fmt::format("nothing can happen any more at {}: {} operations are stuck ({} ...); {}",
                      to_text(now), stuck, open,
                      !why.empty() ? why
                      : lasts      ? "they last beyond the clock, which runs for 106 days"
                                   : "a link they need is down, or they last beyond the clock"));
    }
    if (next > next_look) {
      network_.advance(next_look, arrived);
      WEFT_CHECK(arrived.empty(), next_look, next);
      next_look = look(next_look);
      continue;
    }
    now = next;
    network_.advance(now, arrived);
    for (const FlowDone& done : arrived) finished_.push_back(OpId{done.tag});
    const bool quiet = arrived.empty() && queue_.next_time() != now;
    arrived.clear();
    // The machine changes before anything starts on it at the same instant.
    for (; changed < changes_.size() && changes_[changed].when == now; ++changed, ++events_) {
      network_.set_capacity(changes_[changed].resource, changes_[changed].capacity, now);
    }
    for (; rerouted < reroutes.size() && reroutes[rerouted].when == now; ++rerouted, ++events_)
      reroute(reroutes[rerouted], now);
    settled_ = !endless && changed == changes_.size() && rerouted == reroutes.size();
    settle(now);
    while (queue_.next_time() == now) {
      const Event event = queue_.pop();
      ++events_;
      switch (event.kind) {
        case kStartJob:
          start_iteration(event.target, now);
          break;
        case kReadyOp:
          begin(OpId{event.target}, now);
          break;
        case kFinishOp:
          finish_delay(OpId{event.target}, event.arg);
          break;
        default:
          break;
      }
      settle(now);
    }
    if (!progress) continue;
    ++events_;
    if (++steps % kProgressEvery == 0 || quiet) progress(now, events_);
  }
  fingerprint_.add(makespan_);
}

void Executor::start_iteration(std::uint32_t j, Time now) {
  const ExecutorJob& job = jobs_[j];
  if (done_[j] == 0) times_[j].started = now;
  iteration_start_[j] = now;
  left_[j] = job.end_op - job.first_op;
  if (left_[j] == 0) return finish_job(j, now);
  for (std::uint32_t i = job.first_op; i < job.end_op; ++i) {
    waiting_[i] = workload_.operations[OpId{i}].waits_for;
    operations_[OpId{i}] = {};
  }
  for (std::uint32_t i = job.first_op; i < job.end_op; ++i) {
    if (workload_.operations[OpId{i}].waits_for == 0) ready(OpId{i}, now);
  }
}

void Executor::ready(OpId op, Time now) {
  const Time earliest = iteration_start_[job_of_[op.v]] + workload_.operations[op].not_before;
  if (earliest > now) {
    queue_.at(earliest, {.target = op.v, .kind = kReadyOp});
  } else {
    begin(op, now);
  }
}

void Executor::begin(OpId op, Time now) {
  const Operation& operation = workload_.operations[op];
  operations_[op].started = now;
  switch (operation.kind) {
    case Operation::Kind::barrier:
      finished_.push_back(op);
      break;
    case Operation::Kind::opens:
    case Operation::Kind::closes:
      spell(operation.way, operation.kind == Operation::Kind::opens, now);
      finished_.push_back(op);
      break;
    case Operation::Kind::delay:
      begin_delay(op, now);
      break;
    case Operation::Kind::flow: {
      const FlowRequest request = request_of(op);
      if (operation.arrives_next) {
        operations_[OpId{op.v + 1}].started = now;
        operations_[OpId{op.v + 1}].cause = op;
      }
      const FlowId flow = network_.start(request, now);
      if (flows_.size() > 0) flows_[op] = flow;
      break;
    }
  }
}

void Executor::begin_delay(OpId op, Time now) {
  const Operation& operation = workload_.operations[op];
  if (operation.way == 0) {
    queue_.at(now + operation.time, {.target = op.v, .kind = kFinishOp});
    return;
  }
  Pace& pace = paces_[operation.way];
  const double factor = pace.open > 0 ? workload_.paces[operation.way] : 1;
  pace.running.push_back({op, operation.time, now, ++stamp_});
  queue_.at(now + scaled(operation.time, factor),
            {.target = op.v, .kind = kFinishOp, .arg = stamp_});
}

void Executor::finish_delay(OpId op, std::uint64_t stamp) {
  if (stamp != 0) {
    auto& running = paces_[workload_.operations[op].way].running;
    const auto found = std::ranges::find(running, stamp, &Paced::stamp);
    if (found == running.end()) return;
    running.erase(found);
  }
  finished_.push_back(op);
}

void Executor::spell(std::uint32_t index, bool opens, Time now) {
  Pace& pace = paces_[index];
  const bool slowed = pace.open > 0;
  WEFT_CHECK(opens || slowed, index);
  pace.open += opens ? 1 : -1;
  if (slowed == (pace.open > 0)) return;
  const double factor = workload_.paces[index];
  for (Paced& delay : pace.running) {
    delay.left -= scaled(now - delay.since, slowed ? 1 / factor : 1);
    delay.left = std::max(delay.left, Time{0});
    delay.since = now;
    delay.stamp = ++stamp_;
    queue_.at(now + scaled(delay.left, slowed ? 1 : factor),
              {.target = delay.op.v, .kind = kFinishOp, .arg = stamp_});
  }
}

FlowRequest Executor::request_of(OpId op) const {
  const Operation& operation = plan_->operations[op];
  const Way& way = plan_->ways[operation.way];
  FlowRequest request;
  request.shares = plan_->shares_of(operation.way);
  request.size = operation.size;
  request.latency = way.latency + operation.time;
  request.cap = way.cap;
  request.tag = op.v;
  if (operation.arrives_next) {
    request.left_tag = op.v;
    request.tag = op.v + 1;
  }
  request.way = way_base_ + operation.way;
  request.wire = way.wire;
  if (way.tree != Way::kNoTree) request.tree = &plan_->trees[way.tree];
  request.traffic_class = jobs_[job_of_[op.v]].traffic_class;
  return request;
}

void Executor::reroute(const Rerouting& rerouting, Time now) {
  const Workload& before = *std::exchange(plan_, rerouting.plan);
  way_base_ = first_way_.at(plan_);
  for (std::uint32_t i = 0; i < workload_.operations.size(); ++i) {
    const Operation& operation = workload_.operations[OpId{i}];
    // A flow that tells when it has left is on its way until its arrival, the operation behind it.
    const OperationTimes& times = operations_[OpId{operation.arrives_next ? i + 1 : i}];
    if (operation.kind != Operation::Kind::flow || times.started.ps < 0 || times.finished.ps >= 0)
      continue;
    const auto same = [](const Share& a, const Share& b) {
      return a.resource == b.resource && a.weight == b.weight;
    };
    if (std::ranges::equal(before.shares_of(before.operations[OpId{i}].way),
                           plan_->shares_of(plan_->operations[OpId{i}].way), same))
      continue;
    network_.reroute(flows_[OpId{i}], request_of(OpId{i}), now);
  }
}

void Executor::settle(Time now) {
  for (std::size_t i = 0; i < finished_.size(); ++i) {
    const OpId done = finished_[i];
    operations_[done].finished = now;
    fingerprint_.add(done.v).add(now);
    if (skip)
      iteration_print_ =
          mix64(iteration_print_ + mix64(done.v) +
                static_cast<std::uint64_t>((now - iteration_start_[job_of_[done.v]]).ps));
    ++events_;
    for (std::uint32_t e = workload_.operations[done].first_edge; e != Operation::kNoEdge;
         e = workload_.edges[e].next) {
      const OpId next{workload_.edges[e].to};
      if (--waiting_[next.v] > 0) continue;
      operations_[next].cause = done;
      ready(next, now);
    }
    const std::uint32_t j = job_of_[done.v];
    if (--left_[j] == 0) finish_job(j, now);
  }
  finished_.clear();
}

// Returns when the last iteration of those that are skipped has ended.
Time Executor::skip_iterations(std::uint32_t j, Time now) {
  const Time took = times_[j].iterations.back();
  const Skip rest =
      skip(j, std::exchange(iteration_print_, 0), took, jobs_[j].iterations - done_[j]);
  if (rest.iterations == 0) return now;
  times_[j].iterations.insert(times_[j].iterations.end(), rest.iterations, rest.each);
  done_[j] += rest.iterations;
  return times_[j].finished = now + static_cast<std::int64_t>(rest.iterations) * rest.each;
}

void Executor::finish_job(std::uint32_t j, Time now) {
  times_[j].iterations.push_back(now - iteration_start_[j]);
  times_[j].finished = now;
  ++done_[j];
  const ExecutorJob& job = jobs_[j];
  simulated_ = std::max(simulated_, now);
  if (skip && settled_ && unfinished_ == 1 && !job.until_end) now = skip_iterations(j, now);
  if (job.until_end && done_[j] >= kMostEndless) {
    throw LimitReached(fmt::format(
        "a job that repeats until the end has run {} times and the end is not in sight at {}",
        kMostEndless, to_text(now)));
  }
  // An endless job whose iterations take no time would hold the clock: one of them says all.
  const bool again =
      job.until_end ? !only_endless_left() && now > iteration_start_[j] : done_[j] < job.iterations;
  if (again) {
    queue_.at(now, {.target = j, .kind = kStartJob});
    return;
  }
  if (job.until_end) return;
  --unfinished_;
  makespan_ = std::max(makespan_, now);
}

}  // namespace weft
