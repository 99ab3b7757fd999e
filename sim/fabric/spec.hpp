// SPDX-License-Identifier: Apache-2.0
// The files of the catalogue as structs: gpu, nic, switch, link, server, fabric. docs/decisions.md section 3 describes them
// with examples; configs/schema holds their JSON Schemas, generated from here.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "sim/core/config.hpp"
#include "sim/fabric/software.hpp"

namespace weft {

// ---- links

enum class LinkClass {
  pcie,
  nvlink,
  c2c,
  infiniband,
  ethernet,
  slingshot,
  cxl,
  ualink,
  xgmi,
  hccs,
  socket,
  memory
};
constexpr auto enum_names(LinkClass) {
  using enum LinkClass;
  return std::array<EnumName<LinkClass>, 12>{{{pcie, "pcie"},
                                              {nvlink, "nvlink"},
                                              {c2c, "c2c"},
                                              {infiniband, "infiniband"},
                                              {ethernet, "ethernet"},
                                              {slingshot, "slingshot"},
                                              {cxl, "cxl"},
                                              {ualink, "ualink"},
                                              {xgmi, "xgmi"},
                                              {hccs, "hccs"},
                                              {socket, "socket"},
                                              {memory, "memory"}}};
}

enum class Transport { raw, roce, tcp, iwarp };
constexpr auto enum_names(Transport) {
  using enum Transport;
  return std::array<EnumName<Transport>, 4>{
      {{raw, "raw"}, {roce, "roce"}, {tcp, "tcp"}, {iwarp, "iwarp"}}};
}

struct LinkSpec : ComponentHead {
  LinkClass link_class = LinkClass::ethernet;
  std::optional<Bandwidth> rate;
  std::optional<double> efficiency;
  Time delay{0};
  int generation = 0;
  int width = 0;
  std::string speed;
  Bytes payload{0}, header{0}, max_payload{0}, mtu{0};
  double duplex_factor = 1;
  Transport transport = Transport::raw;
  Place place;
  std::string pointer;

  template <class V>
  void visit(V&& v) {
    visit_head(v);
    v("class", link_class, "the law that turns the facts into a rate", required);
    v("rate", rate,
      "raw rate of one direction after line coding; overrides what the class computes", positive,
      at_most(kMostRate));
    v("efficiency", efficiency, "payload share of the wire for long transfers; overrides the law",
      between(0.01, 1));
    v("delay", delay, "propagation and physical layer, one way", at_most(kMostDelay));
    v("generation", generation, "PCIe 1 to 6, NVLink 1 to 5, CXL 1 to 3", between(1, 8));
    v("width", width, "lanes", between(1, 32));
    v("speed", speed, "InfiniBand: sdr, ddr, qdr, fdr, edr, hdr, ndr, xdr");
    v("payload", payload, "NVLink: largest payload of a packet", positive, at_most(kMostPacket));
    v("header", header, "NVLink: header flit of a packet", positive, at_most(kMostPacket));
    v("max_payload", max_payload, "PCIe: payload of a transaction-layer packet", positive,
      at_most(kMostPacket));
    v("mtu", mtu, "InfiniBand, Ethernet, Slingshot: payload of a packet", positive,
      at_most(kMostPacket));
    v("duplex_factor", duplex_factor,
      "both directions together carry at most this x 2 x one direction", between(0.5, 1));
    v("transport", transport, "Ethernet: the header stack above the frame");
  }
};

// ---- devices

struct NvlinkPorts {
  int generation = 0, links = 0;
  template <class V>
  void visit(V&& v) {
    v("generation", generation, "NVLink generation", required, between(1, 8));
    v("links", links, "NVLinks of the device", required, between(1, 64));
  }
};
struct PciePort {
  int generation = 0, width = 0;
  template <class V>
  void visit(V&& v) {
    v("generation", generation, "PCIe generation", required, between(1, 7));
    v("width", width, "lanes", required, between(1, 32));
  }
};

struct GpuSpec : ComponentHead {
  std::string vendor, architecture, compute_capability;
  int sms = 0, released = 0, copy_engines = 0;
  std::optional<Frequency> clock;
  std::optional<Bytes> memory, l2_cache;
  std::optional<Bandwidth> memory_bandwidth;
  std::map<std::string, FlopRate> peak;
  std::optional<Power> power;
  std::optional<Time> kernel_launch;
  std::optional<NvlinkPorts> nvlink;
  std::optional<PciePort> pcie;
  std::optional<KernelsSpec> kernels;
  std::optional<ComputeSpec> compute;
  template <class V>
  void visit(V&& v) {
    visit_head(v);
    v("vendor", vendor, "nvidia, amd, huawei");
    v("architecture", architecture, "pascal, volta, ampere, hopper, blackwell ...");
    v("compute_capability", compute_capability, "CUDA compute capability");
    v("sms", sms, "streaming multiprocessors (compute units)", between(0, 4096));
    v("clock", clock, "boost clock", positive);
    v("memory", memory, "device memory", positive);
    v("memory_bandwidth", memory_bandwidth, "device memory bandwidth", positive,
      at_most(kMostRate));
    v("l2_cache", l2_cache, "last-level cache on the device", positive);
    v("peak", peak, "dense peak by precision: fp64, fp32, tf32, fp16, bf16, fp8, fp4, int8");
    v("power", power, "board power", positive);
    v("copy_engines", copy_engines, "asynchronous copy engines", between(0, 64));
    v("kernel_launch", kernel_launch, "start-up of a kernel", at_most(kMostDelay));
    v("nvlink", nvlink, "NVLink ports");
    v("pcie", pcie, "host interface");
    v("kernels", kernels, "costs of its communication kernels");
    v("computing", compute, "how much of its data sheet kernels reach");
    v("released", released, "year", between(0, 2100));
  }
};

struct NicSpec : ComponentHead {
  int ports = 1;
  LinkSpec link;
  std::optional<PciePort> pcie;
  Time latency{0};
  std::optional<Rate> message_rate;
  bool gpudirect = true;
  std::string transport;
  std::optional<Power> power;
  std::optional<ProxySpec> proxy;
  template <class V>
  void visit(V&& v) {
    visit_head(v);
    v("ports", ports, "network ports", between(1, 64));
    v("link", link, "the link of one port", required);
    v("pcie", pcie, "host interface");
    v("latency", latency, "between PCIe and port, one way", at_most(kMostDelay));
    v("message_rate", message_rate, "messages per second", positive);
    v("gpudirect", gpudirect, "reads and writes GPU memory itself");
    v("transport", transport, "infiniband, roce, efa, slingshot, iwarp, tcp");
    v("power", power, "of the adapter", positive);
    v("proxy", proxy, "costs of a hop for a library of collectives");
  }
};

struct ReductionSpec {
  std::int64_t contexts = 0;
  std::optional<Bandwidth> rate;
  std::optional<Bytes> buffer;
  template <class V>
  void visit(V&& v) {
    v("contexts", contexts, "reductions at a time", between(0, 1e9));
    v("rate", rate, "payload reduced per second and port", positive, at_most(kMostRate));
    v("buffer", buffer,
      "partial sums that one reduction may hold, at packet level; default: two round trips of its "
      "tree",
      positive, at_most(kMostPacket));
  }
};

struct SwitchSpec : ComponentHead {
  int ports = 64;
  std::optional<LinkSpec> link;
  Time latency{0};
  std::optional<Bytes> buffer;
  std::string technology;
  std::optional<ReductionSpec> reduction;
  std::optional<Power> power;
  template <class V>
  void visit(V&& v) {
    visit_head(v);
    v("ports", ports, "ports of one link each (radix)", required, between(2, 4096));
    v("link", link, "the link of one port");
    v("latency", latency, "cut-through, port to port", at_most(kMostDelay));
    v("buffer", buffer, "packet memory", positive);
    v("technology", technology, "infiniband, ethernet, slingshot, nvlink");
    v("reduction", reduction, "in-switch reduction (SHARP, NVLS)");
    v("power", power, "of the switch", positive);
  }
};

// ---- servers

enum class NodeKind : std::uint8_t {
  gpu,
  cpu,
  dram,
  pcie_switch,
  nvswitch,
  nic,
  cxl_memory,
  storage,
  network_switch
};
constexpr auto enum_names(NodeKind) {
  using enum NodeKind;
  return std::array<EnumName<NodeKind>, 9>{{{gpu, "gpu"},
                                            {cpu, "cpu"},
                                            {dram, "dram"},
                                            {pcie_switch, "pcie_switch"},
                                            {nvswitch, "nvswitch"},
                                            {nic, "nic"},
                                            {cxl_memory, "cxl_memory"},
                                            {storage, "storage"},
                                            {network_switch, "switch"}}};
}

// How far apart two devices of a server may be for a direct path between them.
enum class Reach { none, same_switch, same_socket, all };
constexpr auto enum_names(Reach) {
  using enum Reach;
  return std::array<EnumName<Reach>, 4>{
      {{none, "none"}, {same_switch, "switch"}, {same_socket, "socket"}, {all, "all"}}};
}

enum class Pairing { each, block, all };
constexpr auto enum_names(Pairing) {
  using enum Pairing;
  return std::array<EnumName<Pairing>, 3>{{{each, "each"}, {block, "block"}, {all, "all"}}};
}

struct NodeEntry {
  std::string id;
  NodeKind kind = NodeKind::gpu;
  Json model;  // a gpu, nic or switch, by kind
  std::optional<Time> latency;
  std::string role = "compute";
  Place place;
  std::string pointer;
  template <class V>
  void visit(V&& v) {
    v("id", id, "a name, or a range such as gpu[0-7]", required, not_empty);
    v("kind", kind, "what it is", required);
    v("model", model, "a gpu, nic or switch of the catalogue");
    v("latency", latency, "of a switch or socket that data passes through", at_most(kMostDelay));
    v("role", role, "NICs: compute, or storage (not on the compute network)");
  }
};

struct LinkEntry {
  std::string a, b;
  Pairing pair = Pairing::all;
  LinkSpec link;
  std::int64_t count = 1;
  Place place;
  std::string pointer;
  template <class V>
  void visit(V&& v) {
    v("a", a, "a node or range", required, not_empty);
    v("b", b, "a node or range", required, not_empty);
    v("pair", pair,
      "each: i-th with i-th; block: consecutive blocks of a to one b; all: every pair");
    v("link", link, "what joins them", required);
    v("count", count, "parallel links used as one striped link", between(1, 1024));
  }
};

struct PeerAccess {
  bool nvlink = true;
  Reach pcie = Reach::same_socket;
  template <class V>
  void visit(V&& v) {
    v("nvlink", nvlink, "GPUs joined by NVLink (or its like) reach each other's memory");
    v("pcie", pcie,
      "how far apart GPUs may be for peer access over PCIe (platform and driver decide)");
  }
};
struct StagingSpec {
  std::optional<Bandwidth> rate;
  Time latency{0};
  template <class V>
  void visit(V&& v) {
    v("rate", rate, "of one pair's pipelined copy through pinned host memory", positive,
      at_most(kMostRate));
    v("latency", latency, "its start-up", at_most(kMostDelay));
  }
};
struct CopySpec {
  Time latency{0};
  template <class V>
  void visit(V&& v) {
    v("latency", latency, "start-up of one GPU-to-GPU copy call", at_most(kMostDelay));
  }
};

struct ServerSpec : ComponentHead {
  std::vector<NodeEntry> nodes;
  std::vector<LinkEntry> links;
  PeerAccess peer_access;
  Reach gpudirect_rdma = Reach::same_socket;
  bool acs = false;
  StagingSpec staging;
  CopySpec copy;
  Place place;
  std::string pointer;
  template <class V>
  void visit(V&& v) {
    visit_head(v);
    v("nodes", nodes, "devices of the server", required, not_empty);
    v("links", links, "what joins them");
    v("peer_access", peer_access, "which GPUs reach each other's memory");
    v("gpudirect_rdma", gpudirect_rdma, "how far apart GPU and NIC may be for GPUDirect RDMA");
    v("acs", acs,
      "PCIe access control services redirect: switches send peer-to-peer traffic up to the root "
      "complex");
    v("staging", staging, "copies through host memory");
    v("copy", copy, "GPU-to-GPU copies");
  }
};

// ---- fabrics

enum class Generator {
  single_switch,
  leaf_spine,
  fat_tree,
  rail_optimised,
  dragonfly,
  torus,
  explicit_list
};
constexpr auto enum_names(Generator) {
  using enum Generator;
  return std::array<EnumName<Generator>, 7>{{{single_switch, "single-switch"},
                                             {leaf_spine, "leaf-spine"},
                                             {fat_tree, "fat-tree"},
                                             {rail_optimised, "rail-optimised"},
                                             {dragonfly, "dragonfly"},
                                             {torus, "torus"},
                                             {explicit_list, "explicit"}}};
}

enum class Routing { single, ecmp, flowlet, spray, adaptive, minimal, valiant, ugal };
constexpr auto enum_names(Routing) {
  using enum Routing;
  return std::array<EnumName<Routing>, 8>{{{single, "single"},
                                           {ecmp, "ecmp"},
                                           {flowlet, "flowlet"},
                                           {spray, "spray"},
                                           {adaptive, "adaptive"},
                                           {minimal, "minimal"},
                                           {valiant, "valiant"},
                                           {ugal, "ugal"}}};
}

struct CableEntry {
  std::string a, b;
  std::optional<LinkSpec> link;
  std::int64_t count = 1;
  Place place;
  std::string pointer;
  template <class V>
  void visit(V&& v) {
    v("a", a, "a NIC (server0/nic0) or a switch", required, not_empty);
    v("b", b, "a switch", required, not_empty);
    v("link", link, "the cable, if it differs from the network's");
    v("count", count, "parallel cables", between(1, 1024));
  }
};

struct NetworkSpec {
  Generator generator = Generator::leaf_spine;
  SwitchSpec switch_model;
  std::optional<LinkSpec> link, link_global;
  double oversubscription = 1;
  Routing routing = Routing::ecmp;
  std::optional<std::int64_t> tiers, hosts_per_leaf, spines, routers_per_group, hosts_per_router,
      global_links_per_router;
  std::vector<std::int64_t> dims;
  std::vector<std::string> switches;
  std::vector<CableEntry> cables;
  Place place;
  std::string pointer;
  template <class V>
  void visit(V&& v) {
    v("generator", generator, "the shape of the network", required);
    v("switch", switch_model, "the switch at every place", required);
    v("link", link, "cable between switches; default: the switch's own link");
    v("link_global", link_global, "dragonfly: cable between groups");
    v("oversubscription", oversubscription, "host bandwidth of a leaf over its uplink bandwidth",
      between(0.01, 1000));
    v("routing", routing,
      "how a flow chooses among equal paths; of a dragonfly also minimal, valiant and ugal, which "
      "use virtual lanes");
    v("tiers", tiers, "switch levels: 1, 2 or 3", between(1, 3));
    v("hosts_per_leaf", hosts_per_leaf, "NIC ports per leaf", between(1, 4096));
    v("spines", spines, "leaf-spine: number of spines", between(1, 4096));
    v("routers_per_group", routers_per_group, "dragonfly", between(1, 4096));
    v("hosts_per_router", hosts_per_router, "dragonfly: NIC ports per router", between(1, 4096));
    v("global_links_per_router", global_links_per_router, "dragonfly", between(1, 4096));
    v("dims", dims, "torus: switches along each dimension", not_empty);
    v("switches", switches, "explicit: names of the switches", not_empty);
    v("cables", cables, "explicit: what is joined");
  }
};

struct ServerGroup {
  std::int64_t count = 1;
  ServerSpec server;
  template <class V>
  void visit(V&& v) {
    v("count", count, "servers of this kind", required, between(1, 1'000'000));
    v("server", server, "a server of the catalogue", required);
  }
};

struct FabricSpec : ComponentHead {
  std::int64_t servers = 1;
  std::vector<ServerGroup> groups;  // `server`: one kind, or an array of {count, server}
  std::optional<NetworkSpec> network;
  Place place;
  std::string pointer;
};

// Reads a resolved document of kind fabric or server (a fabric of one). Reports to `out`; use the result only when out.ok().
FabricSpec read_fabric(const Json& document, const std::string& pointer, Diagnostics& out);

}  // namespace weft
