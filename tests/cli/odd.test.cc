// SPDX-License-Identifier: Apache-2.0
// Shapes and sizes at the edge of what makes sense: one GPU, a mesh of three, five of eight, a torus of one point, sizes of
// no byte and of one. All of them have answers.
#include <regex>

#include <gmock/gmock.h>

#include "tests/cli/cli_test.hpp"

namespace weft {
namespace {

using cli_test::number_at;
using cli_test::weft_cli;
using testing::HasSubstr;

std::string server(int gpus, int ports = 1) {
  const std::string range = gpus == 1 ? "gpu0" : "gpu[0-" + std::to_string(gpus - 1) + "]";
  const std::string nic =
      ports == 1 ? R"("cx4-edr")"
                 : R"({"ports": 2, "link": "ib-edr", "pcie": {"generation": 3, "width": 16}})";
  return R"({"kind": "server", "nodes": [{"id": ")" + range +
         R"(", "kind": "gpu", "model": "p100-sxm2"}, {"id": "cpu0", "kind": "cpu"},
    {"id": "dram0", "kind": "dram"}, {"id": "nic0", "kind": "nic", "model": )" +
         nic + R"(}],
   "links": [{"a": ")" +
         range +
         R"(", "b": "cpu0", "link": "pcie3-x16"}, {"a": "nic0", "b": "cpu0", "link": "pcie3-x16"},
    {"a": "cpu0", "b": "dram0", "link": "dram-ddr4-2400x4"}]})";
}

std::string mesh(int gpus) {
  const std::string range = "gpu[0-" + std::to_string(gpus - 1) + "]";
  return R"({"kind": "server", "nodes": [{"id": ")" + range +
         R"(", "kind": "gpu", "model": "p100-sxm2"}],
   "links": [{"a": ")" +
         range + R"(", "b": ")" + range + R"(", "link": "nvlink1"}]})";
}

std::string fabric(const std::string& servers, const std::string& network) {
  return R"({"kind": "fabric", "server": )" + servers + R"(, "network": )" + network + "}";
}

std::string several(int count, const std::string& server) {
  return R"([{"count": )" + std::to_string(count) + R"(, "server": )" + server + "}]";
}

const std::string kSwitch = R"("switch": {"ports": 8, "latency": "100 ns", "link": "ib-edr"})";

struct Shape {
  std::string name, text;
};

std::ostream& operator<<(std::ostream& out, const Shape& shape) { return out << shape.name; }

std::vector<Shape> shapes() {
  const auto net = [](const std::string& keys) { return "{" + kSwitch + ", " + keys + "}"; };
  return {
      {"one_gpu", server(1)},
      {"two_gpus", server(2)},
      {"mesh_of_three", mesh(3)},
      {"mesh_of_two", mesh(2)},
      {"one_server_and_a_switch",
       fabric(several(1, server(2)), net(R"("generator": "single-switch")"))},
      {"single_switch", fabric(several(3, server(1)), net(R"("generator": "single-switch")"))},
      {"one_leaf", fabric(several(2, server(3)), net(R"("generator": "leaf-spine")"))},
      {"leaf_of_one",
       fabric(several(5, server(1)), net(R"("generator": "leaf-spine", "hosts_per_leaf": 1)"))},
      {"three_levels", fabric(several(9, server(1)),
                              net(R"("generator": "fat-tree", "tiers": 3, "hosts_per_leaf": 1)"))},
      {"rails", fabric(several(5, server(2, 2)),
                       net(R"("generator": "rail-optimised", "hosts_per_leaf": 2)"))},
      {"dual_ports", fabric(several(3, server(2, 2)), net(R"("generator": "leaf-spine")"))},
      {"one_group", fabric(several(2, server(1)), net(R"("generator": "dragonfly")"))},
      {"one_router_groups",
       fabric(several(3, server(1)),
              net(R"("generator": "dragonfly", "routers_per_group": 1, "hosts_per_router": 1)"))},
      {"tiny_switch_dragonfly",
       fabric(several(2, server(1)),
              R"({"switch": {"ports": 2, "link": "ib-edr"}, "generator": "dragonfly"})")},
      {"torus_of_one", fabric(several(2, server(1)), net(R"("generator": "torus", "dims": [1])"))},
      {"torus_two_by_one",
       fabric(several(4, server(1)), net(R"("generator": "torus", "dims": [2, 1])"))},
      {"torus_ring", fabric(several(3, server(1)), net(R"("generator": "torus", "dims": [3])"))},
      {"torus_larger_than_needed",
       fabric(several(2, server(1)), net(R"("generator": "torus", "dims": [3, 3])"))},
      {"explicit", fabric(several(2, server(2)),
                          net(R"("generator": "explicit", "switches": ["a", "b"], "cables": [
          {"a": "server0/nic0", "b": "a"}, {"a": "server1/nic0", "b": "b"}, {"a": "a", "b": "b", "count": 2}])"))},
      {"mixed_servers",
       fabric("[" + several(1, server(1)).substr(1, several(1, server(1)).size() - 2) + ", " +
                  several(2, server(3, 2)).substr(1, several(2, server(3, 2)).size() - 2) + "]",
              net(R"("generator": "leaf-spine")"))},
  };
}

class OddShape : public testing::TestWithParam<Shape> {
 protected:
  std::string file() const { return folder_.file("fabric.json", GetParam().text); }
  cli_test::Folder folder_;
};

TEST_P(OddShape, IsCheckedShownAndMeasured) {
  const std::string path = file();
  const std::vector<std::string> commands[] = {
      {"check", path},
      {"topo", path},
      {"topo", path, "--json", "--names", "*"},
      {"p2p", path},
      {"p2p", path, "--bidirectional", "--peer-access", "off", "--json"},
      {"p2p", path, "--via", "relay"},
      {"tartan", path},
      {"nccl-tests", "all_reduce_perf", "--fabric", path, "-b", "0", "-e", "8"},
      {"nccl-tests", "all_reduce_perf", "--fabric", path, "-b", "1M", "-e", "2M", "--json"},
      {"nccl-tests", "alltoall_perf", "--fabric", path, "-b", "1", "-e", "4", "--fidelity",
       "analytic"},
      {"nccl-tests", "sendrecv_perf", "--fabric", path, "-b", "4K", "-e", "4K"},
  };
  for (const auto& args : commands) {
    const auto outcome = weft_cli(args);
    SCOPED_TRACE(testing::PrintToString(args) + outcome.err);
    EXPECT_EQ(outcome.code, kOk);
    EXPECT_NE(outcome.out, "");
    static const std::regex no_number("\\b(nan|inf)\\b");
    EXPECT_FALSE(std::regex_search(outcome.out, no_number)) << outcome.out;
    EXPECT_LT(outcome.seconds, 10);
  }
}

TEST_P(OddShape, RunsEveryCollectiveAtOddSizes) {
  const std::string path = file();
  for (const std::string collective : {"all_reduce", "all_gather", "reduce_scatter", "all_to_all",
                                       "broadcast", "reduce", "gather", "scatter", "send_recv"}) {
    for (const std::string size : {"0 B", "1 B", "3 B", "1 MiB"}) {
      const std::string job =
          R"({"collective": ")" + collective + R"(", "size": ")" + size + R"(", "repeat": 2})";
      const auto outcome =
          weft_cli({"run",
                    folder_.file("scenario.json",
                                 R"({"fabric": {"use": "fabric.json"}, "workload": )" + job + "}"),
                    "--json", "--quick"});
      SCOPED_TRACE(GetParam().name + " " + collective + " " + size + outcome.err);
      ASSERT_EQ(outcome.code, kOk);
      const Json report = cli_test::document(outcome);
      EXPECT_GE(number_at(report, {"time_s"}), 0);
      EXPECT_LE(number_at(report, {"bound_s"}), number_at(report, {"time_s"}) * (1 + 1e-9) + 1e-12);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Fabrics, OddShape, testing::ValuesIn(shapes()),
                         [](const auto& instance) { return instance.param.name; });

// ---- jobs

class OddJob : public testing::Test {
 protected:
  cli_test::Outcome run(const std::string& fabric, const std::string& rest) {
    return weft_cli(
        {"run", folder_.file("scenario.json", "{\"fabric\": \"" + fabric + "\", " + rest + "}"),
         "--json", "--quick"});
  }
  double time_of(const std::string& fabric, const std::string& rest) {
    const auto outcome = run(fabric, rest);
    EXPECT_EQ(outcome.code, kOk) << rest << outcome.err;
    return outcome.code == kOk ? number_at(cli_test::document(outcome), {"time_s"}) : -1;
  }
  cli_test::Folder folder_;
};

TEST_F(OddJob, AnyNumberOfGpusOfAServer) {
  for (const std::string fabric : {"dgx1-p100", "dgx1-v100", "hgx-h100"}) {
    for (int gpus = 1; gpus <= 8; ++gpus) {
      const double seconds =
          time_of(fabric, R"("workload": {"collective": "all_reduce", "size": "64 MiB", "gpus": )" +
                              std::to_string(gpus) + "}");
      EXPECT_EQ(seconds > 0, gpus > 1) << fabric << " " << gpus;
    }
  }
}

TEST_F(OddJob, AnyRoot) {
  for (int root = 0; root < 5; ++root) {
    for (const std::string collective : {"broadcast", "reduce", "gather", "scatter"}) {
      EXPECT_GT(time_of("dgx1-p100", R"("workload": {"collective": ")" + collective +
                                         R"(", "size": "1 MiB", "gpus": 5, "root": )" +
                                         std::to_string(root) + "}"),
                0);
    }
  }
}

TEST_F(OddJob, EveryAlgorithmOnFiveRanksRunsOrIsRefused) {
  for (const std::string algorithm :
       {"ring", "double_binary_tree", "halving_doubling", "hierarchical", "binomial", "direct",
        "in_switch", "pairwise", "bruck"}) {
    for (const std::string expand : {"false", "true"}) {
      const auto outcome = run(
          "hgx-h100",
          R"("workload": {"collective": "all_reduce", "size": "3 B", "gpus": 5, "channels": 64, "algorithm": ")" +
              algorithm + R"(", "expand": )" + expand + "}");
      EXPECT_THAT(outcome.code, testing::AnyOf(int{kOk}, int{kBadInput}))
          << algorithm << outcome.err;
    }
  }
}

TEST_F(OddJob, StartIsCountedInTheTimeOfTheRun) {
  const std::string job = R"("workload": {"collective": "all_reduce", "size": "1 MiB"})";
  const std::string later =
      R"("workload": {"collective": "all_reduce", "size": "1 MiB", "start": "1 s"})";
  EXPECT_NEAR(time_of("dgx1-p100", later), 1 + time_of("dgx1-p100", job), 1e-9);
}

TEST_F(OddJob, UntilEndRunsAsLongAsTheOther) {
  const auto outcome =
      run("dgx1-p100",
          R"("jobs": [{"name": "main", "collective": "all_reduce", "size": "64 MiB", "gpus": 4},
    {"name": "noise", "collective": "all_to_all", "size": "1 KiB", "gpus": 4, "repeat": "until-end", "start": "1 us"}])");
  ASSERT_EQ(outcome.code, kOk) << outcome.err;
  EXPECT_GT(number_at(cli_test::document(outcome), {"jobs", "1", "iterations"}), 1);
}

TEST_F(OddJob, UntilEndWithoutTrafficEnds) {
  for (const std::string noise : {R"("collective": "all_reduce", "size": "0 B", "gpus": 2)",
                                  R"("collective": "all_reduce", "size": "1 MiB", "gpus": 1)",
                                  R"("pattern": "ring", "size": "1 MiB", "gpus": 1)",
                                  R"("flows": [{"src": "gpu7", "dst": "gpu7", "size": "0 B"}])"}) {
    const auto outcome =
        run("dgx1-p100",
            R"("jobs": [{"name": "main", "collective": "all_reduce", "size": "1 MiB", "gpus": 4},
      {"name": "noise", "repeat": "until-end", )" +
                noise + "}]");
    EXPECT_LT(outcome.seconds, 10) << noise;
    EXPECT_THAT(outcome.code, testing::AnyOf(int{kOk}, int{kBadInput}, int{kLimit}))
        << noise << outcome.err;
  }
}

TEST_F(OddJob, FlowsOfNoByteAndToOneself) {
  EXPECT_GE(
      time_of("dgx1-p100", R"("workload": {"flows": [{"src": "gpu0", "dst": "gpu1", "size": "0 B"},
    {"src": "gpu2", "dst": "gpu2", "size": "1 MiB", "start": "1 us"}]})"),
      0);
  // A copy is a question about two GPUs.
  EXPECT_EQ(
      run("dgx1-p100", R"("workload": {"p2p": {"src": "gpu3", "dst": "gpu3", "size": "1 MiB"}})")
          .code,
      kBadInput);
}

TEST_F(OddJob, FaultsAtTheEdges) {
  for (const std::string fault :
       {R"({"target": "gpu0", "do": "degrade", "factor": 1})",
        R"({"target": "gpu0", "do": "degrade", "factor": 1e-9})",
        R"({"target": "gpu0:gpu1", "do": "down", "at": "1 us", "until": "2 us"})",
        R"({"target": "cpu0", "do": "degrade", "factor": 0.5, "at": "1 h"})"}) {
    EXPECT_GT(time_of("dgx1-p100",
                      R"("workload": {"collective": "all_reduce", "size": "1 MiB"}, "faults": [)" +
                          fault + "]"),
              0)
        << fault;
  }
}

TEST_F(OddJob, LargestAndSmallestQuantities) {
  const auto huge =
      run("dgx1-p100", R"("workload": {"collective": "all_reduce", "size": "1 PiB"})");
  EXPECT_EQ(huge.code, kOk) << huge.err;
  // Hours of flow: what is rounded off grows with the time, and a flow must still end.
  for (const std::string fabric : {"hgx-h100", "dgx1-v100"}) {
    for (const std::string job :
         {R"("pattern": "all_to_all")",
          R"("collective": "all_reduce", "algorithm": "ring", "channels": 8, "expand": true)"}) {
      const auto hours = run(fabric, R"("workload": {"size": "1 PiB", )" + job + "}");
      EXPECT_EQ(hours.code, kOk) << fabric << job << hours.err;
      EXPECT_LT(hours.seconds, 10);
    }
  }
  const auto slow =
      run("dgx1-p100",
          R"("workload": {"collective": "all_reduce", "size": "1 PiB", "repeat": 1000000})");
  EXPECT_THAT(slow.code, testing::AnyOf(int{kOk}, int{kLimit})) << slow.err;
  EXPECT_LT(slow.seconds, 60);
  const auto fine = run(
      "dgx1-p100", R"("workload": {"collective": "all_reduce", "size": "1 GiB", "chunk": "1 B"})");
  EXPECT_EQ(fine.code, kOk) << fine.err;
  EXPECT_LT(fine.seconds, 10);
}

// A GPU whose only way out is over another GPU: data does not pass through it, so some pairs have no way, and that is told.
TEST_F(OddJob, AGpuBehindAGpu) {
  const std::string hidden =
      R"({"nodes": [{"id": "gpu[0-1]", "kind": "gpu", "model": "p100-sxm2"}, {"id": "cpu0", "kind": "cpu"},
    {"id": "nic0", "kind": "nic", "model": "cx4-edr"}], "links": [{"a": "gpu1", "b": "cpu0", "link": "pcie3-x16"},
    {"a": "nic0", "b": "cpu0", "link": "pcie3-x16"}, {"a": "gpu0", "b": "gpu1", "link": "nvlink1"}]})";
  const std::string path = folder_.file(
      "fabric.json",
      fabric(several(2, hidden), "{" + kSwitch + R"(, "generator": "single-switch"})"));
  const std::vector<std::string> commands[] = {
      {"topo", path},
      {"p2p", path},
      {"tartan", path},
      {"nccl-tests", "all_reduce_perf", "--fabric", path, "-b", "1M", "-e", "1M"}};
  for (const auto& args : commands) {
    const auto outcome = weft_cli(args);
    EXPECT_THAT(outcome.code, testing::AnyOf(int{kOk}, int{kBadInput}))
        << testing::PrintToString(args) << outcome.err;
    EXPECT_EQ(outcome.out.empty(), outcome.code != kOk);
    EXPECT_EQ(outcome.err.empty(), outcome.code == kOk);
  }
}

// ---- the largest server of the catalogue

TEST(Nvl72, IsMeasured) {
  const std::vector<std::string> commands[] = {
      {"topo", "gb200-nvl72"},
      {"p2p", "gb200-nvl72", "--json"},
      {"tartan", "gb200-nvl72"},
      {"nccl-tests", "all_reduce_perf", "--fabric", "gb200-nvl72", "-b", "8", "-e", "1G", "-f",
       "32"},
      {"nccl-tests", "alltoall_perf", "--fabric", "gb200-nvl72", "-b", "1M", "-e", "1M"}};
  for (const auto& args : commands) {
    const auto outcome = weft_cli(args);
    SCOPED_TRACE(testing::PrintToString(args) + outcome.err);
    EXPECT_EQ(outcome.code, kOk);
    EXPECT_LT(outcome.seconds, 10);
  }
}

}  // namespace
}  // namespace weft
