// SPDX-License-Identifier: Apache-2.0
#include "tools/cli/validate_output.hpp"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "calibrate/percent.hpp"
#include "tools/cli/cli.hpp"
#include "tools/cli/output.hpp"

namespace weft {
namespace {

constexpr std::size_t kWorstRows = 12;

// Every key is there; null where no row says anything.
Json figures_json(const ErrorFigures& figures) {
  const auto of = [](std::size_t rows, double value) { return rows > 0 ? Json(value) : Json{}; };
  Json out = Json::object();
  out.set("rows", std::uint64_t{figures.rows});
  out.set("median_abs_rel_error", of(figures.rows, figures.median));
  out.set("p90_abs_rel_error", of(figures.rows, figures.p90));
  out.set("bias", of(figures.rows, figures.bias));
  out.set("rows_large", std::uint64_t{figures.rows_large});
  out.set("median_abs_rel_error_large", of(figures.rows_large, figures.median_large));
  out.set("bias_large", of(figures.rows_large, figures.bias_large));
  return out;
}

Json case_json(const RecordResult& record, const RowResult& row) {
  Json out = Json::object();
  out.set("id", row.id);
  out.set("predicted", row.predicted);
  out.set("measured", row.measured);
  out.set("unit", record.unit);
  out.set("error", row.error);
  out.set("how", row.how);
  if (record.record->degraded) out.set("degraded", true);
  if (record.record->held_out) out.set("held_out", true);
  if (record.record->kind != CaseKind::train) return out;
  out.set("baseline_error", row.baseline_error);
  out.set("step_time_s", row.step_time_s);
  if (const auto tolerance = record.record->train.tolerance) {
    out.set("tolerance", *tolerance);
    out.set("within_tolerance", std::abs(row.error) <= *tolerance);
  }
  return out;
}

Json baseline_json(const ErrorFigures& figures) {
  const Json all = figures_json(figures);
  Json out = Json::object();
  for (const char* key : {"median_abs_rel_error", "p90_abs_rel_error", "bias"})
    out.set(key, *all.find(key));
  return out;
}

Json group_json(const GroupResult& group) {
  Json out = Json::object();
  out.set("by", group.by);
  out.set("name", group.name);
  const Json figures = figures_json(group.figures);
  for (const JsonMember& member : figures.members) out.set(member.key, member.value);
  if (group.baseline) out.set("baseline", baseline_json(*group.baseline));
  return out;
}

Json training_json(const ValidationResult& result) {
  Json out = Json::object();
  Json& groups = out.set("groups", Json::array());
  for (const GroupResult& group : result.training) groups.push(group_json(group));
  Json& ratios = out.set("ratios", Json::array());
  for (const RatioResult& ratio : result.ratios) {
    for (const RatioRow& row : ratio.rows) {
      Json entry = Json::object();
      entry.set("name", ratio.spec->name);
      entry.set("kind", write_config(ratio.spec->kind));
      entry.set("id", row.id);
      entry.set("base", ratio.spec->base);
      entry.set("predicted", row.predicted);
      entry.set("measured", row.measured);
      entry.set("error", row.error);
      ratios.push(std::move(entry));
    }
  }
  out.set("scaling", baseline_json(result.scaling));
  out.set("setting", baseline_json(result.setting));
  return out;
}

std::vector<std::string> cells(std::string name, const ErrorFigures& figures) {
  std::vector<std::string> row{std::move(name), fmt::format("{}", figures.rows)};
  if (figures.rows == 0) {
    row.resize(7);
    return row;
  }
  row.push_back(percent(figures.median));
  row.push_back(percent(figures.p90));
  row.push_back(signed_percent(figures.bias));
  row.push_back(fmt::format("{}", figures.rows_large));
  row.push_back(figures.rows_large > 0 ? percent(figures.median_large) : "");
  return row;
}

std::string training(const ValidationResult& result) {
  std::string out;
  Table groups({"training rows by", "rows", "median", "p90", "bias", "constant rate", "p90"});
  for (const GroupResult& group : result.training) {
    groups.row({group.by + ": " + group.name, fmt::format("{}", group.figures.rows),
                percent(group.figures.median), percent(group.figures.p90),
                signed_percent(group.figures.bias), percent(group.baseline->median),
                percent(group.baseline->p90)});
  }
  if (!groups.empty()) out += groups.text() + "\n";
  Table ratios({"throughput beside", "row", "predicted", "measured", "error"});
  for (const RatioResult& ratio : result.ratios) {
    for (const RatioRow& row : ratio.rows) {
      const bool scaling = ratio.spec->kind == RatioKind::scaling;
      ratios.row(
          {ratio.spec->name, row.id, fmt::format("{:.3f}", row.predicted),
           fmt::format("{:.3f}", row.measured),
           scaling ? signed_percent(row.error) : fmt::format("{:+.1f} points", 100 * row.error)});
    }
  }
  if (!ratios.empty()) {
    out += ratios.text() + "\n";
    out += fmt::format(
        "Scaling: median {} of {}. One setting changed: median {:.1f} points of {}.\n\n",
        percent(result.scaling.median), result.scaling.rows, 100 * result.setting.median,
        result.setting.rows);
  }
  return out;
}

std::string worst(const ValidationResult& result) {
  std::vector<std::pair<const RecordResult*, const RowResult*>> rows;
  for (const RecordResult& record : result.records) {
    if (record.record->degraded) continue;
    for (const RowResult& row : record.rows) rows.emplace_back(&record, &row);
  }
  // How many times too much or too little.
  std::ranges::stable_sort(rows, std::ranges::greater{}, [](const auto& row) {
    return std::abs(std::log(row.second->predicted / row.second->measured));
  });
  rows.resize(std::min(rows.size(), kWorstRows));
  Table table({"worst rows", "predicted", "measured", "unit", "error", "how"});
  for (const auto& [record, row] : rows) {
    table.row({row->id, fmt::format("{:.4g}", row->predicted), fmt::format("{:.4g}", row->measured),
               record->unit, signed_percent(row->error), row->how});
  }
  return table.empty() ? std::string{} : table.text() + "\n";
}

}  // namespace

Json validation_json(const ValidationResult& result) {
  Json out = Json::object();
  out.set("weft", json_head());
  out.set("all", figures_json(result.all));
  Json skipped = Json::object();
  skipped.set("too_coarse", std::uint64_t{result.too_coarse});
  skipped.set("outside", std::uint64_t{result.outside});
  skipped.set("missing", std::uint64_t{result.missing});
  out.set("skipped", std::move(skipped));
  Json& sets = out.set("sets", Json::array());
  for (const SetResult& set : result.sets) {
    Json entry = Json::object();
    entry.set("name", set.name);
    const Json figures = figures_json(set.figures);
    for (const JsonMember& member : figures.members) entry.set(member.key, member.value);
    if (set.baseline) entry.set("baseline", baseline_json(*set.baseline));
    Json broken = Json::array();
    for (const std::string& limit : set.broken_limits) broken.push(limit);
    entry.set("broken_limits", std::move(broken));
    Json& cases = entry.set("cases", Json::array());
    for (const RecordResult* record : set.records) {
      for (const RowResult& row : record->rows) cases.push(case_json(*record, row));
    }
    sets.push(std::move(entry));
  }
  Json& published = out.set("published", Json::array());
  for (const PublishedResult& entry : result.published) {
    Json item = Json::object();
    item.set("name", entry.spec->name);
    item.set("published", entry.spec->error);
    item.set("rows", std::uint64_t{entry.rows});
    item.set("geometric_mean", entry.rows > 0 ? Json(entry.geometric_mean) : Json{});
    item.set("geometric_ratio", entry.rows > 0 ? Json(entry.ratio) : Json{});
    item.set("broken_limit", entry.broken_limit.empty() ? Json{} : Json(entry.broken_limit));
    published.push(std::move(item));
  }
  Json& groups = out.set("groups", Json::array());
  for (const GroupResult& group : result.groups) groups.push(group_json(group));
  out.set("training", training_json(result));
  return out;
}

std::string validation_text(const ValidationResult& result) {
  const std::vector<std::string> columns{"rows", "median", "p90", "bias", "large", "median"};
  const auto header = [&](const char* first) {
    std::vector<std::string> out{first};
    out.insert(out.end(), columns.begin(), columns.end());
    return out;
  };
  std::string out;
  Table sets(header("set"));
  for (const SetResult& set : result.sets) {
    auto row = cells(set.name, set.figures);
    sets.row(std::move(row));
  }
  sets.row(cells("all but degraded set-ups", result.all));
  out += sets.text() + "\n";
  if (!result.groups.empty()) {
    Table groups(header("nccl rows by"));
    for (const GroupResult& group : result.groups)
      groups.row(cells(group.by + ": " + group.name, group.figures));
    out += groups.text() + "\n";
  }
  out += training(result);
  out += worst(result);
  Table beside({"beside published errors", "rows", "published", "weft", "ratio"});
  for (const PublishedResult& entry : result.published) {
    if (entry.rows == 0) continue;
    beside.row({entry.spec->name, fmt::format("{}", entry.rows), percent(entry.spec->error),
                percent(entry.geometric_mean), percent(entry.ratio)});
  }
  if (!beside.empty()) out += beside.text() + "\n";
  out += fmt::format(
      "An error is predicted / measured - 1. Large: 16 MiB and more. Not compared: {} rows "
      "printed "
      "with\ntoo few digits, {} below the size from which their case holds, {} without a "
      "value.\n",
      result.too_coarse, result.outside, result.missing);
  for (const SetResult& set : result.sets) {
    for (const std::string& limit : set.broken_limits)
      out += fmt::format("{}: {}\n", set.name, limit);
  }
  return out;
}

}  // namespace weft
