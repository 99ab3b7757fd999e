// SPDX-License-Identifier: Apache-2.0
// How long a question will take to answer, before it runs. A step is layers x micro-batches passed forward and back, and a pass of a
// layer is a number of operations that depends on what it talks about; a fabric is built and routed first; and what limits the step
// is found by running it again without each kind of link.
#pragma once

#include <cstdint>

#include "tools/serve/question.hpp"

namespace weft {

struct Estimate {
  double operations = 0;  // of one run
  double seconds = 0;     // of all, roughly
};

Estimate estimate(const Question& question, std::int64_t layers);

}  // namespace weft
