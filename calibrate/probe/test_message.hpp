// SPDX-License-Identifier: Apache-2.0
// What the processes of a probe tell each other, as documents: a test, and what one process sees of its server.
#pragma once

#include "calibrate/probe/plan.hpp"
#include "sim/core/json.hpp"

namespace weft {

Json write_test(const PlannedTest& test);
// nullopt for a document that is none.
std::optional<PlannedTest> read_test(const Json& document);

// With sources of everything that make_plan() asks.
Json write_machine(const ProbeMachine& machine);
std::optional<ProbeMachine> read_machine(const Json& document);

}  // namespace weft
