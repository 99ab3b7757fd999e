// SPDX-License-Identifier: Apache-2.0
#include "tests/packet/random_plan.hpp"

#include <algorithm>

#include "sim/core/random.hpp"

namespace weft::test {
namespace {

using packet::Guard;
using packet::kNone;
using packet::NodeSpec;
using packet::PathHop;
using packet::PortSpec;
using packet::Recovery;
using packet::Spread;

class Drawer {
 public:
  explicit Drawer(std::uint64_t seed) : luck_(seed, "packet plan"), lanes_(seed, "lanes") {}

  Plan draw() {
    draw_options();
    branching_ = luck_.chance(0.4);
    if (branching_ && plan_.options.spread != Spread::hash && lanes_.chance(0.5)) draw_lanes();
    branching_ ? draw_leaves_and_spines() : draw_tree();
    draw_flows();
    if (luck_.chance(0.2)) draw_changes();
    return std::move(plan_);
  }

 private:
  template <class T>
  T one_of(std::initializer_list<T> values) {
    return values.begin()[luck_.below(values.size())];
  }
  std::int64_t between(std::int64_t least, std::int64_t most) {
    return least +
           static_cast<std::int64_t>(luck_.below(static_cast<std::uint64_t>(most - least) + 1));
  }

  void draw_options() {
    packet::EngineOptions& options = plan_.options;
    options.grain = one_of({1000U, 1024U, 4096U, 9000U, 64U});
    options.header = one_of({0U, 58U, 66U});
    options.cell = one_of({1U, 80U, 256U});
    options.classes = one_of({2U, 2U, 3U, 4U});
    if (luck_.chance(0.5)) {
      for (std::uint32_t c = 1; c < options.classes; ++c)
        options.weights.push_back(static_cast<std::uint32_t>(between(1, 5)));
    }
    options.spread = one_of({Spread::hash, Spread::spray, Spread::backlog});
    options.seed = luck_.bits();
    round_ = luck_.chance(0.5);  // many ties
    guard_ = one_of({Guard::drop, Guard::pause, Guard::pause, Guard::credit, Guard::credit});
    mixed_ = luck_.chance(0.2);
    cut_through_ = luck_.chance(0.5);
    whole_ = (options.grain + options.header + options.cell - 1) / options.cell * options.cell;
  }

  // Two lanes; some ways of a leaf are longer than others.
  void draw_lanes() {
    laned_ = true;
    plan_.options.stride = 1 + static_cast<std::uint32_t>(lanes_.below(3));
    plan_.options.classes = 1 + 2 * plan_.options.stride;
    if (!plan_.options.weights.empty()) plan_.options.weights.resize(plan_.options.classes - 1, 2);
  }

  NodeSpec draw_switch() {
    NodeSpec node;
    if (luck_.chance(0.8)) node.buffer = whole_ * between(8, 200);
    node.alpha = one_of({0.0625, 0.25, 1.0, 4.0});
    return node;
  }

  PortSpec draw_link() {
    PortSpec port;
    port.wire = round_ ? Bandwidth{one_of({25, 50, 100, 100, 400}) * 1'000'000'000L}
                       : Bandwidth{between(1'000'000'000, 400'000'000'000)};
    port.payload = one_of<std::int64_t>({0, 256, 4096});
    port.overhead = port.payload > 0 ? between(4, 66) : 0;
    // From 1 x to 100 x: delays that differ must not change what arrives (S05).
    port.delay = round_ ? Time{one_of({0, 10'000, 100'000, 500'000, 1'000'000})}
                        : Time{10'000 * between(1, 100)};
    port.processing = round_ ? Time{one_of({0, 0, 100'000})} : Time{between(0, 300'000)};
    port.cut_through = cut_through_;
    port.guard = mixed_ ? one_of({Guard::drop, Guard::pause, Guard::credit}) : guard_;
    if (luck_.chance(0.3)) port.reserve = whole_ * between(1, 4);
    if (luck_.chance(0.4)) port.xoff = whole_ * between(1, 30);
    port.xon = whole_ * between(0, 3);
    const auto round_trip = static_cast<std::int64_t>(
        static_cast<double>((2 * (port.delay + port.processing)).ps) * port.wire.bytes_per_ps());
    port.response = Time{one_of({0, 50'000, 500'000})};
    port.headroom =
        luck_.chance(0.8) ? 2 * round_trip + 20 * whole_ + 100'000 : whole_ * between(1, 4);
    port.credit = whole_ * between(1, 6) + (luck_.chance(0.5) ? round_trip : 0);
    if (luck_.chance(0.5)) {
      port.ecn.kmin = whole_ * between(0, 8);
      port.ecn.kmax = port.ecn.kmin + whole_ * between(1, 10);
      port.ecn.pmax = luck_.uniform();
      port.ecn.roots = luck_.chance(0.3);
    }
    return port;
  }

  // Memory, a link without loss, a NIC and its cable to the switch.
  void add_host(std::uint32_t at) {
    Host host;
    host.at = at;
    const std::uint32_t memory = plan_.add_node({.endpoint = true});
    const std::uint32_t nic = plan_.add_node();
    PortSpec inside = draw_link();
    inside.guard = Guard::credit;
    inside.ecn = {};
    host.ports.push_back(plan_.add_cable(memory, nic, inside));
    PortSpec outside = draw_link();
    host.ports.push_back(plan_.add_cable(nic, at, outside));
    hosts_.push_back(host);
  }

  void draw_tree() {
    const auto count = static_cast<std::uint32_t>(between(1, 4));
    std::vector<std::uint32_t> parent(count, kNone), up(count, kNone);
    for (std::uint32_t s = 0; s < count; ++s) {
      plan_.add_node(draw_switch());
      if (s == 0) continue;
      parent[s] = static_cast<std::uint32_t>(luck_.below(s));
      up[s] = plan_.add_cable(s, parent[s], draw_link());
    }
    parent_ = parent;
    up_ = up;
    for (std::int64_t h = between(2, 6); h > 0; --h)
      add_host(static_cast<std::uint32_t>(luck_.below(count)));
  }

  void draw_leaves_and_spines() {
    leaves_ = static_cast<std::uint32_t>(between(2, 3));
    spines_ = static_cast<std::uint32_t>(between(2, 4));
    for (std::uint32_t s = 0; s < leaves_ + spines_; ++s) plan_.add_node(draw_switch());
    for (std::uint32_t leaf = 0; leaf < leaves_; ++leaf) {
      for (std::uint32_t spine = 0; spine < spines_; ++spine) {
        const std::uint32_t cable = plan_.add_cable(leaf, leaves_ + spine, draw_link());
        if (leaf == 0 && spine == 0) first_cable_ = cable;
      }
    }
    for (std::int64_t h = between(2, 6); h > 0; --h)
      add_host(static_cast<std::uint32_t>(luck_.below(leaves_)));
  }

  // Ports between two switches of the tree.
  std::vector<std::uint32_t> along_tree(std::uint32_t a, std::uint32_t b) {
    std::vector<std::uint32_t> ups, downs;
    while (a != b) {
      if (a > b) {  // the later one is never an ancestor of the earlier
        ups.push_back(up_[a]);
        a = parent_[a];
      } else {
        downs.push_back(up_[b] + 1);
        b = parent_[b];
      }
    }
    ups.insert(ups.end(), downs.rbegin(), downs.rend());
    return ups;
  }

  void draw_flows() {
    const bool lossy = mixed_ || guard_ != Guard::credit;
    Time start{0};
    for (std::int64_t f = between(1, 12); f > 0; --f) {
      PlannedFlow flow;
      const std::size_t a = luck_.below(hosts_.size());
      const std::size_t b = (a + 1 + luck_.below(hosts_.size() - 1)) % hosts_.size();
      find_way(flow, hosts_[a], hosts_[b]);
      packet::FlowSpec& spec = flow.spec;
      const std::int64_t grain = plan_.options.grain;
      spec.bytes = luck_.chance(0.05) ? 0 : between(1, grain * between(1, 150));
      if (luck_.chance(0.5)) spec.bytes = (spec.bytes + grain - 1) / grain * grain;
      const std::uint32_t own = laned_ ? plan_.options.stride : plan_.options.classes - 1;
      spec.traffic_class = static_cast<std::uint8_t>(between(1, own));
      spec.recovery = lossy ? one_of({Recovery::none, Recovery::go_back_n, Recovery::selective})
                            : one_of({Recovery::none, Recovery::none, Recovery::go_back_n});
      // Packets that overtake each other can keep go-back-N from ever getting on.
      if (branching_ && spec.recovery == Recovery::go_back_n) spec.recovery = Recovery::selective;
      spec.ack_every = static_cast<std::uint32_t>(one_of({1, 1, 2, 8, 0}));
      flow.halves = spec.ack_every == 1 && spec.recovery != Recovery::none && luck_.chance(0.6);
      if (luck_.chance(0.4)) spec.cnp_interval = Time{between(1'000, 10'000'000)};
      if (spec.recovery != Recovery::none) {
        // Longer than most queues, else nothing but repeats is on its way.
        spec.timeout = Time{between(2'000'000'000, 20'000'000'000)};
        spec.ack_every = std::max(1U, spec.ack_every);
      } else if (luck_.chance(0.2)) {
        flow.back.clear();
      }
      if (luck_.chance(0.3)) spec.cap = Bandwidth{between(100'000'000, 100'000'000'000)};
      spec.tell_left = luck_.chance(0.3);
      spec.label = luck_.bits();
      if (luck_.chance(0.5)) start += Time{between(0, 20'000'000)};
      flow.start = start;
      plan_.flows.push_back(std::move(flow));
    }
  }

  struct Host {
    std::uint32_t at = 0;
    std::vector<std::uint32_t> ports;  // towards the switch
  };

  void find_way(PlannedFlow& flow, const Host& a, const Host& b) {
    std::vector<std::uint32_t> ports = a.ports;
    if (branching_ && a.at != b.at && plan_.options.spread != Spread::hash) {
      flow.path = branches(a, b);
      flow.back = branches(b, a);
      // The way back goes from NIC to NIC.
      flow.back.erase(flow.back.begin());
      flow.back.pop_back();
      for (PathHop& record : flow.back) {
        --record.next;
        if (record.port == a.ports.back() + 1) record = {record.port, 0, 0, false};
        record.transport = false;
      }
      return;
    }
    if (branching_) {
      if (a.at != b.at) {
        const auto spine = static_cast<std::uint32_t>(luck_.below(spines_));
        ports.push_back(cable(a.at, spine));
        ports.push_back(cable(b.at, spine) + 1);
      }
    } else {
      const std::vector<std::uint32_t> between_switches = along_tree(a.at, b.at);
      ports.insert(ports.end(), between_switches.begin(), between_switches.end());
    }
    for (std::size_t i = b.ports.size(); i > 0; --i) ports.push_back(b.ports[i - 1] + 1);
    give_way(flow, plan_, ports, 1, 1);
  }

  std::uint32_t cable(std::uint32_t leaf, std::uint32_t spine) const {
    return first_cable_ + 2 * (leaf * spines_ + spine);
  }

  // memory - NIC - leaf - any spine - leaf - NIC - memory
  std::vector<PathHop> branches(const Host& a, const Host& b) {
    std::vector<PathHop> records;
    records.push_back({a.ports[0], 1, 1, false});
    records.push_back({a.ports[1], 2, static_cast<std::uint16_t>(spines_), false});
    for (std::uint32_t s = 0; s < spines_; ++s)
      records.push_back({cable(a.at, s), 2 + spines_ + s, 1, false});
    for (std::uint32_t s = 0; s < spines_; ++s)
      records.push_back({cable(b.at, s) + 1, 2 + 2 * spines_, 1, false});
    records.push_back({b.ports[1] + 1, 3 + 2 * spines_, 1, true});
    records.push_back({b.ports[0] + 1, 0, 0, false});
    if (!laned_) return records;
    // The first so many spines count as minimal, the others as detours.
    if (lanes_.chance(0.7))
      records[1].minimal = static_cast<std::uint8_t>(1 + lanes_.below(spines_ - 1));
    for (std::uint32_t s = 0; s < spines_; ++s) {
      const std::uint64_t length = (s < records[1].minimal ? 1 : 3) + lanes_.below(3);
      records[2 + s].lane = 1;
      records[2 + s].length = length & 7U;
      records[2 + spines_ + s].lane = lanes_.chance(0.5) ? 2 : 0;
    }
    records[2 + 2 * spines_].lane = 1;
    return records;
  }

  // Rates fall and rise again; a port may be down for a while.
  void draw_changes() {
    for (std::int64_t n = between(1, 3); n > 0; --n) {
      const auto port = static_cast<std::uint32_t>(luck_.below(plan_.ports.size()));
      const Bandwidth whole = plan_.ports[port].wire;
      const Time when{between(0, 30'000'000)};
      plan_.changes.push_back(
          {when, port, Bandwidth{whole.bps / one_of({1'000'000'000'000L, 2L, 10L})}});
      plan_.changes.push_back({when + Time{between(1, 50'000'000)}, port, whole});
    }
    std::ranges::stable_sort(plan_.changes, {}, &PlannedChange::when);
  }

  Random luck_, lanes_;
  Plan plan_;
  bool laned_ = false, round_ = false, mixed_ = false, cut_through_ = false, branching_ = false;
  Guard guard_ = Guard::drop;
  std::int64_t whole_ = 0;  // a whole packet in a buffer
  std::vector<Host> hosts_;
  std::vector<std::uint32_t> parent_, up_;
  std::uint32_t leaves_ = 0, spines_ = 0, first_cable_ = 0;
};

}  // namespace

Plan random_plan(std::uint64_t seed) { return Drawer(seed).draw(); }

}  // namespace weft::test
