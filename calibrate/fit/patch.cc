// SPDX-License-Identifier: Apache-2.0
#include "calibrate/fit/patch.hpp"

#include <algorithm>
#include <cmath>
#include <set>

#include <fmt/format.h>

#include "sim/core/config.hpp"
#include "sim/core/text.hpp"

namespace weft {
namespace {

double rounded(double value) {  // six digits: more say nothing
  return value == 0 || !std::isfinite(value) ? 0 : std::stod(fmt::format("{:.6g}", value));
}

// One entry of `calibration.parameters`.
struct SavedParameter {
  std::string name, reason, evidence;
  ParameterUnit unit = ParameterUnit::time;
  ParameterState state = ParameterState::undetermined;
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
  out.unit = f.parameter.unit;
  out.state = f.state;
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

std::string state_text(ParameterState state) { return write_config(state).text; }

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

namespace {

constexpr const char* kNotForEditing = "fit again: this part is not for editing";
constexpr double kSameValue = 1e-4;  // six digits are written

// Reads `calibration` of a patch; every problem at its place.
class CalibrationReader {
 public:
  CalibrationReader(const Json& document, const Json& json, Diagnostics& out)
      : document_(document), json_(json), out_(out) {}

  std::optional<Calibration> run() {
    const std::size_t before = out_.error_count();
    read_config(json_, "/calibration", saved_, out_);
    if (out_.error_count() > before) return std::nullopt;
    require(saved_.scale > 0 && std::isfinite(saved_.scale), "/scale", "is not positive");
    require(saved_.freedom > 0 && std::isfinite(saved_.freedom), "/freedom", "is not positive");
    std::set<std::string> names;
    for (std::size_t i = 0; i < saved_.parameters.size(); ++i) {
      const std::string at = fmt::format("/parameters/{}", i);
      require(names.insert(saved_.parameters[i].name).second, at + "/name", "is there twice");
      add(saved_.parameters[i], at);
    }
    read_covariance();
    for (std::size_t i = 0; i < saved_.residuals.size(); ++i) {
      const SavedResidual& r = saved_.residuals[i];
      const std::string at = fmt::format("/residuals/{}", i);
      require(r.measured > 0 || !r.fitted, at + "/measured", "is not positive");
      require(r.predicted > 0 || !r.fitted, at + "/predicted", "is not positive");
      require(r.sd >= 0, at + "/sd", "is negative");
    }
    if (out_.error_count() > before) return std::nullopt;
    return std::move(calibration_);
  }

 private:
  void require(bool good, const std::string& pointer, const std::string& what) {
    if (good) return;
    out_.error(nearest_place(json_, pointer).value_or(json_.place), "/calibration" + pointer, what,
               kNotForEditing);
  }

  void add(const SavedParameter& p, const std::string& at) {
    require(p.value > 0, at + "/value", "is not positive");
    require(p.prior > 0, at + "/prior", "is not positive");
    require(p.prior_sd > 0, at + "/prior_sd", "is not positive");
    const double slack = 1 + kSameValue;
    require(p.low > 0 && p.low <= p.value * slack && p.value <= p.high * slack, at + "/low",
            fmt::format("{} to {} does not hold the value {}", p.low, p.high, p.value));
    require(p.unit != ParameterUnit::share || p.value <= slack, at + "/value",
            "a share is at most 1");
    for (std::size_t i = 0; i < p.pointers.size(); ++i) {
      const auto path = parse_pointer(p.pointers[i]);
      require(path && !path->empty(), fmt::format("{}/pointers/{}", at, i),
              fmt::format("\"{}\" is no JSON pointer", p.pointers[i]));
      if (path && !path->empty()) check_set(p, p.pointers[i]);
    }
    calibration_.parameters.push_back({.name = p.name,
                                       .pointers = p.pointers,
                                       .unit = p.unit,
                                       .prior = p.prior,
                                       .prior_sd = p.prior_sd,
                                       .lower = 0,
                                       .upper = p.unit == ParameterUnit::share ? 1 : 1e300,
                                       .evidence = p.evidence});
    calibration_.values.push_back(p.value);
  }

  // What the patch sets is what the calibration says, or the intervals are those of another fabric.
  void check_set(const SavedParameter& p, const std::string& pointer) {
    const Json* set = document_.find("set");
    const Json* value = set != nullptr ? set->find(pointer) : nullptr;
    if (p.state == ParameterState::undetermined) return;
    if (value == nullptr) {
      out_.error(set != nullptr ? set->place : document_.place, "/set",
                 fmt::format("\"{}\" was fitted and is not set: {}", pointer, p.name),
                 kNotForEditing);
      return;
    }
    const double number = parameter_number(p.unit, *value);
    if (std::abs(number / p.value - 1) <= kSameValue) return;
    out_.error(value->place, "/set/" + json_pointer_escape(pointer),
               fmt::format("{} is not the {} that was fitted", to_text(*value, 0),
                           parameter_text(p.unit, p.value)),
               "change it where the patch is used, with `set` or --set");
  }

  void read_covariance() {
    const std::size_t n = saved_.parameters.size();
    const auto& rows = saved_.covariance;
    bool square = rows.size() == n;
    for (std::size_t r = 0; square && r < n; ++r) square = rows[r].size() == n;
    require(square, "/covariance",
            fmt::format("{} parameters need {} rows of {} numbers", n, n, n));
    if (!square) return;
    calibration_.scale = saved_.scale;
    calibration_.freedom = saved_.freedom;
    calibration_.covariance = DenseMatrix(n, n);
    for (std::size_t r = 0; r < n; ++r) {
      require(rows[r][r] >= 0, fmt::format("/covariance/{}/{}", r, r), "a variance is negative");
      for (std::size_t c = 0; c < n; ++c) {
        calibration_.covariance(r, c) = rows[r][c];
        const double most = std::sqrt(std::abs(rows[r][r] * rows[c][c]));
        if (c > r) continue;
        require(std::abs(rows[r][c] - rows[c][r]) <= kSameValue * most,
                fmt::format("/covariance/{}/{}", r, c), "is not what stands on the other side");
        require(std::abs(rows[r][c]) <= most * (1 + kSameValue) + 1e-300,
                fmt::format("/covariance/{}/{}", r, c), "is more than its variances allow");
      }
    }
  }

  const Json &document_, &json_;
  Diagnostics& out_;
  SavedCalibration saved_;
  Calibration calibration_;
};

}  // namespace

std::optional<Calibration> read_calibration(const Json& document, Diagnostics& out) {
  const Json* kind = document.find("kind");
  const Json* json = document.find("calibration");
  if (kind == nullptr || kind->text != "patch" || json == nullptr) {
    out.error(document.place, "/calibration", "this is not a calibrated fabric",
              "make one with `weft calibrate fit`");
    return std::nullopt;
  }
  return CalibrationReader(document, *json, out).run();
}

void check_calibration(const Calibration& calibration, const Json& fabric, Place place,
                       Diagnostics& out) {
  std::set<std::string> known;
  for (const Parameter& p : find_parameters(fabric, {.copies = true, .kernels = true}))
    for (const std::string& pointer : p.pointers) known.insert(p.name + " " + pointer);
  for (std::size_t i = 0; i < calibration.parameters.size(); ++i) {
    const Parameter& p = calibration.parameters[i];
    const bool all = std::ranges::all_of(p.pointers, [&](const std::string& pointer) {
      return known.contains(p.name + " " + pointer);
    });
    if (all) continue;
    out.error(place, fmt::format("/calibration/parameters/{}", i),
              fmt::format("the fabric has no {} at {}", p.name, p.pointers.front()),
              "it is not the fabric that was fitted: fit again");
  }
}

}  // namespace weft
