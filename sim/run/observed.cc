// SPDX-License-Identifier: Apache-2.0
#include "sim/run/observed.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <set>

#include <fmt/format.h>

namespace weft {
namespace {

Json names_json(const std::vector<NamedShare>& flows) {
  Json out = Json::array();
  for (const NamedShare& flow : flows) {
    Json f = Json::object();
    f.set("id", flow.name);
    f.set("share", flow.share);
    out.push(std::move(f));
  }
  return out;
}

Json numbers_json(const std::vector<double>& values) {
  Json out = Json::array();
  for (const double value : values) out.push(value);
  return out;
}

std::string names_text(const std::vector<NamedShare>& flows) {
  constexpr std::size_t kMostNamed = 3;
  std::string out;
  const std::size_t shown = std::min(flows.size(), kMostNamed);
  for (std::size_t i = 0; i < shown; ++i) {
    out += i == 0 ? "" : i + 1 == shown && shown == flows.size() ? " and " : ", ";
    out += fmt::format("{} ({:.0f} %)", flows[i].name, 100 * flows[i].share);
  }
  if (flows.size() > shown) out += " and others";
  return out;
}

Json windows_json(const std::string& id, Time every, const std::vector<double>& bytes) {
  Json out = Json::object();
  out.set("id", id);
  out.set("every_s", every.seconds());
  out.set("bytes", numbers_json(bytes));
  return out;
}

}  // namespace

void FlowSeries::merge(FlowSeries other) {
  if (other.bytes.empty()) return;
  if (bytes.empty()) {
    *this = std::move(other);
    return;
  }
  const auto widen = [](FlowSeries& series) {
    const std::size_t half = (series.bytes.size() + 1) / 2;
    for (std::size_t i = 0; i < half; ++i) {
      const double second = 2 * i + 1 < series.bytes.size() ? series.bytes[2 * i + 1] : 0;
      series.bytes[i] = series.bytes[2 * i] + second;
    }
    series.bytes.resize(half);
    series.every = 2 * series.every;
  };
  while (every < other.every) widen(*this);
  while (other.every < every) widen(other);
  bytes.resize(std::max(bytes.size(), other.bytes.size()), 0);
  for (std::size_t i = 0; i < other.bytes.size(); ++i) bytes[i] += other.bytes[i];
}

Distribution distribution_of(std::vector<double> values) {
  if (values.empty()) return {};
  std::ranges::sort(values);
  const auto count = static_cast<double>(values.size());
  const auto at = [&](double share) {
    return values[static_cast<std::size_t>(std::ceil(share * count)) - 1];
  };
  return {std::accumulate(values.begin(), values.end(), 0.0) / count, at(0.5), at(0.9), at(0.99),
          values.back()};
}

Json to_json(const Distribution& distribution) {
  Json out = Json::object();
  out.set("mean", distribution.mean);
  out.set("p50", distribution.p50);
  out.set("p90", distribution.p90);
  out.set("p99", distribution.p99);
  out.set("max", distribution.most);
  return out;
}

std::string VictimReport::text() const {
  return fmt::format(
      "{} was paused {:.0f} % of the time at {} by {}, because of {}, which fill the queue to {}",
      flow, 100 * share, paused, by, flows.empty() ? "flows that are gone" : names_text(flows),
      cause);
}

void add_json(const ObservedReport& observed, Json& report) {
  if (!observed.series.empty()) {
    Json& all = report.set("link_series", Json::array());
    for (const SeriesReport& series : observed.series) {
      Json s = windows_json(series.link, series.windows.every, series.windows.bytes);
      if (!series.windows.queue_most.empty()) {
        s.set("queue_mean_bytes", numbers_json(series.windows.queue_mean));
        s.set("queue_max_bytes", numbers_json(series.windows.queue_most));
        s.set("pfc_paused", numbers_json(series.windows.paused));
      }
      all.push(std::move(s));
    }
  }
  if (!observed.flow_series.empty()) {
    Json& all = report.set("flow_series", Json::array());
    for (const FlowSeriesReport& series : observed.flow_series)
      all.push(windows_json(series.flow, series.windows.every, series.windows.bytes));
  }
  if (observed.pauses.empty()) return;
  Json& pauses = report.set("pauses", Json::array());
  for (const PauseReport& pause : observed.pauses) {
    Json p = Json::object();
    p.set("paused", pause.paused);
    p.set("by", pause.by);
    p.set("because_of", pause.cause);
    p.set("pauses", pause.pauses);
    p.set("pfc_pause_s", pause.time_s);
    p.set("flows", names_json(pause.flows));
    pauses.push(std::move(p));
  }
  Json& victims = report.set("victims", Json::array());
  for (const VictimReport& victim : observed.victims) {
    Json v = Json::object();
    v.set("flow", victim.flow);
    v.set("share", victim.share);
    v.set("paused", victim.paused);
    v.set("by", victim.by);
    v.set("because_of", victim.cause);
    v.set("flows", names_json(victim.flows));
    v.set("text", victim.text());
    victims.push(std::move(v));
  }
}

std::string summary(const ObservedReport& observed) {
  std::string out;
  for (const VictimReport& victim : observed.victims) out += "  " + victim.text() + "\n";
  if (!out.empty()) out = "victims of pauses\n" + out;
  if (observed.victims_cut > 0)
    out += fmt::format("  ... and {} more flows\n", observed.victims_cut);
  return out;
}

PauseTree::PauseTree(const std::vector<PauseEdge>& edges) {
  for (const PauseEdge& edge : edges) {
    Stop& stop = stops_[edge.paused];
    stop.total += edge.time;
    if (edge.time <= stop.longest) continue;
    stop.longest = edge.time;
    stop.cause = edge.cause;
  }
}

std::uint32_t PauseTree::cause_of(std::uint32_t paused) const {
  const auto stop = stops_.find(paused);
  return stop != stops_.end() && stop->second.longest.ps > 0 ? stop->second.cause : paused;
}

std::uint32_t PauseTree::root_of(std::uint32_t paused) const {
  std::set<std::uint32_t> seen = {paused};
  std::uint32_t at = cause_of(paused);
  while (seen.insert(at).second) {
    const auto here = stops_.find(paused), further = stops_.find(at);
    if (further == stops_.end() || 2 * further->second.total < here->second.total) return at;
    paused = at;
    at = cause_of(at);
  }
  return at;
}

}  // namespace weft
