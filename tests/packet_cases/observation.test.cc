// SPDX-License-Identifier: Apache-2.0
// What a report says of queues, pauses, losses and victims adds up, and costs no result.
#include <algorithm>
#include <numeric>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/packet_cases/crowd.hpp"

namespace weft {
namespace {

using testing::HasSubstr;

Report incast(const std::string& members) { return test::crowd("ethernet", members); }

constexpr const char* kPfc =
    R"("fidelity": "packet", "models": {"packet": {"buffer": "4 MB", "ecn": {"enabled": false},
       "congestion_control": "none"}}, "observe": {"top": 1000, "links": {"select": "*", "every": "20 us"}})";
constexpr const char* kLossy =
    R"("fidelity": "packet", "models": {"packet": {"buffer": "300 KB", "pfc": {"enabled": false},
       "ecn": {"kmin": "20 KB", "kmax": "100 KB"}}}, "observe": {"top": 1000})";

double sum(const std::vector<double>& values) {
  return std::accumulate(values.begin(), values.end(), 0.0);
}

TEST(Observation, PausesAddUpOverTheTree) {
  const Report report = incast(kPfc);
  ASSERT_GT(report.network.pauses, 0U);
  double time = 0;
  std::uint64_t pauses = 0;
  for (const PauseReport& edge : report.observed.pauses) {
    time += edge.time_s;
    pauses += edge.pauses;
  }
  EXPECT_NEAR(time, report.network.paused.seconds(), 1e-9);
  EXPECT_EQ(pauses, report.network.pauses);
  // The tree's root is the crowded host; what is stopped further up is stopped because of a link towards it.
  EXPECT_TRUE(std::ranges::any_of(report.observed.pauses, [](const PauseReport& edge) {
    return edge.by == "leaf1" && edge.cause == "leaf1:server8/n";
  }));
}

TEST(Observation, SeriesAddUpToWhatTheLinksCarried) {
  const Report report = incast(kPfc);
  for (const LinkReport& link : report.links) {
    const auto series = std::ranges::find(report.observed.series, link.id, &SeriesReport::link);
    ASSERT_NE(series, report.observed.series.end()) << link.id;
    const LinkSeries& windows = series->windows;
    EXPECT_EQ(windows.every, 20_us);
    EXPECT_EQ(sum(windows.bytes), link.bytes) << link.id;
    EXPECT_EQ(*std::ranges::max_element(windows.queue_most), link.queue->peak.value()) << link.id;
    const double paused = sum(windows.paused) * windows.every.seconds();
    EXPECT_NEAR(paused, link.queue->paused.seconds(), windows.every.seconds()) << link.id;
  }
}

TEST(Observation, AFlowThatIsStoppedByOthersIsAVictimAndTheyAreNamed) {
  const Report report = incast(kPfc);
  ASSERT_EQ(report.observed.victims.size(), 1U);
  const VictimReport& victim = report.observed.victims.front();
  EXPECT_EQ(victim.flow, "victim/0");
  EXPECT_EQ(victim.cause, "leaf1:server8/n");
  EXPECT_GT(victim.share, 0.05);
  EXPECT_LE(victim.share, 1);
  for (const NamedShare& flow : victim.flows) EXPECT_THAT(flow.name, HasSubstr("hog/"));
  EXPECT_THAT(summary(report), HasSubstr("victim/0 was paused"));
  // Alone it would have taken as long as its bytes at the rate of its NIC.
  EXPECT_GT(report.job("victim").slowdown.p50, 1.2);
}

TEST(Observation, LossesAndMarksOfFlowsAddUp) {
  const Report report = incast(kLossy);
  std::int64_t dropped = 0, retransmitted = 0;
  std::uint64_t marks = 0;
  for (const FlowReport& flow : report.flows) {
    dropped += flow.seen.dropped;
    retransmitted += flow.seen.retransmitted;
    marks += flow.seen.marks;
  }
  ASSERT_GT(report.network.dropped, 0U);
  EXPECT_EQ(dropped, report.network.dropped_bytes);
  EXPECT_EQ(marks, report.network.marks);
  // Go-back-N: what is lost is sent again, and what came behind it as well.
  EXPECT_GE(retransmitted, dropped);
  double carried = 0;  // by the hosts' own links
  for (const LinkReport& link : report.links) {
    if (link.id.starts_with("server") && link.id.ends_with(":leaf0")) carried += link.bytes;
  }
  EXPECT_NEAR(carried, 8 * 4e6 + static_cast<double>(retransmitted), 1);
}

TEST(Observation, ChangesNothing) {
  const std::string packet = R"("fidelity": "packet", "models": {"packet": {"buffer": "4 MB"}})";
  EXPECT_EQ(incast(packet).fingerprint,
            incast(packet + R"(, "observe": {"links": {"select": "leaf0:*", "every": "1 us"}})")
                .fingerprint);
  const std::string fluid = R"("fidelity": "fluid")";
  const Report seen =
      incast(fluid + R"(, "observe": {"links": {"select": "tier:access", "every": "30 us"}})");
  EXPECT_EQ(incast(fluid).fingerprint, seen.fingerprint);
  for (const SeriesReport& series : seen.observed.series) {
    const auto link = std::ranges::find(seen.links, series.link, &LinkReport::id);
    if (link != seen.links.end()) {
      EXPECT_NEAR(sum(series.windows.bytes), link->bytes, 1e-3);
      for (const double bytes : series.windows.bytes) EXPECT_LE(bytes, 30e-6 * 12.5e9 * (1 + 1e-9));
    }
  }
}

TEST(Observation, WindowsDoubleWhenThereAreTooMany) {
  const Report report = incast(
      R"("fidelity": "fluid", "observe": {"links": {"select": "leaf1:server8/n", "every": "100 ns"}})");
  const LinkSeries& windows = report.observed.series.front().windows;
  EXPECT_LE(windows.bytes.size(), 4096U);
  EXPECT_GT(windows.bytes.size(), 1024U);
  EXPECT_GT(windows.every, 100_ns);
  EXPECT_NEAR(sum(windows.bytes), 28e6, 1e-3);
}

TEST(Observation, CompletionIsComparedWithTheFlowAlone) {
  const Report report = incast(R"("fidelity": "fluid")");
  const JobReport& hog = report.job("hog");
  EXPECT_NEAR(hog.slowdown.p50, 7, 0.05);  // seven share a port; the latency is not seven times
  EXPECT_NEAR(hog.completion_s.most, 28e6 / 12.5e9, 1e-5);
  EXPECT_NEAR(report.job("victim").slowdown.p99, 1, 0.001);
}

// Seven hogs and a bystander: windows of a flow add up to its bytes; the largest flows are kept, all parts of one together.
TEST(Observation, RatesOfFlowsAddUpToTheirBytes) {
  const Report report = incast(
      R"("fidelity": "packet", "observe": {"flows": {"select": "hog/*", "every": "10 us", "top": 3}})");
  ASSERT_EQ(report.observed.flow_series.size(), 3U);
  for (const FlowSeriesReport& series : report.observed.flow_series) {
    EXPECT_THAT(series.flow, testing::StartsWith("hog/"));
    EXPECT_EQ(sum(series.windows.bytes), 4e6);
    EXPECT_EQ(series.windows.every, 10_us);
    // No more than its host's 100 Gb/s, but for a packet at the edge of a window.
    for (const double bytes : series.windows.bytes) EXPECT_LE(bytes, 125'000 + 4096);
  }
  const Report without = incast(R"("fidelity": "packet")");
  EXPECT_EQ(without.fingerprint, report.fingerprint) << "observation changes no result";
  EXPECT_TRUE(without.observed.flow_series.empty());
}

TEST(Observation, RatesOfFlowsAreMergedOverQueuePairsAndIterations) {
  test::TinyOptions options;
  options.servers = 2;
  options.network = test::single_switch();
  const Report report = test::run(test::fabric_from("gpu g -- 400 Gb/s, 0 ns -- nic n", options),
                                  R"("fidelity": "packet", "observe": {"flows": {"every": "1 ns"}},
         "workload": {"pattern": "ring", "size": "1 MB", "queue_pairs": 3, "repeat": 2})");
  ASSERT_EQ(report.observed.flow_series.size(), 2U);
  for (const FlowSeriesReport& series : report.observed.flow_series) {
    EXPECT_EQ(sum(series.windows.bytes), 2e6);
    EXPECT_LE(series.windows.bytes.size(), 4096U);
    EXPECT_GT(series.windows.every, 30_ns) << "windows became longer";
  }
}

TEST(Observation, RatesOfFlowsNeedPacketsAndANameThatExists) {
  const auto problem = [](const std::string& members) {
    try {
      incast(members);
    } catch (const InputError& error) {
      return std::string(error.what());
    }
    return std::string("none");
  };
  EXPECT_THAT(problem(R"("observe": {"flows": {}})"), HasSubstr("/observe/flows: the rates of"));
  EXPECT_THAT(problem(R"("fidelity": "packet", "observe": {"flows": {"select": "hig/*"}})"),
              HasSubstr("no flow is named \"hig/*\""));
}

}  // namespace
}  // namespace weft
