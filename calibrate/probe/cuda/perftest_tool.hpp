// SPDX-License-Identifier: Apache-2.0
// Programs of perftest between a NIC and itself, where they are installed: both ends of a loop run here, and what the client
// prints is read by the importer of such logs.
#pragma once

#include <memory>
#include <string>

#include "calibrate/probe/backend.hpp"

namespace weft::cuda {

// Empty when ib_write_bw and ib_write_lat can be run.
std::string why_no_perftest();

std::unique_ptr<PreparedTest> run_perftest(const MessageToolTest& test);

}  // namespace weft::cuda
