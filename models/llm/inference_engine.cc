// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "models/llm/host.hpp"
#include "models/llm/inference.hpp"

namespace weft {

InferenceEngine::InferenceEngine(const Fabric& fabric, Routes& routes, InferenceTimers timers,
                                 const InferenceSpec& spec, const StageLayout& layout,
                                 const std::vector<NodeId>& gpus)
    : spec_(spec),
      model_(spec.model),
      kernels_(fabric.gpu_spec(gpus.front()), spec.software),
      memory_(model_, spec, layout),
      network_(fabric, routes, timers, spec, gpus),
      passes_(model_, spec, kernels_, layout, network_.comms()),
      capacity_(fabric.gpu_spec(gpus.front()).memory.value_or(Bytes{0}).value()),
      host_rate_(host_facts(fabric, gpus).link) {
  if (spec.requests.trace.empty()) {
    typical_ = longest_ = real(spec.requests.prompt + spec.requests.output);
    return;
  }
  double sum = 0;
  for (const RequestEntry& entry : spec.requests.trace) {
    const double tokens = real(entry.prompt + entry.output);
    sum += tokens;
    longest_ = std::max(longest_, tokens);
  }
  typical_ = sum / static_cast<double>(spec.requests.trace.size());
}

double InferenceEngine::cache_room() const {
  return capacity_ * spec_.serving.memory_share - memory_.weights() - memory_.workspace();
}

std::int64_t InferenceEngine::cache_tokens() const {
  const double wanted = longest() * real(spec_.serving.max_batch);
  return memory_.tokens_in(fits() ? cache_room() : wanted, typical_);
}

ServeResult InferenceEngine::serve(std::vector<double> slowness, std::uint64_t seed,
                                   std::function<void(Time, std::uint64_t)> progress) const {
  ServeShape shape;
  shape.replicas = spec_.plan.dp.value_or(1);
  shape.stages = spec_.plan.pp;
  shape.prefill_replicas = spec_.serving.prefill_gpus / (spec_.plan.tp * spec_.plan.pp);
  shape.lockstep =
      std::max<std::int64_t>(1, spec_.plan.ep * spec_.plan.expert_tp() / spec_.plan.tp);
  shape.cache_tokens = cache_tokens();
  shape.encodes = model_.has_encoder();
  ServeCosts costs;
  costs.iteration = [this](const Iteration& work) { return passes_(work); };
  costs.transfer = [this](std::int64_t from, std::int64_t to, double tokens) {
    return network_.transfer(from, to, memory_.cache(tokens));
  };
  costs.swap = [this](double tokens) {
    return host_rate_ > 0 ? memory_.cache(tokens) / host_rate_ : 0;
  };
  costs.slowness = std::move(slowness);
  costs.progress = std::move(progress);
  return weft::serve(spec_.requests, spec_.serving, shape, costs, seed);
}

}  // namespace weft
