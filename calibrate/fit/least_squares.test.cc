// SPDX-License-Identifier: Apache-2.0
#include "calibrate/fit/least_squares.hpp"

#include <cmath>

#include <gtest/gtest.h>

#include "calibrate/fit/fit.hpp"

namespace weft {
namespace {

LeastSquaresProblem rosenbrock() {
  LeastSquaresProblem p;
  p.residuals = [](const std::vector<double>& x) {
    return std::vector<double>{10 * (x[1] - x[0] * x[0]), 1 - x[0]};
  };
  p.start = {-1.2, 1};
  p.lower = {-10, -10};
  p.upper = {10, 10};
  return p;
}

TEST(LeastSquares, FindsTheMinimumOfRosenbrocksValley) {
  LeastSquaresOptions options;
  options.max_num_iterations = 200;
  options.difference_step = 1e-7;
  const LeastSquaresSummary s = solve(rosenbrock(), options);
  EXPECT_EQ(s.termination_type, TerminationType::convergence) << s.brief_report();
  EXPECT_NEAR(s.solution[0], 1, 1e-5);
  EXPECT_NEAR(s.solution[1], 1, 1e-5);
  EXPECT_LT(s.final_cost, 1e-10);
}

TEST(LeastSquares, StopsAtABoundWhereTheMinimumLiesBeyond) {
  LeastSquaresProblem p = rosenbrock();
  p.upper = {0.5, 10};
  LeastSquaresOptions options;
  options.max_num_iterations = 200;
  options.difference_step = 1e-7;
  const LeastSquaresSummary s = solve(p, options);
  EXPECT_DOUBLE_EQ(s.solution[0], 0.5);
  EXPECT_NEAR(s.solution[1], 0.25, 1e-4);
}

// y = 3 x with one wild point: least squares is pulled by a third, a Cauchy loss hardly.
TEST(LeastSquares, ARobustLossIgnoresAWildRow) {
  LeastSquaresProblem p;
  p.residuals = [](const std::vector<double>& a) {
    std::vector<double> r;
    for (int x = 1; x <= 9; ++x) r.push_back(a[0] * x - (x == 9 ? 60 : 3 * x));
    return r;
  };
  p.start = {1};
  p.lower = {0};
  p.upper = {100};
  LeastSquaresOptions options;
  EXPECT_GT(solve(p, options).solution[0], 3.9);
  options.loss = LossFunction::cauchy;
  options.loss_scale = 0.5;
  EXPECT_NEAR(solve(p, options).solution[0], 3, 0.02);
}

TEST(LeastSquares, CovarianceOfALineIsItsClosedForm) {
  DenseMatrix j(3, 2);  // y = a + b x at -1, 0, 1
  for (std::size_t i = 0; i < 3; ++i) {
    j(i, 0) = 1;
    j(i, 1) = static_cast<double>(i) - 1;
  }
  const DenseMatrix c = posterior_covariance(j, {1, 1, 1}, {0, 0});
  EXPECT_NEAR(c(0, 0), 1.0 / 3, 1e-12);
  EXPECT_NEAR(c(1, 1), 1.0 / 2, 1e-12);
  EXPECT_NEAR(c(0, 1), 0, 1e-12);
}

TEST(LeastSquares, AColumnThatNothingDependsOnHasNoEstimate) {
  DenseMatrix j(2, 2);
  j(0, 0) = j(1, 0) = 1;
  const DenseMatrix c = posterior_covariance(j, {1, 1}, {0, 0});
  EXPECT_NEAR(c(0, 0), 0.5, 1e-12);
  EXPECT_TRUE(std::isinf(c(1, 1)));
}

TEST(LeastSquares, TheRootOfACovarianceGivesItBack) {
  DenseMatrix c(2, 2);
  c(0, 0) = 4;
  c(1, 1) = 2;
  c(0, 1) = c(1, 0) = 1;
  const DenseMatrix r = covariance_root(c);
  for (std::size_t i = 0; i < 2; ++i)
    for (std::size_t k = 0; k < 2; ++k)
      EXPECT_NEAR(r(i, 0) * r(k, 0) + r(i, 1) * r(k, 1), c(i, k), 1e-12);
}

TEST(StudentT, AgreesWithTables) {
  EXPECT_NEAR(student_t(0.95, 4), 2.776, 0.0005);
  EXPECT_NEAR(student_t(0.95, 10), 2.228, 0.0005);
  EXPECT_NEAR(student_t(0.90, 30), 1.697, 0.0005);
  EXPECT_NEAR(student_t(0.95, 1e9), 1.960, 0.001);
}

}  // namespace
}  // namespace weft
