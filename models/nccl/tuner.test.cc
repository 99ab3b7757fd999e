// SPDX-License-Identifier: Apache-2.0
#include "models/nccl/tuner.hpp"

#include <algorithm>

#include "models/nccl/nccl.test.hpp"
#include "models/nccl/predict.hpp"

namespace weft::nccl::testing {
namespace {

using enum CollectiveKind;
using ::testing::HasSubstr;

NcclFilter filter_of(std::map<std::string, std::string> variables) {
  Diagnostics out;
  NcclFilter filter = nccl_filter({std::move(variables)}, out);
  EXPECT_TRUE(out.ok()) << out.text();
  return filter;
}

std::string problem_of(std::map<std::string, std::string> variables) {
  Diagnostics out;
  nccl_filter({std::move(variables)}, out);
  return out.text();
}

std::vector<NcclChoice> choices(const NcclTopology& topology, NcclVersion version,
                                CollectiveKind kind, Bytes bytes,
                                std::map<std::string, std::string> variables = {}) {
  return nccl_choices(topology, nccl_release(version), filter_of(std::move(variables)), kind,
                      bytes);
}

bool offers(const std::vector<NcclChoice>& choices, NcclAlgorithm algorithm) {
  return std::ranges::any_of(choices,
                             [&](const NcclChoice& c) { return c.algorithm == algorithm; });
}

// Measured on 8 H200 with 2.27: one kernel up to 1 MiB, another from 2 MiB on.
TEST(NcclTuner, EightHopperGpusGoFromLlRingToTheSwitchAtTwoMebibytes) {
  const NcclVersion version{2, 27, 7};
  const NcclTopology topology = study(servers("hgx-h100"), version);
  const NcclChoice before = choices(topology, version, all_reduce, 1_MiB).front();
  EXPECT_EQ(before.algorithm, NcclAlgorithm::ring);
  EXPECT_EQ(before.protocol, NcclProtocol::ll);
  for (const Bytes bytes : {2_MiB, 16_MiB, 1_GiB, 8_GiB}) {
    const NcclChoice choice = choices(topology, version, all_reduce, bytes).front();
    EXPECT_EQ(choice.algorithm, NcclAlgorithm::nvls) << to_text(bytes);
    EXPECT_EQ(choice.protocol, NcclProtocol::simple) << to_text(bytes);
  }
}

TEST(NcclTuner, ChoicesAreSortedByWhatNcclBelieves) {
  const NcclVersion version{2, 21, 5};
  const NcclTopology topology = study(servers("hgx-h100", 4), version);
  for (const CollectiveKind kind : {all_reduce, all_gather, reduce_scatter, broadcast, reduce}) {
    const auto all = choices(topology, version, kind, 4_MiB);
    ASSERT_FALSE(all.empty());
    EXPECT_TRUE(std::ranges::is_sorted(all, {}, &NcclChoice::believed_us));
    EXPECT_GT(all.front().believed_us, 0);
  }
  // The time believed grows with the size, whatever the combination.
  for (const NcclChoice& small : choices(topology, version, all_reduce, 64_MiB)) {
    for (const NcclChoice& large : choices(topology, version, all_reduce, 256_MiB)) {
      if (small.algorithm != large.algorithm || small.protocol != large.protocol) continue;
      EXPECT_GT(large.believed_us, small.believed_us);
    }
  }
}

TEST(NcclTuner, AlgorithmsCameWithReleases) {
  const Fabric one = servers("hgx-h100"), two = servers("hgx-h100", 2);
  const auto has = [&](const Fabric& fabric, NcclVersion version, CollectiveKind kind,
                       NcclAlgorithm algorithm) {
    return offers(choices(study(fabric, version), version, kind, 64_MiB), algorithm);
  };
  EXPECT_FALSE(has(one, {2, 16, 2}, all_reduce, NcclAlgorithm::nvls));
  EXPECT_TRUE(has(one, {2, 17, 1}, all_reduce, NcclAlgorithm::nvls));
  EXPECT_FALSE(has(one, {2, 20, 5}, all_gather, NcclAlgorithm::nvls));
  EXPECT_TRUE(has(one, {2, 21, 5}, all_gather, NcclAlgorithm::nvls));
  EXPECT_FALSE(has(two, {2, 17, 1}, all_reduce, NcclAlgorithm::nvls_tree));
  EXPECT_TRUE(has(two, {2, 18, 3}, all_reduce, NcclAlgorithm::nvls_tree));
  EXPECT_FALSE(has(one, {2, 27, 7}, all_reduce, NcclAlgorithm::nvls_tree)) << "one node";
  EXPECT_FALSE(has(two, {2, 27, 7}, broadcast, NcclAlgorithm::tree));
}

TEST(NcclTuner, PatNeedsOneGpuPerNode) {
  const NcclVersion version{2, 27, 7};
  const Fabric fabric = servers("hgx-h100", 4);
  const NcclTopology alone = study(fabric, version, {0, 8, 16, 24});
  const NcclTopology pairs = study(fabric, version, {0, 1, 8, 9});
  EXPECT_TRUE(offers(choices(alone, version, all_gather, 64_KiB), NcclAlgorithm::pat));
  EXPECT_TRUE(offers(choices(alone, version, reduce_scatter, 64_KiB), NcclAlgorithm::pat));
  EXPECT_FALSE(offers(choices(alone, version, all_reduce, 64_KiB), NcclAlgorithm::pat));
  EXPECT_FALSE(offers(choices(pairs, version, all_gather, 64_KiB), NcclAlgorithm::pat));
  EXPECT_FALSE(
      offers(choices(study(fabric, {2, 22, 3}, {0, 8, 16, 24}), {2, 22, 3}, all_gather, 64_KiB),
             NcclAlgorithm::pat));
}

TEST(NcclTuner, ListsOfAlgorithmsAndProtocols) {
  const NcclVersion version{2, 27, 7};
  const NcclTopology topology = study(servers("hgx-h100"), version);
  for (const NcclChoice& c :
       choices(topology, version, all_reduce, 1_MiB, {{"NCCL_ALGO", "Ring,TREE"}})) {
    EXPECT_TRUE(c.algorithm == NcclAlgorithm::ring || c.algorithm == NcclAlgorithm::tree);
  }
  const auto without =
      choices(topology, version, all_reduce, 1_GiB, {{"NCCL_ALGO", "^nvls,NVLSTree"}});
  EXPECT_FALSE(offers(without, NcclAlgorithm::nvls));
  EXPECT_TRUE(offers(without, NcclAlgorithm::ring));
  EXPECT_TRUE(offers(without, NcclAlgorithm::tree));
  for (const NcclChoice& c :
       choices(topology, version, all_reduce, 1_MiB, {{"NCCL_PROTO", "^LL,LL128"}}))
    EXPECT_EQ(c.protocol, NcclProtocol::simple);
  // For one collective only; the first entry may stand for the rest.
  const std::map<std::string, std::string> mixed{{"NCCL_ALGO", "ring;allreduce:tree"}};
  for (const NcclChoice& c : choices(topology, version, all_reduce, 1_MiB, mixed))
    EXPECT_EQ(c.algorithm, NcclAlgorithm::tree);
  for (const NcclChoice& c : choices(topology, version, all_gather, 1_MiB, mixed))
    EXPECT_EQ(c.algorithm, NcclAlgorithm::ring);
  EXPECT_TRUE(choices(topology, version, broadcast, 1_MiB, {{"NCCL_ALGO", "tree"}}).empty());
}

TEST(NcclTuner, WordsThatAreNoneAreRefused) {
  EXPECT_THAT(problem_of({{"NCCL_ALGO", "rinng"}}), HasSubstr("did you mean \"ring\"?"));
  EXPECT_THAT(problem_of({{"NCCL_ALGO", "ring,"}}), HasSubstr("\"\" is not known"));
  EXPECT_THAT(problem_of({{"NCCL_ALGO", "allredduce:ring"}}), HasSubstr("is not a collective"));
  EXPECT_THAT(problem_of({{"NCCL_ALGO", "ring;tree"}}), HasSubstr("only the first entry"));
  EXPECT_THAT(problem_of({{"NCCL_PROTO", "ll256"}}), HasSubstr("\"ll256\" is not known"));
  EXPECT_THAT(problem_of({{"NCCL_PROTO", "^"}}), HasSubstr("is not known"));
}

TEST(NcclTuner, RowsHoldFromTheirReleaseUntilTheNext) {
  const auto simple_ring = [](NcclVersion version) {
    return nccl_release(version).ll_max[2][0];  // Hopper, one node: 87.7 until 2.20, 141 since 2.21
  };
  EXPECT_DOUBLE_EQ(simple_ring({2, 20, 5}), 87.7);
  EXPECT_DOUBLE_EQ(simple_ring({2, 21, 5}), 141);
  EXPECT_DOUBLE_EQ(simple_ring({2, 24, 3}), 141);
  EXPECT_DOUBLE_EQ(nccl_release({2, 24, 3}).ll_max[3][0], 141);
  EXPECT_DOUBLE_EQ(nccl_release({2, 25, 1}).ll_max[3][0], 282);
  EXPECT_EQ(nccl_release({2, 30, 99}).base, nccl_release({2, 30, 7}).base);
}

TEST(NcclVersionText, TakesReleasesAndHeaderNumbers) {
  const auto text = [](std::string_view given) {
    const auto version = parse_nccl_version(given);
    return version ? version_text(*version) : std::string("none");
  };
  EXPECT_EQ(text("2.18.3"), "2.18.3");
  EXPECT_EQ(text("v2.18.3-1"), "2.18.3");
  EXPECT_EQ(text("2.18"), "2.18");
  EXPECT_EQ(text("21803"), "2.18.3");
  EXPECT_EQ(text("2804"), "2.8.4");
  for (const char* none : {"", "2", "2.", "2.4", "2.31", "3.0", "2.18.", "2.18.x", "2.18.3.1",
                           "-2.18", "218.3", "99999999999999999999", "two", "2.18 "})
    EXPECT_EQ(text(none), "none") << none;
  EXPECT_LT((NcclVersion{2, 18, 5}), *parse_nccl_version("2.18")) << "the last of its series";
}

}  // namespace
}  // namespace weft::nccl::testing
