// SPDX-License-Identifier: Apache-2.0
#include "models/link/ethernet.hpp"

#include <fmt/format.h>

#include "models/link/facts.hpp"

namespace weft {
namespace {

constexpr Bytes kFrame = 38_B;
constexpr Bytes kRoce = 44_B;
constexpr Bytes kTcp = 52_B;
constexpr Bytes kIwarp = 20_B;  // MPA 2 + 4, DDP and RDMAP 14
constexpr Bytes kMarker = 4_B;
constexpr std::int64_t kMarkerEvery = 512;

struct Frame {
  Bytes payload, contents;
};

// `mtu` as RDMA counts it for roce, as IP counts it otherwise.
Frame frame_of(Transport transport, Bytes mtu) {
  const auto without = [](Bytes a, Bytes b) { return Bytes{a.count - b.count}; };
  switch (transport) {
    case Transport::raw:
      return {mtu, mtu};
    case Transport::roce:
      return {mtu, mtu + kRoce};
    case Transport::tcp:
      return {without(mtu, kTcp), mtu};
    case Transport::iwarp: {
      const Bytes segment = without(mtu, kTcp);
      const Bytes markers = kMarker * ((segment.count + kMarkerEvery - 1) / kMarkerEvery);
      const Bytes data = without(segment, markers + kIwarp);
      return {Bytes{data.count / 4 * 4}, mtu};  // an FPDU is padded to words
    }
  }
  return {};
}

LinkLaw evaluate(const LinkSpec& spec, Diagnostics& out) {
  LinkLaw law;
  if (!spec.rate)
    report_missing(spec, "rate", R"("rate": "400 Gb/s")", out);
  else
    law.raw = *spec.rate;
  if (spec.mtu.count == 0) {
    if (asks_efficiency(spec)) {
      report_missing(spec, "mtu", R"("mtu": "4 KiB" for roce, "9000 B" or "1500 B" for the others)",
                     out);
    }
    return law;
  }
  if (spec.transport == Transport::roce && spec.mtu > 4_KiB) {
    report_impossible(spec, "mtu", "RoCE's path MTU is at most 4 KiB",
                      "256 B, 512 B, 1 KiB, 2 KiB or 4 KiB of data", out);
  }
  const Frame frame = frame_of(spec.transport, spec.mtu);
  if (frame.payload.count <= 0) {
    report_impossible(spec, "mtu",
                      fmt::format("an mtu of {} leaves no room for data", to_text(spec.mtu)),
                      "1500 B or more", out);
    return law;
  }
  law.payload = frame.payload;
  law.overhead = Bytes{frame.contents.count - frame.payload.count} + kFrame;
  return law;
}

}  // namespace

constinit const LinkClassEntry kEthernetLink{
    .link_class = LinkClass::ethernet,
    .summary = "Ethernet: frames of a transport (raw, RoCEv2, TCP, iWARP)",
    .reference = "IEEE 802.3; RoCEv2 annex A17; RFC 7323, 5040, 5041, 5044",
    .evaluate = evaluate};

}  // namespace weft
