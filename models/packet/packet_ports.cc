// SPDX-License-Identifier: Apache-2.0
// What links and switches of a fabric become at the packet level: guards, buffers, headroom, marking.
#include <algorithm>

#include <fmt/format.h>

#include "models/packet/headroom.hpp"
#include "models/packet/packet_network.hpp"
#include "sim/core/diagnostics.hpp"
#include "sim/run/packet_check.hpp"

namespace weft {
namespace {

using packet::Guard;

// Production values of the HPCC authors per 25 Gb/s of the port: Kmin 100 KB, Kmax 400 KB.
constexpr std::int64_t kKminPer25G = 100'000, kKmaxPer25G = 400'000;

std::int64_t bytes_in(Time time, Bandwidth rate) {
  return static_cast<std::int64_t>(time.seconds() * rate.bytes_per_s());
}

}  // namespace

void PacketNetwork::build(const NetworkOptions& options) {
  std::vector<packet::PortSpec> ports;
  for (std::uint32_t l = 0; l < fabric_.link_count(); ++l) ports.push_back(port_spec(LinkId{l}));
  for (std::uint32_t n = 0; n < fabric_.node_count(); ++n) {
    const Node& node = fabric_.node(NodeId{n});
    packet::NodeSpec made;
    made.endpoint = takes_all_in(node.kind);
    made.alpha = spec_.alpha;
    made.trims = congestion_->pulled != nullptr;
    if (node.kind == NodeKind::network_switch) {
      const SwitchSpec& model = fabric_.network()->switch_model;
      std::int64_t headroom = 0;
      for (const LinkId l : fabric_.out_links(NodeId{n})) {
        const packet::PortSpec& port = ports[fabric_.link(l).reverse.v];
        if (port.guard != Guard::pause) continue;
        const bool inner = fabric_.node(fabric_.link(l).to).kind == NodeKind::network_switch;
        headroom += port.headroom * options.traffic_classes *
                    (uses_lanes_ && inner ? std::int64_t{kDragonflyLanes} : 1);
      }
      const std::int64_t buffer = spec_.buffer   ? spec_.buffer->count
                                  : model.buffer ? model.buffer->count
                                                 : 0;
      if (buffer > 0 && headroom > 0 && !options.hypothetical) {
        made.buffer = buffer - headroom;
        if (made.buffer < 4 * grain_) {
          throw LimitReached(fmt::format(
              "the headroom of {}'s ports takes {} of its buffer of {}: give \"pfc\": "
              "{{\"headroom\"}} or a "
              "larger \"buffer\"",
              fabric_.name(NodeId{n}), to_text(Bytes{headroom}), to_text(Bytes{buffer})));
        }
      } else {
        made.buffer = buffer;
        const Bytes packet{whole_packet()};
        if (buffer > 0 && buffer < packet.count) {
          throw LimitReached(fmt::format("the buffer of {}, {}, does not hold one packet of {}",
                                         fabric_.name(NodeId{n}), to_text(Bytes{buffer}),
                                         to_text(packet)));
        }
      }
    }
    engine_.add_node(made);
  }
  for (const packet::PortSpec& port : ports) engine_.add_port(port);
  engine_.finish_build();
}

// Of one grain, in cells.
std::int64_t PacketNetwork::whole_packet() const {
  const std::int64_t cell = spec_.cell.count;
  return (grain_ + header_ + cell - 1) / cell * cell;
}

// f of the headroom: of all packets the smallest, a header and a byte, may be the one that all are.
double PacketNetwork::cell_use() const {
  return packet::worst_cell_use(spec_.cell.count, header_ + 1);
}

std::int64_t PacketNetwork::headroom_of(const packet::PortSpec& port, Bandwidth raw) const {
  packet::HeadroomFacts facts;
  facts.rate = port.wire;
  facts.delay = port.delay;
  facts.phy = port.processing;
  facts.response = std::max(port.response, packet::longest_response(raw));
  const std::int64_t mtu = grain_ + header_;
  facts.lossless_mtu = whole_packet();
  facts.port_mtu = mtu + packet::kControlBytes;
  facts.cell_use = cell_use();
  return packet::headroom(facts);
}

packet::PortSpec PacketNetwork::port_spec(LinkId id) {
  const Link& link = fabric_.link(id);
  const LinkLaw& law = fabric_.laws()[link.law];
  const Node& to = fabric_.node(link.to);
  packet::PortSpec port;
  port.from = link.from.v;
  port.to = link.to.v;
  port.reverse = link.reverse.v;
  port.payload = law.payload.count;
  port.overhead = law.overhead.count;
  port.wire = link.rate;
  if (law.payload.count > 0) {
    port.wire.bps = static_cast<std::int64_t>(
        static_cast<double>(link.rate.bps) *
            static_cast<double>(law.payload.count + law.overhead.count) / law.payload.value() +
        0.5);
  }
  port.delay = link.delay;
  const bool memory = takes_all_in(to.kind);
  port.processing = memory ? Time{0} : to.latency;
  port.cut_through = !memory && spec_.cut_through;
  port.lanes = lanes_ > 1 && to.kind == NodeKind::nic && !crosses_network(id);
  const std::int64_t grain = grain_ + header_;
  const std::int64_t round_trip = bytes_in(2 * (port.delay + port.processing), port.wire);
  if (memory) {
    port.guard = Guard::endpoint;
  } else if (works_with_credits(fabric_, link)) {
    port.guard = Guard::credit;
    port.credit = spec_.credit ? spec_.credit->count : 2 * round_trip + 4 * grain;
    if (port.credit < grain) {
      throw LimitReached(fmt::format("a credit of {} does not hold one packet of {}",
                                     to_text(Bytes{port.credit}), to_text(Bytes{grain})));
    }
  } else if (spec_.pfc.enabled) {
    port.guard = Guard::pause;
    port.xoff = spec_.pfc.xoff ? spec_.pfc.xoff->count : 0;
    port.xon = spec_.pfc.xon ? spec_.pfc.xon->count : 2 * grain;
    port.response = spec_.pfc.response;
    port.headroom = spec_.pfc.headroom ? spec_.pfc.headroom->count : headroom_of(port, link.raw);
    setting("PFC headroom", to_text(Bytes{port.headroom}),
            spec_.pfc.headroom ? "given"
                               : fmt::format("{} at {}, f {:.2f}", to_text(link.delay),
                                             to_text(link.raw), cell_use()));
  } else {
    port.guard = Guard::drop;
  }
  const bool from_switch = fabric_.node(link.from).kind == NodeKind::network_switch;
  if (link.link_class == LinkClass::infiniband && from_switch && spec_.ecn.enabled &&
      congestion_->scheme == CongestionScheme::fecn) {
    port.ecn.kmin = spec_.ecn.kmin   ? spec_.ecn.kmin->count
                    : spec_.ecn.kmax ? std::min(port.credit / 2, spec_.ecn.kmax->count)
                                     : port.credit / 2;
    port.ecn.kmax = spec_.ecn.kmax ? spec_.ecn.kmax->count : port.ecn.kmin + 1;
    port.ecn.pmax = spec_.ecn.pmax;
    port.ecn.roots = true;
    setting("FECN threshold", to_text(Bytes{port.ecn.kmin}),
            spec_.ecn.kmin ? "given" : "half of a link's credit");
  }
  if (link.link_class == LinkClass::ethernet && spec_.ecn.enabled && from_switch) {
    const double scale = static_cast<double>(link.raw.bps) / 25e9;
    port.ecn.kmin =
        spec_.ecn.kmin ? spec_.ecn.kmin->count : static_cast<std::int64_t>(scale * kKminPer25G);
    // A Kmax below the usual Kmin takes it along.
    const bool low = spec_.ecn.kmax && !spec_.ecn.kmin && spec_.ecn.kmax->count <= port.ecn.kmin;
    if (low) port.ecn.kmin = spec_.ecn.kmax->count * kKminPer25G / kKmaxPer25G;
    port.ecn.kmax = spec_.ecn.kmax ? spec_.ecn.kmax->count
                                   : std::max(port.ecn.kmin + 1,
                                              static_cast<std::int64_t>(scale * kKmaxPer25G));
    port.ecn.pmax = spec_.ecn.pmax;
    setting("ECN Kmin, Kmax, Pmax",
            fmt::format("{}, {}, {}", to_text(Bytes{port.ecn.kmin}), to_text(Bytes{port.ecn.kmax}),
                        port.ecn.pmax),
            spec_.ecn.kmin ? "given"
            : low          ? "Kmin a quarter of Kmax"
                           : fmt::format("scaled to {}", to_text(link.raw)));
  }
  return port;
}

}  // namespace weft
