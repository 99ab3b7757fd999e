// SPDX-License-Identifier: Apache-2.0
// Law 5, the exact part: short cuts of the solver change nothing, and a seed says everything that is random.
#include <cmath>
#include <set>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "tests/support/tiny.hpp"

namespace weft {
namespace {

Fabric leaves(std::string_view routing) {
  return test::fabric_from(
      "gpu g[0-1] -- 400 Gb/s, 100 ns -- pcie_switch p; nic n -- 400 Gb/s, 100 ns -- p",
      {.servers = 8, .network = test::leaf_spine(4, 2, routing) + R"(, "oversubscription": 2)"});
}

const char* const kMixed = R"("jobs": [
    {"name": "reduce", "collective": "all_reduce", "algorithm": "ring", "size": "9 MB", "gpus": 8, "repeat": 3},
    {"name": "shuffle", "collective": "all_to_all", "size": "5 MB", "gpus": 4, "start": "30 us", "repeat": 2},
    {"name": "noise", "pattern": "random", "size": "1 MB", "repeat": "until-end"}], "observe": {"top": 1000})";

TEST(SolverShortCuts, ChangeNoResultByMoreThanAPicosecond) {
  const Fabric fabric = leaves("ecmp");
  const std::string job = std::string(kMixed);
  const Report base = test::run(fabric, job);
  for (const auto& [merge, remember] :
       {std::pair{false, true}, std::pair{true, false}, std::pair{false, false}}) {
    const Report other = test::run(
        fabric, job + fmt::format(R"(, "models": {{"merge_classes": {}, "remember_repeats": {}}})",
                                  merge, remember));
    EXPECT_NEAR(static_cast<double>(test::time_of(other).ps),
                static_cast<double>(test::time_of(base).ps), 1);
    ASSERT_EQ(other.jobs.size(), base.jobs.size());
    for (std::size_t j = 0; j < base.jobs.size(); ++j) {
      EXPECT_NEAR(other.jobs[j].finish_s, base.jobs[j].finish_s, 1.5e-12) << base.jobs[j].name;
      EXPECT_EQ(other.jobs[j].iterations, base.jobs[j].iterations);
    }
    ASSERT_EQ(other.flows.size(), base.flows.size());
    for (std::size_t f = 0; f < base.flows.size(); ++f)
      EXPECT_NEAR(other.flows[f].finish_s, base.flows[f].finish_s, 1.5e-12);
  }
}

TEST(SolverShortCuts, AreTakenWhereFlowsAreEqual) {
  const Fabric fabric = test::fabric_from("gpu a -- 400 Gb/s, 500 ns -- gpu b");
  std::string flows;
  for (int i = 0; i < 10; ++i)
    flows += std::string(i > 0 ? "," : "") + R"({"src": "a", "dst": "b", "size": "1 MB"})";
  EXPECT_GT(test::run(fabric, fmt::format(R"("workload": {{"flows": [{}]}})", flows))
                .network.merged_flows,
            0U);
}

TEST(SolverShortCuts, AreExactForCollectivesOfTheCatalogue) {
  for (const char* reference :
       {"dgx1-v100", R"({"use": "hgx-h100+ib-ndr", "set": {"/servers": 2}})"}) {
    const Fabric fabric = test::catalogue_fabric(reference);
    for (
        const char* job :
        {R"("collective": "all_to_all", "size": "7 MB", "repeat": 2)",
         R"("collective": "all_reduce", "algorithm": "ring", "expand": true, "size": "7 MB")",
         R"("collective": "all_reduce", "algorithm": "double_binary_tree", "expand": true, "size": "7 MB")"}) {
      std::set<std::int64_t> times;
      for (const auto& [merge, remember] : {std::pair{true, true}, std::pair{false, true},
                                            std::pair{true, false}, std::pair{false, false}}) {
        times.insert(
            test::time_of(
                test::run(
                    fabric,
                    fmt::format(
                        R"("workload": {{{}}}, "models": {{"merge_classes": {}, "remember_repeats": {}}})",
                        job, merge, remember)))
                .ps);
      }
      EXPECT_LE(*times.rbegin() - *times.begin(), 1) << reference << " " << job;
    }
  }
}

TEST(Fingerprint, IsTheSameForTheSameSeed) {
  for (const char* level : {"analytic", "fluid"}) {
    for (const char* routing : {"ecmp", "spray", "single"}) {
      const std::string job =
          std::string(kMixed) + fmt::format(R"(, "seed": 42, "fidelity": "{}")", level);
      const Fabric fabric = leaves(routing), again = leaves(routing);
      EXPECT_EQ(test::run(fabric, job).fingerprint, test::run(again, job).fingerprint)
          << level << routing;
      EXPECT_EQ(test::run(fabric, job).fingerprint, test::run(fabric, job).fingerprint)
          << level << routing;
    }
  }
}

TEST(Fingerprint, MovesWithTheSeedWhereSomethingIsRandom) {
  const auto prints = [](std::string_view routing, std::string_view job) {
    std::set<std::string> out;
    const Fabric fabric = leaves(routing);
    for (int seed = 1; seed <= 8; ++seed) {
      out.insert(test::run(fabric, fmt::format(R"("seed": {}, "workload": {{{}, "size": "1 MB"}})",
                                               seed, job))
                     .fingerprint);
    }
    return out.size();
  };
  EXPECT_GT(prints("ecmp", R"("pattern": "all_to_all")"), 1U) << "hashes";
  EXPECT_GT(prints("spray", R"("pattern": "random")"), 1U) << "pairs";
  EXPECT_GT(prints("spray",
                   R"("collective": "all_reduce", "gpus": 5, "placement": {"policy": "random"})"),
            1U)
      << "places";
  EXPECT_EQ(prints("spray", R"("collective": "all_reduce")"), 1U) << "nothing is random here";
  EXPECT_EQ(prints("single", R"("pattern": "all_to_all")"), 1U) << "nothing is random here";
}

TEST(Fingerprint, IsNotMovedByWhatIsOnlyReported) {
  const Fabric fabric = leaves("ecmp");
  const std::string plain = test::run(fabric, kMixed).fingerprint;
  EXPECT_EQ(plain,
            test::run(fabric, std::string(kMixed) + R"(, "name": "another name")").fingerprint);
  RunContext context = test::context();
  context.explain = true;
  Diagnostics out;
  EXPECT_EQ(plain,
            run_on(fabric, test::scenario_on(fabric, kMixed, out), context, out).fingerprint);
}

TEST(Iterations, RepeatsOfADeterministicJobTakeTheSameTime) {
  const Fabric fabric = test::catalogue_fabric("dgx1-v100");
  const Report once =
      test::run(fabric, R"("workload": {"collective": "all_reduce", "size": "10 MB"})");
  const Report often = test::run(
      fabric, R"("workload": {"collective": "all_reduce", "size": "10 MB", "repeat": 50})");
  EXPECT_NEAR(often.time_s, 50 * once.time_s, 50e-12);
  EXPECT_NEAR(often.jobs[0].time_s, once.time_s, 1e-12);
}

TEST(Groups, DisjointGroupsOverOneSwitchDoNotDisturbEachOther) {
  const Fabric fabric = test::fabric_from("gpu g[0-7] -- 400 Gb/s, 100 ns -- nvswitch s");
  const Report one =
      test::run(fabric, R"("workload": {"collective": "all_reduce", "size": "10 MB", "gpus": 4})");
  const Report two = test::run(
      fabric, R"("workload": {"collective": "all_reduce", "size": "10 MB", "group_size": 4})");
  const Report strided = test::run(
      fabric,
      R"("workload": {"collective": "all_reduce", "size": "10 MB", "group_size": 4, "group_stride": 2})");
  EXPECT_EQ(test::time_of(two), test::time_of(one));
  EXPECT_EQ(test::time_of(strided), test::time_of(one));
  EXPECT_EQ(two.jobs[0].groups.size(), 2U);
}

TEST(Groups, GroupsOfNcclUseTheirOwnLinks) {
  const Fabric fabric =
      test::catalogue_fabric(R"({"use": "hgx-h100+ib-ndr", "set": {"/servers": 2}})");
  const auto job = [](const char* keys) {
    return fmt::format(
        R"("nccl": {{}}, "observe": {{"top": 1000}}, "workload": {{"collective": "all_gather", "size": "1 GiB", {}}})",
        keys);
  };
  const Report one = test::run(fabric, job(R"("gpus": 8)"));
  const Report two = test::run(fabric, job(R"("group_size": 8)"));
  EXPECT_EQ(test::time_of(two), test::time_of(one));
  EXPECT_EQ(two.links.size(), 2 * one.links.size());
}

}  // namespace
}  // namespace weft
