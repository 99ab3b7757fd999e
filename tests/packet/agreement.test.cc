// SPDX-License-Identifier: Apache-2.0
// The packet engine against the naive one, to the picosecond.
#include <cstdlib>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "tests/packet/random_plan.hpp"

namespace weft::test {
namespace {

// WEFT_PLANS=FIRST:COUNT runs others.
std::pair<std::uint64_t, std::uint64_t> seeds() {
  std::uint64_t first = 1, count = 1000;
  if (const char* given = std::getenv("WEFT_PLANS")) std::sscanf(given, "%lu:%lu", &first, &count);
  return {first, count};
}

// A port that was found to lack credit while its past was made up let another class go first.
TEST(PacketEngine, AgreesWhereALackOfCreditIsFoundLate) {
  const Plan plan = random_plan(6112);
  EXPECT_EQ(differences(run_engine(plan), run_reference(plan)), "");
}

// XON of one class crossed by what left at the same instant by a port of a larger number, whose turn had not come.
TEST(PacketEngine, AgreesWhereTwoPortsOfASwitchEndAtOnce) {
  const Plan plan = random_plan(8262);
  EXPECT_EQ(differences(run_engine(plan), run_reference(plan)), "");
}

TEST(PacketEngine, AgreesWithTheNaiveOneOnRandomNetworks) {
  const auto [first, count] = seeds();
  std::size_t ended = 0, pauses = 0, stalls = 0, drops = 0, marks = 0, retransmitted = 0;
  int wrong = 0;
  for (std::uint64_t seed = first; seed < first + count && wrong < 10; ++seed) {
    SCOPED_TRACE(seed);
    const Plan plan = random_plan(seed);
    const Outcome engine = run_engine(plan), reference = run_reference(plan);
    const std::string differ = differences(engine, reference);
    EXPECT_EQ(differ, "") << "seed " << seed;
    wrong += differ.empty() ? 0 : 1;
    for (const FlowOutcome& flow : reference.flows) ended += flow.finish < Time::never() ? 1 : 0;
    for (const packet::PortStats& port : reference.ports) {
      pauses += port.pauses;
      stalls += port.stalls;
      drops += port.drops;
      marks += port.marks;
    }
    retransmitted += reference.counters.retransmitted;
  }
  if (count < 1000) return;
  // The networks have what they are to prove.
  EXPECT_GT(ended, 4 * count);
  EXPECT_GT(pauses, 2 * count);
  EXPECT_GT(stalls, 10 * count);
  EXPECT_GT(drops, count);
  EXPECT_GT(marks, count);
  EXPECT_GT(retransmitted, count);
}

}  // namespace
}  // namespace weft::test
