// SPDX-License-Identifier: Apache-2.0
// Swift: Kumar et al., "Swift: Delay is Simple and Effective for Congestion Control in the Datacenter", SIGCOMM 2020, algorithm 1
// and section 3.5.
//
//   target = base + clamp(a / sqrt(cwnd) + b, 0, range);  a = range / (1/sqrt(min) - 1/sqrt(max)), b = -a / sqrt(max)
//   delay < target   cwnd += ai acked / cwnd   (cwnd >= 1)   or   ai acked
//   else             once per round trip: cwnd *= max(1 - beta (delay - target) / delay, 1 - max_mdf)
//   loss, timeout    once per round trip: cwnd *= 1 - max_mdf
//   A window below one packet is paced: one packet every rtt / cwnd.
//
// The paper's base target is per fabric and grows with hops; here it is a multiple of the way's idle round trip, which holds the
// hops (assumed: 1.5; range 4 targets).
#include "models/packet/congestion/scheme.hpp"

namespace weft::packet {
namespace {

class Swift final : public CongestionControl {
 public:
  using Spec = SwiftSpec;
  struct State {
    double window;
    Time last_decrease{-1}, rtt;
  };

  static Spec resolve(const SenderFacts& facts, const CongestionSpec& given) {
    Spec spec = given.swift.value_or(Spec{});
    fill(spec.target, std::max(1_us, Time{facts.base_rtt.ps + facts.base_rtt.ps / 2}));
    fill(spec.scaling_range, 4 * *spec.target);
    fill(spec.scaling_min, 0.1);
    fill(spec.scaling_max, 100.0);
    fill(spec.additive, 1.0);
    fill(spec.decrease, 0.8);
    fill(spec.max_decrease, 0.5);
    return spec;
  }

  Swift(const SenderFacts& facts, const Spec& spec)
      : line_(facts.line_rate),
        packet_bits_(8.0 * facts.grain),
        target_(spec.target->us()),
        range_(spec.scaling_range->us()),
        additive_(*spec.additive),
        beta_(*spec.decrease),
        most_cut_(*spec.max_decrease),
        most_(2 * window_of(facts) * target_ / std::max(facts.base_rtt.us(), 1e-3)),
        s_{window_of(facts), Time{-1}, std::max(facts.base_rtt, 1_ns)} {
    const double low = 1 / std::sqrt(*spec.scaling_min), high = 1 / std::sqrt(*spec.scaling_max);
    slope_ = low > high ? range_ / (low - high) : 0;
    offset_ = -slope_ * high;
  }

  Bandwidth rate(Time) override {
    if (s_.window >= 1) return line_;
    const double bps = packet_bits_ * s_.window / s_.rtt.seconds();
    return Bandwidth{std::clamp<std::int64_t>(static_cast<std::int64_t>(bps), 1, line_.bps)};
  }
  std::uint32_t window() const override {
    return static_cast<std::uint32_t>(std::clamp(s_.window, 1.0, 4e9));
  }

  void on_ack(const AckSignal& ack) override {
    s_.rtt = std::max(ack.rtt, 1_ns);
    const double delay = ack.rtt.us();
    const double extra = std::clamp(slope_ / std::sqrt(s_.window) + offset_, 0.0, range_);
    const double target = target_ + extra;
    if (delay < target) {
      const double steps = additive_ * ack.packets;
      s_.window += s_.window >= 1 ? steps / s_.window : steps;
    } else {
      decrease(ack.now, std::min(beta_ * (delay - target) / delay, most_cut_));
    }
    s_.window = std::min(s_.window, most_);
  }
  void on_loss(const LossSignal& loss) override { decrease(loss.now, most_cut_); }

 private:
  void decrease(Time now, double share) {
    if (s_.last_decrease.ps >= 0 && now - s_.last_decrease < s_.rtt) return;
    s_.last_decrease = now;
    s_.window = std::max(kLeast, s_.window * (1 - share));
  }

  static constexpr double kLeast = 0.001;  // packets
  Bandwidth line_;
  double packet_bits_, target_, range_, additive_, beta_, most_cut_, most_, slope_ = 0, offset_ = 0;
  State s_;
};

}  // namespace

const CongestionEntry kSwift{
    .scheme = CongestionScheme::swift,
    .summary = "window held so that the delay meets a target",
    .reference = "Kumar et al., SIGCOMM 2020",
    .signals = {.delay = true, .loss = true},
    .state_bytes = sizeof(Swift::State),
    .make = make_scheme<Swift>,
    .parameters = parameters_of<Swift>,
};

}  // namespace weft::packet
