// SPDX-License-Identifier: Apache-2.0
// An inference job: a model on GPUs that answers requests.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "sim/core/config.hpp"
#include "sim/run/training_spec.hpp"

namespace weft {

// Limits as constants: clang 14 makes no constant of a literal inside a template.
inline constexpr Time kLatestRequest = 2'592'000_s, kMostOverhead = 1_s;

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
  double cached = 0;
  template <class V>
  void visit(V&& v) {
    v("at", at, "when it arrives", at_most(kLatestRequest));
    v("prompt", prompt, "tokens", required, between(1, 100'000'000));
    v("output", output, "tokens", required, between(1, 100'000'000));
    v("cached", cached, "part of the prompt that is in the cache already", between(0, 1));
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
    v("count", count, "requests in all", between(1, 1'000'000));
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

// Prompts that are read whole are put together up to so many tokens (assumed; engines take 2,048 or more).
inline constexpr std::int64_t kWholePrompts = 8192;

struct ServingSpec {
  std::int64_t max_batch = 256, block = 16, prefill_gpus = 0;
  std::optional<std::int64_t> chunk;
  double memory_share = 0.9;
  Preemption preemption = Preemption::recompute;
  Time overhead{0}, request_overhead{0};
  SmallAllReduce all_reduce = SmallAllReduce::nccl;
  SloSpec slo;
  template <class V>
  void visit(V&& v) {
    v("max_batch", max_batch, "requests that are answered together at most", between(1, 100'000));
    v("chunk", chunk,
      "tokens of an iteration at most: longer prompts are read in chunks beside decoding; default: "
      "prompts are read whole, before decoding goes on",
      between(1, 100'000'000));
    v("block", block, "tokens of a page of the cache", between(1, 1'000'000));
    v("memory_share", memory_share, "of the GPU's memory that weights and cache may fill",
      between(0.01, 1));
    v("preemption", preemption, "what happens when the cache is full: recompute or swap");
    v("overhead", overhead,
      "of every iteration, beside what the GPUs do: scheduling, sampling on the host; 0: hidden",
      at_most(kMostOverhead));
    v("request_overhead", request_overhead, "the same for every request in the iteration",
      at_most(kMostOverhead));
    v("prefill_gpus", prefill_gpus,
      "so many GPUs of the job only read prompts and send their cache to the others; 0: none",
      between(0, 10'000'000));
    v("all_reduce", all_reduce,
      "of tensor parallel ranks: nccl, or the one- or two-shot kernels of inference engines for "
      "small messages");
    v("slo", slo, "what counts as goodput");
  }
};

// Keys of an inference job, beside those that it has in common with training (TrainingKeys).
struct InferenceKeys {
  std::optional<RequestsSpec> requests;
  std::optional<ServingSpec> serving;
  template <class V>
  void visit(V&& v) {
    v("requests", requests, "what is asked of an inference job");
    v("serving", serving, "how the engine of an inference job answers");
  }
};

// As a training job, with what only training knows left at its defaults. Replicas of the model: plan.dp.
struct InferenceSpec : TrainingSpec {
  RequestsSpec requests;
  ServingSpec serving;
  // Of the cache; default: as computing, 16 bits at least.
  Precision kv_precision() const {
    if (dtype.kv) return *dtype.kv;
    return bytes_of(dtype.compute) < 2 ? Precision::bf16 : dtype.compute;
  }
};

// The job at `pointer`. Problems go to `out`, use the result only when out.ok(). `gpus` and `order` are the job's.
InferenceSpec read_inference(const Json& job, const std::string& pointer, TrainingKeys common,
                             InferenceKeys keys, std::optional<std::int64_t> gpus,
                             std::vector<std::string> order, Diagnostics& out);

}  // namespace weft
