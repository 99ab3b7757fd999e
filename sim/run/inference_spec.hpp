// SPDX-License-Identifier: Apache-2.0
// An inference job: a model on GPUs that answers requests.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "sim/core/config.hpp"
#include "sim/run/training_spec.hpp"

namespace weft {

enum class Arrival { at_once, uniform, poisson, closed };
constexpr auto enum_names(Arrival) {
  using enum Arrival;
  return std::array<EnumName<Arrival>, 4>{
      {{at_once, "at-once"}, {uniform, "uniform"}, {poisson, "poisson"}, {closed, "closed"}}};
}

// One request of a trace.
struct RequestEntry {
  Time at{0};
  std::int64_t prompt = 1, output = 1;
  template <class V>
  void visit(V&& v) {
    v("at", at, "when it arrives", at_most(30'000'000'000_us));
    v("prompt", prompt, "tokens", required, between(1, 100'000'000));
    v("output", output, "tokens", required, between(1, 100'000'000));
  }
};

struct RequestsSpec {
  Arrival arrival = Arrival::at_once;
  std::int64_t count = 1, concurrency = 1, prompt = 512, output = 128;
  std::optional<Rate> rate;
  double spread = 0, prefix_share = 0;
  std::vector<RequestEntry> trace;
  template <class V>
  void visit(V&& v) {
    v("arrival", arrival,
      "at-once, uniform or poisson at `rate`, closed: `concurrency` clients that ask again when "
      "answered");
    v("count", count, "requests in all", between(1, 10'000'000));
    v("rate", rate, "requests per second", positive);
    v("concurrency", concurrency, "clients of a closed loop", between(1, 1'000'000));
    v("prompt", prompt, "tokens of a prompt, on average", between(1, 100'000'000));
    v("output", output, "tokens of an answer, on average", between(1, 100'000'000));
    v("spread", spread, "standard deviation over mean of both lengths (log-normal)",
      between(0, 10));
    v("prefix_share", prefix_share, "part of the prompts that is in the cache already",
      between(0, 1));
    v("trace", trace, "the requests one by one, in place of the keys above");
  }
};

enum class SmallAllReduce { nccl, one_shot, two_shot };
constexpr auto enum_names(SmallAllReduce) {
  using enum SmallAllReduce;
  return std::array<EnumName<SmallAllReduce>, 3>{
      {{nccl, "nccl"}, {one_shot, "one-shot"}, {two_shot, "two-shot"}}};
}

enum class Preemption { recompute, swap };
constexpr auto enum_names(Preemption) {
  using enum Preemption;
  return std::array<EnumName<Preemption>, 2>{{{recompute, "recompute"}, {swap, "swap"}}};
}

struct SloSpec {
  std::optional<Time> ttft, tpot;
  template <class V>
  void visit(V&& v) {
    v("ttft", ttft, "to the first token, at most", positive);
    v("tpot", tpot, "per further token, at most", positive);
  }
};

struct ServingSpec {
  std::int64_t max_batch = 256, block = 16, prefill_gpus = 0;
  std::optional<std::int64_t> chunk;
  double memory_share = 0.9;
  Preemption preemption = Preemption::recompute;
  SmallAllReduce all_reduce = SmallAllReduce::nccl;
  SloSpec slo;
  template <class V>
  void visit(V&& v) {
    v("max_batch", max_batch, "requests that are answered together at most", between(1, 1'000'000));
    v("chunk", chunk,
      "tokens of an iteration at most: longer prompts are read in chunks beside decoding; default: "
      "prompts are read whole, before decoding goes on",
      between(1, 100'000'000));
    v("block", block, "tokens of a page of the cache", between(1, 1'000'000));
    v("memory_share", memory_share, "of the GPU's memory that weights and cache may fill",
      between(0.01, 1));
    v("preemption", preemption, "what happens when the cache is full: recompute or swap");
    v("prefill_gpus", prefill_gpus,
      "so many GPUs of the job only read prompts and send their cache to the others; 0: none",
      between(0, 10'000'000));
    v("all_reduce", all_reduce,
      "of tensor parallel ranks: nccl, or the one- or two-shot kernels of inference engines for "
      "small messages");
    v("slo", slo, "what counts as goodput");
  }
};

struct InferenceSpec {
  LlmSpec model;
  std::int64_t gpus = 1;
  PlanSpec plan;  // tp, pp, ep, dp (replicas); what only training knows is refused
  DtypeSpec dtype;
  std::optional<Precision> kv;  // of the cache; default: as compute, 16 bit at least
  SoftwareSpec software;
  RequestsSpec requests;
  ServingSpec serving;
  std::vector<std::string> order = {"tp", "cp", "dp", "pp"};
};

}  // namespace weft
