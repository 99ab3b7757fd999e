// SPDX-License-Identifier: Apache-2.0
#include "calibrate/fit/patch.hpp"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "sim/core/config.hpp"

namespace weft {
namespace {

constexpr std::array<std::pair<ParameterUnit, std::string_view>, 3> kUnits{
    {{ParameterUnit::time, "time"},
     {ParameterUnit::bandwidth, "bandwidth"},
     {ParameterUnit::share, "share"}}};

double rounded(double value) {  // six digits: more say nothing
  return value == 0 || !std::isfinite(value) ? 0 : std::stod(fmt::format("{:.6g}", value));
}

// One entry of `calibration.parameters`.
struct SavedParameter {
  std::string name, unit, state, reason, evidence;
  std::vector<std::string> pointers;
  double value = 0, low = 0, high = 0, prior = 0, prior_sd = 0;
  template <class V>
  void visit(V&& v) {
    v("name", name, "what it is", required, not_empty);
    v("pointers", pointers, "the values of the fabric that it sets", required, not_empty);
    v("unit", unit, "time (seconds), bandwidth (bits per second) or share", required);
    v("value", value, "fitted, or the prior where it is not determined", required);
    v("low", low, "lower end of the 95 % interval", required);
    v("high", high, "upper end", required);
    v("prior", prior, "before the measurements", required);
    v("prior_sd", prior_sd, "standard deviation of the prior's logarithm", required);
    v("state", state, "determined, weak or undetermined", required);
    v("reason", reason, "why it is not determined", not_empty);
    v("evidence", evidence, "source of the prior", not_empty);
  }
};
struct SavedResidual {
  std::string id;
  double measured = 0, predicted = 0, before = 0, sd = 0;
  bool fitted = true, outlier = false;
  std::string refused;
  template <class V>
  void visit(V&& v) {
    v("id", id, "what was measured", required, not_empty);
    v("measured", measured, "us or GB/s", required);
    v("predicted", predicted, "with the fitted values", required);
    v("before", before, "with the priors", required);
    v("sd", sd, "relative, of measurement and model", required);
    v("fitted", fitted, "took part in the fit");
    v("outlier", outlier, "beyond four standard deviations");
    v("refused", refused, "why it took no part", not_empty);
  }
};
struct SavedCalibration {
  std::string instrument, date, weft, solver;
  double scale = 1, freedom = 1;
  std::vector<SavedParameter> parameters;
  std::vector<std::vector<double>> covariance;
  std::vector<SavedResidual> residuals;
  std::vector<std::string> unused, notes;
  template <class V>
  void visit(V&& v) {
    v("instrument", instrument, "what measured it", not_empty);
    v("date", date, "of the fit", not_empty);
    v("weft", weft, "version that fitted", not_empty);
    v("solver", solver, "its report", not_empty);
    v("scale", scale, "of the residuals over what weft is usually off by", required);
    v("freedom", freedom, "degrees of freedom of the scale", required);
    v("parameters", parameters, "all that took part", required);
    v("covariance", covariance, "of their logarithms", required);
    v("residuals", residuals, "one per row");
    v("unused", unused, "that nothing measured depends on", not_empty);
    v("notes", notes, "outliers, and rows that were left out", not_empty);
  }
};

SavedParameter saved(const FittedParameter& f) {
  SavedParameter out;
  out.name = f.parameter.name;
  for (const auto& [unit, name] : kUnits)
    if (unit == f.parameter.unit) out.unit = name;
  out.state = state_text(f.state);
  out.reason = f.reason;
  out.evidence = f.parameter.evidence;
  out.pointers = f.parameter.pointers;
  out.value = rounded(f.value);
  out.low = rounded(f.low);
  out.high = rounded(f.high);
  out.prior = rounded(f.parameter.prior);
  out.prior_sd = f.parameter.prior_sd;
  return out;
}

}  // namespace

std::string state_text(ParameterState state) {
  switch (state) {
    case ParameterState::determined:
      return "determined";
    case ParameterState::weak:
      return "weak";
    case ParameterState::undetermined:
      return "undetermined";
  }
  return {};
}

std::string interval_text(const FittedParameter& p) {
  const ParameterUnit unit = p.parameter.unit;
  return fmt::format("{} to {}", parameter_text(unit, p.low), parameter_text(unit, p.high));
}

Json write_patch(const PatchHead& head, const FitResult& fitted) {
  Json out = Json::object();
  Json version = Json::object();
  version.set("schema", 1);
  out.set("weft", std::move(version));
  out.set("kind", "patch");
  out.set("name", head.name);
  out.set("summary", fmt::format("{} as measured: {} of {} parameters determined", head.base,
                                 fitted.determined(), fitted.parameters.size()));
  out.set("use", head.base);
  Json set = Json::object(), sources = Json::object();
  for (const auto& [pointer, value] : head.changes) {
    set.set(pointer, value);
    sources.set(pointer, "assumed: given to the fit");
  }
  SavedCalibration calibration;
  for (const FittedParameter& p : fitted.parameters) {
    calibration.parameters.push_back(saved(p));
    if (p.state == ParameterState::undetermined) continue;
    for (const std::string& pointer : p.parameter.pointers) {
      set.set(pointer, parameter_short(p.parameter.unit, rounded(p.value)));
      sources.set(pointer, fmt::format("measured: {}, {}; 95 % {}", head.instrument, head.date,
                                       interval_text(p)));
    }
  }
  out.set("set", std::move(set));
  out.set("sources", std::move(sources));
  calibration.instrument = head.instrument;
  calibration.date = head.date;
  calibration.weft = WEFT_VERSION;
  calibration.solver = fitted.summary.brief_report();
  calibration.scale = rounded(fitted.scale);
  calibration.freedom = rounded(fitted.freedom);
  calibration.unused = fitted.unused;
  calibration.notes = fitted.notes;
  for (std::size_t r = 0; r < fitted.covariance.rows; ++r) {
    std::vector<double>& row = calibration.covariance.emplace_back();
    for (std::size_t c = 0; c < fitted.covariance.columns; ++c)
      row.push_back(rounded(fitted.covariance(r, c)));
  }
  for (const FitResidual& r : fitted.residuals) {
    calibration.residuals.push_back({.id = r.point.id,
                                     .measured = rounded(r.point.measured),
                                     .predicted = rounded(r.predicted),
                                     .before = rounded(r.before),
                                     .sd = rounded(r.sd),
                                     .fitted = r.fitted,
                                     .outlier = r.outlier,
                                     .refused = r.point.refused});
  }
  out.set("calibration", write_config(calibration));
  return out;
}

std::optional<Calibration> read_calibration(const Json& document, Diagnostics& out) {
  const Json* kind = document.find("kind");
  const Json* json = document.find("calibration");
  if (kind == nullptr || kind->text != "patch" || json == nullptr) {
    out.error(document.place, "/calibration", "this is not a calibrated fabric",
              "make one with `weft calibrate fit`");
    return std::nullopt;
  }
  const std::size_t before = out.error_count();
  SavedCalibration saved;
  read_config(*json, "/calibration", saved, out);
  if (out.error_count() > before) return std::nullopt;
  const std::size_t n = saved.parameters.size();
  Calibration calibration;
  calibration.scale = saved.scale;
  calibration.freedom = saved.freedom;
  calibration.covariance = DenseMatrix(n, n);
  bool square = saved.covariance.size() == n;
  for (std::size_t r = 0; square && r < n; ++r) {
    square = saved.covariance[r].size() == n;
    for (std::size_t c = 0; square && c < n; ++c)
      calibration.covariance(r, c) = saved.covariance[r][c];
  }
  if (!square) {
    out.error(json->find("covariance")->place, "/calibration/covariance",
              fmt::format("{} parameters need {} rows of {} numbers", n, n, n),
              "fit again: this part is not for editing");
    return std::nullopt;
  }
  for (const SavedParameter& p : saved.parameters) {
    const auto unit =
        std::ranges::find(kUnits, p.unit, &std::pair<ParameterUnit, std::string_view>::second);
    if (unit == kUnits.end() || !(p.value > 0) || !(p.prior > 0)) {
      out.error(json->place, "/calibration/parameters",
                fmt::format("\"{}\" has no unit or no positive value", p.name),
                "fit again: this part is not for editing");
      return std::nullopt;
    }
    calibration.parameters.push_back({.name = p.name,
                                      .pointers = p.pointers,
                                      .unit = unit->first,
                                      .prior = p.prior,
                                      .prior_sd = p.prior_sd,
                                      .lower = 0,
                                      .upper = unit->first == ParameterUnit::share ? 1 : 1e300,
                                      .evidence = p.evidence});
    calibration.values.push_back(p.value);
  }
  return calibration;
}

}  // namespace weft
