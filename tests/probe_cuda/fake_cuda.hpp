// SPDX-License-Identifier: Apache-2.0
// A CUDA runtime without a device: enough of it to run the host side of the probe's backend on a CPU. Streams have a clock of
// their own that what is queued moves on; nothing is computed. It notices what a real device would not forgive: memory of another
// device that is not reachable, kernels of a device that is not the current one, streams and memory that are never freed.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include <cuda_runtime_api.h>

namespace weft::fake {

struct World {
  int devices = 2;
  bool peers = true;
  bool no_memory = false;          // the next allocation fails
  bool illegal = false;            // the next query of a stream reports an illegal address
  int live = 0;                    // streams, events, memory and communicators that are not freed
  int gates = 0;                   // streams that wait behind a gate
  std::vector<std::string> wrong;  // what a device would not forgive
  int operations = 0;              // of NCCL
  std::string algorithm;           // NCCL_ALGO when the last communicator was made
};
World& world();

// Moves the clock of a stream on.
void spend(cudaStream_t stream, double seconds);
int current_device();
void complain(const std::string& what);

}  // namespace weft::fake
