// SPDX-License-Identifier: Apache-2.0
#include "calibrate/explain_log.hpp"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <map>
#include <set>

#include <fmt/format.h>

#include "calibrate/explain_log_causes.hpp"
#include "calibrate/log_facts.hpp"
#include "models/catalog.hpp"
#include "sim/core/check.hpp"
#include "sim/core/text.hpp"
#include "sim/run/run.hpp"

namespace weft {
namespace {

constexpr Bytes kSmallest = 4_KiB;  // sizes that cost a launch and nothing else
constexpr std::int64_t kWeightySpan =
    64;  // rows down to the largest size over this settle the verdict
constexpr double kMostLaunchUs = 25, kMostLaunchShare = 0.6;  // of an offset, either is allowed
constexpr double kFit = 0.262;   // ln 1.3: mean |ln ratio| that an explanation may leave
constexpr double kGain = 2;      // by how much it must be better than no fault
constexpr double kAlike = 0.12;  // explanations this much apart cannot be told from each other
constexpr std::size_t kMostCauses = 5;
constexpr double kCollapse = 2.5;  // fall of the bandwidth from one size to the next larger
constexpr double kFarApart = 2;    // of two logs
constexpr std::size_t kUnitRows = 8;

double log_error(double ratio) { return std::abs(std::log(ratio)); }

// Half of the GPUs or more on neighbouring bus numbers: every device hangs from one flat bus, as virtual machines show it.
bool flat_buses(const std::vector<MeasuredDevice>& devices) {
  std::map<std::string, std::vector<long>> buses;
  for (const MeasuredDevice& device : devices) {
    // "0000:05:00" or "0x05".
    const std::size_t colon = device.bus.find(':');
    const std::string text =
        colon == std::string::npos ? device.bus : device.bus.substr(colon + 1, 2);
    char* end = nullptr;
    const long bus = std::strtol(text.c_str(), &end, 16);
    if (end != text.c_str()) buses[device.host].push_back(bus);
  }
  for (auto& [host, list] : buses) {
    if (list.size() < 4) return false;
    std::ranges::sort(list);
    for (std::size_t i = 1; i < list.size(); ++i) {
      if (list[i] != list[i - 1] + 1) return false;
    }
  }
  return !buses.empty();
}

LogCause topology_cause(std::string evidence) {
  return {
      "gpu-nic-topology",
      "NCCL does not see which NIC is near which GPU (flat or virtual PCI topology), so paths "
      "between them are long and go without GPUDirect",
      std::move(evidence),
      "dump what NCCL sees with NCCL_TOPO_DUMP_FILE and read it with `weft import nccl-topo`; give "
      "the machine's own file in NCCL_TOPO_FILE; enable ATS and check ACS in the hypervisor",
      0};
}

class Explainer {
 public:
  explicit Explainer(const LogQuestion& question) : question_(question) {
    std::set<ServerId> servers;
    for (const NodeId gpu : question.gpus) servers.insert(question.fabric->node(gpu).server);
    nodes_ = servers.size();
    for (const LogPoint& row : question.rows) sizes_.push_back(row.bytes);
  }

  LogExplanation explain() {
    const std::vector<NcclRow> predicted = predict_nccl(
        *question_.fabric, question_.gpus, question_.collective, sizes_, question_.setup);
    find_offset(predicted);
    fill_rows(predicted);
    choose_weighty();
    settle();
    if (out_.verdict != LogVerdict::normal && question_.find_causes) {
      visible_causes(predicted);
      simulated_causes();
    }
    return std::move(out_);
  }

 private:
  double measured(std::size_t i) const { return question_.rows[i].us; }

  LogBand band_of() const {
    if (nodes_ == 1) return kBandInside;
    const Fabric& fabric = *question_.fabric;
    const ServerType& type = fabric.type_of(fabric.node(question_.gpus.front()).server);
    const bool slingshot =
        !type.nic_specs.empty() && type.nic_specs.front().transport == "slingshot";
    return slingshot ? kBandSlingshot : kBandAcross;
  }

  void find_offset(const std::vector<NcclRow>& predicted) {
    std::vector<double> ours, theirs;
    for (std::size_t i = 0; i < predicted.size(); ++i) {
      if (sizes_[i] > kSmallest) continue;
      ours.push_back(predicted[i].time.us());
      theirs.push_back(measured(i));
    }
    if (ours.empty()) return;
    const double expected = median(ours), launch = median(theirs);
    out_.launch_us = launch;
    out_.expected_launch_us = expected;
    const double most = std::max(kMostLaunchUs, kMostLaunchShare * expected);
    offset_ = std::clamp(launch - expected, -kMostLaunchShare * expected, most);
  }

  void fill_rows(const std::vector<NcclRow>& predicted) {
    const double factor = busbw_factor(question_.collective, question_.gpus.size());
    const LogBand band = band_of();
    for (std::size_t i = 0; i < predicted.size(); ++i) {
      LogRow& row = out_.rows.emplace_back();
      row.bytes = sizes_[i];
      row.measured_us = measured(i);
      row.predicted_us = predicted[i].time.us() + offset_;
      row.measured_gbs = factor * row.bytes.value() / row.measured_us * 1e-3;
      row.predicted_gbs = factor * row.bytes.value() / row.predicted_us * 1e-3;
      row.ratio = row.predicted_us / row.measured_us;
      row.algorithm = predicted[i].algorithm;
      row.protocol = predicted[i].protocol;
      row.bottleneck = predicted[i].bottleneck;
      const double most = band.of(row.bytes);
      if (row.ratio < 1 / most) row.verdict = LogVerdict::low;
      if (row.ratio > most) row.verdict = LogVerdict::high;
    }
  }

  void choose_weighty() {
    find_collapse();
    Bytes largest{0};
    for (const Bytes size : sizes_) largest = std::max(largest, size);
    const Bytes least = std::max(1_MiB, Bytes{largest.count / kWeightySpan});
    for (std::size_t i = 0; i < sizes_.size(); ++i) {
      if (sizes_[i] >= (collapse_ ? 1_MiB : least)) weighty_.push_back(i);
    }
    if (!weighty_.empty()) return;
    out_.notes.push_back(
        "no row of 1 MiB or more: the log says something about latency, not about bandwidth");
    for (std::size_t i = 0; i < sizes_.size(); ++i) weighty_.push_back(i);
  }

  // The first size from which bandwidth stays far below what smaller sizes reached.
  void find_collapse() {
    for (std::size_t i = 1; i + 1 < out_.rows.size(); ++i) {
      const double before = out_.rows[i - 1].measured_gbs;
      const bool stays =
          std::all_of(out_.rows.begin() + static_cast<std::ptrdiff_t>(i), out_.rows.end(),
                      [&](const LogRow& row) { return row.measured_gbs * 2 < before; });
      if (sizes_[i] >= 1_MiB && stays && out_.rows[i].measured_gbs * kCollapse < before) {
        collapse_ = i;
        return;
      }
    }
  }

  void settle() {
    std::vector<double> ratios;
    std::size_t low = 0, high = 0;
    for (const std::size_t i : weighty_) {
      ratios.push_back(out_.rows[i].ratio);
      low += out_.rows[i].verdict == LogVerdict::low ? 1 : 0;
      high += out_.rows[i].verdict == LogVerdict::high ? 1 : 0;
    }
    out_.ratio = median(ratios);
    if (2 * low > weighty_.size() || collapse_) out_.verdict = LogVerdict::low;
    if (2 * high > weighty_.size()) out_.verdict = LogVerdict::high;
    if (out_.verdict == LogVerdict::normal && (low > 0 || high > 0)) {
      out_.notes.push_back(
          fmt::format("{} of {} large rows lie outside the band, {} below and {} above", low + high,
                      weighty_.size(), low, high));
    }
  }

  double mean_error() const {
    double sum = 0;
    for (const std::size_t i : weighty_) sum += log_error(out_.rows[i].ratio);
    return sum / static_cast<double>(weighty_.size());
  }

  // ---- what the log shows by itself

  void visible_causes(const std::vector<NcclRow>& predicted) {
    shared_gpu();
    wrong_unit(predicted);
    if (collapse_ && nodes_ > 1) {
      const LogRow &before = out_.rows[*collapse_ - 1], &after = out_.rows[*collapse_];
      out_.causes.push_back(
          {"congestion-collapse",
           "the network loses or pauses packets once messages are long (PFC or ECN settings, a "
           "congested or faulty path between racks)",
           fmt::format("{:.1f} GB/s at {}, {:.1f} at {}: a fall of {:.1f}, which no constant limit "
                       "of a link gives",
                       before.measured_gbs, to_text(before.bytes), after.measured_gbs,
                       to_text(after.bytes), before.measured_gbs / after.measured_gbs),
           "run every pair of nodes, first those in one rack; compare drop, pause and "
           "out-of-sequence "
           "counters of NICs and switches before and after",
           0});
    }
    if (nodes_ > 1 && out_.verdict == LogVerdict::low && flat_buses(question_.devices))
      out_.causes.push_back(topology_cause(
          "the GPUs of every host have consecutive bus numbers: PCIe switches are not visible"));
  }

  void shared_gpu() {
    std::set<std::pair<std::string, std::string>> seen;
    for (const MeasuredDevice& device : question_.devices) {
      const std::string place = device.bus.empty() ? std::to_string(device.device) : device.bus;
      if (seen.emplace(device.host, place).second) continue;
      out_.causes.push_back({"shared-gpu", "several ranks run on one GPU and wait for each other",
                             fmt::format("rank {} is on GPU {} of {}, as another rank is",
                                         device.rank, place, device.host),
                             "one GPU per rank: check CUDA_VISIBLE_DEVICES and the launcher's "
                             "binding, then measure again",
                             0});
      return;
    }
  }

  void wrong_unit(const std::vector<NcclRow>& predicted) {
    if (predicted.size() < kUnitRows || sizes_.front() > 64_KiB || sizes_.back() < 16_MiB) return;
    const double bus = busbw_factor(question_.collective, question_.gpus.size());
    for (const double factor : {8.0, 0.125, bus, 1 / bus}) {
      if (std::abs(std::log(factor)) < 0.3) continue;
      const bool all = std::ranges::all_of(predicted, [&](const NcclRow& row) {
        const auto i = static_cast<std::size_t>(&row - predicted.data());
        return log_error(row.time.us() / measured(i) / factor) < 0.2;
      });
      if (!all) continue;
      const bool bits = factor == 8.0 || factor == 0.125;
      out_.causes.push_back(
          {"wrong-unit",
           bits ? "bits taken for bytes or the other way round"
                : "algorithm bandwidth taken for bus bandwidth or the other way round",
           fmt::format("every row, the smallest too, is off by {:.2f}", factor),
           "read the units of the columns in the original output", 0});
    }
  }

  // ---- what a simulation shows

  void simulated_causes() {
    const double before = mean_error();
    std::vector<LogCause> found;
    for (const Fault& fault : known_faults(question_)) {
      if (fault.faster != (out_.verdict == LogVerdict::high)) continue;
      std::optional<LogCause> best;
      for (const FaultVariant& variant : fault.variants) {
        auto tried = attempt(fault, variant);
        if (tried && (!best || tried->off < best->off)) best = std::move(tried);
      }
      if (best && best->off <= kFit && best->off * kGain <= before)
        found.push_back(std::move(*best));
    }
    // Of those that are equally near, the order of known_faults() counts.
    std::ranges::stable_sort(found, {}, [](const LogCause& cause) {
      return static_cast<int>(cause.off / (kAlike / 4));
    });
    for (LogCause& cause : found) {
      if (out_.causes.size() >= kMostCauses || cause.off > found.front().off + kAlike) break;
      out_.causes.push_back(std::move(cause));
    }
    if (out_.causes.empty()) {
      out_.notes.push_back(
          "no fault that weft knows makes the prediction agree; measure single pairs of GPUs and "
          "of "
          "nodes to find where the time is lost");
    } else if (out_.causes.size() > 1 && out_.causes.front().off > 0) {
      out_.notes.push_back(
          "several causes explain the log equally well; what to measure tells them apart");
    }
  }

  std::optional<LogCause> attempt(const Fault& fault, const FaultVariant& variant) const {
    std::vector<Bytes> sizes;
    for (const std::size_t i : weighty_) sizes.push_back(sizes_[i]);
    std::vector<NcclRow> rows;
    try {
      if (variant.spec) {
        Diagnostics diagnostics;
        const Fabric fabric = build_fabric(*variant.spec, link_classes(), diagnostics);
        if (!diagnostics.ok()) return std::nullopt;
        rows = predict_nccl(fabric, same_gpus(fabric), question_.collective, sizes, variant.setup);
      } else {
        rows = predict_nccl(*question_.fabric, question_.gpus, question_.collective, sizes,
                            variant.setup);
      }
    } catch (const InputError&) {
      return std::nullopt;  // NCCL does not run on that machine
    }
    double sum = 0;
    std::vector<double> ratios;
    for (std::size_t k = 0; k < weighty_.size(); ++k) {
      const double ratio = (rows[k].time.us() + offset_) / measured(weighty_[k]);
      sum += log_error(ratio);
      ratios.push_back(ratio);
    }
    LogCause cause{fault.name, fault.explains, {}, fault.measure_next, 0};
    cause.off = sum / static_cast<double>(weighty_.size());
    const NcclRow& last = rows.back();
    cause.evidence = fmt::format(
        "with it ({}) weft predicts {:.4g} GB/s at {} where {:.4g} were measured and {:.4g} are "
        "expected; off by {:.0f} % on average",
        variant.detail, last.busbw_gbs, to_text(sizes.back()),
        out_.rows[weighty_.back()].measured_gbs, out_.rows[weighty_.back()].predicted_gbs,
        100 * (std::exp(cause.off) - 1));
    return cause;
  }

  // The same GPUs, by server and position, of a machine that was changed.
  std::vector<NodeId> same_gpus(const Fabric& changed) const {
    const Fabric& fabric = *question_.fabric;
    std::vector<NodeId> out;
    for (const NodeId gpu : question_.gpus) {
      const Node& node = fabric.node(gpu);
      const std::vector<std::uint32_t>& locals = fabric.type_of(node.server).gpus;
      const auto position =
          static_cast<std::size_t>(std::ranges::find(locals, node.index) - locals.begin());
      out.push_back(changed.local_node(node.server, changed.type_of(node.server).gpus[position]));
    }
    return out;
  }

  const LogQuestion& question_;
  LogExplanation out_;
  std::vector<Bytes> sizes_;
  std::vector<std::size_t> weighty_;  // rows that settle the verdict
  std::optional<std::size_t> collapse_;
  std::size_t nodes_ = 1;
  double offset_ = 0;
};

// Speed at a size between two measured ones, on logarithmic axes; nullopt outside.
std::optional<double> rate_at(const std::vector<LogPoint>& points, Bytes bytes) {
  for (std::size_t i = 0; i < points.size(); ++i) {
    const double here = points[i].bytes.value() / points[i].us;
    if (points[i].bytes == bytes) return here;
    if (i + 1 >= points.size() || bytes < points[i].bytes || points[i + 1].bytes < bytes) continue;
    const double next = points[i + 1].bytes.value() / points[i + 1].us;
    const double at = std::log(bytes.value() / points[i].bytes.value()) /
                      std::log(points[i + 1].bytes.value() / points[i].bytes.value());
    return std::exp(std::log(here) * (1 - at) + std::log(next) * at);
  }
  return std::nullopt;
}

std::set<std::string> products(const Measurement& log) {
  std::set<std::string> out;
  for (const MeasuredDevice& device : log.devices) {
    if (!device.product.empty()) out.insert(device.product);
  }
  return out;
}

}  // namespace

std::size_t LogExplanation::normal_rows() const {
  return static_cast<std::size_t>(std::ranges::count(rows, LogVerdict::normal, &LogRow::verdict));
}

std::vector<LogPoint> log_points(const MeasuredRun& run) {
  std::map<std::int64_t, std::vector<double>> outside, inside;
  for (const CollectiveSample& sample : run.samples) {
    double us = 0;
    if (sample.time)
      us = us_of(*sample.time);
    else if (sample.algbw.bps > 0)
      us = sample.bytes.value() * 8e6 / static_cast<double>(sample.algbw.bps);
    if (us <= 0) continue;
    (sample.buffers == Buffers::out_of_place ? outside : inside)[sample.bytes.count].push_back(us);
  }
  inside.insert(outside.begin(), outside.end());
  for (auto& [bytes, times] : outside) inside[bytes] = times;
  std::vector<LogPoint> out;
  for (const auto& [bytes, times] : inside) out.push_back({Bytes{bytes}, median(times)});
  return out;
}

LogExplanation explain_log(const LogQuestion& question) {
  WEFT_CHECK(!question.rows.empty() && !question.gpus.empty(), question.rows.size());
  return Explainer(question).explain();
}

std::optional<LogPair> compare_logs(const Measurement& first, const MeasuredRun& first_run,
                                    const Measurement& second, const MeasuredRun& second_run) {
  const std::vector<LogPoint> ours = log_points(first_run), theirs = log_points(second_run);
  std::vector<std::pair<Bytes, double>> ratios;
  const auto add = [&](Bytes bytes) {
    const auto a = rate_at(ours, bytes), b = rate_at(theirs, bytes);
    if (a && b) ratios.emplace_back(bytes, *a / *b);
  };
  for (const LogPoint& point : ours) add(point.bytes);
  for (const LogPoint& point : theirs) add(point.bytes);
  if (ratios.empty()) return std::nullopt;
  std::ranges::sort(ratios);
  LogPair out;
  const bool any_large = ratios.back().first >= 16_MiB;
  std::vector<double> counted;
  for (const auto& [bytes, ratio] : ratios) {
    if (any_large && bytes < 16_MiB) continue;
    if (counted.empty()) out.from = bytes;
    out.to = bytes;
    counted.push_back(ratio);
  }
  out.ratio = median(counted);
  const double factor = std::max(out.ratio, 1 / out.ratio);
  if (factor < kBandAcross.large) {
    out.notes.push_back("the two logs agree within what weft's own predictions are off by");
    return out;
  }
  const Measurement& slow = out.ratio < 1 ? first : second;
  const Measurement& fast = out.ratio < 1 ? second : first;
  const bool across = first_run.nodes > 1 && second_run.nodes > 1;
  const bool alike = products(first) == products(second) && !products(first).empty();
  if (first_run.ranks != second_run.ranks) {
    out.notes.push_back(fmt::format("{} ranks against {}: not the same question", first_run.ranks,
                                    second_run.ranks));
  } else if (across && alike && factor >= kFarApart) {
    std::string evidence =
        fmt::format("the same {} on {} ranks, {:.1f} times slower: one slow NIC does not do that",
                    *products(first).begin(), first_run.ranks, factor);
    if (flat_buses(slow.devices) && !flat_buses(fast.devices))
      evidence += "; the slow one shows its GPUs on consecutive bus numbers, the other does not";
    out.causes.push_back(topology_cause(std::move(evidence)));
  }
  if (across && factor >= kFarApart) {
    out.notes.push_back(
        "if the topology is the same in both, compare NET/IB against NET/Socket and GDRDMA in "
        "NCCL_DEBUG=INFO of both runs");
  }
  return out;
}

}  // namespace weft
