// SPDX-License-Identifier: Apache-2.0
#include "sim/run/repeat_memory.hpp"

#include <algorithm>
#include <cmath>
#include <tuple>
#include <type_traits>

namespace weft {
namespace {

// Applies f to each number that grows with the work, of two counts.
template <class F>
void each_count(NetworkCounters& a, const NetworkCounters& b, F&& f) {
  for (const auto member :
       {&NetworkCounters::events, &NetworkCounters::solves, &NetworkCounters::remembered,
        &NetworkCounters::merged_flows, &NetworkCounters::packet_hops,
        &NetworkCounters::control_hops, &NetworkCounters::retransmitted, &NetworkCounters::timeouts,
        &NetworkCounters::dropped, &NetworkCounters::marks, &NetworkCounters::pauses,
        &NetworkCounters::stalls})
    f(a.*member, b.*member);
  f(a.dropped_bytes, b.dropped_bytes);
  f(a.paused.ps, b.paused.ps);
}

NetworkCounters minus(NetworkCounters a, const NetworkCounters& b) {
  each_count(a, b, [](auto& x, const auto& y) { x -= y; });
  return a;
}

// What packets went through. How a model came to it (events, solutions) may differ.
bool same_traffic(const NetworkCounters& a, const NetworkCounters& b) {
  const auto key = [](const NetworkCounters& c) {
    return std::tuple{c.packet_hops,   c.control_hops, c.retransmitted, c.timeouts, c.dropped,
                      c.dropped_bytes, c.marks,        c.pauses,        c.stalls,   c.paused};
  };
  return key(a) == key(b);
}

}  // namespace

std::optional<FastForward> RepeatMemory::foresee(std::uint32_t left) const {
  const std::size_t count = seen_.size();
  const auto same = [&](const Iteration& each) {
    return each.fingerprint == seen_.back().fingerprint && each.took == seen_.back().took &&
           same_traffic(each.counted, seen_.back().counted);
  };
  if (count >= kSame &&
      std::all_of(seen_.end() - static_cast<std::ptrdiff_t>(kSame), seen_.end(), same))
    return FastForward{job_, simulated_, left, seen_.back().took, {}, {}};
  // The most recent that are within the tolerance of their mean.
  std::size_t used = 0;
  double sum = 0, least = 0, most = 0;
  for (; used < count; ++used) {
    const auto took = static_cast<double>(seen_[count - 1 - used].took.ps);
    const double low = used == 0 ? took : std::min(least, took);
    const double high = used == 0 ? took : std::max(most, took);
    const double mean = (sum + took) / static_cast<double>(used + 1);
    if (high - mean > kTolerance * mean || mean - low > kTolerance * mean) break;
    sum += took;
    least = low;
    most = high;
  }
  if (used < kNear) return std::nullopt;
  const double n = static_cast<double>(used), mean = sum / n;
  double covariance = 0;
  for (std::size_t i = 0; i < used; ++i)
    covariance += (static_cast<double>(i) - (n - 1) / 2) *
                  static_cast<double>(seen_[count - used + i].took.ps);
  const double slope = covariance * 12 / (n * (n * n - 1));
  const double deviation = std::max(most - mean, mean - least);
  const double more = left, bound = more * deviation + std::abs(slope) * more * more / 2;
  if (bound > kWorst * more * mean) return std::nullopt;
  const auto whole = [](double ps) { return Time{static_cast<std::int64_t>(std::ceil(ps))}; };
  return FastForward{job_,         simulated_,      left, Time{std::llround(mean)},
                     whole(bound), whole(deviation)};
}

std::vector<RepeatMemory::Counted> RepeatMemory::count() const {
  std::vector<Counted> out;
  for (std::uint32_t r = 0; r < resources_; ++r)
    out.push_back({network_.carried_bytes(r), network_.queue_report(r)});
  return out;
}

Executor::Skip RepeatMemory::ended(std::uint32_t job, std::uint64_t fingerprint, Time took,
                                   std::uint32_t left) {
  const NetworkCounters now = network_.counters();
  if (simulated_ == 0) job_ = job;
  ++simulated_;
  seen_.push_back({fingerprint, took, minus(now, before_)});
  before_ = now;
  if (seen_.size() > kMost) seen_.pop_front();
  const std::optional<FastForward> all = left > 0 ? foresee(left) : std::nullopt;
  if (!all) {
    first_.clear();
    return {};
  }
  if (first_.empty()) {
    first_ = count();
    return {};
  }
  last_ = count();
  result_ = all;
  return {all->skipped, all->each};
}

double RepeatMemory::carried_bytes(std::uint32_t r) const {
  const double run = network_.carried_bytes(r);
  if (!result_ || r >= last_.size()) return run;
  return run + result_->skipped * (last_[r].bytes - first_[r].bytes);
}

NetworkCounters RepeatMemory::counters() const {
  NetworkCounters out = network_.counters();
  if (!result_) return out;
  each_count(out, seen_.back().counted, [this](auto& sum, const auto& once) {
    sum += static_cast<std::remove_reference_t<decltype(sum)>>(result_->skipped) * once;
  });
  return out;
}

std::optional<QueueReport> RepeatMemory::queue_report(std::uint32_t r) const {
  std::optional<QueueReport> out = network_.queue_report(r);
  if (!result_ || !out || r >= last_.size() || !last_[r].queue || !first_[r].queue) return out;
  const QueueReport &before = *first_[r].queue, &after = *last_[r].queue;
  out->paused += std::int64_t{result_->skipped} * (after.paused - before.paused);
  out->marks += result_->skipped * (after.marks - before.marks);
  out->drops += result_->skipped * (after.drops - before.drops);
  return out;
}

}  // namespace weft
