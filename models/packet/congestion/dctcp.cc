// SPDX-License-Identifier: Apache-2.0
// DCTCP: Alizadeh et al., "Data Center TCP", SIGCOMM 2010; RFC 8257.
//
//   Per window of data   alpha = (1 - g) alpha + g F,  F = the share of acknowledged packets that were marked
//                        if any was:  cwnd *= 1 - alpha / 2
//   Else                 slow start below the threshold, then one packet per window
//   Gap                  cwnd halves once per window;  timeout: one packet, slow start
#include "models/packet/congestion/scheme.hpp"

namespace weft::packet {
namespace {

class Dctcp final : public CongestionControl {
 public:
  using Spec = DctcpSpec;
  struct State {
    double window, threshold, alpha;
    std::uint32_t acked, marked, until;
    OncePerWindow loss;
  };

  static Spec resolve(const SenderFacts&, const CongestionSpec& given) {
    Spec spec = given.dctcp.value_or(Spec{});
    fill(spec.g, 1.0 / 16);
    fill(spec.initial_window, std::int64_t{10});
    return spec;
  }

  Dctcp(const SenderFacts& facts, const Spec& spec)
      : line_(facts.line_rate),
        g_(*spec.g),
        s_{static_cast<double>(*spec.initial_window), kOpen, 1, 0, 0, 0, {}} {}

  Bandwidth rate(Time) override { return line_; }
  std::uint32_t window() const override {
    return static_cast<std::uint32_t>(std::clamp(s_.window, 1.0, 4e9));
  }

  void on_ack(const AckSignal& ack) override {
    s_.acked += ack.packets;
    if (ack.marked) s_.marked += ack.packets;
    if (ack.marked && s_.window < s_.threshold) s_.threshold = s_.window;
    if (s_.window < s_.threshold) {
      s_.window += ack.packets;
    } else {
      s_.window += ack.packets / s_.window;
    }
    s_.window = std::min(s_.window, kOpen);
    if (ack.acked < s_.until) return;
    s_.until = ack.next;
    const double share = static_cast<double>(s_.marked) / std::max(1U, s_.acked);
    s_.alpha = (1 - g_) * s_.alpha + g_ * share;
    if (s_.marked > 0) {
      s_.window = std::max(1.0, s_.window * (1 - s_.alpha / 2));
      s_.threshold = s_.window;
    }
    s_.acked = s_.marked = 0;
  }

  void on_loss(const LossSignal& loss) override {
    if (!s_.loss.fresh(loss)) return;
    s_.threshold = std::max(2.0, s_.window / 2);
    s_.window = loss.timeout ? 1 : s_.threshold;
  }

 private:
  static constexpr double kOpen = 1e9;  // no threshold yet
  Bandwidth line_;
  double g_;
  State s_;
};

}  // namespace

const CongestionEntry kDctcp{
    .scheme = CongestionScheme::dctcp,
    .summary = "window cut by the share of marked packets",
    .reference = "Alizadeh et al., SIGCOMM 2010; RFC 8257",
    .signals = {.mark = true, .loss = true},
    .state_bytes = sizeof(Dctcp::State),
    .make = make_scheme<Dctcp>,
    .parameters = parameters_of<Dctcp>,
};

}  // namespace weft::packet
