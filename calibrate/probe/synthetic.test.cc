// SPDX-License-Identifier: Apache-2.0
#include "calibrate/probe/synthetic.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "tests/support/fabric_text.hpp"

namespace weft {
namespace {

Json machine_like(const std::string& name, int servers = 1) {
  Json document = testing::catalogue_document("fabric", name);
  if (servers > 1) document.set("servers", servers);
  return document;
}

std::unique_ptr<SyntheticBackend> made_up(const Json& document, SyntheticOptions options) {
  Diagnostics out;
  auto backend = std::make_unique<SyntheticBackend>(document, options, out);
  EXPECT_TRUE(out.ok()) << out.text();
  return backend;
}

constexpr Bytes kLarge = 64_MiB;

double us_of_copy(SyntheticBackend& backend, const std::string& from, const std::string& to,
                  Bytes bytes = kLarge) {
  CopyTest copy;
  copy.transfers = {{from, to, bytes}};
  return backend.prepare({fmt::format("{} {}", from, to), copy, 0})->once().at(0).us();
}

TEST(Synthetic, SaysWhatTheDataSheetSays) {
  auto backend = made_up(machine_like("dgx1-p100"), {.seed = 3});
  const ProbeMachine machine = backend->machine();
  ASSERT_EQ(machine.gpus.size(), 8U);
  EXPECT_EQ(machine.gpus[5].near, "cpu1");
  EXPECT_EQ(machine.gpus[5].far, std::vector<std::string>{"cpu0"});
  EXPECT_EQ(machine.paths[0][1].kind, "NV1");
  EXPECT_TRUE(machine.paths[0][1].peer_access);
  EXPECT_EQ(machine.paths[0][5].kind, "SYS");
  EXPECT_FALSE(machine.paths[0][5].peer_access);
  EXPECT_EQ(machine.hosts[0].gpus.size(), 8U);
  EXPECT_EQ(machine.hosts[0].paths.at("gpu0-gpu4"), "NV1");
  EXPECT_EQ(made_up(machine_like("hgx-h100"), {})->machine().paths[0][7].kind, "NV18");
  EXPECT_EQ(made_up(machine_like("pcie-a100x8"), {})->machine().paths[0][1].kind, "PIX");
}

TEST(Synthetic, SameSeedSameMachineOtherSeedOther) {
  const Json box = machine_like("dgx1-p100");
  auto a = made_up(box, {.seed = 1}), b = made_up(box, {.seed = 1}), c = made_up(box, {.seed = 2});
  EXPECT_EQ(us_of_copy(*a, "gpu0", "gpu1"), us_of_copy(*b, "gpu0", "gpu1"));
  EXPECT_NE(us_of_copy(*a, "gpu0", "gpu1"), us_of_copy(*c, "gpu0", "gpu1"));
  EXPECT_EQ(to_text(a->truth().document), to_text(b->truth().document));
}

TEST(Synthetic, HiddenParametersDifferWithinBounds) {
  const Json box = machine_like("hgx-h100");
  for (std::uint64_t seed = 1; seed < 20; ++seed) {
    auto quiet = made_up(box, {.seed = seed, .noise = 0});
    const double gbs = Bytes{256_MiB}.value() / us_of_copy(*quiet, "gpu0", "gpu1", 256_MiB) / 1e3;
    EXPECT_GT(gbs, 400 * 0.89) << seed;  // 8/9 of 450 GB/s by the data sheet
    EXPECT_LT(gbs, 400 * 1.03) << seed;
  }
}

TEST(Synthetic, NoiseHasTheDeviationThatWasAskedFor) {
  auto backend = made_up(machine_like("dgx1-p100"), {.seed = 5, .noise = 0.02});
  CopyTest copy;
  copy.transfers = {{"cpu0", "gpu0", 1_MiB}};
  const auto test = backend->prepare({"t", copy, 0});
  std::vector<Time> runs;
  for (int i = 0; i < 2000; ++i) runs.push_back(test->once()[0]);
  const auto said = summarise(runs);
  // The quartiles of a normal distribution are 1.349 deviations apart.
  const double deviation = said->repeats.spread->us() / said->median.us() / 1.349;
  EXPECT_NEAR(deviation, 0.02, 0.002);
  EXPECT_NEAR(said->repeats.outliers.size() / 2000.0, 0.01, 0.006);
}

TEST(Synthetic, PacketsGoOnInASteadyState) {
  auto quiet = made_up(machine_like("dgx1-p100"), {.seed = 1, .noise = 0});
  const double at64 = us_of_copy(*quiet, "gpu0", "gpu1", 64_MiB);
  const double at128 = us_of_copy(*quiet, "gpu0", "gpu1", 128_MiB);
  const double at256 = us_of_copy(*quiet, "gpu0", "gpu1", 256_MiB);
  EXPECT_NEAR((at256 - at128) / (at128 - at64), 2, 0.02);
}

TEST(Synthetic, TransfersThatStartTogetherShareTheirWay) {
  auto quiet = made_up(machine_like("dgx1-p100"), {.seed = 1, .noise = 0});
  const double alone = us_of_copy(*quiet, "cpu0", "gpu0");
  CopyTest pair;  // below one switch
  pair.transfers = {{"cpu0", "gpu0", 64_MiB}, {"cpu0", "gpu1", 64_MiB}};
  const auto times = quiet->prepare({"pair", pair, 0})->once();
  EXPECT_NEAR(times[0].us() / alone, 2, 0.1);
  EXPECT_NEAR(times[1].us() / alone, 2, 0.1);
}

struct Planted {
  const char* machine;
  ProbeFault fault;
  const char* word;
};

TEST(Synthetic, FaultsChangeTheTruthAndNotWhatIsSaid) {
  for (const Planted& planted :
       {Planted{"dgx1-p100", ProbeFault::slow_link, "slow-link: gpu"},
        {"hgx-h100", ProbeFault::slow_link, "the NVLinks of gpu"},
        {"pcie-a100x8", ProbeFault::slow_link, "slow-link: gpu"},
        {"dgx1-p100", ProbeFault::half_width, "half-width: gpu"},
        {"dgx1-p100", ProbeFault::wrong_affinity, "wrong-affinity: gpu0"},
        {"dgx1-v100+ib-edr", ProbeFault::wrong_affinity, "wrong-affinity: nic"},
        {"dgx1-v100+ib-edr", ProbeFault::slow_link, "slow-link"}}) {
    const Json box = machine_like(planted.machine);
    auto healthy = made_up(box, {.seed = 4, .noise = 0});
    auto faulty = made_up(box, {.seed = 4, .noise = 0, .fault = planted.fault});
    EXPECT_NE(faulty->truth().fault.find(planted.word), std::string::npos)
        << planted.machine << ": " << faulty->truth().fault;
    EXPECT_TRUE(healthy->truth().fault.empty());
    const ProbeMachine a = healthy->machine(), b = faulty->machine();
    EXPECT_EQ(a.gpus.size(), b.gpus.size());
    for (std::size_t i = 0; i < a.gpus.size(); ++i) EXPECT_EQ(a.gpus[i].near, b.gpus[i].near);
    if (planted.fault == ProbeFault::wrong_affinity) continue;
    double worst = 1;
    for (int i = 0; i < 8; ++i) {
      for (int j = 0; j < 8; ++j) {
        const std::string server = healthy->machine().hosts.size() > 1 ? "server0/" : "";
        const std::string from = fmt::format("{}gpu{}", server, i),
                          to = i == j ? server + "cpu0" : fmt::format("{}gpu{}", server, j);
        worst = std::max(worst, us_of_copy(*faulty, from, to) / us_of_copy(*healthy, from, to));
      }
    }
    EXPECT_GT(worst, 1.4) << planted.machine;
    EXPECT_LT(worst, 2.5) << planted.machine;
  }
}

TEST(Synthetic, GpuBelowAnotherSwitchDoesNotShareTheUplinkThatItIsSaidToShare) {
  const Json box = machine_like("dgx1-p100");
  CopyTest pair;
  pair.transfers = {{"cpu0", "gpu0", 64_MiB}, {"cpu0", "gpu1", 64_MiB}};
  const auto us = [&](ProbeFault fault) {
    return made_up(box, {.seed = 4, .noise = 0, .fault = fault})
        ->prepare({"pair", pair, 0})
        ->once()[1]
        .us();
  };
  EXPECT_NEAR(us(ProbeFault::none) / us(ProbeFault::wrong_affinity), 2, 0.1);
}

TEST(Synthetic, FaultWithoutAPlaceIsRefused) {
  Diagnostics out;
  SyntheticBackend(machine_like("h100-1gpu"), {.seed = 1, .fault = ProbeFault::wrong_affinity},
                   out);
  EXPECT_FALSE(out.ok());
}

TEST(Synthetic, EveryTestOfThePlanCanBeRun) {
  for (const char* name : {"h100-1gpu", "dgx1-p100", "pcie-a100x8", "dgx2", "hgx-h100+ib-ndr"}) {
    auto backend =
        made_up(machine_like(name, std::string(name).ends_with("ndr") ? 2 : 1), {.seed = 2});
    const ProbePlan plan = make_plan(backend->machine(), {.quick = true});
    for (const PlannedTest& test : plan.tests) {
      const auto prepared = backend->prepare(test);
      const bool tool = std::holds_alternative<MessageToolTest>(test.what);
      EXPECT_EQ(prepared->messages().empty(), !tool) << test.name;
      if (tool) continue;
      for (const Time time : prepared->once()) EXPECT_GT(time.ps, 0) << test.name;
    }
  }
}

}  // namespace
}  // namespace weft
