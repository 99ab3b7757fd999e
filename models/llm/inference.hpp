// SPDX-License-Identifier: Apache-2.0
// Inference jobs of a scenario: a model on the job's GPUs, requests, and how long they wait and are answered.
//
// The engine runs in a time of its own before the scenario does: its collectives are timed alone on the fabric, so other jobs
// neither slow it down nor feel it. On the scenario's clock the job is one operation that takes as long as the last answer.
#pragma once

#include <memory>
#include <vector>

#include "models/llm/inference_memory.hpp"
#include "models/llm/inference_network.hpp"
#include "models/llm/serve.hpp"
#include "sim/run/library.hpp"

namespace weft {

// A model on GPUs, ready to answer. The arguments outlive it.
class InferenceEngine {
 public:
  // `spec.plan` has been checked, dp is filled in. Throws InputError.
  InferenceEngine(const Fabric& fabric, Routes& routes, InferenceTimers timers,
                  const InferenceSpec& spec, const StageLayout& layout,
                  const std::vector<NodeId>& gpus);

  IterationTime iteration(const Iteration& iteration) const { return passes_(iteration); }
  // `slowness` of each replica's computing; empty: all sound.
  ServeResult serve(std::vector<double> slowness, std::uint64_t seed,
                    std::function<void(Time, std::uint64_t)> progress = {}) const;
  const InferenceMemory& memory() const { return memory_; }
  const InferenceNetwork& network() const { return network_; }
  const Architecture& model() const { return model_; }
  double peak_flops() const { return kernels_.peak_flops(spec_.dtype.compute); }
  double capacity() const { return capacity_; }  // of a GPU's memory
  double cache_room() const;                     // bytes that weights and workspace leave
  double longest() const { return memory_.cache(longest_); }  // cache of the longest request
  bool fits() const { return longest() <= cache_room(); }
  // Of a replica, in tokens of typical requests; room for what is asked when the model does not fit.
  std::int64_t cache_tokens() const;
  double pages(double tokens) const {
    return tokens * memory_.cache(typical_) / typical_;
  }  // bytes

 private:
  const InferenceSpec& spec_;
  Architecture model_;
  KernelTimes kernels_;
  InferenceMemory memory_;
  mutable InferenceNetwork network_;
  InferencePasses passes_;
  double capacity_ = 0, host_rate_ = 0;  // of memory; bytes per second to the host
  double typical_ = 1, longest_ = 1;     // tokens of a request with its answer
};

std::unique_ptr<ModelledJob> make_inference(const JobSite& site, Diagnostics& out);

}  // namespace weft
