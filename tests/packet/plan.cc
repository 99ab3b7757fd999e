// SPDX-License-Identifier: Apache-2.0
#include "tests/packet/plan.hpp"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "sim/core/check.hpp"
#include "tests/packet/reference.hpp"

namespace weft::test {
namespace {

using packet::kNone;

constexpr std::uint64_t kMostEvents = 3'000'000;

class Halves final : public packet::CongestionControl {
 public:
  explicit Halves(Bandwidth line) : line_(line.bps), rate_(line.bps) {}
  Bandwidth rate(Time) override { return Bandwidth{rate_}; }
  std::uint32_t window() const override { return 12; }
  void on_send(Time, std::uint32_t) override {}
  void on_ack(const packet::AckSignal& signal) override {
    rate_ = signal.marked ? rate_ - rate_ / 8 : std::min(line_, rate_ + line_ / 10);
  }
  void on_cnp(Time) override { halve(); }
  void on_loss(const packet::LossSignal&) override { halve(); }

 private:
  void halve() { rate_ = std::max(line_ / 50 + 1, rate_ / 2); }
  std::int64_t line_, rate_;
};

template <class T>
void compare(std::string& out, const std::string& what, T engine, T reference) {
  if (engine != reference) out += fmt::format("{}: {} instead of {}\n", what, engine, reference);
}

}  // namespace

std::unique_ptr<packet::CongestionControl> make_halves(Bandwidth line_rate) {
  return std::make_unique<Halves>(line_rate);
}

std::uint32_t Plan::add_node(packet::NodeSpec node) {
  nodes.push_back(node);
  return static_cast<std::uint32_t>(nodes.size() - 1);
}

std::uint32_t Plan::add_cable(std::uint32_t a, std::uint32_t b, packet::PortSpec port) {
  const auto first = static_cast<std::uint32_t>(ports.size());
  port.from = a;
  port.to = b;
  port.reverse = first + 1;
  ports.push_back(port);
  std::swap(port.from, port.to);
  port.reverse = first;
  ports.push_back(port);
  for (packet::PortSpec* each : {&ports[first], &ports[first + 1]}) {
    // Memory takes everything in; what does not wait in a buffer needs no guard.
    if (!nodes[each->to].endpoint) continue;
    each->guard = packet::Guard::endpoint;
    each->cut_through = false;
  }
  return first;
}

std::vector<packet::PathHop> way(const std::vector<std::uint32_t>& ports,
                                 std::uint32_t transport_at) {
  std::vector<packet::PathHop> records;
  for (std::uint32_t i = 0; i < ports.size(); ++i)
    records.push_back(
        {ports[i], i + 1, static_cast<std::uint16_t>(i + 1 < ports.size()), i == transport_at});
  return records;
}

void give_way(PlannedFlow& flow, const Plan& plan, const std::vector<std::uint32_t>& ports,
              std::size_t head, std::size_t tail) {
  const std::size_t end = ports.size() - tail;
  flow.path = way(ports, static_cast<std::uint32_t>(end - 1));
  std::vector<std::uint32_t> back;
  for (std::size_t i = end; i > head; --i) back.push_back(plan.ports[ports[i - 1]].reverse);
  flow.back = way(back);
}

std::string differences(const Outcome& engine, const Outcome& reference) {
  std::string out;
  for (std::size_t f = 0; f < reference.flows.size(); ++f) {
    const FlowOutcome &a = engine.flows[f], &b = reference.flows[f];
    compare(out, fmt::format("flow {} ends", f), a.finish.ps, b.finish.ps);
    compare(out, fmt::format("flow {} has left", f), a.left.ps, b.left.ps);
    compare(out, fmt::format("flow {} retransmitted", f), a.retransmitted, b.retransmitted);
    compare(out, fmt::format("flow {} dropped", f), a.dropped, b.dropped);
    compare(out, fmt::format("flow {} marks", f), a.marks, b.marks);
  }
  for (std::size_t p = 0; p < reference.ports.size(); ++p) {
    const packet::PortStats &a = engine.ports[p], &b = reference.ports[p];
    const auto each = [&](const char* what, auto x, auto y) {
      compare(out, fmt::format("port {} {}", p, what), x, y);
    };
    each("packets", a.packets, b.packets);
    each("control packets", a.control_packets, b.control_packets);
    each("payload", a.bytes, b.bytes);
    each("busy", a.busy.ps, b.busy.ps);
    each("peak queue", a.peak_queue, b.peak_queue);
    each("marks", a.marks, b.marks);
    each("drops", a.drops, b.drops);
    each("pauses", a.pauses, b.pauses);
    each("stalls", a.stalls, b.stalls);
    each("paused", a.paused.ps, b.paused.ps);
    each("paused since", a.paused_since.ps, b.paused_since.ps);
  }
  const packet::EngineCounters &a = engine.counters, &b = reference.counters;
  compare(out, "hops", a.hops, b.hops);
  compare(out, "control hops", a.control_hops, b.control_hops);
  compare(out, "retransmitted", a.retransmitted, b.retransmitted);
  compare(out, "timeouts", a.timeouts, b.timeouts);
  compare(out, "naks", a.naks, b.naks);
  compare(out, "cnps", a.cnps, b.cnps);
  compare(out, "injected", a.injected, b.injected);
  compare(out, "delivered", a.delivered, b.delivered);
  compare(out, "dropped", a.dropped, b.dropped);
  compare(out, "discarded", a.discarded, b.discarded);
  return out;
}

Outcome run_engine(const Plan& plan, std::vector<std::uint32_t>* waiting_cycle,
                   std::size_t* live_packets) {
  packet::Engine engine(plan.options);
  for (const packet::NodeSpec& node : plan.nodes) engine.add_node(node);
  for (const packet::PortSpec& port : plan.ports) engine.add_port(port);
  engine.finish_build();
  Outcome out;
  out.flows.resize(plan.flows.size());
  const auto take = [&] {
    for (const packet::FlowEnd& end : engine.ended()) {
      FlowOutcome& flow = out.flows[end.tag];
      if (end.left) {
        flow.left = end.when;
      } else {
        flow.finish = end.when;
      }
    }
    engine.ended().clear();
  };
  const auto run_until = [&](Time until) {
    Time before{0};
    while (engine.next_event() <= until && engine.next_event() < Time::never()) {
      WEFT_CHECK(before <= engine.next_event(), before, engine.next_event());
      before = engine.next_event();
      engine.run(until, 100'000);
      take();
      const packet::EngineCounters& did = engine.counters();
      WEFT_CHECK(did.alarms + did.controls < kMostEvents, did.alarms, did.controls, did.hops,
                 did.timeouts, engine.now());
    }
  };
  std::size_t f = 0, c = 0;
  while (f < plan.flows.size() || c < plan.changes.size()) {
    const Time start = f < plan.flows.size() ? plan.flows[f].start : Time::never();
    const Time change = c < plan.changes.size() ? plan.changes[c].when : Time::never();
    run_until(std::min(start, change));
    if (change <= start) {
      engine.set_wire(plan.changes[c].port, plan.changes[c].wire, change);
      ++c;
      continue;
    }
    const PlannedFlow& planned = plan.flows[f];
    packet::FlowSpec spec;
    spec.bytes = planned.spec.bytes;
    spec.traffic_class = planned.spec.traffic_class;
    spec.recovery = planned.spec.recovery;
    spec.ack_every = planned.spec.ack_every;
    spec.cnp_interval = planned.spec.cnp_interval;
    spec.timeout = planned.spec.timeout;
    spec.cap = planned.spec.cap;
    spec.tell_left = planned.spec.tell_left;
    spec.label = planned.spec.label;
    spec.tag = spec.account = f++;
    spec.path = engine.add_path(planned.path, planned.path_first);
    if (!planned.back.empty()) spec.back = engine.add_path(planned.back, planned.back_first);
    if (planned.halves) spec.congestion = make_halves(plan.ports[planned.path.front().port].wire);
    engine.start(std::move(spec), start);
    take();
  }
  run_until(Time::never());
  engine.check_conservation();
  for (std::uint32_t p = 0; p < engine.port_count(); ++p) out.ports.push_back(engine.stats(p));
  out.counters = engine.counters();
  for (const auto& [account, sum] : engine.ledgers()) {
    FlowOutcome& flow = out.flows[account];
    flow.retransmitted = sum.retransmitted;
    flow.dropped = sum.dropped;
    flow.marks = sum.marks;
  }
  if (waiting_cycle != nullptr) *waiting_cycle = engine.waiting_cycle();
  if (live_packets != nullptr) *live_packets = engine.live_packets();
  return out;
}

Outcome run_reference(const Plan& plan) { return Reference(plan).run(); }

}  // namespace weft::test
