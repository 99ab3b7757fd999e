// SPDX-License-Identifier: Apache-2.0
// What a plan needs of a GPU's memory, stage by stage, at the peak of its schedule.
//
//   weights      elements on a rank x bytes of `param`; over dp when they are sharded (ZeRO-3, FSDP)
//   gradients    those trained x bytes of `grad`; sharded from ZeRO-2 on
//   optimizer    a master copy where weights are narrower than the optimizer's numbers, and its moments; sharded from ZeRO-1 on
//   activations  micro-batches in flight at this stage of the schedule x what each keeps (models/llm/activations), the layer at
//                work, the loss; or gradients widened for the optimizer's step, if those are more
//   buffers      layers gathered by FSDP, buckets, what stages and ranks exchange
//   reserve      context, libraries, fragmentation
//
// Example:  Llama 3 70B at TP8 PP2 has 4.41e9 parameters on each GPU: 79 GB at 18 bytes, before any activation.
#pragma once

#include <string>
#include <vector>

#include "models/llm/architecture.hpp"
#include "models/llm/plan.hpp"
#include "models/llm/stage_parameters.hpp"
#include "sim/run/training_spec.hpp"

namespace weft {

// Bytes on one GPU.
struct MemoryUse {
  double weights = 0, gradients = 0, optimizer = 0, activations = 0, buffers = 0, kv_cache = 0,
         reserve = 0;
  double total() const {
    return weights + gradients + optimizer + activations + buffers + kv_cache + reserve;
  }
};

// By stage. `training.plan.dp` must be filled in (check_plan).
std::vector<MemoryUse> training_memory(const Architecture& model, const TrainingSpec& training,
                                       const StageLayout& layout);
// Of one stage, for searches.
MemoryUse stage_memory(const Architecture& model, const TrainingSpec& training,
                       const StageLayout& layout, std::size_t stage);

// Of the optimizer's state, per trained parameter.
double optimizer_bytes(const TrainingSpec& training);

// "weights 8.8 GB + gradients ... = 97 GB of 80 GB".
std::string explain(const MemoryUse& use, double capacity_bytes);

}  // namespace weft
