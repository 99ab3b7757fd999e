// SPDX-License-Identifier: Apache-2.0
#include "models/link/infiniband.hpp"

#include <fmt/format.h>

#include "models/link/facts.hpp"

namespace weft {
namespace {

struct Speed {
  std::string_view name;
  Bandwidth lane;  // signalled, without forward error correction
  std::int64_t data, wire;
};
constexpr Speed kSpeeds[] = {
    {"sdr", 2500_Mbps, 8, 10},
    {"ddr", 5_Gbps, 8, 10},
    {"qdr", 10_Gbps, 8, 10},
    {"fdr", Bandwidth{14'062'500'000}, 64, 66},
    {"edr", Bandwidth{25'781'250'000}, 64, 66},
    {"hdr", Bandwidth{53'125'000'000}, 256 * 514, 257 * 544},
    {"ndr", Bandwidth{106'250'000'000}, 256 * 514, 257 * 544},
    {"xdr", Bandwidth{212'500'000'000}, 256 * 514, 257 * 544},
};
constexpr Bytes kHeaders = 26_B;
constexpr double kBusy = 0.99;

LinkLaw evaluate(const LinkSpec& spec, Diagnostics& out) {
  LinkLaw law;
  if (asks_rate(spec)) {
    const Speed* speed = nullptr;
    for (const Speed& candidate : kSpeeds) {
      if (candidate.name == spec.speed) speed = &candidate;
    }
    if (spec.speed.empty()) {
      report_missing(spec, "speed",
                     R"("speed": "ndr", one of sdr, ddr, qdr, fdr, edr, hdr, ndr, xdr)", out);
    } else if (speed == nullptr) {
      report_impossible(spec, "speed", fmt::format("\"{}\" is not an InfiniBand speed", spec.speed),
                        "one of sdr, ddr, qdr, fdr, edr, hdr, ndr, xdr", out);
    } else if (spec.width == 0) {
      report_missing(spec, "width", R"("width": 4, the number of lanes)", out);
    } else if (spec.width != 1 && spec.width != 2 && spec.width != 4 && spec.width != 8 &&
               spec.width != 12) {
      report_impossible(spec, "width", fmt::format("InfiniBand has no {}x", spec.width),
                        "1, 2, 4, 8 or 12", out);
    } else {
      law.raw = coded(speed->lane * spec.width, speed->data, speed->wire);
    }
  }
  if (spec.mtu.count == 0 && asks_efficiency(spec)) {
    report_missing(spec, "mtu", R"("mtu": "4 KiB", 256 B to 4 KiB)", out);
  } else if (spec.mtu > 4_KiB) {
    report_impossible(spec, "mtu", "an InfiniBand packet carries at most 4 KiB",
                      "256 B, 512 B, 1 KiB, 2 KiB or 4 KiB", out);
  }
  law.payload = spec.mtu;
  law.overhead = kHeaders;
  law.busy = kBusy;
  return law;
}

}  // namespace

constinit const LinkClassEntry kInfinibandLink{
    .link_class = LinkClass::infiniband,
    .summary = "InfiniBand: lane speed, width, packets of one mtu",
    .reference = "InfiniBand Architecture Specification volumes 1 and 2",
    .evaluate = evaluate};

}  // namespace weft
