// SPDX-License-Identifier: Apache-2.0
// Laws that every congestion control of the catalogue keeps.
#include <set>

#include <gtest/gtest.h>

#include "models/packet/congestion/incast.test.hpp"
#include "sim/core/hash.hpp"

namespace weft::packet {
namespace {

class Congestion : public testing::TestWithParam<const CongestionEntry*> {
 protected:
  const CongestionEntry& entry() const { return *GetParam(); }
  IncastSpec incast(std::uint32_t senders) const {
    IncastSpec spec;
    spec.scheme = entry().scheme;
    spec.senders = senders;
    spec.stagger = 200_us;
    return spec;
  }
};
INSTANTIATE_TEST_SUITE_P(Catalogue, Congestion, testing::ValuesIn(congestion_controls()),
                         [](const auto& tested) { return std::string(tested.param->name()); });

// How fast it may send: its rate, and its window where it has one.
double allowed(CongestionControl& control, Time now) {
  const double paced = static_cast<double>(control.rate(now).bps);
  return control.window() == 0 ? paced : paced * control.window();
}

// A sender by hand: acknowledgements of one packet each, 1 us apart.
struct ByHand {
  explicit ByHand(const CongestionEntry& entry) : control(entry.make(facts, CongestionSpec{})) {}

  void acknowledge(Time rtt, bool marked, std::uint32_t queued, double load) {
    now += 1_us;
    control->on_send(now, facts.grain);
    busy += Time{static_cast<std::int64_t>(1e6 * load)};
    const HopTelemetry hop{7, queued, now, busy, facts.line_rate};
    control->on_ack({now, rtt, 1, marked, ++acked, acked + 16, {&hop, 1}});
  }
  void warm_up() {
    for (int i = 0; i < 300; ++i) acknowledge(facts.base_rtt, false, 0, 0.9);
  }

  SenderFacts facts{{100'000'000'000}, 10_us, 4096, {0}};
  std::unique_ptr<CongestionControl> control;
  Time now{0}, busy{0};
  std::uint32_t acked = 0;
};

TEST_P(Congestion, SaysWhatItIs) {
  EXPECT_FALSE(entry().name().empty());
  EXPECT_FALSE(entry().summary.empty());
  EXPECT_EQ(entry().reference.empty(), entry().scheme == CongestionScheme::none);
  EXPECT_EQ(entry().state_bytes == 0, entry().scheme == CongestionScheme::none);
  EXPECT_LT(entry().state_bytes, 512u);  // what a NIC keeps for a connection
  EXPECT_EQ(entry().cnp_interval != nullptr, entry().signals.cnp);
}

TEST_P(Congestion, RateAndWindowStayWithinBounds) {
  for (std::uint64_t seed = 1; seed <= 50; ++seed) {
    ByHand sender(entry());
    std::uint64_t state = seed;
    for (int i = 0; i < 2000; ++i) {
      state = mix64(state);
      const Time rtt = Time{static_cast<std::int64_t>(1 + state % 3'000'000'000)};
      switch (state >> 60) {
        case 0:
          sender.control->on_cnp(sender.now);
          break;
        case 1:
          sender.control->on_loss({sender.now, (state >> 8 & 1) != 0, (state >> 7 & 1) != 0,
                                   sender.acked, sender.acked + 9});
          break;
        default:
          sender.acknowledge(rtt, (state >> 9 & 3) == 0, static_cast<std::uint32_t>(state >> 40),
                             static_cast<double>(state >> 12 & 1));
      }
      const Bandwidth rate = sender.control->rate(sender.now);
      ASSERT_GT(rate.bps, 0) << seed << " " << i;
      ASSERT_LE(rate, sender.facts.line_rate) << seed << " " << i;
    }
  }
}

// DCQCN, eight CNPs 60 us apart: each cuts by alpha / 2, then one step of fast recovery takes half of the cut back, and alpha falls
// once by its timer (both 55 us) before it rises with the next CNP.
double after_eight_cnps(double g) {
  double rate = 1, alpha = 1;
  for (int i = 0; i < 8; ++i) {
    const double cut = 1 - alpha / 2;
    rate *= i < 7 ? (1 + cut) / 2 : cut;
    alpha = ((1 - g) * alpha + g) * (1 - g);
  }
  return rate;
}

TEST_P(Congestion, EachOfItsSignalsLowersTheRate) {
  const auto after = [&](auto signal) {
    ByHand sender(entry());
    sender.warm_up();
    const double before = allowed(*sender.control, sender.now);
    signal(sender);
    return allowed(*sender.control, sender.now) / before;
  };
  const Signals& signals = entry().signals;
  if (signals.cnp) {
    const double one = after([](ByHand& s) { s.control->on_cnp(s.now); });
    const double eight = after([](ByHand& s) {
      for (int i = 0; i < 8; ++i) s.control->on_cnp(s.now += 60_us);
    });
    switch (entry().scheme) {
      case CongestionScheme::dcqcn:
        EXPECT_NEAR(one, 0.5, 0.001);  // alpha is 1
        EXPECT_NEAR(eight, after_eight_cnps(1.0 / 256), 1e-6);
        break;
      case CongestionScheme::fecn:
        // A step of the table is an eighth of a packet's time. Timers of 153.6 us end 307.2, 460.8, 614.4 and 768 us after the
        // start: the first finds the index at 0, the others take 3 of 8 back.
        EXPECT_NEAR(one, 1 / (1 + 1.0 / 8), 0.001);
        EXPECT_NEAR(eight, 1 / (1 + 5.0 / 8), 0.001);
        break;
      default:
        EXPECT_LT(one, 0.8);
        EXPECT_LT(eight, 0.5);
    }
  }
  const auto repeat = [](ByHand& s, Time rtt, bool marked, std::uint32_t queued, double load) {
    for (int i = 0; i < 64; ++i) s.acknowledge(rtt, marked, queued, load);
  };
  if (signals.mark) {
    EXPECT_LT(after([&](ByHand& s) { repeat(s, s.facts.base_rtt, true, 0, 0.9); }), 0.8);
  }
  if (signals.delay) {
    EXPECT_LT(after([&](ByHand& s) { repeat(s, 100 * s.facts.base_rtt, false, 0, 0.9); }), 0.8);
  }
  if (signals.telemetry) {
    EXPECT_LT(after([&](ByHand& s) { repeat(s, s.facts.base_rtt, false, 1'000'000, 1); }), 0.8);
  }
  if (signals.loss) {
    const auto lose = [](bool timeout) {
      return [timeout](ByHand& s) {
        s.control->on_loss({s.now, timeout, false, s.acked, s.acked + 16});
      };
    };
    EXPECT_LT(after(lose(false)), 0.8);
    EXPECT_LT(after(lose(true)), 0.8);
  }
}

TEST_P(Congestion, LoneSenderReachesNineTenthsOfTheLine) {
  for (const std::int64_t gbps : {25, 100, 400}) {
    IncastSpec spec = incast(1);
    spec.rate = Bandwidth{gbps * 1'000'000'000};
    spec.window = 100_us;
    Incast run(spec);
    run.run(2_ms);
    EXPECT_GT(run.mean_share(0, 10, 20), 0.9) << gbps;
    EXPECT_LE(run.mean_share(0, 10, 20), 1.01) << gbps;  // a packet at the edge of a window
  }
}

TEST_P(Congestion, TwoSendersShareTheLink) {
  Incast run(incast(2));
  run.run(40_ms);
  EXPECT_GT(run.mean_jain(30, 40), 0.9);
  EXPECT_GT(run.mean_share(0, 30, 40) + run.mean_share(1, 30, 40), 0.9);
}

TEST_P(Congestion, SameSeedSameRun) {
  const auto fingerprint = [&](std::uint64_t seed) {
    IncastSpec spec = incast(4);
    spec.seed = seed;
    Incast run(spec);
    run.run(3_ms);
    std::vector<double> out;
    for (std::uint32_t i = 0; i < 4; ++i) {
      for (std::size_t w = 0; w < 3; ++w) out.push_back(run.share(i, w));
    }
    out.push_back(static_cast<double>(run.engine().counters().alarms));
    return out;
  };
  EXPECT_EQ(fingerprint(1), fingerprint(1));
  if (entry().signals.cnp || entry().signals.mark) {
    EXPECT_NE(fingerprint(1), fingerprint(2));  // other packets are marked
  }
}

TEST(CongestionCatalogue, HoldsEachSchemeOnce) {
  std::set<std::string_view> names;
  for (const CongestionEntry* entry : congestion_controls()) {
    EXPECT_TRUE(names.insert(entry->name()).second) << entry->name();
    EXPECT_EQ(find_congestion_control(entry->scheme), entry);
  }
  for (const auto& [scheme, name] : enum_names(CongestionScheme{})) {
    EXPECT_EQ(names.contains(name), scheme != CongestionScheme::automatic) << name;
  }
}

// Where what does not fit is lost, those that hear of losses keep the link busy and fair. Their own links are faster: at equal
// rates and without jitter a sender that has filled the queue takes every slot as it falls free (Floyd and Jacobson, "On Traffic
// Phase Effects in Packet-Switched Gateways", 1992).
TEST_P(Congestion, LossIsEnoughForThoseThatHearIt) {
  if (!entry().signals.loss) return;
  IncastSpec spec = incast(2);
  spec.uplink = 250_Gbps;
  spec.guard = Guard::drop;
  spec.buffer = 400'000;
  spec.ecn = {1 << 30, 1 << 30, 0.01};  // never marks
  spec.recovery = Recovery::selective;
  Incast run(spec);
  run.run(40_ms);
  EXPECT_GT(run.mean_share(0, 20, 40) + run.mean_share(1, 20, 40), 0.9);
  EXPECT_GT(run.mean_jain(20, 40), 0.9);
}

}  // namespace
}  // namespace weft::packet
