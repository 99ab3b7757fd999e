// SPDX-License-Identifier: Apache-2.0
// What can be seen of an engine without changing it.
#include "models/packet/packet_engine.hpp"
#include "sim/core/check.hpp"

namespace weft::packet {

void Engine::watch(std::uint32_t p, Time window) {
  ports_[p].watched = true;
  queue_series_.insert_or_assign(p, Series(window));
}

void Engine::note_queue(std::uint32_t p, Time when) {
  queue_series_.at(p).hold(when, static_cast<double>(queued(p)));
}

std::size_t Engine::memory() const {
  return ports_.size() * (sizeof(Port) + sizeof(PortSpec) + sizeof(PortStats)) +
         queues_.size() * sizeof(Queue) + gates_.size() * sizeof(Gate) +
         hops_.size() * sizeof(PathHop) + packets_.most() * sizeof(Packet) +
         flows_.size() * sizeof(Flow);
}

std::int64_t Engine::queued(std::uint32_t p) const {
  std::int64_t sum = 0;
  for (std::uint8_t c = 0; c < options_.classes; ++c)
    sum += queues_[p * options_.classes + c].charge;
  return sum;
}

void Engine::check_conservation() const {
  WEFT_CHECK(counters_.injected ==
                 counters_.delivered + counters_.dropped + counters_.discarded + in_network_,
             counters_.injected);
}

}  // namespace weft::packet
