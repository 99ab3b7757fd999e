// SPDX-License-Identifier: Apache-2.0
// DCQCN step by step against traces by hand, and the marking that feeds it.
#include <cmath>

#include <gtest/gtest.h>

#include "models/packet/congestion/incast.test.hpp"

namespace weft::packet {
namespace {

constexpr double kG = 1.0 / 256;

// A 40 Gb/s sender with the paper's parameters; rates in Gb/s.
class DcqcnTrace : public testing::Test {
 protected:
  explicit DcqcnTrace(const CongestionSpec& spec = {})
      : control(find_congestion_control(CongestionScheme::dcqcn)->make(facts, spec)) {}
  double rate(Time now) { return static_cast<double>(control->rate(now).bps) / 1e9; }

  SenderFacts facts{{40'000'000'000}, 10_us, 1000, {0}};
  std::unique_ptr<CongestionControl> control;
};

TEST_F(DcqcnTrace, NothingMovesBeforeTheFirstCnp) {
  control->on_send(1_us, 50'000'000);
  EXPECT_EQ(rate(1_s), 40);
  control->on_cnp(1_s);  // alpha is still 1: no decay before it
  EXPECT_EQ(rate(1_s), 20);
}

// 20 -> 30 -> 35 -> 37.5 -> 38.75 -> 39.375: five halvings of the gap, each 55 us; then the target, 40 already, cannot grow.
TEST_F(DcqcnTrace, FastRecoveryHalvesTheGapToTheTarget) {
  control->on_cnp(100_us);
  const double expected[] = {20, 30, 35, 37.5, 38.75, 39.375, 39.6875};
  for (int k = 0; k < 7; ++k) {
    EXPECT_DOUBLE_EQ(rate(100_us + k * 55_us), expected[k]) << k;
    if (k < 6) {
      EXPECT_DOUBLE_EQ(rate(100_us + (k + 1) * 55_us - 1_ps), expected[k]) << k;
    }
  }
}

// Two cuts: 40 -> 20 (alpha stays 1), target 40; 55 us later fast recovery has brought 30 and alpha has decayed once to 255/256,
// so the second cut leaves 30 (1 - 255/512) = 15.05859375, target 30. Recovery halves the gap five times; then the target gains
// 0.04 each time.
TEST_F(DcqcnTrace, AdditiveIncreaseMovesTheTarget) {
  control->on_cnp(100_us);
  control->on_cnp(155_us);
  double current = 15.05859375, target = 30;
  EXPECT_DOUBLE_EQ(rate(155_us), current);
  for (int k = 1; k <= 12; ++k) {
    if (k > 5) target += 0.04;
    current = (current + target) / 2;
    EXPECT_NEAR(rate(155_us + k * 55_us), current, 1e-8) << k;
  }
}

// The byte counter counts too: 60 MB in one go are six increases. Then five more timers: both beyond F at the sixth.
TEST_F(DcqcnTrace, HyperIncreaseNeedsBothCountersBeyondFastRecovery) {
  control->on_cnp(100_us);
  control->on_cnp(155_us);
  double current = 15.05859375, target = 30;
  control->on_send(156_us, 60'000'000);
  for (int k = 1; k <= 6; ++k) {
    if (k > 5) target += 0.04;
    current = (current + target) / 2;
  }
  EXPECT_NEAR(rate(156_us), current, 1e-8);
  for (int k = 1; k <= 8; ++k) {
    target += k > 5 ? 0.2 : 0.04;
    current = (current + target) / 2;
    EXPECT_NEAR(rate(155_us + k * 55_us), current, 1e-8) << k;
  }
}

TEST_F(DcqcnTrace, BytesBelowTheCounterDoNotIncrease) {
  control->on_cnp(100_us);
  control->on_send(110_us, 9'999'999);
  EXPECT_EQ(rate(110_us), 20);
  control->on_send(111_us, 1);
  EXPECT_EQ(rate(111_us), 30);
}

// A second CNP within 50 us moves alpha only.
TEST_F(DcqcnTrace, OneDecreasePerInterval) {
  control->on_cnp(100_us);
  control->on_cnp(149_us);
  EXPECT_EQ(rate(149_us), 20);
  control->on_cnp(150_us);
  EXPECT_EQ(rate(150_us), 10);
}

// alpha decays once per 55 us without a CNP: after m of them a cut takes (1 - g)^m / 2. The CNP itself brings alpha to
// (1 - g) alpha + g, which the next cut shows.
TEST_F(DcqcnTrace, AlphaDecaysAndIsRefreshed) {
  control->on_cnp(0_us);  // alpha stays 1
  const int m = 2000;     // 110 ms: the rate is back at 40
  const Time then = Time{m * 55'000'000LL + 1};
  ASSERT_NEAR(rate(then), 40, 1e-6);
  double alpha = std::pow(1 - kG, m);
  control->on_cnp(then);
  double current = 40 * (1 - alpha / 2);
  EXPECT_NEAR(rate(then), current, 1e-6);
  alpha = (1 - kG) * alpha + kG;
  control->on_cnp(then + 50_us);
  EXPECT_NEAR(rate(then + 50_us), current * (1 - alpha / 2), 1e-6);
}

TEST_F(DcqcnTrace, NeverBelowTheLeastRate) {
  for (int i = 0; i < 100; ++i) control->on_cnp(Time{i * 50'000'000LL});
  EXPECT_DOUBLE_EQ(rate(Time{99 * 50'000'000LL}), 0.1);
}

TEST(Dcqcn, TheFirmwarePresetAndSingleKeys) {
  CongestionSpec spec;
  spec.dcqcn.emplace().preset = DcqcnPreset::nvidia;
  spec.dcqcn->additive = 8_Mbps;
  const CongestionEntry& entry = *find_congestion_control(CongestionScheme::dcqcn);
  const Json used = entry.parameters({.line_rate = {400'000'000'000}}, spec);
  EXPECT_EQ(parse_time(used.find("rate_timer")->text), 300_us);
  EXPECT_EQ(parse_bandwidth(used.find("additive")->text), 8_Mbps);
  EXPECT_EQ(entry.cnp_interval(spec), 4_us);
  EXPECT_EQ(entry.cnp_interval({}), 50_us);
  for (const JsonMember& member : used.members) EXPECT_NE(member.value.kind, Json::Kind::null);
  EXPECT_EQ(used.members.size(), 13u);
}

// A queue that grows by one packet for each that leaves passes every length twice, so the expected number of marks is the sum of
// the marking probability over the packets (Zhu et al., figure 5). 20,000 packets between Kmin and Kmax: within 4 sigma.
TEST(EcnMarking, FollowsTheSlopeBetweenKminAndKmax) {
  const EcnSpec ecn{1'000'000, 41'000'000, 0.2};
  IncastSpec spec;
  spec.senders = 2;
  spec.grain = 1000;
  spec.ecn = ecn;
  spec.guard = Guard::drop;  // and the switch has all the buffer it needs
  spec.window = 1_us;
  Incast run(spec);
  // Two senders at the link's rate: the queue grows at that rate too. 100 Gb/s: 12.5 kB per us.
  const Time end = 3_ms;
  run.run(end);
  double expected = 0, variance = 0;
  for (double queued = 0; queued < 12'500.0 * end.us();
       queued += 500) {  // half a packet per arrival
    const double p = queued <= 1e6 ? 0 : 0.2 * (queued - 1e6) / 40e6;
    expected += p;
    variance += p * (1 - p);
  }
  EXPECT_GT(expected, 3000);
  EXPECT_NEAR(static_cast<double>(run.bottleneck().marks), expected,
              4 * std::sqrt(variance) + 0.005 * expected);
}

TEST(EcnMarking, NothingBelowKminAndAllAboveKmax) {
  IncastSpec spec;
  spec.guard = Guard::drop;
  spec.ecn = {1 << 30, 1 << 30, 1};
  Incast none(spec);
  none.run(1_ms);
  EXPECT_EQ(none.bottleneck().marks, 0u);
  spec.ecn = {1, 2, 0.01};
  Incast all(spec);
  all.run(1_ms);
  EXPECT_GT(all.bottleneck().marks, 2u * 3000u);
}

}  // namespace
}  // namespace weft::packet
