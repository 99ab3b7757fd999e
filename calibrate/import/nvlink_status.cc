// SPDX-License-Identifier: Apache-2.0
#include "calibrate/import/nvlink_status.hpp"

#include <algorithm>
#include <set>

#include <fmt/format.h>

#include "calibrate/import/lines.hpp"

namespace weft {
namespace {

using Kind = ImportNote::Kind;

struct GpuLinks {
  std::int64_t index = 0;
  std::string name;
  Place place;
  std::set<std::int64_t> seen, down;
  double gbs = 0;
};

// "Link 4: 25.781 GB/s" or "Link 3: <inactive>"; the rate is absent for a link that is down.
struct LinkLine {
  std::int64_t link = 0;
  std::optional<double> gbs;
};
std::optional<LinkLine> link_of(std::string_view text) {
  const auto rest = after(text, "Link ");
  if (!rest) return std::nullopt;
  const std::size_t colon = rest->find(':');
  if (colon == std::string_view::npos) return std::nullopt;
  const auto link = parse_whole(rest->substr(0, colon));
  const std::string_view value = trimmed(rest->substr(colon + 1));
  if (!link || *link < 0 || *link > 1000) return std::nullopt;
  if (value == "<inactive>") return LinkLine{*link, {}};
  const auto words = words_of(value);
  if (words.size() != 2 || words[1].text != "GB/s") return std::nullopt;
  const auto rate = parse_printed(words[0].text);
  if (!rate || rate->value <= 0) return std::nullopt;
  return LinkLine{*link, rate->value};
}

Imported read_nvlink_status(std::string_view text, const std::string& file, const ImportOptions&,
                            Diagnostics& diagnostics) {
  Imported imported;
  imported.kind = "nvlink-status";
  const std::uint32_t index = diagnostics.add_file(file);
  IgnoredLines ignored(imported);
  std::vector<GpuLinks> gpus;
  for (const LogLine& line : clean_lines(text)) {
    const std::string_view here = trimmed(line.text);
    const auto gpu = after(here, "GPU ");
    const std::size_t colon = gpu ? gpu->find(':') : std::string_view::npos;
    if (colon != std::string_view::npos && !line.damaged) {
      const auto number = parse_whole(gpu->substr(0, colon));
      if (!number || *number < 0) {
        ignored.noise(line);
        continue;
      }
      const std::string_view name = trimmed(gpu->substr(colon + 1));
      gpus.push_back({*number,
                      std::string(trimmed(name.substr(0, name.find("(UUID")))),
                      place_in(line, index),
                      {},
                      {},
                      0});
      continue;
    }
    const auto link = line.damaged ? std::nullopt : link_of(here);
    if (!link && here.starts_with("Link ")) {
      // Left out, it would change how many links there are.
      diagnostics.error(place_in(line, index), {},
                        "a link with neither a rate in GB/s nor <inactive>",
                        "the line was changed on its way: capture it again");
      continue;
    }
    if (!link) {
      ignored.noise(line);
      continue;
    }
    if (gpus.empty()) {
      ignored.row(line, "a link before the line that names its GPU");
    } else if (!gpus.back().seen.insert(link->link).second) {
      diagnostics.error(
          place_in(line, index), {},
          fmt::format("link {} of GPU {} is listed twice", link->link, gpus.back().index),
          "the line of another GPU is missing between the two");
    } else if (link->gbs) {
      gpus.back().gbs += *link->gbs;
    } else {
      gpus.back().down.insert(link->link);
    }
  }
  ignored.finish();
  Json list = Json::array(), problems = Json::array();
  for (const GpuLinks& gpu : gpus) {
    const std::size_t active = gpu.seen.size() - gpu.down.size();
    imported.note(
        Kind::read,
        fmt::format("GPU {} ({}): {} of {} active, {:.4g} GB/s one direction", gpu.index, gpu.name,
                    active, counted(static_cast<std::int64_t>(gpu.seen.size()), "link"), gpu.gbs),
        gpu.place);
    if (!gpu.down.empty() && active > 0) {
      const std::string problem =
          fmt::format("GPU {}: {} of {} links are inactive, the capacity is {:.0f} %", gpu.index,
                      gpu.down.size(), gpu.seen.size(),
                      100.0 * static_cast<double>(active) / static_cast<double>(gpu.seen.size()));
      imported.note(Kind::warning, problem, gpu.place);
      problems.push(problem);
    }
    Json& entry = list.items.emplace_back(Json::object());
    entry.set("index", gpu.index);
    entry.set("name", gpu.name);
    entry.set("links", std::uint64_t{gpu.seen.size()});
    entry.set("active", std::uint64_t{active});
    Json& down = entry.set("inactive", Json::array());
    for (const std::int64_t link : gpu.down) down.push(link);
    entry.set("gbs", gpu.gbs);
  }
  const bool links = std::ranges::any_of(gpus, [](const GpuLinks& g) { return !g.seen.empty(); });
  if (!links) {
    diagnostics.error(
        {index, 0, 0}, {}, "no NVLink status",
        "a capture has a line \"GPU 0: ...\" and lines \"Link 0: 25.781 GB/s\" below");
  }
  imported.facts = Json::object();
  imported.facts.set("gpus", std::move(list));
  imported.facts.set("problems", std::move(problems));
  imported.open_questions.push_back(
      "the status of links is neither a machine nor a measurement: use it to check one");
  return imported;
}

}  // namespace

extern const Importer kNvlinkStatusImporter;
const Importer kNvlinkStatusImporter{"nvlink-status", "nvidia-smi nvlink --status",
                                     "nvidia-smi manual, nvlink", "", read_nvlink_status};

}  // namespace weft
