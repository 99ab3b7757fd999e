// SPDX-License-Identifier: Apache-2.0
// Replays measured records and says how far off the predictions are.
//
// error     predicted / measured - 1 of one row; of the time for nccl, of the quantity itself for p2p.
// median    of the absolute errors; p90 their ninth decile; bias the median of the signed ones.
// large     rows of 16 MiB and more, where bandwidth decides; the others are decided by latencies and protocols.
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
  std::string how;  // algorithm, protocol and channels, or the way of a copy
};

struct RecordResult {
  const ValidationRecord* record = nullptr;
  std::string unit;     // "us" or "GB/s"
  std::string gpu;      // architecture: "hopper"
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
};

struct ValidationResult {
  std::vector<RecordResult> records;
  std::vector<SetResult> sets;  // in the order of the dataset
  std::vector<GroupResult> groups;
  std::vector<PublishedResult> published;
  ErrorFigures all;
  std::size_t too_coarse = 0, outside = 0, missing = 0;
};

struct ValidationContext {
  // The fabric of a case with `servers` of them where it has a network and the case does not say.
  std::function<std::shared_ptr<const Fabric>(const std::string& reference, const Json& changes,
                                              std::int64_t servers)>
      fabric;
  std::function<void(const std::string& record)> progress;  // may be empty
  unsigned threads = 1;
};

ValidationResult validate(const Dataset& dataset, const ValidationContext& context);

ErrorFigures error_figures(std::vector<std::pair<Bytes, double>> errors);

}  // namespace weft
