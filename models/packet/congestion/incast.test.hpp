// SPDX-License-Identifier: Apache-2.0
// Senders behind one switch, all sending to one receiver: what every congestion control is tried on.
//
//   sender 0 -- 1 us --\                         rates over time at the receiver, per sender
//   sender i -- 1 us -- switch -- 1 us -- receiver
//                              ^ queue over time
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "models/packet/congestion/catalog.hpp"
#include "models/packet/packet_engine.hpp"

namespace weft::packet {

struct IncastSpec {
  CongestionScheme scheme = CongestionScheme::none;
  CongestionSpec parameters = {};
  std::uint32_t senders = 2;
  Bandwidth rate = {100'000'000'000};
  Bandwidth uplink = {0};  // of the senders; 0: the same
  Time delay = {1'000'000};
  std::uint32_t grain = 4096;
  std::int64_t bytes = std::int64_t{1} << 36;  // per sender
  Time stagger = {0};                          // sender i starts at i times this
  Time window = {1'000'000'000};               // of the records, 1 ms
  EcnSpec ecn = {};  // kmax 0: as the packet level scales it with the rate
  Guard guard = Guard::pause;
  std::int64_t buffer = 0;  // of the switch; drop: what is beyond is lost
  Recovery recovery = Recovery::none;
  std::uint32_t ack_every = 1;
  std::uint64_t seed = 1;
  // Before sender i starts: what it has been through.
  std::function<void(std::uint32_t, CongestionControl&)> prepare = {};
};

class Incast {
 public:
  explicit Incast(const IncastSpec& spec);

  void run(Time until);
  // Of sender i in window w, as a share of the link.
  double share(std::uint32_t i, std::size_t w) const;
  double total_share(std::size_t w) const;
  double jain(std::size_t w) const;
  // Over the windows first .. last - 1.
  double mean_share(std::uint32_t i, std::size_t first, std::size_t last) const;
  double mean_jain(std::size_t first, std::size_t last) const;
  double mean_queue(std::size_t first, std::size_t last) const;
  const Series& queue() const { return engine_.series(bottleneck_).queue; }
  const PortStats& bottleneck() const { return engine_.stats(bottleneck_); }
  std::uint64_t pauses() const;
  const Engine& engine() const { return engine_; }
  SenderFacts facts() const { return facts_; }
  std::size_t finished() const { return finished_; }
  Time last_end() const { return last_end_; }

 private:
  IncastSpec spec_;
  Engine engine_;
  SenderFacts facts_;
  std::size_t finished_ = 0;
  Time last_end_{0};
  std::uint32_t bottleneck_ = 0;
};

inline double jain_index(const std::vector<double>& shares) {
  double sum = 0, squares = 0;
  for (const double share : shares) {
    sum += share;
    squares += share * share;
  }
  return squares > 0 ? sum * sum / (static_cast<double>(shares.size()) * squares) : 1;
}

inline NodeSpec fabric_node(const IncastSpec& spec, const CongestionEntry& entry) {
  NodeSpec node;
  node.buffer = spec.buffer;
  node.trims = entry.pulled != nullptr;
  return node;
}

inline Incast::Incast(const IncastSpec& spec)
    : spec_(spec), engine_([&] {
        EngineOptions options;
        options.grain = spec.grain;
        options.seed = spec.seed;
        return options;
      }()) {
  const CongestionEntry& entry = *find_congestion_control(spec.scheme);
  EcnSpec ecn = spec.ecn;
  if (ecn.kmax == 0) ecn = {spec.rate.bps / 250'000, 4 * spec.rate.bps / 250'000, 0.2};
  const std::uint32_t fabric = engine_.add_node(fabric_node(spec, entry));
  const std::uint32_t receiver = engine_.add_node({.endpoint = true});
  const Bandwidth uplink = spec.uplink.bps > 0 ? spec.uplink : spec.rate;
  const auto cable = [&](std::uint32_t a, std::uint32_t b, Bandwidth wire, Guard there,
                         Guard back) {
    PortSpec port;
    port.from = a;
    port.to = b;
    port.wire = wire;
    port.delay = spec.delay;
    port.guard = there;
    port.xoff = spec.guard == Guard::pause ? 8 * ecn.kmax : 0;
    port.xon = 2 * spec.grain;
    port.headroom = spec.rate.bps / 8 * 10 / 1'000'000 + 4 * spec.grain;
    port.ecn = ecn;
    const std::uint32_t p = engine_.add_port(port);
    std::swap(port.from, port.to);
    port.guard = back;
    const std::uint32_t q = engine_.add_port(port);
    engine_.join(p, q);
    return p;
  };
  std::vector<std::uint32_t> up;
  for (std::uint32_t i = 0; i < spec.senders; ++i)
    up.push_back(
        cable(engine_.add_node({.endpoint = true}), fabric, uplink, spec.guard, Guard::endpoint));
  bottleneck_ = cable(fabric, receiver, spec.rate, Guard::endpoint, spec.guard);
  engine_.finish_build();
  engine_.watch(bottleneck_, spec.window);
  const Time packet = transfer_time(Bytes{spec.grain}, spec.rate);
  facts_ = {uplink, 4 * spec.delay + 2 * packet + 2 * transfer_time(64_B, spec.rate), spec.grain,
            Time{0}};
  for (std::uint32_t i = 0; i < spec.senders; ++i) {
    FlowSpec flow;
    flow.bytes = spec.bytes;
    flow.path = engine_.add_path({up[i], bottleneck_}, 1);
    flow.back = engine_.add_path({engine_.spec(bottleneck_).reverse, engine_.spec(up[i]).reverse});
    flow.recovery = spec.recovery;
    flow.timeout = Time{1'000'000'000};
    flow.ack_every = spec.ack_every;
    flow.label = flow.tag = i;
    flow.watch = spec.window;
    flow.account = i;
    facts_.start = static_cast<std::int64_t>(i) * spec.stagger;
    flow.congestion = entry.make(facts_, spec.parameters);
    if (spec.prepare) spec.prepare(i, *flow.congestion);
    flow.telemetry = entry.signals.telemetry;
    if (entry.pulled != nullptr) flow.pulled = entry.pulled(facts_, spec.parameters);
    if (entry.cnp_interval != nullptr) flow.cnp_interval = entry.cnp_interval(spec.parameters);
    run(facts_.start);
    engine_.start(std::move(flow), facts_.start);
  }
}

inline void Incast::run(Time until) {
  while (engine_.next_event() <= until) {
    engine_.run(until);
    for (const FlowEnd& end : engine_.ended()) last_end_ = end.when;
    finished_ += engine_.ended().size();
    engine_.ended().clear();
  }
  engine_.check_conservation();
}

inline double Incast::share(std::uint32_t i, std::size_t w) const {
  const Series& series = engine_.flow_series().at(i);
  return w < series.size() ? series.mean(w) * 8e12 / static_cast<double>(spec_.rate.bps) : 0;
}

inline double Incast::total_share(std::size_t w) const {
  double sum = 0;
  for (std::uint32_t i = 0; i < spec_.senders; ++i) sum += share(i, w);
  return sum;
}

inline double Incast::jain(std::size_t w) const {
  std::vector<double> shares;
  for (std::uint32_t i = 0; i < spec_.senders; ++i) shares.push_back(share(i, w));
  return jain_index(shares);
}

inline double Incast::mean_share(std::uint32_t i, std::size_t first, std::size_t last) const {
  double sum = 0;
  for (std::size_t w = first; w < last; ++w) sum += share(i, w);
  return sum / static_cast<double>(last - first);
}

inline double Incast::mean_jain(std::size_t first, std::size_t last) const {
  double sum = 0;
  for (std::size_t w = first; w < last; ++w) sum += jain(w);
  return sum / static_cast<double>(last - first);
}

inline double Incast::mean_queue(std::size_t first, std::size_t last) const {
  double sum = 0;
  for (std::size_t w = first; w < last; ++w) sum += queue().mean(w);
  return sum / static_cast<double>(last - first);
}

inline std::uint64_t Incast::pauses() const {
  std::uint64_t sum = 0;
  for (std::uint32_t p = 0; p < engine_.port_count(); ++p) sum += engine_.stats(p).pauses;
  return sum;
}

}  // namespace weft::packet
