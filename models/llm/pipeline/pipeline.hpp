// SPDX-License-Identifier: Apache-2.0
// Pipeline schedules: in which order a stage works on micro-batches. What waits for what follows from the order alone, so
// bubbles come out of running it. A schedule is one file that ends in one record, and a line in catalog.cc.
//
//   1F1B, two stages, three micro-batches:      stage 0   F0 F1 B0 F2 B1 .. B2
//                                               stage 1   .. F0 B0 F1 B1 F2 B2
//
// Work passes from a chunk of layers to the next: chunk c of stage s follows chunk c of stage s-1, chunk c of stage 0
// follows chunk c-1 of the last stage. A bidirectional schedule (DualPipe) keeps two copies of the model instead: chunk 0 runs
// from the first stage to the last, chunk 1 from the last to the first, and a micro-batch takes one of the two ways.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "sim/run/training_spec.hpp"

namespace weft {

struct PipelineSlot {
  enum class Work : std::uint8_t { forward, backward, backward_inputs, backward_weights };
  Work work = Work::forward;
  std::int32_t micro_batch = 0, chunk = 0;
  auto operator<=>(const PipelineSlot&) const = default;
};

struct PipelineShape {
  std::int64_t stages = 1, chunks = 1, micro_batches = 1;
};

// Seconds of one micro-batch through all layers of one stage; backward counts what the slots `backward` or
// `backward_inputs` take, weights is 0 where the two are one.
struct StageTimes {
  double forward = 1, backward = 1, weights = 0;
};

struct PipelineEntry {
  std::string_view name, summary, reference;
  PipelineSchedule schedule;
  bool splits_backward = false;
  bool bidirectional = false;
  // Empty when legal, else the broken rule; `cure` gets the nearest legal values.
  std::string (*refuse)(const PipelineShape&, std::string& cure) = nullptr;
  // The slots of one stage in order.
  std::vector<PipelineSlot> (*order)(const PipelineShape&, std::int64_t stage) = nullptr;
  // The time of a step beyond the work of one stage, when the step ends with the last stage: equal stages, free
  // communication and enough micro-batches to fill the pipeline.
  double (*idle)(const PipelineShape&, const StageTimes&) = nullptr;
  // most_in_flight() without walking the order.
  std::int64_t (*in_flight)(const PipelineShape&, std::int64_t stage) = nullptr;
};

std::span<const PipelineEntry* const> pipeline_schedules();
const PipelineEntry& pipeline_entry(PipelineSchedule schedule);

struct SlotAt {
  std::int64_t stage = 0;
  PipelineSlot slot;
  auto operator<=>(const SlotAt&) const = default;
};

// The slot whose result `at` works on: the chunk before it (forward), the chunk after it (backward; at the end of the model
// its own forward), its own backward_inputs (backward_weights). None for the first chunk's forward.
std::optional<SlotAt> source_of(const PipelineEntry& entry, const PipelineShape& shape,
                                const SlotAt& at);

// Most micro-batches of one chunk's activations that a stage holds at once, all its chunks together: from each forward to the
// end of its backward (of its backward_weights where the two are split).
inline std::int64_t most_in_flight(const PipelineEntry& entry, const PipelineShape& shape,
                                   std::int64_t stage) {
  return entry.in_flight(shape, stage);
}

extern const PipelineEntry kGpipe, kOneForwardOneBackward, kInterleaved, kZeroBubbleH1,
    kZeroBubbleH2, kDualPipe;

}  // namespace weft
