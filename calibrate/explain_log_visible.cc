// SPDX-License-Identifier: Apache-2.0
#include "calibrate/explain_log_visible.hpp"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <map>
#include <numeric>
#include <set>
#include <utility>

#include <fmt/format.h>

#include "sim/core/text.hpp"

namespace weft {
namespace {

constexpr std::size_t kUnitRows = 8;
constexpr double kUnitFit = 0.2;      // |ln| that a row may be off a factor of units
constexpr double kNvlinkShare = 0.5;  // below it the NVLinks of a GPU are not what holds back

Bandwidth nvlink_rate(const Fabric& fabric, NodeId gpu) {
  Bandwidth sum{0};
  for (const LinkId l : fabric.out_links(gpu)) {
    if (fabric.link(l).link_class == LinkClass::nvlink) sum = {sum.bps + fabric.link(l).rate.bps};
  }
  return sum;
}

// GPUs that reach each other over NVLinks and NVSwitches alone, by size, the largest first.
std::vector<std::size_t> nvlink_groups(const Fabric& fabric, std::span<const NodeId> gpus) {
  std::set<std::uint32_t> seen;
  std::vector<std::size_t> out;
  for (const NodeId start : gpus) {
    if (!seen.insert(start.v).second) continue;
    std::size_t size = 0;
    std::vector<NodeId> open{start};
    while (!open.empty()) {
      const NodeId at = open.back();
      open.pop_back();
      size += std::ranges::find(gpus, at) != gpus.end() ? 1 : 0;
      for (const LinkId l : fabric.out_links(at)) {
        const Link& link = fabric.link(l);
        if (link.link_class == LinkClass::nvlink && seen.insert(link.to.v).second)
          open.push_back(link.to);
      }
    }
    out.push_back(size);
  }
  std::ranges::sort(out, std::greater<>());
  return out;
}

}  // namespace

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

std::optional<LogCause> shared_gpu(const std::vector<MeasuredDevice>& devices) {
  std::set<std::pair<std::string, std::string>> seen;
  for (const MeasuredDevice& device : devices) {
    const std::string place = device.bus.empty() ? std::to_string(device.device) : device.bus;
    if (seen.emplace(device.host, place).second) continue;
    return LogCause{"shared-gpu", "several ranks run on one GPU and wait for each other",
                    fmt::format("rank {} is on GPU {} of {}, as another rank is", device.rank,
                                place, device.host),
                    "one GPU per rank: check CUDA_VISIBLE_DEVICES and the launcher's binding, then "
                    "measure again",
                    0};
  }
  return std::nullopt;
}

std::optional<LogCause> wrong_unit(std::span<const LogRow> rows, double busbw_factor) {
  if (rows.size() < kUnitRows || rows.front().bytes > 64_KiB || rows.back().bytes < 16_MiB)
    return std::nullopt;
  for (const double factor : {8.0, 0.125, busbw_factor, 1 / busbw_factor}) {
    if (std::abs(std::log(factor)) < 0.3) continue;
    const bool all = std::ranges::all_of(
        rows, [&](const LogRow& row) { return std::abs(std::log(row.ratio / factor)) < kUnitFit; });
    if (!all) continue;
    const bool bits = factor == 8.0 || factor == 0.125;
    return LogCause{"wrong-unit",
                    bits ? "bits taken for bytes or the other way round"
                         : "algorithm bandwidth taken for bus bandwidth or the other way round",
                    fmt::format("every row, the smallest too, is off by {:.2f}", factor),
                    "read the units of the columns in the original output", 0};
  }
  return std::nullopt;
}

LogCause collapse_cause(const LogRow& before, const LogRow& after) {
  return {"congestion-collapse",
          "the network loses or pauses packets once messages are long (PFC or ECN settings, a "
          "congested or faulty path between racks)",
          fmt::format("{:.1f} GB/s at {}, {:.1f} at {}: a fall of {:.1f}, which no constant "
                      "limit of a link gives",
                      before.measured_gbs, to_text(before.bytes), after.measured_gbs,
                      to_text(after.bytes), before.measured_gbs / after.measured_gbs),
          "run every pair of nodes, first those in one rack; compare drop, pause and "
          "out-of-sequence counters of NICs and switches before and after",
          0};
}

std::optional<LogCause> between_groups(const Fabric& fabric, std::span<const NodeId> gpus,
                                       double algbw_gbs) {
  const std::vector<std::size_t> groups = nvlink_groups(fabric, gpus);
  const Bandwidth each = nvlink_rate(fabric, gpus.front());
  if (groups.size() < 2 || groups.front() < 2 || algbw_gbs > kNvlinkShare * each.gbytes_per_s())
    return std::nullopt;
  std::vector<std::string> sizes;
  for (const std::size_t size : groups) sizes.push_back(std::to_string(size));
  return LogCause{
      "between-nvlink-groups",
      "NVLink joins the GPUs in groups only: what passes between them takes PCIe and the sockets",
      fmt::format("groups of {} GPUs; {:.1f} GB/s pass from one to the other, where the NVLinks "
                  "of one GPU carry {:.0f}: NVLink is not the limit",
                  join(sizes, " and "), algbw_gbs, each.gbytes_per_s()),
      "the same test in one group alone; p2pBandwidthLatencyTest for pairs across groups; "
      "NCCL_DEBUG=INFO,GRAPH for how many GPUs carry channels from group to group",
      0};
}

}  // namespace weft
