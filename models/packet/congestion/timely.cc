// SPDX-License-Identifier: Apache-2.0
// TIMELY: Mittal et al., "TIMELY: RTT-based Congestion Control for the Datacenter", SIGCOMM 2015, algorithm 1.
//
//   Per segment   d = (1 - a) d + a (rtt - previous rtt);  gradient = d / minRTT
//   rtt < Tlow    rate += delta
//   rtt > Thigh   rate *= 1 - beta (1 - Thigh / rtt)
//   gradient <= 0 rate += N delta, N = 5 after five in a row, else 1
//   else          rate *= 1 - beta gradient
//
// Its fixed points are not unique (Zhu et al., "ECN or Delay", 2016, theorem 3): two flows keep what shares they began
// with once the gradient is zero. Values from table 2 of that paper.
#include "models/packet/congestion/scheme.hpp"

namespace weft::packet {
namespace {

class Timely final : public CongestionControl {
 public:
  using Spec = TimelySpec;
  struct State {
    double rate, difference = 0;
    Time previous{-1};
    std::uint32_t acked = 0, falling = 0;
  };

  static Spec resolve(const SenderFacts& facts, const CongestionSpec& given) {
    Spec spec = given.timely.value_or(Spec{});
    fill(spec.low, 50_us);
    fill(spec.high, 500_us);
    fill(spec.min_rtt, 20_us);
    fill(spec.gain, 0.875);
    fill(spec.decrease, 0.8);
    fill(spec.additive, per_line(10_Mbps, 10_Gbps, facts.line_rate));
    fill(spec.segment, Bytes{16'000});
    fill(spec.hyper_after, std::int64_t{5});
    return spec;
  }

  Timely(const SenderFacts& facts, const Spec& spec)
      : line_(as_double(facts.line_rate)),
        step_(as_double(*spec.additive)),
        gain_(*spec.gain),
        beta_(*spec.decrease),
        low_(spec.low->us()),
        high_(spec.high->us()),
        min_rtt_(spec.min_rtt->us()),
        segment_(static_cast<std::uint32_t>(
            std::max<std::int64_t>(1, spec.segment->count / facts.grain))),
        hyper_after_(static_cast<std::uint32_t>(*spec.hyper_after)),
        s_{line_} {}

  Bandwidth rate(Time) override { return Bandwidth{static_cast<std::int64_t>(s_.rate)}; }

  void on_ack(const AckSignal& ack) override {
    s_.acked += ack.packets;
    if (s_.acked < segment_) return;
    s_.acked = 0;
    const Time previous = std::exchange(s_.previous, ack.rtt);
    if (previous.ps < 0) return;
    s_.difference = (1 - gain_) * s_.difference + gain_ * (ack.rtt - previous).us();
    const double gradient = s_.difference / min_rtt_, rtt = ack.rtt.us();
    s_.falling = gradient <= 0 ? s_.falling + 1 : 0;
    if (rtt < low_) {
      grow(1);
    } else if (rtt > high_) {
      shrink(beta_ * (1 - high_ / rtt));
    } else if (gradient <= 0) {
      grow(s_.falling >= hyper_after_ ? 5 : 1);
    } else {
      shrink(beta_ * gradient);
    }
  }

  void on_loss(const LossSignal& loss) override {
    if (loss.timeout) shrink(0.5);
  }

 private:
  void grow(double steps) { s_.rate = std::min(line_, s_.rate + steps * step_); }
  void shrink(double share) {
    s_.rate = std::max(line_ * kLeast, s_.rate * (1 - std::min(share, 0.5)));
  }

  static constexpr double kLeast = 0.001;  // of the line rate: 10 Mb/s of 10 Gb/s
  double line_, step_, gain_, beta_, low_, high_, min_rtt_;
  std::uint32_t segment_, hyper_after_;
  State s_;
};

}  // namespace

const CongestionEntry kTimely{
    .scheme = CongestionScheme::timely,
    .summary = "rate by the gradient of the round trip",
    .reference = "Mittal et al., SIGCOMM 2015",
    .signals = {.delay = true},
    .state_bytes = sizeof(Timely::State),
    .make = make_scheme<Timely>,
    .parameters = parameters_of<Timely>,
};

}  // namespace weft::packet
