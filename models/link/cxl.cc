// SPDX-License-Identifier: Apache-2.0
#include "models/link/cxl.hpp"

#include <fmt/format.h>

#include "models/link/facts.hpp"
#include "models/link/pcie.hpp"

namespace weft {
namespace {

LinkLaw evaluate(const LinkSpec& spec, Diagnostics& out) {
  LinkLaw law;
  if (asks_rate(spec)) {
    if (spec.generation == 0) {
      report_missing(spec, "generation", R"("generation": 3, 1 to 3)", out);
    } else if (spec.generation > 3) {
      report_impossible(spec, "generation",
                        fmt::format("CXL generation {} is not known", spec.generation), "1 to 3",
                        out);
    } else if (spec.width == 0) {
      report_missing(spec, "width", R"("width": 16, the number of lanes)", out);
    } else if (spec.generation < 3) {
      law.raw = coded(pcie_rate(5, spec.width), 64, 68);
    } else {
      law.raw = coded(64_Gbps * spec.width, 238, 256);
    }
  }
  law.payload = 64_B;
  law.overhead = 16_B;
  law.busy = 0.95;
  return law;
}

}  // namespace

constinit const LinkClassEntry kCxlLink{
    .link_class = LinkClass::cxl,
    .summary = "Compute Express Link: 64 B lines in slots of flits",
    .reference = "Compute Express Link Specification 3.0, chapter 4",
    .evaluate = evaluate};

}  // namespace weft
