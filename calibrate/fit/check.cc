// SPDX-License-Identifier: Apache-2.0
#include "calibrate/fit/check.hpp"

#include <algorithm>
#include <cmath>
#include <set>

#include "calibrate/log_facts.hpp"

namespace weft {
namespace {

FitData part_of(const FitData& data, const std::vector<bool>& keep) {
  FitData out;
  out.instrument = data.instrument;
  std::size_t i = 0;
  for (const FitTable& table : data.tables) {
    FitTable some = table;
    some.rows.clear();
    for (const FitRow& row : table.rows)
      if (keep[i++]) some.rows.push_back(row);
    if (!some.rows.empty()) out.tables.push_back(std::move(some));
  }
  out.servers = data.servers;
  for (const FitCopy& copy : data.copies)
    if (keep[i++]) out.copies.push_back(copy);
  for (const FitKernel& kernel : data.kernels)
    if (keep[i++]) out.kernels.push_back(kernel);
  return out;
}

HoldOut with_keep(const FitMachine& machine, const FitData& data, const std::vector<bool>& keep,
                  const FitOptions& options) {
  HoldOut out;
  const std::vector<MeasuredPoint> rows = measured_points(data);
  std::vector<bool> fitted(rows.size()), left(rows.size());
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const bool usable = rows[i].refused.empty();
    fitted[i] = usable && keep[i];
    left[i] = usable && !keep[i];
    out.fitted += fitted[i] ? 1 : 0;
  }
  const FitData rest = part_of(data, left);
  if (out.fitted == 0 || (rest.tables.empty() && rest.copies.empty() && rest.kernels.empty()))
    return out;
  const FitResult found = fit(machine, part_of(data, fitted), options);
  const std::vector<PredictedRow> predicted = predict_with_error(machine, found, rest, options);
  const std::vector<MeasuredPoint> asked = measured_points(rest);
  const double t = student_t(kIntervalLevel, found.freedom);
  for (std::size_t i = 0; i < asked.size(); ++i) {
    const double off = std::abs(std::log(predicted[i].value / asked[i].measured));
    if (!std::isfinite(off)) continue;  // weft has no prediction for it
    const double half = t * predicted[i].sd;
    out.rows.push_back({asked[i], predicted[i].value, predicted[i].sd, half, off <= half});
  }
  summarise(out);
  return out;
}

// Every class in turn is left out.
template <class ClassOf>
HoldOut in_turn(const FitMachine& machine, const FitData& data, const FitOptions& options,
                ClassOf class_of) {
  std::vector<std::string> of;
  for (const FitTable& table : data.tables) of.push_back(class_of(table));
  HoldOut out;
  for (const std::string& left_out : std::set<std::string>(of.begin(), of.end())) {
    std::vector<bool> keep;
    for (std::size_t t = 0; t < data.tables.size(); ++t)
      keep.insert(keep.end(), data.tables[t].rows.size(), of[t] != left_out);
    keep.insert(keep.end(), data.copies.size() + data.kernels.size(), true);
    add_rows(out, with_keep(machine, data, keep, options));
  }
  return out;
}

}  // namespace

void summarise(HoldOut& result) {
  std::vector<double> sizes, errors;
  std::size_t covered = 0;
  for (const HeldOutRow& row : result.rows) {
    sizes.push_back(std::abs(row.error()));
    errors.push_back(row.error());
    covered += row.covered ? 1 : 0;
  }
  if (sizes.empty()) return;
  result.median = median(sizes);
  result.bias = median(errors);
  std::ranges::sort(sizes);
  result.p90 = sizes[static_cast<std::size_t>(0.9 * static_cast<double>(sizes.size() - 1))];
  result.coverage = static_cast<double>(covered) / static_cast<double>(sizes.size());
}

void add_rows(HoldOut& to, const HoldOut& from) {
  to.rows.insert(to.rows.end(), from.rows.begin(), from.rows.end());
  to.fitted = std::max(to.fitted, from.fitted);
  summarise(to);
}

HoldOut hold_out(const FitMachine& machine, const FitData& data,
                 const std::function<bool(const MeasuredPoint&)>& keep, const FitOptions& options) {
  std::vector<bool> kept;
  for (const MeasuredPoint& row : measured_points(data)) kept.push_back(keep(row));
  return with_keep(machine, data, kept, options);
}

HoldOut hold_out_sizes(const FitMachine& machine, const FitData& data,
                       const std::vector<Bytes>& sizes, const FitOptions& options) {
  std::vector<bool> keep;
  for (const FitTable& table : data.tables) {
    const std::size_t first = keep.size();
    keep.resize(first + table.rows.size(), false);
    for (const Bytes size : sizes) {
      std::size_t nearest = table.rows.size();
      double best = 0;
      for (std::size_t i = 0; i < table.rows.size(); ++i) {
        if (!table.rows[i].refused.empty()) continue;
        const double off = std::abs(std::log(table.rows[i].bytes.value() / size.value()));
        if (nearest < table.rows.size() && off >= best) continue;
        nearest = i;
        best = off;
      }
      if (nearest < table.rows.size()) keep[first + nearest] = true;
    }
  }
  keep.insert(keep.end(), data.copies.size() + data.kernels.size(), true);
  return with_keep(machine, data, keep, options);
}

HoldOut hold_out_groups(const FitMachine& machine, const FitData& data, const FitOptions& options) {
  return in_turn(machine, data, options, [](const FitTable& table) {
    return std::to_string(table.nodes) + " " + std::to_string(table.ranks) + " " +
           std::to_string(table.per_node.value_or(0));
  });
}

HoldOut hold_out_collectives(const FitMachine& machine, const FitData& data,
                             const FitOptions& options) {
  return in_turn(machine, data, options,
                 [](const FitTable& table) { return write_config(table.collective).text; });
}

}  // namespace weft
