// SPDX-License-Identifier: Apache-2.0
#include "models/nccl/predict.hpp"

#include <algorithm>
#include <charconv>

#include <fmt/format.h>

#include "models/catalog.hpp"
#include "models/nccl/communicator.hpp"
#include "sim/run/executor.hpp"
#include "sim/run/run.hpp"

namespace weft {
namespace {

constexpr int kLatestPatch = 99;  // "2.18": the last of its series

// What a row waited for longest: the host, hops in series, a link, or a rate that no link sets. What would hold it back next
// follows when that is within 15 %.
class HeldBack {
 public:
  HeldBack(const Fabric& fabric, const Workload& workload)
      : fabric_(fabric), workload_(workload), busy_(fabric.resource_count(), 0) {}

  // `kernels`: rate of a channel that its kernel sets, 0 for none.
  std::string by(const NcclRow& row, Time issue, Bandwidth kernels, std::uint32_t first,
                 std::uint32_t end) {
    Time latency{0};
    double software = 0;
    bool staged = false;
    for (std::uint32_t i = first; i < end; ++i) {
      const Operation& operation = workload_.operations[OpId{i}];
      if (operation.kind != Operation::Kind::flow) continue;
      latency = std::max(latency, operation.time);
      const double bits = operation.size.value() * 8;
      add(operation.way, bits);
      const Bandwidth cap = workload_.ways[operation.way].cap;
      const double alone = cap.bps > 0 ? bits / static_cast<double>(cap.bps) : 0;
      if (alone <= software) continue;
      software = alone;
      staged = kernels.bps == 0 || cap < kernels;
    }
    std::vector<Held> held = longest_links();
    const char* own =
        row.algorithm.starts_with("nvls") ? "reduction in NVSwitches" : "its channels";
    if (software > 0) held.push_back({software, staged ? "copies through host memory" : own});
    if (row.time <= issue) return "issuing the kernel";
    if (row.time - latency < latency || held.empty()) return "latency";
    std::ranges::stable_sort(held, std::ranges::greater{}, &Held::seconds);
    if (held.size() < 2 || held[1].seconds < kNear * held[0].seconds) return held[0].name;
    return fmt::format("{}, then {}", held[0].name, held[1].name);
  }

 private:
  struct Held {
    double seconds;
    std::string name;
  };
  static constexpr double kNear = 0.85;
  static constexpr double kEqual = 0.999;

  void add(std::uint32_t way, double bits) {
    for (const Share& share : workload_.shares_of(way)) {
      if (busy_[share.resource] == 0) touched_.push_back(share.resource);
      busy_[share.resource] +=
          share.weight * bits / static_cast<double>(fabric_.capacity(share.resource).bps);
    }
  }

  // The links that are busy longest and next longest; of equal ones the first at a GPU, as nothing beside it widens that one.
  std::vector<Held> longest_links() {
    double most = 0, next = 0;
    for (const std::uint32_t r : touched_) most = std::max(most, busy_[r]);
    for (const std::uint32_t r : touched_)
      if (busy_[r] < kEqual * most) next = std::max(next, busy_[r]);
    std::vector<Held> out;
    std::ranges::sort(touched_);
    for (const double level : {most, next}) {
      if (level == 0) continue;
      std::uint32_t found = kNoResource;
      bool at_gpu = false;
      for (const std::uint32_t r : touched_) {
        if (busy_[r] > level || busy_[r] < kEqual * level || at_gpu) continue;
        at_gpu = ends_at_gpu(r);
        if (found == kNoResource || at_gpu) found = r;
      }
      out.push_back({level, fabric_.resource_name(found)});
    }
    for (const std::uint32_t r : touched_) busy_[r] = 0;
    touched_.clear();
    return out;
  }

  bool ends_at_gpu(std::uint32_t resource) const {
    if (resource >= fabric_.link_count()) return false;
    const Link& link = fabric_.link(LinkId{resource});
    return fabric_.node(link.from).kind == NodeKind::gpu ||
           fabric_.node(link.to).kind == NodeKind::gpu;
  }

  const Fabric& fabric_;
  const Workload& workload_;
  std::vector<double> busy_;  // seconds each link needs alone
  std::vector<std::uint32_t> touched_;
};

Bandwidth own_rate(const Schedule& schedule) {
  if (schedule.phases.empty() || schedule.phases.front().channels.empty()) return {0};
  return schedule.phases.front().channels.front().cap;
}

}  // namespace

std::vector<NcclRow> predict_nccl(const Fabric& fabric, std::span<const NodeId> gpus,
                                  CollectiveKind kind, std::span<const Bytes> sizes,
                                  const NcclSetup& setup) {
  return predict_nccl(fabric, gpus, kind, sizes, setup,
                      nccl_topology(fabric, gpus, setup.version, setup.environment));
}

std::vector<NcclRow> predict_nccl(const Fabric& fabric, std::span<const NodeId> gpus,
                                  CollectiveKind kind, std::span<const Bytes> sizes,
                                  const NcclSetup& setup, const NcclTopology& topology) {
  const NcclCommunicator communicator(fabric, {gpus.begin(), gpus.end()}, setup, topology);
  Routes routes(fabric);
  Workload workload;
  CollectiveBuilder builder(routes, workload);
  struct Span {
    OpId first, last;
    std::uint32_t begin, end;  // its operations
    Time issue;
    Bandwidth kernels;  // rate of a channel
  };
  std::vector<Span> spans;
  std::vector<NcclRow> rows;
  OpId at = workload.add_barrier();
  for (const Bytes bytes : sizes) {
    const NcclPlan plan = communicator.plan(kind, bytes);
    const OpId first = at;
    const auto begin = static_cast<std::uint32_t>(workload.operations.size());
    const Schedule schedule = communicator.schedule(plan, kind, bytes);
    const CollectiveOptions options = communicator.options(plan);
    at = builder.append(schedule, gpus, options, at);
    spans.push_back({first, at, begin, static_cast<std::uint32_t>(workload.operations.size()),
                     options.issue, own_rate(schedule)});
    NcclRow& row = rows.emplace_back();
    row.bytes = bytes;
    row.algorithm = schedule.algorithm;
    row.protocol = write_config(plan.protocol).text;
    row.channels = plan.channels;
    row.threads = plan.threads;
  }
  const std::vector<Bandwidth> capacities = fabric.capacities();
  const auto network = make_network(setup.fidelity, capacities, NetworkOptions{});
  Executor executor(workload, *network);
  executor.run({{.first_op = 0, .end_op = static_cast<std::uint32_t>(workload.operations.size())}},
               {});
  HeldBack held(fabric, workload);
  for (std::size_t i = 0; i < rows.size(); ++i) {
    NcclRow& row = rows[i];
    row.time = executor.times(spans[i].last).finished - executor.times(spans[i].first).finished;
    if (row.time.ps > 0) row.algbw_gbs = row.bytes.value() / row.time.seconds() * 1e-9;
    row.busbw_gbs = row.algbw_gbs * busbw_factor(kind, gpus.size());
    row.bottleneck = held.by(row, spans[i].issue, spans[i].kernels, spans[i].begin, spans[i].end);
  }
  return rows;
}

std::optional<NcclVersion> parse_nccl_version(std::string_view text) {
  if (text.starts_with('v') || text.starts_with('V')) text.remove_prefix(1);
  const auto number = [&](int& out) {
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), out);
    if (error != std::errc{} || out < 0) return false;
    text.remove_prefix(static_cast<std::size_t>(end - text.data()));
    return true;
  };
  NcclVersion version{0, 0, kLatestPatch};
  if (!number(version.major)) return std::nullopt;
  if (text.empty() && version.major >= 10'000) {  // 21803: 2.18.3; before 2.9: 2804 is 2.8.4
    const int code = version.major;
    version = {code / 10'000, code / 100 % 100, code % 100};
  } else if (text.empty() && version.major >= 2'000) {
    const int code = version.major;
    version = {code / 1'000, code / 100 % 10, code % 100};
  } else {
    if (!text.starts_with('.')) return std::nullopt;
    text.remove_prefix(1);
    if (!number(version.minor)) return std::nullopt;
    if (text.starts_with('.')) {
      text.remove_prefix(1);
      if (!number(version.patch)) return std::nullopt;
    }
    if (text.starts_with('-')) text = {};  // "-1": of the package
    if (!text.empty()) return std::nullopt;
  }
  if (version < NcclVersion{2, 5, 0} || version > NcclVersion{2, 30, kLatestPatch})
    return std::nullopt;
  return version;
}

std::string version_text(NcclVersion version) {
  if (version.patch == kLatestPatch) return fmt::format("{}.{}", version.major, version.minor);
  return fmt::format("{}.{}.{}", version.major, version.minor, version.patch);
}

}  // namespace weft
