// SPDX-License-Identifier: Apache-2.0
// Minimal ways, detours and the choice between them in a dragonfly of packets (Kim, Dally, Scott and Abts, ISCA 2008, fig. 8).
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "sim/core/check.hpp"
#include "tests/support/tiny.hpp"

namespace weft {
namespace {

struct Shape {
  int groups = 9, routers = 4, hosts = 2, global = 2;  // balanced: a = 2 p = 2 h, g = a h + 1
  int servers() const { return groups * routers * hosts; }
  int group() const { return routers * hosts; }
};

Report run_on(const Shape& shape, std::string_view routing, const std::string& job,
              std::string_view network_class = "c2c", std::string_view packet = "") {
  test::TinyOptions options;
  options.servers = shape.servers();
  options.network = fmt::format(
      R"("generator": "dragonfly", "routers_per_group": {}, "hosts_per_router": {},
         "global_links_per_router": {}, "routing": "{}")",
      shape.routers, shape.hosts, shape.global, routing);
  options.network_class = network_class;
  return test::run(
      test::fabric_from("gpu g -- 400 Gb/s, 0 ns -- nic n", options),
      fmt::format(R"("fidelity": "packet", "models": {{"packet": {{{}}}}}, "workload": {{{}}})",
                  packet, job));
}

// Of what the hosts could send, on average over the flows.
double throughput(const Report& report) { return report.jobs.front().mean_rate_gbs / 12.5; }

// Every host of a group sends to the next group.
std::string adversarial(const Shape& shape, int megabytes = 1) {
  return fmt::format(R"("pattern": "ring", "group_stride": {}, "size": "{} MB")", shape.group(),
                     megabytes);
}
const std::string kUniform = R"("pattern": "all_to_all", "size": "40 KB")";

TEST(Dragonfly, AGroupThatSendsToOneOtherHasOneLinkByMinimalWays) {
  const Shape shape;
  const Report report = run_on(shape, "minimal", adversarial(shape));
  const double hosts = 12.5e9 * shape.servers() * report.time_s;
  EXPECT_NEAR(report.jobs.front().bytes / hosts * shape.routers * shape.global, 1, 0.02);
}

// Each packet takes two global links, so that g - 2 of them carry two halves: (a h - 1) / (2 a p) = 0.4375. Hosts that draw at
// random leave some of it unused.
TEST(Dragonfly, DetoursHaveAboutHalfAndTheChoiceIsAsGood) {
  const Shape shape;
  const double most = (shape.routers * shape.global - 1.0) / (2.0 * shape.group());
  const double valiant = throughput(run_on(shape, "valiant", adversarial(shape)));
  EXPECT_LT(valiant, 1.02 * most);
  EXPECT_GT(valiant, 0.8 * most);
  EXPECT_GT(throughput(run_on(shape, "ugal", adversarial(shape))), 0.85 * valiant);
}

TEST(Dragonfly, TheChoiceIsMinimalWhereTrafficIsUniform) {
  const Shape shape;
  const double minimal = run_on(shape, "minimal", kUniform).time_s,
               valiant = run_on(shape, "valiant", kUniform).time_s,
               ugal = run_on(shape, "ugal", kUniform).time_s;
  EXPECT_GT(valiant, 1.5 * minimal);
  EXPECT_LT(ugal, 1.15 * minimal);
}

// One class and small buffers: what can wait in a circle does. Dependencies over one lane have one (see analysis.test.cc).
RC_GTEST_PROP(Dragonfly, NeverStopsOverLanes, ()) {
  const auto between = [](int least, int most) { return *rc::gen::inRange(least, most + 1); };
  Shape shape;
  shape.routers = between(1, 4);
  shape.hosts = between(1, 2);
  shape.global = between(1, 2);
  shape.groups = between(1, std::min(6, shape.routers * shape.global + 1));
  if (shape.servers() < 2) ++shape.groups;
  const char* routing = *rc::gen::element("minimal", "valiant", "ugal");
  const bool pfc = *rc::gen::arbitrary<bool>();
  const std::string pattern = *rc::gen::element<std::string>("all_to_all", "random", "permutation");
  const Report report = run_on(
      shape, routing, fmt::format(R"("pattern": "{}", "size": "{} KB")", pattern, between(1, 200)),
      pfc ? "ethernet" : "c2c",
      pfc ? R"("congestion_control": "none", "buffer": "8 MB", "pfc": {"xoff": "9 KB", "xon": "4 KB"})"
          : R"("credit": "9 KB")");
  RC_ASSERT(report.time_s > 0);
  RC_ASSERT(report.network.dropped == 0U);
}

// The only link between two groups is lost for good while traffic crosses it: what is left goes around.
TEST(Dragonfly, TrafficGoesAroundALinkThatIsLost) {
  const Shape shape;
  test::TinyOptions options;
  options.servers = shape.servers();
  options.network =
      R"("generator": "dragonfly", "routers_per_group": 4, "hosts_per_router": 2,
         "global_links_per_router": 2, "routing": "ugal")";
  const Fabric fabric = test::fabric_from("gpu g -- 400 Gb/s, 0 ns -- nic n", options);
  std::string between_groups;
  for (std::uint32_t l = 0; l < fabric.link_count(); ++l) {
    const Link& link = fabric.link(LinkId{l});
    const std::string from = fabric.name(link.from), to = fabric.name(link.to);
    if (link.tier == Tier::global && from.starts_with("group0/") && to.starts_with("group1/"))
      between_groups = fabric.name(LinkId{l});
  }
  ASSERT_FALSE(between_groups.empty());
  const std::string faults = fmt::format(
      R"("faults": [{{"target": "{}", "do": "down", "at": "20 us", "reroute": "30 us"}}])",
      between_groups);
  const std::string job =
      R"("workload": {"flows": [{"src": "server0/g", "dst": "server9/g", "size": "4 MB"}]})";
  const Report report = test::run(fabric, R"("fidelity": "packet", )" + faults + ", " + job);
  EXPECT_GT(report.network.dropped, 0U);
  EXPECT_GT(report.network.retransmitted, 0U);
  EXPECT_LT(report.time_s, 4e6 * 8 / 100e9 + 3e-3);  // a timeout or two
}

TEST(Dragonfly, AtFlowLevelDetoursAreShared) {
  const Shape shape;
  test::TinyOptions options;
  options.servers = shape.servers();
  options.network =
      R"("generator": "dragonfly", "routers_per_group": 4, "hosts_per_router": 2,
         "global_links_per_router": 2, "routing": "valiant")";
  const Report report = test::run(test::fabric_from("gpu g -- 400 Gb/s, 0 ns -- nic n", options),
                                  fmt::format(R"("workload": {{{}}})", adversarial(shape, 100)));
  EXPECT_NEAR(throughput(report), 0.4375, 0.0005);
}

}  // namespace
}  // namespace weft
