// SPDX-License-Identifier: Apache-2.0
// Output of nvbandwidth: its text of all releases, or the JSON of its option --json. Each test is a matrix of device pairs.
//
// A copy-engine test called "bidirectional" reports the measured stream alone, under traffic the other way; an SM test between
// GPUs reports the sum of both and is halved. The diagonal is a copy inside one memory and is left out, so is device_local_copy.
// Latencies keep their definition: the pointer chase of an SM is not the time of a copy.
//
// Facts:  tool, version, driver, cuda, gpus, gpu_to_gpu_gbs (median of the one-way copies by copy engine), host_gbs (the
//         same between host and GPU), latency_us, tests (see facts_of_matrices), waived, failed, problems.
#pragma once

#include "calibrate/import/import.hpp"

namespace weft {

extern const Importer kNvbandwidthImporter;

}  // namespace weft
