// SPDX-License-Identifier: Apache-2.0
// Nonlinear least squares with bounds and a robust loss: Levenberg-Marquardt with steps projected onto the box, options and
// summary named as Ceres Solver names them.
//
//   minimise  1/2 sum rho(r_i(x)^2)   subject to  lower <= x <= upper
//   rho       none s; huber; cauchy a^2 ln(1 + s / a^2), which lets a wild row pull ever less
//   step      (J'J + diag(J'J) / radius) d = -J'r, on the coordinates that are not held by a bound; the radius grows with
//             the ratio of actual to predicted decrease (Nielsen 1999)
//   J         by differences: forward on the way, central at the solution. A function that is smooth to about 1e-7 is enough.
// Priors are residuals like others; those from `robust` on bypass the loss.
// Reference: Madsen, Nielsen, Tingleff, Methods for Non-Linear Least Squares Problems, 2004; Triggs et al. 1999 for the loss.
#pragma once

#include <cstddef>
#include <functional>
#include <limits>
#include <string>
#include <string_view>
#include <vector>

namespace weft {

enum class LossFunction { none, huber, cauchy };

struct LeastSquaresOptions {
  int max_num_iterations = 50;
  double function_tolerance = 1e-9, gradient_tolerance = 1e-10, parameter_tolerance = 1e-8;
  double initial_trust_region_radius = 1e3, max_trust_region_radius = 1e12,
         min_trust_region_radius = 1e-12;
  LossFunction loss = LossFunction::none;
  double loss_scale = 1;          // a: residuals beyond it count less
  double difference_step = 1e-4;  // of each coordinate
};

enum class TerminationType { convergence, no_convergence, failure };

// Row-major.
struct DenseMatrix {
  std::size_t rows = 0, columns = 0;
  std::vector<double> values;
  DenseMatrix() = default;
  DenseMatrix(std::size_t r, std::size_t c) : rows(r), columns(c), values(r * c, 0.0) {}
  double& operator()(std::size_t r, std::size_t c) { return values[r * columns + c]; }
  double operator()(std::size_t r, std::size_t c) const { return values[r * columns + c]; }
};

struct LeastSquaresProblem {
  // As many residuals on each call; a result that is not finite refuses the step.
  std::function<std::vector<double>(const std::vector<double>&)> residuals;
  std::vector<double> start, lower, upper;
  std::size_t robust = std::numeric_limits<std::size_t>::max();
};

struct LeastSquaresSummary {
  TerminationType termination_type = TerminationType::failure;
  std::string message;
  double initial_cost = 0, final_cost = 0;
  int num_successful_steps = 0, num_unsuccessful_steps = 0, num_residual_evaluations = 0;
  std::vector<double> solution, residuals;
  DenseMatrix jacobian;  // of the residuals at the solution, without the loss
  bool is_solution_usable() const { return termination_type != TerminationType::failure; }
  std::string brief_report() const;
};

LeastSquaresSummary solve(const LeastSquaresProblem& problem, const LeastSquaresOptions& options);

// Central differences, inside the bounds.
DenseMatrix difference_jacobian(const LeastSquaresProblem& problem, const std::vector<double>& at,
                                double step);

// Of rho at residual r: how much it counts, 1 where the loss does nothing.
double loss_weight(LossFunction loss, double scale, double residual);

// ---- symmetric matrices

// (J' diag(w)^2 J + diag(d))^-1; w of all rows and d of all columns. A column that nothing determines has an infinite variance.
DenseMatrix posterior_covariance(const DenseMatrix& jacobian, const std::vector<double>& weights,
                                 const std::vector<double>& diagonal);

struct SymmetricEigen {
  std::vector<double> values;  // ascending
  DenseMatrix vectors;         // one per column
};
SymmetricEigen symmetric_eigen(const DenseMatrix& matrix);

// R with R R' = matrix, after negative eigenvalues were set to 0: draws with that covariance are R z.
DenseMatrix covariance_root(const DenseMatrix& matrix);

}  // namespace weft
