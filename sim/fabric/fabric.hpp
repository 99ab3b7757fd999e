// SPDX-License-Identifier: Apache-2.0
// The frozen machine: a directed multigraph from the GPUs' memory to the spine.
//
// Node.   A GPU (with its memory), CPU socket (with its root complex), DRAM, PCIe switch, NVSwitch, NIC or network switch.
//         Servers come first, all nodes of one server in a row in the order of its file; network switches follow.
// Link.   One direction of a cable, or of `count` parallel ones used as a striped bundle; a duplex cable is two Links naming
//         each other as `reverse`. Law: the last bit of `size` arrives delay + size/rate after the first bit leaves.
//         `rate` is payload (headers taken off by the link's law), `raw` is the wire.
// Resource. What flows share: resource i < links() is link i; the rest are two-way budgets of PCIe ports, whose capacity is
//         duplex_factor * 2 * rate and which both directions of the port draw on.
// Names.  server3/gpu5, server3/nic0 (just gpu5 in a fabric of one server), leaf12, spine4, rail3/leaf2; a link is from:to.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "sim/core/ids.hpp"
#include "sim/core/units.hpp"
#include "sim/fabric/link_law.hpp"
#include "sim/fabric/spec.hpp"

namespace weft {

// Where a link stands, for drawing, folding and selecting.
enum class Tier : std::uint8_t {
  scale_up,
  host,
  access,
  leaf_spine,
  spine_core,
  group,
  global,
  torus,
  cable
};
constexpr auto enum_names(Tier) {
  using enum Tier;
  return std::array<EnumName<Tier>, 9>{{{scale_up, "scale-up"},
                                        {host, "host"},
                                        {access, "access"},
                                        {leaf_spine, "leaf-spine"},
                                        {spine_core, "spine-core"},
                                        {group, "group"},
                                        {global, "global"},
                                        {torus, "torus"},
                                        {cable, "cable"}}};
}

inline constexpr std::uint32_t kNoResource = 0xFFFF'FFFF;

struct Node {
  NodeKind kind = NodeKind::gpu;
  std::uint8_t level = 0;   // network switches: 1 leaf, 2 spine, 3 core
  ServerId server;          // none for network switches
  std::uint32_t index = 0;  // in its server, or among the network switches
  Time latency{0};          // of data that passes through
};

struct Link {
  NodeId from, to;
  LinkId reverse;
  std::uint32_t duplex = kNoResource;  // the two-way budget both directions share
  Bandwidth rate;                      // payload per second, whole bundle
  Bandwidth raw;                       // wire, whole bundle
  Time delay;
  std::uint16_t count = 1;
  LinkClass link_class = LinkClass::ethernet;
  Tier tier = Tier::host;
  std::uint16_t law = 0;  // index into Fabric::laws()
};

// What all servers of one kind share. Locals are indices of nodes and links within the server.
struct ServerType {
  ServerSpec spec;
  std::vector<std::string> node_names;
  std::vector<Node> nodes;
  std::vector<Link> links;  // from, to, reverse, duplex are local
  std::vector<Bandwidth> duplex_capacity;
  std::vector<std::uint32_t> gpus, nics;   // locals; nics: on the compute network
  std::vector<GpuSpec> gpu_specs;          // by position in gpus
  std::vector<NicSpec> nic_specs;          // by position in nics
  std::optional<ReductionSpec> reduction;  // of its NVSwitches, where they reduce
};

struct ServerPlace {
  std::uint32_t type = 0;
  std::uint32_t node_base = 0, link_base = 0, duplex_base = 0;  // duplex_base counts from links()
};

class Fabric {
 public:
  std::size_t node_count() const { return nodes_.size(); }
  std::size_t link_count() const { return links_.size(); }
  std::size_t resource_count() const { return links_.size() + duplex_capacity_.size(); }
  std::size_t server_count() const { return servers_.size(); }

  const Node& node(NodeId id) const { return nodes_[id]; }
  const Link& link(LinkId id) const { return links_[id]; }
  std::span<const LinkId> out_links(NodeId id) const {
    return {out_.data() + out_begin_[id.v], out_.data() + out_begin_[id.v + 1]};
  }
  std::span<const NodeId> gpus() const { return gpus_; }  // rank order
  std::span<const NodeId> nics() const { return nics_; }  // compute network, server by server
  std::span<const NodeId> switches() const { return switches_; }  // network switches
  const ServerPlace& server(ServerId id) const { return servers_[id]; }
  const ServerType& type_of(ServerId id) const { return types_[servers_[id].type]; }
  std::span<const ServerType> types() const { return types_; }
  std::span<const LinkLaw> laws() const { return laws_; }
  // Position of a GPU in the list of its kind of server, and what it is.
  std::size_t gpu_position(NodeId gpu) const;
  const GpuSpec& gpu_spec(NodeId gpu) const {
    return type_of(node(gpu).server).gpu_specs[gpu_position(gpu)];
  }
  NodeId local_node(ServerId server, std::uint32_t local) const {
    return NodeId{servers_[server].node_base + local};
  }

  // Capacity of every resource: payload per second of links, then the two-way budgets.
  std::vector<Bandwidth> capacities() const;
  Bandwidth capacity(std::uint32_t resource) const;

  // All links of one tier and class this many times as fast: what if they were not in the way.
  void speed_up(Tier tier, LinkClass link_class, std::int64_t factor);

  const std::optional<NetworkSpec>& network() const { return spec_.network; }
  const FabricSpec& spec() const { return spec_; }
  Routing routing() const { return spec_.network ? spec_.network->routing : Routing::single; }

  std::string name(NodeId id) const;
  std::string name(LinkId id) const;
  std::string resource_name(std::uint32_t resource) const;
  // The node or link of this name, parallel links as from:to#k and the k-th uplink of a switch as leaf3/up1.
  std::optional<NodeId> find_node(std::string_view name) const;
  std::optional<LinkId> find_link(std::string_view name) const;

 private:
  friend class FabricBuilder;
  FabricSpec spec_;
  std::vector<ServerType> types_;
  IdVector<ServerId, ServerPlace> servers_;
  IdVector<NodeId, Node> nodes_;
  IdVector<LinkId, Link> links_;
  std::vector<Bandwidth> duplex_capacity_;
  std::vector<LinkLaw> laws_;
  std::vector<std::uint32_t> out_begin_;
  std::vector<LinkId> out_;
  std::vector<NodeId> gpus_, nics_, switches_;
  std::vector<std::string> switch_names_;
};

// Builds the fabric; problems (duplicate id, unknown end of a link, a GPU without a way out, a radix that does not fit, a
// size beyond kMostLinks ...) go to `out`, and the result may be used only when out.ok().
inline constexpr std::size_t kMostLinks = 24'000'000;
Fabric build_fabric(FabricSpec spec, LinkClasses classes, Diagnostics& out);

}  // namespace weft
