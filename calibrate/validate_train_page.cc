// SPDX-License-Identifier: Apache-2.0
#include "calibrate/validate_train_page.hpp"

#include <algorithm>
#include <cmath>
#include <map>

#include <fmt/format.h>

#include "calibrate/percent.hpp"
#include "calibrate/plots.hpp"

namespace weft {
namespace {

constexpr std::size_t kWorstRows = 25;

bool is_training(const RecordResult& record) {
  return record.record->kind == CaseKind::train && !record.rows.empty();
}

std::string figures_row(const std::string& by, const std::string& name, const ErrorFigures& figures,
                        const ErrorFigures& baseline) {
  return fmt::format("| {} | {} | {} | {} | {} | {} | {} | {} | {} |\n", by, name, figures.rows,
                     percent(figures.median), percent(figures.p90), signed_percent(figures.bias),
                     percent(baseline.median), percent(baseline.p90),
                     signed_percent(baseline.bias));
}

std::string groups_table(const ValidationResult& result) {
  std::string out =
      "| by | | rows | median | p90 | bias | constant rate: median | p90 | bias |\n"
      "| --- | --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: |\n";
  for (const SetResult& set : result.sets) {
    if (set.baseline) out += figures_row("set", set.name, set.figures, *set.baseline);
  }
  for (const GroupResult& group : result.training)
    out += figures_row(group.by, group.name, group.figures, *group.baseline);
  return out;
}

// The name of a curve or setting once, then its rows.
std::string ratios_table(const ValidationResult& result, RatioKind kind) {
  std::string out = fmt::format(
      "| {} | row | predicted | measured | error |\n| --- | --- | ---: | ---: | ---: |\n",
      kind == RatioKind::scaling ? "curve" : "setting");
  for (const RatioResult& ratio : result.ratios) {
    if (ratio.spec->kind != kind) continue;
    const std::string* name = &ratio.spec->name;
    for (const RatioRow& row : ratio.rows) {
      out +=
          fmt::format("| {} | {} | {:.3f} | {:.3f} | {} |\n", name != nullptr ? *name : "", row.id,
                      row.predicted, row.measured,
                      kind == RatioKind::scaling ? signed_percent(row.error)
                                                 : fmt::format("{:+.1f} points", 100 * row.error));
      name = nullptr;
    }
  }
  return out;
}

double factor_of(const RowResult& row) { return std::abs(std::log(row.predicted / row.measured)); }

std::string worst_table(const ValidationResult& result) {
  std::vector<std::pair<const RecordResult*, const RowResult*>> rows;
  for (const RecordResult& record : result.records) {
    if (!is_training(record) || record.record->degraded) continue;
    for (const RowResult& row : record.rows) rows.emplace_back(&record, &row);
  }
  std::ranges::stable_sort(rows, std::ranges::greater{},
                           [](const auto& row) { return factor_of(*row.second); });
  rows.resize(std::min(rows.size(), kWorstRows));
  std::string out =
      "| row | where the time goes | predicted | measured | error | constant rate | reason |\n"
      "| --- | --- | ---: | ---: | ---: | ---: | --- |\n";
  for (const auto& [record, row] : rows) {
    out += fmt::format("| {} | {} | {} {} | {} {} | {} | {} | {} |\n", row->id, row->how,
                       number(row->predicted), record->unit, number(row->measured), record->unit,
                       signed_percent(row->error), signed_percent(row->baseline_error),
                       record->record->reason);
  }
  return out;
}

}  // namespace

std::string training_plot(const ValidationResult& result) {
  std::map<std::string, std::vector<SweepPoint>> by_gpu;
  for (const RecordResult& record : result.records) {
    if (!is_training(record) || record.record->degraded) continue;
    const bool time = record.record->train.measure == TrainMeasure::iteration_s;
    for (const RowResult& row : record.rows) {
      const double ratio = time ? row.measured / row.predicted : row.predicted / row.measured;
      by_gpu[record.gpu].push_back({0, row.step_time_s * ratio, row.step_time_s});
    }
  }
  std::vector<ScatterSeries> series;
  for (auto& [gpu, points] : by_gpu) series.push_back({gpu, std::move(points)});
  return series.empty() ? std::string{} : scatter_svg("Time of every training step", "s", series);
}

std::string training_section(const ValidationResult& result, const std::string& folder) {
  if (result.training.empty()) return {};
  std::string out = fmt::format(
      "\n## Training\n\n"
      "Errors of throughput, step time, TFLOP/s or MFU as each record states it, TFLOP/s and MFU "
      "by "
      "the record's own convention. *Constant\nrate*: the same FLOPs at one TFLOP/s per GPU "
      "generation and precision, the median of the rows that are not held out. *Held out*:\nwhole "
      "groups of model and GPU that took no part in fitting; sets with fewer than 20 such rows are "
      "pooled by GPU generation.\n\n{}\n![predicted against measured step "
      "time]({}/training.svg)\n\n",
      groups_table(result), folder);
  if (result.scaling.rows > 0) {
    out += fmt::format(
        "### Scaling\n\nThroughput per GPU over that of the smallest run of the same curve: median "
        "error {}, p90 {}, bias {}.\n\n{}\n",
        percent(result.scaling.median), percent(result.scaling.p90),
        signed_percent(result.scaling.bias), ratios_table(result, RatioKind::scaling));
  }
  if (result.setting.rows > 0) {
    out += fmt::format(
        "### One setting changed\n\nThroughput with over throughput without, the error in points "
        "of "
        "the latter: median {:.1f}, p90 {:.1f}.\n\n{}\n",
        100 * result.setting.median, 100 * result.setting.p90,
        ratios_table(result, RatioKind::setting));
  }
  out += "### Worst training rows\n\n" + worst_table(result);
  return out;
}

}  // namespace weft
