// SPDX-License-Identifier: Apache-2.0
#include "calibrate/fit/check.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <optional>
#include <set>

#include <fmt/format.h>

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

// The rows of `data` that may be fitted, and of them those that are not kept.
struct Split {
  FitData kept, left;
  std::size_t fitted = 0, predicted = 0;
};
Split split(const FitData& data, const std::vector<bool>& keep) {
  Split out;
  const std::vector<MeasuredPoint> rows = measured_points(data);
  std::vector<bool> fitted(rows.size()), left(rows.size());
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const bool usable = rows[i].refused.empty();
    fitted[i] = usable && keep[i];
    left[i] = usable && !keep[i];
  }
  out.fitted = static_cast<std::size_t>(std::ranges::count(fitted, true));
  out.predicted = static_cast<std::size_t>(std::ranges::count(left, true));
  out.kept = part_of(data, fitted);
  out.left = part_of(data, left);
  return out;
}

// What a fit to such rows finds wrong with the machine.
std::optional<FoundFault> fault_in(const FitMachine& machine, const Split& parts,
                                   const FitOptions& options) {
  if (parts.fitted == 0 || parts.kept.copies.empty()) return std::nullopt;
  const std::vector<FoundFault> found =
      find_faults(machine, parts.kept, fit(machine, parts.kept, options));
  return found.empty() ? std::nullopt : std::optional(found.front());
}

HoldOut with_keep(const FitMachine& machine, const FitData& data, const std::vector<bool>& keep,
                  const FitOptions& options, const std::optional<FoundFault>& fault) {
  HoldOut out;
  Split parts = split(data, keep);
  FitMachine real = machine;
  if (fault) {
    const std::size_t all = parts.fitted + parts.predicted;
    parts = split(without_victims(data, *fault), keep);
    out.faults.push_back(fault->what());
    out.spoilt = all - parts.fitted - parts.predicted;
    real = faulty_machine(machine, *fault);
  }
  if (parts.fitted == 0 || parts.predicted == 0) return out;
  const FitResult found = fit(real, parts.kept, options);
  out.fitted = parts.fitted;
  const std::vector<PredictedRow> predicted = predict_with_error(real, found, parts.left, options);
  const std::vector<MeasuredPoint> asked = measured_points(parts.left);
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
  // Once, in what every turn keeps.
  std::vector<bool> always(measured_points(data).size(), true);
  std::fill_n(always.begin(), always.size() - data.copies.size() - data.kernels.size(), false);
  const std::optional<FoundFault> fault = fault_in(machine, split(data, always), options);
  for (const std::string& left_out : std::set<std::string>(of.begin(), of.end())) {
    std::vector<bool> keep;
    for (std::size_t t = 0; t < data.tables.size(); ++t)
      keep.insert(keep.end(), data.tables[t].rows.size(), of[t] != left_out);
    keep.insert(keep.end(), data.copies.size() + data.kernels.size(), true);
    add_rows(out, with_keep(machine, data, keep, options, fault));
  }
  return out;
}

// Sizes of one kind of copy or kernel, in order: every other one between the smallest and the largest is left out.
class Between {
 public:
  explicit Between(const FitData& data) {
    for (const FitCopy& copy : data.copies)
      if (copy.refused.empty()) sizes_[kind_of(copy)].insert(size_of(copy));
    for (const FitKernel& kernel : data.kernels)
      if (kernel.refused.empty()) sizes_[kind_of(kernel)].insert(size_of(kernel));
  }
  template <class Row>
  bool keeps(const Row& row) const {
    const auto found = sizes_.find(kind_of(row));
    if (found == sizes_.end()) return true;
    const auto& sizes = found->second;
    const auto at = sizes.find(size_of(row));
    return at == sizes.end() || std::next(at) == sizes.end() ||
           std::distance(sizes.begin(), at) % 2 == 0;
  }

 private:
  static std::string kind_of(const FitCopy& copy) {
    return fmt::format("{} {} {}", copy.group, static_cast<int>(copy.quantity), copy.both_ways);
  }
  static std::string kind_of(const FitKernel& kernel) {
    return fmt::format("{} {}", write_config(kernel.test).text, kernel.type);
  }
  using Size = std::array<double, 4>;
  static Size size_of(const FitCopy& copy) { return {copy.bytes.value()}; }
  static Size size_of(const FitKernel& kernel) {
    const auto m = static_cast<double>(kernel.m), n = static_cast<double>(kernel.n),
               k = static_cast<double>(kernel.k);
    return kernel.test == KernelTest::matmul ? Size{m * n * k, m, n, k}
                                             : Size{kernel.bytes.value()};
  }
  std::map<std::string, std::set<Size>> sizes_;
};

void keep_between(const FitData& data, std::vector<bool>& keep) {
  const Between between(data);
  std::map<int, bool> together;  // what starts together stays together
  for (const FitCopy& copy : data.copies) {
    const bool kept = between.keeps(copy);
    keep.push_back(copy.together > 0 ? together.try_emplace(copy.together, kept).first->second
                                     : kept);
  }
  for (const FitKernel& kernel : data.kernels) keep.push_back(between.keeps(kernel));
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
  result.p90 =
      sizes[static_cast<std::size_t>(std::ceil(0.9 * static_cast<double>(sizes.size()))) - 1];
  result.coverage = static_cast<double>(covered) / static_cast<double>(sizes.size());
}

std::vector<HeldOutKind> kinds_of(const HoldOut& found) {
  std::vector<HeldOutKind> out;
  for (const auto& [name, kinds] : {std::pair{"collectives", std::vector{PointKind::collective}},
                                    {"copies", std::vector{PointKind::copy, PointKind::latency}},
                                    {"kernels", std::vector{PointKind::kernel}}}) {
    HeldOutKind& kind = out.emplace_back();
    kind.name = name;
    for (const HeldOutRow& row : found.rows)
      if (std::ranges::find(kinds, row.point.kind) != kinds.end()) kind.of.rows.push_back(row);
    summarise(kind.of);
    if (kind.of.rows.empty()) out.pop_back();
  }
  return out;
}

std::vector<std::string> fault_notes(const HoldOut& found) {
  std::vector<std::string> out;
  for (const std::string& fault : found.faults)
    out.push_back(fmt::format("fault: {}. What was left out is predicted with it", fault));
  if (found.spoilt > 0)
    out.push_back(fmt::format(
        "{} rows are neither fitted nor predicted: started together with one over the faulty part",
        found.spoilt));
  return out;
}

void add_rows(HoldOut& to, const HoldOut& from) {
  to.rows.insert(to.rows.end(), from.rows.begin(), from.rows.end());
  to.fitted = std::max(to.fitted, from.fitted);
  to.spoilt = std::max(to.spoilt, from.spoilt);
  for (const std::string& fault : from.faults)
    if (std::ranges::find(to.faults, fault) == to.faults.end()) to.faults.push_back(fault);
  summarise(to);
}

HoldOut hold_out(const FitMachine& machine, const FitData& data,
                 const std::function<bool(const MeasuredPoint&)>& keep, const FitOptions& options) {
  std::vector<bool> kept;
  for (const MeasuredPoint& row : measured_points(data)) kept.push_back(keep(row));
  return with_keep(machine, data, kept, options, fault_in(machine, split(data, kept), options));
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
  keep_between(data, keep);
  return with_keep(machine, data, keep, options, fault_in(machine, split(data, keep), options));
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
