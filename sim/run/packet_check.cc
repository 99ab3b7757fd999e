// SPDX-License-Identifier: Apache-2.0
#include "sim/run/packet_check.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "sim/core/check.hpp"
#include "sim/fabric/dragonfly_routes.hpp"
#include "sim/run/executor.hpp"

namespace weft {
namespace {

bool has_links(const Fabric& fabric, LinkClass link_class) {
  for (std::uint32_t l = 0; l < fabric.link_count(); ++l) {
    if (fabric.link(LinkId{l}).link_class == link_class) return true;
  }
  return false;
}

// What a congestion control listens to has to be said by somebody. That the default has nothing to hear is no mistake.
void check_signals(const Fabric& fabric, const Scenario& scenario, Diagnostics& out) {
  using enum CongestionScheme;
  const PacketSpec& packet = scenario.models.packet;
  const CongestionScheme scheme = packet.congestion_control;
  const std::string pointer = "/models/packet/congestion_control";
  const Json* written = find_at(scenario.document, pointer);
  if (written == nullptr) return;
  const std::string name = write_config(scheme).text;
  const bool by_marks = scheme == dcqcn || scheme == dctcp, by_fecn = scheme == fecn;
  if (by_marks && !has_links(fabric, LinkClass::ethernet)) {
    out.error(written->place, pointer,
              fmt::format("{} hears of ECN marks, and only Ethernet switches set them here", name),
              has_links(fabric, LinkClass::infiniband)
                  ? R"(use "fecn" or "none" over InfiniBand, or leave it out)"
                  : R"(use "none", "hpcc", "timely" or "swift", or leave it out)");
  }
  if (by_fecn && !has_links(fabric, LinkClass::infiniband)) {
    out.error(written->place, pointer, "fecn hears of FECN bits, which InfiniBand switches set",
              R"(use "dcqcn" or "dctcp" over Ethernet, or leave it out)");
  }
  if ((by_marks || by_fecn) && !packet.ecn.enabled) {
    out.error(written->place, pointer,
              fmt::format("{} hears of marks, and \"ecn\" is not enabled", name),
              R"(use "none", or leave "ecn": {"enabled": false} out)");
  }
  if (scheme == cubic && (packet.pfc.enabled || !has_links(fabric, LinkClass::ethernet))) {
    out.warning(written->place, pointer,
                "cubic hears of losses, and links that work with PFC or credits lose nothing",
                R"(set "pfc": {"enabled": false} on Ethernet, or use another)");
  }
}

}  // namespace

std::int64_t packet_grain(const Fabric& fabric, const PacketSpec& spec) {
  constexpr std::int64_t kUsual = 4096;
  if (spec.grain) return spec.grain->count;
  for (const NodeId nic : fabric.nics()) {
    for (const LinkId l : fabric.out_links(nic)) {
      const Link& link = fabric.link(l);
      if (link.tier == Tier::access && fabric.laws()[link.law].payload.count > 0)
        return fabric.laws()[link.law].payload.count;
    }
  }
  return kUsual;
}

double packet_hops(const Workload& workload, const std::vector<ExecutorJob>& jobs,
                   std::int64_t grain) {
  double sum = 0;
  for (const ExecutorJob& job : jobs) {
    double once = 0;
    for (std::uint32_t i = job.first_op; i < job.end_op; ++i) {
      const Operation& operation = workload.operations[OpId{i}];
      if (operation.kind != Operation::Kind::flow || operation.size.count <= 0) continue;
      double links = 0;
      for (const Share& share : workload.shares_of(operation.way)) links += share.weight;
      once += static_cast<double>((operation.size.count - 1) / grain + 1) * links;
    }
    sum += once * (job.until_end ? 1 : job.iterations);
  }
  return sum;
}

void refuse_endless_work(const Workload& workload, const std::vector<ExecutorJob>& jobs,
                         std::int64_t grain) {
  constexpr double kHopsPerSecond = 5e6, kHour = 3600;  // docs/benchmarks.md
  const double hops = packet_hops(workload, jobs, grain);
  if (hops <= kMostPacketHops) return;
  throw LimitReached(
      fmt::format("packets of {} would cross links {:.1e} times, about {:.0f} hours of work; at "
                  "most {:.0e} are "
                  "run: give a larger models.packet.grain, smaller sizes or fewer iterations",
                  to_text(Bytes{grain}), hops, hops / kHopsPerSecond / kHour, kMostPacketHops));
}

void check_packet_level(const Fabric& fabric, const Scenario& scenario, Diagnostics& out) {
  const Routing routing = fabric.routing();
  if (scenario.fidelity != Fidelity::packet) {
    if (routing == Routing::ugal) {
      out.error(fabric.network()->place, fabric.network()->pointer + "/routing",
                "ugal chooses by the queue of each packet, which only the packet level has",
                R"(use "fidelity": "packet", or "minimal" or "valiant")");
    }
    return;
  }
  check_signals(fabric, scenario, out);
  const PacketSpec& packet = scenario.models.packet;
  if (uses_lanes(routing) && packet.recovery == LossRecovery::go_back_n) {
    const Json* written = find_at(scenario.document, "/models/packet/recovery");
    out.error(written != nullptr ? written->place : scenario.place, "/models/packet/recovery",
              fmt::format("packets overtake each other over \"{}\", which go-back-N takes for loss",
                          write_config(routing).text),
              "use \"selective\" or leave it out");
  }
  constexpr std::int64_t kMostLaned = kMostClasses / kDragonflyLanes;
  for (const JobSpec& job : scenario.jobs) {
    if (!uses_lanes(routing) || job.traffic_class <= kMostLaned) continue;
    out.error(job.place, job.pointer + "/traffic_class",
              fmt::format("\"{}\" takes {} virtual lanes of each traffic class, and there are {}",
                          write_config(routing).text, kDragonflyLanes, kMostClasses),
              fmt::format("use classes 1 to {}", kMostLaned));
  }
}

}  // namespace weft
