// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>

#include <fmt/format.h>

#include "models/llm/pipeline/order.hpp"
#include "sim/core/check.hpp"

namespace weft {

std::span<const PipelineEntry* const> pipeline_schedules() {
  static constexpr std::array kAll{&kGpipe,        &kOneForwardOneBackward, &kInterleaved,
                                   &kZeroBubbleH1, &kZeroBubbleH2,          &kDualPipe};
  return kAll;
}

const PipelineEntry& pipeline_entry(PipelineSchedule schedule) {
  for (const PipelineEntry* entry : pipeline_schedules()) {
    if (entry->schedule == schedule) return *entry;
  }
  WEFT_CHECK(false, static_cast<int>(schedule));
}

std::optional<SlotAt> source_of(const PipelineEntry& entry, const PipelineShape& shape,
                                const SlotAt& at) {
  using pipeline::Work;
  SlotAt source = at;
  if (at.slot.work == Work::backward_weights) {
    source.slot.work = Work::backward_inputs;
    return source;
  }
  const std::int64_t last = shape.stages - 1;
  const bool forward = at.slot.work == Work::forward;
  const bool reversed = entry.bidirectional && at.slot.chunk == 1;
  source.stage += forward == reversed ? 1 : -1;
  if (source.stage >= 0 && source.stage <= last) return source;
  const std::int32_t chunk = at.slot.chunk + (forward ? -1 : 1);
  if (!entry.bidirectional && chunk >= 0 && chunk < shape.chunks) {
    source.stage = forward ? last : 0;
    source.slot.chunk = chunk;
    return source;
  }
  if (forward) return std::nullopt;
  source = at;
  source.slot.work = Work::forward;
  return source;
}

namespace pipeline {

Order one_forward_one_backward(std::int64_t micro_batches, std::int64_t warm_up) {
  const auto m = static_cast<std::int32_t>(micro_batches);
  const auto ahead = static_cast<std::int32_t>(std::min(warm_up, micro_batches));
  Order order;
  for (std::int32_t i = 0; i < ahead; ++i) order.push_back({Work::forward, i});
  for (std::int32_t i = 0; i < m; ++i) {
    if (ahead + i < m) order.push_back({Work::forward, ahead + i});
    order.push_back({Work::backward, i});
  }
  return order;
}

Order one_forward_one_backward(std::int64_t micro_batches, std::int64_t warm_up,
                               std::int64_t weight_delay) {
  const auto m = static_cast<std::int32_t>(micro_batches);
  const auto delay = static_cast<std::int32_t>(std::min(weight_delay, micro_batches));
  Order order;
  for (PipelineSlot slot : one_forward_one_backward(micro_batches, warm_up)) {
    const bool backward = slot.work == Work::backward;
    if (backward) slot.work = Work::backward_inputs;
    order.push_back(slot);
    if (backward && slot.micro_batch >= delay)
      order.push_back({Work::backward_weights, slot.micro_batch - delay});
  }
  for (std::int32_t i = m - delay; i < m; ++i) order.push_back({Work::backward_weights, i});
  return order;
}

std::string refuse_chunks(const PipelineShape& shape, std::string& cure) {
  if (shape.chunks == 1) return {};
  cure = "\"vpp\": 1, or \"schedule\": \"1f1b-interleaved\"";
  return fmt::format("{} chunks per stage need the interleaved schedule", shape.chunks);
}

}  // namespace pipeline
}  // namespace weft
