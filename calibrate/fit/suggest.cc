// SPDX-License-Identifier: Apache-2.0
#include "calibrate/fit/suggest.hpp"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "sim/core/check.hpp"

namespace weft {
namespace {

constexpr double kStep = 0.05;   // of a logarithm
constexpr double kNoise = 0.02;  // of a measurement
constexpr double kLeastGain = 0.02;

std::vector<double> times(const DenseMatrix& c, const std::vector<double>& v) {
  std::vector<double> out(c.rows, 0.0);
  for (std::size_t r = 0; r < c.rows; ++r)
    for (std::size_t k = 0; k < c.columns; ++k) out[r] += c(r, k) * v[k];
  return out;
}

double dot(const std::vector<double>& a, const std::vector<double>& b) {
  double out = 0;
  for (std::size_t i = 0; i < a.size(); ++i) out += a[i] * b[i];
  return out;
}

}  // namespace

Calibration prior_calibration(const FitMachine& machine) {
  Calibration out;
  out.parameters = find_parameters(machine.document(), {.copies = true, .kernels = true});
  out.covariance = DenseMatrix(out.parameters.size(), out.parameters.size());
  for (std::size_t k = 0; k < out.parameters.size(); ++k) {
    out.values.push_back(out.parameters[k].prior);
    out.covariance(k, k) = out.parameters[k].prior_sd * out.parameters[k].prior_sd;
  }
  return out;
}

FitData measurable(const FitMachine& machine, std::int64_t servers) {
  const auto fabric = machine.build({}, servers);
  const auto local = static_cast<std::int64_t>(fabric->types().front().gpus.size());
  FitData out;
  const auto add = [&](CollectiveKind kind, std::int64_t nodes) {
    if (local * nodes < 2) return;
    FitTable table;
    table.collective = kind;
    table.nodes = nodes;
    table.ranks = local * nodes;
    table.name = fmt::format("{} of {} GPUs{}", write_config(kind).text, table.ranks,
                             nodes > 1 ? fmt::format(" on {} servers", nodes) : std::string{});
    for (const Bytes size : {1_KiB, 64_KiB, 1_MiB, 16_MiB, 128_MiB, 1_GiB})
      table.rows.push_back({.bytes = size, .us = 1, .spread = 0, .refused = {}});
    out.tables.push_back(std::move(table));
  };
  using enum CollectiveKind;
  for (const CollectiveKind kind : {all_reduce, all_gather, all_to_all}) {
    add(kind, 1);
    if (servers > 1 && fabric->network()) add(kind, 2);
  }
  for (const Bytes size : {4_KiB, 64_MiB}) {
    FitCopy copy{.from = "gpu0", .to = "gpu1"};
    copy.bytes = size;
    copy.quantity = CopyQuantity::time;
    copy.group = "copy of";
    if (local > 1) out.copies.push_back(copy);
    copy.from = "cpu0";
    copy.to = "gpu0";
    if (fabric->find_node("cpu0") || fabric->find_node("server0/cpu0")) out.copies.push_back(copy);
  }
  return out;
}

std::vector<SuggestedMeasurement> suggest(const FitMachine& machine, const Calibration& calibration,
                                          const FitData& could_measure,
                                          const std::function<double(const ValueChanges&)>& predict,
                                          std::size_t most) {
  const std::size_t p = calibration.parameters.size();
  std::vector<ParameterChange> base;
  for (std::size_t k = 0; k < p; ++k)
    base.push_back({&calibration.parameters[k], calibration.values[k]});
  const Predictor predictor(machine, could_measure);
  const std::vector<MeasuredPoint> points = measured_points(could_measure);
  const std::vector<double> at = predictor.predict(base);
  std::vector<std::vector<double>> slopes(points.size(), std::vector<double>(p, 0.0));
  std::vector<double> wanted(p, 0.0);
  const double now = predict({});
  for (std::size_t k = 0; k < p; ++k) {
    const Parameter& parameter = calibration.parameters[k];
    double h = kStep;
    if (calibration.values[k] * std::exp(h) > parameter.upper) h = -kStep;
    std::vector<ParameterChange> changes = base;
    changes[k].value *= std::exp(h);
    const std::vector<double> moved = predictor.predict(changes);
    for (std::size_t i = 0; i < points.size(); ++i) slopes[i][k] = std::log(moved[i] / at[i]) / h;
    ValueChanges set;
    for (const std::string& pointer : parameter.pointers)
      set.emplace_back(pointer, parameter_value(parameter.unit, changes[k].value));
    wanted[k] = std::log(predict(set) / now) / h;
  }
  DenseMatrix c = calibration.covariance;
  std::vector<SuggestedMeasurement> out;
  std::vector<bool> taken(points.size(), false);
  for (std::size_t round = 0; round < most; ++round) {
    const std::vector<double> cg = times(c, wanted);
    const double variance = dot(wanted, cg);
    std::size_t best = points.size();
    double gain = 0, error = 0;
    for (std::size_t i = 0; i < points.size(); ++i) {
      if (taken[i]) continue;
      const double model = kModelError.of(points[i]);
      const double w = kNoise * kNoise + model * model;
      const double d = dot(cg, slopes[i]);
      const double less = d * d / (dot(slopes[i], times(c, slopes[i])) + w);
      if (less <= gain) continue;
      gain = less;
      best = i;
      error = w;
    }
    if (best == points.size() || gain < kLeastGain * variance || variance <= 0) break;
    taken[best] = true;
    const std::vector<double> cj = times(c, slopes[best]);
    const double s = dot(slopes[best], cj) + error;
    std::size_t about = 0;
    for (std::size_t k = 0; k < p; ++k)
      if (std::abs(cj[k] * wanted[k]) > std::abs(cj[about] * wanted[about])) about = k;
    for (std::size_t r = 0; r < p; ++r)
      for (std::size_t k = 0; k < p; ++k) c(r, k) -= cj[r] * cj[k] / s;
    out.push_back({.what = points[best].id,
                   .sd_before = std::sqrt(variance),
                   .sd_after = std::sqrt(std::max(0.0, variance - gain)),
                   .about = calibration.parameters[about].name});
  }
  return out;
}

}  // namespace weft
