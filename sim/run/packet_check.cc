// SPDX-License-Identifier: Apache-2.0
#include "sim/run/packet_check.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "sim/core/check.hpp"
#include "sim/fabric/dragonfly_routes.hpp"
#include "sim/run/executor.hpp"

namespace weft {
namespace {

template <class Predicate>
bool any_link(const Fabric& fabric, const Predicate& matches) {
  for (std::uint32_t l = 0; l < fabric.link_count(); ++l) {
    if (matches(fabric.link(LinkId{l}))) return true;
  }
  return false;
}

bool has_links(const Fabric& fabric, LinkClass link_class) {
  return any_link(fabric, [&](const Link& link) { return link.link_class == link_class; });
}

bool has_switches(const Fabric& fabric, LinkClass link_class) {
  return any_link(fabric, [&](const Link& link) {
    return link.link_class == link_class && fabric.node(link.from).kind == NodeKind::network_switch;
  });
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

// Parameters of a congestion control that the network does not choose.
void check_parameters(const Fabric& fabric, const Scenario& scenario, Diagnostics& out) {
  using enum CongestionScheme;
  const PacketSpec& packet = scenario.models.packet;
  if (packet.congestion_control != automatic) return;
  const CongestionScheme chosen = congestion_scheme(fabric, packet);
  for (const CongestionScheme scheme : {dcqcn, cubic}) {
    const std::string name = write_config(scheme).text, pointer = "/models/packet/" + name;
    const Json* written = find_at(scenario.document, pointer);
    if (written == nullptr || scheme == chosen) continue;
    out.error(written->place, pointer,
              fmt::format("this network takes {} by itself, which does not read \"{}\"",
                          write_config(chosen).text, name),
              fmt::format("leave it out, or set \"congestion_control\": \"{}\"", name));
  }
}

// What is written down and changes nothing, because what it is about is not there.
void warn_of_idle_keys(const Fabric& fabric, const Scenario& scenario, Diagnostics& out) {
  const PacketSpec& packet = scenario.models.packet;
  const auto idle = [&](const std::string& key, const std::string& why, const char* cure) {
    const std::string pointer = "/models/packet/" + key;
    if (const Json* written = find_at(scenario.document, pointer))
      out.warning(written->place, pointer, why, cure);
  };
  const bool switches = has_switches(fabric, LinkClass::ethernet);
  const bool fecn = congestion_scheme(fabric, packet) == CongestionScheme::fecn;
  if (!switches) {
    for (const char* key : {"buffer", "alpha"})
      idle(key, "changes nothing: it is of Ethernet switches, and there are none",
           R"(leave it out; "credit" is the buffer behind other links)");
  }
  if (!has_links(fabric, LinkClass::ethernet)) {
    idle("pfc", "changes nothing: PFC is of Ethernet, and no link here is",
         "leave it out; links that work with credits lose nothing");
  } else if (!packet.pfc.enabled) {
    for (const char* key : {"pfc/xoff", "pfc/xon", "pfc/headroom", "pfc/response"})
      idle(key, "changes nothing: PFC is not enabled", "leave it out");
  }
  if (!switches && !(fecn && has_switches(fabric, LinkClass::infiniband))) {
    idle("ecn", "changes nothing: no switch here marks packets",
         R"(leave it out; InfiniBand switches do with "congestion_control": "fecn")");
  } else if (!packet.ecn.enabled) {
    for (const char* key : {"ecn/kmin", "ecn/kmax", "ecn/pmax"})
      idle(key, "changes nothing: marking is not enabled", "leave it out");
  }
  if (!any_link(fabric, [&](const Link& link) { return works_with_credits(fabric, link); }))
    idle("credit", "changes nothing: no link here works with credits", "leave it out");
  if (fabric.routing() != Routing::flowlet)
    idle("flowlet_gap", "changes nothing: flows do not change their paths after a gap",
         R"(leave it out, or set the network's "routing": "flowlet")");
  std::int64_t classes = 1;
  for (const JobSpec& job : scenario.jobs) classes = std::max(classes, job.traffic_class);
  if (std::ssize(packet.weights) > classes)
    idle("weights",
         fmt::format("those beyond the first {} change nothing: no job is in their traffic class",
                     classes),
         R"(leave them out, or give jobs a "traffic_class")");
}

}  // namespace

bool takes_all_in(NodeKind kind) {
  return kind == NodeKind::gpu || kind == NodeKind::dram || kind == NodeKind::cxl_memory ||
         kind == NodeKind::storage;
}

bool works_with_credits(const Fabric& fabric, const Link& link) {
  return link.link_class != LinkClass::ethernet && !takes_all_in(fabric.node(link.to).kind);
}

CongestionScheme congestion_scheme(const Fabric& fabric, const PacketSpec& spec) {
  if (spec.congestion_control != CongestionScheme::automatic) return spec.congestion_control;
  if (!has_links(fabric, LinkClass::ethernet)) return CongestionScheme::none;
  const Transport transport = transport_of(fabric);
  const bool tcp = transport == Transport::tcp || transport == Transport::iwarp;
  return tcp ? CongestionScheme::cubic : CongestionScheme::dcqcn;
}

Transport transport_of(const Fabric& fabric) {
  const std::optional<NetworkSpec>& network = fabric.network();
  return network && network->link ? network->link->transport : Transport::raw;
}

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
  check_parameters(fabric, scenario, out);
  warn_of_idle_keys(fabric, scenario, out);
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
