// SPDX-License-Identifier: Apache-2.0
#include "calibrate/fit/fit.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <tuple>

#include <boost/math/distributions/students_t.hpp>
#include <fmt/format.h>

#include "calibrate/explain_log.hpp"
#include "calibrate/log_facts.hpp"
#include "sim/core/check.hpp"
#include "sim/core/random.hpp"
#include "sim/core/text.hpp"

namespace weft {
namespace {

// A parameter whose prior moves no prediction by as much as a good measurement's noise takes no part.
constexpr double kLeastEffect = 0.02;
// Worth of the prior belief that weft's own error is as ModelError says, in rows.
constexpr double kScaleFreedom = 4;
// Parameters take up much of what weft is off by, so that residuals show too little of it.
constexpr double kLeastScale = 0.6;
constexpr double kNoInformation = 0.9;  // of a prior's width: such parameters are held all at once
constexpr double kLossScale = 2.5;      // in s
constexpr double kSurprise = 2.5;       // widths of a prior
constexpr std::size_t kMostAlike = 5;   // rows named one by one that are left out for one reason
constexpr double kHopeless = 0.3;  // median error after a fit beyond which it is another machine
constexpr double kFaster = 1.05;   // times, beyond which it is no noise
constexpr const char* kFasterLinks =
    "It has more or faster links than the fabric, or its times end before the data are there";
constexpr const char* kFasterGpus =
    "Its GPU has higher peaks than the fabric's, or its times end before the work does";
constexpr double kWeakShare = 0.4;  // of an eigenvector, to be named in it

class Fitter {
 public:
  Fitter(const FitMachine& machine, const FitData& data, const FitOptions& options)
      : predictor_(machine, data),
        options_(options),
        rows_(measured_points(data)),
        all_(find_parameters(machine.document(), parameter_question(data))) {}

  FitResult run() {
    before_ = predictor_.predict({});
    for (std::size_t i = 0; i < rows_.size(); ++i) {
      if (rows_[i].refused.empty()) rows_[i].refused = no_number(before_[i], rows_[i].measured);
      if (rows_[i].refused.empty()) used_.push_back(i);
    }
    if (used_.empty()) throw InputError(nothing_left());
    choose_parameters();
    free_.assign(parameters_.size(), true);
    // A loss that forgets far rows would take a whole kind of rows for outliers as long as its parameter is at its prior: convex
    // first, and only near the solution the one that forgets.
    out_.scale = 1;
    LeastSquaresSummary summary;
    for (const LossFunction loss :
         {LossFunction::huber, LossFunction::huber, LossFunction::cauchy}) {
      summary = solve_free(loss);
      out_.scale = robust_scale(theta_);
    }
    while (freeze_weakest()) summary = solve_free(LossFunction::cauchy);
    out_.summary = std::move(summary);
    finish();
    return std::move(out_);
  }

 private:
  // A logarithm needs both.
  static std::string no_number(double predicted, double measured) {
    if (!(measured > 0) || !std::isfinite(measured)) return "nothing was measured";
    if (!(predicted > 0) || !std::isfinite(predicted)) return "weft has no prediction for it";
    return {};
  }

  std::string nothing_left() const {
    std::string text = "error: nothing that was measured can be fitted\n";
    for (const MeasuredPoint& row : rows_) text += fmt::format("    {}: {}\n", row.id, row.refused);
    return text;
  }

  double own_error(const MeasuredPoint& row) const {
    const double model = options_.model_error * options_.model.of(row);
    return std::sqrt(options_.noise * options_.noise + row.spread * row.spread + model * model);
  }
  double weight(const MeasuredPoint& row) const {
    // What rows of one kind share does not average out over them.
    const double model = options_.model_error * options_.model.of(row) * std::sqrt(row.alike);
    return std::sqrt(options_.noise * options_.noise + row.spread * row.spread + model * model);
  }

  // theta: logarithms over the priors, of all parameters.
  std::vector<ParameterChange> changes(const std::vector<double>& theta) const {
    std::vector<ParameterChange> out;
    for (std::size_t k = 0; k < parameters_.size(); ++k) {
      if (theta[k] != 0)
        out.push_back({&parameters_[k], parameters_[k].prior * std::exp(theta[k])});
    }
    return out;
  }

  // Relative errors of the rows that are fitted, over their weights.
  std::vector<double> errors(const std::vector<double>& theta) const {
    const std::vector<double> predicted = predictor_.predict(changes(theta));
    std::vector<double> out;
    for (const std::size_t i : used_)
      out.push_back(std::log(predicted[i] / rows_[i].measured) / weight(rows_[i]));
    return out;
  }

  // Those that some row depends on. The others are known by name only.
  void choose_parameters() {
    std::vector<std::vector<double>> effects;
    for (Parameter& candidate : all_) {
      const double step = std::min(0.1, candidate.prior_sd);
      const double up = candidate.prior * std::exp(step), down = candidate.prior * std::exp(-step);
      double effect = 0;
      for (const double value : {down, up}) {
        if (value > candidate.upper || value < candidate.lower) continue;
        const std::vector<double> moved = predictor_.predict({{&candidate, value}});
        for (const std::size_t i : used_)
          effect = std::max(effect,
                            std::abs(std::log(moved[i] / before_[i])) * candidate.prior_sd / step);
      }
      if (effect < kLeastEffect)
        out_.unused.push_back(candidate.name);
      else
        parameters_.push_back(candidate);
    }
    if (parameters_.empty())
      throw InputError("error: nothing that was measured depends on a parameter of this fabric\n");
  }

  LeastSquaresSummary solve_free(LossFunction loss) {
    std::vector<std::size_t> which;
    for (std::size_t k = 0; k < parameters_.size(); ++k)
      if (free_[k]) which.push_back(k);
    theta_.resize(parameters_.size(), 0.0);
    for (std::size_t k = 0; k < parameters_.size(); ++k)
      if (!free_[k]) theta_[k] = 0;
    LeastSquaresProblem problem;
    problem.robust = used_.size();
    problem.residuals = [&, which](const std::vector<double>& x) {
      std::vector<double> theta(parameters_.size(), 0.0);
      for (std::size_t i = 0; i < which.size(); ++i) theta[which[i]] = x[i];
      std::vector<double> r = errors(theta);
      for (double& value : r) value /= out_.scale;
      for (std::size_t i = 0; i < which.size(); ++i)
        r.push_back(x[i] / parameters_[which[i]].prior_sd);
      return r;
    };
    for (const std::size_t k : which) {
      const Parameter& p = parameters_[k];
      problem.start.push_back(theta_[k]);
      problem.lower.push_back(std::log(p.lower / p.prior));
      problem.upper.push_back(std::log(p.upper / p.prior));
    }
    LeastSquaresOptions solver = options_.solver;
    solver.loss = loss;
    solver.loss_scale = kLossScale;
    LeastSquaresSummary summary = solve(problem, solver);
    for (std::size_t i = 0; i < which.size(); ++i) theta_[which[i]] = summary.solution[i];
    for (double& value : summary.residuals) value *= out_.scale;
    summary.residuals.resize(used_.size());
    return summary;
  }

  // Of errors over what weft is usually off by, row by row: 1 where it is as far off as usual.
  double robust_scale(const std::vector<double>& theta) {
    std::vector<double> residuals = errors(theta);
    for (std::size_t i = 0; i < used_.size(); ++i)
      residuals[i] *= weight(rows_[used_[i]]) / own_error(rows_[used_[i]]);
    double sum = 0, effective = 0;
    std::vector<double> sizes;
    for (const double r : residuals) sizes.push_back(std::abs(r));
    const double middle = std::max(1.4826 * median(sizes), 0.05);
    for (const double r : residuals) {
      const double w = loss_weight(LossFunction::cauchy, kLossScale * middle, r);
      sum += w * r * r;
      effective += w;
    }
    const double spent = std::min<double>(static_cast<double>(parameters_.size()), effective);
    out_.freedom = kScaleFreedom + std::max(0.0, effective - spent);
    return std::max(kLeastScale, std::sqrt((kScaleFreedom + sum) / out_.freedom));
  }

  // Jacobian of ln(predicted) / weight / s over all parameters at theta, with the loss's weights.
  void linearise() {
    LeastSquaresProblem problem;
    problem.residuals = [&](const std::vector<double>& theta) { return errors(theta); };
    for (const Parameter& p : parameters_) {
      problem.lower.push_back(std::log(p.lower / p.prior));
      problem.upper.push_back(std::log(p.upper / p.prior));
    }
    jacobian_ = difference_jacobian(problem, theta_, options_.solver.difference_step * 10);
    const std::vector<double> r = errors(theta_);
    weights_.clear();
    for (const double value : r)
      weights_.push_back(
          std::sqrt(loss_weight(LossFunction::cauchy, kLossScale, value / out_.scale)) /
          out_.scale);
    priors_.clear();
    for (const Parameter& p : parameters_) priors_.push_back(1 / (p.prior_sd * p.prior_sd));
  }

  // One at a time: the parameter that the rows, given all that is already held, say least about.
  bool freeze_weakest() {
    linearise();
    std::vector<double> held = priors_;
    for (std::size_t k = 0; k < parameters_.size(); ++k)
      if (!free_[k]) held[k] = 1e12;
    const DenseMatrix conditional = posterior_covariance(jacobian_, weights_, held);
    std::size_t weakest = parameters_.size();
    double worst = options_.determined;
    bool several = false;
    for (std::size_t k = 0; k < parameters_.size(); ++k) {
      if (!free_[k]) continue;
      const double ratio = std::sqrt(conditional(k, k)) / parameters_[k].prior_sd;
      if (ratio > kNoInformation) {
        free_[k] = false;
        theta_[k] = 0;
        several = true;
      }
      if (ratio <= worst) continue;
      worst = ratio;
      weakest = k;
    }
    if (weakest == parameters_.size()) return false;
    if (!several) {
      free_[weakest] = false;
      theta_[weakest] = 0;
    }
    return std::ranges::any_of(free_, [](bool f) { return f; });
  }

  void finish() {
    linearise();
    out_.covariance = posterior_covariance(jacobian_, weights_, priors_);
    const std::vector<double> bootstrap = bootstrap_half_widths();
    const double t = student_t(0.95, out_.freedom);
    for (std::size_t k = 0; k < parameters_.size(); ++k) {
      const Parameter& p = parameters_[k];
      FittedParameter& f = out_.parameters.emplace_back();
      f.parameter = p;
      f.value = free_[k] ? p.prior * std::exp(theta_[k]) : p.prior;
      f.sd = std::sqrt(out_.covariance(k, k));
      const double half = free_[k] ? std::max(t * f.sd, bootstrap[k]) : 1.96 * p.prior_sd;
      f.low = std::max(p.lower, f.value * std::exp(-half));
      f.high = std::min(p.upper, f.value * std::exp(half));
      const double ratio = f.sd / p.prior_sd;
      f.state = !free_[k]                     ? ParameterState::undetermined
                : ratio > options_.determined ? ParameterState::weak
                                              : ParameterState::determined;
      if (f.state != ParameterState::determined) f.reason = reason(k);
      if (std::abs(theta_[k]) > kSurprise * p.prior_sd)
        out_.notes.push_back(fmt::format(
            "{}: {} is {:.1f} widths from its prior, {}: is this the right fabric, with the right "
            "settings?",
            p.name, parameter_text(p.unit, f.value), std::abs(theta_[k]) / p.prior_sd,
            parameter_text(p.unit, p.prior)));
    }
    residuals();
    name_impossible();
  }

  // Rows in which bytes or work decide that are faster than the fabric can be at its best: every time at its lower and every
  // share at its upper bound, every rate two widths above its prior (its upper bound is there for the solver and no physics).
  void name_impossible() {
    std::vector<ParameterChange> best;
    for (const Parameter& p : parameters_)
      best.push_back({&p, p.unit == ParameterUnit::time    ? p.lower
                          : p.unit == ParameterUnit::share ? p.upper
                                                           : p.prior * std::exp(2 * p.prior_sd)});
    const std::vector<double> fastest = predictor_.predict(best);
    for (const auto& [kind, what, cause] :
         {std::tuple{PointKind::collective, "collective", kFasterLinks},
          {PointKind::copy, "copy", kFasterLinks},
          {PointKind::kernel, "kernel", kFasterGpus}}) {
      std::size_t many = 0, worst = 0;
      double most = kFaster;
      for (const std::size_t i : used_) {
        if (rows_[i].kind != kind || !rows_[i].bulk) continue;
        const double ratio = fastest[i] / rows_[i].measured,
                     factor = rows_[i].rate ? 1 / ratio : ratio;
        many += factor > kFaster ? 1 : 0;
        if (factor <= most) continue;
        most = factor;
        worst = i;
      }
      if (many == 0) continue;
      const char* unit = rows_[worst].rate ? "GB/s" : "us";
      out_.notes.push_back(fmt::format(
          "{} {} row{} faster than this fabric can be: {} is {:.4g} {} as measured, and {:.4g} {} "
          "with every value at its best. {}",
          many, what, many == 1 ? " is" : "s are", rows_[worst].id, rows_[worst].measured, unit,
          fastest[worst], unit, cause));
    }
  }

  // What this parameter is confounded with: the others whose errors go along with its own.
  std::string reason(std::size_t k) const {
    std::vector<std::string> with;
    for (std::size_t j = 0; j < parameters_.size(); ++j) {
      if (j == k) continue;
      const double correlation =
          out_.covariance(k, j) / std::sqrt(out_.covariance(k, k) * out_.covariance(j, j));
      if (std::abs(correlation) >= kWeakShare) with.push_back(parameters_[j].name);
    }
    if (with.empty()) return "the rows hardly depend on it";
    return "known only together with " + join(with, ", ");
  }

  // Percentiles of one Gauss-Newton step on resampled residuals, as a half-width of the logarithm.
  std::vector<double> bootstrap_half_widths() const {
    const std::size_t n = used_.size(), p = parameters_.size();
    std::vector<double> half(p, 0.0);
    if (n < 2 * p || options_.bootstrap < 20) return half;
    std::vector<double> held = priors_;
    for (std::size_t k = 0; k < p; ++k)
      if (!free_[k]) held[k] = 1e12;
    const DenseMatrix covariance = posterior_covariance(jacobian_, weights_, held);
    const std::vector<double> r = errors(theta_);
    const double grow = std::sqrt(static_cast<double>(n) / static_cast<double>(n - p));
    Random random(options_.seed, "bootstrap");
    std::vector<std::vector<double>> draws(p);
    for (int b = 0; b < options_.bootstrap; ++b) {
      std::vector<double> gradient(p, 0.0);
      for (std::size_t i = 0; i < n; ++i) {
        const double drawn = r[random.below(n)] * grow;
        for (std::size_t k = 0; k < p; ++k)
          gradient[k] += jacobian_(i, k) * weights_[i] * weights_[i] * drawn;
      }
      for (std::size_t k = 0; k < p; ++k) {
        double step = 0;
        for (std::size_t j = 0; j < p; ++j) step += covariance(k, j) * gradient[j];
        draws[k].push_back(step);
      }
    }
    for (std::size_t k = 0; k < p; ++k) {
      std::ranges::sort(draws[k]);
      const auto at = [&](double q) {
        return draws[k][static_cast<std::size_t>(q * static_cast<double>(draws[k].size() - 1))];
      };
      half[k] = (at(0.975) - at(0.025)) / 2;
    }
    return half;
  }

  void residuals() {
    const std::vector<double> predicted = predictor_.predict(changes(theta_));
    std::vector<bool> is_used(rows_.size(), false);
    for (const std::size_t i : used_) is_used[i] = true;
    std::vector<double> errors;
    std::map<std::string, std::size_t> left_out;  // by reason
    for (std::size_t i = 0; i < rows_.size(); ++i) {
      FitResidual& r = out_.residuals.emplace_back();
      r.point = rows_[i];
      r.predicted = predicted[i];
      r.before = before_[i];
      r.fitted = is_used[i];
      r.sd = out_.scale * own_error(rows_[i]);
      r.outlier = std::abs(std::log(predicted[i] / rows_[i].measured)) > options_.outlier * r.sd;
      if (r.fitted && r.outlier)
        out_.notes.push_back(fmt::format(
            "{} is {:+.0f} % off the fit ({:.3g} measured, {:.3g} predicted): an outlier, it "
            "hardly counts",
            rows_[i].id, 100 * r.error(), rows_[i].measured, predicted[i]));
      if (r.fitted) errors.push_back(r.error());
      if (!r.fitted && ++left_out[rows_[i].refused] <= kMostAlike)
        out_.notes.push_back(fmt::format("{} is not fitted: {}", rows_[i].id, rows_[i].refused));
    }
    for (const auto& [why, times] : left_out)
      if (times > kMostAlike)
        out_.notes.push_back(fmt::format("and {} more: {}", times - kMostAlike, why));
    const double off = median(errors);
    if (std::abs(off) > kHopeless)
      out_.notes.push_back(fmt::format(
          "no values within their bounds explain this: half of the rows are {:+.0f} % off. It is "
          "another machine, other settings, or a fault: see `weft explain-log`",
          100 * off));
  }

  Predictor predictor_;
  const FitOptions& options_;
  std::vector<MeasuredPoint> rows_;
  std::vector<Parameter> all_, parameters_;
  std::vector<std::size_t> used_;  // rows that are fitted
  std::vector<bool> free_;
  std::vector<double> before_, theta_;
  DenseMatrix jacobian_;
  std::vector<double> weights_, priors_;
  FitResult out_;
};

}  // namespace

double ModelError::of(const MeasuredPoint& point) const {
  return point.kind == PointKind::collective ? collective(point.bytes, point.across) : other;
}

double ModelError::collective(Bytes bytes, bool between_servers) const {
  const std::size_t i = LogBand::size_class(bytes);
  return between_servers ? across[i] : inside[i];
}

double ModelError::worst(bool between_servers) const {
  return std::ranges::max(between_servers ? across : inside);
}

std::vector<ParameterChange> FitResult::changes() const {
  std::vector<ParameterChange> out;
  for (const FittedParameter& p : parameters)
    if (p.value != p.parameter.prior) out.push_back({&p.parameter, p.value});
  return out;
}

std::size_t FitResult::determined() const {
  return static_cast<std::size_t>(
      std::ranges::count(parameters, ParameterState::determined, &FittedParameter::state));
}

FitResult fit(const FitMachine& machine, const FitData& data, const FitOptions& options) {
  return Fitter(machine, data, options).run();
}

std::vector<PredictedRow> predict_with_error(const FitMachine& machine, const FitResult& fitted,
                                             const FitData& data, const FitOptions& options) {
  const std::vector<MeasuredPoint> rows = measured_points(data);
  const std::vector<double> at = machine.predict(data, fitted.changes());
  const std::size_t p = fitted.parameters.size();
  std::vector<std::vector<double>> slopes;
  constexpr double step = 1e-2;
  for (std::size_t k = 0; k < p; ++k) {
    const FittedParameter& f = fitted.parameters[k];
    const double other = f.parameter.nudged(f.value, step), h = std::log(other / f.value);
    std::vector<ParameterChange> changes = fitted.changes();
    std::erase_if(changes, [&](const ParameterChange& c) { return c.parameter == &f.parameter; });
    changes.push_back({&f.parameter, other});
    std::vector<double> moved = machine.predict(data, changes);
    for (std::size_t i = 0; i < moved.size(); ++i)
      moved[i] = h != 0 ? std::log(moved[i] / at[i]) / h : 0;
    slopes.push_back(std::move(moved));
  }
  std::vector<PredictedRow> out;
  for (std::size_t i = 0; i < at.size(); ++i) {
    double variance = 0;
    for (std::size_t k = 0; k < p; ++k)
      for (std::size_t j = 0; j < p; ++j)
        variance += slopes[k][i] * fitted.covariance(k, j) * slopes[j][i];
    const double model = options.model_error * options.model.of(rows[i]) * fitted.scale;
    const double noise = std::max(options.noise * std::min(1.0, fitted.scale), rows[i].spread);
    out.push_back({at[i], std::sqrt(std::max(0.0, variance) + model * model + noise * noise)});
  }
  return out;
}

double student_t(double probability, double freedom) {
  return boost::math::quantile(boost::math::students_t(std::max(freedom, 1.0)),
                               (1 + probability) / 2);
}

}  // namespace weft
