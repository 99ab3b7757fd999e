// SPDX-License-Identifier: Apache-2.0
// What a plan needs of a GPU's memory, stage by stage, at the peak of its schedule.
#pragma once

#include <string>
#include <vector>

#include "models/llm/architecture.hpp"
#include "models/llm/plan.hpp"
#include "sim/run/training_spec.hpp"

namespace weft {

// Bytes on one GPU.
struct MemoryUse {
  double weights = 0, gradients = 0, optimizer = 0, activations = 0, buffers = 0, kv_cache = 0,
         reserve = 0;  // context, fragmentation
  double total() const {
    return weights + gradients + optimizer + activations + buffers + kv_cache + reserve;
  }
};

// By stage. Activations as counted by Korthikanti et al. (arXiv 2205.05198), for the micro-batches in flight.
std::vector<MemoryUse> training_memory(const Architecture& model, const TrainingSpec& training,
                                       const StageLayout& layout);

// "weights 8.8 GB + gradients ... = 97 GB of 80 GB".
std::string explain(const MemoryUse& use, double capacity_bytes);

}  // namespace weft
