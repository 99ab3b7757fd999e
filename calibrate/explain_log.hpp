// SPDX-License-Identifier: Apache-2.0
// A measured table of nccl-tests against weft's prediction for the machine it should have been: which rows are as expected,
// and which known fault makes the prediction agree with the others.
//
//   ratio     predicted time / measured time of a row: 0.5 is half as fast as predicted.
//   normal    1/band <= ratio <= band. The band is what weft's own predictions of healthy machines are off by (LogBand). A size
//             that was measured several times (out of place and in place, repeats) is judged by the time nearest to the
//             prediction: the table's own spread is no fault.
//   cause     a change to the machine or to NCCL's settings that weft simulates (explain_log_causes.hpp): it explains the log
//             when the prediction with it meets the large rows and the one without misses them by more than twice as much. Nothing is
//             named when nothing fits; several that fit equally well are all named, the best first.
//   offset    what the smallest rows take beyond the prediction, whatever their size: how the test starts its operations.
//             It is reported by itself and added to the prediction of every row, so that a slow launch is not taken for a
//             slow machine.
//
// The rows of large messages settle the verdict of the log: bandwidth faults show there, and weft knows them best.
#pragma once

#include <array>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "calibrate/measurement.hpp"
#include "models/nccl/predict.hpp"
#include "sim/fabric/fabric.hpp"

namespace weft {

enum class LogVerdict { normal, low, high };
constexpr auto enum_names(LogVerdict) {
  using enum LogVerdict;
  return std::array<EnumName<LogVerdict>, 3>{{{normal, "normal"}, {low, "low"}, {high, "high"}}};
}

// How far off a healthy row may be: the ninth decile of max(ratio, 1 / ratio) over the healthy nccl records of
// tests/validation, with the offset and the spread of the table taken off as above, by size and by what the bytes cross.
// tests/explain_log holds every class to it. From 128 MiB on it is narrow enough to show a factor of 2, save on Slingshot.
struct LogBand {
  static constexpr std::array<std::int64_t, 4> kBelow{std::int64_t{64} << 10, std::int64_t{1} << 20,
                                                      std::int64_t{16} << 20,
                                                      std::int64_t{128} << 20};
  std::array<double, 5> most;  // of sizes below 64 KiB, 1 MiB, 16 MiB, 128 MiB, and of the others
  static std::size_t size_class(Bytes bytes) {
    std::size_t i = 0;
    while (i < kBelow.size() && bytes.count >= kBelow[i]) ++i;
    return i;
  }
  double of(Bytes bytes) const { return most[size_class(bytes)]; }
};
inline constexpr LogBand kBandInside{{1.25, 1.55, 1.95, 1.5, 1.35}};  // one server
inline constexpr LogBand kBandAcross{{1.35, 1.5, 1.6, 1.6, 1.4}};     // InfiniBand, RoCE, EFA, TCP
// A shared production system whose plug-ins and settings differ from run to run.
inline constexpr LogBand kBandSlingshot{{2.05, 4.95, 4.1, 2.1, 2.1}};
const LogBand& band_of(const Fabric& fabric, std::span<const NodeId> gpus);

// All measurements of one size: out of place where there is that (a median of repeats), and the extremes of both halves.
struct LogPoint {
  Bytes bytes{0};
  double us = 0;
  double fastest_us = us, slowest_us = us;
};

// What was run, and on what it should have run.
struct LogQuestion {
  std::shared_ptr<const Fabric> fabric;
  std::vector<NodeId> gpus;  // rank order
  CollectiveKind collective = CollectiveKind::all_reduce;
  NcclSetup setup;
  std::vector<LogPoint> rows;           // one per size
  std::vector<Json> socket_nics;        // NICs of kernel TCP to try, models as a server holds them
  std::vector<MeasuredDevice> devices;  // as the log lists them; may be empty
  bool find_causes = true;              // off: verdicts only
};

struct LogRow {
  Bytes bytes{0};
  double measured_us = 0, predicted_us = 0, measured_gbs = 0, predicted_gbs = 0, ratio = 0;
  LogVerdict verdict = LogVerdict::normal;
  std::string algorithm, protocol, bottleneck;
};

struct LogCause {
  std::string name;          // "kernel-sockets"
  std::string explains;      // what is wrong, for people
  std::string evidence;      // why it is believed, with numbers
  std::string measure_next;  // what would confirm or refute it
  double off = 0;  // median of |ln ratio| that it leaves; 0 for causes that the log shows by itself
};

struct LogExplanation {
  LogVerdict verdict = LogVerdict::normal;
  std::vector<LogRow> rows;
  double ratio = 1;                                     // median over the large rows
  std::optional<double> launch_us, expected_launch_us;  // of the smallest rows
  // Best first. Empty when nothing fits, and when the log is normal, save for what is wrong at any speed (shared-gpu).
  std::vector<LogCause> causes;
  std::vector<std::string> notes;
  std::size_t normal_rows() const;
};

// One number per size: out-of-place where it was measured; repeated sizes keep their median.
std::vector<LogPoint> log_points(const MeasuredRun& run);

// Throws InputError when NCCL cannot run this here.
LogExplanation explain_log(const LogQuestion& question);

// ---- two logs of what should be the same

struct LogPair {
  double ratio =
      1;  // speed of the first over the second, median over the sizes both cover, large ones where there are any
  Bytes from{0}, to{0};
  std::vector<LogCause> causes;
  std::vector<std::string> notes;
};
// nullopt when the sizes do not overlap.
std::optional<LogPair> compare_logs(const Measurement& first, const MeasuredRun& first_run,
                                    const Measurement& second, const MeasuredRun& second_run);

}  // namespace weft
