// SPDX-License-Identifier: Apache-2.0
#include "calibrate/validate_adapter.hpp"

#include <charconv>

#include "models/catalog.hpp"
#include "sim/run/run.hpp"

namespace weft::adapter {

std::vector<NcclRow> predict_nccl(const Fabric& fabric, std::span<const NodeId> gpus,
                                  CollectiveKind kind, std::span<const Bytes> sizes,
                                  const NcclSetup& setup) {
  constexpr CollectiveCosts kCosts{.launch = 7_us, .step = 700_ns, .network_step = 3_us};
  Scenario scenario;
  scenario.fidelity = setup.fidelity;
  scenario.models.collective = kCosts;
  JobSpec& job = scenario.jobs.emplace_back();
  job.collective = kind;
  job.algorithm = setup.algorithm;
  job.gpus = static_cast<std::int64_t>(gpus.size());
  std::size_t per = 0;
  for (const NodeId gpu : gpus) per += fabric.node(gpu).server == fabric.node(gpus[0]).server;
  job.placement.gpus_per_server = static_cast<std::int64_t>(per);
  RunContext context;
  context.link_classes = link_classes();
  context.algorithms = collective_algorithms();
  context.make_network = make_network;
  context.explain = false;
  Diagnostics diagnostics;
  std::vector<NcclRow> rows;
  for (const Bytes size : sizes) {
    job.size = size;
    const Report report = run_on(fabric, scenario, context, diagnostics);
    const JobReport& result = report.jobs.front();
    NcclRow& row = rows.emplace_back();
    row.bytes = size;
    row.time = Time{static_cast<std::int64_t>(result.time_s * 1e12)};
    row.algbw_gbs = result.algbw_gbs;
    row.busbw_gbs = result.busbw_gbs;
    row.algorithm = result.algorithm;
    row.protocol = "simple";
    row.channels = static_cast<std::uint32_t>(result.channels);
  }
  return rows;
}

std::optional<NcclVersion> parse_nccl_version(std::string_view text) {
  NcclVersion out{0, 0, 0};
  const char* at = text.data();
  const char* end = at + text.size();
  for (int* part : {&out.major, &out.minor, &out.patch}) {
    const auto [stop, error] = std::from_chars(at, end, *part);
    if (error != std::errc{}) return std::nullopt;
    at = stop;
    if (at == end) break;
    if (*at++ != '.') return std::nullopt;
  }
  if (at != end || out.major != 2 || out.minor < 5 || out.minor > 30) return std::nullopt;
  return out;
}

}  // namespace weft::adapter
