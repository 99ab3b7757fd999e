// SPDX-License-Identifier: Apache-2.0
// What the packet level refuses, with a place and a cure, before any work.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "sim/core/check.hpp"
#include "tests/support/tiny.hpp"

namespace weft {
namespace {

using testing::AllOf;
using testing::HasSubstr;

Report run_on(const std::string& network_class, const std::string& packet,
              const std::string& job = R"("pattern": "ring", "size": "1 MB")",
              const std::string& network = test::leaf_spine(2, 2)) {
  test::TinyOptions options;
  options.servers = 4;
  options.network = network;
  options.network_class = network_class;
  return test::run(test::fabric_from("gpu g -- 400 Gb/s, 0 ns -- nic n", options),
                   R"("fidelity": "packet", "models": {"packet": {)" + packet +
                       R"(}}, "workload": {)" + job + "}");
}

std::string problem(const std::string& network_class, const std::string& packet,
                    const std::string& job = R"("pattern": "ring", "size": "1 MB")",
                    const std::string& network = test::leaf_spine(2, 2)) {
  try {
    run_on(network_class, packet, job, network);
  } catch (const InputError& error) {
    return error.what();
  } catch (const LimitReached& limit) {
    return std::string("limit: ") + limit.what();
  }
  return "none";
}

TEST(PacketLimits, ACongestionControlThatNothingSpeaksToIsRefused) {
  for (const char* scheme : {"dcqcn", "dctcp"}) {
    const std::string keys = R"("congestion_control": ")" + std::string(scheme) + '"';
    EXPECT_THAT(problem("infiniband", keys),
                AllOf(HasSubstr("1:"), HasSubstr("/models/packet/congestion_control"),
                      HasSubstr("hears of ECN marks"), HasSubstr("\"fecn\" or \"none\"")));
    EXPECT_THAT(problem("ethernet", keys + R"(, "ecn": {"enabled": false})"),
                HasSubstr("\"ecn\" is not enabled"));
    EXPECT_EQ(problem("ethernet", keys), "none");
  }
  EXPECT_THAT(problem("ethernet", R"("congestion_control": "fecn")"), HasSubstr("FECN bits"));
  EXPECT_EQ(problem("infiniband", R"("congestion_control": "fecn")"), "none");
  // What is not asked for may have nothing to hear.
  EXPECT_EQ(problem("ethernet", R"("ecn": {"enabled": false})"), "none");
  const Report lossless = run_on("ethernet", R"("congestion_control": "cubic")");
  ASSERT_FALSE(lossless.warnings.empty());
  EXPECT_THAT(lossless.warnings.front().text, HasSubstr("cubic hears of losses"));
}

// Of what is written and changes nothing, the names behind /models/packet.
std::vector<std::string> idle(const std::string& network_class, const std::string& packet,
                              const std::string& network = test::leaf_spine(2, 2)) {
  std::vector<std::string> keys;
  const std::string job = R"("pattern": "ring", "size": "1 MB")", above = "/models/packet/";
  for (const Warning& warning : run_on(network_class, packet, job, network).warnings) {
    const std::size_t end = warning.text.find(": ");
    EXPECT_THAT(warning.text.substr(end), HasSubstr("change"));
    keys.push_back(warning.text.substr(above.size(), end - above.size()));
  }
  return keys;
}

TEST(PacketLimits, KeysThatNothingOnTheFabricReadsAreWarnedOf) {
  using testing::ElementsAre;
  using testing::IsEmpty;
  using testing::UnorderedElementsAre;
  EXPECT_THAT(idle("infiniband", R"("buffer": "1 MB", "alpha": 1, "pfc": {"xoff": "9 KB"},
                                    "ecn": {"kmin": "9 KB"}, "credit": "1 MB", "cell": "80 B")"),
              UnorderedElementsAre("buffer", "alpha", "pfc", "ecn"));
  EXPECT_THAT(idle("infiniband", R"("congestion_control": "fecn", "ecn": {"kmin": "9 KB"})"),
              IsEmpty());
  EXPECT_THAT(idle("ethernet", R"("buffer": "8 MB", "alpha": 1, "pfc": {"xoff": "9 KB"},
                                  "ecn": {"kmin": "9 KB"}, "credit": "1 MB")"),
              IsEmpty());  // credits of the links inside the servers
  EXPECT_THAT(idle("ethernet", R"("pfc": {"enabled": false, "xoff": "9 KB", "response": "0 s"},
                                  "ecn": {"enabled": false, "pmax": 1})"),
              UnorderedElementsAre("pfc/xoff", "pfc/response", "ecn/pmax"));
  EXPECT_THAT(idle("ethernet", R"("flowlet_gap": "1 us", "weights": [1, 2])"),
              UnorderedElementsAre("flowlet_gap", "weights"));
  EXPECT_THAT(idle("ethernet", R"("flowlet_gap": "1 us")", test::leaf_spine(2, 2, "flowlet")),
              IsEmpty());
}

TEST(PacketLimits, ParametersOfAControlThatTheNetworkDoesNotChooseAreRefused) {
  EXPECT_THAT(problem("infiniband", R"("dcqcn": {"g": 0.1})"),
              AllOf(HasSubstr("/models/packet/dcqcn"), HasSubstr("takes none by itself")));
  EXPECT_THAT(problem("ethernet", R"("cubic": {})"), HasSubstr("takes dcqcn by itself"));
  EXPECT_EQ(problem("ethernet", R"("dcqcn": {"g": 0.1})"), "none");
}

TEST(PacketLimits, MarkingThatEndsBeforeItBeginsIsRefused) {
  EXPECT_THAT(problem("ethernet", R"("ecn": {"kmin": "200 KB", "kmax": "100 KB"})"),
              AllOf(HasSubstr("/models/packet/ecn/kmin"), HasSubstr("complete at 100 KB")));
  EXPECT_EQ(problem("ethernet", R"("ecn": {"kmin": "100 KB", "kmax": "100 KB"})"), "none");
  // Alone each takes the other along.
  EXPECT_EQ(problem("ethernet", R"("ecn": {"kmax": "10 KB"})"), "none");
  EXPECT_EQ(problem("ethernet", R"("ecn": {"kmin": "10 MB"})"), "none");
}

// Three into one; what is lost is sent again for ever, or not at all.
TEST(PacketLimits, ABufferThatTakesNothingEndsTheRunWithItsPlace) {
  const std::string job = R"("pattern": "incast", "size": "64 KiB")";
  const std::string lossy = R"("pfc": {"enabled": false}, "buffer": )";
  EXPECT_THAT(problem("ethernet", lossy + R"("1 KB")", job),
              AllOf(HasSubstr("limit: the buffer of"), HasSubstr("does not hold one packet")));
  const std::string shut = R"("pfc": {"xoff": "1 B", "headroom": "0 B"}, "recovery": )";
  for (const char* recovery : {"go-back-n", "selective"}) {
    EXPECT_THAT(problem("ethernet", shut + '"' + recovery + '"', job),
                AllOf(HasSubstr("limit: all that some flow sends is lost"),
                      HasSubstr("in front of"), HasSubstr("\"headroom\"")));
  }
  EXPECT_THAT(problem("ethernet", shut + R"("none")", job),
              AllOf(HasSubstr("packets were lost"), HasSubstr("are not sent again")));
}

// Who is told of many packets at once may have as many under way.
TEST(PacketLimits, AWindowHoldsWhatIsAcknowledgedTogether) {
  for (const char* scheme : {"hpcc", "swift", "dctcp", "cubic", "timely"}) {
    EXPECT_EQ(problem("ethernet",
                      fmt::format(R"("congestion_control": "{}", "ack_every": 1000)", scheme)),
              "none")
        << scheme;
  }
}

TEST(PacketLimits, WorkWithoutEndIsRefusedWithAnEstimate) {
  EXPECT_THAT(problem("ethernet", R"("grain": "1 B")", R"("pattern": "ring", "size": "10 GB")"),
              AllOf(HasSubstr("limit: packets of 1 B"), HasSubstr("hours of work"),
                    HasSubstr("models.packet.grain")));
  EXPECT_THAT(problem("c2c", "", R"("pattern": "ring", "size": "1 GB", "repeat": 1000000)"),
              HasSubstr("fewer iterations"));
}

TEST(PacketLimits, LanesAreOfDragonfliesAndTakeClasses) {
  EXPECT_THAT(
      problem("c2c", "", R"("pattern": "ring", "size": "1 MB")", test::leaf_spine(2, 2, "valiant")),
      AllOf(HasSubstr("network/routing"), HasSubstr("\"valiant\" is of dragonflies")));
  const std::string dragonfly =
      R"("generator": "dragonfly", "routers_per_group": 2, "hosts_per_router": 1,
         "global_links_per_router": 1, "routing": "ugal")";
  EXPECT_THAT(
      problem("c2c", "", R"("pattern": "ring", "size": "1 MB", "traffic_class": 3)", dragonfly),
      AllOf(HasSubstr("/workload/traffic_class"), HasSubstr("use classes 1 to 2")));
  EXPECT_EQ(
      problem("c2c", "", R"("pattern": "ring", "size": "1 MB", "traffic_class": 2)", dragonfly),
      "none");
  EXPECT_THAT(problem("ethernet", R"("recovery": "go-back-n")",
                      R"("pattern": "ring", "size": "1 MB")", dragonfly),
              HasSubstr("which go-back-N takes for loss"));
}

}  // namespace
}  // namespace weft
