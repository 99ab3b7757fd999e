// SPDX-License-Identifier: Apache-2.0
// Which congestion control the flows of a network get, and what the report says of it.
#include <algorithm>
#include <map>

#include <fmt/format.h>

#include "models/packet/connections.hpp"
#include "models/packet/packet_network.hpp"
#include "sim/core/check.hpp"
#include "sim/run/packet_check.hpp"

namespace weft {
namespace {

// What a queue pair knows of its path, lent to one message after the other. Of schemes that count time and bytes, not packets.
class Borrowed final : public packet::CongestionControl {
 public:
  explicit Borrowed(packet::CongestionControl& own) : own_(own) {}
  Bandwidth rate(Time now) override { return own_.rate(now); }
  void on_send(Time now, std::uint32_t bytes) override { own_.on_send(now, bytes); }
  void on_cnp(Time now) override { own_.on_cnp(now); }

 private:
  packet::CongestionControl& own_;
};

std::string for_people(const Json& value) {
  if (!value.is_string()) return to_text(value, 0);
  if (const auto time = parse_time(value.text)) return to_text(*time);
  if (const auto rate = parse_bandwidth(value.text)) return to_text(*rate);
  if (const auto bytes = parse_bytes(value.text)) return to_text(*bytes);
  return value.text;
}

}  // namespace

void PacketNetwork::choose_congestion_control() {
  const CongestionScheme scheme = congestion_scheme(fabric_, spec_);
  congestion_ = packet::find_congestion_control(scheme);
  WEFT_CHECK(congestion_ != nullptr, static_cast<int>(scheme));
  setting("congestion control", std::string(congestion_->name()),
          spec_.congestion_control == CongestionScheme::automatic ? "default" : "given");
}

// Parameters are listed once per line rate and round trip.
void PacketNetwork::list_parameters(const packet::SenderFacts& facts) {
  constexpr std::size_t kMostListed = 16;  // a report is read by people
  if (listed_.size() == kMostListed || !listed_.emplace(facts.line_rate, facts.base_rtt).second)
    return;
  const Json given = write_config(spec_.congestion);
  const std::string scheme(congestion_->name());
  const Json* own = given.find(scheme);
  for (const JsonMember& member : congestion_->parameters(facts, spec_.congestion).members) {
    const bool said = own != nullptr && own->find(member.key) != nullptr;
    setting(scheme + " " + member.key, for_people(member.value),
            said ? "given" : fmt::format("default at {}", to_text(facts.line_rate)));
  }
}

// With what the connections of the busiest NIC take.
std::vector<Setting> PacketNetwork::settings() const {
  std::vector<Setting> out = settings_;
  std::map<std::uint32_t, std::int64_t> connections;  // by NIC; a way is one
  std::int64_t most = 0;
  for (const auto& [id, way] : ways_) {
    if (way.transport) most = std::max(most, ++connections[way.nic]);
  }
  if (most == 0) return out;
  const packet::ConnectionState each =
      packet::connection_state(transport_of(fabric_), *congestion_);
  std::string parts = fmt::format("{} B each", each.total());
  for (const auto& [bytes, name] : {std::pair{each.queue_pair, std::string_view("a queue pair")},
                                    {each.tcp, "TCP"},
                                    {each.control, congestion_->name()}})
    if (bytes > 0) parts += fmt::format(", {} of {}", bytes, name);
  out.push_back({"connections of a NIC",
                 fmt::format("{}, {}", most, to_text(Bytes{most * each.total()})), parts});
  return out;
}

// The first queue pair of the way that has nothing to send.
std::uint32_t PacketNetwork::connection_of(Way& way, const packet::SenderFacts& facts) {
  for (const std::uint32_t known : way.connections) {
    if (!connections_[known].busy) return known;
  }
  way.connections.push_back(static_cast<std::uint32_t>(connections_.size()));
  connections_.push_back({congestion_->make(facts, spec_.congestion), false});
  return way.connections.back();
}

// Gives the flow its congestion control; the queue pair that lends it, if one does.
std::uint32_t PacketNetwork::control(packet::FlowSpec& flow, Way& way, Time now) {
  const packet::SenderFacts facts{way.line_rate, way.round_trip, static_cast<std::uint32_t>(grain_),
                                  now};
  list_parameters(facts);
  flow.telemetry = congestion_->signals.telemetry;
  if (congestion_->pulled != nullptr) {
    flow.pulled = congestion_->pulled(facts, spec_.congestion);
    if (flow.recovery != packet::Recovery::none) flow.recovery = packet::Recovery::selective;
  }
  if (!congestion_->signals.cnp) {
    flow.congestion = congestion_->make(facts, spec_.congestion);
    return packet::kNone;
  }
  flow.cnp_interval = congestion_->cnp_interval(spec_.congestion);
  const std::uint32_t connection = connection_of(way, facts);
  connections_[connection].busy = true;
  flow.congestion = std::make_unique<Borrowed>(*connections_[connection].congestion);
  return connection;
}

}  // namespace weft
