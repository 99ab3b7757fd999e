// SPDX-License-Identifier: Apache-2.0
// What the driver, the management library and the system say about this server. Nothing is changed, and what cannot be read is
// left out.
#pragma once

#include <string>
#include <vector>

#include "calibrate/measured_machine.hpp"
#include "calibrate/probe/plan.hpp"

namespace weft::cuda {

struct Server {
  MeasuredHost host;
  std::vector<int> socket_of_gpu;             // by device number; -1: not known
  std::vector<std::vector<int>> numa_nodes;   // of each socket, those with CPUs
  std::vector<std::vector<ProbePath>> paths;  // between devices
  std::vector<std::size_t> free_memory;
};

// Throws NoMachine when no GPU can be used, in one line. `use_all`: a context is made on every GPU, which tells how much of its
// memory is free; many processes that each use one GPU must not.
Server look_at_server(bool use_all);

// NVML's clock of the multiprocessors now; nullopt when it cannot be asked.
std::optional<Frequency> sm_clock(const std::string& bus);

}  // namespace weft::cuda
