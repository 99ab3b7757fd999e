// SPDX-License-Identifier: Apache-2.0
// Packet-hops per second on the traffic of the field's packet simulators: a permutation of 2 MB flows over a 3-tier
// full-bisection fat tree of k-port switches, 100 Gb/s, 1 us links, payload 4000, an ack for every packet.
//
//   items per second = packet-hops, acks included; alarms = alarms per packet-hop; bytes = of engine state per host;
//   per_window = alarms within one link delay, the lookahead of partitions
#include "models/packet/packet_engine.hpp"

#include <cstdint>
#include <numeric>
#include <utility>
#include <vector>

#include <benchmark/benchmark.h>

namespace weft::packet {
namespace {

constexpr std::int64_t kFlowBytes = 2'000'000;

// SplitMix64 (Steele et al., 2014), so that other simulators can be given the same permutation.
struct SplitMix {
  std::uint64_t state;
  std::uint64_t next() {
    std::uint64_t z = (state += 0x9E37'79B9'7F4A'7C15ULL);
    z = (z ^ (z >> 30)) * 0xBF58'476D'1CE4'E5B9ULL;
    z = (z ^ (z >> 27)) * 0x94D0'49BB'1331'11EBULL;
    return z ^ (z >> 31);
  }
};

class FatTree {
 public:
  FatTree(std::uint32_t k, Guard guard, Spread spread)
      : half_(k / 2), hosts_(k * half_ * half_), guard_(guard), engine_(options(spread)) {
    std::vector<std::uint32_t> host(hosts_), edge(k * half_), agg(k * half_), core(half_ * half_);
    for (auto& node : host) node = engine_.add_node({.endpoint = true});
    for (auto* tier : {&edge, &agg, &core}) {
      for (auto& node : *tier) node = engine_.add_node({});
    }
    for (std::uint32_t h = 0; h < hosts_; ++h) up_.push_back(join(host[h], edge[h / half_], true));
    for (std::uint32_t e = 0; e < edge.size(); ++e) {
      for (std::uint32_t j = 0; j < half_; ++j)
        to_agg_.push_back(join(edge[e], agg[e / half_ * half_ + j], false));
    }
    for (std::uint32_t a = 0; a < agg.size(); ++a) {
      for (std::uint32_t j = 0; j < half_; ++j)
        to_core_.push_back(join(agg[a], core[a % half_ * half_ + j], false));
    }
    engine_.finish_build();
  }

  std::uint32_t hosts() const { return hosts_; }
  Engine& engine() { return engine_; }

  void start(std::uint32_t from, std::uint32_t to, std::uint64_t label) {
    FlowSpec flow;
    flow.bytes = kFlowBytes;
    flow.label = label;
    flow.path = path(from, to, label);
    flow.back = path(to, from, label >> 8);
    engine_.start(std::move(flow), Time{0});
  }

 private:
  static EngineOptions options(Spread spread) {
    EngineOptions options;
    options.grain = 4000;
    options.spread = spread;
    return options;
  }
  std::uint32_t join(std::uint32_t a, std::uint32_t b, bool host) {
    PortSpec spec;
    spec.from = a;
    spec.to = b;
    spec.wire = Bandwidth{100'000'000'000};
    spec.delay = Time{1'000'000};
    spec.guard = guard_;
    spec.xoff = spec.credit = 60'000;
    spec.xon = 20'000;
    spec.headroom = 100'000;
    const std::uint32_t there = engine_.add_port(spec);
    std::swap(spec.from, spec.to);
    if (host) spec.guard = Guard::endpoint;
    engine_.join(there, engine_.add_port(spec));
    return there;
  }
  std::uint32_t back(std::uint32_t port) const { return engine_.spec(port).reverse; }
  Path path(std::uint32_t from, std::uint32_t to, std::uint64_t label) {
    const std::uint32_t a = from / half_, b = to / half_;
    const auto j = static_cast<std::uint32_t>(label % half_);
    const auto c = static_cast<std::uint32_t>(label / half_ % half_);
    std::vector<std::uint32_t> ports{up_[from]};
    if (a != b) ports.push_back(to_agg_[a * half_ + j]);
    if (a / half_ != b / half_) {
      ports.push_back(to_core_[(a / half_ * half_ + j) * half_ + c]);
      ports.push_back(back(to_core_[(b / half_ * half_ + j) * half_ + c]));
    }
    if (a != b) ports.push_back(back(to_agg_[b * half_ + j]));
    ports.push_back(back(up_[to]));
    return engine_.add_path(ports, static_cast<std::uint32_t>(ports.size() - 1));
  }

  std::uint32_t half_, hosts_;
  Guard guard_;
  Engine engine_;
  std::vector<std::uint32_t> up_, to_agg_, to_core_;
};

void permutation(benchmark::State& state, Guard guard) {
  const auto k = static_cast<std::uint32_t>(state.range(0));
  std::uint64_t hops = 0, alarms = 0;
  std::size_t memory = 0, hosts = 0;
  Time simulated{0};
  for (auto unused : state) {
    state.PauseTiming();
    FatTree tree(k, guard, Spread::hash);
    hosts = tree.hosts();
    std::vector<std::uint32_t> to(hosts);
    std::iota(to.begin(), to.end(), 0U);
    SplitMix random{1};
    for (std::size_t i = hosts - 1; i > 0; --i) std::swap(to[i], to[random.next() % i]);
    state.ResumeTiming();
    for (std::uint32_t h = 0; h < hosts; ++h) tree.start(h, to[h], random.next() >> 8);
    Engine& engine = tree.engine();
    std::size_t ended = 0;
    while (ended < hosts && engine.next_event() < Time::never()) {
      engine.run(Time::never());
      ended += engine.ended().size();
      engine.ended().clear();
    }
    if (ended < hosts) state.SkipWithError("flows are left");
    hops += engine.counters().hops + engine.counters().control_hops;
    alarms += engine.counters().alarms;
    memory = engine.memory();
    simulated += engine.now();
  }
  state.SetItemsProcessed(static_cast<std::int64_t>(hops));
  state.counters["alarms"] = static_cast<double>(alarms) / static_cast<double>(hops);
  state.counters["per_window"] = static_cast<double>(alarms) / (simulated.seconds() / 1e-6);
  state.counters["bytes"] = static_cast<double>(memory) / static_cast<double>(hosts);
}

BENCHMARK_CAPTURE(permutation, pfc, Guard::pause)
    ->Arg(8)
    ->Arg(12)
    ->Arg(16)
    ->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(permutation, credits, Guard::credit)
    ->Arg(8)
    ->Arg(16)
    ->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(permutation, unbounded, Guard::drop)
    ->Arg(8)
    ->Arg(16)
    ->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace weft::packet
