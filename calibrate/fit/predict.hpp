// SPDX-License-Identifier: Apache-2.0
// What was measured, as questions to weft, and weft's answers for a machine whose parameters have given values. The whole
// fabric is read and built again for each set of values: a few milliseconds, and no second notion of what a value means. What
// NCCL builds on it is searched once, as it rests on none of the parameters.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "calibrate/fit/parameters.hpp"
#include "calibrate/measured_samples.hpp"
#include "models/nccl/predict.hpp"
#include "sim/fabric/fabric.hpp"
#include "sim/fabric/routing.hpp"

namespace weft {

struct FitRow {
  Bytes bytes{0};
  double us = 0;
  double spread = 0;    // relative, of repeats; 0 when it is not known
  std::string refused;  // why it is not fitted: "first size pays for the warm-up"
};

// One collective among the same ranks.
struct FitTable {
  std::string name;
  CollectiveKind collective = CollectiveKind::all_reduce;
  std::int64_t nodes = 1;
  std::optional<std::int64_t> per_node;  // the first so many GPUs of each server; all by default
  std::vector<std::int64_t> positions;   // or which
  std::int64_t ranks = 0;                // 0: as many as there are
  std::vector<std::string> gpus;         // or all of them by name, in rank order
  NcclSetup setup;
  std::vector<FitRow> rows;  // ascending sizes
};

// Copies between GPUs of one machine, or between a GPU and the memory of a socket (cpu0) or the memory next to it (kHost).
inline constexpr const char* kHost = "host";
enum class CopyQuantity { rate, time, latency };
struct FitCopy {
  std::string from, to;  // gpu0; server1/gpu3
  Bytes bytes{0};
  bool both_ways = false;  // the rate is of one of them
  bool peer_access = true, copy_call = true;
  CopyQuantity quantity = CopyQuantity::rate;
  double value = 0;  // GB/s or us
  double spread = 0;
  std::string group;  // "p2p bandwidth"
  int together = 0;   // those with the same number start together; 0: alone
  std::string refused;
};

// A kernel of one GPU, alone.
struct FitKernel {
  std::string gpu, type;
  KernelTest test = KernelTest::matmul;
  std::int64_t m = 0, n = 0, k = 0;
  Bytes bytes{0};
  double us = 0, spread = 0;
  std::string refused;
};

struct FitData {
  std::vector<FitTable> tables;
  std::vector<FitCopy> copies;
  std::vector<FitKernel> kernels;
  std::int64_t servers = 1;  // that the copies are among
  std::string instrument;    // for the source tag: "nccl-tests 2.18.3, 2026-11-30, driver 550"
};

enum class PointKind { collective, copy, latency, kernel };
struct MeasuredPoint {
  std::string id, group;
  PointKind kind = PointKind::collective;
  Bytes bytes{0};
  bool across = false;  // servers
  bool rate = false;    // GB/s; otherwise us
  bool bulk = false;    // so long that bytes or work decide, no start and no cache
  double measured = 0, spread = 0;
  double alike = 1;  // rows that share what weft is off by: copies of one size
  std::string refused;
};
// Tables in order, rows in order, then copies, then kernels.
std::vector<MeasuredPoint> measured_points(const FitData& data);
ParameterQuestion parameter_question(const FitData& data);

struct ParameterChange {
  const Parameter* parameter;
  double value;
};

class FitMachine {
 public:
  // A resolved fabric or server.
  explicit FitMachine(Json document) : document_(std::move(document)) {}
  const Json& document() const { return document_; }
  // `servers` of them where it has a network. Throws InputError.
  std::shared_ptr<const Fabric> build(const std::vector<ParameterChange>& changes,
                                      std::int64_t servers) const;
  // One number per point, in us or GB/s. Throws InputError when the machine cannot do what was measured.
  std::vector<double> predict(const FitData& data,
                              const std::vector<ParameterChange>& changes) const;

  // A fault that is tried: what it does to a built fabric's description before anything is predicted.
  std::function<void(FabricSpec&)> tweak;

 private:
  friend class Predictor;
  const NcclTopology& topology(const Fabric& fabric, const FitTable& table,
                               const std::vector<NodeId>& gpus) const;
  Json document_;
  mutable std::map<std::string, NcclTopology> topologies_;  // by ranks, release and variables
};

// The same for one set of data many times: a part of it that a change cannot reach is predicted once.
class Predictor {
 public:
  Predictor(const FitMachine& machine, const FitData& data) : machine_(machine), data_(data) {}
  std::vector<double> predict(const std::vector<ParameterChange>& changes) const;

 private:
  std::vector<double> part(ParameterReach reach, const std::vector<ParameterChange>& changes) const;
  const FitMachine& machine_;
  const FitData& data_;
  mutable std::map<ParameterReach, std::map<std::string, std::vector<double>>> known_;
};

// The ranks of a table. Throws InputError when the fabric does not have them.
std::vector<NodeId> ranks_of(const Fabric& fabric, const FitTable& table);

}  // namespace weft
