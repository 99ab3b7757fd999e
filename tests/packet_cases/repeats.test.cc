// SPDX-License-Identifier: Apache-2.0
// Iterations that repeat are not run: what is reported is what the full run reports, or as near as the report says.
#include <cmath>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/tiny.hpp"

namespace weft {
namespace {

Report run_with(bool remember, const std::string& network_class, const std::string& members) {
  test::TinyOptions options;
  options.servers = 8;
  options.network = test::leaf_spine(4, 2);
  options.network_class = network_class;
  return test::run(test::fabric_from("gpu g -- 400 Gb/s, 0 ns -- nic n", options),
                   fmt::format(R"("models": {{"repeat_memory": {}}}, {})", remember, members));
}

const FastForward& rest_of(const Report& report) { return *report.jobs.front().fast_forward; }

TEST(RepeatMemory, IsExactWhereNothingIsLostOrMarked) {
  for (const char* fidelity : {"packet", "fluid"}) {
    const std::string members = fmt::format(
        R"("fidelity": "{}", "observe": {{"top": 1000}},
           "workload": {{"collective": "all_reduce", "size": "1 MB", "repeat": 40}})",
        fidelity);
    const Report full = run_with(false, "c2c", members), quick = run_with(true, "c2c", members);
    EXPECT_FALSE(full.jobs.front().fast_forward);
    ASSERT_TRUE(quick.jobs.front().fast_forward) << fidelity;
    EXPECT_EQ(rest_of(quick).bound, 0_ns);
    EXPECT_GT(rest_of(quick).skipped, 30U);
    EXPECT_EQ(rest_of(quick).skipped + rest_of(quick).simulated, 40U);
    EXPECT_EQ(std::llround(quick.time_s * 1e12), std::llround(full.time_s * 1e12)) << fidelity;
    EXPECT_EQ(quick.jobs.front().iterations, 40U);
    EXPECT_NEAR(quick.jobs.front().time_s, full.jobs.front().time_s, 1e-15);
    EXPECT_EQ(quick.network.packet_hops, full.network.packet_hops);
    EXPECT_EQ(quick.network.control_hops, full.network.control_hops);
    ASSERT_EQ(quick.links.size(), full.links.size());
    for (std::size_t i = 0; i < full.links.size(); ++i) {
      EXPECT_EQ(quick.links[i].id, full.links[i].id);
      EXPECT_NEAR(quick.links[i].bytes, full.links[i].bytes, 1e-6 * full.links[i].bytes);
    }
  }
}

// DCQCN's state outlives a message, and which packets are marked is drawn anew: no two iterations are the same.
TEST(RepeatMemory, StaysWithinItsBoundUnderCongestionControl) {
  const std::string members =
      R"("fidelity": "packet", "workload": {"repeat": 80, "flows": [
           {"src": "server0/g", "dst": "server7/g", "size": "8 MB"},
           {"src": "server1/g", "dst": "server7/g", "size": "8 MB"}]})";
  const Report full = run_with(false, "ethernet", members),
               quick = run_with(true, "ethernet", members);
  ASSERT_GT(full.network.marks, 0U);
  ASSERT_TRUE(quick.jobs.front().fast_forward);
  const FastForward& rest = rest_of(quick);
  EXPECT_GT(rest.skipped, 20U);
  EXPECT_GT(rest.bound, 0_ns);
  EXPECT_LE(std::abs(quick.time_s - full.time_s), rest.bound.seconds());
  EXPECT_LT(rest.bound.seconds(), 0.05 * full.time_s);
  EXPECT_THAT(quick.jobs.front().notes, testing::Contains(testing::HasSubstr("were not run")));
}

// What could end a repetition keeps it from being taken for granted.
TEST(RepeatMemory, WaitsForOtherJobsAndFaults) {
  const std::string job = R"({"collective": "all_reduce", "size": "1 MB", "repeat": 20)";
  const Report endless =
      run_with(true, "c2c",
               R"("fidelity": "packet", "jobs": [)" + job +
                   R"(, "gpus": 4}, {"name": "other", "pattern": "ring", "gpus": 4,
                                                        "size": "100 KB", "repeat": "until-end"}])");
  EXPECT_FALSE(endless.jobs.front().fast_forward);
  const Report fault = run_with(
      true, "c2c",
      R"("fidelity": "packet", "faults": [{"target": "leaf0:spine0", "do": "degrade", "at": "100 s"}],
         "jobs": [)" +
          job + "}]");
  EXPECT_FALSE(fault.jobs.front().fast_forward);
  const Report two = run_with(true, "c2c",
                              R"("fidelity": "packet", "jobs": [)" + job +
                                  R"(, "gpus": 4}, {"name": "first", "pattern": "ring", "gpus": 4,
                                                    "size": "1 MB"}])");
  ASSERT_TRUE(two.jobs.front().fast_forward) << "the other one has ended";
}

}  // namespace
}  // namespace weft
