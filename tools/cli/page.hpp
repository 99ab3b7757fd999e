// SPDX-License-Identifier: Apache-2.0
// report.html: one page that needs nothing else. Its program and style are built from tools/report where npm is at hand; here the
// reports are put into it, as JSON that the page reads.
#pragma once

#include <optional>
#include <span>
#include <string>

#include "sim/core/json.hpp"

namespace weft {

// A report or table that a file holds; nothing and a problem when it cannot be read. What it is, is for the caller to check.
std::optional<Json> read_report(const std::string& path, Diagnostics& diagnostics);

// What the page is told of one report.
std::string page_document(const std::string& file, const Json& report);

// The page of this name with documents in it; nothing when it was not built.
std::optional<std::string> page_of(const std::string& name, std::span<const std::string> documents);

// report.html.
std::optional<std::string> report_page(std::span<const std::string> documents);

// What to tell a person then.
inline constexpr const char* kNoPage =
    "the page was not built with this weft: building it needs npm (see docs/report.md)";

// Throws Missing when the page was not built.
void write_report_page(const std::string& path, std::span<const std::string> documents);

}  // namespace weft
