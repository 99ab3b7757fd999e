// SPDX-License-Identifier: Apache-2.0
// One packet that leaves a switch by several ports.
#include <algorithm>
#include <utility>

#include "models/packet/packet_engine.hpp"
#include "sim/core/check.hpp"

namespace weft::packet {

std::uint32_t Engine::take_shared(const SharedBuffer& buffer) {
  std::uint32_t id = free_shared_;
  if (id == kNone) {
    id = static_cast<std::uint32_t>(shared_.size());
    WEFT_CHECK(id < kShared - 1, id);
    shared_.emplace_back();
  } else {
    free_shared_ = shared_[id].next;
  }
  shared_[id] = buffer;
  ++shared_in_use_;
  return kShared | id;
}

void Engine::free_shared(std::uint32_t id) {
  shared_[id].next = std::exchange(free_shared_, id);
  --shared_in_use_;
}

// A packet came by `p` and goes on by all records from `first` on.
void Engine::replicate(std::uint32_t p, std::uint32_t k, std::uint32_t first, std::uint32_t count) {
  const std::uint32_t q = hops_[first].port;
  advance(q, now_);
  const Packet& packet = packets_[k];
  if (ports_[p].guard != Guard::credit && !admit(p, q, packet)) return drop(q, k);
  SharedBuffer buffer;
  buffer.in = p;
  buffer.left = count;
  buffer.charge = packet.charge;
  buffer.traffic_class = packet.came;
  fan_out(k, first, count, take_shared(buffer), now_);
}

void Engine::fan_out(std::uint32_t k, std::uint32_t first, std::uint32_t count,
                     std::uint32_t buffer, Time when) {
  Packet whole = packets_[k];
  whole.ingress = buffer;
  for (std::uint32_t i = 0; i < count; ++i) {
    const std::uint32_t copy = i == 0 ? k : packets_.take();
    if (i > 0) {
      ++flows_[whole.flow].alive;
      counters_.made += whole.bytes;
      in_network_ += whole.bytes;
    }
    const std::uint32_t q = hops_[first + i].port;
    advance(q, now_);
    Packet& packet = packets_[copy];
    packet = whole;
    packet.hop = first + i;
    packet.when = when;
    if (packet.lag > 0)
      packet.when = std::max(when, when + Time{packet.lag} - wire_time(q, packet));
    enqueue(q, copy);
  }
}

// A copy is out of the switch at `end`.
void Engine::leave_shared(Port& port, const Packet& packet, Time end) {
  const std::uint32_t id = packet.ingress & ~kShared;
  SharedBuffer& buffer = shared_[id];
  if (buffer.in != kNone && ports_[buffer.in].guard != Guard::credit) {
    port.leaving_ingress = packet.ingress;
    port.leaving_charge = buffer.charge;
    port.leaving_class = buffer.traffic_class;
    return;
  }
  buffer.end = std::max(buffer.end, end);
  if (--buffer.left > 0) return;
  const SharedBuffer last = buffer;
  free_shared(id);
  if (last.in != kNone) give_credit(last.in, last.traffic_class, last.charge, last.end);
  if (last.collective != kNone) sum_has_left(last);
}

// What a port has freed: the ingress of the buffer when no copy is left, else kNone.
std::uint32_t Engine::freed_by_last(std::uint32_t ingress) {
  const std::uint32_t id = ingress & ~kShared;
  if (--shared_[id].left > 0) return kNone;
  free_shared(id);
  return shared_[id].in;
}

void Engine::settle() {
  for (std::uint32_t n = 0; n < nodes_.size(); ++n) advance_all(n, now_);
  if (!deferred_.empty()) send_pauses();
}

std::int64_t Engine::held() {
  for (std::uint32_t p = 0; p < ports_.size(); ++p) {
    if (ports_[p].leaving_ingress != kNone) advance(p, std::max(now_, ports_[p].busy_until));
  }
  std::int64_t sum = static_cast<std::int64_t>(shared_in_use_);
  for (std::uint32_t p = 0; p < ports_.size(); ++p) {
    for (std::uint8_t c = 0; c < options_.classes; ++c) {
      Gate& each = gate(p, c);
      if (ports_[p].guard == Guard::credit) {
        collect(each, Time::never());
        sum += specs_[p].credit - each.charge;
      } else if (ports_[p].guard != Guard::endpoint) {
        sum += each.charge + each.headroom;
      }
    }
  }
  for (const Node& node : nodes_) sum += node.endpoint ? 0 : node.used;
  return sum;
}

}  // namespace weft::packet
