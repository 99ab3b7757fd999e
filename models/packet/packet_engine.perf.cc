// SPDX-License-Identifier: Apache-2.0
// Packet-hops per second on the traffic of the field's packet simulators: a permutation of 2 MB flows over a 3-tier
// full-bisection fat tree of k-port switches, 100 Gb/s, 1 us links, payload 4000, an ack for every packet.
#include "models/packet/packet_engine.hpp"

#include <cstdint>
#include <utility>
#include <vector>

#include <benchmark/benchmark.h>

#include "models/packet/permutation.perf.hpp"

namespace weft::packet {
namespace {

constexpr std::int64_t kFlowBytes = 2'000'000;

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
    spec.guard = guard_;
    spec.xoff = spec.credit = 60'000;
    spec.xon = 20'000;
    spec.headroom = 100'000;
    return join_nodes(engine_, spec, a, b, host);
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
  PermutationFigures figures;
  for (auto unused : state) {
    state.PauseTiming();
    FatTree tree(static_cast<std::uint32_t>(state.range(0)), guard, Spread::hash);
    SplitMix random{1};
    const std::vector<std::uint32_t> to = permutation_of(tree.hosts(), random);
    state.ResumeTiming();
    for (std::uint32_t h = 0; h < tree.hosts(); ++h) tree.start(h, to[h], random.next() >> 8);
    figures.run(state, tree.engine(), tree.hosts());
  }
  figures.report(state);
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
