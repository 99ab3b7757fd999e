// SPDX-License-Identifier: Apache-2.0
// What jobs of language models ask of the GPUs they are placed on.
#pragma once

#include <cstdint>
#include <vector>

#include "sim/core/diagnostics.hpp"
#include "sim/run/library.hpp"

namespace weft {

// Reports GPUs of two kinds; true when there are none.
bool has_one_kind_of_gpu(const JobSite& site, Diagnostics& out);

// GPUs of the job that a fault slows down, one entry per fault.
struct SlowGpu {
  std::int64_t rank = 0;
  double factor = 1;  // of its speed that is left
};
std::vector<SlowGpu> slow_gpus(const JobSite& site);

}  // namespace weft
