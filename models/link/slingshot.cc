// SPDX-License-Identifier: Apache-2.0
#include "models/link/slingshot.hpp"

#include "models/link/facts.hpp"

namespace weft {
namespace {

LinkLaw evaluate(const LinkSpec& spec, Diagnostics& out) {
  LinkLaw law;
  if (!spec.rate)
    report_missing(spec, "rate", R"("rate": "200 Gb/s")", out);
  else
    law.raw = *spec.rate;
  if (spec.mtu.count == 0 && asks_efficiency(spec))
    report_missing(spec, "mtu", R"("mtu": "2 KiB")", out);
  law.payload = spec.mtu;
  law.overhead = 62_B;
  return law;
}

}  // namespace

constinit const LinkClassEntry kSlingshotLink{
    .link_class = LinkClass::slingshot,
    .summary = "HPE Slingshot: Ethernet frames without preamble and gap",
    .reference = "De Sensi et al., An In-Depth Analysis of the Slingshot Interconnect, SC 2020",
    .evaluate = evaluate};

}  // namespace weft
