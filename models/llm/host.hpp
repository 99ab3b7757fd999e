// SPDX-License-Identifier: Apache-2.0
// What a training job does with its hosts: an optimizer that steps there, checkpoints.
//
//   offload     gradients go to the host as they are reduced, by copy engines beside computing; the host reads and writes the
//               optimizer's state at the speed of its memory; weights come back (ZeRO-Offload, arXiv 2101.06840)
//   checkpoint  what is trained and its optimizer state, an equal part from every rank, to the host or beyond it to storage that
//               all ranks share; the step waits, and every step bears its share
//
// The simulated step sends all of it over the links between GPUs and host memory, where other traffic and faults meet it
// (models/llm/step_host); searches take the rates here, of sound and otherwise idle links.
#pragma once

#include <vector>

#include "models/llm/architecture.hpp"
#include "sim/core/diagnostics.hpp"
#include "sim/fabric/fabric.hpp"
#include "sim/run/training_spec.hpp"

namespace weft {

// Rates of the slowest GPU while all of a server do the same; of the worst kind of server.
HostFacts host_facts(const Fabric& fabric, const std::vector<NodeId>& gpus);
// Reports what the plan needs of the host and its description lacks.
void check_host(const TrainingSpec& training, Diagnostics& out);

// Bytes that the optimizer's step reads and writes per parameter, gradient norm included.
double step_bytes(const TrainingSpec& training);
// Seconds of an offloaded step over so many parameters of one rank, and of its copies there or back.
double host_step_s(const TrainingSpec& training, double parameters);
double host_copy_s(const TrainingSpec& training, double bytes);

// Of one rank, per step.
double checkpoint_bytes(const Architecture& model, const TrainingSpec& training);  // when written
double checkpoint_s(const Architecture& model, const TrainingSpec& training);
double storage_s(const Architecture& model, const TrainingSpec& training);  // of the storage alone

}  // namespace weft
