// SPDX-License-Identifier: Apache-2.0
// DCQCN against its fluid model (Zhu et al., SIGCOMM 2015, section 5; Zhu et al., "ECN or Delay", 2016, equations 3 to 7).
//
// Of one flow, rates in packets per second; p the marking probability one feedback delay ago; tau the CNP interval, K the alpha
// timer, T and B the rate timer and byte counter, F the fast recovery steps:
//
//   a  = 1 - (1 - p)^(tau RC)      chance of a CNP within one interval
//   b  = p / ((1 - p)^-B - 1)      increases by bytes, per packet       c = (1 - p)^(F B) b         those beyond fast recovery
//   d  = p / ((1 - p)^-(T RC) - 1) increases by time, per packet        e = (1 - p)^(F T RC) d
//   d alpha/dt = g / K (1 - (1 - p)^(K RC) - alpha)
//   d RT/dt    = -(RT - RC) a / tau + R_AI RC (c + e)
//   d RC/dt    = -RC alpha a / (2 tau) + (RT - RC) RC (b + d) / 2
//   d q/dt     = sum of RC - C,  q >= 0
//
// Fixed point, with RC = C / N for each of N flows. The second equation gives RT - RC = tau R_AI RC (c + e) / a; put into the
// third:
//
//   a^2 alpha* = tau^2 R_AI RC (b + d) (c + e),   alpha* = 1 - (1 - p)^(K RC)
//
// whose only root p* puts the queue at Kmin + p* / Pmax (Kmax - Kmin).
#include <cmath>
#include <deque>

#include <gtest/gtest.h>

#include "models/packet/congestion/incast.test.hpp"

namespace weft::packet {
namespace {

struct Model {
  double link = 0, additive = 0;  // packets per second
  double g = 1.0 / 256, tau = 50e-6, alpha_timer = 55e-6, timer = 55e-6, bytes = 0, recovery = 5;

  struct Terms {
    double a, b, c, d, e;
  };
  Terms terms(double p, double rate) const {
    if (p <= 0) return {0, 1 / bytes, 1 / bytes, 1 / (timer * rate), 1 / (timer * rate)};
    const double lost = std::log1p(-p);
    const double b = p / std::expm1(-bytes * lost), d = p / std::expm1(-timer * rate * lost);
    return {-std::expm1(tau * rate * lost), b, std::exp(recovery * bytes * lost) * b, d,
            std::exp(recovery * timer * rate * lost) * d};
  }
  double alpha(double p, double rate) const {
    return -std::expm1(alpha_timer * rate * std::log1p(-p));
  }
  double fixed_point(int flows) const {
    const double rate = link / flows;
    double low = 1e-9, high = 0.99;
    for (int i = 0; i < 200; ++i) {
      const double p = std::sqrt(low * high);
      const Terms t = terms(p, rate);
      const bool cuts_more =
          t.a * t.a * alpha(p, rate) > tau * tau * additive * rate * (t.b + t.d) * (t.c + t.e);
      (cuts_more ? high : low) = p;
    }
    return low;
  }
};

Model model_of(const IncastSpec& spec, Bandwidth additive) {
  const double bits = 8.0 * spec.grain;
  Model model;
  model.link = static_cast<double>(spec.rate.bps) / bits;
  model.additive = static_cast<double>(additive.bps) / bits;
  model.bytes = 10e6 / spec.grain;
  return model;
}

double marked(const EcnSpec& ecn, double queued) {
  const double at =
      (queued - static_cast<double>(ecn.kmin)) / static_cast<double>(ecn.kmax - ecn.kmin);
  return at <= 0 ? 0 : at >= 1 ? 1 : at * ecn.pmax;
}

double queue_at(const EcnSpec& ecn, double p) {
  return static_cast<double>(ecn.kmin) + p / ecn.pmax * static_cast<double>(ecn.kmax - ecn.kmin);
}

// ---- 16 senders to one, starts spread over 1 ms, 100 ms; the second half in windows of 1 ms

class DcqcnIncast : public testing::TestWithParam<int> {};
INSTANTIATE_TEST_SUITE_P(Gbps, DcqcnIncast, testing::Values(100, 400));

TEST_P(DcqcnIncast, SettlesAtTheFixedPointOfTheFluidModel) {
  IncastSpec spec;
  spec.scheme = CongestionScheme::
      dcqcn;  // all parameters as in the paper: R_AI 40 Mb/s, T 55 us, B 10 MB, N 50 us, g 1/256
  spec.senders = 16;
  spec.rate = Bandwidth{GetParam() * 1'000'000'000LL};
  spec.stagger = Time{1'000'000'000 / 15};
  spec.ecn = {GetParam() * 4'000LL, GetParam() * 16'000LL, 0.2};  // 100 and 400 kB per 25 Gb/s
  Incast run(spec);
  run.run(50_ms);
  const std::uint64_t pauses_at_start = run.pauses();
  run.run(100_ms);
  double least_fair = 1, load = 0;
  for (std::size_t w = 50; w < 100; ++w) {
    least_fair = std::min(least_fair, run.jain(w));
    load += run.total_share(w) / 50;
  }
  const double queue = run.mean_queue(50, 100);
  const double p = model_of(spec, 40_Mbps).fixed_point(16);
  RecordProperty("pauses_at_start", static_cast<int>(pauses_at_start));
  RecordProperty("mean_queue_over_fixed_point", std::to_string(queue / queue_at(spec.ecn, p)));
  EXPECT_GT(least_fair, 0.95);
  EXPECT_NEAR(queue / queue_at(spec.ecn, p), 1, 0.25);
  EXPECT_EQ(run.pauses(), pauses_at_start);
  EXPECT_EQ(run.engine().counters().dropped, 0);
  EXPECT_GT(load, 0.99);
}

// ---- two flows: one at the line rate of 40 Gb/s, one just cut to 5 Gb/s (the start of the paper's convergence study)

// RC, RT and alpha of both flows by small steps of time; the share of the first in each window of 1 ms.
std::vector<double> fluid_shares(const Model& model, const EcnSpec& ecn, double packet, int windows,
                                 double feedback) {
  constexpr double kStep = 1e-6;
  struct Flow {
    double rate = 0, target = 0, alpha = 1;
  };
  Flow flows[] = {{model.link, model.link, 1}, {model.link / 8, model.link / 4, 1}};
  double queued = 0;
  std::deque<double> history(static_cast<std::size_t>(feedback / kStep), 0.0);
  std::vector<double> shares;
  for (int w = 0; w < windows; ++w) {
    double first = 0, sum = 0;
    for (int i = 0; i < 1000; ++i) {
      const double p = history.front();
      history.pop_front();
      history.push_back(marked(ecn, queued));
      double arriving = 0;
      for (Flow& flow : flows) {
        const Model::Terms t = model.terms(p, flow.rate);
        const double gap = flow.target - flow.rate;
        const double falls = flow.rate * flow.alpha * t.a / (2 * model.tau);
        const double rises = gap * flow.rate * (t.b + t.d) / 2;
        const double target = -gap * t.a / model.tau + model.additive * flow.rate * (t.c + t.e);
        flow.alpha += kStep * model.g / model.alpha_timer *
                      ((p > 0 ? model.alpha(p, flow.rate) : 0) - flow.alpha);
        arriving += flow.rate;
        flow.rate = std::min(model.link, flow.rate + kStep * (rises - falls));
        flow.target = std::min(model.link, flow.target + kStep * target);
      }
      queued = std::max(0.0, queued + kStep * (arriving - model.link) * packet);
      first += flows[0].rate;
      sum += arriving;
    }
    shares.push_back(first / sum);
  }
  return shares;
}

TEST(Dcqcn, TwoFlowsConvergeAsTheFluidModelSays) {
  IncastSpec spec;
  spec.scheme = CongestionScheme::dcqcn;
  spec.rate = 40_Gbps;
  spec.grain = 1000;
  spec.ecn = {5'000, 200'000, 0.01};  // the paper's deployment
  spec.prepare = [](std::uint32_t i, CongestionControl& control) {
    if (i == 0) return;
    for (int cut = -2; cut <= 0; ++cut) control.on_cnp(Time{cut * 50'000'000LL + 1});
    ASSERT_EQ(control.rate(Time{1}).bps, 5'000'000'000);
  };
  constexpr int kWindows = 30, kSeeds = 10;
  std::vector<double> mean(kWindows, 0.0);
  for (int seed = 1; seed <= kSeeds; ++seed) {
    spec.seed = static_cast<std::uint64_t>(seed);
    Incast run(spec);
    run.run(Time{kWindows * 1'000'000'000LL});
    for (std::size_t w = 0; w < kWindows; ++w)
      mean[w] += run.share(0, w) / run.total_share(w) / kSeeds;
  }
  const std::vector<double> fluid =
      fluid_shares(model_of(spec, 40_Mbps), spec.ecn, spec.grain, kWindows, 50e-6);
  EXPECT_GT(fluid.front(), 0.75);
  EXPECT_LT(fluid.back(), 0.55);
  for (std::size_t w = 0; w < kWindows; ++w) EXPECT_NEAR(mean[w], fluid[w], 0.05) << w << " ms";
}

}  // namespace
}  // namespace weft::packet
