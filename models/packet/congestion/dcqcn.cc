// SPDX-License-Identifier: Apache-2.0
// DCQCN: Zhu et al., "Congestion Control for Large-Scale RDMA Deployments", SIGCOMM 2015.
//
//   On a CNP     (section 4, equation 1; at most one decrease per decrease interval)
//                  RT = RC;  RC = RC (1 - alpha / 2);  alpha = (1 - g) alpha + g
//   Without one  every K:  alpha = (1 - g) alpha
//   Increase     at each expiry of the timer T and at each B bytes sent (equations 2 to 4):
//                  both counters <= F:  RC = (RT + RC) / 2                          fast recovery
//                  both        >  F:  RT += R_HAI; RC = (RT + RC) / 2               hyper
//                  else               RT += R_AI;  RC = (RT + RC) / 2               additive
//
// Timers run when the flow sends or hears: what expired since is made up in order of time.
#include <algorithm>

#include "models/packet/congestion/catalog.hpp"

namespace weft::packet {
namespace {

// Zhu et al. table 14; the rate steps scale with the line rate from the paper's 40 Gb/s.
constexpr double kG = 1.0 / 256;
constexpr Time kAlphaTimer = 55_us;
constexpr Time kRateTimer = 55_us;
constexpr Time kDecreaseInterval = 50_us;
constexpr std::int64_t kByteCounter = 10'000'000;
constexpr int kFastRecovery = 5;
constexpr double kAdditive = 40e6 / 40e9, kHyper = 400e6 / 40e9;  // of the line rate
constexpr double kLeast = 0.0025;                                 // 100 Mb/s of 40 Gb/s

class Dcqcn final : public CongestionControl {
 public:
  explicit Dcqcn(const SenderFacts& facts)
      : line_(static_cast<double>(facts.line_rate.bps)),
        current_(line_),
        target_(line_),
        alpha_due_(facts.start + kAlphaTimer),
        timer_due_(facts.start + kRateTimer) {}

  Bandwidth rate(Time now) override {
    catch_up(now);
    return Bandwidth{static_cast<std::int64_t>(current_)};
  }

  void on_send(Time now, std::uint32_t bytes) override {
    catch_up(now);
    sent_ += bytes;
    while (sent_ >= kByteCounter) {
      sent_ -= kByteCounter;
      ++byte_stage_;
      increase();
    }
  }

  void on_cnp(Time now) override {
    catch_up(now);
    cut_once_ = true;
    if (last_cut_.ps < 0 || now - last_cut_ >= kDecreaseInterval) {
      last_cut_ = now;
      target_ = current_;
      current_ = std::max(line_ * kLeast, current_ * (1 - alpha_ / 2));
      timer_stage_ = byte_stage_ = 0;
      sent_ = 0;
      timer_due_ = now + kRateTimer;
    }
    alpha_ = (1 - kG) * alpha_ + kG;
    alpha_due_ = now + kAlphaTimer;
  }

 private:
  void catch_up(Time now) {
    if (!cut_once_) return;  // at line rate nothing can grow
    while (std::min(alpha_due_, timer_due_) <= now) {
      if (alpha_due_ <= timer_due_) {
        alpha_ *= 1 - kG;
        alpha_due_ += kAlphaTimer;
      } else {
        ++timer_stage_;
        increase();
        timer_due_ += kRateTimer;
      }
      if (current_ >= line_ && alpha_ < 1e-9) {
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
    alpha_due_ = next(alpha_due_, kAlphaTimer);
    timer_due_ = next(timer_due_, kRateTimer);
  }
  void increase() {
    if (std::min(timer_stage_, byte_stage_) > kFastRecovery) {
      target_ += line_ * kHyper;
    } else if (std::max(timer_stage_, byte_stage_) > kFastRecovery) {
      target_ += line_ * kAdditive;
    }
    target_ = std::min(target_, line_);
    current_ = std::min(line_, (target_ + current_) / 2);
    if (line_ - current_ < 1e3) current_ = line_;
  }

  double line_, current_, target_, alpha_ = 1;
  Time alpha_due_, timer_due_, last_cut_{-1};
  std::int64_t sent_ = 0;
  int timer_stage_ = 0, byte_stage_ = 0;
  bool cut_once_ = false;
};

}  // namespace

const CongestionEntry kDcqcn{
    "dcqcn",
    "RoCE: rate cut by congestion notification packets, timer and byte counter to recover",
    "Zhu et al., SIGCOMM 2015",
    true,
    false,
    [](const SenderFacts& facts) -> std::unique_ptr<CongestionControl> {
      return std::make_unique<Dcqcn>(facts);
    }};

}  // namespace weft::packet
