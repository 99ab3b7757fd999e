// SPDX-License-Identifier: Apache-2.0
// An InputError that still knows its problems one by one, for callers that show them in their own way.
#pragma once

#include <string>
#include <vector>

#include "sim/core/diagnostics.hpp"

namespace weft {

struct LocatedProblem {
  std::string file;
  std::uint32_t line = 0, column = 0;  // 0: no place
  bool warning = false;
  std::string pointer, fact, cure;
};

struct InputProblems : InputError {
  InputProblems(const std::string& text, std::vector<LocatedProblem> all)
      : InputError(text), problems(std::move(all)) {}
  std::vector<LocatedProblem> problems;  // in the order they were found
};

}  // namespace weft
