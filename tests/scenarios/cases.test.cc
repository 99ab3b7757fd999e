// SPDX-License-Identifier: Apache-2.0
// Situations in which people doubted a simulator, one test each; the letters are those of the collection of user cases.
#include <sys/resource.h>

#include "models/catalog.hpp"
#include "sim/core/check.hpp"
#include "sim/fabric/routing.hpp"
#include "sim/run/executor.hpp"
#include "tests/scenarios/scenario_test.hpp"
#include "tools/cli/file_source.hpp"

namespace weft {
namespace {

using scenario_test::Answer;
using scenario_test::collective;
using scenario_test::run_text;

// `servers` servers of eight GPUs on a switch inside and one NIC each; every link of the fabric at `rate`.
std::string cluster(int servers, const std::string& rate, const std::string& delay = "100 ns",
                    const std::string& spine = {}) {
  const std::string link = fmt::format(
      R"({{"class": "ualink", "rate": "{}", "efficiency": 1, "delay": "{}"}})", rate, delay);
  const std::string server = fmt::format(
      R"({{"kind": "server", "name": "box",
          "nodes": [{{"id": "gpu[0-7]", "kind": "gpu", "model": {{}}}}, {{"id": "sw0", "kind": "nvswitch", "latency": "0 ns"}},
                    {{"id": "plx[0-7]", "kind": "pcie_switch"}}, {{"id": "nic[0-7]", "kind": "nic", "model": {{"link": {0}}}}}],
          "links": [{{"a": "gpu[0-7]", "b": "sw0", "link": {0}}}, {{"a": "gpu[0-7]", "b": "plx[0-7]", "pair": "each", "link": {0}}},
                    {{"a": "nic[0-7]", "b": "plx[0-7]", "pair": "each", "link": {0}}}]}})",
      link);
  if (servers == 1) return server;
  std::string switches = R"("s0")", cables;
  for (int s = 0; s < servers; ++s) {
    for (int n = 0; n < 8; ++n)
      cables += fmt::format(R"({}{{"a": "server{}/nic{}", "b": "s0"}})", cables.empty() ? "" : ", ",
                            s, n);
  }
  if (!spine.empty()) {
    switches += fmt::format(R"(, "{}")", spine);
    cables += fmt::format(R"(, {{"a": "s0", "b": "{}"}})", spine);
  }
  return fmt::format(
      R"({{"kind": "fabric", "name": "boxes", "servers": {}, "server": {}, "network": {{"generator": "explicit",
                         "switch": {{"ports": 64, "link": {}, "latency": "0 ns"}}, "switches": [{}], "cables": [{}]}}}})",
      servers, server, link, switches, cables);
}

TEST(UserCase, S01NothingChangesWhateverTheNetwork) {
  for (const char* job : {R"("collective": "all_reduce", "size": "4 GiB")",
                          R"("collective": "all_to_all", "size": "1 GiB")",
                          R"("pattern": "permutation", "size": "1 GiB")"}) {
    for (const int servers : {1, 4}) {
      const double fast = collective(cluster(servers, "400 Gb/s"), job).number("/time_s");
      const double slow = collective(cluster(servers, "200 Gb/s"), job).number("/time_s");
      EXPECT_GE(slow / fast, 1.8) << job << " on " << servers;
      EXPECT_LE(slow / fast, 2.2) << job << " on " << servers;
    }
  }
  const Answer nothing =
      collective("hgx-h100", R"("collective": "all_reduce", "size": "1 GiB", "gpus": 1)");
  EXPECT_EQ(find_at(nothing.json, "/warnings/0/code")->text, "no-traffic");
  const std::string path = ::testing::TempDir() + "nothing.json";
  std::ofstream(path)
      << R"({"fabric": "hgx-h100", "workload": {"collective": "all_reduce", "size": "1 GiB", "gpus": 1}})";
  EXPECT_NE(scenario_test::weft({"run", path}).out.find("no communication found"),
            std::string::npos);
}

TEST(UserCase, S02TwiceTheDataSameTime) {
  for (const char* algorithm : {"ring", "double_binary_tree"}) {
    double before = 0;
    for (std::int64_t size = 1 << 10; size <= std::int64_t{1} << 31; size *= 2) {
      const double time =
          collective("dgx1-v100",
                     fmt::format(R"("collective": "all_reduce", "size": "{} B", "algorithm": "{}")",
                                 size, algorithm))
              .number("/time_s");
      EXPECT_GT(time, before) << size;
      if (size > 64 << 20) {
        EXPECT_GE(time / before, 1.9) << size;
        EXPECT_LE(time / before, 2.1) << size;
      }
      before = time;
    }
  }
  const Answer alone =
      collective("hgx-h100", R"("collective": "all_reduce", "size": "512 MiB", "group_size": 1)");
  EXPECT_EQ(alone.number("/jobs/0/ranks"), 1);
  EXPECT_TRUE(find_at(alone.json, "/links")->items.empty());
  EXPECT_EQ(find_at(alone.json, "/jobs/0/notes/0")->text, "a group of one: no traffic");
}

// A thousand million tokens per sequence: more picoseconds than a clock of 64 bits has.
TEST(UserCase, S03TimesBeyondTheClockAreALimit) {
  const Answer answer =
      scenario_test::weft({"run", WEFT_SOURCE_DIR "/scenarios/30-training-step.json", "--set",
                           "/jobs/0/seq=1000000000"});
  EXPECT_EQ(answer.code, 4);
  EXPECT_NE(answer.err.find("beyond the clock"), std::string::npos) << answer.err;
}

TEST(UserCase, S04SwitchesCountedAsRanks) {
  Configs files(find_configs_root());
  std::vector<std::string> names = files.names("fabric");
  for (const std::string& server : files.names("server")) names.push_back(server);
  for (const std::string& name : names) {
    Diagnostics diagnostics;
    const std::size_t gpus = load_fabric(name, {}, diagnostics).fabric.gpus().size();
    const Answer answer = collective(name, R"("collective": "all_gather", "size": "1 MiB")");
    EXPECT_EQ(answer.number("/jobs/0/ranks"), static_cast<double>(gpus)) << name;
  }
  const char* job = R"("collective": "all_reduce", "size": "1 MiB", "group_size": 8)";
  const Answer one = collective(cluster(2, "400 Gb/s"), job);
  const Answer two = collective(cluster(2, "400 Gb/s", "100 ns", "s1"), job);
  for (const Answer* answer : {&one, &two}) {
    EXPECT_EQ(find_at(answer->json, "/jobs/0/groups")->items.size(), 2);
    EXPECT_EQ(answer->number("/jobs/0/groups/0/ranks"), 8);
  }
  EXPECT_EQ(one.number("/time_s"), two.number("/time_s"));
}

// A run that cannot go on throws what the command line turns into exit code 4.
TEST(UserCase, S04UnfinishedOperationsAreNamed) {
  Workload workload;
  workload.labels.push_back("gradients");
  const OpId a = workload.add_delay(1_us), b = workload.add_delay(1_us);
  workload.operations[a].label = workload.operations[b].label = 1;
  workload.depend(a, b);
  workload.depend(b, a);
  const std::vector<Bandwidth> capacities{1_Gbps};
  const auto network = make_network(Fidelity::fluid, capacities, {});
  Executor executor(workload, *network);
  try {
    executor.run({ExecutorJob{.first_op = 0, .end_op = 2}}, {});
    FAIL() << "it ended";
  } catch (const LimitReached& stuck) {
    EXPECT_NE(std::string(stuck.what()).find("2 operations wait for each other"), std::string::npos)
        << stuck.what();
    EXPECT_NE(std::string(stuck.what()).find("gradients#0"), std::string::npos) << stuck.what();
  }
}

TEST(UserCase, S06NoSwitchNoRoute) {
  const std::string path = WEFT_SOURCE_DIR "/tests/scenarios/data/switchless-dgx1.json";
  Diagnostics diagnostics;
  const Fabric fabric = load_fabric(path, {}, diagnostics).fabric;
  EXPECT_NE(diagnostics.text().find("5 us is long for NVLink"), std::string::npos)
      << diagnostics.text();
  Routes routes(fabric);
  for (const NodeId gpu : fabric.gpus()) {
    std::int64_t rate = 0;
    for (const LinkId link : fabric.out_links(gpu)) {
      rate += fabric.link(link).raw.bps;
      const auto there = routes.transfer(gpu, fabric.link(link).to);
      ASSERT_TRUE(there);
      EXPECT_EQ(there->via, Via::direct);
      EXPECT_EQ(there->rate(fabric), fabric.link(link).raw);
      EXPECT_EQ(there->latency(), 5_us);
    }
    EXPECT_EQ(rate, (1200_Gbps).bps);
  }
  const auto copy = [&](const std::string& dst) {
    return run_text(fmt::format(
        R"({{"fabric": {{"use": "{}"}}, "workload": {{"p2p": {{"src": "gpu0", "dst": "{}"{}}}}}}})",
        path, dst.substr(0, dst.find(' ')),
        dst.find(' ') == std::string::npos ? "" : R"(, "via": "relay")"));
  };
  EXPECT_EQ(copy("gpu1").code, kOk);
  EXPECT_EQ(copy("gpu5 relay").code, kOk);
  const Answer far = copy("gpu5");
  EXPECT_TRUE(far.code == kOk || far.err.find("no such way") != std::string::npos)
      << far.code << far.err;
  const Answer ring = run_text(fmt::format(
      R"({{"fabric": {{"use": "{}"}}, "workload": {{"collective": "all_reduce", "size": "1 GiB"}}}})",
      path));
  ASSERT_EQ(ring.code, kOk) << ring.err;
  // Six links of 200 Gb/s, or three of 400, leave every GPU: 150 GB/s when all are used.
  EXPECT_LE(ring.number("/jobs/0/busbw_gbs"), 150);
  EXPECT_GE(ring.number("/jobs/0/busbw_gbs"), 120);
}

TEST(UserCase, S07FasterThanTheWireAndTwoClocks) {
  for (const char* job :
       {R"("collective": "all_reduce", "size": "1 GiB")",
        R"("collective": "all_to_all", "size": "256 MiB")",
        R"("collective": "all_reduce", "size": "64 MiB", "algorithm": "ring", "expand": true)"}) {
    const Answer answer = collective("hgx-h100+ib-ndr", job, {"--top", "100000"});
    for (const Json& link : find_at(answer.json, "/links")->items) {
      EXPECT_LE(link.find("utilisation")->number, 1.001) << link.find("id")->text;
    }
    EXPECT_GE(answer.number("/time_s"), answer.number("/bound_s") * 0.999999);
    EXPECT_DOUBLE_EQ(answer.number("/jobs/0/finish_s"), answer.number("/time_s"));
  }
  const Answer flows = collective("hgx-h100+ib-ndr", R"("pattern": "random", "size": "16 MiB")",
                                  {"--top", "100000"});
  double last = 0;
  for (const Json& flow : find_at(flows.json, "/flows")->items)
    last = std::max(last, flow.find("finish_s")->number);
  EXPECT_DOUBLE_EQ(last, flows.number("/time_s"));
  const std::string path = ::testing::TempDir() + "groups.json";
  std::ofstream(path)
      << R"({"fabric": "hgx-h100+ib-ndr", "workload": {"collective": "all_reduce", "size": "1 GiB", "group_size": 4}})";
  const std::string text = scenario_test::weft({"run", path}).out;
  EXPECT_NE(text.find("over 4 GPUs"), std::string::npos) << text;
  EXPECT_NE(text.find("busbw"), std::string::npos) << text;
}

double peak_mib() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return static_cast<double>(usage.ru_maxrss) / 1024;
}

TEST(UserCase, S08SizeOfTheMachine) {
  const auto run = [](int servers) {
    return collective(
        fmt::format(R"({{"use": "hgx-h100+ib-ndr", "set": {{"/servers": {}}}}})", servers),
        R"("collective": "all_reduce", "size": "1 GiB")");
  };
  const double base = peak_mib();
  EXPECT_EQ(run(128).number("/jobs/0/ranks"), 1024);
  const double once = peak_mib();
  EXPECT_LT(once, 2048);
  EXPECT_EQ(run(256).number("/jobs/0/ranks"), 2048);
  const double twice = peak_mib();
  EXPECT_LE(twice, std::max(once, base) * 2.6);
  const Answer expanded =
      collective(R"({"use": "hgx-h100+ib-ndr", "set": {"/servers": 2048}})",
                 R"("collective": "all_reduce", "size": "1 GiB", "expand": true)");
  EXPECT_EQ(expanded.code, kLimit);
  EXPECT_NE(expanded.err.find("run it coupled"), std::string::npos) << expanded.err;
}

TEST(UserCase, S11ChunkingAndOrderOfDimensions) {
  const std::string box = cluster(1, "400 Gb/s", "1 ns");
  const auto time = [&](const std::string& more) {
    return collective(box, R"("collective": "all_reduce", "size": "100 MB", )" + more)
        .number("/time_s");
  };
  const double ring = time(R"("algorithm": "ring", "channels": 4)");
  const double direct = time(R"("algorithm": "direct")");
  EXPECT_NEAR(ring, 3.5e-3, 0.05 * 3.5e-3);
  EXPECT_NEAR(direct, 3.5e-3, 0.05 * 3.5e-3);
  EXPECT_NEAR(time(R"("algorithm": "ring", "channels": 1)"), ring, 0.1 * ring);
  // Latency is charged per hop: GPU, switch, GPU are two links.
  const auto latency = [](const std::string& delay) {
    return run_text(
               fmt::format(
                   R"({{"fabric": {}, "workload": {{"p2p": {{"src": "gpu0", "dst": "gpu1", "size": "1 B"}}}}}})",
                   cluster(1, "400 Gb/s", delay)))
        .number("/time_s");
  };
  EXPECT_NEAR(latency("10 us") - latency("5 us"), 10e-6, 1e-10);
}

}  // namespace
}  // namespace weft
