// SPDX-License-Identifier: Apache-2.0
// TCP CUBIC: Ha, Rhee and Xu, "CUBIC: A New TCP-Friendly High-Speed TCP Variant", 2008; RFC 9438. For iWARP and TCP.
//
//   Slow start    cwnd += acked, below the threshold
//   After a loss  K = cbrt((Wmax - cwnd) / C);  W(t) = C (t - K)^3 + Wmax;  per acknowledgement cwnd += (W(t + rtt) - cwnd) / cwnd
//   Friendly      never below Reno's estimate: West += 3 (1 - beta) / (1 + beta) acked / cwnd  (RFC 9438, section 4.3)
//   Gap or mark   once per window: Wmax = cwnd, or cwnd (1 + beta) / 2 when it had not come back; cwnd *= beta
//   Timeout       one packet, slow start
//
// Round trips of datacentres are so short that the friendly region rules.
#include "models/packet/congestion/scheme.hpp"

namespace weft::packet {
namespace {

class Cubic final : public CongestionControl {
 public:
  using Spec = CubicSpec;
  struct State {
    double window, threshold, most, estimate, origin, period;  // packets; seconds
    Time epoch, rtt;
    OncePerWindow reduced;
  };

  static Spec resolve(const SenderFacts&, const CongestionSpec& given) {
    Spec spec = given.cubic.value_or(Spec{});
    fill(spec.scale, 0.4);
    fill(spec.decrease, 0.7);
    fill(spec.initial_window, std::int64_t{10});
    return spec;
  }

  Cubic(const SenderFacts& facts, const Spec& spec)
      : line_(facts.line_rate),
        c_(*spec.scale),
        beta_(*spec.decrease),
        s_{static_cast<double>(*spec.initial_window),
           kOpen,
           0,
           0,
           0,
           0,
           Time{-1},
           facts.base_rtt,
           {}} {}

  Bandwidth rate(Time) override { return line_; }
  std::uint32_t window() const override {
    return static_cast<std::uint32_t>(std::clamp(s_.window, 1.0, 4e9));
  }

  void on_ack(const AckSignal& ack) override {
    s_.rtt = ack.rtt;
    if (ack.marked) {
      if (s_.reduced.fresh(ack.acked, ack.next)) reduce();
      return;
    }
    if (s_.window < s_.threshold) {
      s_.window = std::min(kOpen, s_.window + ack.packets);
      return;
    }
    if (s_.epoch.ps < 0) begin(ack.now);
    const double t = (ack.now - s_.epoch + ack.rtt).seconds() - s_.period;
    const double target = std::clamp(c_ * t * t * t + s_.origin, s_.window, 1.5 * s_.window);
    s_.estimate += 3 * (1 - beta_) / (1 + beta_) * ack.packets / s_.window;
    s_.window += (target - s_.window) / s_.window * ack.packets;
    s_.window = std::min(kOpen, std::max(s_.window, s_.estimate));
  }

  void on_loss(const LossSignal& loss) override {
    if (loss.timeout) {
      s_.threshold = std::max(2.0, s_.window * beta_);
      s_.most = s_.window;
      s_.window = 1;
      s_.epoch = Time{-1};
      s_.reduced.fresh(loss.acked, loss.next);
    } else if (s_.reduced.fresh(loss)) {
      reduce();
    }
  }

 private:
  void begin(Time now) {
    s_.epoch = now;
    s_.origin = std::max(s_.most, s_.window);
    s_.period = std::cbrt((s_.origin - s_.window) / c_);
    s_.estimate = s_.window;
  }
  void reduce() {
    s_.most = s_.window < s_.most ? s_.window * (1 + beta_) / 2 : s_.window;
    s_.window = std::max(1.0, s_.window * beta_);
    s_.threshold = s_.window;
    s_.epoch = Time{-1};
  }

  static constexpr double kOpen = 1e9;
  Bandwidth line_;
  double c_, beta_;
  State s_;
};

}  // namespace

const CongestionEntry kCubic{
    .scheme = CongestionScheme::cubic,
    .summary = "TCP and iWARP: window grows by a cubic of the time since the last loss",
    .reference = "Ha et al., 2008; RFC 9438",
    .signals = {.mark = true, .loss = true},
    .state_bytes = sizeof(Cubic::State),
    .make = make_scheme<Cubic>,
    .parameters = parameters_of<Cubic>,
};

}  // namespace weft::packet
