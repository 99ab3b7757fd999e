// SPDX-License-Identifier: Apache-2.0
// The packet level behind the executor: every link of the fabric is a port, every operation that moves bytes a flow of packets.
//
//   Guards     PCIe, NVLink, InfiniBand and their like work with credits; Ethernet with PFC or, when that is off, by luck.
//   Paths      A way's links in order, or a graph of them where it spreads; packets choose at every branch.
//   Lanes      A NIC has a queue towards its host for each of its ports: classes of their own inside the server, so that a
//              crowded port of a bond does not stop the other. Between switches ways of a dragonfly change the class where they
//              change the virtual lane (DragonflyRoutes); acknowledgements stay in class 0.
//   Transport  Ends at the NICs: they acknowledge and ask again. Inside a server nothing is lost and nothing acknowledged.
//   Trees      A collective in switches is one request: see SwitchTree. Its links must not lose packets.
//   Derived    What a scenario leaves open (headroom, thresholds, credits, rates) is computed from rate, delay and grain and
//              listed by settings().
//
// Assumes: other ways are between two ends (a coupled collective is several flows at once: the packet level runs it expanded),
// and two-way budgets of PCIe ports are not modelled.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <queue>
#include <set>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "models/packet/congestion/catalog.hpp"
#include "models/packet/packet_engine.hpp"
#include "sim/fabric/dragonfly_routes.hpp"
#include "sim/fabric/fabric.hpp"
#include "sim/run/network_model.hpp"
#include "sim/run/packet_spec.hpp"

namespace weft {

class PacketNetwork final : public NetworkModel {
 public:
  // The fabric and the spec of `options` stay alive as long as this.
  explicit PacketNetwork(const NetworkOptions& options);

  FlowId start(const FlowRequest& request, Time now) override;
  Time next_event() override;
  Time run_until(Time horizon) override;
  void advance(Time until, std::vector<FlowDone>& done) override;
  void set_capacity(std::uint32_t resource, Bandwidth capacity, Time now) override;
  void reroute(FlowId flow, const FlowRequest& request, Time now) override;
  double carried_bytes(std::uint32_t resource) const override;
  Time busy_time(std::uint32_t resource) const override;
  const NetworkCounters& counters() const override;
  std::string why_stuck() const override;
  std::optional<QueueReport> queue_report(std::uint32_t resource) const override;
  std::vector<Setting> settings() const override;
  bool watch(std::uint32_t resource, Time every) override;
  bool watch_flow(std::uint64_t tag, Time every) override;
  Observation observation() override;

  const packet::Engine& engine() const { return engine_; }

 private:
  // A queue pair: what its congestion control knows outlives the messages that it sends one after the other.
  struct Connection {
    std::unique_ptr<packet::CongestionControl> congestion;
    bool busy = false;
  };
  struct Way {
    packet::Path path, back;
    Bandwidth line_rate{0};  // of the sending NIC
    Time round_trip{0};
    bool transport = false, lossy = false;
    std::vector<std::uint32_t> connections;
    std::vector<std::uint32_t> pausable;  // ports that PFC may stop
    std::uint32_t nic = packet::kNone;    // that sends into the network
    std::uint8_t lane = 0;                // its port
  };
  // Of a running flow.
  struct Slot {
    std::uint64_t tag = 0, left_tag = 0;
    Time extra{0};
    std::uint32_t connection = packet::kNone;
    std::uint32_t engine_flow = packet::kNone;  // kNone: ended
    const Way* way = nullptr;
    std::uint8_t traffic_class = 0;
    std::vector<Time> paused_before;  // by pausable port of the way; empty: never
  };
  struct Late {
    Time when;
    std::uint64_t order, tag;
    std::uint32_t flow;
    bool operator>(const Late& other) const {
      return when != other.when ? when > other.when : order > other.order;
    }
  };

  // What the engine knows of a tree, for one class of traffic.
  struct KnownTree {
    std::uint32_t id = 0;
    std::uint32_t window = 1;  // packets
  };

  static packet::EngineOptions engine_options(const NetworkOptions& options);
  void build(const NetworkOptions& options);
  packet::PortSpec port_spec(LinkId link);
  double cell_use() const;
  Time paused_of(const packet::PortStats& stats) const;
  std::int64_t whole_packet() const;
  std::string most_lost_at() const;
  std::int64_t headroom_of(const packet::PortSpec& port, Bandwidth raw) const;
  Way& way_of(const FlowRequest& request);
  std::uint8_t lane_of(LinkId out_of_the_nic) const;
  KnownTree make_tree(const FlowRequest& request);
  void start_tree(const FlowRequest& request, std::uint64_t tag, Time now);
  void choose_congestion_control();
  void list_parameters(const packet::SenderFacts& facts);
  std::uint32_t connection_of(Way& way, const packet::SenderFacts& facts);
  std::uint32_t control(packet::FlowSpec& flow, Way& way, Time now);
  Way make_way(std::span<const Share> shares);
  enum class Bound { out, back };  // with data, with answers
  packet::Path add_path(const std::vector<LinkId>& links, Bound bound);
  packet::Path add_lane_path(const std::vector<LinkId>& links, Routing routing, Bound bound);
  bool answers(LinkId link, Bound bound) const;
  Time round_trip_of(const packet::Path& path) const;
  Time paused(std::uint32_t port, std::uint8_t traffic_class) const;
  bool crosses_network(LinkId link) const;
  void setting(std::string name, std::string value, std::string source);
  void gather();
  void remember_pauses(Slot& slot) const;
  void note_pauses(const Slot& slot);

  const Fabric& fabric_;
  const PacketSpec& spec_;
  bool cuts_;
  bool uses_lanes_;  // between switches
  std::uint8_t traffic_classes_, lanes_;
  std::int64_t grain_, header_;  // bytes of payload, and around it, of a packet of the NICs
  packet::Engine engine_;
  const packet::CongestionEntry* congestion_ = nullptr;
  std::set<std::pair<Bandwidth, Time>> listed_;  // whose parameters are in settings_
  std::unique_ptr<DragonflyRoutes> dragonfly_;
  std::map<std::uint32_t, Way> ways_;
  std::map<std::pair<const SwitchTree*, std::uint8_t>, KnownTree> trees_;
  std::vector<FlowDone> done_;
  std::priority_queue<Late, std::vector<Late>, std::greater<>> late_;
  std::vector<Slot> slots_;
  std::unordered_map<std::uint64_t, FlowObserved> paused_flows_;
  std::unordered_map<std::uint64_t, Time> watched_flows_;  // by tag
  std::vector<Connection> connections_;
  std::vector<std::uint32_t> free_slots_;
  std::vector<Setting> settings_;
  mutable NetworkCounters counters_;
  std::uint64_t order_ = 0;
};

}  // namespace weft
