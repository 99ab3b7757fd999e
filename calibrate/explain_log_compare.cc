// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <set>

#include <fmt/format.h>

#include "calibrate/explain_log_visible.hpp"
#include "calibrate/log_facts.hpp"

namespace weft {
namespace {

constexpr double kFarApart = 2;     // of two logs
constexpr double kAlikeLogs = 1.5;  // below it weft itself could not say which is right

// Speed at a size between two measured ones, on logarithmic axes; nullopt outside.
std::optional<double> rate_at(const std::vector<LogPoint>& points, Bytes bytes) {
  for (std::size_t i = 0; i < points.size(); ++i) {
    const double here = points[i].bytes.value() / points[i].us;
    if (points[i].bytes == bytes) return here;
    if (i + 1 >= points.size() || bytes < points[i].bytes || points[i + 1].bytes < bytes) continue;
    const double next = points[i + 1].bytes.value() / points[i + 1].us;
    const double at = std::log(bytes.value() / points[i].bytes.value()) /
                      std::log(points[i + 1].bytes.value() / points[i].bytes.value());
    return std::exp(std::log(here) * (1 - at) + std::log(next) * at);
  }
  return std::nullopt;
}

std::set<std::string> products(const Measurement& log) {
  std::set<std::string> out;
  for (const MeasuredDevice& device : log.devices) {
    if (!device.product.empty()) out.insert(device.product);
  }
  return out;
}

}  // namespace

std::optional<LogPair> compare_logs(const Measurement& first, const MeasuredRun& first_run,
                                    const Measurement& second, const MeasuredRun& second_run) {
  const std::vector<LogPoint> ours = log_points(first_run), theirs = log_points(second_run);
  std::vector<std::pair<Bytes, double>> ratios;
  const auto add = [&](Bytes bytes) {
    const auto a = rate_at(ours, bytes), b = rate_at(theirs, bytes);
    if (a && b) ratios.emplace_back(bytes, *a / *b);
  };
  for (const LogPoint& point : ours) add(point.bytes);
  for (const LogPoint& point : theirs) add(point.bytes);
  if (ratios.empty()) return std::nullopt;
  std::ranges::sort(ratios);
  LogPair out;
  const bool any_large = ratios.back().first >= 16_MiB;
  std::vector<double> counted;
  for (const auto& [bytes, ratio] : ratios) {
    if (any_large && bytes < 16_MiB) continue;
    if (counted.empty()) out.from = bytes;
    out.to = bytes;
    counted.push_back(ratio);
  }
  out.ratio = median(counted);
  const double factor = std::max(out.ratio, 1 / out.ratio);
  if (factor < kAlikeLogs) {
    out.notes.push_back("the two logs agree within what weft's own predictions are off by");
    return out;
  }
  const Measurement& slow = out.ratio < 1 ? first : second;
  const Measurement& fast = out.ratio < 1 ? second : first;
  const bool across = first_run.nodes > 1 && second_run.nodes > 1;
  const bool alike = products(first) == products(second) && !products(first).empty();
  if (first_run.ranks != second_run.ranks) {
    out.notes.push_back(fmt::format("{} ranks against {}: not the same question", first_run.ranks,
                                    second_run.ranks));
  } else if (across && alike && factor >= kFarApart) {
    std::string evidence =
        fmt::format("the same {} on {} ranks, {:.1f} times slower: one slow NIC does not do that",
                    *products(first).begin(), first_run.ranks, factor);
    if (flat_buses(slow.devices) && !flat_buses(fast.devices))
      evidence += "; the slow one shows its GPUs on consecutive bus numbers, the other does not";
    out.causes.push_back(topology_cause(std::move(evidence)));
  }
  if (across && factor >= kFarApart) {
    out.notes.push_back(
        "if the topology is the same in both, compare NET/IB against NET/Socket and GDRDMA in "
        "NCCL_DEBUG=INFO of both runs");
  }
  return out;
}

}  // namespace weft
