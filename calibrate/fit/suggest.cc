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

// Products that a training step has, and one pass over memory. Where the catalogue has no rates of kernels nothing asks for them.
void add_kernels(const GpuSpec& gpu, FitData& out) {
  if (!gpu.compute) return;
  for (const char* type : {"bf16", "fp8"}) {
    if (!gpu.peak.contains(type)) continue;
    for (const std::int64_t n : {1024, 8192})
      out.kernels.push_back(
          {.gpu = "gpu0", .type = type, .m = n, .n = n, .k = n, .us = 1, .refused = {}});
  }
  for (const Bytes size : {4_MiB, 2_GiB})
    out.kernels.push_back({.gpu = "gpu0",
                           .type = {},
                           .test = KernelTest::copy,
                           .bytes = size,
                           .us = 1,
                           .refused = {}});
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
  const auto local = static_cast<std::int64_t>(fabric->type_of(ServerId{0}).gpus.size());
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
  const auto there = [&](const std::string& name) {
    return fabric->find_node(name) || fabric->find_node("server0/" + name);
  };
  if (!there("gpu0")) return out;
  for (const Bytes size : {4_KiB, 64_MiB}) {
    FitCopy copy{.from = "gpu0", .to = "gpu1"};
    copy.bytes = size;
    copy.quantity = CopyQuantity::time;
    copy.group = "copy of";
    if (there("gpu1")) out.copies.push_back(copy);
    copy.from = "cpu0";
    copy.to = "gpu0";
    if (there("cpu0")) out.copies.push_back(copy);
  }
  add_kernels(fabric->type_of(ServerId{0}).gpu_specs.front(), out);
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
  const double now = predict(values_off(calibration));
  const auto slope = [](double moved, double from, double h) {
    const double out = moved > 0 && from > 0 ? std::log(moved / from) / h : 0;
    return std::isfinite(out) ? out : 0;
  };
  for (std::size_t k = 0; k < p; ++k) {
    const Parameter& parameter = calibration.parameters[k];
    std::vector<double> steps(p, 0.0);
    steps[k] = kStep;
    std::vector<ParameterChange> changes = base;
    changes[k].value = parameter.nudged(calibration.values[k], kStep);
    const double h = std::log(changes[k].value / calibration.values[k]);
    if (h == 0) continue;
    const std::vector<double> moved = predictor.predict(changes);
    for (std::size_t i = 0; i < points.size(); ++i) slopes[i][k] = slope(moved[i], at[i], h);
    if (!parameter.pointers.empty())
      wanted[k] = slope(predict(values_off(calibration, steps)), now, h);
  }
  const auto spread = [&](const DenseMatrix& covariance) {
    Calibration left = calibration;
    left.covariance = covariance;
    return propagate(
               left,
               [&](const ValueChanges& changes) { return std::vector<double>{predict(changes)}; })
        .front();
  };
  DenseMatrix c = calibration.covariance;
  double known = spread(c);
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
    const double before = known, left = spread(c);
    if (left >= before) continue;
    known = left;
    out.push_back({.what = points[best].id,
                   .sd_before = before,
                   .sd_after = known,
                   .about = calibration.parameters[about].name});
  }
  return out;
}

}  // namespace weft
