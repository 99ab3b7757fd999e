// SPDX-License-Identifier: Apache-2.0
#include "models/link/nvlink.hpp"

#include <fmt/format.h>

#include "models/link/facts.hpp"
#include "sim/core/text.hpp"

namespace weft {
namespace {

struct Lanes {
  std::int64_t count;
  Bandwidth rate;
};
constexpr Lanes kLanes[] = {
    {8, 20_Gbps}, {8, Bandwidth{25'781'250'000}}, {4, 50_Gbps}, {2, 100_Gbps}, {2, 200_Gbps}};
constexpr int kGenerations = 5;
constexpr Time kLongDelay =
    1_us;  // metres of copper take 100 ns; a remote load over NVLink takes less than this in all

// Data sheets give a GPU's links together and both directions together (900 GB/s for 18 links of 25 GB/s): a rate above that of
// the fastest generation, or twice that of its own, is likely one of those.
void question_rate(const LinkSpec& spec, Diagnostics& out) {
  if (!spec.rate) return;
  const bool known = spec.generation > 0 && spec.generation <= kGenerations;
  const Lanes& lanes = kLanes[(known ? spec.generation : kGenerations) - 1];
  const Bandwidth usual = lanes.rate * lanes.count;
  if (spec.rate->bps < usual.bps * (known ? 2 : 1) + (known ? 0 : usual.bps / 2)) return;
  out.warning(spec.place, spec.pointer + "/rate",
              fmt::format("{} in one direction of one NVLink? {} has {}", to_text_bytes(*spec.rate),
                          known ? fmt::format("generation {}", spec.generation)
                                : std::string("the fastest generation"),
                          to_text_bytes(usual)),
              "data sheets count all links of a GPU and both directions together: divide by twice "
              "their number, and give the number as \"count\"");
}

LinkLaw evaluate(const LinkSpec& spec, Diagnostics& out) {
  LinkLaw law;
  question_rate(spec, out);
  if (asks_rate(spec)) {
    if (spec.generation == 0) {
      report_missing(spec, "generation", R"("generation": 4, 1 to 5)", out);
    } else if (spec.generation > kGenerations) {
      report_impossible(spec, "generation",
                        fmt::format("NVLink generation {} is not known", spec.generation),
                        "1 to 5, or a \"rate\"", out);
    } else {
      const Lanes& lanes = kLanes[spec.generation - 1];
      law.raw = lanes.rate * lanes.count;
    }
  }
  if (asks_efficiency(spec)) {
    if (spec.payload.count == 0)
      report_missing(spec, "payload", R"("payload": "256 B", the data of a full packet)", out);
    if (spec.header.count == 0)
      report_missing(spec, "header", R"("header": "16 B", one flit)", out);
  }
  if (spec.delay > kLongDelay) {
    out.warning(spec.place, spec.pointer + "/delay",
                fmt::format("{} is long for NVLink", to_text(spec.delay)),
                "its links take about 100 ns one way; is the unit right?");
  }
  law.payload = spec.payload;
  law.overhead = spec.header;
  return law;
}

}  // namespace

constinit const LinkClassEntry kNvlinkLink{
    .link_class = LinkClass::nvlink,
    .summary = "NVLink: one link of a generation, data flits behind a header flit",
    .reference =
        "Foley and Danskin, Ultra-Performance Pascal GPU and NVLink Interconnect, IEEE Micro "
        "37(2), 2017",
    .evaluate = evaluate};

}  // namespace weft
