// SPDX-License-Identifier: Apache-2.0
// The comparison's own side: the same messages through FluidNetwork.
//
// SimGrid's CM02 lets a message wait for its path's latency first and share bandwidth afterwards, and weighs messages by
// 1 / latency (its RTT unfairness of TCP). So here a message starts at step + latency with latency 0 and fairness 1 / latency.
#include "models/fluid/fluid_network.hpp"
#include "tests/bench/fluid_vs_simgrid.traffic.hpp"

namespace {

using namespace weft;

// Resources: host up, host down, leaf to spine, spine to leaf.
struct LeafSpine {
  std::uint32_t hosts_per_leaf, hosts;
  std::uint32_t count() const { return 4 * hosts; }
  std::size_t path(std::uint32_t from, std::uint32_t to, Share* out) const {
    const std::uint32_t a = from / hosts_per_leaf, b = to / hosts_per_leaf,
                        spine = to % hosts_per_leaf;
    out[0] = {from, 1};
    if (a == b) {
      out[1] = {hosts + to, 1};
      return 2;
    }
    out[1] = {2 * hosts + a * hosts_per_leaf + spine, 1};
    out[2] = {3 * hosts + b * hosts_per_leaf + spine, 1};
    out[3] = {hosts + to, 1};
    return 4;
  }
};

}  // namespace

int main(int argc, char** argv) {
  const traffic::Options options = traffic::parse(argc, argv);
  NetworkOptions how;
  for (int i = 6; i < argc; ++i) {
    if (std::strcmp(argv[i], "plain") == 0)
      how = {.merge_classes = false, .remember_repeats = false};
  }
  const LeafSpine fabric{options.hosts_per_leaf, options.hosts()};
  FluidNetwork fluid(std::vector<Bandwidth>(fabric.count(), 50_GBps), how);
  NetworkModel& network = fluid;

  std::vector<double> times;
  std::uint64_t flows = 0;
  const traffic::Stopwatch watch;
  const std::vector<traffic::Message> messages = traffic::messages_of_step(options);
  std::vector<FlowDone> done;
  Time now{0};
  for (std::uint64_t step = 0; step < traffic::step_count(options); ++step) {
    const Time barrier = now;
    const auto report = [&] {
      if (!options.times.empty()) {
        for (const FlowDone& d : done) times[flows + d.tag] = d.when.seconds();
      }
      done.clear();
    };
    if (!options.times.empty()) times.resize(flows + messages.size());
    for (const std::int64_t hops : {2, 4}) {  // inside a leaf, across
      const Time start = barrier + 1_us * hops;
      while (network.next_event() < start) {
        network.advance(network.next_event(), done);
        report();
      }
      for (std::size_t i = 0; i < messages.size(); ++i) {
        const traffic::Message& m = messages[i];
        Share shares[4];
        const std::size_t length = fabric.path(m.from, m.to, shares);
        if (static_cast<std::int64_t>(length) != hops) continue;
        network.start({.shares = {shares, length},
                       .size = {static_cast<std::int64_t>(m.bytes)},
                       .latency = {0},
                       .fairness = 4.0 / static_cast<double>(hops),
                       .tag = i},
                      start);
      }
    }
    for (Time next = network.next_event(); next < Time::never(); next = network.next_event()) {
      network.advance(next, done);
      report();
      now = next;
    }
    flows += messages.size();
  }
  const double run = watch.wall(), cpu = watch.cpu();
  traffic::write_times(options, times);
  const NetworkCounters& c = network.counters();
  std::printf(
      "run_s=%.6f cpu_s=%.6f flows=%llu end_s=%.12f solves=%llu events=%llu remembered=%llu\n", run,
      cpu, static_cast<unsigned long long>(flows), now.seconds(),
      static_cast<unsigned long long>(c.solves), static_cast<unsigned long long>(c.events),
      static_cast<unsigned long long>(c.remembered));
}
