// SPDX-License-Identifier: Apache-2.0
#include "calibrate/validate_train.hpp"

#include <algorithm>
#include <cmath>
#include <map>

#include <fmt/format.h>

#include "calibrate/validate_train_read.hpp"
#include "models/llm/flops.hpp"

namespace weft {
namespace {

constexpr std::size_t kSmallSet = 20;  // rows; smaller ones are pooled by GPU generation

double median_of(std::vector<double> values) {
  std::ranges::sort(values);
  const std::size_t n = values.size();
  return n == 0 ? 0 : (values[(n - 1) / 2] + values[n / 2]) / 2;
}

const ServerType& first_server(const Fabric& fabric) {
  const ServerType& type = fabric.type_of(ServerId{0});
  if (type.gpus.empty()) throw InputError("the fabric has no GPUs");
  return type;
}

// Dense, of the datasheet; 0 where it has none.
double peak_flops(const GpuSpec& gpu, Precision precision) {
  std::string name = write_config(precision).text;
  if (precision == Precision::mxfp8) name = "fp8";
  if (precision == Precision::nvfp4) name = "fp4";
  const auto found = gpu.peak.find(name);
  return found == gpu.peak.end() ? 0 : found->second.per_s;
}

// The measured quantity as it follows from a step's time.
double measure_of(const TrainCase& ask, const CaseRow& row, const Architecture& model,
                  const GpuSpec& gpu, double step_s) {
  const auto gpus = static_cast<double>(row.gpus);
  const auto seq = static_cast<double>(*ask.seq), batch = static_cast<double>(row.global_batch);
  if (ask.measure == TrainMeasure::tokens_per_s_per_gpu) return seq * batch / step_s / gpus;
  if (ask.measure == TrainMeasure::iteration_s) return step_s;
  const double flops =
      training_flops(model, ask.flops_convention, *ask.seq, row.global_batch,
                     ask.plan.recompute == Recompute::full, ask.lora_rank.has_value()) /
      step_s / gpus;
  return ask.measure == TrainMeasure::mfu ? flops / peak_flops(gpu, ask.dtype.compute)
                                          : flops * 1e-12;
}

// Adds what weft says of one row.
void predict_row(const ValidationRecord& record, const CaseRow& row,
                 const ValidationContext& context, RecordResult& out) {
  const TrainCase& ask = record.train;
  const auto one = context.fabric(ask.fabric, ask.set, 1);
  const auto per_server = static_cast<std::int64_t>(first_server(*one).gpus.size());
  const JobServers servers = spread_evenly(row.gpus, per_server);
  const auto fabric = servers.servers <= static_cast<std::int64_t>(one->server_count())
                          ? one
                          : context.fabric(ask.fabric, ask.set, servers.servers);
  const TrainingAnswer answer = context.train(*fabric, train_scenario(record, row, servers));
  const GpuSpec& gpu = first_server(*fabric).gpu_specs.front();
  const Architecture model(answer.model);
  const auto gpus = static_cast<double>(row.gpus);
  RowResult& result = out.rows.emplace_back();
  result.id = row.label.empty() ? record.id : record.id + "@" + row.label;
  result.measured = row.measured;
  result.predicted = measure_of(ask, row, model, gpu, answer.step_time_s);
  result.error = result.predicted / result.measured - 1;
  result.step_time_s = answer.step_time_s;
  result.hardware_flops = hardware_flops(model, *ask.seq, row.global_batch, ask.plan.recompute,
                                         ask.lora_rank.has_value()) /
                          gpus;
  result.throughput_factor =
      ask.measure == TrainMeasure::iteration_s ? static_cast<double>(row.global_batch) / gpus : 1;
  result.how = answer.how;
  out.gpu = gpu.architecture;
  out.precision = write_config(ask.dtype.compute).text;
}

bool is_training(const RecordResult& record) {
  return record.record->kind == CaseKind::train && !record.record->degraded && !record.rows.empty();
}

// FLOP/s per GPU that a row was measured at.
double measured_rate(const RecordResult& record, const RowResult& row) {
  const bool time = record.record->train.measure == TrainMeasure::iteration_s;
  const double ratio = time ? row.measured / row.predicted : row.predicted / row.measured;
  return row.hardware_flops / (row.step_time_s * ratio);
}

double throughput(const RecordResult& record, const RowResult& row, double value) {
  return record.record->train.measure == TrainMeasure::iteration_s ? row.throughput_factor / value
                                                                   : value;
}

}  // namespace

RecordResult predict_training(const ValidationRecord& record, const ValidationContext& context) {
  RecordResult out;
  out.record = &record;
  out.unit = unit_of(record.train.measure);
  try {
    if (!context.train) throw InputError("not yet: training jobs");
    for (const CaseRow& row : record.rows) predict_row(record, row, context, out);
  } catch (const InputError& problem) {
    out.failure = problem.what();
    out.rows.clear();
  }
  return out;
}

void add_baseline(std::vector<RecordResult>& records) {
  std::map<std::string, std::vector<double>>
      rates;  // by generation, and by generation and precision
  for (const RecordResult& record : records) {
    if (!is_training(record) || record.record->held_out) continue;
    for (const RowResult& row : record.rows) {
      const double rate = measured_rate(record, row);
      rates[record.gpu].push_back(rate);
      rates[record.gpu + " " + record.precision].push_back(rate);
    }
  }
  for (RecordResult& record : records) {
    if (!is_training(record)) continue;
    auto found = rates.find(record.gpu + " " + record.precision);
    if (found == rates.end()) found = rates.find(record.gpu);
    if (found == rates.end()) continue;
    const double constant = median_of(found->second);
    for (RowResult& row : record.rows) {
      const double ratio = constant / measured_rate(record, row);  // of throughputs
      const bool time = record.record->train.measure == TrainMeasure::iteration_s;
      row.baseline_error = (time ? 1 / ratio : ratio) - 1;
    }
  }
}

std::vector<GroupResult> training_groups(const std::vector<RecordResult>& records) {
  using Errors = std::vector<std::pair<Bytes, double>>;
  struct Group {
    Errors errors, baseline;
  };
  std::map<std::string, std::size_t> held_out_rows;  // by set
  for (const RecordResult& record : records) {
    if (is_training(record) && record.record->held_out)
      held_out_rows[record.record->set] += record.rows.size();
  }
  std::map<std::pair<int, std::string>, Group> groups;
  const std::array<const char*, 5> by{"machine", "held out", "gpu", "precision", "framework"};
  for (const RecordResult& record : records) {
    if (!is_training(record)) continue;
    const TrainCase& ask = record.record->train;
    const bool held_out = record.record->held_out;
    const auto add = [&](int kind, const std::string& name) {
      Group& group = groups[{kind, name}];
      for (const RowResult& row : record.rows) {
        group.errors.emplace_back(Bytes{0}, row.error);
        group.baseline.emplace_back(Bytes{0}, row.baseline_error);
      }
    };
    add(0, held_out ? "held out" : "fitted");
    if (held_out) {
      const bool large = held_out_rows[record.record->set] >= kSmallSet;
      add(1, large ? record.record->set : "small sets, " + record.gpu);
    }
    add(2, record.gpu);
    add(3, record.gpu + " " + record.precision);
    if (!ask.framework.empty()) add(4, ask.framework.substr(0, ask.framework.find(' ')));
  }
  std::vector<GroupResult> out;
  for (auto& [key, group] : groups) {
    out.push_back({by[static_cast<std::size_t>(key.first)], key.second,
                   error_figures(std::move(group.errors)),
                   error_figures(std::move(group.baseline))});
  }
  return out;
}

RatioResult training_ratio(const RatioSpec& spec, const std::vector<RecordResult>& records) {
  RatioResult out{.spec = &spec, .rows = {}};
  const auto find = [&](const std::string& id) -> std::pair<const RecordResult*, const RowResult*> {
    for (const RecordResult& record : records) {
      if (record.record->kind != CaseKind::train) continue;
      for (const RowResult& row : record.rows) {
        if (row.id == id) return {&record, &row};
      }
    }
    return {nullptr, nullptr};
  };
  const auto [base_record, base] = find(spec.base);
  if (base == nullptr) return out;
  for (const std::string& id : spec.rows) {
    const auto [record, row] = find(id);
    if (row == nullptr) continue;
    RatioRow& ratio = out.rows.emplace_back();
    ratio.id = id;
    ratio.predicted = throughput(*record, *row, row->predicted) /
                      throughput(*base_record, *base, base->predicted);
    ratio.measured =
        throughput(*record, *row, row->measured) / throughput(*base_record, *base, base->measured);
    ratio.error = spec.kind == RatioKind::scaling ? ratio.predicted / ratio.measured - 1
                                                  : ratio.predicted - ratio.measured;
  }
  return out;
}

}  // namespace weft
