// SPDX-License-Identifier: Apache-2.0
// The page of a sweep: small multiples and fronts, from a table that lies in the page as JSON. Its program comes from
// tools/report, as that of report.html does.
#pragma once

#include <optional>
#include <string>

#include "sim/core/json.hpp"
#include "tools/cli/page.hpp"

namespace weft {

// Nothing when the page was not built.
std::optional<std::string> sweep_page(const Json& table);

inline constexpr const char* kNoSweepPage = kNoPage;

}  // namespace weft
