// SPDX-License-Identifier: Apache-2.0
// NCCL as the library of a scenario's collectives, and the check of its variables' names and values.
//
//   context.library = nccl_library();    // before run_scenario
#pragma once

#include <functional>
#include <string>

#include "models/nccl/predict.hpp"
#include "sim/run/library.hpp"

namespace weft {

CollectiveLibrary nccl_library();

struct NcclVariableProblem {
  bool error = true;  // else a warning
  std::string name, fact, cure;
};
// Names that NCCL has but weft does not model are warnings, names that are no variable of NCCL are errors, and so are values
// that NCCL could not read.
std::vector<NcclVariableProblem> check_nccl_environment(const NcclEnvironment& environment);
// Warnings, named "algorithm" and "protocol": what is forced wins over an NCCL_ALGO or NCCL_PROTO that does not allow it.
std::vector<NcclVariableProblem> check_nccl_overrules(const NcclSetup& setup);

}  // namespace weft
