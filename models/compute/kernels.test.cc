// SPDX-License-Identifier: Apache-2.0
#include "models/compute/kernels.hpp"

#include <algorithm>
#include <cmath>
#include <cstdio>

#include <gtest/gtest.h>

#include "tests/support/gpus.hpp"

namespace weft {
namespace {

using testing::catalogue_gpu;

// As a benchmark of kernels sees it.
GpuSpec rested_gpu(const char* name) {
  GpuSpec gpu = catalogue_gpu(name);
  gpu.compute->sustained = 1;
  return gpu;
}

double product_rate(const KernelTimes& times, double m, double n, double k, Precision p) {
  return 2 * m * n * k / times.gemm({.m = m, .n = n, .k = k, .precision = p});
}

TEST(KernelTimes, LongProductsReachTheirShareOfThePeak) {
  for (const char* name : {"v100-sxm2", "a100-sxm4-80gb", "h100-sxm5", "b200-sxm6"}) {
    const GpuSpec gpu = rested_gpu(name);
    const KernelTimes times(gpu, {});
    const double rate = product_rate(times, 32768, 32768, 32768, Precision::fp16);
    EXPECT_NEAR(rate / times.peak_flops(Precision::fp16) / gpu.compute->gemm_share, 1, 0.03)
        << name;
  }
}

// Azure/AI-benchmarking-guide, cuBLASLt with FP8 inputs (tests/validation G_compute_efficiency, azure-gemm-*), TFLOP/s.
TEST(KernelTimes, Fp8ProductsOfH100AndH200ByShape) {
  struct Row {
    double m, n, k, h200, h100;
  };
  constexpr Row rows[] = {
      {1024, 1024, 1024, 290.8, 274.1},      {2048, 2048, 2048, 1013.4, 1011.3},
      {4096, 4096, 4096, 1249.1, 1216.9},    {8192, 8192, 8192, 1300.6, 1290.1},
      {16384, 16384, 16384, 1366.3, 1377.3}, {32768, 32768, 32768, 1349.5, 1382.2},
      {1024, 2145, 1024, 407.9, 410.7},      {6144, 12288, 12288, 1318.0, 1351.4},
      {802816, 192, 768, 717.5, 663.8}};
  double sum = 0;
  for (const char* name : {"h100-sxm5", "h200-sxm5"}) {
    const GpuSpec gpu = rested_gpu(name);
    const KernelTimes times(gpu, {});
    for (const Row& row : rows) {
      const double measured = name == std::string("h100-sxm5") ? row.h100 : row.h200;
      const double error =
          product_rate(times, row.m, row.n, row.k, Precision::fp8) / 1e12 / measured - 1;
      EXPECT_LT(std::abs(error), 0.09) << name << " " << row.m << " " << row.n << " " << row.k;
      sum += std::abs(error);
    }
  }
  EXPECT_LT(sum / 18, 0.035);
}

}  // namespace
}  // namespace weft
