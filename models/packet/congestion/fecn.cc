// SPDX-License-Identifier: Apache-2.0
// InfiniBand congestion control: InfiniBand Architecture Specification, volume 1, annex A10.
//
//   Switch      Marks packets (FECN) at a queue above its threshold, unless the port itself waits for credit: only the root of a
//               tree of full buffers is blamed, not its victims (models/packet/buffers.cc).
//   Receiver    Answers a mark with a notification (BECN).
//   Sender      A BECN moves the connection's index into the congestion control table up by CCTI_Increase, at most to CCTI_Limit;
//               each expiry of CCTI_Timer moves it down by one, at least to CCTI_Min. The entry is the time that a sender waits
//               after a packet, in times that the packet takes:  rate = line / (1 + table[index]).
//
// The table is here a straight line, table[i] = i x step. Increase 1, limit 127, minimum 0 and a timer of 150 x 1.024 us are the
// settings of Gran et al., "First experiences with congestion control in InfiniBand hardware" (IPDPS 2010). The step and the time
// between two BECNs of a connection are assumed: subnet managers fill the table as they like.
//
// Example:    step 1/8: after 8 BECNs the rate is half the line's; 8 timers, 1.2 ms, later it is the line's again.
#include "models/packet/congestion/scheme.hpp"

namespace weft::packet {
namespace {

class Fecn final : public CongestionControl {
 public:
  using Spec = FecnSpec;
  static constexpr Time kTimer{150 * 1'024'000};
  struct State {
    std::int64_t index;
    Time timer_due;
  };

  static Spec resolve(const SenderFacts&, const CongestionSpec& given) {
    Spec spec = given.fecn.value_or(Spec{});
    fill(spec.increase, std::int64_t{1});
    fill(spec.limit, kFecnLimit);
    fill(spec.least, std::int64_t{0});
    fill(spec.timer, kTimer);
    fill(spec.step, 0.125);
    fill(spec.becn_interval, 50_us);
    return spec;
  }

  Fecn(const SenderFacts& facts, const Spec& spec)
      : line_(as_double(facts.line_rate)),
        step_(*spec.step),
        increase_(*spec.increase),
        least_(*spec.least),
        limit_(*spec.limit),
        timer_(*spec.timer),
        s_{least_, facts.start + timer_} {}

  Bandwidth rate(Time now) override {
    expire(now);
    const double share = 1 + step_ * static_cast<double>(s_.index);
    return Bandwidth{std::max<std::int64_t>(1, static_cast<std::int64_t>(line_ / share))};
  }

  void on_cnp(Time now) override {
    expire(now);
    s_.index = std::min(limit_, s_.index + increase_);
  }

 private:
  void expire(Time now) {
    if (now < s_.timer_due) return;
    const std::int64_t times = (now - s_.timer_due).ps / timer_.ps + 1;
    s_.index = std::max(least_, s_.index - std::min(times, limit_));
    s_.timer_due += timer_ * times;
  }

  double line_, step_;
  std::int64_t increase_, least_, limit_;
  Time timer_;
  State s_;
};

}  // namespace

const CongestionEntry kFecn{
    .scheme = CongestionScheme::fecn,
    .summary =
        "InfiniBand: marks at the root of congestion move the sender along a table of delays",
    .reference = "InfiniBand Architecture Specification, volume 1, annex A10",
    .signals = {.cnp = true},
    .state_bytes = sizeof(Fecn::State),
    .make = make_scheme<Fecn>,
    .parameters = parameters_of<Fecn>,
    .cnp_interval =
        [](const CongestionSpec& spec) { return *Fecn::resolve({}, spec).becn_interval; },
};

}  // namespace weft::packet
