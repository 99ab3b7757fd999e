// SPDX-License-Identifier: Apache-2.0
// How long kernels take on one GPU: rooflines with few efficiencies, fitted per GPU generation (configs/compute).
//
//   gemm       waves of tiles over the SMs: a wave takes 2 tile_m tile_n k / (rate of one SM) + wave_start; the tile that is
//              fastest wins. Not below bytes / memory bandwidth. Plus kernel_start.
//   rate       peak x gemm_share (fp8_share, fp4_share) x sustained x (watts per TFLOP/s over those of the GPU that gemm_share was
//              measured on, at most 1)^power_exponent. Kernel tables have sustained = 1: a table is short, a step is long.
//   attention  FLOPs inside the causal mask (or window), cut in blocks, at the share of the peak that the kernel reaches. A score
//              also costs an exponential: sixteen per SM and clock, so that narrow heads are slower on wide matrix units. Unfused:
//              two matrix products over the full square, and memory passes over the scores.
//   memory     bytes over streaming bandwidth; every further unfused kernel spills and reads back a share of them.
//
// Example: 8192^3 in FP8 on an H100 is 1,300 TFLOP/s (1,290 measured), 1024^3 280 (274 measured).
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "sim/core/diagnostics.hpp"
#include "sim/core/units.hpp"
#include "sim/fabric/spec.hpp"
#include "sim/run/training_spec.hpp"

namespace weft {

// `groups` products of m x k by k x n in one kernel.
struct Gemm {
  double m = 0, n = 0, k = 0, groups = 1;
  Precision precision = Precision::bf16;
  double output_bytes = 2;  // moved per element of the result; 8: gradients accumulated in FP32
  double weight_bytes = 0;  // of an element of the k x n operand; 0: as `precision`
  bool splits = false;      // with few rows k is split over the SMs, as inference engines do
};
// Of one layer: `batch` sequences, `queries` against `keys` tokens, the queries being the last of the keys when causal; a
// backward pass does 2.5 times the work.
struct AttentionCall {
  double batch = 1, queries = 0, keys = 0, heads = 0, kv_heads = 0, head_dim = 0, value_dim = 0;
  double window = 0;  // 0: none
  bool causal = true, backward = false;
  bool biased = false;  // a number per head and pair is added to the score (relative positions)
  AttentionKernel kernel = AttentionKernel::flash2;
};
struct MemoryPass {
  double bytes = 0;    // read and written, when fully fused
  double kernels = 1;  // launches when not fused
};

// (query, key) pairs that are not masked.
double attention_pairs(const AttentionCall& call);

class KernelTimes {
 public:
  // Throws InputError when the GPU has no compute efficiencies, peaks or memory bandwidth.
  KernelTimes(const GpuSpec& gpu, const SoftwareSpec& software);

  // Seconds. Throw InputError when the GPU has no peak for the precision, or does not run the attention kernel.
  double gemm(const Gemm& gemm) const;
  double attention(const AttentionCall& call) const;
  double memory(const MemoryPass& pass) const;
  double optimizer(double bytes) const;
  double launch() const { return launch_; }  // host time of one kernel, when the host is the limit
  double gap() const { return kernel_start_; }    // between two kernels
  double host_experts(double experts) const;      // of one forward pass, when the host is the limit
  double launches(const MemoryPass& pass) const;  // kernels that the pass really is
  double peak_flops(Precision p) const;           // dense, datasheet
  double slowdown_beside_collectives() const { return beside_; }  // factor on compute

 private:
  double achieved(Precision p) const;  // FLOP/s of long products
  double fused_attention(const AttentionCall& call) const;
  double unfused_attention(const AttentionCall& call) const;

  static constexpr std::size_t kPrecisions = enum_names(Precision{}).size();
  static constexpr std::size_t kAttentions = enum_names(AttentionKernel{}).size();
  std::string name_;
  std::array<double, kPrecisions> peak_{}, achieved_{};
  std::array<double, kAttentions> attention_share_{};
  double sms_ = 1, bandwidth_ = 1, wave_start_ = 0, kernel_start_ = 0, launch_ = 0,
         host_expert_layer_ = 0, host_expert_ = 0, spill_ = 0, backward_ = 1, optimizer_share_ = 1,
         beside_ = 1, score_width_ = 0;
  bool eager_ = false, dropout_ = false;
};

// Reports what the GPU cannot run of a job: a precision without a peak, an attention kernel of another generation.
void check_kernels(const GpuSpec& gpu, const SoftwareSpec& software, const DtypeSpec& dtype,
                   Place place, const std::string& pointer, Diagnostics& out);

// The attention kernel that runs fastest on the GPU.
AttentionKernel fastest_attention(const GpuSpec& gpu);

}  // namespace weft
