// SPDX-License-Identifier: Apache-2.0
#include "sim/workload/verifier.hpp"

#include <limits>
#include <utility>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace weft {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

Schedule schedule_of(CollectiveKind kind, std::uint32_t ranks, std::uint64_t units,
                     std::uint32_t rounds, std::vector<Step> steps, Bytes size = {1200},
                     std::uint32_t root = 0) {
  Schedule s;
  s.algorithm = "by hand";
  s.request = {.kind = kind, .size = size, .root = root};
  s.ranks = ranks;
  s.units = units;
  s.rounds = rounds;
  s.steps = [steps = std::move(steps)](const StepSink& sink) {
    for (const Step& step : steps) sink(step);
  };
  return s;
}

std::string first_fault(const Schedule& s) {
  const Verification v = verify(s);
  return v.faults.empty() ? "" : v.faults.front();
}

TEST(Units, SizesAddUpToTheWhole) {
  for (const std::int64_t size : {0, 1, 5, 6, 7, 1000}) {
    for (const std::uint64_t units : {1U, 3U, 6U, 7U, 24U}) {
      for (std::uint64_t first = 0; first <= units; ++first) {
        Bytes sum;
        for (std::uint64_t count = 0; first + count <= units; ++count) {
          EXPECT_EQ(unit_range_size({size}, units, first, count), sum);
          if (first + count < units) sum += unit_size({size}, units, first + count);
        }
      }
      EXPECT_EQ(unit_range_size({size}, units, 0, units), Bytes{size});
    }
  }
}

TEST(Units, ARankOwnsTheSameBytesWhateverTheChannels) {
  for (std::uint32_t channels = 1; channels <= 4; ++channels) {
    for (std::uint32_t rank = 0; rank < 6; ++rank) {
      Bytes own;
      for (std::uint32_t c = 0; c < channels; ++c)
        own += unit_size(1003_B, 6 * channels, c * 6 + rank);
      EXPECT_EQ(own, unit_size(1003_B, 6, rank));
    }
  }
}

TEST(Units, RangesOfAllToAllMatchTheirUnits) {
  const Schedule s = schedule_of(CollectiveKind::all_to_all, 5, 25, 0, {}, 13_B);
  for (std::uint64_t first = 0; first <= 25; ++first) {
    Bytes sum;
    for (std::uint64_t count = 0; first + count <= 25; ++count) {
      EXPECT_EQ(s.size_of_units(first, count), sum);
      if (first + count < 25) sum += s.size_of_unit(first + count);
    }
  }
}

TEST(Verifier, AcceptsAnExchangeOfTwo) {
  const Schedule s =
      schedule_of(CollectiveKind::all_reduce, 2, 1, 1,
                  {{.src = 0, .dst = 1, .reduces = true}, {.src = 1, .dst = 0, .reduces = true}});
  const Verification v = verify(s);
  EXPECT_TRUE(v.ok()) << v.text();
  EXPECT_EQ(v.step_count, 2U);
  EXPECT_EQ(v.bytes.at(0, 1), 1200);
  EXPECT_EQ(v.bytes.sent_by(0), 1200);
  EXPECT_EQ(v.bytes.received_by(0), 1200);
  EXPECT_EQ(v.bytes.total(), 2400);
}

TEST(Verifier, ARoundReadsOnlyWhatEarlierRoundsLeft) {
  const std::vector<Step> relay{{.round = 0, .src = 0, .dst = 1}, {.round = 1, .src = 1, .dst = 2}};
  EXPECT_EQ(first_fault(schedule_of(CollectiveKind::broadcast, 3, 1, 2, relay)), "");
  const std::vector<Step> rushed{{.round = 0, .src = 0, .dst = 1},
                                 {.round = 0, .src = 1, .dst = 2}};
  EXPECT_EQ(first_fault(schedule_of(CollectiveKind::broadcast, 3, 1, 1, rushed)),
            "round 0: rank 1 sends unit 0 to rank 2 but does not hold it");
}

TEST(Verifier, NamesWhatIsMissing) {
  EXPECT_EQ(first_fault(schedule_of(CollectiveKind::broadcast, 3, 1, 1, {{.src = 0, .dst = 1}})),
            "end: rank 2 holds {} in unit 0, wanted {0}");
  EXPECT_EQ(first_fault(schedule_of(CollectiveKind::reduce, 3, 1, 1,
                                    {{.src = 1, .dst = 0, .reduces = true}})),
            "end: rank 0 holds {0 1} in unit 0, wanted all ranks");
}

TEST(Verifier, CountsNothingTwice) {
  const std::vector<Step> twice{{.round = 0, .src = 1, .dst = 0, .reduces = true},
                                {.round = 1, .src = 1, .dst = 0, .reduces = true}};
  EXPECT_EQ(first_fault(schedule_of(CollectiveKind::reduce, 2, 1, 2, twice)),
            "round 1: rank 1 adds to unit 0 of rank 0 what is in it already, now {0 1}");
}

TEST(Verifier, TwoWritesOfARoundConflictUnlessBothReduce) {
  const std::vector<Step> both{{.src = 1, .dst = 0, .reduces = true},
                               {.src = 2, .dst = 0, .reduces = true}};
  EXPECT_EQ(first_fault(schedule_of(CollectiveKind::reduce, 3, 1, 1, both)), "");
  const std::vector<Step> mixed{{.src = 1, .dst = 0, .reduces = true}, {.src = 2, .dst = 0}};
  EXPECT_EQ(first_fault(schedule_of(CollectiveKind::reduce, 3, 1, 1, mixed)),
            "round 0: rank 1 and rank 2 both write unit 0 of rank 0");
}

TEST(Verifier, TheSwitchPassesOnWhatItWasSentTheRoundBefore) {
  const std::vector<Step> steps{{.round = 0, .src = 0, .dst = kSwitch, .reduces = true},
                                {.round = 0, .src = 1, .dst = kSwitch, .reduces = true},
                                {.round = 1, .src = kSwitch, .dst = 0}};
  const Verification v = verify(schedule_of(CollectiveKind::reduce, 2, 1, 2, steps));
  EXPECT_TRUE(v.ok()) << v.text();
  EXPECT_EQ(v.bytes.at(1, kSwitch), 1200);
  std::vector<Step> late = steps;
  late[2].round = 2;
  EXPECT_EQ(first_fault(schedule_of(CollectiveKind::reduce, 2, 1, 3, late)),
            "round 2: the switch sends unit 0 to rank 0 but does not hold it");
  EXPECT_THAT(
      first_fault(schedule_of(CollectiveKind::reduce, 2, 1, 1, {{.src = kSwitch, .dst = 0}})),
      HasSubstr("the switch sends unit 0 to rank 0 but does not hold it"));
}

TEST(Verifier, RefusesTransfersThatCannotBe) {
  const auto fault = [](Step step, std::uint32_t rounds = 1) {
    return first_fault(schedule_of(CollectiveKind::broadcast, 2, 2, rounds, {step}));
  };
  EXPECT_THAT(fault({.src = 0, .dst = 2}), HasSubstr("no such transfer"));
  EXPECT_THAT(fault({.src = 0, .dst = 0}), HasSubstr("no such transfer"));
  EXPECT_THAT(fault({.src = 0, .dst = 1, .unit_count = 2, .unit = 1}),
              HasSubstr("no such transfer"));
  EXPECT_THAT(fault({.src = 0, .dst = 1, .unit = std::numeric_limits<std::uint64_t>::max()}),
              HasSubstr("no such transfer"));
  EXPECT_THAT(fault({.round = 1, .src = 0, .dst = 1}), HasSubstr("no such transfer"));
  EXPECT_THAT(verify(schedule_of(CollectiveKind::broadcast, 2, 2, 2,
                                 {{.src = 0, .dst = 1, .unit_count = 2}}))
                  .faults,
              ElementsAre("2 rounds announced, 1 used"));
  EXPECT_THAT(first_fault(schedule_of(CollectiveKind::all_gather, 2, 3, 0, {})),
              HasSubstr("not a multiple"));
  EXPECT_THAT(first_fault(schedule_of(CollectiveKind::broadcast, 2, 1, 0, {}, 1_B, 2)),
              HasSubstr("root 2 of 2 ranks"));
  const std::vector<Step> backwards{{.round = 1, .src = 0, .dst = 1},
                                    {.round = 0, .src = 0, .dst = 1}};
  EXPECT_THAT(first_fault(schedule_of(CollectiveKind::broadcast, 2, 1, 2, backwards)),
              HasSubstr("not ascending"));
}

// A state of 200 x 40,000 units is far above the window: several passes must agree with the one-pass rules.
TEST(Verifier, RunsInWindowsWhenTheStateIsLarge) {
  const std::uint32_t n = 200;
  Schedule s = schedule_of(CollectiveKind::all_to_all, n, n * n, 1, {}, 2000_B);
  s.steps = [](const StepSink& sink) {
    for (std::uint32_t i = 0; i < n; ++i) {
      for (std::uint32_t j = 0; j < n; ++j) {
        if (i != j) sink({.src = i, .dst = j, .unit = std::uint64_t{i} * n + j});
      }
    }
  };
  const Verification v = verify(s);
  EXPECT_TRUE(v.ok()) << v.text();
  EXPECT_EQ(v.step_count, 200U * 199U);
  EXPECT_EQ(v.bytes.total(), 200.0 * 199 * 10);
  s.steps = [steps = s.steps](const StepSink& sink) {
    steps([&sink](const Step& step) {
      if (step.src != 199 || step.dst != 7) sink(step);
    });
  };
  EXPECT_EQ(first_fault(s), "end: rank 7 holds {} in unit 39807, wanted {199}");
}

TEST(Verifier, ComparesPhasesWithSteps) {
  Schedule s = schedule_of(CollectiveKind::broadcast, 3, 1, 2,
                           {{.round = 0, .src = 0, .dst = 1}, {.round = 1, .src = 1, .dst = 2}});
  Channel chain{.form = Channel::Form::chain, .edges = {{0, 1, 1}, {1, 2, 1}}, .bytes = 1200_B};
  s.phases = {{{chain}}};
  const Verification v = verify(s);
  EXPECT_THAT(compare_phases(s, v, 0.5), IsEmpty());
  s.phases[0].channels[0].edges[1].weight = 0.5;
  EXPECT_THAT(compare_phases(s, v, 0.5),
              ElementsAre("rank 1 to rank 2: 1200 B in steps, 600 B in phases"));
  s.phases[0].channels[0].edges[1] = {0, 2, 1};
  EXPECT_THAT(compare_phases(s, v, 0.5),
              ElementsAre("edge 0 ends at rank 1, the next starts at rank 0",
                          "rank 0 to rank 2: 0 B in steps, 1200 B in phases",
                          "rank 1 to rank 2: 1200 B in steps, 0 B in phases"));
  s.phases[0].channels[0].edges.clear();
  s.phases[0].channels[0].generate = [](const EdgeSink& sink) { sink({0, 1, 1}), sink({1, 2, 1}); };
  EXPECT_THAT(compare_phases(s, v, 0.5), IsEmpty());
}

}  // namespace
}  // namespace weft
