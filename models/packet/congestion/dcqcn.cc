// SPDX-License-Identifier: Apache-2.0
// DCQCN: Zhu et al., "Congestion Control for Large-Scale RDMA Deployments", SIGCOMM 2015, section 3.
//
//   On a CNP     (equation 1; at most one decrease per decrease interval)
//                  RT = RC;  RC = RC (1 - alpha / 2);  alpha = (1 - g) alpha + g
//   Without one  every K (equation 2):  alpha = (1 - g) alpha
//   Increase     at each expiry of the timer T and at each B bytes sent (equations 3 and 4, figure 7); both start anew at a CNP
//                  neither has come beyond F:  RC = (RT + RC) / 2                    fast recovery
//                  both are beyond F:          RT += R_HAI; RC = (RT + RC) / 2       hyper
//                  else                        RT += R_AI;  RC = (RT + RC) / 2       additive
//
// A flow starts at line rate with alpha = 1, which does not decay before the first CNP. Timers run when the flow sends or hears:
// what expired since is made up in order of time.
//
// The steps do not scale with the line rate: neither the paper's values, used from 10 to 40 Gb/s, nor firmware does so, and at
// 400 Gb/s a step ten times as large leaves the fluid model's fixed point for a limit cycle (fluid.test.cc).
//
// Values: paper from Zhu et al. (R_HAI from the authors' simulator; no minimum is stated: 100 Mb/s as the HPCC authors' simulator
// has). nvidia from the vendor's page "DCQCN CC parameters" (ConnectX-4 and later) for alpha, decreases and the minimum; CNP
// spacing, additive step and timer are the defaults named by a study of BlueField-3; byte counter, threshold and hyper step are
// the defaults of the public parameter names rpg_byte_reset, rpg_threshold and rpg_hai_rate (assumed: no table at hand).
#include "models/packet/congestion/scheme.hpp"

namespace weft::packet {
namespace {

class Dcqcn final : public CongestionControl {
 public:
  using Spec = DcqcnSpec;
  struct State {
    double current, target, alpha;
    Time alpha_due, timer_due, last_cut{-1};
    std::int64_t sent = 0;
    int timer_stage = 0, byte_stage = 0;
    bool limited = false;  // a CNP has come
  };

  static Spec resolve(const SenderFacts& facts, const CongestionSpec& given) {
    Spec spec = given.dcqcn.value_or(Spec{});
    const bool nvidia = spec.preset == DcqcnPreset::nvidia;
    fill(spec.g, nvidia ? 5.0 / 1024 : 1.0 / 256);
    fill(spec.initial_alpha, nvidia ? 1023.0 / 1024 : 1.0);
    fill(spec.max_decrease, 0.5);
    fill(spec.alpha_timer, nvidia ? 1_us : 55_us);
    fill(spec.rate_timer, nvidia ? 300_us : 55_us);
    fill(spec.decrease_interval, nvidia ? 4_us : 50_us);
    fill(spec.cnp_interval, nvidia ? 4_us : 50_us);
    fill(spec.byte_counter, Bytes{nvidia ? 32767 * 64 : 10'000'000});
    fill(spec.fast_recovery, std::int64_t{nvidia ? 1 : 5});
    fill(spec.additive, nvidia ? 5_Mbps : 40_Mbps);
    fill(spec.hyper, nvidia ? 50_Mbps : 200_Mbps);
    fill(spec.min_rate, std::min(facts.line_rate, nvidia ? 1_Mbps : 100_Mbps));
    return spec;
  }

  Dcqcn(const SenderFacts& facts, const Spec& spec)
      : line_(as_double(facts.line_rate)),
        least_(std::min(line_, as_double(*spec.min_rate))),
        additive_(as_double(*spec.additive)),
        hyper_(as_double(*spec.hyper)),
        g_(*spec.g),
        most_cut_(*spec.max_decrease),
        alpha_timer_(*spec.alpha_timer),
        rate_timer_(*spec.rate_timer),
        decrease_interval_(*spec.decrease_interval),
        byte_counter_(spec.byte_counter->count),
        fast_recovery_(static_cast<int>(*spec.fast_recovery)),
        s_{line_, line_, *spec.initial_alpha, facts.start, facts.start} {}

  Bandwidth rate(Time now) override {
    catch_up(now);
    return Bandwidth{static_cast<std::int64_t>(s_.current)};
  }

  void on_send(Time now, std::uint32_t bytes) override {
    catch_up(now);
    if (!s_.limited) return;
    s_.sent += bytes;
    while (s_.sent >= byte_counter_) {
      s_.sent -= byte_counter_;
      ++s_.byte_stage;
      increase();
    }
  }

  void on_cnp(Time now) override {
    catch_up(now);
    s_.limited = true;
    if (s_.last_cut.ps < 0 || now - s_.last_cut >= decrease_interval_) {
      s_.last_cut = now;
      s_.target = s_.current;
      s_.current = std::max(least_, s_.current * (1 - std::min(s_.alpha / 2, most_cut_)));
      s_.timer_stage = s_.byte_stage = 0;
      s_.sent = 0;
      s_.timer_due = now + rate_timer_;
    }
    s_.alpha = (1 - g_) * s_.alpha + g_;
    s_.alpha_due = now + alpha_timer_;
  }

 private:
  void catch_up(Time now) {
    if (!s_.limited) return;
    while (std::min(s_.alpha_due, s_.timer_due) <= now) {
      if (s_.alpha_due <= s_.timer_due) {
        s_.alpha *= 1 - g_;
        s_.alpha_due += alpha_timer_;
      } else {
        ++s_.timer_stage;
        increase();
        s_.timer_due += rate_timer_;
      }
      if (s_.current >= line_ && s_.target >= line_ && s_.alpha < 1e-9) {
        skip(now);
        return;
      }
    }
  }
  // Nothing changes any more: the timers keep their phase.
  void skip(Time now) {
    const auto next = [&](Time due, Time period) {
      return due > now ? due : due + Time{((now - due).ps / period.ps + 1) * period.ps};
    };
    s_.alpha_due = next(s_.alpha_due, alpha_timer_);
    s_.timer_due = next(s_.timer_due, rate_timer_);
  }
  void increase() {
    if (std::min(s_.timer_stage, s_.byte_stage) > fast_recovery_) {
      s_.target += hyper_;
    } else if (std::max(s_.timer_stage, s_.byte_stage) > fast_recovery_) {
      s_.target += additive_;
    }
    s_.target = std::min(s_.target, line_);
    s_.current = std::min(line_, (s_.target + s_.current) / 2);
    if (line_ - s_.current < 1e3) s_.current = line_;
  }

  double line_, least_, additive_, hyper_, g_, most_cut_;
  Time alpha_timer_, rate_timer_, decrease_interval_;
  std::int64_t byte_counter_;
  int fast_recovery_;
  State s_;
};

}  // namespace

const CongestionEntry kDcqcn{
    .scheme = CongestionScheme::dcqcn,
    .summary =
        "RoCE: rate cut by congestion notification packets, timer and byte counter to recover",
    .reference = "Zhu et al., SIGCOMM 2015",
    .signals = {.cnp = true},
    .state_bytes = sizeof(Dcqcn::State),
    .make = make_scheme<Dcqcn>,
    .parameters = parameters_of<Dcqcn>,
    .cnp_interval =
        [](const CongestionSpec& spec) { return *Dcqcn::resolve({}, spec).cnp_interval; },
};

}  // namespace weft::packet
