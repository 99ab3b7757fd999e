// SPDX-License-Identifier: Apache-2.0
// Made-up machines: a fabric of the catalogue whose parameters are moved by luck, measured with noise by weft's own models.
#pragma once

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "calibrate/fit/check.hpp"
#include "sim/core/random.hpp"
#include "tools/cli/cli.hpp"

namespace weft::calibrate_test {

inline FitMachine machine_of(const std::string& fabric, const Settings& sets = {}) {
  Diagnostics diagnostics;
  return FitMachine(load_fabric(fabric, sets, diagnostics).document);
}

inline std::vector<Bytes> usual_sizes() {
  std::vector<Bytes> out;
  for (Bytes size = 1_KiB; size <= 1_GiB; size = size * 2) out.push_back(size);
  return out;
}

inline FitTable table_of(CollectiveKind kind, std::int64_t ranks, std::int64_t nodes,
                         NcclHarness harness = NcclHarness::process_per_gpu) {
  FitTable out;
  out.collective = kind;
  out.ranks = ranks;
  out.nodes = nodes;
  out.name = write_config(kind).text + " of " + std::to_string(ranks);
  out.setup.harness = harness;
  for (const Bytes size : usual_sizes())
    out.rows.push_back({.bytes = size, .us = 1, .spread = 0, .refused = {}});
  return out;
}

// Every pair of GPUs, one way, 256 MiB, and the latency of a copy.
inline void add_copies(FitData& data, int gpus) {
  for (int a = 0; a < gpus; ++a) {
    for (int b = 0; b < gpus; ++b) {
      if (a == b) continue;
      FitCopy copy{.from = "gpu" + std::to_string(a), .to = "gpu" + std::to_string(b)};
      copy.group = "copies";
      copy.bytes = 256_MiB;
      copy.value = 1;
      data.copies.push_back(copy);
      copy.group = "copy latency";
      copy.bytes = Bytes{4};
      copy.quantity = CopyQuantity::time;
      data.copies.push_back(copy);
    }
  }
}

struct Truth {
  std::vector<Parameter> parameters;
  std::vector<double> values;
  std::vector<ParameterChange> changes() const {
    std::vector<ParameterChange> out;
    for (std::size_t k = 0; k < parameters.size(); ++k) out.push_back({&parameters[k], values[k]});
    return out;
  }
};

// Each parameter where its prior says it may be, within its bounds.
inline Truth draw_truth(const FitMachine& machine, const FitData& data, std::uint64_t seed) {
  Truth out;
  out.parameters = find_parameters(machine.document(), parameter_question(data));
  Random luck(seed, "truth");
  for (const Parameter& p : out.parameters) {
    const double off = std::clamp(luck.normal(), -1.5, 1.5) * p.prior_sd;
    out.values.push_back(std::clamp(p.prior * std::exp(off), p.lower, p.upper));
  }
  return out;
}

// Fills in what the true machine takes.
inline void measure(FitData& data, const std::vector<double>& true_values, double noise,
                    std::uint64_t seed) {
  Random luck(seed, "noise");
  std::size_t i = 0;
  for (FitTable& table : data.tables)
    for (FitRow& row : table.rows) row.us = true_values[i++] * std::exp(noise * luck.normal());
  for (FitCopy& copy : data.copies) copy.value = true_values[i++] * std::exp(noise * luck.normal());
  for (FitKernel& kernel : data.kernels)
    kernel.us = true_values[i++] * std::exp(noise * luck.normal());
}

}  // namespace weft::calibrate_test
