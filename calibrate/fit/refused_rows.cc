// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include <fmt/format.h>

#include "calibrate/fit/tables.hpp"

namespace weft {
namespace {

// Source: assumed: larger than repeats of one size differ, smaller than what another job on the same links takes.
constexpr double kDent = 0.8;   // of the bandwidth before
constexpr double kNoise = 1.2;  // a size that takes that much longer than the next is still noise
constexpr std::int64_t kLongFixedCost = 4 << 20;  // bytes

// The last size before bandwidth is what it was before the cliff: one slow row is no other regime.
Bytes end_of_cliff(const FitTable& table, Bytes from) {
  double before = 0;
  Bytes end = from;
  for (const FitRow& row : table.rows) {
    const double rate = row.bytes.value() / row.us;
    if (row.bytes < from) {
      before = rate;
    } else if (row.bytes > from) {
      if (rate >= before) break;
      end = row.bytes;
    }
  }
  return end;
}

// Sizes at which bandwidth falls and is above what it was before at the next: something else was running. A change of protocol
// bends the curve, but does not take bandwidth away and give it back.
void refuse_dents(FitTable& table) {
  for (std::size_t i = 1; i + 1 < table.rows.size(); ++i) {
    const auto rate = [&](std::size_t k) { return table.rows[k].bytes.value() / table.rows[k].us; };
    FitRow& row = table.rows[i];
    if (!row.refused.empty() || rate(i) > kDent * rate(i - 1) || rate(i + 1) < rate(i - 1))
      continue;
    row.refused = fmt::format("bandwidth falls to {:.0f} % of that of {} and is back at {}",
                              100 * rate(i) / rate(i - 1), to_text(table.rows[i - 1].bytes),
                              to_text(table.rows[i + 1].bytes));
  }
}

}  // namespace

void refuse_rows(FitTable& table, const MeasuredRun& run) {
  const auto refuse = [&](Bytes from, Bytes to, const std::string& why) {
    for (FitRow& row : table.rows)
      if (row.bytes >= from && row.bytes <= to && row.refused.empty()) row.refused = why;
  };
  const Bytes last = table.rows.empty() ? Bytes{0} : table.rows.back().bytes;
  for (const Anomaly& anomaly : anomalies(run)) {
    const bool cliff = anomaly.kind == Anomaly::Kind::cliff;
    if (!cliff && anomaly.factor < kNoise) continue;
    refuse(anomaly.bytes, cliff ? end_of_cliff(table, anomaly.bytes) : anomaly.bytes, anomaly.text);
  }
  refuse_dents(table);
  const auto fixed = fixed_cost(run);
  if (fixed && fixed->up_to.count >= kLongFixedCost)
    refuse(Bytes{0}, last,
           fmt::format("sizes up to {} all take {}: a fixed cost, no bandwidth",
                       to_text(fixed->up_to), to_text(fixed->time)));
}

void refuse_rows(FitTable& table) {
  MeasuredRun run;
  run.collective = write_config(table.collective).text;
  run.ranks = static_cast<int>(table.ranks);
  for (const FitRow& row : table.rows) {
    CollectiveSample& sample = run.samples.emplace_back();
    sample.bytes = row.bytes;
    sample.time = time_from_us(row.us);
    const double gbs = row.bytes.value() / row.us * 1e-3;
    sample.algbw = bandwidth_from_gbytes(gbs).value_or(Bandwidth{0});
    sample.busbw = bandwidth_from_gbytes(gbs * bus_factor(run.collective, std::max(run.ranks, 2)))
                       .value_or(Bandwidth{0});
  }
  refuse_rows(table, run);
}

}  // namespace weft
