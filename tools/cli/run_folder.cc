// SPDX-License-Identifier: Apache-2.0
#include "tools/cli/run_folder.hpp"

#include <fmt/format.h>

#include "sim/run/executor.hpp"
#include "tools/cli/fabric_view.hpp"
#include "tools/cli/gzip.hpp"
#include "tools/cli/page.hpp"
#include "tools/cli/timeline.hpp"

namespace weft {
namespace {

constexpr std::size_t kMostSlicesOfThePage = 6000;
constexpr std::int64_t kPixels = 4000;  // of a timeline that somebody has zoomed into

std::string links_csv(const Report& report) {
  std::string out = "id,class,tier,bytes,utilisation\n";
  for (const LinkReport& link : report.links) {
    out += fmt::format("{},{},{},{:.0f},{:.6f}\n", link.id, link.link_class, link.tier, link.bytes,
                       link.utilisation);
  }
  return out;
}

// The view is for programs: on one line behind everything else.
std::string report_text(const Report& report, const Json& view) {
  std::string text = to_text(to_json(report));
  text.erase(text.find_last_of('}'));
  while (text.ends_with('\n')) text.pop_back();
  return text + ",\n  \"view\": " + to_text(view, 0) + "\n}\n";
}

}  // namespace

RunContext Recorder::watch(RunContext context) {
  context.show = [this](const RunTrail& trail) {
    const Time blur{trail.executor.makespan().ps / kPixels};
    view_.set("fabric", fabric_view(trail));
    view_.set("timeline", to_json(make_timeline(trail, blur, kMostSlicesOfThePage)));
    trace_ = chrome_trace(make_timeline(trail, Time{0}, most_slices_));
  };
  return context;
}

std::vector<OutputFile> Recorder::files(const std::string& folder, const Report& report) const {
  const std::string text = report_text(report, view_);
  std::vector<OutputFile> out{{folder + "/report.json", text, true},
                              {folder + "/links.csv", links_csv(report), true},
                              {folder + "/trace.json.gz", gzip(trace_), true}};
  const std::string documents[] = {text};
  if (std::optional<std::string> page = report_page(documents))
    out.push_back({folder + "/report.html", std::move(*page), true});
  return out;
}

}  // namespace weft
