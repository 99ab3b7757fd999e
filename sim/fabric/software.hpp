// SPDX-License-Identifier: Apache-2.0
// What every file of the catalogue starts with, and what software costs on hardware: communication kernels and computing by GPU
// generation, proxies by kind of network.
#pragma once

#include <map>
#include <optional>
#include <string>

#include "sim/core/config.hpp"

namespace weft {

// What a file may ask of one part. Far beyond any hardware, and small enough that sums along a path or over a bundle fit.
inline constexpr Bandwidth kMostRate{1'000'000'000'000'000};
inline constexpr Time kMostDelay = 10_s;
inline constexpr Bytes kMostPacket = 1_GiB;

// What every file starts with.
struct SchemaVersion {
  int schema = 1;
  template <class V>
  void visit(V&& v) {
    v("schema", schema, "version of the file format", between(1, 1));
  }
};

struct ComponentHead {
  SchemaVersion weft;
  std::string kind, name, summary;
  std::map<std::string, std::string> sources;
  template <class V>
  void visit_head(V&& v) {
    v("weft", weft, "the file format");
    v("kind", kind, "gpu, compute, kernels, nic, proxy, switch, link, server, fabric or llm");
    v("name", name, "the file's stem");
    v("summary", summary, "one line for people");
    v("sources", sources, "JSON pointer prefix -> measured: ..., datasheet: ... or assumed: ...");
  }
};

// What a GPU's communication kernels cost, as a library of collectives runs them: fitted per GPU generation.
// LL:      8-byte words, 4 data and 4 flag, stored and polled: half of the wire, the lowest latency.
// LL128:   128-byte lines, 120 data and 8 flag.
// Simple:  bulk copies with a fence and a flag per slice.
struct KernelsSpec : ComponentHead {
  Time ll_step = 600_ns, ll128_step = 1900_ns, simple_step = 3400_ns;
  double efficiency = 0.9, ll128_share = 0.92;
  Bandwidth channel_rate{0};
  Time nvls_round{0};
  Time start = 5'500_ns;  // measured: 8 bytes over 8 H100 take 13.0 us, less 14 hops
  std::optional<Time> issue, issue_block;
  template <class V>
  void visit(V&& v) {
    visit_head(v);
    v("ll_step", ll_step, "one hop of LL inside a server, without the wire", at_most(kMostDelay));
    v("ll128_step", ll128_step, "the same for LL128", at_most(kMostDelay));
    v("simple_step", simple_step, "the same for Simple: fence, flag and poll of a step",
      at_most(kMostDelay));
    v("efficiency", efficiency, "share of a scale-up link's payload that kernels reach",
      between(0.01, 1));
    v("ll128_share", ll128_share, "share of that which LL128 moves, flags included",
      between(0.01, 1));
    v("channel_rate", channel_rate, "most that one channel (thread block) moves; 0: no limit",
      at_most(kMostRate));
    v("nvls_round", nvls_round,
      "what every round of chunks through a reducing switch costs beside its bytes",
      at_most(kMostDelay));
    v("start", start, "of a kernel on the GPU: to its first store and from its last",
      at_most(kMostDelay));
    v("issue", issue,
      "host time to issue a collective, per GPU that one process drives; absent: what the way of "
      "launching costs",
      at_most(kMostDelay));
    v("issue_block", issue_block, "the same for every block of its kernel", at_most(kMostDelay));
  }
};

// What a hop through a NIC costs a library of collectives: the proxy thread that posts it, the adapter, the completion.
struct ProxySpec : ComponentHead {
  Time ll_step = 5_us, bulk_step = 14_us;
  double efficiency = 0.95;
  Time chunk_time{0};
  template <class V>
  void visit(V&& v) {
    visit_head(v);
    v("ll_step", ll_step, "one hop of LL between servers, without the wire", at_most(kMostDelay));
    v("bulk_step", bulk_step, "the same for LL128 and Simple", at_most(kMostDelay));
    v("efficiency", efficiency, "share of the port's payload that connections reach",
      between(0.01, 1));
    v("chunk_time", chunk_time,
      "what each 128 KiB of a connection costs one after the other; 0: chunks overlap",
      at_most(kMostDelay));
  }
};

// Share of the 16-bit matrix peak that attention kernels reach going forward, at head width 128 on long sequences. A kernel that
// is left out does not run on the generation.
struct AttentionShares {
  std::optional<double> flash1, flash2, flash3, cudnn;
  template <class V>
  void visit(V&& v) {
    v("flash1", flash1, "FlashAttention (arXiv 2205.14135)", between(0.01, 1));
    v("flash2", flash2, "FlashAttention-2 (arXiv 2307.08691)", between(0.01, 1));
    v("flash3", flash3, "FlashAttention-3 (arXiv 2407.08608)", between(0.01, 1));
    v("cudnn", cudnn, "the fused kernels of cuDNN", between(0.01, 1));
  }
};

// How much of its data sheet a GPU generation reaches on the kernels of language models (models/compute): fitted, at most
// twelve numbers per generation.
struct ComputeSpec : ComponentHead {
  double gemm_share = 0.8, fp8_share = 0.7, fp4_share = 0.6, sustained = 0.8, memory_share = 0.85;
  Time wave_start = 3500_ns, kernel_start = 2400_ns, host_launch = 6_us, host_expert_layer = 2_ms,
       host_expert = 67_us;
  AttentionShares attention;
  double attention_backward = 0.85, eager_spill = 0.6, te_spill = 0.1, optimizer_share = 0.9,
         beside_collectives = 1.05, power_exponent = 0.24;
  std::optional<double> watts_per_tflop;
  template <class V>
  void visit(V&& v) {
    visit_head(v);
    v("gemm_share", gemm_share, "share of the peak that long matrix products reach, up to 16 bits",
      between(0.01, 1));
    v("fp8_share", fp8_share, "the same for FP8 and MXFP8", between(0.01, 1));
    v("fp4_share", fp4_share, "the same for NVFP4", between(0.01, 1));
    v("sustained", sustained,
      "rate of products and attention within a long step over that of one kernel alone: power and "
      "heat hold clocks down",
      between(0.01, 1));
    v("memory_share", memory_share, "share of the memory bandwidth that streaming kernels reach",
      between(0.01, 1));
    v("wave_start", wave_start, "what each wave of tiles over the SMs costs beside its products",
      at_most(kMostDelay));
    v("kernel_start", kernel_start, "start and drain of one kernel on the GPU",
      at_most(kMostDelay));
    v("host_launch", host_launch, "time of the host for one kernel, framework included",
      at_most(kMostDelay));
    v("host_expert_layer", host_expert_layer,
      "time of the host for a forward pass through a layer of experts, waits for counts of tokens "
      "included; going back twice as much; nothing with graphs",
      at_most(kMostDelay));
    v("host_expert", host_expert, "more of it for each expert of the rank", at_most(kMostDelay));
    v("attention", attention, "share of the 16-bit peak by attention kernel");
    v("attention_backward", attention_backward, "rate of a backward pass over the forward one's",
      between(0.01, 1));
    v("eager_spill", eager_spill,
      "traffic that each further unfused kernel adds, over that of the fused pass", between(0, 10));
    v("te_spill", te_spill, "the same with the fused kernels of a training library",
      between(0, 10));
    v("optimizer_share", optimizer_share, "bandwidth of the optimizer's step over that of streams",
      between(0.01, 1));
    v("beside_collectives", beside_collectives, "factor on computing while collectives run",
      between(1, 10));
    v("watts_per_tflop", watts_per_tflop,
      "board power over 16-bit peak of the GPU that gemm_share was measured on; absent: power "
      "limits nothing",
      positive);
    v("power_exponent", power_exponent, "matrix rates grow with board power to this exponent",
      between(0, 1));
  }
};

}  // namespace weft
