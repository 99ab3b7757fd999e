// SPDX-License-Identifier: Apache-2.0
// How long kernels take on one GPU: a roofline with few efficiencies, fitted per GPU generation (configs/compute).
//
//   gemm       max(tiles in whole waves over the SMs at the achievable rate, bytes over memory bandwidth), plus a start
//   attention  FLOPs of the causal half at the rate of the kernel's generation and head width; unfused: memory passes over
//              the score matrix instead
//   memory     bytes read and written over achievable bandwidth, by how well element-wise work is fused
#pragma once

#include <cstdint>
#include <vector>

#include "sim/core/units.hpp"
#include "sim/fabric/spec.hpp"
#include "sim/run/training_spec.hpp"

namespace weft {

// `groups` products of m x k by k x n in one kernel.
struct Gemm {
  double m = 0, n = 0, k = 0, groups = 1;
  Precision precision = Precision::bf16;
};
// Of one layer: `batch` sequences, `queries` against `keys` tokens; a backward pass does 2.5 times the work.
struct AttentionCall {
  double batch = 1, queries = 0, keys = 0, heads = 0, kv_heads = 0, head_dim = 0, value_dim = 0;
  double window = 0;  // 0: none
  bool causal = true, backward = false;
  AttentionKernel kernel = AttentionKernel::flash2;
};
struct MemoryPass {
  double bytes = 0;    // read and written, when fully fused
  double kernels = 1;  // launches when not fused
};

class KernelTimes {
 public:
  // Throws InputError when the GPU has no peak for what is asked later (named precision) or no memory bandwidth.
  KernelTimes(const GpuSpec& gpu, const SoftwareSpec& software);

  // Seconds.
  double gemm(const Gemm& gemm) const;
  double attention(const AttentionCall& call) const;
  double memory(const MemoryPass& pass) const;
  double launch() const;                 // host time of one kernel, when the host is the limit
  double peak_flops(Precision p) const;  // dense, datasheet
  double slowdown_beside_collectives() const;  // factor on compute while a collective runs

 private:
  const GpuSpec& gpu_;
  SoftwareSpec software_;
};

}  // namespace weft
