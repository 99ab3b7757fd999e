// SPDX-License-Identifier: Apache-2.0
#include "calibrate/import/moe_log.hpp"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "calibrate/import/lines.hpp"
#include "calibrate/measurement.hpp"

namespace weft {
namespace {

using Kind = ImportNote::Kind;

std::vector<std::string_view> split(std::string_view text, std::string_view separators) {
  std::vector<std::string_view> out;
  while (!text.empty()) {
    const std::size_t end = text.find_first_of(separators);
    if (const std::string_view part = trimmed(text.substr(0, end)); !part.empty())
      out.push_back(part);
    if (end == std::string_view::npos) break;
    text.remove_prefix(end + 1);
  }
  return out;
}

// "44.37 GB/s" with "(RDMA)" or "(NVL)" behind it.
struct TaggedRate {
  std::string_view tag;
  Bandwidth rate;
};
std::optional<TaggedRate> rate_of(std::string_view part) {
  const auto words = words_of(part);
  if (words.size() < 2 || words.size() > 3 || words[1].text != "GB/s") return std::nullopt;
  const auto value = parse_printed(words[0].text);
  if (!value || value->value <= 0 || value->decimals != 2) return std::nullopt;  // as it is printed
  const auto rate = bandwidth_from_gbytes(value->value);
  if (!rate || rate->bps == 0) return std::nullopt;
  return TaggedRate{words.size() == 3 ? words[2].text : std::string_view{}, *rate};
}

// "500.12 us", "229 + 1391 us" (of which the second is the transfer), "t: 123 us", "avg_t=187.74 us".
std::optional<Time> time_of(std::string_view part) {
  if (part.size() < 3 || !part.ends_with(" us")) return std::nullopt;
  part = trimmed(part.substr(0, part.size() - 3));
  const std::size_t mark = part.find_last_of("+:= ");
  if (mark != std::string_view::npos) part = trimmed(part.substr(mark + 1));
  const auto value = parse_printed(part);
  if (!value || value->value <= 0) return std::nullopt;
  return time_from_us(value->value);
}

class MoeImport {
 public:
  MoeImport(const ImportOptions& options, const std::string& file, Imported& imported,
            Diagnostics& out)
      : imported_(imported),
        out_(out),
        ignored_(imported),
        file_(out.add_file(file)),
        measurement_(
            new_measurement(options.name.empty() ? "measurement" : options.name, "DeepEP", file)) {}

  void run(std::string_view text) {
    for (const LogLine& line : clean_lines(text)) take(line);
    ignored_.finish();
    if (other_settings_ > 0)
      imported_.note(Kind::ignored,
                     counted(other_settings_, "tuning line") + " that is not the best");
    if (measurement_.experts.empty()) {
      out_.error(
          {file_, 0, 0}, {}, "no measurements of dispatch or combine",
          "a capture has lines such as \"[tuning] Best combine: SMs 24, NVL chunk 2, RDMA chunk "
          "20: 44.37 GB/s (RDMA), 145.16 GB/s (NVL)\"");
    }
    write_facts();
    if (out_.ok()) imported_.measurement = write_measurement(measurement_);
  }

 private:
  void take(const LogLine& line) {
    const std::string_view text = trimmed(line.text);
    if (text.empty()) return;
    if (line.damaged) {
      nodes_ = 0;
      return ignored_.noise(line);
    }
    const std::size_t best = text.find("[tuning] Best ");
    if (best != std::string_view::npos && best > 0) nodes_ = 0;  // two lines in one
    if (best != std::string_view::npos) return take_best(line, text.substr(best + 14));
    if (text.find("[tuning]") != std::string_view::npos) {
      ++other_settings_;
      return;
    }
    if (text.starts_with("[rank ")) return take_rank(line, text);
    if (take_nodes(line, text)) return;
    if (text.starts_with("#")) nodes_ = 0;  // perhaps a number of nodes that is not readable
    ignored_.noise(line);
  }

  // "# 4 nodes".
  bool take_nodes(const LogLine& line, std::string_view text) {
    while (text.starts_with("#")) text = trimmed(text.substr(1));
    const auto words = words_of(text);
    const bool known = words.size() == 2 && words[1].text.starts_with("node");
    const auto nodes = known ? parse_whole(words[0].text) : std::nullopt;
    if (!nodes || *nodes < 1 || *nodes > 1'000'000 || !line.finished) return false;
    nodes_ = static_cast<int>(*nodes);
    return true;
  }

  ExpertSample start(const LogLine& line, std::string_view operation) const {
    ExpertSample out;
    out.operation = operation;
    out.nodes = nodes_;
    out.line = static_cast<int>(line.number);
    return out;
  }

  // "dispatch (FP8): SMs 24, NVL chunk 28, RDMA chunk 24: 38.19 GB/s (RDMA), 124.92 GB/s (NVL)".
  void take_best(const LogLine& line, std::string_view text) {
    const std::size_t colon = text.find(':');
    const auto head = words_of(text.substr(0, colon));
    const bool known = !head.empty() && (head[0].text == "dispatch" || head[0].text == "combine");
    if (!known || colon == std::string_view::npos || head.size() > 2)
      return ignored_.row(line, "neither dispatch nor combine");
    ExpertSample out = start(line, head[0].text);
    if (head.size() == 2) {
      const std::string_view type = head[1].text;
      if (type != "(FP8)" && type != "(BF16)")
        return ignored_.row(line, fmt::format("\"{}\" is neither FP8 nor BF16", type));
      out.type = type.substr(1, type.size() - 2);
    }
    for (const std::string_view part : split(text.substr(colon + 1), ",:")) {
      if (!take_part(part, out))
        return ignored_.row(line, fmt::format("\"{}\" is not understood", part));
    }
    // Every line ends with the rate over NVLink; one that lacks it was cut off.
    if (!out.nvlink) return ignored_.row(line, "its rate over NVLink is missing");
    measurement_.experts.push_back(std::move(out));
  }

  static bool take_part(std::string_view part, ExpertSample& out) {
    if (const auto rate = rate_of(part)) {
      if (rate->tag == "(RDMA)" && !out.network) {
        out.network = rate->rate;
      } else if (rate->tag == "(NVL)" && !out.nvlink) {
        out.nvlink = rate->rate;
      } else {
        return false;
      }
      return true;
    }
    if (part.ends_with(" us")) {
      const auto time = time_of(part);
      if (time && !out.time) out.time = time;  // later ones are parts of it
      return time.has_value();
    }
    constexpr std::string_view kWords[] = {"BW", "transmit", "notify", "t"};
    if (std::ranges::find(kWords, part) != std::end(kWords)) return true;
    const std::size_t blank = part.rfind(' ');
    const auto value =
        blank == std::string_view::npos ? std::nullopt : parse_whole(part.substr(blank + 1));
    const std::string_view key = trimmed(part.substr(0, std::min(blank, part.size())));
    constexpr std::string_view kKeys[] = {"SMs", "NVL chunk", "RDMA chunk"};
    if (!value || *value < 0 || std::ranges::find(kKeys, key) == std::end(kKeys)) return false;
    out.tuning[std::string(key)] = *value;
    return true;
  }

  // "[rank 0] Dispatch bandwidth: 40.02 GB/s, avg_t=187.74 us | Combine bandwidth: ...", of the network alone.
  void take_rank(const LogLine& line, std::string_view text) {
    const std::size_t close = text.find(']');
    if (close == std::string_view::npos) return ignored_.noise(line);
    for (const std::string_view half : split(text.substr(close + 1), "|")) {
      constexpr std::pair<std::string_view, std::string_view> kNames[] = {
          {"Dispatch + combine bandwidth:", ""},
          {"Dispatch bandwidth:", "dispatch"},
          {"Combine bandwidth:", "combine"}};
      for (const auto& [name, operation] : kNames) {
        const auto rest = after(half, name);
        if (!rest) continue;
        if (operation.empty()) return;  // the sum of two operations
        const auto parts = split(*rest, ",");
        ExpertSample out = start(line, operation);
        const auto rate = parts.empty() ? std::nullopt : rate_of(parts[0]);
        if (rate && rate->tag.empty()) out.network = rate->rate;
        if (parts.size() > 1 && parts[1].starts_with("avg_t")) out.time = time_of(parts[1]);
        if (!out.network || !out.time) return ignored_.row(line, "its rate or time is not whole");
        measurement_.experts.push_back(std::move(out));
      }
    }
  }

  void write_facts() {
    Json facts = Json::object();
    facts.set("tool", "DeepEP");
    Json& list = facts.set("experts", Json::array());
    for (const ExpertSample& sample : measurement_.experts) {
      Json entry = Json::object();
      entry.set("operation", sample.operation);
      if (!sample.type.empty()) entry.set("type", sample.type);
      if (sample.nodes > 0) entry.set("nodes", sample.nodes);
      if (sample.network) entry.set("network_gbs", sample.network->gbytes_per_s());
      if (sample.nvlink) entry.set("nvlink_gbs", sample.nvlink->gbytes_per_s());
      if (sample.time) entry.set("time_us", us_of(*sample.time));
      std::string text = sample.operation;
      if (!sample.type.empty()) text += " " + sample.type;
      if (sample.nodes > 0) text += " on " + counted(sample.nodes, "node");
      if (sample.network)
        text += fmt::format(", {:.4g} GB/s network", sample.network->gbytes_per_s());
      if (sample.nvlink) text += fmt::format(", {:.4g} GB/s NVLink", sample.nvlink->gbytes_per_s());
      if (sample.time) text += ", " + to_text(*sample.time);
      if (list.items.size() < 50) imported_.note(Kind::read, text);
      list.push(std::move(entry));
    }
    const bool unknown = std::ranges::any_of(measurement_.experts,
                                             [](const ExpertSample& s) { return s.nodes == 0; });
    if (unknown) imported_.note(Kind::unknown, "how many nodes took part");
    facts.set("problems", Json::array());
    imported_.facts = std::move(facts);
  }

  Imported& imported_;
  Diagnostics& out_;
  IgnoredLines ignored_;
  std::uint32_t file_;
  Measurement measurement_;
  int nodes_ = 0;
  std::int64_t other_settings_ = 0;
};

Imported read_moe_log(std::string_view text, const std::string& file, const ImportOptions& options,
                      Diagnostics& diagnostics) {
  Imported imported;
  imported.kind = "moe-log";
  MoeImport(options, file, imported, diagnostics).run(text);
  return imported;
}

}  // namespace

extern const Importer kMoeLogImporter;
const Importer kMoeLogImporter{"moe-log", "dispatch and combine of DeepEP's tests",
                               "github.com/deepseek-ai/DeepEP, tests", "", read_moe_log};

}  // namespace weft
