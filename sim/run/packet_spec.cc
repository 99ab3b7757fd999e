// SPDX-License-Identifier: Apache-2.0
#include "sim/run/packet_spec.hpp"

#include <fmt/format.h>

namespace weft {
namespace {

constexpr Time kShortestTimer = 100_ns;
constexpr Bytes kSmallestCounter = 1_KB;

std::string name_of(CongestionScheme scheme) { return write_config(scheme).text; }

// By default the network decides, so any of these may turn out to be meant.
bool may_be(CongestionScheme given, CongestionScheme scheme) {
  if (given != CongestionScheme::automatic) return given == scheme;
  return scheme == CongestionScheme::dcqcn || scheme == CongestionScheme::cubic;
}

}  // namespace

void check_packet(const PacketSpec& spec, const Json& packet, const std::string& pointer,
                  Diagnostics& out) {
  const auto place = [&](std::string_view key) {
    const Json* found = packet.find(key);
    return found != nullptr ? found->place : packet.place;
  };
  using enum CongestionScheme;
  for (const auto scheme : {dcqcn, hpcc, timely, swift, dctcp, cubic, receiver, fecn}) {
    const std::string name = name_of(scheme);
    if (packet.find(name) == nullptr || may_be(spec.congestion_control, scheme)) continue;
    out.error(place(name), pointer + "/" + name,
              fmt::format("the congestion control is {}, which does not read \"{}\"",
                          name_of(spec.congestion_control), name),
              fmt::format("leave it out, or set \"congestion_control\": \"{}\"", name));
  }
  const CongestionScheme chosen = spec.congestion_control;
  if (spec.ack_every == 0 && chosen != automatic && chosen != none && chosen != dcqcn &&
      chosen != fecn) {
    out.error(place("ack_every"), pointer + "/ack_every",
              fmt::format("{} decides by acknowledgements", name_of(chosen)), "use 1 or more");
  }
  if (spec.ecn.kmin && spec.ecn.kmax && *spec.ecn.kmin > *spec.ecn.kmax) {
    const Json* ecn = packet.find("ecn");
    const Json* kmin = ecn != nullptr ? ecn->find("kmin") : nullptr;
    out.error(kmin != nullptr ? kmin->place : packet.place, pointer + "/ecn/kmin",
              fmt::format("marking begins at {} and is complete at {} already",
                          to_text(*spec.ecn.kmin), to_text(*spec.ecn.kmax)),
              "kmin is at most kmax");
  }
  if (spec.congestion.fecn &&
      spec.congestion.fecn->least.value_or(0) > spec.congestion.fecn->limit.value_or(kFecnLimit)) {
    out.error(place("fecn"), pointer + "/fecn/least",
              fmt::format("CCTI_Min {} is above CCTI_Limit {}", *spec.congestion.fecn->least,
                          spec.congestion.fecn->limit.value_or(kFecnLimit)),
              "the first entry of the table lies before the last");
  }
  if (spec.timeout < kShortestTimer) {
    out.error(place("timeout"), pointer + "/timeout",
              fmt::format("a timer of {} is not one that a NIC has", to_text(spec.timeout)),
              fmt::format("use {} or more, and more than a round trip", to_text(kShortestTimer)));
  }
  if (spec.ack_every == 0 && spec.window) {
    out.error(place("window"), pointer + "/window",
              "without acknowledgements nobody knows what is under way",
              "set \"ack_every\" to 1 or more, or leave it out");
  }
  if (chosen == receiver && spec.window) {
    out.error(place("window"), pointer + "/window", "the receiver says how much is under way",
              "leave it out; \"receiver\": {\"initial_window\": 8} is what a flow begins with");
  }
  if (chosen == receiver && spec.recovery == LossRecovery::go_back_n) {
    out.error(place("recovery"), pointer + "/recovery",
              "the receiver asks for single packets, not for all from a gap on",
              "use \"selective\" or leave it out");
  }
  if (spec.weights.size() > static_cast<std::size_t>(kMostClasses)) {
    out.error(place("weights"), pointer + "/weights",
              fmt::format("{} traffic classes", spec.weights.size()),
              fmt::format("there are at most {}", kMostClasses));
  }
  for (const std::int64_t weight : spec.weights) {
    if (weight >= 1 && weight <= kMostWeight) continue;
    out.error(place("weights"), pointer + "/weights", fmt::format("{} is not a weight", weight),
              fmt::format("use 1 to {}", kMostWeight));
  }
  if (const std::optional<DcqcnSpec>& own = spec.congestion.dcqcn) {
    const auto timer = [&](const char* key, const std::optional<Time>& value) {
      if (!value || *value >= kShortestTimer) return;
      out.error(place("dcqcn"), fmt::format("{}/dcqcn/{}", pointer, key),
                fmt::format("a timer of {} is not one that a NIC has", to_text(*value)),
                fmt::format("use {} or more", to_text(kShortestTimer)));
    };
    timer("alpha_timer", own->alpha_timer);
    timer("rate_timer", own->rate_timer);
    if (own->byte_counter && *own->byte_counter < kSmallestCounter) {
      out.error(place("dcqcn"), pointer + "/dcqcn/byte_counter",
                "less than a packet between increases",
                fmt::format("use {} or more", to_text(kSmallestCounter)));
    }
  }
}

}  // namespace weft
