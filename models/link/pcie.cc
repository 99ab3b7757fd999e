// SPDX-License-Identifier: Apache-2.0
#include "models/link/pcie.hpp"

#include <fmt/format.h>

#include "models/link/facts.hpp"
#include "sim/core/check.hpp"

namespace weft {
namespace {

struct Coding {
  Bandwidth lane;  // transfers per second of one lane
  std::int64_t data, wire;
};
constexpr Coding kCoding[] = {{2500_Mbps, 8, 10},  {5_Gbps, 8, 10},     {8_Gbps, 128, 130},
                              {16_Gbps, 128, 130}, {32_Gbps, 128, 130}, {64_Gbps, 236, 256}};
constexpr int kGenerations = 6;
constexpr Bytes kPacketOverhead = 24_B;
constexpr Bytes kFlitModeHeader = 16_B;
constexpr double kBusy = 0.95;

bool is_width(int width) {
  return width == 1 || width == 2 || width == 4 || width == 8 || width == 12 || width == 16;
}

LinkLaw evaluate(const LinkSpec& spec, Diagnostics& out) {
  LinkLaw law;
  if (spec.generation == 0) {
    if (asks_rate(spec)) report_missing(spec, "generation", R"("generation": 4, 1 to 6)", out);
  } else if (spec.generation > kGenerations) {
    report_impossible(spec, "generation",
                      fmt::format("PCIe generation {} is not known", spec.generation),
                      "1 to 6, or a \"rate\" and a generation of those", out);
  } else if (asks_rate(spec)) {
    if (spec.width == 0) {
      report_missing(spec, "width", R"("width": 16, the number of lanes)", out);
    } else if (!is_width(spec.width)) {
      report_impossible(spec, "width", fmt::format("PCIe has no x{}", spec.width),
                        "1, 2, 4, 8, 12 or 16", out);
    } else {
      law.raw = pcie_rate(spec.generation, spec.width);
    }
  }
  if (spec.max_payload.count == 0 && asks_efficiency(spec)) {
    report_missing(spec, "max_payload", R"("max_payload": "256 B", what the devices agree on)",
                   out);
  }
  law.payload = spec.max_payload;
  law.overhead = spec.generation == 6 ? kFlitModeHeader : kPacketOverhead;
  law.busy = kBusy;
  return law;
}

}  // namespace

Bandwidth pcie_rate(int generation, int width) {
  WEFT_CHECK(generation >= 1 && generation <= kGenerations, generation);
  const Coding& coding = kCoding[generation - 1];
  return coded(coding.lane * width, coding.data, coding.wire);
}

constinit const LinkClassEntry kPcieLink{
    .link_class = LinkClass::pcie,
    .summary = "PCI Express: lanes, line coding or flits, transaction-layer packets",
    .reference = "PCI Express Base Specification 6.0, chapters 2 to 4",
    .evaluate = evaluate};

}  // namespace weft
