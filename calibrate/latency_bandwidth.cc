// SPDX-License-Identifier: Apache-2.0
#include "calibrate/latency_bandwidth.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <map>

#include <fmt/format.h>

namespace weft {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr double kGoodError = 0.05;
constexpr std::size_t kMostPieces = 6;
constexpr std::size_t kMostSizes = 400;  // the pieces are found in time proportional to its square

struct SizeTimes {
  std::int64_t bytes = 0;
  std::vector<double> us;
};

std::vector<SizeTimes> points_of(const MeasuredRun& run) {
  std::map<std::int64_t, std::vector<double>> by_size;
  for (const CollectiveSample& s : run.samples) {
    if (s.time && s.time->ps > 0) by_size[s.bytes.count].push_back(s.time->us());
  }
  std::vector<SizeTimes> out;
  for (auto& [bytes, us] : by_size) out.push_back({bytes, std::move(us)});
  return out;
}

struct Line {
  double latency_us = 0, us_per_byte = 0;
  double square_error = kInfinity;
};

// Sums over points of x = 1/time and y = bytes/time: the relative error of a + b bytes is a x + b y - 1.
class Sums {
 public:
  void add(const SizeTimes& point) {
    for (const double t : point.us) {
      const double x = 1 / t, y = static_cast<double>(point.bytes) / t;
      xx_ += x * x;
      xy_ += x * y;
      yy_ += y * y;
      x_ += x;
      y_ += y;
      n_ += 1;
    }
    ++sizes_;
  }
  Line best() const {
    Line line;
    const double determinant = xx_ * yy_ - xy_ * xy_;
    if (sizes_ > 1 && determinant > 1e-12 * xx_ * yy_) {
      line.latency_us = (x_ * yy_ - y_ * xy_) / determinant;
      line.us_per_byte = (y_ * xx_ - x_ * xy_) / determinant;
    } else {
      line.latency_us = x_ / xx_;
    }
    if (line.us_per_byte < 0) {
      line.us_per_byte = 0;
      line.latency_us = x_ / xx_;
    } else if (line.latency_us < 0) {
      line.latency_us = 0;
      line.us_per_byte = y_ / yy_;
    }
    const double a = line.latency_us, b = line.us_per_byte;
    line.square_error =
        std::max(0.0, a * a * xx_ + 2 * a * b * xy_ + b * b * yy_ - 2 * a * x_ - 2 * b * y_ + n_);
    return line;
  }

 private:
  double xx_ = 0, xy_ = 0, yy_ = 0, x_ = 0, y_ = 0, n_ = 0;
  std::size_t sizes_ = 0;
};

double worst_error(const std::vector<SizeTimes>& points, const LatencyBandwidth& fit) {
  double worst = 0;
  for (const SizeTimes& point : points) {
    for (const double us : point.us)
      worst = std::max(worst, std::abs(fit.time_us({point.bytes}) / us - 1));
  }
  return worst;
}

class Pieces {
 public:
  Pieces(const std::vector<SizeTimes>& points, const std::vector<bool>& starts_anew)
      : points_(points), lines_(points.size()) {
    for (std::size_t first = 0; first < points.size(); ++first) {
      Sums sums;
      for (std::size_t last = first; last < points.size(); ++last) {
        if (last > first && starts_anew[last]) break;
        sums.add(points[last]);
        lines_[first].push_back(sums.best());
      }
    }
    const auto n = points.size();
    cost_.push_back(std::vector<double>(n + 1, kInfinity));
    cost_[0][0] = 0;
    from_.emplace_back(n + 1, 0);
  }

  // The best cut into one piece more than before; false when there is none.
  bool add_piece() {
    const std::size_t n = points_.size();
    std::vector<double> cost(n + 1, kInfinity);
    std::vector<std::size_t> from(n + 1, 0);
    for (std::size_t end = 1; end <= n; ++end) {
      for (std::size_t first = 0; first < end; ++first) {
        if (end - first > lines_[first].size()) continue;
        const double here = cost_.back()[first] + lines_[first][end - first - 1].square_error;
        if (here < cost[end]) {
          cost[end] = here;
          from[end] = first;
        }
      }
    }
    cost_.push_back(std::move(cost));
    from_.push_back(std::move(from));
    return cost_.back()[n] < kInfinity;
  }

  LatencyBandwidth fit() const {
    LatencyBandwidth out;
    std::size_t end = points_.size();
    for (std::size_t k = cost_.size() - 1; k > 0; --k) {
      const std::size_t first = from_[k][end];
      const Line& line = lines_[first][end - first - 1];
      out.pieces.push_back(
          {{points_[first].bytes}, {points_[end - 1].bytes}, line.latency_us, line.us_per_byte});
      end = first;
    }
    std::ranges::reverse(out.pieces);
    return out;
  }

 private:
  const std::vector<SizeTimes>& points_;
  std::vector<std::vector<Line>> lines_;  // [first][last - first]
  std::vector<std::vector<double>> cost_;
  std::vector<std::vector<std::size_t>> from_;
};

double best_rate(const SizeTimes& point) {
  return static_cast<double>(point.bytes) / *std::ranges::min_element(point.us);
}

// The times of one half of the table, in the order of sizes; the first of equal sizes.
std::map<std::int64_t, double> half_times(const MeasuredRun& run, Buffers buffers) {
  std::map<std::int64_t, double> out;
  for (const CollectiveSample& s : run.samples) {
    if (s.time && s.buffers == buffers) out.emplace(s.bytes.count, s.time->us());
  }
  return out;
}

void find_inversions(const MeasuredRun& run, Buffers buffers, std::vector<Anomaly>& out) {
  constexpr double kSlower = 1.05;
  const auto times = half_times(run, buffers);
  for (auto at = times.begin(); at != times.end() && std::next(at) != times.end(); ++at) {
    const auto next = std::next(at);
    const double factor = at->second / next->second;
    if (factor <= kSlower) continue;
    const bool first = at == times.begin();
    // The first message of a run pays for what the warm-up left undone; large ones hide that.
    const bool warm_up = first && times.size() > 2 && next->second * 1.5 >= std::next(next)->second;
    const Bytes bytes{at->first};
    out.push_back(
        {warm_up ? Anomaly::Kind::warm_up : Anomaly::Kind::slower_than_larger, bytes, factor,
         fmt::format("{} {} takes {:.4g} us, {:.2f} times as long as {}{}", to_text(bytes),
                     buffers == Buffers::in_place ? "in-place" : "out-of-place", at->second, factor,
                     to_text(Bytes{next->first}),
                     warm_up ? ": the first row, probably warm-up" : "")});
  }
}

}  // namespace

std::vector<Anomaly> anomalies(const MeasuredRun& run) {
  constexpr double kCliff = 0.60;
  std::vector<Anomaly> out;
  find_inversions(run, Buffers::out_of_place, out);
  find_inversions(run, Buffers::in_place, out);
  const std::vector<SizeTimes> points = points_of(run);
  for (std::size_t i = 1; i < points.size(); ++i) {
    const double before = best_rate(points[i - 1]), here = best_rate(points[i]);
    if (here > kCliff * before) continue;
    out.push_back(
        {Anomaly::Kind::cliff,
         {points[i].bytes},
         before / here,
         fmt::format("bandwidth falls by a factor of {:.1f} from {} to {}", before / here,
                     to_text(Bytes{points[i - 1].bytes}), to_text(Bytes{points[i].bytes}))});
  }
  std::ranges::stable_sort(out, {}, &Anomaly::bytes);
  return out;
}

double LatencyBandwidth::time_us(Bytes bytes) const {
  const LatencyBandwidthPiece* piece = &pieces.front();
  for (const LatencyBandwidthPiece& p : pieces) {
    if (p.from <= bytes) piece = &p;
  }
  return piece->latency_us + piece->us_per_byte * bytes.value();
}

std::optional<LatencyBandwidth> fit_latency_bandwidth(const MeasuredRun& run) {
  const std::vector<SizeTimes> points = points_of(run);
  if (points.size() < 2 || points.size() > kMostSizes) return std::nullopt;
  std::vector<bool> starts_anew(points.size(), false);
  std::vector<Anomaly> cliffs;
  for (Anomaly& anomaly : anomalies(run)) {
    if (anomaly.kind != Anomaly::Kind::cliff) continue;
    const auto at = std::ranges::find(points, anomaly.bytes.count, &SizeTimes::bytes);
    starts_anew[static_cast<std::size_t>(at - points.begin())] = true;
    cliffs.push_back(std::move(anomaly));
  }
  Pieces pieces(points, starts_anew);
  LatencyBandwidth best;
  const std::size_t most = std::min(kMostPieces + cliffs.size(), points.size());
  for (std::size_t k = 1; k <= most; ++k) {
    if (!pieces.add_piece()) continue;
    best = pieces.fit();
    best.worst_error = worst_error(points, best);
    if (best.worst_error <= kGoodError) break;
  }
  best.cliffs = std::move(cliffs);
  best.small_message_us = best.time_us({points.front().bytes});
  if (const double slope = best.pieces.back().us_per_byte; slope > 0)
    best.algbw_gbs = 1 / (slope * 1e3);
  return best;
}

}  // namespace weft
