// SPDX-License-Identifier: Apache-2.0
#include "calibrate/log_facts.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <map>

#include <fmt/format.h>

namespace weft {
namespace {

constexpr double kSlack = 0.01;  // of a factor: what is no rounding is an error

bool is_gathering(std::string_view name) {
  constexpr std::array<std::string_view, 5> kNames{"all_gather", "reduce_scatter", "all_to_all",
                                                   "gather", "scatter"};
  return std::ranges::find(kNames, name) != kNames.end();
}
bool is_plain(std::string_view name) {
  return name == "broadcast" || name == "reduce" || name == "send_recv";
}

// Half a unit of the last printed digit, GB/s: the coarsest step that most samples are multiples of. Not all, as one of them may
// be damaged.
double half_unit_gbs(const MeasuredRun& run) {
  constexpr std::array<std::int64_t, 2> kSteps{80'000'000, 8'000'000};  // 0.01, 0.001 GB/s
  for (const std::int64_t step : kSteps) {
    const auto multiples = std::ranges::count_if(run.samples, [step](const CollectiveSample& s) {
      return s.algbw.bps % step == 0 && s.busbw.bps % step == 0;
    });
    if (2 * static_cast<std::size_t>(multiples) > run.samples.size())
      return static_cast<double>(step) / 16e9;
  }
  return 0.5e-6;
}

struct Interval {
  double low, high;
};
// What the sample says about busbw / algbw; nullopt when its digits are too few to say anything.
std::optional<Interval> factor_of(const CollectiveSample& sample, double half) {
  const double alg = sample.algbw.gbytes_per_s(), bus = sample.busbw.gbytes_per_s();
  if (alg <= 10 * half || bus <= 10 * half) return std::nullopt;
  return Interval{(bus - half) / (alg + half), (bus + half) / (alg - half)};
}

// The range that most intervals share.
RankGuess most_shared(const std::vector<Interval>& intervals) {
  std::vector<std::pair<double, int>> ends;  // starts before ends at one place
  for (const Interval& i : intervals) {
    ends.emplace_back(i.low, -1);
    ends.emplace_back(i.high, 1);
  }
  std::ranges::sort(ends);
  RankGuess best;
  best.total = intervals.size();
  std::size_t open = 0;
  for (std::size_t i = 0; i < ends.size(); ++i) {
    if (ends[i].second > 0) {
      --open;
      continue;
    }
    if (++open > best.agree && i + 1 < ends.size()) {
      best.agree = open;
      best.factor_low = ends[i].first;
      best.factor_high = ends[i + 1].first;
    }
  }
  return best;
}

// n of 2 (n-1)/n or (n-1)/n = factor; a huge value when no finite n gives it.
double ranks_of(double factor, bool doubled) {
  const double left = doubled ? 1 - factor / 2 : 1 - factor;
  return left > 1e-6 ? 1 / left : 1e6;
}

// By size, ascending: the samples' times in picoseconds.
std::map<std::int64_t, std::vector<double>> times_by_size(const MeasuredRun& run) {
  std::map<std::int64_t, std::vector<double>> out;
  for (const CollectiveSample& s : run.samples) {
    if (s.time) out[s.bytes.count].push_back(static_cast<double>(s.time->ps));
  }
  return out;
}

// Median over the pairs of how far two matrices differ, as a share; nullopt when they share no bandwidth.
std::optional<double> typical_difference(const MeasuredMatrix& on, const MeasuredMatrix& off) {
  std::map<std::pair<std::string, std::string>, double> rates;
  for (const MeasuredPair& pair : off.pairs) {
    if (pair.bandwidth) rates[{pair.from, pair.to}] = pair.bandwidth->gbytes_per_s();
  }
  std::vector<double> differences;
  for (const MeasuredPair& pair : on.pairs) {
    const auto other = rates.find({pair.from, pair.to});
    if (!pair.bandwidth || other == rates.end()) continue;
    differences.push_back(std::abs(pair.bandwidth->gbytes_per_s() / other->second - 1));
  }
  if (differences.empty()) return std::nullopt;
  return median(std::move(differences));
}

Time time_of(double ps) { return {static_cast<std::int64_t>(ps + 0.5)}; }

}  // namespace

double median(std::vector<double> values) {
  if (values.empty()) return 0;
  std::ranges::sort(values);
  const std::size_t half = values.size() / 2;
  return values.size() % 2 == 1 ? values[half] : (values[half - 1] + values[half]) / 2;
}

double bus_factor(std::string_view collective, int ranks) {
  if (ranks < 1) return 0;
  const double n = ranks;
  if (collective == "all_reduce") return 2 * (n - 1) / n;
  if (is_gathering(collective)) return (n - 1) / n;
  return is_plain(collective) ? 1 : 0;
}

RankGuess infer_ranks(const MeasuredRun& run) {
  const double half = half_unit_gbs(run);
  std::vector<Interval> intervals;
  for (const CollectiveSample& sample : run.samples) {
    if (const auto interval = factor_of(sample, half)) intervals.push_back(*interval);
  }
  RankGuess guess = most_shared(intervals);
  if (guess.total == 0 || 2 * guess.agree <= guess.total || is_plain(run.collective)) return guess;
  const double middle = (guess.factor_low + guess.factor_high) / 2;
  const bool doubled = run.collective.empty() ? middle > 1 + kSlack : !is_gathering(run.collective);
  // The band is as wide as rounding allows, and never narrower than the arithmetic.
  const double low = ranks_of(guess.factor_low - 1e-9, doubled);
  const double high = ranks_of(guess.factor_high + 1e-9, doubled);
  constexpr double kMost = 100'000;
  if (high < 1.5 || low > kMost) return guess;
  guess.fewest = std::max(2, static_cast<int>(std::ceil(low - 1e-6)));
  guess.most = static_cast<int>(std::floor(std::min(high, kMost) + 1e-6));
  if (guess.fewest > guess.most) {  // no whole number gives this factor
    guess.fewest = guess.most = 0;
    return guess;
  }
  for (int n = guess.fewest; n <= guess.most; ++n) {
    const auto twos = [](int v) { return std::countr_zero(static_cast<unsigned>(v)); };
    const bool better = !guess.ranks || std::min(twos(n), 3) > std::min(twos(*guess.ranks), 3);
    if (better) guess.ranks = n;
  }
  if (guess.most > 2 * guess.fewest) guess.ranks.reset();  // too wide to name one
  return guess;
}

std::vector<std::size_t> factor_outliers(const MeasuredRun& run, double factor) {
  const double half = half_unit_gbs(run);
  std::vector<std::size_t> out;
  for (std::size_t i = 0; i < run.samples.size(); ++i) {
    const double alg = run.samples[i].algbw.gbytes_per_s();
    const double bus = run.samples[i].busbw.gbytes_per_s();
    const double expected = alg * factor;
    const double allowed = half * (1 + factor) + kSlack * expected;
    if (std::abs(bus - expected) > allowed) out.push_back(i);
  }
  return out;
}

double average_busbw_gbs(const MeasuredRun& run) {
  double sum = 0;
  for (const CollectiveSample& sample : run.samples) sum += sample.busbw.gbytes_per_s();
  return run.samples.empty() ? 0 : sum / static_cast<double>(run.samples.size());
}

std::optional<Plateau> fixed_cost(const MeasuredRun& run) {
  constexpr double kFlat = 1.10;    // still the same time
  constexpr double kSpread = 0.15;  // around the median, of seven samples in ten
  std::vector<double> before;
  std::int64_t first = 0, last = 0;
  for (const auto& [bytes, times] : times_by_size(run)) {
    if (!before.empty() && median(times) > kFlat * median(before)) break;
    if (before.empty()) first = bytes;
    before.insert(before.end(), times.begin(), times.end());
    last = bytes;
  }
  if (before.empty() || last / 4 < first) return std::nullopt;
  const double middle = median(before);
  const auto near = std::ranges::count_if(
      before, [&](double t) { return std::abs(t - middle) <= kSpread * middle; });
  if (static_cast<double>(near) < 0.7 * static_cast<double>(before.size())) return std::nullopt;
  return Plateau{time_of(middle), {last}};
}

std::optional<Asymptote> asymptotic_busbw(const MeasuredRun& run) {
  constexpr double kStillGrowing = 1.05;
  const auto flat = fixed_cost(run);
  std::map<std::int64_t, std::vector<double>> rates;
  for (const CollectiveSample& s : run.samples) {
    if (!flat || s.bytes > flat->up_to) rates[s.bytes.count].push_back(s.busbw.gbytes_per_s());
  }
  if (rates.empty()) return std::nullopt;
  const std::int64_t largest = rates.rbegin()->first;
  std::vector<double> top;
  for (const auto& [bytes, values] : rates) {
    if (bytes >= largest / 4) top.insert(top.end(), values.begin(), values.end());
  }
  Asymptote out;
  const double last = median(rates.rbegin()->second);
  out.busbw_gbs = std::max(median(top), last);
  if (rates.size() > 1)
    out.saturated = last <= kStillGrowing * median(std::next(rates.rbegin())->second);
  return out;
}

std::optional<WireReading> wire_reading(const MeasuredRun& run) {
  if (run.collective != "all_reduce" || run.ranks < 2 || run.samples.empty()) return std::nullopt;
  const auto best = std::ranges::max_element(run.samples, {}, &CollectiveSample::busbw);
  return WireReading{best->busbw.gbytes_per_s(),
                     best->algbw.gbytes_per_s() * (1 + 1.0 / run.ranks)};
}

std::optional<LinkEstimate> link_estimate(const MeasuredRun& run, Bandwidth raw) {
  const double wire = raw.gbytes_per_s();
  if (const auto reading = wire_reading(run)) {
    if (reading->ring_gbs <= wire) return LinkEstimate{reading->ring_gbs, "ring"};
    if (reading->in_switch_gbs <= wire) return LinkEstimate{reading->in_switch_gbs, "nvls"};
    return std::nullopt;
  }
  const auto limit = asymptotic_busbw(run);
  if (!limit || limit->busbw_gbs > wire) return std::nullopt;
  return LinkEstimate{limit->busbw_gbs, "ring"};
}

std::optional<double> network_gbs(const MeasuredRun& run, int gpus_per_node) {
  if (run.collective != "all_to_all" || gpus_per_node < 1 || run.ranks <= gpus_per_node ||
      run.samples.empty())
    return std::nullopt;
  const auto best = std::ranges::max_element(run.samples, {}, &CollectiveSample::busbw);
  const double share =
      static_cast<double>(run.ranks - gpus_per_node) / static_cast<double>(run.ranks - 1);
  return best->busbw.gbytes_per_s() * share;
}

RawShare share_of_raw(double measured_gbs, Bandwidth raw) {
  // NVLink, PCIe and InfiniBand sustain 80 to 97 % of their raw rate; a sound machine is not below 70 %.
  constexpr double kSound = 0.70;
  RawShare out;
  if (raw.bps <= 0) return out;
  out.ratio = measured_gbs / raw.gbytes_per_s();
  out.low = out.ratio < kSound;
  out.above = out.ratio > 1;
  return out;
}

double median_gbs(const MeasuredMatrix& matrix) {
  std::vector<double> values;
  for (const MeasuredPair& pair : matrix.pairs) {
    if (pair.bandwidth) values.push_back(pair.bandwidth->gbytes_per_s());
  }
  return median(std::move(values));
}

std::optional<Time> median_latency(const MeasuredMatrix& matrix) {
  std::vector<double> values;
  for (const MeasuredPair& pair : matrix.pairs) {
    if (pair.latency) values.push_back(static_cast<double>(pair.latency->ps));
  }
  if (values.empty()) return std::nullopt;
  return time_of(median(std::move(values)));
}

std::optional<bool> peer_access_works(const Measurement& measurement) {
  constexpr double kSame = 0.02;
  std::optional<bool> works;
  for (const MeasuredMatrix& on : measurement.matrices) {
    if (on.peer_access != true) continue;
    for (const MeasuredMatrix& off : measurement.matrices) {
      if (off.peer_access != false || off.traffic != on.traffic) continue;
      const auto difference = typical_difference(on, off);
      if (difference) works = works.value_or(false) || *difference > kSame;
    }
  }
  return works;
}

}  // namespace weft
