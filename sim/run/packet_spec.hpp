// SPDX-License-Identifier: Apache-2.0
// What the packet level needs beyond the fabric: `models.packet` of a scenario. What is absent is derived from the machine or
// taken from a stated default; the report lists every value that was used and where it comes from.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "sim/core/config.hpp"
#include "sim/fabric/software.hpp"
#include "sim/run/congestion_spec.hpp"

namespace weft {

// Priority flow control at Ethernet ports (IEEE 802.1Qbb).
struct PfcSpec {
  bool enabled = true;
  std::optional<Bytes> xoff, headroom;
  std::optional<Bytes> xon;
  Time response = 500_ns;
  template <class V>
  void visit(V&& v) {
    v("enabled", enabled, "off: what does not fit is lost");
    v("xoff", xoff,
      "bytes of one ingress port and class at which PAUSE is sent; default: `alpha` times what is "
      "free",
      positive);
    v("xon", xon, "this much below it traffic goes on; default: two packets", at_most(kMostPacket));
    v("headroom", headroom,
      "for what still arrives after PAUSE; default: by rate, delay and the longest response of the "
      "standard, see docs/packet.md",
      at_most(kMostPacket));
    v("response", response, "from the arrival of PAUSE until it takes effect", at_most(kMostDelay));
  }
};

// Explicit congestion notification at egress ports.
struct EcnMarking {
  bool enabled = true;
  std::optional<Bytes> kmin, kmax;
  double pmax = 0.2;
  template <class V>
  void visit(V&& v) {
    v("enabled", enabled, "off: nothing is marked");
    v("kmin", kmin, "queue from which packets are marked; default: 100 kB per 25 Gb/s of the port",
      positive);
    v("kmax", kmax, "queue from which all are; default: 400 kB per 25 Gb/s", positive);
    v("pmax", pmax, "share marked just below kmax", between(0, 1));
  }
};

enum class LossRecovery { automatic, none, go_back_n, selective };
constexpr auto enum_names(LossRecovery) {
  using enum LossRecovery;
  return std::array<EnumName<LossRecovery>, 4>{{{automatic, "automatic"},
                                                {none, "none"},
                                                {go_back_n, "go-back-n"},
                                                {selective, "selective"}}};
}

inline constexpr std::int64_t kMostClasses = 7;  // of data; class 0 is for acknowledgements
inline constexpr std::int64_t kMostWeight = 1000;
inline constexpr Bytes kMostGrain = 16_MiB, kMostCell = 64_KiB;

struct PacketSpec {
  std::optional<Bytes> grain, buffer, credit, window;
  Bytes cell{1};
  double alpha = 0.125;
  PfcSpec pfc;
  EcnMarking ecn;
  CongestionScheme congestion_control = CongestionScheme::automatic;
  CongestionSpec congestion;
  LossRecovery recovery = LossRecovery::automatic;
  std::int64_t ack_every = 1;
  Time timeout = 1_ms;
  Time flowlet_gap = 50_us;
  bool cut_through = true;
  std::vector<std::int64_t> weights;
  template <class V>
  void visit(V&& v) {
    v("grain", grain, "payload of a packet; default: the MTU of the NICs' links, else 4 KiB",
      positive, at_most(kMostGrain));
    v("buffer", buffer, "packet memory of every Ethernet switch; default: what the switch says",
      positive, at_most(kMostPacket));
    v("cell", cell, "buffers are counted in cells of so many bytes", positive, at_most(kMostCell));
    v("alpha", alpha,
      "dynamic threshold of the shared buffer: a port may hold alpha times what is free",
      between(0.001, 1000));
    v("credit", credit,
      "bytes of buffer behind every link that works with credits, per class; default: two round "
      "trips",
      positive, at_most(kMostPacket));
    v("pfc", pfc, "priority flow control of Ethernet");
    v("ecn", ecn, "marking at Ethernet switches; with fecn, at InfiniBand switches");
    v("congestion_control", congestion_control,
      "see `weft list congestion`; automatic: dcqcn over RoCE, cubic over TCP and iWARP, none over "
      "InfiniBand");
    congestion.visit(v);
    v("recovery", recovery,
      "of lost packets; automatic: go-back-n over Ethernet, none over lossless links");
    v("ack_every", ack_every, "packets per acknowledgement; 0: none", between(0, 1'000'000));
    v("window", window,
      "bytes that a queue pair may have under way: its depth times the size of a message; default: "
      "no limit",
      positive);
    v("timeout", timeout, "without progress, until a sender starts again", positive,
      at_most(kMostDelay));
    v("flowlet_gap", flowlet_gap, "pause after which a flow may change its path", positive,
      at_most(kMostDelay));
    v("cut_through", cut_through, "switches forward behind the header");
    v("weights", weights,
      "packets that traffic classes 1, 2 ... send in turn where they meet; default: one each");
  }
};

// What single keys cannot tell: parameters of a scheme that is not used, schemes without what they listen to. `packet` is the
// object as written.
void check_packet(const PacketSpec& spec, const Json& packet, const std::string& pointer,
                  Diagnostics& out);

}  // namespace weft
