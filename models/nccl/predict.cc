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

// What a row waited for longest: the host, hops in series or a link.
std::string bottleneck_of(const Fabric& fabric, const Workload& workload, const NcclRow& row,
                          Time issue, std::uint32_t first, std::uint32_t end) {
  Time latency{0};
  std::uint32_t way = 0;
  for (std::uint32_t i = first; i < end; ++i) {
    const Operation& operation = workload.operations[OpId{i}];
    if (operation.kind != Operation::Kind::flow) continue;
    latency = std::max(latency, operation.time);
    way = operation.way;
  }
  if (row.time <= issue) return "issuing the kernel";
  if (row.time - latency < latency) return "latency";
  double worst = 0;
  std::uint32_t resource = kNoResource;
  // All channels of a row together load their links; the last one stands for them.
  for (const Share& share : workload.shares_of(way)) {
    const double load = share.weight / static_cast<double>(fabric.capacity(share.resource).bps);
    if (load <= worst) continue;
    worst = load;
    resource = share.resource;
  }
  return resource == kNoResource ? "latency" : fabric.resource_name(resource);
}

}  // namespace

std::vector<NcclRow> predict_nccl(const Fabric& fabric, std::span<const NodeId> gpus,
                                  CollectiveKind kind, std::span<const Bytes> sizes,
                                  const NcclSetup& setup) {
  const NcclCommunicator communicator(fabric, {gpus.begin(), gpus.end()}, setup);
  Routes routes(fabric);
  Workload workload;
  CollectiveBuilder builder(routes, workload);
  struct Span {
    OpId first, last;
    std::uint32_t begin, end;  // its operations
    Time issue;
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
    spans.push_back(
        {first, at, begin, static_cast<std::uint32_t>(workload.operations.size()), options.issue});
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
  for (std::size_t i = 0; i < rows.size(); ++i) {
    NcclRow& row = rows[i];
    row.time = executor.times(spans[i].last).finished - executor.times(spans[i].first).finished;
    if (row.time.ps > 0) row.algbw_gbs = row.bytes.value() / row.time.seconds() * 1e-9;
    row.busbw_gbs = row.algbw_gbs * busbw_factor(kind, gpus.size());
    row.bottleneck =
        bottleneck_of(fabric, workload, row, spans[i].issue, spans[i].begin, spans[i].end);
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
