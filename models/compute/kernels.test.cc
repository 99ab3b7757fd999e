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
      EXPECT_LT(std::abs(error), 0.13) << name << " " << row.m << " " << row.n << " " << row.k;
      sum += std::abs(error);
    }
  }
  EXPECT_LT(sum / 18, 0.04);
}

// stas00/ml-engineering, the largest product found on each GPU (tests/validation G_compute_efficiency, mamf-all).
TEST(KernelTimes, LargestProductsFound) {
  struct Row {
    const char* gpu;
    Precision precision;
    double m, n, k, measured;
  };
  constexpr Row rows[] = {
      {"a100-sxm4-80gb", Precision::bf16, 1024, 10240, 5120, 271.2},
      {"a100-pcie-80gb", Precision::bf16, 2048, 5120, 6144, 252.9},
      {"h100-sxm5", Precision::bf16, 2048, 2048, 13312, 794.5},
      {"b200-sxm6", Precision::bf16, 1792, 16128, 3072, 1745.0},
      {"b300-sxm6", Precision::bf16, 12288, 18432, 1024, 1769.0},
      {"b200-sxm6", Precision::fp8, 15360, 4096, 3072, 3432.5},
      {"h100-sxm5", Precision::fp8, 1024, 9216, 14336, 1402.6},
      {"h200-sxm5", Precision::fp8, 1280, 4096, 12032, 1453.4},
      {"mi300x", Precision::bf16, 10240, 15360, 8192, 668.4},
  };
  double sum = 0;
  for (const Row& row : rows) {
    const KernelTimes times(rested_gpu(row.gpu), {});
    const double error =
        product_rate(times, row.m, row.n, row.k, row.precision) / 1e12 / row.measured - 1;
    EXPECT_LT(std::abs(error), 0.2) << row.gpu << " " << error;
    sum += std::abs(error);
  }
  EXPECT_LT(sum / std::size(rows), 0.1);
}

// bytedance/flux, products of one of eight ranks on L20, FP16 (tests/validation E_tp_overlap_kernels, flux-l20-tp8).
TEST(KernelTimes, ProductsOfATensorParallelMlpOnL20) {
  GpuSpec l20 = rested_gpu("l40s");
  l20.sms = 92;
  l20.power = Power{275};
  l20.peak["fp16"] = l20.peak["bf16"] = FlopRate{119.5e12};
  const KernelTimes times(l20, {});
  EXPECT_NEAR(times.gemm({.m = 4096, .n = 6144, .k = 12288}), 5.746e-3, 0.08 * 5.746e-3);
  EXPECT_NEAR(times.gemm({.m = 4096, .n = 12288, .k = 6144}), 5.392e-3, 0.08 * 5.392e-3);
}

// bytedance/flux, experts of eight H800: the fused kernels hold the product and a gather of tokens that it hides, so that the
// product alone takes less, but most of it (flux-moe-tp8-ep1-*, layer 0).
TEST(KernelTimes, GroupedProductsFitIntoFusedKernels) {
  const KernelTimes times(rested_gpu("h800-sxm5"), {});
  const double many = times.gemm({.m = 1024, .n = 1024, .k = 8192, .groups = 32});
  EXPECT_LT(many, 1.146e-3);
  EXPECT_GT(many, 0.5 * 1.146e-3);
  const double few = times.gemm({.m = 2048, .n = 1024, .k = 8192, .groups = 8});
  EXPECT_LT(few, 0.657e-3);
  EXPECT_GT(few, 0.5 * 0.657e-3);
}

// Azure/AI-benchmarking-guide, TB/s of a copy, 1 GiB (azure-hbm-*).
TEST(KernelTimes, StreamsOfH100AndH200) {
  const double bytes = 1 << 30;
  const auto rate = [&](const char* gpu) {
    return bytes / KernelTimes(rested_gpu(gpu), {}).memory({.bytes = bytes});
  };
  EXPECT_NEAR(rate("h100-sxm5"), 2.9e12, 0.03 * 2.9e12);
  EXPECT_NEAR(rate("h200-sxm5"), 4.01e12, 0.03 * 4.01e12);
}

TEST(KernelTimes, AWaveThatIsNotFullCostsAsMuch) {
  const KernelTimes times(rested_gpu("h100-sxm5"), {});
  // 128 of 132 SMs have a tile of 128 x 256; 160 tiles need a second wave of the largest tile or smaller ones.
  const double one = times.gemm({.m = 2048, .n = 2048, .k = 8192});
  const double more = times.gemm({.m = 2560, .n = 2048, .k = 8192});
  EXPECT_DOUBLE_EQ(times.gemm({.m = 1920, .n = 2048, .k = 8192}), one);
  EXPECT_GT(more, 1.25 * one);
}

TEST(KernelTimes, ShortProductsReadTheirWeights) {
  const GpuSpec gpu = rested_gpu("h100-sxm5");
  const KernelTimes times(gpu, {});
  const double weights = 2.0 * 8192 * 8192;
  const double floor = weights / (gpu.memory_bandwidth->bytes_per_s() * gpu.compute->memory_share);
  const double one = times.gemm({.m = 1, .n = 8192, .k = 8192});
  EXPECT_GT(one, floor);
  EXPECT_LT(one, 1.1 * floor);
}

TEST(KernelTimes, LessPowerSlowsProductsAndNotMemory) {
  GpuSpec gpu = rested_gpu("h100-sxm5");
  const KernelTimes full(gpu, {});
  gpu.power = Power{500};
  const KernelTimes limited(gpu, {});
  const Gemm gemm{.m = 8192, .n = 8192, .k = 8192};
  const double wanted = std::pow(700.0 / 500, gpu.compute->power_exponent);
  EXPECT_NEAR(limited.gemm(gemm) / full.gemm(gemm), wanted, 0.05 * wanted);
  EXPECT_EQ(limited.memory({.bytes = 1e9}), full.memory({.bytes = 1e9}));
}

// ---- attention

AttentionCall long_attention(AttentionKernel kernel) {
  AttentionCall call;
  call.batch = 2;
  call.queries = call.keys = 16384;
  call.heads = call.kv_heads = 16;
  call.head_dim = call.value_dim = 128;
  call.kernel = kernel;
  return call;
}

double attention_rate(const KernelTimes& times, const AttentionCall& call) {
  const double flops = attention_pairs(call) * call.batch * call.heads * 2 *
                       (call.head_dim + call.value_dim) * (call.backward ? 2.5 : 1);
  return flops / times.attention(call);
}

TEST(KernelTimes, CountsThePairsThatAMaskLeaves) {
  AttentionCall call;
  for (const double queries : {1.0, 5.0, 12.0}) {
    for (const double window : {0.0, 1.0, 4.0, 9.0, 12.0, 40.0}) {
      call.queries = queries;
      call.keys = 12;
      call.window = window;
      double counted = 0;
      for (int q = 0; q < static_cast<int>(queries); ++q) {
        for (int k = 0; k < 12; ++k) {
          const int at = 12 - static_cast<int>(queries) + q;
          counted += k <= at && (window == 0 || k > at - static_cast<int>(window)) ? 1 : 0;
        }
      }
      EXPECT_EQ(attention_pairs(call), counted) << queries << " " << window;
    }
  }
}

TEST(KernelTimes, LongAttentionReachesItsShare) {
  for (const auto& [name, kernel] : {std::pair{"a100-sxm4-80gb", AttentionKernel::flash2},
                                     std::pair{"h100-sxm5", AttentionKernel::flash3}}) {
    const GpuSpec gpu = rested_gpu(name);
    const KernelTimes times(gpu, {});
    AttentionCall call = long_attention(kernel);
    const double share = kernel == AttentionKernel::flash2 ? *gpu.compute->attention.flash2
                                                           : *gpu.compute->attention.flash3;
    const double peak = times.peak_flops(Precision::bf16);
    EXPECT_NEAR(attention_rate(times, call) / peak / share, 1, 0.03) << name;
    call.backward = true;
    EXPECT_NEAR(attention_rate(times, call) / peak / share, gpu.compute->attention_backward, 0.03);
  }
}

TEST(KernelTimes, NarrowHeadsAreSlowerOnWiderMatrixUnits) {
  const auto ratio = [](const char* name) {
    const KernelTimes times(rested_gpu(name), {});
    AttentionCall call = long_attention(AttentionKernel::flash2);
    const double wide = attention_rate(times, call);
    call.head_dim = call.value_dim = 64;
    return attention_rate(times, call) / wide;
  };
  // FlashAttention-2 on A100: 0.8 to 0.9; FlashAttention-3 on H100: about 0.75.
  EXPECT_NEAR(ratio("a100-sxm4-80gb"), 0.83, 0.05);
  EXPECT_NEAR(ratio("h100-sxm5"), 0.75, 0.05);
}

TEST(KernelTimes, AWindowMakesAttentionLinear) {
  const KernelTimes times(rested_gpu("h100-sxm5"), {});
  AttentionCall call = long_attention(AttentionKernel::flash2);
  call.window = 1024;
  const double once = times.attention(call);
  call.queries = call.keys = 32768;
  EXPECT_NEAR(times.attention(call) / once, 2, 0.1);
}

TEST(KernelTimes, ScoresInMemoryCostMoreThanFusedOnes) {
  const KernelTimes times(rested_gpu("a100-sxm4-80gb"), {});
  AttentionCall call = long_attention(AttentionKernel::flash2);
  call.queries = call.keys = 2048;
  const auto time = [&](AttentionKernel kernel) {
    call.kernel = kernel;
    return times.attention(call);
  };
  for (const bool backward : {false, true}) {
    call.backward = backward;
    EXPECT_LT(time(AttentionKernel::flash2), time(AttentionKernel::flash1));
    EXPECT_LT(time(AttentionKernel::flash1), time(AttentionKernel::fused_softmax));
    EXPECT_LT(time(AttentionKernel::fused_softmax), time(AttentionKernel::unfused));
  }
}

TEST(KernelTimes, DropoutIsAPassOverTheScores) {
  const GpuSpec gpu = rested_gpu("a100-sxm4-80gb");
  SoftwareSpec software;
  AttentionCall call = long_attention(AttentionKernel::fused_softmax);
  const double without = KernelTimes(gpu, software).attention(call);
  software.dropout = true;
  const double scores = call.batch * call.heads * call.queries * call.keys;
  const double bandwidth = gpu.memory_bandwidth->bytes_per_s() * gpu.compute->memory_share;
  EXPECT_NEAR(KernelTimes(gpu, software).attention(call) - without,
              5 * scores / bandwidth + gpu.compute->kernel_start.seconds(), 1e-9);
}

TEST(KernelTimes, DecodingReadsTheCache) {
  const GpuSpec gpu = rested_gpu("h100-sxm5");
  const KernelTimes times(gpu, {});
  AttentionCall call = long_attention(AttentionKernel::flash2);
  call.queries = 1;
  call.heads = 32;
  call.kv_heads = 8;
  call.batch = 64;
  const double bytes = 64 * 2.0 * 2 * 128 * 8 * 16384;
  const double floor = bytes / (gpu.memory_bandwidth->bytes_per_s() * gpu.compute->memory_share);
  EXPECT_NEAR(times.attention(call) / floor, 1, 0.05);
}

// ---- what cannot run

TEST(KernelTimes, RefusesWhatTheGpuDoesNotRun) {
  const KernelTimes volta(rested_gpu("v100-sxm2"), {});
  EXPECT_THROW(volta.gemm({.m = 1, .n = 1, .k = 1, .precision = Precision::fp8}), InputError);
  EXPECT_THROW(volta.attention(long_attention(AttentionKernel::flash3)), InputError);
  EXPECT_THROW(KernelTimes(GpuSpec{}, {}), InputError);
  GpuSpec no_memory = rested_gpu("h100-sxm5");
  no_memory.memory_bandwidth.reset();
  EXPECT_THROW(KernelTimes(no_memory, {}), InputError);
}

TEST(KernelTimes, ReportsAllThatTheGpuDoesNotRun) {
  Diagnostics out;
  check_kernels(rested_gpu("v100-sxm2"), {.attention = AttentionKernel::flash3},
                {.compute = Precision::fp8}, {}, "/jobs/0", out);
  ASSERT_EQ(out.error_count(), 2);
  EXPECT_EQ(out.problems()[0].fact, "v100-sxm2 has no fp8 peak");
  EXPECT_EQ(out.problems()[0].cure, "it has: fp32, fp16");
  EXPECT_EQ(out.problems()[1].fact, "v100-sxm2 does not run flash3 attention");
  EXPECT_EQ(out.problems()[1].cure, "it runs: unfused, fused-softmax");
  Diagnostics fine;
  check_kernels(rested_gpu("h100-sxm5"), {}, {}, {}, "", fine);
  EXPECT_TRUE(fine.ok());
}

}  // namespace
}  // namespace weft
