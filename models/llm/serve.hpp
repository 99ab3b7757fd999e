// SPDX-License-Identifier: Apache-2.0
// Inference: a server loop in simulated time. An iteration takes what its kernels take (the same layer passes as training, forward
// only) plus its collectives, each timed alone on the fabric; requests come, wait, are read (prefill) and answered token by token
// (decode), their keys and values fill pages of the cache, and who does not fit waits or is put back.
//
// Source: continuous batching (Orca, OSDI 2022), paged cache (vLLM, SOSP 2023), chunked prefill (Sarathi, OSDI 2024),
//         disaggregation (DistServe, OSDI 2024).
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "models/llm/layer_pass.hpp"
#include "sim/run/inference_spec.hpp"
#include "sim/run/library.hpp"

namespace weft {

// What one iteration works on.
struct Iteration {
  double prompt_tokens = 0;   // of prompts, chunks of them
  double prompt_context = 0;  // sum over these tokens of the tokens before them
  double decodes = 0;         // requests that get one token each
  double decode_context = 0;  // sum of their contexts
};
// Seconds of an iteration on one replica, its parts for the report.
struct IterationTime {
  double compute = 0, tp = 0, ep = 0, pp = 0;
  double total() const { return compute + tp + ep + pp; }
};

struct RequestTimes {
  double arrival = 0, first_token = 0, finish = 0;
  std::int64_t prompt = 0, output = 0;
};

struct ServeResult {
  std::vector<RequestTimes> requests;
  double makespan = 0;
  std::int64_t iterations = 0, preemptions = 0;
  double busiest_batch = 0, peak_cache_bytes = 0;
  IterationTime sum;  // over all iterations of all replicas
};

// The loop of one replica. `seconds` of an iteration, `cache_tokens` that fit, `transfer` of a prompt's cache when other GPUs read
// it (0 otherwise).
ServeResult serve(const RequestsSpec& requests, const ServingSpec& serving,
                  const std::function<IterationTime(const Iteration&)>& seconds,
                  std::int64_t cache_tokens, const std::function<double(double tokens)>& transfer,
                  std::uint64_t seed);

std::unique_ptr<ModelledJob> make_inference(const JobSite& site, Diagnostics& out);

}  // namespace weft
