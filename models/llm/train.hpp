// SPDX-License-Identifier: Apache-2.0
// Training jobs of a scenario: from the job's keys to operations, and from what happened to step time, MFU, memory and where
// the time went.
//
//   context.models = llm_jobs();    // before run_scenario
#pragma once

#include "sim/run/library.hpp"

namespace weft {

std::unique_ptr<ModelledJob> make_training(const JobSite& site, Diagnostics& out);

// Training and inference.
JobLibrary llm_jobs();

}  // namespace weft
