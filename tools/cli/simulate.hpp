// SPDX-License-Identifier: Apache-2.0
// From the command line to a run: loads a scenario, plugs in the models, keeps time.
#pragma once

#include <string>
#include <vector>

#include "sim/run/run.hpp"
#include "tools/cli/cli.hpp"

namespace weft {

struct RunOptions {
  Settings sets;
  std::string fidelity;  // empty: the file's
  std::optional<std::int64_t> seed;
  std::optional<std::int64_t> top;
};

// The models that weft ships.
RunContext run_models();
// The same, and a progress line on `io.err`.
RunContext run_context(Progress& progress);

// For runs on one fabric, which outlives what is returned: groups that several of them share are joined once. What NCCL finds
// out about a node takes longer than a small step.
CollectiveLibrary remembering(const CollectiveLibrary& library, const Fabric& fabric);

// A scenario file with flags applied. Throws InputError with all problems.
Scenario load_scenario(const std::string& path, const RunOptions& options,
                       Diagnostics& diagnostics);

// A scenario that exists as a document only; names and relative paths in it are those of a file in the current folder.
Scenario load_scenario(const Json& document, const std::string& name, Diagnostics& diagnostics,
                       const RunOptions& options = {});

// Runs with wall-clock time and peak memory filled in.
Report run_timed(const Scenario& scenario, const RunContext& context, Diagnostics& diagnostics);

}  // namespace weft
