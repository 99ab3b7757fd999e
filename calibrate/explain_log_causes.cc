// SPDX-License-Identifier: Apache-2.0
#include "calibrate/explain_log_causes.hpp"

#include <algorithm>
#include <functional>
#include <set>

#include <fmt/format.h>

#include "sim/core/text.hpp"

namespace weft {
namespace {

// nccl#2409: a step of 128 KiB per 10 us and connection, 13.1 GB/s.
constexpr Bytes kWindow = 128_KiB;
constexpr Time kRoundTrips[] = {8_us, 10_us, 12_us};
// What one kernel thread of TCP moves: 2 x 8 A100 and 2 x 4 A100 over sockets show 15 to 17 Gb/s
// (azure-ndv4-aks-2n-allreduce-b, polaris-n2-nccl2.21-all_reduce-s1).
constexpr Bandwidth kKernelThread = 16_Gbps;
// The efficiency of configs/proxies/tcp.json was measured on this port: the kernel is the limit there, not on slower ones.
constexpr Bandwidth kKernelPort = 100_Gbps;
constexpr double kOversubscriptions[] = {2, 4, 8};

using ChangeNode = std::function<void(NodeEntry&)>;
using ChangeLink = std::function<void(LinkEntry&)>;

void each_node(FabricSpec& spec, NodeKind kind, const ChangeNode& change) {
  for (ServerGroup& group : spec.groups) {
    for (NodeEntry& node : group.server.nodes) {
      if (node.kind == kind) change(node);
    }
  }
}

bool compute_nic(const NodeEntry& node) {
  return node.kind == NodeKind::nic && node.role == "compute";
}

// Only every `step`-th compute NIC stays on the network; at most `keep` of them. False when nothing changes.
bool thin_out_nics(FabricSpec& spec, std::size_t step, std::size_t keep) {
  bool changed = false;
  for (ServerGroup& group : spec.groups) {
    std::vector<NodeEntry> nodes;
    std::size_t seen = 0, kept = 0;
    for (const NodeEntry& entry : group.server.nodes) {
      const auto names = expand_range(entry.id);
      if (!compute_nic(entry) || !names) {
        nodes.push_back(entry);
        continue;
      }
      for (const std::string& name : *names) {
        NodeEntry& one = nodes.emplace_back(entry);
        one.id = name;
        if (seen++ % step == 0 && kept < keep) {
          ++kept;
          continue;
        }
        one.role = "storage";
        changed = true;
      }
    }
    group.server.nodes = std::move(nodes);
  }
  return changed;
}

void scale_ports(FabricSpec& spec, const Fabric& fabric, std::int64_t times, std::int64_t over) {
  Bandwidth raw{0};
  for (const NodeId nic : fabric.nics()) {
    for (const LinkId link : fabric.out_links(nic)) {
      if (fabric.link(link).tier == Tier::access) raw = std::max(raw, fabric.link(link).raw);
    }
  }
  if (raw.bps == 0) return;
  const Json rate(fmt::format("{} b/s", raw.bps / over * times));
  each_node(spec, NodeKind::nic, [&](NodeEntry& node) {
    if (Json* link = node.model.find("link"); link != nullptr && link->is_object())
      link->set("rate", rate);
  });
}

// The network behind ports of twice the rate: as much faster.
void scale_network(FabricSpec& spec, const Fabric& fabric, std::int64_t times) {
  if (!spec.network) return;
  Bandwidth cable{0};
  for (const NodeId from : fabric.switches()) {
    for (const LinkId l : fabric.out_links(from)) {
      const Link& link = fabric.link(l);
      if (fabric.node(link.to).kind == NodeKind::network_switch)
        cable = std::max(cable, Bandwidth{link.raw.bps / link.count});
    }
  }
  if (cable.bps == 0) return;
  for (std::optional<LinkSpec>* link : {&spec.network->link, &spec.network->switch_model.link}) {
    if (*link) (*link)->rate = Bandwidth{times * cable.bps};
  }
}

void scale_nvlinks(FabricSpec& spec, std::int64_t times, std::int64_t over, bool& changed) {
  for (ServerGroup& group : spec.groups) {
    for (LinkEntry& link : group.server.links) {
      if (link.link.link_class != LinkClass::nvlink) continue;
      const std::int64_t before = link.count;
      link.count = std::max<std::int64_t>(1, (before * times + over - 1) / over);
      changed = changed || link.count != before;
    }
  }
}

// Leaves of one server each, so that what two servers exchange crosses the uplinks.
bool share_uplinks(FabricSpec& spec, const Fabric& fabric, double oversubscription) {
  if (!spec.network) return false;
  NetworkSpec& network = *spec.network;
  const Generator generator = network.generator;
  if (generator == Generator::dragonfly || generator == Generator::torus ||
      generator == Generator::explicit_list)
    return false;
  const ServerType& type = fabric.types().front();
  std::int64_t ports = 0;
  for (const NicSpec& nic : type.nic_specs) ports += nic.ports;
  if (ports == 0) return false;
  network.generator = Generator::leaf_spine;
  network.tiers = 2;
  network.spines = std::nullopt;
  network.hosts_per_leaf = ports;
  network.oversubscription = oversubscription;
  return true;
}

class Faults {
 public:
  explicit Faults(const LogQuestion& question)
      : question_(question), fabric_(*question.fabric), type_(first_type()) {
    std::set<ServerId> servers;
    for (const NodeId gpu : question.gpus) servers.insert(fabric_.node(gpu).server);
    nodes_ = servers.size();
    nics_ = type_.nic_specs.size();
    for (const LinkEntry& link : type_.spec.links)
      nvlink_ = nvlink_ || link.link.link_class == LinkClass::nvlink;
  }

  std::vector<Fault> all() {
    if (nodes_ > 1) across();
    inside();
    access_control();
    std::erase_if(faults_, [](const Fault& fault) { return fault.variants.empty(); });
    return std::move(faults_);
  }

 private:
  const ServerType& first_type() const {
    return fabric_.type_of(fabric_.node(question_.gpus.front()).server);
  }

  Fault& fault(std::string name, std::string explains, std::string next) {
    return faults_.emplace_back(
        Fault{std::move(name), std::move(explains), std::move(next), {}, {}});
  }
  void machine(Fault& to, std::string detail, FabricSpec spec) const {
    to.variants.push_back({std::move(detail), std::move(spec), question_.setup});
  }
  void setting(Fault& to, const std::string& name, const std::string& value) const {
    NcclSetup setup = question_.setup;
    if (!setup.environment.variables.try_emplace(name, value).second) return;
    to.variants.push_back({name + "=" + value, std::nullopt, std::move(setup)});
  }

  void across() {
    const FabricSpec& spec = fabric_.spec();
    const std::string& transport = nics_ > 0 ? type_.nic_specs.front().transport : "";
    if (transport != "tcp") {
      Fault& sockets =
          fault("kernel-sockets",
                "NCCL uses TCP sockets of the kernel: its RDMA or libfabric plug-in is missing or "
                "unusable",
                "run with NCCL_DEBUG=INFO and look for \"NET/Socket\" in place of \"NET/IB\" or "
                "\"NET/OFI\"; check ibv_devinfo or fi_info inside the container");
      for (const Json& nic : question_.socket_nics) add_sockets(sockets, nic);
    }
    Fault& staged =
        fault("no-gpudirect",
              "NICs do not reach GPU memory (no GPUDirect RDMA): host memory is in between",
              "look for \"GDRDMA\" in NCCL_DEBUG=INFO; check that nvidia-peermem or dma-buf is "
              "loaded and that ACS is off; ib_write_bw --use_cuda=0");
    {
      FabricSpec changed = spec;
      for (ServerGroup& group : changed.groups) group.server.gpudirect_rdma = Reach::none;
      each_node(changed, NodeKind::nic,
                [](NodeEntry& node) { node.model.set("gpudirect", Json(false)); });
      machine(staged, "through host memory", std::move(changed));
    }
    const std::string map =
        "NCCL_DEBUG=INFO,GRAPH lists the NIC of every channel; read port counters "
        "(port_xmit_data) of each NIC during the test";
    if (nics_ > 1) {
      FabricSpec changed = spec;
      Fault& one = fault("one-nic", "all GPUs of a node share one NIC", map);
      if (thin_out_nics(changed, 1, 1))
        machine(one, fmt::format("the first of {} NICs", nics_), std::move(changed));
    }
    if (nics_ > 2) {
      Fault& some = fault("fewer-nics", "a part of the NICs of a node carries the traffic", map);
      for (const std::size_t step : {2U, 4U}) {
        FabricSpec changed = spec;
        if (nics_ > step && thin_out_nics(changed, step, nics_))
          machine(some, fmt::format("one NIC of {}", step), std::move(changed));
      }
    }
    {
      Fault& slow = fault("slow-ports",
                          "network ports run at a half or a quarter of their rate: trained down, "
                          "one port of a bond, or a NIC in a slot of fewer lanes",
                          "ibstat or ethtool for the rate of each port; ib_write_bw between the "
                          "same NICs, one way and both ways");
      for (const std::int64_t over : {2, 4}) {
        FabricSpec changed = spec;
        scale_ports(changed, fabric_, 1, over);
        machine(slow, over == 2 ? "half rate" : "a quarter of the rate", std::move(changed));
      }
    }
    {
      Fault& window = fault(
          "per-connection-limit",
          "each connection moves one window of 128 KiB per round trip of 8 to 12 us, whatever the "
          "link could do",
          "repeat with 1, 2, 4 NICs: throughput that is linear in their number while ib_write_bw "
          "of one reaches line rate confirms it; then NCCL_IB_QPS_PER_CONNECTION, PCIe ACS, IOMMU "
          "passthrough, NCCL_BUFFSIZE");
      for (const Time trip : kRoundTrips) add_window(window, trip);
    }
    Fault& uplink = fault("shared-uplink",
                          "leaf switches have too few uplinks for what the nodes exchange, or too "
                          "few of them are used",
                          "repeat with nodes under one leaf switch; counters of the uplinks");
    for (const double factor : kOversubscriptions) {
      FabricSpec changed = spec;
      if (share_uplinks(changed, fabric_, factor))
        machine(uplink, fmt::format("{}:1 between leaves", factor), std::move(changed));
    }
    FabricSpec fast = spec;
    scale_ports(fast, fabric_, 2, 1);
    scale_network(fast, fabric_, 2);
    Fault& faster = fault("faster-ports", "the network ports are twice as fast as described",
                          "ibstat or ethtool for the rate of each port; compare with the fabric");
    faster.faster = true;
    machine(faster, "twice the rate", std::move(fast));
  }

  // `nic` at another rate of its port. What the kernel moves does not grow or shrink with the port.
  static Json at_rate(Json nic, Bandwidth rate) {
    if (Json* link = nic.find("link"); link != nullptr && link->is_object())
      link->set("rate", Json(to_text(rate)));
    Json* proxy = nic.find("proxy");
    Json* efficiency = proxy != nullptr ? proxy->find("efficiency") : nullptr;
    if (efficiency != nullptr && efficiency->is_number()) {
      const double moved = efficiency->number * kKernelPort.bytes_per_s();
      proxy->set("efficiency", Json(std::min(1.0, moved / rate.bytes_per_s())));
    }
    return nic;
  }

  // The kernel does not drive several fast ports at once; one of its threads copies less than a port carries.
  void add_sockets(Fault& to, const Json& nic) const {
    const Json* name = nic.find("name");
    const std::string word = name != nullptr ? name->text : "TCP";
    const auto with = [&](const Json& model) {
      FabricSpec out = fabric_.spec();
      each_node(out, NodeKind::nic, [&](NodeEntry& node) {
        if (compute_nic(node)) node.model = model;
      });
      return out;
    };
    const Json* link = nic.find("link");
    const Json* text = link != nullptr && link->is_object() ? link->find("rate") : nullptr;
    std::optional<Bandwidth> rate;
    if (text != nullptr && text->is_string()) rate = parse_bandwidth(text->text);
    const FabricSpec every = with(rate ? at_rate(nic, *rate) : nic);
    const FabricSpec thread = with(at_rate(nic, kKernelThread));
    FabricSpec one = every;
    if (nics_ > 1 && thin_out_nics(one, 1, 1)) machine(to, "one " + word, std::move(one));
    if (nics_ > 1 && &nic != &question_.socket_nics.front()) return;
    machine(to, word, every);
    FabricSpec one_thread = thread;
    if (nics_ > 1 && thin_out_nics(one_thread, 1, 1))
      machine(to, "one thread of the kernel", std::move(one_thread));
    machine(to, "a thread of the kernel per NIC", thread);
  }

  // A port moves one window per round trip.
  void add_window(Fault& to, Time trip) const {
    Bandwidth payload{0};
    for (const LinkId link : fabric_.out_links(fabric_.nics().front())) {
      if (fabric_.link(link).tier == Tier::access) payload = fabric_.link(link).rate;
    }
    if (payload.bps == 0) return;
    const double limit = kWindow.value() * 8 / trip.seconds();
    const double share = limit / static_cast<double>(payload.bps);
    if (share >= 0.9) return;
    FabricSpec changed = fabric_.spec();
    each_node(changed, NodeKind::nic, [&](NodeEntry& node) {
      if (Json* proxy = node.model.find("proxy"); proxy != nullptr && proxy->is_object())
        proxy->set("efficiency", Json(std::max(0.01, share)));
    });
    machine(to, fmt::format("{:.1f} GB/s per connection", limit / 8e9), std::move(changed));
  }

  void inside() {
    const FabricSpec& spec = fabric_.spec();
    FabricSpec narrow = spec;
    for (ServerGroup& group : narrow.groups) {
      for (LinkEntry& link : group.server.links) {
        if (link.link.link_class == LinkClass::pcie && link.link.width > 1) link.link.width /= 2;
      }
    }
    machine(fault("half-pcie-width",
                  "PCIe links of GPUs or NICs are at half width or one generation down",
                  "lspci -vv: LnkSta against LnkCap of every GPU, NIC and bridge; nvidia-smi -q -d "
                  "PCIE under load"),
            "half width", std::move(narrow));
    if (question_.gpus.size() <= nodes_) return;
    Fault& staged = fault("p2p-off", "GPUs have no peer access: driver, IOMMU or NCCL_P2P_DISABLE",
                          "nvidia-smi topo -p2p r; p2pBandwidthLatencyTest with peer access on and "
                          "off; NCCL_P2P_DISABLE and NCCL_P2P_LEVEL in the environment");
    setting(staged, "NCCL_P2P_DISABLE", "1");
    cross_socket();
    if (nvlink_) nvlink();
    const bool reducing = type_.reduction.has_value();
    if (reducing) {
      setting(fault("nvls-off", "NCCL does not use reduction in the NVSwitches (NVLS)",
                    "look for \"NVLS multicast support\" in NCCL_DEBUG=INFO; NCCL_NVLS_ENABLE; "
                    "fabric manager; a container without IMEX or multicast"),
              "NCCL_NVLS_ENABLE", "0");
    }
    setting(fault("ll128-off", "NCCL does not use its protocol LL128",
                  "repeat with NCCL_PROTO=LL128 and NCCL_PROTO=Simple in turn"),
            "NCCL_PROTO", "^LL128");
  }

  // Only where a switch has something to turn round.
  void access_control() {
    const auto kinds = [&](NodeKind kind) {
      return std::ranges::count(type_.nodes, kind, &Node::kind);
    };
    if (type_.spec.acs || kinds(NodeKind::pcie_switch) == 0 || kinds(NodeKind::cpu) == 0) return;
    if (question_.gpus.size() < 2) return;
    FabricSpec redirected = fabric_.spec();
    for (ServerGroup& group : redirected.groups) group.server.acs = true;
    machine(fault("acs",
                  "PCIe access control services (ACS) send what GPUs and NICs below one switch "
                  "exchange up to the root complex and back",
                  "lspci -vvv: ACSCtl of every bridge shows ReqRedir- when it is off; set it with "
                  "setpci and repeat; p2pBandwidthLatencyTest of two GPUs below one switch, both "
                  "ways"),
            "redirected by the root complex", std::move(redirected));
  }

  void cross_socket() {
    std::size_t sockets = 0;
    for (const Node& node : type_.nodes) sockets += node.kind == NodeKind::cpu ? 1 : 0;
    if (sockets < 2) return;
    Fault& path = fault("cross-socket",
                        "the path between the CPU sockets holds back: no peer access across it, or "
                        "a slower socket link than described",
                        "p2pBandwidthLatencyTest: pairs below one socket against pairs across; "
                        "then NCCL_P2P_LEVEL and the BIOS settings of the socket links");
    FabricSpec staged = fabric_.spec();
    for (ServerGroup& group : staged.groups)
      group.server.peer_access.pcie = std::min(group.server.peer_access.pcie, Reach::same_socket);
    machine(path, "no peer access across sockets", std::move(staged));
    FabricSpec slow = fabric_.spec();
    bool changed = false;
    for (ServerGroup& group : slow.groups) {
      for (LinkEntry& link : group.server.links) {
        if (link.link.link_class != LinkClass::socket || !link.link.rate) continue;
        link.link.rate = Bandwidth{link.link.rate->bps / 2};
        changed = true;
      }
    }
    if (changed) machine(path, "socket links at half rate", std::move(slow));
  }

  void nvlink() {
    FabricSpec half = fabric_.spec(), twice = half, none = half;
    bool changed = false;
    scale_nvlinks(half, 1, 2, changed);
    const std::string next =
        "nvidia-smi nvlink -s and -e: every link active, no replays; the bandwidth of one pair "
        "with "
        "p2pBandwidthLatencyTest";
    if (changed) {
      machine(fault("half-nvlinks", "half of the NVLinks carry the traffic", next),
              "half of each bundle", std::move(half));
      Fault& more = fault("more-nvlinks", "there are twice the NVLinks described", next);
      more.faster = true;
      scale_nvlinks(twice, 2, 1, changed);
      machine(more, "twice of each bundle", std::move(twice));
    }
    for (ServerGroup& group : none.groups) {
      std::erase_if(group.server.links, [](const LinkEntry& link) {
        return link.link.link_class == LinkClass::nvlink;
      });
      std::erase_if(group.server.nodes,
                    [](const NodeEntry& node) { return node.kind == NodeKind::nvswitch; });
    }
    machine(fault("no-nvlink", "NVLink does not work: PCIe carries the traffic", next), "PCIe only",
            std::move(none));
  }

  const LogQuestion& question_;
  const Fabric& fabric_;
  const ServerType& type_;
  std::size_t nodes_ = 1, nics_ = 0;
  bool nvlink_ = false;
  std::vector<Fault> faults_;
};

}  // namespace

std::vector<Fault> known_faults(const LogQuestion& question) { return Faults(question).all(); }

}  // namespace weft
