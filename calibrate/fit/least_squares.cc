// SPDX-License-Identifier: Apache-2.0
#include "calibrate/fit/least_squares.hpp"

#include <algorithm>
#include <cmath>

#include <Eigen/Dense>
#include <fmt/format.h>

#include "sim/core/check.hpp"

namespace weft {
namespace {

using Vector = Eigen::VectorXd;
using Matrix = Eigen::MatrixXd;

Vector to_eigen(const std::vector<double>& v) {
  return Eigen::Map<const Vector>(v.data(), static_cast<Eigen::Index>(v.size()));
}

std::vector<double> from_eigen(const Vector& v) { return {v.data(), v.data() + v.size()}; }

using RowMajor = Eigen::Matrix<double, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;

Matrix to_eigen(const DenseMatrix& m) {
  return Eigen::Map<const RowMajor>(m.values.data(), static_cast<Eigen::Index>(m.rows),
                                    static_cast<Eigen::Index>(m.columns));
}

DenseMatrix from_eigen(const Matrix& m) {
  DenseMatrix out(static_cast<std::size_t>(m.rows()), static_cast<std::size_t>(m.cols()));
  Eigen::Map<RowMajor>(out.values.data(), m.rows(), m.cols()) = m;
  return out;
}

double rho(LossFunction loss, double scale, double r) {
  const double s = r * r, a = scale * scale;
  switch (loss) {
    case LossFunction::none:
      return s;
    case LossFunction::huber:
      return s <= a ? s : 2 * scale * std::abs(r) - a;
    case LossFunction::cauchy:
      return a * std::log1p(s / a);
  }
  return s;
}

class Minimiser {
 public:
  Minimiser(const LeastSquaresProblem& problem, const LeastSquaresOptions& options)
      : problem_(problem),
        options_(options),
        lower_(to_eigen(problem.lower)),
        upper_(to_eigen(problem.upper)) {}

  LeastSquaresSummary run() {
    Vector x = clamp(to_eigen(problem_.start));
    Vector r = evaluate(x);
    out_.initial_cost = out_.final_cost = cost(r);
    if (!std::isfinite(out_.initial_cost))
      return end(x, r, TerminationType::failure, "the start has no finite residuals");
    double radius = options_.initial_trust_region_radius, shrink = 2;
    for (int iteration = 0; iteration < options_.max_num_iterations; ++iteration) {
      const Matrix j = forward(x, r);
      const Vector w = weights(r);
      const Matrix wj = w.asDiagonal() * j;
      const Vector g = wj.transpose() * (w.asDiagonal() * r);
      if (projected(x, g) <= options_.gradient_tolerance)
        return end(x, r, TerminationType::convergence, "gradient");
      const Matrix h = wj.transpose() * wj;
      for (;;) {
        const Vector step = bounded_step(x, h, g, radius);
        const Vector next = clamp(x + step);
        const Vector moved = next - x;
        if (moved.norm() <=
            options_.parameter_tolerance * (x.norm() + options_.parameter_tolerance))
          return end(x, r, TerminationType::convergence, "parameters");
        const Vector r_next = evaluate(next);
        const double now = cost(r_next);
        const double expected = -moved.dot(g) - 0.5 * moved.dot(h * moved);
        const double ratio = expected > 0 ? (out_.final_cost - now) / expected : -1;
        if (std::isfinite(now) && now < out_.final_cost && ratio > 1e-4) {
          const double decrease = out_.final_cost - now;
          x = next;
          r = r_next;
          const double before = out_.final_cost;
          out_.final_cost = now;
          ++out_.num_successful_steps;
          radius = std::min(radius / std::max(1.0 / 3, 1 - std::pow(2 * ratio - 1, 3)),
                            options_.max_trust_region_radius);
          shrink = 2;
          if (decrease <= options_.function_tolerance * before)
            return end(x, r, TerminationType::convergence, "function");
          break;
        }
        ++out_.num_unsuccessful_steps;
        radius /= shrink;
        shrink *= 2;
        if (radius < options_.min_trust_region_radius)
          return end(x, r, TerminationType::convergence, "no smaller step helps");
      }
    }
    return end(x, r, TerminationType::no_convergence, "maximum number of iterations");
  }

 private:
  Vector clamp(const Vector& x) const { return x.cwiseMax(lower_).cwiseMin(upper_); }

  Vector evaluate(const Vector& x) {
    ++out_.num_residual_evaluations;
    return to_eigen(problem_.residuals(from_eigen(x)));
  }

  bool is_robust(Eigen::Index i) const { return static_cast<std::size_t>(i) < problem_.robust; }

  double cost(const Vector& r) const {
    double sum = 0;
    for (Eigen::Index i = 0; i < r.size(); ++i)
      sum += is_robust(i) ? rho(options_.loss, options_.loss_scale, r[i]) : r[i] * r[i];
    return sum / 2;
  }

  // Square roots of rho', which make the loss a weighted problem.
  Vector weights(const Vector& r) const {
    Vector w(r.size());
    for (Eigen::Index i = 0; i < r.size(); ++i)
      w[i] = is_robust(i) ? std::sqrt(loss_weight(options_.loss, options_.loss_scale, r[i])) : 1;
    return w;
  }

  Matrix forward(const Vector& x, const Vector& r) {
    Matrix j(r.size(), x.size());
    for (Eigen::Index c = 0; c < x.size(); ++c) {
      Vector moved = x;
      const double h = x[c] + options_.difference_step <= upper_[c] ? options_.difference_step
                                                                    : -options_.difference_step;
      moved[c] += h;
      j.col(c) = (evaluate(moved) - r) / h;
    }
    return j;
  }

  // The gradient as far as the bounds let one follow it.
  double projected(const Vector& x, const Vector& g) const {
    return (clamp(x - g) - x).lpNorm<Eigen::Infinity>();
  }

  Vector bounded_step(const Vector& x, const Matrix& h, const Vector& g, double radius) const {
    std::vector<Eigen::Index> free;
    for (Eigen::Index i = 0; i < x.size(); ++i) {
      const bool held = (x[i] <= lower_[i] && g[i] > 0) || (x[i] >= upper_[i] && g[i] < 0);
      if (!held) free.push_back(i);
    }
    Vector step = Vector::Zero(x.size());
    if (free.empty()) return step;
    const auto n = static_cast<Eigen::Index>(free.size());
    Matrix a(n, n);
    Vector b(n);
    for (Eigen::Index i = 0; i < n; ++i) {
      for (Eigen::Index k = 0; k < n; ++k)
        a(i, k) = h(free[static_cast<std::size_t>(i)], free[static_cast<std::size_t>(k)]);
      a(i, i) += std::max(a(i, i), 1e-12) / radius;
      b[i] = -g[free[static_cast<std::size_t>(i)]];
    }
    const Vector d = a.ldlt().solve(b);
    for (Eigen::Index i = 0; i < n; ++i)
      if (std::isfinite(d[i])) step[free[static_cast<std::size_t>(i)]] = d[i];
    return step;
  }

  LeastSquaresSummary end(const Vector& x, const Vector& r, TerminationType type, std::string why) {
    out_.termination_type = type;
    out_.message = std::move(why);
    out_.solution = from_eigen(x);
    out_.residuals = from_eigen(r);
    if (type != TerminationType::failure) {
      out_.jacobian = difference_jacobian(problem_, out_.solution, options_.difference_step);
      out_.num_residual_evaluations += 2 * static_cast<int>(x.size());
    }
    return std::move(out_);
  }

  const LeastSquaresProblem& problem_;
  const LeastSquaresOptions& options_;
  Vector lower_, upper_;
  LeastSquaresSummary out_;
};

}  // namespace

double loss_weight(LossFunction loss, double scale, double residual) {
  const double s = residual * residual, a = scale * scale;
  switch (loss) {
    case LossFunction::none:
      return 1;
    case LossFunction::huber:
      return s <= a ? 1 : scale / std::abs(residual);
    case LossFunction::cauchy:
      return 1 / (1 + s / a);
  }
  return 1;
}

std::string LeastSquaresSummary::brief_report() const {
  const char* end = termination_type == TerminationType::convergence      ? "CONVERGENCE"
                    : termination_type == TerminationType::no_convergence ? "NO_CONVERGENCE"
                                                                          : "FAILURE";
  return fmt::format(
      "iterations {}, evaluations {}, initial cost {:.6e}, final cost {:.6e}, {} ({})",
      num_successful_steps + num_unsuccessful_steps, num_residual_evaluations, initial_cost,
      final_cost, end, message);
}

LeastSquaresSummary solve(const LeastSquaresProblem& problem, const LeastSquaresOptions& options) {
  const std::size_t n = problem.start.size();
  WEFT_CHECK(problem.lower.size() == n && problem.upper.size() == n, n);
  return Minimiser(problem, options).run();
}

DenseMatrix difference_jacobian(const LeastSquaresProblem& problem, const std::vector<double>& at,
                                double step) {
  DenseMatrix out;
  for (std::size_t c = 0; c < at.size(); ++c) {
    std::vector<double> low = at, high = at;
    low[c] = std::max(at[c] - step, problem.lower[c]);
    high[c] = std::min(at[c] + step, problem.upper[c]);
    const double width = high[c] - low[c];
    const std::vector<double> a = problem.residuals(low), b = problem.residuals(high);
    if (out.rows == 0) out = DenseMatrix(a.size(), at.size());
    if (width <= 0) continue;
    for (std::size_t r = 0; r < a.size(); ++r) out(r, c) = (b[r] - a[r]) / width;
  }
  return out;
}

DenseMatrix posterior_covariance(const DenseMatrix& jacobian, const std::vector<double>& weights,
                                 const std::vector<double>& diagonal) {
  const Matrix wj = to_eigen(weights).asDiagonal() * to_eigen(jacobian);
  Matrix h = wj.transpose() * wj;
  h.diagonal() += to_eigen(diagonal);
  Matrix inverse = Matrix::Zero(h.rows(), h.cols());
  std::vector<Eigen::Index> known;
  for (Eigen::Index i = 0; i < h.rows(); ++i) {
    if (h(i, i) > 0)
      known.push_back(i);
    else
      inverse(i, i) = std::numeric_limits<double>::infinity();
  }
  if (known.empty()) return from_eigen(inverse);
  const auto n = static_cast<Eigen::Index>(known.size());
  Matrix part(n, n);
  const auto at = [&](Eigen::Index i) { return known[static_cast<std::size_t>(i)]; };
  for (Eigen::Index i = 0; i < n; ++i)
    for (Eigen::Index k = 0; k < n; ++k) part(i, k) = h(at(i), at(k));
  const Matrix solved = part.completeOrthogonalDecomposition().pseudoInverse();
  for (Eigen::Index i = 0; i < n; ++i)
    for (Eigen::Index k = 0; k < n; ++k) inverse(at(i), at(k)) = solved(i, k);
  return from_eigen(inverse);
}

SymmetricEigen symmetric_eigen(const DenseMatrix& matrix) {
  const Eigen::SelfAdjointEigenSolver<Matrix> solver(to_eigen(matrix));
  return {from_eigen(Vector(solver.eigenvalues())), from_eigen(Matrix(solver.eigenvectors()))};
}

DenseMatrix covariance_root(const DenseMatrix& matrix) {
  const Eigen::SelfAdjointEigenSolver<Matrix> solver(to_eigen(matrix));
  const Vector roots = solver.eigenvalues().cwiseMax(0).cwiseSqrt();
  return from_eigen(Matrix(solver.eigenvectors() * roots.asDiagonal()));
}

}  // namespace weft
