// SPDX-License-Identifier: Apache-2.0
#include "models/compute/kernels.hpp"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "sim/core/text.hpp"

namespace weft {
namespace {

constexpr double kTera = 1e12;

// What libraries cut results into. Smaller tiles load more operands per product: 1 + kReload (1/m + 1/n), relative to 128 x 256;
// fitted with the waves to the FP8 products of H100 and H200 (azure-gemm).
struct Tile {
  double m, n;
};
constexpr Tile kTiles[] = {{128, 256}, {256, 128}, {128, 192}, {128, 160},
                           {128, 128}, {128, 64},  {64, 64}};
constexpr double kReload = 14;
constexpr double reload(Tile tile) { return 1 + kReload * (1 / tile.m + 1 / tile.n); }

// Matrix instructions take 16 rows (PTX, mma.m16n8k16); beyond 64 rows tiles are as good as splitting k.
constexpr double kFewRows = 64, kRowsOfInstruction = 16;

constexpr double kAttentionBlock = 128;     // queries that one thread block takes
constexpr double kAttentionBackward = 2.5;  // five products instead of two
constexpr double kShortQueries = 64;        // below it the keys are split over the SMs
constexpr double kExponentials = 16;        // per SM and clock (CUDA programming guide)
constexpr double kWideHead = 128;

// Bytes per score that the kernels between the two products read and write, in 16 bits: softmax 4 (backward 6); unfused also
// scale 4 and mask 4; dropout 5, a byte of mask among them.
struct ScorePasses {
  double forward, backward, kernels;
};
constexpr ScorePasses kFusedSoftmax{4, 6, 1}, kUnfused{12, 14, 3};
constexpr double kDropoutPass = 5;
// Bytes per score of adding a bias: in a kernel that keeps scores on the SM, the bias, and going back its gradient too; else the
// scores are read and written, or their gradients read.
constexpr double kBias = 2, kBiasBackward = 4, kBiasPass = 4, kBiasPassBackward = 2;

template <class E>
std::size_t index(E value) {
  return static_cast<std::size_t>(value);
}

// By falling preference, names of peaks in configs/gpus.
std::vector<std::string_view> peak_names(Precision precision) {
  if (precision == Precision::mxfp8) return {"mxfp8", "fp8"};
  if (precision == Precision::nvfp4) return {"nvfp4", "fp4"};
  for (const auto& [value, name] : enum_names(precision)) {
    if (value == precision) return {name};
  }
  return {};
}

double datasheet_peak(const GpuSpec& gpu, Precision precision) {
  for (const std::string_view name : peak_names(precision)) {
    const auto found = gpu.peak.find(std::string(name));
    if (found != gpu.peak.end() && found->second.per_s > 0) return found->second.per_s;
  }
  return 0;
}

double peak_16_bit(const GpuSpec& gpu) {
  return std::max(datasheet_peak(gpu, Precision::bf16), datasheet_peak(gpu, Precision::fp16));
}

std::optional<double> share_of(const AttentionShares& shares, AttentionKernel kernel) {
  switch (kernel) {
    case AttentionKernel::unfused:
    case AttentionKernel::fused_softmax:
      return 1;
    case AttentionKernel::flash1:
      return shares.flash1;
    case AttentionKernel::flash2:
      return shares.flash2;
    case AttentionKernel::flash3:
      return shares.flash3;
    case AttentionKernel::cudnn:
      return shares.cudnn;
  }
  return std::nullopt;
}

double share_of(const ComputeSpec& compute, Precision precision) {
  switch (precision) {
    case Precision::fp8:
    case Precision::mxfp8:
      return compute.fp8_share;
    case Precision::nvfp4:
      return compute.fp4_share;
    default:
      return compute.gemm_share;
  }
}

// Voltage and clock follow the board's power: what a GPU has per TFLOP/s of its peak against the one that was measured.
double power_factor(const GpuSpec& gpu) {
  const ComputeSpec& compute = *gpu.compute;
  const double peak = peak_16_bit(gpu);
  if (!gpu.power || gpu.power->watts <= 0 || !compute.watts_per_tflop || peak <= 0) return 1;
  return std::min(1.0, std::pow(gpu.power->watts / (peak / kTera) / *compute.watts_per_tflop,
                                compute.power_exponent));
}

std::string name_of(Precision precision) { return write_config(precision).text; }
std::string name_of(AttentionKernel kernel) { return write_config(kernel).text; }

std::string lacks_precision(std::string_view gpu, Precision precision) {
  return fmt::format("{} has no {} peak", gpu, name_of(precision));
}
std::string lacks_attention(std::string_view gpu, AttentionKernel kernel) {
  return fmt::format("{} does not run {} attention", gpu, name_of(kernel));
}

}  // namespace

double attention_pairs(const AttentionCall& call) {
  const double q = call.queries, k = call.keys;
  if (!call.causal) return q * (call.window > 0 ? std::min(k, call.window) : k);
  // Query i of q sees the k - q + i + 1 keys up to itself.
  const double full = q * (k - q) + q * (q + 1) / 2;
  if (call.window <= 0 || call.window >= k) return full;
  const double first = k - q + 1;
  if (first >= call.window) return q * call.window;
  const double growing = call.window - first;  // queries that still see less than the window
  return growing * (first + call.window - 1) / 2 + (q - growing) * call.window;
}

KernelTimes::KernelTimes(const GpuSpec& gpu, const SoftwareSpec& software) : name_(gpu.name) {
  if (!gpu.compute)
    throw InputError(fmt::format(
        "{} has no compute efficiencies: \"computing\" names a file of configs/compute", name_));
  if (!gpu.memory_bandwidth || gpu.sms <= 0 || peak_16_bit(gpu) <= 0)
    throw InputError(fmt::format(
        "{} lacks \"memory_bandwidth\", \"sms\" or a 16-bit peak: computing has no time", name_));
  const ComputeSpec& compute = *gpu.compute;
  const double power = power_factor(gpu);
  for (const auto& [precision, name] : enum_names(Precision{})) {
    const double peak = datasheet_peak(gpu, precision);
    peak_[index(precision)] = peak;
    achieved_[index(precision)] = peak * share_of(compute, precision) * power * compute.sustained;
  }
  const double peak16 = peak_16_bit(gpu);
  for (const auto& [kernel, name] : enum_names(AttentionKernel{}))
    attention_share_[index(kernel)] =
        share_of(compute.attention, kernel).value_or(0) * peak16 * power * compute.sustained;
  sms_ = gpu.sms;
  bandwidth_ = gpu.memory_bandwidth->bytes_per_s() * compute.memory_share;
  wave_start_ = compute.wave_start.seconds();
  kernel_start_ = compute.kernel_start.seconds();
  if (!software.graphs) {
    launch_ = compute.host_launch.seconds();
    host_expert_layer_ = compute.host_expert_layer.seconds();
    host_expert_ = compute.host_expert.seconds();
  }
  dropout_ = software.dropout;
  eager_ = software.fusion == Fusion::eager;
  if (eager_) spill_ = compute.eager_spill;
  if (software.fusion == Fusion::te) spill_ = compute.te_spill;
  backward_ = compute.attention_backward;
  optimizer_share_ = compute.optimizer_share;
  beside_ = compute.beside_collectives;
  if (gpu.clock) score_width_ = peak16 / (sms_ * gpu.clock->hz) / (4 * kExponentials);
}

double KernelTimes::peak_flops(Precision p) const {
  if (peak_[index(p)] <= 0) throw InputError(lacks_precision(name_, p));
  return peak_[index(p)];
}

double KernelTimes::achieved(Precision p) const {
  if (peak_[index(p)] <= 0) throw InputError(lacks_precision(name_, p));
  return achieved_[index(p)];
}

double KernelTimes::gemm(const Gemm& gemm) const {
  if (gemm.m <= 0 || gemm.n <= 0 || gemm.k <= 0 || gemm.groups <= 0) return 0;
  const double of_sm = achieved(gemm.precision) / sms_;
  double best = HUGE_VAL;
  for (const Tile tile : kTiles) {
    const double tiles = gemm.groups * std::ceil(gemm.m / tile.m) * std::ceil(gemm.n / tile.n);
    const double wave =
        2 * tile.m * tile.n * gemm.k / of_sm * reload(tile) / reload(kTiles[0]) + wave_start_;
    best = std::min(best, std::ceil(tiles / sms_) * wave);
  }
  if (gemm.splits && gemm.m <= kFewRows) {
    const double rows = std::ceil(gemm.m / kRowsOfInstruction) * kRowsOfInstruction;
    best = std::min(best, 2 * gemm.groups * rows * gemm.n * gemm.k / (of_sm * sms_));
  }
  const double operand = bytes_of(gemm.precision);
  const double weight = gemm.weight_bytes > 0 ? gemm.weight_bytes : operand;
  const double bytes = gemm.groups * (gemm.m * gemm.k * operand + gemm.n * gemm.k * weight +
                                      gemm.m * gemm.n * gemm.output_bytes);
  return kernel_start_ + std::max(best, bytes / bandwidth_);
}

double KernelTimes::fused_attention(const AttentionCall& call) const {
  const double share = attention_share_[index(call.kernel)];
  if (share <= 0) throw InputError(lacks_attention(name_, call.kernel));
  const double keys = call.window > 0 ? std::min(call.keys, call.window) : call.keys;
  const bool masked = call.causal || call.window > 0;
  // Blocks on the edge of the mask are worked on whole.
  const double per_query =
      attention_pairs(call) / call.queries + (masked ? kAttentionBlock / 2 : 0.0);
  const double width = (call.head_dim + call.value_dim) / 2;
  const double rate =
      share * width / (width + score_width_) * (kWideHead + score_width_) / kWideHead;
  const double blocks = call.batch * call.heads * std::ceil(call.queries / kAttentionBlock);
  double rows = blocks * std::min(call.queries, kAttentionBlock) * per_query / sms_;
  if (call.queries > kShortQueries) {  // of the SM that has most
    const double longest = kAttentionBlock * std::max(keys, per_query);
    rows = masked ? std::max(rows, longest) : std::ceil(blocks / sms_) * longest;
  }
  const double work = call.backward ? kAttentionBackward / backward_ : 1;
  const double seconds = rows * sms_ * 4 * width * work / rate;
  const double bytes = (call.backward ? 2 : 1) * 2 * call.batch * 2 * width *
                           (call.queries * call.heads + call.keys * call.kv_heads) +
                       (call.biased ? call.batch * call.heads * attention_pairs(call) *
                                          (call.backward ? kBiasBackward : kBias)
                                    : 0);
  return kernel_start_ + std::max(seconds, bytes / bandwidth_);
}

double KernelTimes::unfused_attention(const AttentionCall& call) const {
  const double groups = call.batch * call.heads;
  const double q = call.queries, k = call.keys;
  const Precision p = peak_[index(Precision::bf16)] > 0 ? Precision::bf16 : Precision::fp16;
  const auto product = [&](double m, double n, double depth) {
    return gemm({.m = m, .n = n, .k = depth, .groups = groups, .precision = p});
  };
  const ScorePasses& passes = call.kernel == AttentionKernel::unfused ? kUnfused : kFusedSoftmax;
  const double per_score =
      (call.backward ? passes.backward : passes.forward) + (dropout_ ? kDropoutPass : 0);
  // All sequences of the batch have the same biases, which the gradients are added up to.
  const double bias = !call.biased    ? 0
                      : call.backward ? kBiasPassBackward + kBiasBackward / call.batch
                                      : kBiasPass + kBias / call.batch;
  const double kernels = passes.kernels + (dropout_ ? 1 : 0) + (call.biased ? 1 : 0);
  const double scores = groups * q * k * (per_score + bias) / bandwidth_ + kernels * kernel_start_;
  if (!call.backward) return product(q, k, call.head_dim) + scores + product(q, call.value_dim, k);
  return product(k, call.value_dim, q) + product(q, k, call.value_dim) + scores +
         product(q, call.head_dim, k) + product(k, call.head_dim, q);
}

double KernelTimes::attention(const AttentionCall& call) const {
  if (call.batch <= 0 || call.queries <= 0 || call.keys <= 0 || call.heads <= 0) return 0;
  const bool fused =
      call.kernel != AttentionKernel::unfused && call.kernel != AttentionKernel::fused_softmax;
  return fused ? fused_attention(call) : unfused_attention(call);
}

double KernelTimes::host_experts(double experts) const {
  return host_expert_layer_ + experts * host_expert_;
}

double KernelTimes::launches(const MemoryPass& pass) const { return eager_ ? pass.kernels : 1; }

double KernelTimes::memory(const MemoryPass& pass) const {
  if (pass.bytes <= 0) return 0;
  return pass.bytes * (1 + spill_ * (pass.kernels - 1)) / bandwidth_ +
         launches(pass) * kernel_start_;
}

double KernelTimes::optimizer(double bytes) const {
  return bytes / (bandwidth_ * optimizer_share_);
}

AttentionKernel fastest_attention(const GpuSpec& gpu) {
  const AttentionShares shares = gpu.compute ? gpu.compute->attention : AttentionShares{};
  if (shares.flash3) return AttentionKernel::flash3;
  if (shares.flash2) return AttentionKernel::flash2;
  return shares.flash1 ? AttentionKernel::flash1 : AttentionKernel::unfused;
}

void check_kernels(const GpuSpec& gpu, const SoftwareSpec& software, const DtypeSpec& dtype,
                   Place place, const std::string& pointer, Diagnostics& out) {
  if (!gpu.compute) {
    out.error(place, pointer, fmt::format("{} has no compute efficiencies", gpu.name),
              "its \"computing\" names a file of configs/compute; see `weft list compute`");
    return;
  }
  if (!gpu.memory_bandwidth || gpu.sms <= 0 || peak_16_bit(gpu) <= 0)
    out.error(place, pointer, fmt::format("nothing tells how fast {} computes", gpu.name),
              "it needs \"memory_bandwidth\", \"sms\" and a 16-bit peak");
  if (datasheet_peak(gpu, dtype.compute) <= 0) {
    std::vector<std::string> known;
    for (const auto& [precision, name] : enum_names(Precision{})) {
      if (datasheet_peak(gpu, precision) > 0) known.emplace_back(name);
    }
    out.error(place, pointer, lacks_precision(gpu.name, dtype.compute),
              "it has: " + join(known, ", "));
  }
  if (!share_of(gpu.compute->attention, software.attention)) {
    std::vector<std::string> known;
    for (const auto& [kernel, name] : enum_names(AttentionKernel{})) {
      if (share_of(gpu.compute->attention, kernel)) known.emplace_back(name);
    }
    out.error(place, pointer, lacks_attention(gpu.name, software.attention),
              "it runs: " + join(known, ", "));
  }
}

}  // namespace weft
