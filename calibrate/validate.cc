// SPDX-License-Identifier: Apache-2.0
#include "calibrate/validate.hpp"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <limits>
#include <map>
#include <mutex>
#include <thread>

#include <fmt/format.h>

#include "calibrate/validate_predict.hpp"
#include "calibrate/validate_train.hpp"
#include "sim/core/check.hpp"
#include "sim/core/quantile.hpp"
#include "sim/core/text.hpp"

namespace weft {
namespace {

double median_of(std::vector<double> values) {
  if (values.empty()) return 0;
  std::ranges::sort(values);
  return quantile(values, 0.5);
}

using Errors = std::vector<std::pair<Bytes, double>>;

void append(const RecordResult& record, Errors& out) {
  for (const RowResult& row : record.rows) out.emplace_back(row.bytes, row.error);
}

std::vector<std::string> broken_limits(const SetResult& set) {
  std::vector<std::string> out;
  if (set.spec == nullptr) return out;
  const auto check = [&](const char* name, double value, const std::optional<double>& most) {
    if (most && !(value <= *most))
      out.push_back(fmt::format("{} {:.3f} is above {:g}", name, value, *most));
  };
  const SetLimits& limit = set.spec->limit;
  check("median", set.figures.median, limit.median);
  check("p90", set.figures.p90, limit.p90);
  check("absolute bias", std::abs(set.figures.bias), limit.bias);
  check("median of large messages", set.figures.median_large, limit.median_large);
  return out;
}

// Of sets of training runs only.
std::optional<ErrorFigures> baseline_of(const SetResult& set) {
  Errors errors;
  for (const RecordResult* record : set.records) {
    if (record->record->kind != CaseKind::train) return std::nullopt;
    for (const RowResult& row : record->rows) errors.emplace_back(row.bytes, row.baseline_error);
  }
  return error_figures(std::move(errors));
}

ErrorFigures ratio_figures(const std::vector<RatioResult>& ratios, RatioKind kind) {
  Errors errors;
  for (const RatioResult& ratio : ratios) {
    if (ratio.spec->kind != kind) continue;
    for (const RatioRow& row : ratio.rows) errors.emplace_back(Bytes{0}, row.error);
  }
  return error_figures(std::move(errors));
}

std::vector<SetResult> by_set(const Dataset& dataset, const std::vector<RecordResult>& records) {
  std::vector<SetResult> out;
  const auto find = [&](const std::string& name) -> SetResult& {
    const auto found = std::ranges::find(out, name, &SetResult::name);
    if (found != out.end()) return *found;
    out.push_back({.name = name});
    return out.back();
  };
  for (const SetSpec& spec : dataset.sets) find(spec.name).spec = &spec;
  for (const RecordResult& record : records) find(record.record->set).records.push_back(&record);
  std::erase_if(out, [](const SetResult& set) { return set.records.empty(); });
  for (SetResult& set : out) {
    Errors errors;
    const bool all_degraded =
        std::ranges::all_of(set.records, [](const RecordResult* r) { return r->record->degraded; });
    for (const RecordResult* record : set.records) {
      if (all_degraded || !record->record->degraded) append(*record, errors);
    }
    set.figures = error_figures(std::move(errors));
    set.baseline = baseline_of(set);
    set.broken_limits = broken_limits(set);
  }
  return out;
}

constexpr std::array<std::pair<std::string_view, std::int64_t>, 4> kSizes{
    {{"up to 64 KiB", 64 << 10},
     {"64 KiB to 1 MiB", 1 << 20},
     {"1 to 16 MiB", (16 << 20) - 1},
     {"16 MiB and more", std::numeric_limits<std::int64_t>::max()}}};

std::vector<GroupResult> by_group(const std::vector<RecordResult>& records) {
  std::map<std::pair<int, std::string>, Errors> groups;  // order of `by`, name
  const std::array<const char*, 5> by{"machine", "size", "gpu", "network", "collective"};
  for (const RecordResult& record : records) {
    if (record.record->degraded || record.record->kind != CaseKind::nccl || record.rows.empty())
      continue;
    append(record, groups[{0, record.record->held_out ? "held out" : "fitted"}]);
    append(record, groups[{2, record.gpu}]);
    append(record, groups[{3, record.network}]);
    append(record, groups[{4, write_config(record.record->nccl.collective).text}]);
    for (const RowResult& row : record.rows) {
      int band = 0;
      while (row.bytes.count > kSizes[static_cast<std::size_t>(band)].second) ++band;
      groups[{1, fmt::format("{}{}", band, kSizes[static_cast<std::size_t>(band)].first)}]
          .emplace_back(row.bytes, row.error);
    }
  }
  std::vector<GroupResult> out;
  for (auto& [key, errors] : groups) {
    const std::string& name = key.second;
    out.push_back({by[static_cast<std::size_t>(key.first)], key.first == 1 ? name.substr(1) : name,
                   error_figures(std::move(errors)), std::nullopt});
  }
  return out;
}

PublishedResult beside_published(const PublishedError& spec,
                                 const std::vector<RecordResult>& records) {
  PublishedResult out{.spec = &spec};
  double log_error = 0, log_ratio = 0;
  for (const RecordResult& record : records) {
    if (record.record->degraded) continue;
    for (const RowResult& row : record.rows) {
      const auto named = [&](const std::string& pattern) { return glob_match(pattern, row.id); };
      if (std::ranges::none_of(spec.rows, named)) continue;
      ++out.rows;
      log_error += std::log(std::max(std::abs(row.error), kLeastError));
      log_ratio += std::abs(std::log(row.predicted / row.measured));
    }
  }
  if (out.rows == 0) return out;
  out.geometric_mean = std::exp(log_error / static_cast<double>(out.rows));
  out.ratio = std::expm1(log_ratio / static_cast<double>(out.rows));
  const double most = spec.limit.value_or(spec.error);
  if (!(out.geometric_mean <= most))
    out.broken_limit = fmt::format("geometric mean {:.3f} is above {:g}", out.geometric_mean, most);
  return out;
}

}  // namespace

ErrorFigures error_figures(std::vector<std::pair<Bytes, double>> errors) {
  ErrorFigures out;
  std::vector<double> absolute, signed_errors, large, signed_large;
  for (const auto& [bytes, error] : errors) {
    absolute.push_back(std::abs(error));
    signed_errors.push_back(error);
    if (bytes < kLargeMessage) continue;
    large.push_back(std::abs(error));
    signed_large.push_back(error);
  }
  out.rows = absolute.size();
  out.rows_large = large.size();
  if (absolute.empty()) return out;
  std::ranges::sort(absolute);
  out.median = quantile(absolute, 0.5);
  out.p90 = quantile(absolute, 0.9);
  out.bias = median_of(std::move(signed_errors));
  out.median_large = median_of(std::move(large));
  out.bias_large = median_of(std::move(signed_large));
  return out;
}

ValidationResult validate(const Dataset& dataset, const ValidationContext& context) {
  ValidationResult out;
  out.records.resize(dataset.records.size());
  std::atomic<std::size_t> next{0};
  std::exception_ptr failure;
  std::mutex mutex;
  const auto work = [&] {
    try {
      for (std::size_t i = next++; i < dataset.records.size(); i = next++) {
        const ValidationRecord& record = dataset.records[i];
        if (context.progress) {
          const std::lock_guard lock(mutex);
          context.progress(record.id);
        }
        out.records[i] = predict_record(record, context);
      }
    } catch (...) {
      const std::lock_guard lock(mutex);
      if (!failure) failure = std::current_exception();
      next = dataset.records.size();
    }
  };
  {
    std::vector<std::jthread> others;
    for (unsigned t = 1; t < context.threads; ++t) others.emplace_back(work);
    work();
  }
  if (failure) std::rethrow_exception(failure);
  add_baseline(out.records);
  Errors errors;
  for (const RecordResult& record : out.records) {
    out.too_coarse += record.record->too_coarse;
    out.outside += record.record->outside;
    out.missing += record.record->missing;
    if (!record.record->degraded) append(record, errors);
  }
  out.all = error_figures(std::move(errors));
  out.sets = by_set(dataset, out.records);
  out.groups = by_group(out.records);
  out.training = training_groups(out.records);
  for (const RatioSpec& spec : dataset.ratios)
    out.ratios.push_back(training_ratio(spec, out.records));
  out.scaling = ratio_figures(out.ratios, RatioKind::scaling);
  out.setting = ratio_figures(out.ratios, RatioKind::setting);
  for (const PublishedError& spec : dataset.published)
    out.published.push_back(beside_published(spec, out.records));
  return out;
}

}  // namespace weft
