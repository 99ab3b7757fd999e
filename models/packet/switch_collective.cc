// SPDX-License-Identifier: Apache-2.0
// Sums in switches and what is stored through them: see switch_collective.hpp.
#include "models/packet/switch_collective.hpp"

#include <algorithm>
#include <utility>

#include "models/packet/packet_engine.hpp"
#include "sim/core/check.hpp"

namespace weft::packet {
namespace {

std::uint32_t size_of(const std::vector<PathHop>& records) {
  return static_cast<std::uint32_t>(records.size());
}

// Appends ports one after the other; the last record has no next one.
void chain(std::vector<PathHop>& records, const std::vector<std::uint32_t>& ports) {
  for (std::size_t i = 0; i < ports.size(); ++i) {
    const std::uint32_t next = size_of(records) + 1;
    const bool last = i + 1 == ports.size();
    records.push_back({ports[i], last ? 0 : next, static_cast<std::uint16_t>(last ? 0 : 1)});
  }
}

}  // namespace

// ---- the records of a tree

std::uint32_t Engine::add_tree(TreeSpec given) {
  Tree tree;
  tree.spec = std::move(given);
  const auto& switches = tree.spec.switches;
  const auto& members = tree.spec.members;
  tree.below.assign(switches.size(), 0);
  for (std::size_t s = 1; s < switches.size(); ++s) ++tree.below[switches[s].parent];
  for (const TreeSpec::Member& member : members) ++tree.below[member.at];
  // Down to all: a block per switch, and behind the ports of a member its own way.
  std::vector<PathHop> records;
  std::vector<std::uint32_t> block(switches.size(), 0);
  for (std::size_t s = 0; s < switches.size(); ++s) {
    block[s] = size_of(records);
    records.resize(records.size() + tree.below[s]);
  }
  std::vector<std::uint32_t> filled = block;
  for (std::size_t s = 1; s < switches.size(); ++s) {
    records[filled[switches[s].parent]++] = {
        switches[s].down, block[s], static_cast<std::uint16_t>(tree.below[s]), false, true};
  }
  for (const TreeSpec::Member& member : members) {
    const std::uint32_t more = member.down.size() > 1 ? size_of(records) : 0;
    records[filled[member.at]++] = {member.down.front(), more,
                                    static_cast<std::uint16_t>(more != 0 ? 1 : 0)};
    chain(records, {member.down.begin() + 1, member.down.end()});
  }
  const Path all = add_path(std::move(records), tree.below[0]);
  // Up to the parent; the same for what is stored, on to the root and down to all.
  std::vector<std::uint32_t> store_record(switches.size(), all.first);
  tree.partial_up.assign(switches.size(), all);
  for (std::size_t s = 1; s < switches.size(); ++s) {
    tree.partial_up[s] = add_path(std::vector<PathHop>{{switches[s].up, 0, 0}}, 1);
    const std::uint32_t parent = switches[s].parent;
    const Path store = add_path(std::vector<PathHop>{{switches[s].up, 0, 0}}, 1);
    hops_[store.first].next = store_record[parent];
    hops_[store.first].count = static_cast<std::uint16_t>(parent == 0 ? all.count : 1);
    hops_[store.first].fan = parent == 0;
    store_record[s] = store.first;
  }
  for (const TreeSpec::Member& member : members) {
    std::vector<PathHop> up;
    chain(up, member.up);
    tree.sum_up.push_back(add_path(up, 1));
    const Path store = add_path(std::move(up), 1);
    PathHop& last = hops_[store.first + member.up.size() - 1];
    last.next = store_record[member.at];
    last.count = static_cast<std::uint16_t>(member.at == 0 ? all.count : 1);
    last.fan = member.at == 0;
    tree.store_up.push_back(store);
    std::vector<std::uint32_t> down;
    for (std::uint32_t s = member.at; s != 0; s = switches[s].parent)
      down.push_back(switches[s].down);
    std::ranges::reverse(down);
    down.insert(down.end(), member.down.begin(), member.down.end());
    Time reach{0};
    for (const std::uint32_t p : down) reach += ports_[p].reach;
    tree.back = std::max(tree.back, reach);
    std::vector<PathHop> way;
    chain(way, down);
    tree.down.push_back(add_path(std::move(way), 1));
  }
  trees_.push_back(std::move(tree));
  return static_cast<std::uint32_t>(trees_.size() - 1);
}

// ---- begin

// A flow that nobody sends: switches make its packets.
std::uint32_t Engine::make_passive(const CollectiveSpec& spec, std::uint64_t awaited) {
  const std::uint32_t f = take_flow();
  Flow& flow = flows_[f];
  flow.serial = serial_++;
  flow.traffic_class = flow.lane = spec.traffic_class;
  flow.in_use = true;
  flow.awaited = awaited;
  flow.tag = spec.tag;
  flow.account = spec.account;
  return f;
}

void Engine::start_collective(CollectiveSpec spec, Time now) {
  const Tree& tree = trees_[spec.tree];
  const auto n = static_cast<std::uint32_t>(tree.spec.members.size());
  const std::int64_t packets = (spec.bytes + options_.grain - 1) / options_.grain;
  WEFT_CHECK(packets > 0 && packets < std::int64_t{kNone}, spec.bytes);
  const auto count = static_cast<std::uint64_t>(packets);
  spec.window = static_cast<std::uint32_t>(std::min<std::uint64_t>(spec.window, count));
  std::uint32_t id = 0;
  if (free_collectives_.empty()) {
    id = static_cast<std::uint32_t>(collectives_.size());
    collectives_.emplace_back();
  } else {
    id = free_collectives_.back();
    free_collectives_.pop_back();
  }
  Collective made;
  made.spec = spec;
  made.serial = ++collective_serial_;
  made.in_use = true;
  FlowSpec each;
  each.ack_every = 0;
  each.traffic_class = spec.traffic_class;
  each.tag = spec.tag;
  each.account = spec.account;
  const auto start_flow = [&](std::uint32_t m, Path path, std::int64_t bytes, Role role,
                              std::uint64_t awaited) {
    each.bytes = bytes;
    each.path = path;
    each.lane = tree.spec.members[m].lane;
    each.cap = scaled(spec.cap, static_cast<double>(bytes) / static_cast<double>(spec.bytes));
    const std::uint32_t f = start(std::move(each), now);
    Flow& flow = flows_[f];
    flow.collective = id;
    flow.place = m;
    flow.role = role;
    flow.awaited = awaited;
    each.congestion.reset();
    return f;
  };
  if (spec.sum != SumTo::nobody) {
    made.slots.resize(tree.spec.switches.size() * spec.window);
    const std::uint64_t copies = spec.sum == SumTo::all ? count * n : count;
    if (spec.store != Store::sums) made.left += copies;
    for (std::uint32_t s = 0; s < tree.spec.switches.size(); ++s) {
      const std::uint32_t f = make_passive(spec, s == 0 ? copies : count);
      flows_[f].collective = id;
      flows_[f].place = s;
      flows_[f].role = s == 0 ? Role::result : Role::partial;
      made.partials.push_back(f);
    }
    each.pulled = spec.window;
    for (std::uint32_t m = 0; m < n; ++m)
      made.sums.push_back(start_flow(m, tree.sum_up[m], spec.bytes, Role::sum, count));
  }
  each.pulled = 0;
  each.waits = spec.store == Store::sums;
  made.stores.assign(n, kNone);
  for (std::uint32_t m = 0; m < n && spec.store != Store::nothing; ++m) {
    if (spec.store == Store::root && m != spec.root) continue;
    std::int64_t bytes = spec.bytes;
    if (spec.store == Store::own) bytes = spec.bytes / n + (m < spec.bytes % n ? 1 : 0);
    if (spec.store == Store::sums) {
      // Packets m, m + n ...; the last of all may be shorter.
      const std::int64_t own = packets > m ? (packets - 1 - m) / n + 1 : 0;
      bytes = own * options_.grain;
      if ((packets - 1) % n == m) bytes -= packets * options_.grain - spec.bytes;
    }
    if (bytes == 0) continue;
    const std::int64_t own = (bytes + options_.grain - 1) / options_.grain;
    made.left += static_cast<std::uint64_t>(own) * n;
    made.stores[m] =
        start_flow(m, tree.store_up[m], bytes, Role::store, static_cast<std::uint64_t>(own) * n);
  }
  collectives_[id] = std::move(made);
}

// ---- in the switches

void Engine::take_in_part(std::uint32_t k) {
  const Packet packet = packets_[k];
  Flow& flow = flows_[packet.flow];
  const std::uint32_t id = flow.collective, place = flow.place;
  const Role role = flow.role;
  const bool in_switch = role == Role::sum || role == Role::partial;
  (in_switch ? counters_.combined : counters_.delivered) += packet.bytes;
  in_network_ -= packet.bytes;
  if (--flow.awaited == 0) flow.ended = true;
  free_packet(k);
  if (in_switch) {
    const Tree& tree = trees_[collectives_[id].spec.tree];
    const std::uint32_t at =
        role == Role::sum ? tree.spec.members[place].at : tree.spec.switches[place].parent;
    return combine(id, at, packet);
  }
  Collective& collective = collectives_[id];
  if (role == Role::result && collective.spec.store == Store::sums) {
    const auto n = static_cast<std::uint32_t>(collective.stores.size());
    return grant(collective.stores[packet.seq % n]);
  }
  if (--collective.left > 0) return;
  collective.in_use = false;
  free_collectives_.push_back(id);
  ended_.push_back({packet.flow, collective.spec.tag, now_});
}

void Engine::combine(std::uint32_t id, std::uint32_t at, const Packet& packet) {
  Collective& collective = collectives_[id];
  const Tree& tree = trees_[collective.spec.tree];
  const std::uint32_t window = collective.spec.window;
  Collective::Slot& slot = collective.slots[at * window + packet.seq % window];
  if (slot.count == 0) slot.seq = packet.seq;
  WEFT_CHECK(slot.seq == packet.seq, slot.seq, packet.seq);
  slot.ready = std::max(slot.ready, now_ + Time{packet.lag});
  if (++slot.count < tree.below[at]) return;
  const Time ready = std::exchange(slot, {}).ready;
  const CollectiveSpec& spec = collective.spec;
  Path way = tree.partial_up[at];
  if (at == 0 && spec.sum == SumTo::in_turn) way = tree.down[packet.seq % tree.spec.members.size()];
  if (at == 0 && spec.sum == SumTo::root) way = tree.down[spec.root];
  const std::uint32_t k = packets_.take();
  Packet& sum = packets_[k];
  sum = packet;
  sum.flow = collective.partials[at];
  sum.next = sum.telemetry = kNone;
  sum.lag = 0;
  sum.flags = sum.turn = 0;
  sum.traffic_class = spec.traffic_class;
  sum.hop = way.first;
  ++flows_[sum.flow].alive;
  counters_.made += sum.bytes;
  in_network_ += sum.bytes;
  SharedBuffer buffer;
  buffer.left = way.count;
  if (at == 0) {
    buffer.collective = id;
    buffer.serial = collective.serial;
  }
  fan_out(k, way.first, way.count, take_shared(buffer), ready);
}

// The slots of a sum are free everywhere; the members hear of it.
void Engine::sum_has_left(const SharedBuffer& buffer) {
  const Collective& collective = collectives_[buffer.collective];
  Event event;
  event.when = std::max(now_, buffer.end + trees_[collective.spec.tree].back);
  event.order = (std::uint64_t{1} << 51) | grant_serial_++;
  event.target = buffer.collective;
  event.kind = kGrant;
  event.arg = buffer.serial;
  controls_.push(event);
}

void Engine::on_grant(const Event& event) {
  const std::uint32_t id = event.target;
  if (!collectives_[id].in_use || collectives_[id].serial != event.arg) return;
  for (std::size_t m = 0; m < collectives_[id].sums.size(); ++m) {
    const std::uint32_t f = collectives_[id].sums[m];
    const Flow& flow = flows_[f];
    // One that has sent all is gone, and its number may be another's.
    if (flow.in_use && flow.collective == id && flow.role == Role::sum && flow.place == m) grant(f);
  }
}

// One packet more may be sent.
void Engine::grant(std::uint32_t f) {
  catch_up(f);
  ++flows_[f].granted;
  list(f);
}

}  // namespace weft::packet
