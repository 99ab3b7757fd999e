// SPDX-License-Identifier: Apache-2.0
// What a training job does with its hosts: an optimizer that steps there, checkpoints. Seconds of one rank.
//
//   offload     gradients go to the host, it reads and writes the optimizer's state at the speed of its memory, weights come back,
//               one after the other (ZeRO-Offload, arXiv 2101.06840)
//   checkpoint  weights and optimizer state, an equal part from every rank, to the host or beyond it to storage that all ranks
//               share; the step waits, and every step bears its share
#pragma once

#include <vector>

#include "models/llm/architecture.hpp"
#include "sim/core/diagnostics.hpp"
#include "sim/fabric/fabric.hpp"
#include "sim/run/training_spec.hpp"

namespace weft {

// Of the first GPU and its server: its own link, undivided; the memory over all GPUs of the server.
HostFacts host_facts(const Fabric& fabric, const std::vector<NodeId>& gpus);
// Reports what the plan needs of the host and its description lacks.
void check_host(const TrainingSpec& training, Diagnostics& out);

// Bytes that the optimizer's step reads and writes per parameter, gradient norm included.
double step_bytes(const TrainingSpec& training);
double offloaded_step_s(const TrainingSpec& training, double parameters);

double checkpoint_bytes(const Architecture& model, const TrainingSpec& training);  // of one rank
double checkpoint_s(const Architecture& model, const TrainingSpec& training);      // per step

}  // namespace weft
