// SPDX-License-Identifier: Apache-2.0
// How data gets from one node to another.
//
// Inside a server there are two worlds. The scale-up world joins GPUs over NVLink and its like, through NVSwitches but never
// through another GPU; a transfer is striped over all shortest ways in proportion to their rates (six planes of a DGX-2, the
// 5 + 4 + 4 + 5 links of an HGX H100). The host world is the tree of PCIe switches and sockets; it has one way.
//
// Between servers data leaves by a NIC near the GPU and crosses the switches (NetworkRoutes).
//
// Two-way budgets of PCIe ports (Link::duplex) bind copies staged through host memory: the reads of host memory are answered
// against the direction of the writes. Peer-to-peer writes and RDMA run at full rate both ways (measured: 50.4 of 2 x 25.2
// GB/s peer to peer against 28 staged on one box).
//
// Access control services (ServerSpec::acs) let no PCIe switch forward between its own ports: what could turn round there goes
// up to the root complex and down again. A pair both ways then fills each direction of the uplink twice and draws on its two-way
// budget, as a copy through host memory does.
#pragma once

#include <cstdint>
#include <deque>
#include <optional>
#include <vector>

#include "sim/fabric/network_routes.hpp"
#include "sim/fabric/route.hpp"

namespace weft {

enum class Via { direct, relay, host, network };
constexpr auto enum_names(Via) {
  using enum Via;
  return std::array<EnumName<Via>, 4>{
      {{direct, "direct"}, {relay, "relay"}, {host, "host"}, {network, "network"}}};
}

// One part of a transfer; parts follow each other, each waits for the whole of the one before.
struct Leg {
  Route route;
  Bandwidth cap{0};  // of the mechanism (the staging pipeline), 0 for none
  Time startup{0};   // of the copy call; zero when a kernel moves the data
};

struct Transfer {
  Via via = Via::direct;
  std::vector<Leg> legs;

  Bandwidth rate(const Fabric& fabric) const;  // of a lone large message: 1 / sum(1 / leg)
  Time latency() const;                        // of an empty message, start-ups included
};

// Between a GPU and the memory of its host; `within`: of that memory alone, read or written by its processor.
enum class HostWay { to_host, to_gpu, within };

struct TransferOptions {
  std::optional<Via> via;     // what the runtime would do when absent
  bool peer_access = true;    // off: GPUs of a server reach each other through host memory only
  bool gpudirect = true;      // off: NICs reach GPUs through host memory only
  bool copy_call = false;     // add the start-up of a copy call
  std::uint32_t channel = 0;  // which of a GPU's NICs, and part of the flow's label
  std::uint64_t hash = 0;     // label of the flow, for ECMP
  Routing routing = Routing::ecmp;
  std::int32_t src_nic = -1, dst_nic = -1;  // compute NICs of the servers by position, not near ones
};

class Routes {
 public:
  explicit Routes(const Fabric& fabric);

  // From GPU to GPU. nullopt when there is no such way (a relay without a common neighbour, a cut network).
  std::optional<Transfer> transfer(NodeId src, NodeId dst, const TransferOptions& options = {});

  // By the memory nearest to the GPU. nullopt when the server has none, or no way to it.
  std::optional<Leg> host_copy(NodeId gpu, HostWay way);

  // The half of a transfer between servers that lies at one GPU: to or from the first switch beyond its NIC. Ports of a NIC
  // are taken in turn by `port`, at both ends alike so that planes are not mixed.
  struct Attachment {
    Route route;
    NodeId nic, leaf;
    Bandwidth cap{0};                   // of staging through host memory, 0 for none
    std::uint32_t nics = 1, ports = 1;  // that were there to choose from, by `channel` and `port`
  };
  struct Door {
    std::uint32_t channel = 0;
    std::uint64_t port = 0;
    bool outward = true;
    std::int32_t nic = -1;  // one of the server's compute NICs by position instead of a near one
    bool gpudirect = true;  // off: through host memory even where the NIC reaches the GPU
  };
  std::optional<Attachment> attach(NodeId gpu, const Door& door);

  // The scale-up way from a GPU to the switches it hangs on and back (in-switch reduction): up or down.
  bool append_to_switches(NodeId gpu, bool up, Route& out);

  // The NICs near a GPU, nearest first choice for channel 0, 1 ...; empty when the server has none.
  const std::vector<NodeId>& nics_of(NodeId gpu);

  bool peers_over_scale_up(NodeId a, NodeId b);  // a striped way without passing a GPU
  bool gpudirect(NodeId gpu, NodeId nic);        // the NIC reads the GPU's memory itself

  NetworkRoutes& network() { return network_; }
  std::uint32_t nic_position(NodeId nic) const {
    return nic_index_[nic.v];
  }  // among all compute NICs, leaf by leaf

  const Fabric& fabric() const { return fabric_; }

 private:
  struct LocalPath {
    bool found = false;
    std::vector<Share> shares;          // resource: local link
    std::vector<std::uint32_t> hops;    // local links
    std::vector<std::uint32_t> duplex;  // local two-way budgets crossed, once per crossing
    Time latency{0};
    int sockets = 0, switches = 0;  // passed on the way
  };
  struct TypeTables {
    std::vector<std::int32_t> scale_up,
        host;                     // [from * nodes + to] -> index into paths, -1 unknown
    std::deque<LocalPath> paths;  // references stay valid
    std::vector<std::vector<std::uint32_t>> out;   // local links by node
    std::vector<std::vector<std::uint32_t>> nics;  // by position in gpus: locals, best first
  };

  const LocalPath& local(ServerId server, bool scale_up, std::uint32_t from, std::uint32_t to);
  LocalPath find_scale_up(const ServerType& type, const TypeTables& tables, std::uint32_t from,
                          std::uint32_t to) const;
  LocalPath find_host(const ServerType& type, const TypeTables& tables, std::uint32_t from,
                      std::uint32_t to) const;
  void append_local(ServerId server, const LocalPath& path, bool staged, Route& out) const;
  bool append_staged(ServerId server, std::uint32_t from, std::uint32_t to, Route& out);
  void append_peer(ServerId server, std::uint32_t from, std::uint32_t to, Route& out);
  bool reaches(const LocalPath& path, Reach reach) const;
  std::uint32_t nearest(ServerId server, std::uint32_t local_node, NodeKind kind);
  std::optional<Transfer> within(NodeId src, NodeId dst, const TransferOptions& options);
  std::optional<Transfer> across(NodeId src, NodeId dst, const TransferOptions& options);

  const Fabric& fabric_;
  std::vector<TypeTables> tables_;
  std::vector<NodeId> nic_scratch_;
  std::vector<std::uint32_t> nic_index_;  // by NodeId
  NetworkRoutes network_;
};

}  // namespace weft
