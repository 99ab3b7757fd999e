// SPDX-License-Identifier: Apache-2.0
#include "calibrate/validate_page.hpp"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "calibrate/percent.hpp"
#include "calibrate/plots.hpp"
#include "calibrate/validate_train_page.hpp"
#include "sim/core/units.hpp"

namespace weft {
namespace {

constexpr std::size_t kWorstRows = 25;
constexpr std::size_t kFewestPoints = 4;   // of a plot against size
constexpr std::size_t kLongestTitle = 40;  // of its panel; the end tells records apart

std::string table_head(std::initializer_list<std::string_view> columns, std::size_t texts) {
  std::string names, rule;
  std::size_t i = 0;
  for (const std::string_view column : columns) {
    names += fmt::format("| {} ", column);
    rule += i++ < texts ? "| --- " : "| ---: ";
  }
  return names + "|\n" + rule + "|\n";
}

std::string figure_cells(const ErrorFigures& figures) {
  if (figures.rows == 0) return "| 0 | | | | | | |";
  std::string out =
      fmt::format("| {} | {} | {} | {} | {} |", figures.rows, percent(figures.median),
                  percent(figures.p90), signed_percent(figures.bias), figures.rows_large);
  if (figures.rows_large == 0) return out + " | |";
  return out + fmt::format(" {} | {} |", percent(figures.median_large),
                           signed_percent(figures.bias_large));
}

std::string limits_text(const SetResult& set) {
  if (set.spec == nullptr) return "";
  const SetLimits& limit = set.spec->limit;
  std::string out;
  const auto add = [&](const char* name, const std::optional<double>& most) {
    if (!most) return;
    out += fmt::format("{}{} {:g} %", out.empty() ? "" : ", ", name, 100 * *most);
  };
  add("median", limit.median);
  add("large", limit.median_large);
  add("p90", limit.p90);
  add("bias", limit.bias);
  if (out.empty()) return "none";
  if (set.spec->provisional) out += " (provisional)";
  return out + (set.broken_limits.empty() ? "" : ": missed");
}

std::string sets_table(const ValidationResult& result) {
  std::string out = table_head(
      {"set", "what", "limits", "rows", "median", "p90", "bias", "16 MiB up", "median", "bias"}, 3);
  for (const SetResult& set : result.sets) {
    out += fmt::format("| {} | {} | {} {}\n", set.name, set.spec ? set.spec->summary : "",
                       limits_text(set), figure_cells(set.figures));
  }
  return out;
}

std::string groups_table(const ValidationResult& result) {
  std::string out =
      table_head({"by", "", "rows", "median", "p90", "bias", "16 MiB up", "median", "bias"}, 2);
  for (const GroupResult& group : result.groups)
    out += fmt::format("| {} | {} {}\n", group.by, group.name, figure_cells(group.figures));
  return out;
}

std::string published_table(const ValidationResult& result) {
  std::string out = table_head(
      {"what", "published by", "rows here", "published", "weft", "weft, ratio", "difference"}, 3);
  for (const PublishedResult& entry : result.published) {
    if (entry.rows == 0) continue;
    std::string names;
    for (const std::string& row : entry.spec->rows) names += (names.empty() ? "" : ", ") + row;
    const std::string by = entry.spec->url.empty()
                               ? entry.spec->by
                               : fmt::format("[{}]({})", entry.spec->by, entry.spec->url);
    out += fmt::format("| {} | {} | {} of {} | {} | {} | {} | {:+.1f} points |\n", entry.spec->name,
                       by, entry.rows, names, percent(entry.spec->error),
                       percent(entry.geometric_mean), percent(entry.ratio),
                       100 * (entry.geometric_mean - entry.spec->error));
  }
  return out;
}

ErrorFigures figures_of(const RecordResult& record) {
  std::vector<std::pair<Bytes, double>> errors;
  for (const RowResult& row : record.rows) errors.emplace_back(row.bytes, row.error);
  return error_figures(std::move(errors));
}

// How many times too much or too little, whichever way.
double factor_of(const RowResult& row) { return std::abs(std::log(row.predicted / row.measured)); }

std::string worst_table(const ValidationResult& result) {
  std::vector<std::pair<const RecordResult*, const RowResult*>> rows;
  for (const RecordResult& record : result.records) {
    if (record.record->degraded || record.record->kind == CaseKind::train) continue;
    for (const RowResult& row : record.rows) rows.emplace_back(&record, &row);
  }
  std::ranges::stable_sort(rows, std::ranges::greater{},
                           [](const auto& row) { return factor_of(*row.second); });
  rows.resize(std::min(rows.size(), kWorstRows));
  std::string out = table_head({"row", "predicted way", "predicted", "measured", "error"}, 2);
  for (const auto& [record, row] : rows) {
    out +=
        fmt::format("| {} | {} | {} {} | {} {} | {} |\n", row->id, row->how, number(row->predicted),
                    record->unit, number(row->measured), record->unit, signed_percent(row->error));
  }
  return out;
}

// Records of a set, the worst median first.
std::vector<const RecordResult*> worst_first(const SetResult& set) {
  std::vector<const RecordResult*> out = set.records;
  std::ranges::stable_sort(out, std::ranges::greater{},
                           [](const RecordResult* record) { return figures_of(*record).median; });
  return out;
}

std::string record_table(const SetResult& set) {
  std::string out = table_head({"record", "fabric", "machine", "rows", "median", "bias",
                                "worst row: predicted, "
                                "measured",
                                "error"},
                               3);
  for (const RecordResult* record : worst_first(set)) {
    const ErrorFigures figures = figures_of(*record);
    out += fmt::format("| {} | {} | {} | {} |", record->record->id, record->record->fabric(),
                       record->record->degraded   ? "degraded"
                       : record->record->held_out ? "held out"
                                                  : "",
                       figures.rows);
    if (figures.rows == 0) {
      out += " | | | |\n";
      continue;
    }
    const RowResult& worst = *std::ranges::max_element(record->rows, {}, factor_of);
    const auto at = worst.id.find('@');
    out += fmt::format(
        " {} | {} | {}{}, {} {} | {} |\n", percent(figures.median), signed_percent(figures.bias),
        at == std::string::npos ? "" : worst.id.substr(at + 1) + ": ", number(worst.predicted),
        number(worst.measured), record->unit, signed_percent(worst.error));
  }
  return out;
}

// The set's name as a file: "nccl single node" -> "nccl-single-node".
std::string file_name(std::string name) {
  for (char& c : name) {
    if (std::isalnum(static_cast<unsigned char>(c)) == 0) c = '-';
  }
  return name;
}

std::string set_plot(const SetResult& set) {
  std::vector<SweepPanel> panels;
  for (const RecordResult* record : worst_first(set)) {
    SweepPanel panel;
    for (const RowResult& row : record->rows) {
      if (row.bytes.count <= 0) continue;
      panel.points.push_back({row.bytes.value(), row.measured_gbs, row.predicted_gbs});
    }
    std::ranges::stable_sort(panel.points, {}, &SweepPoint::bytes);
    std::vector<double> sizes;
    for (const SweepPoint& point : panel.points) sizes.push_back(point.bytes);
    sizes.erase(std::unique(sizes.begin(), sizes.end()), sizes.end());
    if (sizes.size() < kFewestPoints) continue;
    const ErrorFigures figures = figures_of(*record);
    panel.title = record->record->id;
    if (panel.title.size() > kLongestTitle)
      panel.title = "…" + panel.title.substr(panel.title.size() - kLongestTitle + 1);
    panel.subtitle =
        fmt::format("median {}, bias {}", percent(figures.median), signed_percent(figures.bias));
    panels.push_back(std::move(panel));
  }
  return panels.empty() ? std::string{} : sweeps_svg(set.name + ", the worst first", panels);
}

std::string overview_plot(const ValidationResult& result) {
  std::map<std::string, std::vector<SweepPoint>> by_gpu;
  for (const RecordResult& record : result.records) {
    if (record.record->kind != CaseKind::nccl || record.record->degraded) continue;
    for (const RowResult& row : record.rows)
      by_gpu[record.gpu].push_back({row.bytes.value(), row.measured, row.predicted});
  }
  std::vector<ScatterSeries> series;
  for (auto& [gpu, points] : by_gpu) series.push_back({gpu, std::move(points)});
  return series.empty() ? std::string{} : scatter_svg("Time of every collective row", "us", series);
}

std::string out_of_reach_table(const Dataset& dataset) {
  std::string out = table_head({"record", "reason"}, 2);
  for (const OutOfReach& entry : dataset.out_of_reach)
    out += fmt::format("| {} | {} |\n", entry.id, entry.reason);
  return out;
}

}  // namespace

ValidationPage validation_page(const Dataset& dataset, const ValidationResult& result,
                               const std::string& notes, const std::string& folder) {
  ValidationPage page;
  std::string& out = page.markdown;
  std::size_t degraded = 0;
  for (const RecordResult& record : result.records) degraded += record.record->degraded ? 1 : 0;
  out +=
      "<!-- Written by `weft validate --page`; the text below \"Where weft is wrong\" is from "
      "validation.notes.md. -->\n"
      "# Validation\n\n"
      "What weft predicts against what others measured: the records of tests/validation, each with "
      "its source and the\nquestion that reproduces it. `weft validate` prints these figures, "
      "`weft validate --dataset DIR` those of your own records.\n\n";
  out += fmt::format(
      "An error is predicted / measured - 1: of the time for collectives, of the bandwidth or "
      "latency itself for copies. Median and\np90 are of the absolute error, bias is the median of "
      "the signed one. Rows of 16 MiB and more are also shown alone: below them\nlatencies and "
      "protocols decide. {} records are compared, {} of them set-ups with a fault, which are no "
      "target. Not compared: {} rows\nprinted with too few digits, {} below the size from which "
      "their case holds, {} without a value.\n\n",
      result.records.size(), degraded, result.too_coarse, result.outside, result.missing);
  out += "## Sets\n\n" + sets_table(result);
  if (!result.groups.empty()) {
    out +=
        "\n## Collectives by machine, size, GPU, network\n\n"
        "*Held out* machines took no part in fitting any constant; *fitted* ones did.\n\n" +
        groups_table(result);
  }
  if (std::ranges::any_of(result.published, [](const PublishedResult& p) { return p.rows > 0; })) {
    out += fmt::format(
        "\n## Beside published errors\n\n"
        "What another simulator states of itself, beside weft's figure on the rows that come "
        "nearest; it is not the same data. Both are\ngeometric means of absolute errors (errors "
        "under {} count as that). *Ratio* is the geometric mean of how many times too much\nor "
        "too little, less one: no single good row lowers it.\n\n{}",
        percent(kLeastError), published_table(result));
  }
  if (std::string plot = overview_plot(result); !plot.empty()) {
    page.plots["all.svg"] = std::move(plot);
    out += fmt::format(
        "\n![predicted against measured time]({}/all.svg)\n\nThe grey band is a factor of 1.25 "
        "either way.\n",
        folder);
  }
  if (std::string plot = training_plot(result); !plot.empty())
    page.plots["training.svg"] = std::move(plot);
  out += training_section(result, folder);
  out += "\n## Worst rows\n\n" + worst_table(result);
  out += "\n" + notes;
  if (!notes.ends_with('\n')) out += "\n";
  out += "\n## Records\n";
  for (const SetResult& set : result.sets) {
    out += fmt::format("\n### {}\n\n", set.name);
    if (std::string plot = set_plot(set); !plot.empty()) {
      const std::string name = file_name(set.name) + ".svg";
      page.plots[name] = std::move(plot);
      out += fmt::format("![{}]({}/{})\n\n", set.name, folder, name);
    }
    out += record_table(set);
  }
  if (!dataset.out_of_reach.empty())
    out += "\n## Out of reach\n\nPublished measurements that weft cannot replay, and why.\n\n" +
           out_of_reach_table(dataset);
  return page;
}

}  // namespace weft
