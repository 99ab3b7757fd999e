// SPDX-License-Identifier: Apache-2.0
// Replays measured records and says how far off the predictions are.
//
// error     predicted / measured - 1 of one row; of the time for nccl, of the quantity itself for p2p.
// median    of the absolute errors; p90 their ninth decile; bias the median of the signed ones.
// large     rows of 16 MiB and more, where bandwidth decides; the others are decided by latencies and protocols.
// baseline  what a constant rate per GPU would say of training runs: hardware FLOPs (recomputation and the causal half of
//           attention counted) over one TFLOP/s per GPU generation and precision, the median of the rows not held out.
// ratios    throughputs of training runs that differ in one thing; constants of the machine cancel in them.
// degraded  records of set-ups with a fault are predicted and shown, and count in no figure but their own set's.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "calibrate/validate_case.hpp"
#include "sim/fabric/fabric.hpp"

namespace weft {

inline constexpr Bytes kLargeMessage = 16_MiB;

struct RowResult {
  std::string id;  // "record@row"
  Bytes bytes{0};
  double predicted = 0, measured = 0;  // in `unit` of the record
  double error = 0;
  double predicted_gbs = 0, measured_gbs = 0;  // bus bandwidth of nccl rows, for plots
  std::string
      how;  // algorithm, protocol and channels, the way of a copy, or where a step's time goes
  // Training: FLOPs of a step per GPU as the hardware does them, its predicted time, and the error of the baseline.
  double hardware_flops = 0, step_time_s = 0, baseline_error = 0;
  double throughput_factor =
      0;  // tokens/s/GPU (or what stands for it) = this x value, or this / value for times
};

struct RecordResult {
  const ValidationRecord* record = nullptr;
  std::string unit;       // "us", "GB/s", or of the measure of a training run
  std::string precision;  // of the matrix products of a training run
  std::string gpu;        // architecture: "hopper"
  std::string network;  // transport of the NICs that were used: "infiniband"; "one server" without
  std::vector<RowResult> rows;
  std::string failure;  // why there is no prediction
};

struct ErrorFigures {
  std::size_t rows = 0, rows_large = 0;
  double median = 0, p90 = 0, bias = 0, median_large = 0, bias_large = 0;
};

struct SetResult {
  std::string name;
  const SetSpec* spec = nullptr;
  ErrorFigures figures;
  std::optional<ErrorFigures> baseline;  // of training runs
  std::vector<const RecordResult*> records;
  std::vector<std::string> broken_limits;  // "median 0.31 is above 0.12"
};

// Rows beside a published error. A geometric mean of absolute errors is what others print; small errors count as
// kLeastError in it, or one lucky row would decide. `ratio` is the geometric mean of how many times too much or too little,
// less one: never below it.
inline constexpr double kLeastError = 0.001;

struct PublishedResult {
  const PublishedError* spec = nullptr;
  std::size_t rows = 0;
  double geometric_mean = 0, ratio = 0;
  std::string broken_limit;
};

// Rows of one kind over all sets: by GPU generation, network, size, and whether the machine took part in fitting.
struct GroupResult {
  std::string by, name;
  ErrorFigures figures;
  std::optional<ErrorFigures> baseline;
};

struct RatioRow {
  std::string id;
  double predicted = 0, measured = 0;  // throughput per GPU over the base's
  // scaling: predicted / measured - 1; setting: predicted - measured, in points of the base's throughput over 100.
  double error = 0;
};
struct RatioResult {
  const RatioSpec* spec = nullptr;
  std::vector<RatioRow> rows;
};

struct ValidationResult {
  std::vector<RecordResult> records;
  std::vector<SetResult> sets;        // in the order of the dataset
  std::vector<GroupResult> groups;    // of collectives
  std::vector<GroupResult> training;  // of training runs
  std::vector<RatioResult> ratios;
  ErrorFigures scaling, setting;  // of all ratios of a kind
  std::vector<PublishedResult> published;
  ErrorFigures all;
  std::size_t too_coarse = 0, outside = 0, missing = 0;
};

// What weft says of one training run.
struct TrainingAnswer {
  double step_time_s = 0;
  LlmSpec model;    // as it was run
  std::string how;  // "compute 81 %, tp 9 %, bubble 7 %"
};

struct ValidationContext {
  // The fabric of a case with `servers` of them where it has a network and the case does not say.
  std::function<std::shared_ptr<const Fabric>(const std::string& reference, const Json& changes,
                                              std::int64_t servers)>
      fabric;
  // Runs a scenario of one training job on a fabric that `fabric` gave. Training records fail without it.
  std::function<TrainingAnswer(const Fabric& fabric, const Json& scenario)> train;
  // The report of a scenario, or of one in a file, with changes by pointer. Records of congestion fail without it.
  std::function<Json(const Json& scenario, const Json& changes)> report;
  std::function<void(const std::string& record)> progress;  // may be empty
  unsigned threads = 1;
};

ValidationResult validate(const Dataset& dataset, const ValidationContext& context);

ErrorFigures error_figures(std::vector<std::pair<Bytes, double>> errors);

}  // namespace weft
