// SPDX-License-Identifier: Apache-2.0
// Collectives in switches and a library's channels: one scenario at fluid and at packet level, and what links carry.
#include <algorithm>
#include <cmath>
#include <map>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "sim/core/check.hpp"
#include "sim/core/diagnostics.hpp"
#include "tests/support/tiny.hpp"

namespace weft {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::Ge;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Le;

std::string at(std::string_view level, const std::string& jobs, const std::string& more = {}) {
  return fmt::format(R"("fidelity": "{}", "observe": {{"top": 100000}}, {} "jobs": [{}])", level,
                     more, jobs);
}

double ratio(const Fabric& fabric, const std::string& jobs, const std::string& more = {}) {
  return test::run(fabric, at("packet", jobs, more)).time_s /
         test::run(fabric, at("fluid", jobs, more)).time_s;
}

std::map<std::string, double> payload(const Fabric& fabric, std::string_view level,
                                      const std::string& jobs, const std::string& more = {}) {
  std::map<std::string, double> out;
  for (const LinkReport& link : test::run(fabric, at(level, jobs, more)).links)
    out[link.id] = link.bytes;
  return out;
}

// Bytes of every link (of this name) at packet level as at fluid level, but for packets that cannot be cut.
void expect_same_bytes(const Fabric& fabric, const std::string& jobs, double tolerance,
                       const std::string& more = {}, std::string_view named = "") {
  const auto packet = payload(fabric, "packet", jobs, more),
             fluid = payload(fabric, "fluid", jobs, more);
  int links = 0;
  for (const auto& [link, bytes] : fluid) {
    if (link.find(named) == link.npos) continue;
    ASSERT_TRUE(packet.contains(link)) << link;
    EXPECT_NEAR(packet.at(link), bytes, tolerance) << link;
    ++links;
  }
  EXPECT_GT(links, 0);
}

// Hosts with one H100 and one port each, `per_leaf` to a leaf.
Fabric quantum(int servers, int per_leaf, const std::string& chassis = R"("qm9700")") {
  return test::catalogue_fabric(fmt::format(
      R"({{"servers": {}, "server": {{"use": "h100-1gpu", "set": {{"/nodes/4/model": "cx7-ndr"}}}},
          "network": {{"generator": "leaf-spine", "hosts_per_leaf": {}, "spines": 2, "switch": {},
                       "link": "ib-ndr", "routing": "ecmp"}}}})",
      servers, per_leaf, chassis));
}

constexpr const char* kKinds[] = {"all_reduce", "reduce_scatter", "all_gather", "broadcast",
                                  "reduce"};

std::string in_switch(std::string_view kind, std::string_view size) {
  return fmt::format(R"({{"collective": "{}", "algorithm": "in_switch", "size": "{}"}})", kind,
                     size);
}

std::string in_network(std::string_view kind, std::string_view size, std::string_view more = "") {
  return fmt::format(R"({{"collective": "{}", "algorithm": "in_network", "size": "{}"{}}})", kind,
                     size, more);
}

// ---- NVLink

TEST(InSwitch, IsAsFastAsAtFluidLevel) {
  const Fabric fabric = test::catalogue_fabric("hgx-h100");
  for (const char* kind : kKinds) {
    EXPECT_NEAR(ratio(fabric, in_switch(kind, "64 MiB")), 1, 0.02) << kind;
    EXPECT_NEAR(ratio(fabric, in_switch(kind, "4 MiB")), 1, 0.06) << kind;
  }
}

TEST(InSwitch, MovesTheSameBytesAsAtFluidLevel) {
  const Fabric fabric = test::catalogue_fabric("hgx-h100");
  for (const char* kind : kKinds) expect_same_bytes(fabric, in_switch(kind, "8 MiB"), 4096);
}

TEST(InSwitch, IsWhatAnAllReduceOfOneServerTakesByItself) {
  const Fabric fabric = test::catalogue_fabric("hgx-h100");
  const Report report =
      test::run(fabric, at("packet", R"({"collective": "all_reduce", "size": "8 MiB"})"));
  EXPECT_EQ(report.jobs[0].algorithm, "in_switch");
}

// ---- trees in the network

TEST(InNetwork, SendsTheVectorOnceUpAndOnceDownEveryLinkOfItsTree) {
  const std::string all_reduce = in_network("all_reduce", "4 MiB");
  for (const int servers : {4, 8, 12}) {
    const Fabric fabric = quantum(servers, 4);
    int links = 0;
    for (const auto& [link, bytes] : payload(fabric, "packet", all_reduce)) {
      if (bytes == 0) continue;
      EXPECT_EQ(bytes, 4 << 20) << link;
      ++links;
    }
    // GPU to PCIe switch, to NIC, to leaf, both ways; leaf to spine where there are several.
    EXPECT_EQ(links, 2 * (3 * servers + (servers > 4 ? servers / 4 : 0)));
    // A ring moves 2 (n - 1) / n of it, whatever the tree.
    const std::string ring =
        R"({"collective": "all_reduce", "algorithm": "ring", "channels": 1, "size": "4 MiB"})";
    for (const auto& [link, bytes] : payload(fabric, "packet", ring)) {
      if (link.find("nic0") == link.npos || bytes == 0) continue;
      EXPECT_NEAR(bytes, 2.0 * (servers - 1) / servers * (4 << 20), 64 * servers) << link;
    }
  }
}

TEST(InNetwork, IsAsFastAsAtFluidLevelAndMovesTheSameBytes) {
  const Fabric fabric = quantum(8, 4);
  for (const char* kind : kKinds) {
    EXPECT_NEAR(ratio(fabric, in_network(kind, "64 MiB")), 1, 0.02) << kind;
    expect_same_bytes(fabric, in_network(kind, "4 MiB"), 8 * 4096);
  }
}

TEST(InNetwork, IsAsSlowAsItsSlowestMember) {
  const Fabric fabric = quantum(8, 4);
  const std::string slow =
      R"("faults": [{"target": "server5/nic0:leaf1", "do": "degrade", "factor": 0.25}],)";
  const double before = test::run(fabric, at("packet", in_network("all_reduce", "32 MiB"))).time_s;
  const double after =
      test::run(fabric, at("packet", in_network("all_reduce", "32 MiB"), slow)).time_s;
  EXPECT_NEAR(after / before, 4, 0.1);
  EXPECT_NEAR(ratio(fabric, in_network("all_reduce", "32 MiB"), slow), 1, 0.02);
}

TEST(InNetwork, IsBoundByTheBufferOfASwitchOverTheRoundTrip) {
  const std::string job = in_network("all_reduce", "8 MiB");
  double rates[3];
  for (int i = 0; i < 3; ++i) {
    const Fabric fabric = quantum(
        8, 4,
        fmt::format(R"({{"use": "qm9700", "set": {{"/reduction/buffer": "{} KiB"}}}})", 9 << i));
    rates[i] = (8 << 20) / test::run(fabric, at("packet", job)).time_s;
  }
  EXPECT_NEAR(rates[1] / rates[0], 2, 0.05);
  EXPECT_NEAR(rates[2] / rates[1], 2, 0.05);
  const double free = (8 << 20) / test::run(quantum(8, 4), at("packet", job)).time_s;
  EXPECT_LT(rates[2], 0.6 * free);
}

TEST(InNetwork, OfTwoGroupsInOneContextRunsARingForTheSecond) {
  const Fabric fabric = quantum(8, 4, R"({"use": "qm9700", "set": {"/reduction/contexts": 1}})");
  const std::string two = in_network("all_reduce", "4 MiB", R"(, "gpus": 4, "name": "first")") +
                          "," + in_network("all_reduce", "4 MiB", R"(, "gpus": 4, "name": "second",
                                     "placement": {"policy": "packed"})");
  // Each has a leaf for itself.
  Report report = test::run(fabric, at("packet", two));
  EXPECT_EQ(report.jobs[0].algorithm, "in_network");
  EXPECT_EQ(report.jobs[1].algorithm, "in_network");
  // One leaf for both.
  const Fabric crowded = quantum(8, 8, R"({"use": "qm9700", "set": {"/reduction/contexts": 1}})");
  for (const char* level : {"packet", "fluid", "analytic"}) {
    report = test::run(crowded, at(level, two));
    EXPECT_EQ(report.jobs[0].algorithm, "in_network");
    EXPECT_EQ(report.jobs[1].algorithm, "ring");
    EXPECT_THAT(report.jobs[1].notes, ElementsAre(HasSubstr("has no context left (1 taken)")));
  }
}

TEST(InNetwork, RunsOverLosslessEthernetAndRefusesToLose) {
  const Fabric fabric = test::catalogue_fabric(
      R"({"servers": 8, "server": "h100-1gpu",
          "network": {"generator": "leaf-spine", "hosts_per_leaf": 4, "spines": 2,
                      "switch": {"use": "sn5600", "set": {"/reduction": {"contexts": 4}}},
                      "link": "roce-400g", "routing": "ecmp"}})");
  const std::string job = in_network("all_reduce", "32 MiB");
  EXPECT_NEAR(ratio(fabric, job), 1, 0.02);
  try {
    test::run(fabric, at("packet", job, R"("models": {"packet": {"pfc": {"enabled": false}}},)"));
    FAIL() << "packets may be lost";
  } catch (const LimitReached& problem) {
    EXPECT_THAT(problem.what(), HasSubstr("turn PFC on"));
  }
}

TEST(InNetwork, NeedsSwitchesThatReduce) {
  const Fabric fabric = quantum(4, 4, R"("sb7800")");
  EXPECT_THROW(test::run(fabric, at("packet", in_network("all_reduce", "1 MiB"))), InputError);
}

TEST(InSwitches, TwoRunsAreTheSame) {
  const Fabric fabric = quantum(8, 4);
  const std::string jobs = in_network("all_reduce", "4 MiB", R"(, "gpus": 6)") +
                           R"(, {"pattern": "permutation", "gpus": 2, "size": "4 MiB"})";
  const Report a = test::run(fabric, at("packet", jobs)), b = test::run(fabric, at("packet", jobs));
  EXPECT_EQ(a.fingerprint, b.fingerprint);
  EXPECT_EQ(a.time_s, b.time_s);
}

// ---- a library's channels

struct Planned {
  const char* fabric;
  const char* algorithm;
  const char* size;
  double least, most;  // of the time at fluid level
};
TEST(Nccl, RunsItsChannelsInPacketsAsFastAsAtFluidLevel) {
  for (const Planned& planned : {Planned{"hgx-h100", "nvls", "64 MiB", 0.97, 1.03},
                                 Planned{"hgx-h100", "ring", "64 MiB", 0.97, 1.05},
                                 Planned{"hgx-h100", "tree", "64 MiB", 0.95, 1.10}}) {
    const Fabric fabric = test::catalogue_fabric(planned.fabric);
    const std::string job =
        fmt::format(R"({{"collective": "all_reduce", "size": "{}"}})", planned.size);
    const std::string nccl =
        fmt::format(R"("nccl": {{"version": "2.27", "algorithm": "{}"}},)", planned.algorithm);
    const Report report = test::run(fabric, at("packet", job, nccl));
    EXPECT_THAT(report.jobs[0].algorithm, HasSubstr(planned.algorithm));
    EXPECT_THAT(ratio(fabric, job, nccl), AllOf(Ge(planned.least), Le(planned.most)))
        << planned.fabric << " " << planned.algorithm;
  }
}

TEST(Nccl, RunsEveryKindInPackets) {
  const Fabric fabric = test::catalogue_fabric("hgx-h100");
  const std::string nccl = R"("nccl": {"version": "2.27", "algorithm": "ring"},)";
  for (const char* kind : {"all_gather", "reduce_scatter", "broadcast", "reduce"}) {
    const std::string job = fmt::format(R"({{"collective": "{}", "size": "64 MiB"}})", kind);
    EXPECT_THAT(ratio(fabric, job, nccl), AllOf(Ge(0.95), Le(1.10))) << kind;
    expect_same_bytes(fabric, job, 1e5, nccl);
  }
  const std::string free = R"("nccl": {"version": "2.27"},)";
  EXPECT_THAT(ratio(fabric, R"({"collective": "all_to_all", "size": "64 MiB"})", free),
              AllOf(Ge(0.9), Le(1.1)));
}

TEST(Nccl, JoinsNodesByTheNicsItTakes) {
  const Fabric fabric =
      test::catalogue_fabric(R"({"use": "hgx-h100+ib-ndr", "set": {"/servers": 2}})");
  for (const char* algorithm : {"ring", "tree"}) {
    const std::string nccl =
        fmt::format(R"("nccl": {{"version": "2.27", "algorithm": "{}"}},)", algorithm);
    const std::string job = R"({"collective": "all_reduce", "size": "32 MiB"})";
    EXPECT_THAT(ratio(fabric, job, nccl), AllOf(Ge(0.90), Le(1.10))) << algorithm;
    expect_same_bytes(fabric, job, 1e4, nccl, "nic");
  }
}

// One GPU per node: rounds at distances 1, 2, 4, the last of them shorter where the ranks are no power of two.
TEST(Nccl, RunsPatInRoundsOverTheNetwork) {
  const std::string nccl = R"("nccl": {"version": "2.27", "algorithm": "pat"},)";
  for (const int servers : {5, 8}) {
    const Fabric fabric = quantum(servers, 4);
    for (const char* kind : {"all_gather", "reduce_scatter"}) {
      for (const char* size : {"8 KiB", "32 MiB"}) {
        const std::string job = fmt::format(R"({{"collective": "{}", "size": "{}"}})", kind, size);
        EXPECT_THAT(test::run(fabric, at("packet", job, nccl)).jobs[0].algorithm, HasSubstr("pat"));
        EXPECT_THAT(ratio(fabric, job, nccl), AllOf(Ge(1.0), Le(1.03))) << kind << " " << size;
        expect_same_bytes(fabric, job, 64, nccl);
      }
    }
  }
}

// Its collectives are the channels of the library.
TEST(Training, StepsAsFastAsAtFluidLevel) {
  const Fabric fabric = test::catalogue_fabric("hgx-h100");
  const std::string job =
      R"({"kind": "training", "model": "llama-2-7b", "seq": 256, "global_batch": 1, "plan": {"tp": 8}})";
  for (const char* version : {"2.27", "2.14"}) {
    const std::string more = fmt::format(
        R"("models": {{"packet": {{"grain": "64 KiB"}}}}, "nccl": {{"version": "{}"}},)", version);
    EXPECT_THAT(ratio(fabric, job, more), AllOf(Ge(0.9), Le(1.1))) << version;
  }
}

// What is timed alone is timed with flows.
TEST(Inference, RunsInAScenarioOfPackets) {
  const Fabric fabric = test::catalogue_fabric("hgx-h100");
  const std::string job =
      R"({"kind": "inference", "model": "llama-2-7b", "gpus": 8, "plan": {"tp": 8},
          "requests": {"arrival": "closed", "concurrency": 4, "count": 8, "prompt": 64, "output": 8}})";
  const Report report = test::run(fabric, at("packet", job, R"("nccl": {"version": "2.27"},)"));
  EXPECT_GT(report.time_s, 0);
}

TEST(Nccl, SaysThatNvlsBetweenNodesIsNotThereYet) {
  const Fabric fabric = test::catalogue_fabric("hgx-h100+ib-ndr");
  const std::string job = R"({"collective": "all_reduce", "size": "64 MiB"})";
  try {
    test::run(fabric,
              at("packet", job, R"("nccl": {"version": "2.27", "algorithm": "nvls_tree"},)"));
    FAIL() << "it runs";
  } catch (const LimitReached& problem) {
    EXPECT_THAT(problem.what(), HasSubstr("NVLS between nodes"));
  }
}

}  // namespace
}  // namespace weft
