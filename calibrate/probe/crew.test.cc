// SPDX-License-Identifier: Apache-2.0
#include "calibrate/probe/crew.hpp"

#include <map>
#include <set>
#include <thread>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "calibrate/probe/test_message.hpp"

namespace weft {
namespace {

// A server of two GPUs; takes 5 us for what it does alone and 10 us times its highest rank for collectives.
class FakeMember final : public CrewMember {
 public:
  FakeMember(std::string host, int own, std::string fails = {})
      : host_(std::move(host)), own_(own), fails_(std::move(fails)) {}

  ProbeMachine machine() override {
    ProbeMachine out;
    out.hosts.emplace_back().host = host_;
    for (int i = 0; i < 2; ++i)
      out.gpus.push_back({fmt::format("gpu{}", i), 0, "cpu0", {"cpu1"}, 80_GiB, {"bf16"}});
    out.paths.assign(2, std::vector<ProbePath>(2));
    out.paths[0][1] = out.paths[1][0] = {"NV4", true};
    return out;
  }
  std::vector<std::string> own() override { return {fmt::format("gpu{}", own_)}; }
  std::unique_ptr<PreparedTest> prepare(const PlannedTest& test) override {
    if (test.name == fails_) throw TestFailed("no memory on " + host_);
    const auto* copy = std::get_if<CopyTest>(&test.what);
    EXPECT_NE(copy, nullptr);
    EXPECT_EQ(copy->transfers[0].from.find("server"), std::string::npos);
    return std::make_unique<Fake>(5_us);
  }
  std::string new_context() override { return fmt::format("context{}", ++contexts_); }
  std::unique_ptr<PreparedTest> join(const PlannedTest& test, const CrewPart& part) override {
    if (test.name == fails_) throw TestFailed("no memory on " + host_);
    EXPECT_EQ(part.gpus, own());
    EXPECT_FALSE(part.context.empty());
    seen_.insert(part.context);
    return std::make_unique<Fake>(Time{part.own_ranks.back() * 10'000'000});
  }
  bool broken() const override { return false; }

  std::set<std::string> seen_;

 private:
  struct Fake final : PreparedTest {
    explicit Fake(Time t) : time(t) {}
    std::vector<Time> once() override { return {time}; }
    Time time;
  };
  std::string host_;
  int own_, contexts_ = 0;
  std::string fails_;
};

int free_port() { return Listener(0).port(); }

// Processes 1 and up, each on a thread, until the first one has ended.
class CrewOfThree : public ::testing::Test {
 protected:
  void start(const std::string& fails_on_2 = {}) {
    const int port = free_port();
    const auto launch = [&](int rank) {
      return Launch{.rank = rank, .size = 3, .local_rank = rank % 2, .port = port};
    };
    threads_.emplace_back([=] {
      Crew crew(std::make_unique<FakeMember>("alpha", 1), launch(1));
      EXPECT_TRUE(crew.serve());
    });
    threads_.emplace_back([=] {
      Crew crew(std::make_unique<FakeMember>("beta", 0, fails_on_2), launch(2));
      EXPECT_TRUE(crew.serve());
    });
    auto member = std::make_unique<FakeMember>("alpha", 0);
    member_ = member.get();
    crew_ = std::make_unique<Crew>(std::move(member), launch(0));
  }
  void TearDown() override {
    crew_.reset();
    for (std::thread& thread : threads_) thread.join();
  }
  static PlannedTest all_reduce(const std::string& name, std::vector<std::string> gpus) {
    return {name, CollectiveTest{"all_reduce", std::move(gpus), 1_MiB, "", ""}, 0};
  }
  static PlannedTest copy(const std::string& name, const std::string& from, const std::string& to) {
    return {name, CopyTest{{{from, to, 1_MiB}}, CopyMethod::copy_engine, "", true}, 0};
  }

  std::vector<std::thread> threads_;
  std::unique_ptr<Crew> crew_;
  FakeMember* member_ = nullptr;
};

TEST_F(CrewOfThree, MachineIsAllServersAndTheGpusThatAreDriven) {
  start();
  EXPECT_FALSE(crew_->serve());
  const ProbeMachine machine = crew_->machine();
  ASSERT_EQ(machine.gpus.size(), 3U);
  EXPECT_EQ(machine.gpus[0].name, "server0/gpu0");
  EXPECT_EQ(machine.gpus[1].name, "server0/gpu1");
  EXPECT_EQ(machine.gpus[2].name, "server1/gpu0");
  EXPECT_EQ(machine.gpus[2].near, "server1/cpu0");
  EXPECT_EQ(machine.gpus[2].far, std::vector<std::string>{"server1/cpu1"});
  EXPECT_EQ(machine.paths[0][1].kind, "NV4");
  EXPECT_TRUE(machine.paths[0][2].kind.empty());
  EXPECT_EQ(machine.hosts[1].server, 1);
  EXPECT_FALSE(crew_->restarts());
}

TEST_F(CrewOfThree, CollectiveTakesAsLongAsItsSlowestProcess) {
  start();
  const auto all =
      crew_->prepare(all_reduce("all", {"server0/gpu0", "server0/gpu1", "server1/gpu0"}));
  EXPECT_EQ(all->once(), std::vector<Time>{20_us});
  EXPECT_EQ(all->once(), std::vector<Time>{20_us});
}

TEST_F(CrewOfThree, GroupWithoutTheFirstProcessIsMeasuredToo) {
  start();
  const auto pair = crew_->prepare(all_reduce("pair", {"server0/gpu1", "server1/gpu0"}));
  EXPECT_EQ(pair->once(), std::vector<Time>{10_us});
  EXPECT_TRUE(member_->seen_.empty());
}

TEST_F(CrewOfThree, SameGroupKeepsItsContext) {
  start();
  for (int i = 0; i < 3; ++i) {
    crew_->prepare(all_reduce("a", {"server0/gpu0", "server0/gpu1"}))->once();
    crew_->prepare(all_reduce("b", {"server0/gpu0", "server1/gpu0"}))->once();
  }
  EXPECT_EQ(member_->seen_.size(), 2U);
}

TEST_F(CrewOfThree, ServerDoesWhatConcernsItAlone) {
  start();
  EXPECT_EQ(crew_->prepare(copy("here", "server0/gpu0", "server0/gpu1"))->once()[0], 5_us);
  EXPECT_EQ(crew_->prepare(copy("there", "server1/gpu0", "server1/gpu1"))->once()[0], 5_us);
  EXPECT_THROW(crew_->prepare(copy("across", "server0/gpu0", "server1/gpu0")), TestFailed);
}

TEST_F(CrewOfThree, FailureOfOneIsTheFailureOfTheTestAndTheNextOneRuns) {
  start("all");
  const std::vector<std::string> gpus{"server0/gpu0", "server1/gpu0"};
  try {
    crew_->prepare(all_reduce("all", gpus));
    FAIL();
  } catch (const TestFailed& failed) {
    EXPECT_STREQ(failed.what(), "no memory on beta");
  }
  EXPECT_FALSE(crew_->broken());
  EXPECT_EQ(crew_->prepare(all_reduce("next", gpus))->once()[0], 10_us);
}

TEST(Crew, OneProcessNeedsNoConnection) {
  Crew crew(std::make_unique<FakeMember>("alpha", 0), {});
  EXPECT_EQ(crew.machine().gpus[0].name, "gpu0");
  EXPECT_FALSE(crew.serve());
  EXPECT_TRUE(crew.restarts());
}

TEST(Crew, ProcessThatGoesAwayBreaksTheCrew) {
  const int port = free_port();
  std::thread other([=] {
    CrewChannel channel = CrewChannel::connect("127.0.0.1", port, 10);
    Json hello = Json::object();
    hello.set("rank", 1);
    hello.set("machine", write_machine(FakeMember("beta", 0).machine()));
    Json own = Json::array();
    own.push("gpu0");
    hello.set("own", std::move(own));
    channel.send(hello);
  });
  Crew crew(std::make_unique<FakeMember>("alpha", 0), {.rank = 0, .size = 2, .port = port});
  other.join();
  EXPECT_THROW(
      crew.prepare({"all",
                    CollectiveTest{"all_reduce", {"server0/gpu0", "server1/gpu0"}, 1_MiB, "", ""},
                    0})
          ->once(),
      TestFailed);
  EXPECT_TRUE(crew.broken());
}

TEST(CrewChannel, NonsenseAndSilenceAreSaid) {
  Listener listener(0);
  std::thread other([port = listener.port()] {
    CrewChannel channel = CrewChannel::connect("localhost", port, 10);
    channel.send(Json("hello"));
    EXPECT_THROW(channel.receive(0.05), ChannelLost);
  });
  CrewChannel channel = listener.accept(10);
  EXPECT_EQ(channel.receive(10).text, "hello");
  other.join();
  EXPECT_THROW(channel.receive(1), ChannelLost);
  EXPECT_THROW(CrewChannel::connect("127.0.0.1", 1, 0.2), ChannelLost);
}

TEST(TestMessage, EveryKindOfTestIsReadBack) {
  const CollectiveTest collective{"all_gather", {"gpu0", "gpu1"}, 4_MiB, "ring", "ll"};
  const std::vector<PlannedTest> tests{
      {"a",
       CopyTest{{{"gpu0", "cpu0", 1_MiB}, {"cpu0", "gpu0", 2_MiB}}, CopyMethod::sm, "both", true},
       0},
      {"b", LatencyTest{"gpu0", "gpu1", PingMethod::copy, 8_B}, 0},
      {"c", GpuKernelTest{"gpu0", KernelTest::triad, "fp32", 1, 2, 3, 4, 5_MiB}, 0},
      {"d", collective, 0},
      {"e", OverlapTest{collective, "bf16", 1, 2, 3}, 0},
      {"f", MessageToolTest{"ib_write_bw", "mlx5_0", "gpu0"}, 0}};
  for (const PlannedTest& test : tests) {
    const auto again = read_test(write_test(test));
    ASSERT_TRUE(again) << test.name;
    EXPECT_EQ(again->what.index(), test.what.index());
    EXPECT_EQ(to_text(write_test(*again)), to_text(write_test(test)));
  }
  EXPECT_FALSE(read_test(Json::object()));
  EXPECT_FALSE(read_machine(Json("box")));
}

TEST(Launch, LaunchersAreRecognised) {
  const auto with = [](std::map<std::string, std::string> variables) {
    return read_launch([variables](const char* name) {
      const auto found = variables.find(name);
      return found == variables.end() ? std::nullopt : std::optional(found->second);
    });
  };
  const Launch torch = with({{"RANK", "9"},
                             {"WORLD_SIZE", "16"},
                             {"LOCAL_RANK", "1"},
                             {"MASTER_ADDR", "node7"},
                             {"MASTER_PORT", "29500"}});
  EXPECT_EQ(torch.rank, 9);
  EXPECT_EQ(torch.size, 16);
  EXPECT_EQ(torch.local_rank, 1);
  EXPECT_EQ(torch.master, "node7");
  EXPECT_EQ(torch.port, 29501);
  EXPECT_EQ(with({{"OMPI_COMM_WORLD_RANK", "3"},
                  {"OMPI_COMM_WORLD_SIZE", "4"},
                  {"OMPI_COMM_WORLD_LOCAL_RANK", "3"},
                  {"WEFT_PROBE_PORT", "777"}})
                .port,
            777);
  EXPECT_EQ(with({{"SLURM_PROCID", "0"}, {"SLURM_NTASKS", "8"}}).size, 1);  // no srun
  EXPECT_EQ(
      with({{"SLURM_PROCID", "2"}, {"SLURM_STEP_NUM_TASKS", "8"}, {"SLURM_LOCALID", "2"}}).rank, 2);
  EXPECT_EQ(with({}).size, 1);
  EXPECT_EQ(with({{"RANK", "x"}, {"WORLD_SIZE", "2"}}).size, 1);
  EXPECT_EQ(with({{"RANK", "5"}, {"WORLD_SIZE", "2"}}).size, 1);
}

}  // namespace
}  // namespace weft
