// SPDX-License-Identifier: Apache-2.0
// Lossless RoCE over 50 to 500 km, four senders into one trunk of 100 Gb/s (record roce-longhaul: an operator's study of buffers).
//
//   published  round trips of 632, 1131, 2138, 3158, 4145 and 5179 us; buffer 2.5 RTT, Kmin 0.75 RTT and Kmax 1.5 RTT (bytes at the
//              trunk's rate): all of the trunk is used, nothing is lost, the queue peaks at about 1 RTT. With Kmin 0.5 RTT and Kmax
//              1 RTT 96 to 98 Gb/s. rpg_time_reset 5 to 7 ms, rpg_min_dec_fac 95 %.
//   assumed    what senders have under way: two round trips together. The study gives queue depths only (16 queue pairs of 64 at 500
//              km), which are that with four senders and messages of 32 KiB. Pmax 0.2; the rest of DCQCN is the firmware's default.
#include <algorithm>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "tests/support/tiny.hpp"

namespace weft {
namespace {

constexpr int kSenders = 4, kQueuePairs = 4, kRoundTrips = 12;
constexpr double kTrunk = 12.5e9;  // bytes per second

struct Trunk {
  double use = 0;                   // of what the trunk can carry, between start-up and the end
  double peak = 0, first_peak = 0;  // of the queue, in round trips; after start-up, and in it
  std::uint64_t drops = 0, pauses = 0;
};

Trunk run_trunk(int rtt_us, double kmin, double kmax) {
  const double round_trip = rtt_us * 1e-6 * kTrunk;  // bytes
  std::string cables, flows;
  for (int i = 0; i < 2 * kSenders; ++i)
    cables +=
        fmt::format(R"({{"a": "server{}/nic0", "b": "{}"}}, )", i, i < kSenders ? "near" : "far");
  for (int i = 0; i < kSenders; ++i) {
    flows +=
        fmt::format(R"({}{{"src": "server{}/gpu0", "dst": "server{}/gpu0", "size": "{:.0f} B"}})",
                    i > 0 ? ", " : "", i, kSenders + i, kRoundTrips * round_trip / kSenders);
  }
  const Fabric fabric = test::catalogue_fabric(fmt::format(
      R"({{"servers": {}, "server": {{"use": "h100-1gpu", "set": {{"/nodes/4/model": "cx5-roce-100g"}}}},
          "network": {{"generator": "explicit", "switch": "sn4700", "link": "roce-100g",
            "switches": ["near", "far"], "cables": [{}
              {{"a": "near", "b": "far", "link": {{"use": "roce-100g", "set": {{"/delay": "{} ns"}}}}}}]}}}})",
      2 * kSenders, cables, rtt_us * 500));
  const Report report =
      test::run(fabric, fmt::format(
                            R"("fidelity": "packet", "jobs": [{{"queue_pairs": {}, "flows": [{}]}}],
             "models": {{"packet": {{"grain": "{}", "ack_every": 4, "alpha": 8, "buffer": "{:.0f} B",
               "window": "{:.0f} B", "pfc": {{"headroom": "200 KB"}}, "timeout": "1 s",
               "ecn": {{"kmin": "{:.0f} B", "kmax": "{:.0f} B", "pmax": 0.2}},
               "dcqcn": {{"preset": "nvidia", "rate_timer": "6 ms", "max_decrease": 0.05}}}}}},
             "observe": {{"links": {{"select": "near:far", "every": "{} us"}}}})",
                            kQueuePairs, flows, rtt_us > 1500 ? "16 KiB" : "4 KiB",
                            2.5 * round_trip, 2 * round_trip / (kSenders * kQueuePairs),
                            kmin * round_trip, kmax * round_trip, rtt_us));
  const LinkSeries& series = report.observed.series.front().windows;
  Trunk out;
  const std::size_t from = 3, until = kRoundTrips - 2;
  const double whole =
      fabric.link(test::link(fabric, "near:far")).rate.bytes_per_s() * rtt_us * 1e-6;
  for (std::size_t i = 0; i < until; ++i) {
    double& peak = i < from ? out.first_peak : out.peak;
    peak = std::max(peak, series.queue_most[i] / round_trip);
    if (i >= from) out.use += series.bytes[i] / whole / static_cast<double>(until - from);
  }
  out.drops = report.network.dropped;
  out.pauses = report.network.pauses;
  return out;
}

TEST(LongHaul, IsFullWithThreeQuartersOfARoundTripBelowKmin) {
  for (const int rtt_us : {632, 1131, 2138, 3158, 4145, 5179}) {
    SCOPED_TRACE(fmt::format("{} us", rtt_us));
    const Trunk trunk = run_trunk(rtt_us, 0.75, 1.5);
    EXPECT_GT(trunk.use, 0.99);
    EXPECT_EQ(trunk.drops, 0U);
    EXPECT_EQ(trunk.pauses, 0U);
    EXPECT_NEAR(trunk.peak, 1, 0.15);
    EXPECT_LT(trunk.first_peak, 2.5);
  }
}

// The direction only: 96 to 98 Gb/s are published, here the rates fall much further.
TEST(LongHaul, IsNotFullWithHalfOfOne) { EXPECT_LT(run_trunk(632, 0.5, 1.0).use, 0.98); }

}  // namespace
}  // namespace weft
