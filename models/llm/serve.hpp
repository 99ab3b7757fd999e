// SPDX-License-Identifier: Apache-2.0
// A server of a language model in simulated time. Requests come, wait, are read (prefill) and answered token by token (decode);
// their keys and values fill pages of a cache, and who does not fit waits or is put back.
//
//   iteration  All requests of a replica that are ready move together: one token each for those being answered, whole prompts or
//              chunks of them for those being read. It takes what its kernels and collectives take (InferencePasses).
//   stages     Of a pipeline, each works on an iteration of its own; a request is in one of them at a time, unless its prompt is
//              read in chunks: these follow each other through the stages.
//   pages      A request holds ceil(tokens / block) of them. When none is free the youngest gives its up: it is read again later
//              (recompute), or copied to host memory and back (swap).
//   lockstep   Replicas that share experts iterate together; the busiest sets the pace.
//   apart      Some replicas only read prompts; the cache then travels to another one, which answers.
//
// Source: continuous batching (Orca, OSDI 2022), paged cache (vLLM, SOSP 2023), chunked prefill (Sarathi, OSDI 2024),
//         disaggregation (DistServe, OSDI 2024).
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "models/llm/inference_pass.hpp"
#include "sim/run/inference_spec.hpp"

namespace weft {

struct ServeRequest {
  double arrival = 0;
  std::int64_t prompt = 1, output = 1;
  std::int64_t cached = 0;  // tokens of the prompt that were in the cache before
};

struct RequestTimes {
  double arrival = 0, first_token = 0, finish = 0;
  std::int64_t prompt = 0, output = 0;
  bool refused = false;  // longer than the whole cache
  double ttft() const { return first_token - arrival; }
  double e2e() const { return finish - arrival; }
  double tpot() const {  // per token after the first
    return output > 1 ? (finish - first_token) / static_cast<double>(output - 1) : 0;
  }
};

struct ServeShape {
  std::int64_t replicas = 1;
  std::int64_t prefill_replicas = 0;  // the first so many only read prompts
  std::int64_t stages = 1;
  std::int64_t lockstep = 1;      // replicas that iterate together
  std::int64_t cache_tokens = 0;  // of one replica
  bool encodes = false;  // an encoder reads prompts, a decoder starts with a token of its own
};

// Seconds.
struct ServeCosts {
  std::function<IterationTime(const Iteration&)> iteration;
  // Of a prompt's cache from one replica to another; of a request's cache to host memory or back.
  std::function<double(std::int64_t from, std::int64_t to, double tokens)> transfer;
  std::function<double(double tokens)> swap;
  std::vector<double> slowness;  // of the replicas' computing; empty: all sound
  std::function<void(Time now, std::uint64_t iterations)> progress = {};  // may be empty
};

struct ServeResult {
  std::vector<RequestTimes> requests;
  double makespan = 0;
  std::int64_t iterations = 0, preemptions = 0, peak_batch = 0;
  double peak_cache_tokens = 0;  // of one replica
  double mean_batch = 0;         // requests answered together, mean of the iterations that answer
  double transfer = 0;           // seconds that caches travelled
  IterationTime sum;             // over the iterations of all groups of replicas
};

// When who asks for how much: the same for the same seed. Closed loops get later arrivals while they run.
std::vector<ServeRequest> make_requests(const RequestsSpec& spec, std::int64_t block,
                                        std::uint64_t seed);

// Throws LimitReached when it would take too many iterations: before the first where the requests say so.
ServeResult serve(const RequestsSpec& spec, const ServingSpec& serving, const ServeShape& shape,
                  const ServeCosts& costs, std::uint64_t seed);

}  // namespace weft
