// SPDX-License-Identifier: Apache-2.0
// Copies and small messages between memories of one server.
//
// Queued behind a gate, on a stream of the GPU that sends (of the one that takes part, for the host), so that the host's own
// time does not count and all of a group start together. A lone small copy is repeated back to back between two events.
#pragma once

#include <memory>

#include "calibrate/probe/backend.hpp"
#include "calibrate/probe/cuda/machine.hpp"

namespace weft::cuda {

// A name of the plan, on this server.
struct Place {
  int device = -1;  // a GPU
  int socket = -1;  // or memory of the host
};
Place place_of(const std::string& name);

std::unique_ptr<PreparedTest> prepare_copies(const CopyTest& test, const Server& server);
std::unique_ptr<PreparedTest> prepare_latency(const LatencyTest& test, const Server& server);

}  // namespace weft::cuda
