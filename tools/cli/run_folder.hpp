// SPDX-License-Identifier: Apache-2.0
// What `weft run --out DIR` leaves in a folder: report.json, report.html, trace.json.gz, links.csv.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "sim/run/run.hpp"
#include "tools/cli/output.hpp"

namespace weft {

// Watches a run and keeps what pictures of it need.
class Recorder {
 public:
  explicit Recorder(std::size_t most_slices) : most_slices_(most_slices) {}
  // The context with the recorder in it; lives no longer than the recorder.
  RunContext watch(RunContext context);

  // The files; without report.html when the page was not built.
  std::vector<OutputFile> files(const std::string& folder, const Report& report) const;

 private:
  std::size_t most_slices_;
  Json view_ = Json::object();
  std::string trace_;
};

}  // namespace weft
