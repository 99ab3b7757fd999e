// SPDX-License-Identifier: Apache-2.0
// The comparison's SimGrid side: one actor starts the messages of a step and waits for all of them.
#include <simgrid/s4u.hpp>

#include "tests/bench/fluid_vs_simgrid.traffic.hpp"

namespace sg = simgrid::s4u;

int main(int argc, char** argv) {
  sg::Engine engine(&argc, argv);  // takes its --cfg options out
  const traffic::Options options = traffic::parse(argc, argv);
  std::vector<sg::Host*> hosts(options.hosts());

  const auto new_host = [&hosts](sg::NetZone* zone, const std::vector<unsigned long>&,
                                 unsigned long id) {
    hosts[id] = zone->create_host("host" + std::to_string(id), 1e12)->seal();
    return std::make_pair(hosts[id]->get_netpoint(),
                          static_cast<simgrid::kernel::routing::NetPoint*>(nullptr));
  };
  const std::vector<unsigned> down{options.hosts_per_leaf, options.leaves},
      up{1, options.hosts_per_leaf}, cables{1, 1};
  sg::create_fatTree_zone("fabric", nullptr, sg::FatTreeParams(2, down, up, cables),
                          sg::ClusterCallbacks(new_host), traffic::kBytesPerSecond,
                          traffic::kLinkLatency, sg::Link::SharingPolicy::SPLITDUPLEX)
      ->seal();

  std::vector<double> times;
  std::uint64_t flows = 0;
  double end = 0;
  const traffic::Stopwatch watch;
  sg::Actor::create("all", hosts[0], [&] {
    const std::vector<traffic::Message> messages = traffic::messages_of_step(options);
    std::vector<sg::CommPtr> open;
    for (std::uint64_t step = 0; step < traffic::step_count(options); ++step) {
      open.clear();
      for (const traffic::Message& m : messages)
        open.push_back(sg::Comm::sendto_async(hosts[m.from], hosts[m.to], m.bytes));
      sg::Comm::wait_all(open);
      flows += open.size();
      if (!options.times.empty()) {
        for (const sg::CommPtr& comm : open) times.push_back(comm->get_finish_time());
      }
    }
    end = sg::Engine::get_clock();
  });
  engine.run();
  const double run = watch.wall(), cpu = watch.cpu();
  traffic::write_times(options, times);
  std::printf("run_s=%.6f cpu_s=%.6f flows=%llu end_s=%.12f\n", run, cpu,
              static_cast<unsigned long long>(flows), end);
}
