// SPDX-License-Identifier: Apache-2.0
// Pipeline schedules: in which order a stage works on micro-batches. What waits for what follows from the order alone, so
// bubbles come out of running it. A schedule is one file that ends in one record, and a line in catalog.cc.
#pragma once

#include <cstdint>
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
  bool operator==(const PipelineSlot&) const = default;
};

struct PipelineShape {
  std::int64_t stages = 1, chunks = 1, micro_batches = 1;
};

struct PipelineEntry {
  std::string_view name, summary, reference;
  PipelineSchedule schedule;
  bool splits_backward = false;
  // Empty when legal, else the broken rule; `cure` gets the nearest legal values.
  std::string (*refuse)(const PipelineShape&, std::string& cure);
  // The slots of one stage in order.
  std::vector<PipelineSlot> (*order)(const PipelineShape&, std::int64_t stage);
};

std::span<const PipelineEntry* const> pipeline_schedules();
const PipelineEntry& pipeline_entry(PipelineSchedule schedule);

}  // namespace weft
