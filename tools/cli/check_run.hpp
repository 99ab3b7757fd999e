// SPDX-License-Identifier: Apache-2.0
// weft check --run: runs a scenario and every variant that its expectations compare it with.
#pragma once

#include <string>

#include "sim/run/expect.hpp"
#include "tools/cli/cli.hpp"

namespace weft {

struct CheckRun {
  bool met = true;   // every expectation that is not disputed
  std::string text;  // a line or more per expectation
  Json expect;       // [{what, pointer, value, min, max, claim, disputed, met, problem}]
  std::string fingerprint;
};

// `path` is a scenario that reads without errors. Throws InputError when a variant does not.
CheckRun check_run(const std::string& path, Io& io);

}  // namespace weft
