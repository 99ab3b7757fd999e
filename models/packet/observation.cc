// SPDX-License-Identifier: Apache-2.0
// What can be seen of an engine without changing it.
#include "models/packet/packet_engine.hpp"
#include "sim/core/check.hpp"

namespace weft::packet {

void Engine::watch(std::uint32_t p, Time window) {
  ports_[p].watched = true;
  port_series_.insert_or_assign(p, PortSeries{Series(window), Series(window), Series(window)});
}

void Engine::note_queue(std::uint32_t p, Time when) {
  port_series_.at(p).queue.hold(when, static_cast<double>(queued(p)));
}

// How far into a queue a packet of the paused link is looked for.
constexpr std::uint32_t kDeepestLook = 64;

// The longest queue of the switch in which packets that came by `in` wait.
std::uint32_t Engine::blame(std::uint32_t in, std::uint8_t c, std::uint32_t out,
                            const Packet& packet) {
  const Node& node = nodes_[ports_[in].to];
  std::uint32_t cause = out, most = 0, flow = packet.flow;
  for (std::uint32_t i = node.first; i < node.first + node.count; ++i) {
    const std::uint32_t q = node_ports_[i];
    const Queue& waiting = queue(q, c);
    if (waiting.charge <= most || !holds_packets_of(q, c, in, kDeepestLook)) continue;
    cause = q;
    most = waiting.charge;
    flow = packets_[waiting.head].flow;
  }
  pauses_.sample(cause, flows_[flow].account);
  return cause;
}

// Into the ledger of its account.
void Engine::book(Flow& flow) {
  if (flow.ledger.empty()) return;
  FlowLedger& sum = ledger_[flow.account];
  sum.retransmitted += flow.ledger.retransmitted;
  sum.dropped += flow.ledger.dropped;
  sum.marks += flow.ledger.marks;
  flow.ledger = {};
}

const std::unordered_map<std::uint64_t, FlowLedger>& Engine::ledgers() {
  for (Flow& flow : flows_) {
    if (flow.in_use) book(flow);
  }
  return ledger_;
}

Time Engine::paused(std::uint32_t p, std::uint8_t traffic_class) const {
  return pauses_.total(p * options_.classes + traffic_class, now_);
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
  WEFT_CHECK(counters_.injected + counters_.made == counters_.delivered + counters_.dropped +
                                                        counters_.discarded + counters_.combined +
                                                        in_network_,
             counters_.injected, counters_.made);
}

}  // namespace weft::packet
