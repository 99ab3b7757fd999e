// SPDX-License-Identifier: Apache-2.0
// Case P07: a bond of two ports of 200 Gb/s. One queue pair takes one port; several balance by chance, and a fuller port does not
// hold back the other one, for the NIC serves its ports apart.
#include <algorithm>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "tests/support/tiny.hpp"

namespace weft {
namespace {

constexpr double kPort = 24.5;  // GB/s of payload

const Fabric& bonded() {
  static const Fabric fabric = test::catalogue_fabric(
      R"({"servers": 2, "server": {"use": "h100-1gpu", "set": {"/nodes/4/model": "cx7-roce-2x200g"}},
          "network": {"generator": "single-switch", "switch": "tomahawk4-128x200g", "link": "roce-200g",
                      "routing": "ecmp"}})");
  return fabric;
}

Report run(const char* level, int queue_pairs, int seed, const char* more = "") {
  return test::run(
      bonded(), fmt::format(
                    R"("fidelity": "{}", "seed": {}, "jobs": [{{"name": "bond", "queue_pairs": {},
             "flows": [{{"src": "server0/gpu0", "dst": "server1/gpu0", "size": "32 MiB"}}]}}]{})",
                    level, seed, queue_pairs, more));
}

double rate(const Report& report) { return 32 * 1.048576e-3 / report.time_s; }

TEST(Bond, OneQueuePairTakesOnePort) {
  const double reached = rate(run("packet", 1, 1));
  EXPECT_LE(reached, kPort);
  EXPECT_GT(reached, 0.95 * kPort);
}

TEST(Bond, SeveralBalanceByChanceAsAtFluidLevel) {
  double least = 2 * kPort, most = 0, sum = 0;
  constexpr int kSeeds = 8;
  for (int seed = 1; seed <= kSeeds; ++seed) {
    const Report packets = run("packet", 8, seed);
    EXPECT_NEAR(packets.time_s / run("fluid", 8, seed).time_s, 1, 0.05) << seed;
    least = std::min(least, rate(packets));
    most = std::max(most, rate(packets));
    sum += rate(packets) / kSeeds;
  }
  EXPECT_GT(least, 0.95 * kPort);
  EXPECT_LT(most, 2 * kPort);
  EXPECT_GT(sum, 1.2 * kPort);
  EXPECT_LT(least, sum);
}

// Two more servers crowd the port by which server0 sends its first flow; its second flow leaves by the other one.
TEST(Bond, ACrowdedPortDoesNotStopTheOther) {
  const Fabric fabric = test::catalogue_fabric(
      R"({"servers": 5, "server": {"use": "h100-1gpu", "set": {"/nodes/4/model": "cx7-roce-2x200g"}},
          "network": {"generator": "single-switch", "switch": "tomahawk4-128x200g", "link": "roce-200g",
                      "routing": "ecmp"}})");
  // All seeds whose hashes send the two flows of server0 by different ports: then nothing that is crowded is shared.
  int apart = 0;
  for (int seed = 1; seed <= 12; ++seed) {
    const Report report = test::run(
        fabric,
        fmt::format(
            R"("fidelity": "packet", "seed": {}, "models": {{"packet": {{"congestion_control": "none"}}}},
               "jobs": [{{"name": "all", "flows": [
                  {{"src": "server0/gpu0", "dst": "server4/gpu0", "size": "16 MiB"}},
                  {{"src": "server1/gpu0", "dst": "server4/gpu0", "size": "16 MiB"}},
                  {{"src": "server2/gpu0", "dst": "server4/gpu0", "size": "16 MiB"}},
                  {{"src": "server0/gpu0", "dst": "server3/gpu0", "size": "16 MiB"}}]}}],
               "observe": {{"top": 1000}})",
            seed));
    std::size_t ports = 0;
    for (const LinkReport& link : report.links)
      ports += link.id.starts_with("server0/nic0:switch0") && link.bytes > 0 ? 1 : 0;
    if (ports < 2) continue;
    ++apart;
    const auto free = std::ranges::find(report.flows, "all/3", &FlowReport::id);
    ASSERT_NE(free, report.flows.end());
    EXPECT_NEAR(free->finish_s, 16 * 1.048576e-3 / kPort, 0.03 * 16 * 1.048576e-3 / kPort) << seed;
  }
  EXPECT_GT(apart, 2);
}

}  // namespace
}  // namespace weft
