// SPDX-License-Identifier: Apache-2.0
// Laws that every pipeline schedule of the catalogue keeps.
#include <algorithm>
#include <map>
#include <set>
#include <tuple>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "models/llm/pipeline/pipeline.hpp"

namespace weft {
namespace {

using Work = PipelineSlot::Work;

// Runs the orders of all stages with free communication; stages may differ in speed.
struct Played {
  bool finished = true;
  double makespan = 0;
  std::vector<double> idle;  // of each stage, between its first and its last slot
};

Played play(
    const PipelineEntry& entry, const PipelineShape& shape, StageTimes times,
    double (*slowness)(std::int64_t stage) = [](std::int64_t) { return 1.0; }) {
  using Key = std::tuple<std::int64_t, Work, std::int32_t, std::int32_t>;
  const auto key = [](const SlotAt& at) {
    return Key{at.stage, at.slot.work, at.slot.micro_batch, at.slot.chunk};
  };
  const double parts = entry.bidirectional ? 1 : static_cast<double>(shape.chunks);
  std::map<Key, double> done;
  const auto stages = static_cast<std::size_t>(shape.stages);
  std::vector<std::vector<PipelineSlot>> orders;
  for (std::int64_t s = 0; s < shape.stages; ++s) orders.push_back(entry.order(shape, s));
  std::vector<std::size_t> next(stages, 0);
  std::vector<double> start(stages, 0), clock(stages, 0), busy(stages, 0);
  for (bool moved = true; moved;) {
    moved = false;
    for (std::size_t s = 0; s < stages; ++s) {
      for (; next[s] < orders[s].size(); ++next[s]) {
        const SlotAt at{static_cast<std::int64_t>(s), orders[s][next[s]]};
        double ready = clock[s];
        if (const auto source = source_of(entry, shape, at)) {
          const auto found = done.find(key(*source));
          if (found == done.end()) break;
          ready = std::max(ready, found->second);
        }
        const double length = (at.slot.work == Work::forward            ? times.forward
                               : at.slot.work == Work::backward_weights ? times.weights
                                                                        : times.backward) *
                              slowness(at.stage) / parts;
        if (next[s] == 0) start[s] = ready;
        busy[s] += length;
        done[key(at)] = clock[s] = ready + length;
        moved = true;
      }
    }
  }
  Played played;
  for (std::size_t s = 0; s < stages; ++s) {
    played.finished = played.finished && next[s] == orders[s].size();
    played.makespan = std::max(played.makespan, clock[s]);
    played.idle.push_back(clock[s] - start[s] - busy[s]);
  }
  return played;
}

class Pipeline : public testing::TestWithParam<const PipelineEntry*> {
 protected:
  const PipelineEntry& entry() const { return *GetParam(); }
  bool legal(const PipelineShape& shape) const {
    std::string cure;
    const std::string broken = entry().refuse(shape, cure);
    EXPECT_EQ(broken.empty(), cure.empty()) << broken;
    return broken.empty();
  }
  StageTimes even() const { return {1, 1, entry().splits_backward ? 1.0 : 0.0}; }
  // Legal shapes among all small ones.
  std::vector<PipelineShape> shapes() const {
    std::vector<PipelineShape> out;
    for (std::int64_t p = 1; p <= 9; ++p) {
      for (std::int64_t v = 1; v <= 4; ++v) {
        for (std::int64_t m = 1; m <= 40; ++m) {
          if (legal({p, v, m})) out.push_back({p, v, m});
        }
      }
    }
    EXPECT_GT(out.size(), 50u);
    return out;
  }
};
INSTANTIATE_TEST_SUITE_P(Catalogue, Pipeline, testing::ValuesIn(pipeline_schedules()),
                         [](const auto& tested) {
                           std::string name(tested.param->name);
                           std::ranges::replace(name, '-', '_');
                           return name;
                         });

std::string describe(const PipelineShape& s) {
  return fmt::format("p {} v {} m {}", s.stages, s.chunks, s.micro_batches);
}

TEST_P(Pipeline, SaysWhatItIs) {
  EXPECT_FALSE(entry().summary.empty());
  EXPECT_FALSE(entry().reference.empty());
  EXPECT_EQ(&pipeline_entry(entry().schedule), &entry());
}

TEST_P(Pipeline, EverySlotOccursOnceAndBackwardAfterForward) {
  for (const PipelineShape& shape : shapes()) {
    std::set<std::pair<std::int32_t, std::int32_t>> ways;  // micro-batch and chunk
    for (std::int64_t stage = 0; stage < shape.stages; ++stage) {
      std::map<std::pair<std::int32_t, std::int32_t>, std::vector<Work>> works;
      for (const PipelineSlot& slot : entry().order(shape, stage))
        works[{slot.micro_batch, slot.chunk}].push_back(slot.work);
      const std::int64_t passes = entry().bidirectional ? 1 : shape.chunks;
      ASSERT_EQ(std::ssize(works), shape.micro_batches * passes) << describe(shape);
      for (const auto& [at, done] : works) {
        EXPECT_GE(at.first, 0);
        EXPECT_LT(at.first, shape.micro_batches);
        EXPECT_GE(at.second, 0);
        EXPECT_LT(at.second, entry().bidirectional ? 2 : shape.chunks);
        const std::vector<Work> expected =
            entry().splits_backward
                ? std::vector{Work::forward, Work::backward_inputs, Work::backward_weights}
                : std::vector{Work::forward, Work::backward};
        ASSERT_EQ(done, expected) << describe(shape);
        if (stage == 0) ways.insert(at);
        EXPECT_TRUE(ways.contains(at)) << describe(shape);
      }
    }
  }
}

TEST_P(Pipeline, EveryLegalShapeFinishesWhateverTheStagesTake) {
  for (const PipelineShape& shape : shapes()) {
    const auto uneven = [](std::int64_t stage) { return 1.0 + 0.7 * double(stage * 5 % 3); };
    EXPECT_TRUE(play(entry(), shape, even()).finished) << describe(shape);
    EXPECT_TRUE(play(entry(), shape, {1.0, 1.7, 0.4}, uneven).finished) << describe(shape);
  }
}

TEST_P(Pipeline, IdleTimeIsItsFormulaOnceThePipelineIsFull) {
  for (const PipelineShape& shape : shapes()) {
    if (shape.micro_batches < 2 * shape.stages) continue;
    const Played played = play(entry(), shape, even());
    const double m = static_cast<double>(shape.micro_batches);
    const double work = m * (2 + even().weights);
    EXPECT_NEAR(played.makespan - work, entry().idle(shape, even()), 0.01 * played.makespan)
        << describe(shape);
  }
}

TEST_P(Pipeline, HoldsAsManyActivationsAsItSays) {
  const Work releases = entry().splits_backward ? Work::backward_weights : Work::backward;
  for (const PipelineShape& shape : shapes()) {
    for (std::int64_t stage = 0; stage < shape.stages; ++stage) {
      std::int64_t held = 0, most = 0;
      for (const PipelineSlot& slot : entry().order(shape, stage)) {
        if (slot.work == Work::forward) most = std::max(most, ++held);
        if (slot.work == releases) --held;
      }
      ASSERT_EQ(most_in_flight(entry(), shape, stage), most) << describe(shape) << " " << stage;
    }
  }
}

TEST_P(Pipeline, ChunksAreForTheInterleavedScheduleOnly) {
  const bool interleaved = entry().schedule == PipelineSchedule::interleaved;
  EXPECT_EQ(legal({4, 2, 16}), interleaved);
  EXPECT_EQ(legal({4, 1, 16}), !interleaved);
}

TEST(PipelineMemory, StagesHoldWhatTheirPapersSay) {
  const PipelineShape shape{4, 1, 16};
  for (std::int64_t s = 0; s < 4; ++s) {
    EXPECT_EQ(most_in_flight(kGpipe, shape, s), 16);
    EXPECT_EQ(most_in_flight(kOneForwardOneBackward, shape, s), 4 - s);
    EXPECT_EQ(most_in_flight(kZeroBubbleH1, shape, s), 4);
    EXPECT_EQ(most_in_flight(kZeroBubbleH2, shape, s), 7);
  }
  // p (v - 1) + 2 (p - 1) + 1 chunks (arXiv 2205.05198, section 4.2.3: L (1 + (p - 1) / p v) layers).
  EXPECT_EQ(most_in_flight(kInterleaved, {4, 3, 16}, 0), 4 * 2 + 2 * 3 + 1);
}

TEST(PipelineBubble, OneForwardOneBackwardWithBackwardTwiceForward) {
  for (const std::int64_t m : {1, 2, 5, 8, 64}) {
    for (const std::int64_t p : {1, 2, 4, 7}) {
      const Played played = play(kOneForwardOneBackward, {p, 1, m}, {1, 2, 0});
      const double bubble = 1 - double(3 * m) / played.makespan;
      EXPECT_NEAR(bubble, double(p - 1) / double(m + p - 1), 1e-12) << p << " " << m;
    }
  }
}

TEST(PipelineBubble, InterleavingDividesItByTheChunks) {
  for (const std::int64_t v : {2, 3, 5}) {
    for (const std::int64_t p : {2, 4, 8}) {
      for (const std::int64_t m : {p, 2 * p, 8 * p}) {
        const Played played = play(kInterleaved, {p, v, m}, {1, 1, 0});
        EXPECT_NEAR(1 - double(2 * m) / played.makespan, double(p - 1) / double(v * m + p - 1),
                    1e-9)
            << p << " " << v << " " << m;
      }
    }
  }
}

// Idle time between a stage's first and last slot, as the paper counts it.
TEST(PipelineBubble, ZeroBubbleSchedulesIdleAsTheirPaperSays) {
  for (const StageTimes& t : {StageTimes{1, 1, 1}, {1, 1.1, 0.9}, {1, 1.2, 1}, {2, 2.2, 1.9}}) {
    for (const std::int64_t p : {2, 4, 6, 8}) {
      const std::int64_t m = 4 * p;
      const double stages = static_cast<double>(p - 1);
      const Played h1 = play(kZeroBubbleH1, {p, 1, m}, t), h2 = play(kZeroBubbleH2, {p, 1, m}, t);
      EXPECT_NEAR(*std::ranges::max_element(h1.idle), stages * (t.forward + t.backward - t.weights),
                  0.01 * h1.makespan);
      EXPECT_NEAR(*std::ranges::max_element(h2.idle),
                  stages * (t.forward + t.backward - 2 * t.weights), 0.01 * h2.makespan);
    }
  }
}

TEST(PipelineBubble, DualPipeHasHalfOfZeroBubbleH1) {
  for (const StageTimes& t : {StageTimes{1, 1, 1}, {1, 1.1, 0.9}, {1.3, 1.4, 0.8}}) {
    for (const std::int64_t p : {2, 4, 8}) {
      const Played played = play(kDualPipe, {p, 1, 4 * p}, t);
      const double work = 4 * double(p) * (t.forward + t.backward + t.weights);
      EXPECT_NEAR(played.makespan - work,
                  (double(p) / 2 - 1) * (t.forward + t.backward - t.weights), 1e-9);
    }
  }
}

// Case L06: pipelines that never finish.
TEST(CaseL06, FewerMicroBatchesThanStagesFinish) {
  for (const PipelineEntry* entry : pipeline_schedules()) {
    for (const std::int64_t m : {1, 2, 3}) {
      std::string cure;
      const PipelineShape shape{4, entry->schedule == PipelineSchedule::interleaved ? 2 : 1, m};
      if (entry->refuse(shape, cure).empty())
        EXPECT_TRUE(play(*entry, shape, {1, 2, 1}).finished) << entry->name << " " << m;
      else
        EXPECT_NE(cure.find("micro-batches"), std::string::npos) << entry->name << ": " << cure;
    }
  }
}

TEST(CaseL06, OneMicroBatchPassesOneStageAfterTheOther) {
  for (const PipelineEntry* entry : {&kGpipe, &kOneForwardOneBackward})
    EXPECT_DOUBLE_EQ(play(*entry, {5, 1, 1}, {1, 2, 0}).makespan, 15);
}

TEST(CaseL06, TwoStagesInterleavedFinish) {
  const Played played = play(kInterleaved, {2, 2, 4}, {1, 2, 0});
  EXPECT_TRUE(played.finished);
  EXPECT_NEAR(played.makespan, 4 * 3 + 1.5, 1e-9);
}

TEST(CaseL06, InterleavingRefusesAPartialGroupWithItsNeighbours) {
  std::string cure;
  EXPECT_NE(kInterleaved.refuse({4, 2, 10}, cure).find("10 is not a multiple of 4"),
            std::string::npos);
  EXPECT_EQ(cure, "8 or 12 micro-batches per replica");
}

TEST(CaseL06, UnevenLayersFinish) {
  for (const PipelineEntry* entry : pipeline_schedules()) {
    const PipelineShape shape{4, entry->schedule == PipelineSchedule::interleaved ? 2 : 1, 8};
    const auto slow_end = [](std::int64_t stage) { return stage == 3 ? 2.5 : 1.0; };
    EXPECT_TRUE(play(*entry, shape, {1, 2, 1}, slow_end).finished) << entry->name;
  }
}

}  // namespace
}  // namespace weft
