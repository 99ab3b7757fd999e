// SPDX-License-Identifier: Apache-2.0
#include "calibrate/explain_log.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <set>

#include <fmt/format.h>

#include "calibrate/explain_log_causes.hpp"
#include "calibrate/explain_log_visible.hpp"
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
constexpr double kDoubtful =
    0.22;  // ln 1.25: of a log inside the band, for which a fault is still looked for
constexpr std::size_t kMostWeighty = 64;
constexpr std::size_t kMostCauses = 5;
constexpr double kCollapse = 2.5;  // fall of the bandwidth from one size to the next larger

double log_error(double ratio) { return std::abs(std::log(ratio)); }

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
    if (auto shared = shared_gpu(question_.devices)) out_.causes.push_back(std::move(*shared));
    find_offset(predicted);
    fill_rows(predicted);
    choose_weighty();
    settle();
    if (out_.verdict != LogVerdict::normal && question_.find_causes) {
      visible_causes(predicted);
      simulated_causes();
    } else if (question_.find_causes && log_error(out_.ratio) > kDoubtful) {
      suspect();
    }
    return std::move(out_);
  }

 private:
  double measured(std::size_t i) const { return question_.rows[i].us; }

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
    const LogBand& band = band_of(*question_.fabric, question_.gpus);
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
      if (row.predicted_us * most < question_.rows[i].fastest_us) row.verdict = LogVerdict::low;
      if (row.predicted_us > most * question_.rows[i].slowest_us) row.verdict = LogVerdict::high;
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
    if (!weighty_.empty()) return thin_out();
    out_.notes.push_back(
        "no row of 1 MiB or more: the log says something about latency, not about bandwidth");
    for (std::size_t i = 0; i < sizes_.size(); ++i) weighty_.push_back(i);
    thin_out();
  }

  // Every fault is simulated for these rows: of a sweep in small steps some, evenly spread, say as much as all.
  void thin_out() {
    const std::size_t step = (weighty_.size() + kMostWeighty - 1) / kMostWeighty;
    std::vector<std::size_t> kept;
    for (std::size_t i = 0; i < weighty_.size(); i += step) kept.push_back(weighty_[i]);
    weighty_ = std::move(kept);
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
    const auto found = [&](std::optional<LogCause> cause) {
      if (cause) out_.causes.push_back(std::move(*cause));
    };
    std::vector<LogRow> bare = out_.rows;
    for (std::size_t i = 0; i < bare.size(); ++i)
      bare[i].ratio = predicted[i].time.us() / measured(i);
    const double factor = busbw_factor(question_.collective, question_.gpus.size());
    found(wrong_unit(bare, factor));
    if (collapse_ && nodes_ > 1)
      found(collapse_cause(out_.rows[*collapse_ - 1], out_.rows[*collapse_]));
    if (out_.verdict != LogVerdict::low) return;
    if (nodes_ > 1 && flat_buses(question_.devices))
      found(topology_cause(
          "the GPUs of every host have consecutive bus numbers: PCIe switches are not visible"));
    if (nodes_ == 1) {
      const LogRow& last = out_.rows.back();
      found(between_groups(*question_.fabric, question_.gpus,
                           last.bytes.value() / last.measured_us * 1e-3));
    }
  }

  // ---- what a simulation shows

  // Faults that make the prediction agree, the best first.
  std::vector<LogCause> fitting(bool faster) const {
    const double before = mean_error();
    std::vector<LogCause> found;
    for (const Fault& fault : known_faults(question_)) {
      if (fault.faster != faster) continue;
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
    return found;
  }

  void simulated_causes() {
    std::vector<LogCause> found = fitting(out_.verdict == LogVerdict::high);
    for (LogCause& cause : found) {
      if (out_.causes.size() >= kMostCauses || cause.off > found.front().off + kAlike) break;
      out_.causes.push_back(std::move(cause));
    }
    if (out_.causes.empty()) {
      out_.notes.push_back(
          "no fault that weft knows makes the prediction agree; measure single pairs of GPUs and "
          "of nodes to find where the time is lost");
    } else if (out_.causes.size() > 1 && out_.causes.front().off > 0) {
      out_.notes.push_back(
          "several causes explain the log equally well; what to measure tells them apart");
    }
  }

  // The band hides faults that are smaller than what weft is off by: they are told, not claimed.
  void suspect() {
    const std::vector<LogCause> found = fitting(out_.ratio > 1);
    if (found.empty()) return;
    out_.notes.push_back(fmt::format(
        "large messages run at {:.0f} % of the prediction, as on some healthy machines; if that is "
        "too {}: {} would explain it, {}",
        100 * out_.ratio, out_.ratio < 1 ? "slow" : "fast", found.front().name,
        found.front().evidence));
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

}  // namespace

std::size_t LogExplanation::normal_rows() const {
  return static_cast<std::size_t>(std::ranges::count(rows, LogVerdict::normal, &LogRow::verdict));
}

std::vector<LogPoint> log_points(const MeasuredRun& run) {
  std::map<std::int64_t, std::array<std::vector<double>, 2>> sizes;
  for (const CollectiveSample& sample : run.samples) {
    double us = 0;
    if (sample.time)
      us = us_of(*sample.time);
    else if (sample.algbw.bps > 0)
      us = sample.bytes.value() * 8e6 / static_cast<double>(sample.algbw.bps);
    if (us > 0)
      sizes[sample.bytes.count][sample.buffers == Buffers::in_place ? 1 : 0].push_back(us);
  }
  std::vector<LogPoint> out;
  for (const auto& [bytes, halves] : sizes) {
    LogPoint& point = out.emplace_back();
    point.bytes = Bytes{bytes};
    point.us = median(halves[halves[0].empty() ? 1 : 0]);
    std::vector<double> all = halves[0];
    all.insert(all.end(), halves[1].begin(), halves[1].end());
    point.fastest_us = *std::ranges::min_element(all);
    point.slowest_us = *std::ranges::max_element(all);
  }
  return out;
}

const LogBand& band_of(const Fabric& fabric, std::span<const NodeId> gpus) {
  const ServerId first = fabric.node(gpus.front()).server;
  if (std::ranges::all_of(gpus, [&](NodeId gpu) { return fabric.node(gpu).server == first; }))
    return kBandInside;
  const ServerType& type = fabric.type_of(first);
  const bool slingshot = !type.nic_specs.empty() && type.nic_specs.front().transport == "slingshot";
  return slingshot ? kBandSlingshot : kBandAcross;
}

LogExplanation explain_log(const LogQuestion& question) {
  WEFT_CHECK(!question.rows.empty() && !question.gpus.empty(), question.rows.size());
  return Explainer(question).explain();
}

}  // namespace weft
