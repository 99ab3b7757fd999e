// SPDX-License-Identifier: Apache-2.0
// HPCC: Li et al., "HPCC: High Precision Congestion Control", SIGCOMM 2019, algorithm 1.
//
//   Per link      u = min(queue now, before) / (B T) + transmitted / (B elapsed)
//   Load          U = (1 - tau / T) U + (tau / T) max u over the links of the way, tau = elapsed there, at most T
//   Window        U >= eta, or after maxStage additive steps:  W = Wc / (U / eta) + W_AI
//                 else                                         W = Wc + W_AI
//                 The reference Wc follows once per window of data; in between W reacts to each acknowledgement.
//   Rate          R = W / T; W begins at B T, the bandwidth-delay product.
//
// W_AI is given as a rate (the authors' simulator: 50 Mb/s; with the paper's T of 13 us that is its 80 bytes).
#include <array>

#include "models/packet/congestion/scheme.hpp"

namespace weft::packet {
namespace {

class Hpcc final : public CongestionControl {
 public:
  using Spec = HpccSpec;
  static constexpr std::size_t kMostHops = 8;  // the header counts them in 4 bits
  struct State {
    double window, reference, load = 0;  // packets, packets, of B T
    std::array<HopTelemetry, kMostHops> hops{};
    std::uint32_t last_update = 0, stage = 0;
    bool measured = false;
  };

  static Spec resolve(const SenderFacts& facts, const CongestionSpec& given) {
    Spec spec = given.hpcc.value_or(Spec{});
    fill(spec.utilisation, 0.95);
    fill(spec.stages, std::int64_t{5});
    fill(spec.additive, per_line(50_Mbps, 100_Gbps, facts.line_rate));
    return spec;
  }

  Hpcc(const SenderFacts& facts, const Spec& spec)
      : line_(facts.line_rate),
        base_(std::max(facts.base_rtt, 1_ns)),
        eta_(*spec.utilisation),
        stages_(static_cast<std::uint32_t>(*spec.stages)),
        most_(window_of(facts)),
        additive_(most_ * as_double(*spec.additive) / as_double(facts.line_rate)),
        s_{most_, most_} {}

  Bandwidth rate(Time) override { return scaled(line_, std::min(1.0, s_.window / most_)); }
  std::uint32_t window() const override { return whole_packets(s_.window); }

  void on_ack(const AckSignal& ack) override {
    if (ack.hops.empty()) return;
    measure(ack.hops);
    const bool fresh = !s_.measured || ack.acked > s_.last_update;
    if (s_.measured) adapt(fresh);
    if (fresh) s_.last_update = ack.next;
    s_.measured = true;
  }

  void on_loss(const LossSignal& loss) override {
    // The paper's fabric loses nothing; telemetry sees the queue that overflowed. After silence it starts from half.
    if (!loss.timeout) return;
    s_.window = s_.reference = std::max(kLeast, s_.reference / 2);
  }

 private:
  static constexpr double kLeast = 0.001;  // packets: a thousandth of a packet per round trip

  void measure(std::span<const HopTelemetry> hops) {
    double most = 0;
    Time elapsed{0};
    for (std::size_t i = 0; i < std::min(hops.size(), s_.hops.size()); ++i) {
      const HopTelemetry &now = hops[i], &before = s_.hops[i];
      if (now.port != before.port || now.when <= before.when) continue;
      const Time step = now.when - before.when;
      const double product = now.rate.bytes_per_s() * base_.seconds();
      const double load =
          std::min(now.queued, before.queued) / product +
          static_cast<double>((now.busy - before.busy).ps) / static_cast<double>(step.ps);
      if (load > most) {
        most = load;
        elapsed = step;
      }
    }
    std::copy_n(hops.begin(), std::min(hops.size(), s_.hops.size()), s_.hops.begin());
    if (elapsed.ps == 0) return;
    const double share = std::min(1.0, elapsed.seconds() / base_.seconds());
    s_.load = (1 - share) * s_.load + share * most;
  }

  void adapt(bool fresh) {
    double next = s_.reference + additive_;
    const bool full = s_.load >= eta_ || s_.stage >= stages_;
    if (full) next = s_.reference / (std::max(s_.load, 1e-6) / eta_) + additive_;
    s_.window = std::clamp(next, kLeast, most_);
    if (!fresh) return;
    s_.stage = full ? 0 : s_.stage + 1;
    s_.reference = s_.window;
  }

  Bandwidth line_;
  Time base_;
  double eta_;
  std::uint32_t stages_;
  double most_, additive_;
  State s_;
};

}  // namespace

const CongestionEntry kHpcc{
    .scheme = CongestionScheme::hpcc,
    .summary = "window from what every switch of the way says about its queue and its load",
    .reference = "Li et al., SIGCOMM 2019",
    .signals = {.telemetry = true},
    .state_bytes = sizeof(Hpcc::State),
    .make = make_scheme<Hpcc>,
    .parameters = parameters_of<Hpcc>,
};

}  // namespace weft::packet
