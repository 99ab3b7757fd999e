// SPDX-License-Identifier: Apache-2.0
// Packet-hops per second on a leaf-spine of 8 spines and leaves of 8 hosts, a permutation of 10 MB flows:
//
//   roce   payload 1000, PFC with a dynamic threshold in switches of 32 MB, ECN, DCQCN, an ack for every packet
//   udp    packets of 1472 B of payload at 99 % of the line, no acks, queues without a limit
#include <cstdint>
#include <utility>
#include <vector>

#include <benchmark/benchmark.h>

#include "models/packet/congestion/catalog.hpp"
#include "models/packet/packet_engine.hpp"
#include "models/packet/permutation.perf.hpp"

namespace weft::packet {
namespace {

constexpr std::int64_t kFlowBytes = 10'000'000;
constexpr std::uint32_t kSpines = 8;

enum class Traffic : std::uint8_t { roce, udp };

class LeafSpine {
 public:
  LeafSpine(std::uint32_t leaves, Traffic traffic)
      : traffic_(traffic), hosts_(leaves * kSpines), engine_(options(traffic)) {
    const bool roce = traffic == Traffic::roce;
    NodeSpec shared;
    if (roce) shared.buffer = 32'000'000;
    std::vector<std::uint32_t> host(hosts_), leaf(leaves), spine(kSpines);
    for (auto& node : host) node = engine_.add_node({.endpoint = true});
    for (auto* tier : {&leaf, &spine}) {
      for (auto& node : *tier) node = engine_.add_node(shared);
    }
    PortSpec port;
    port.guard = roce ? Guard::pause : Guard::drop;
    if (roce) {
      port.headroom = 100'000;
      port.xon = 3'000;
      port.ecn = {.kmin = 400'000, .kmax = 1'600'000, .pmax = 0.2};
    }
    for (std::uint32_t h = 0; h < hosts_; ++h)
      up_.push_back(join_nodes(engine_, port, host[h], leaf[h / kSpines], true));
    for (const std::uint32_t below : leaf) {
      for (const std::uint32_t above : spine)
        to_spine_.push_back(join_nodes(engine_, port, below, above, false));
    }
    engine_.finish_build();
  }

  std::uint32_t hosts() const { return hosts_; }
  Engine& engine() { return engine_; }

  void start(std::uint32_t from, std::uint32_t to, std::uint64_t label) {
    FlowSpec flow;
    flow.bytes = kFlowBytes;
    flow.label = label;
    // RoCE is hashed, the other goes by its destination.
    const bool roce = traffic_ == Traffic::roce;
    flow.path = path(from, to, roce ? label : to);
    flow.back = path(to, from, roce ? label >> 8 : from);
    if (roce) {
      const Bandwidth line{100'000'000'000};
      const SenderFacts facts{.line_rate = line, .base_rtt = Time{8'500'000}, .grain = 1000};
      flow.congestion = kDcqcn.make(facts, {});
      flow.cnp_interval = kDcqcn.cnp_interval({});
      flow.recovery = Recovery::go_back_n;
      flow.timeout = Time{1'000'000'000};
    } else {
      flow.ack_every = 0;
      flow.cap = Bandwidth{99'000'000'000};
    }
    engine_.start(std::move(flow), Time{0});
  }

 private:
  static EngineOptions options(Traffic traffic) {
    EngineOptions options;
    options.grain = traffic == Traffic::roce ? 1000 : 1472;
    return options;
  }
  std::uint32_t back(std::uint32_t port) const { return engine_.spec(port).reverse; }
  Path path(std::uint32_t from, std::uint32_t to, std::uint64_t label) {
    const std::uint32_t a = from / kSpines, b = to / kSpines;
    const auto s = static_cast<std::uint32_t>(label % kSpines);
    std::vector<std::uint32_t> ports{up_[from]};
    if (a != b) {
      ports.push_back(to_spine_[a * kSpines + s]);
      ports.push_back(back(to_spine_[b * kSpines + s]));
    }
    ports.push_back(back(up_[to]));
    return engine_.add_path(ports, static_cast<std::uint32_t>(ports.size() - 1));
  }

  Traffic traffic_;
  std::uint32_t hosts_;
  Engine engine_;
  std::vector<std::uint32_t> up_, to_spine_;
};

void leaf_spine(benchmark::State& state, Traffic traffic) {
  PermutationFigures figures;
  for (auto unused : state) {
    state.PauseTiming();
    LeafSpine fabric(static_cast<std::uint32_t>(state.range(0)), traffic);
    SplitMix random{1};
    const std::vector<std::uint32_t> to = permutation_of(fabric.hosts(), random);
    state.ResumeTiming();
    for (std::uint32_t h = 0; h < fabric.hosts(); ++h) fabric.start(h, to[h], random.next() >> 8);
    figures.run(state, fabric.engine(), fabric.hosts());
  }
  figures.report(state);
}

BENCHMARK_CAPTURE(leaf_spine, roce, Traffic::roce)->Arg(8)->Arg(16)->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(leaf_spine, udp, Traffic::udp)->Arg(8)->Arg(16)->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace weft::packet
