// SPDX-License-Identifier: Apache-2.0
// Interleaved 1F1B as Megatron-LM orders it: a stage has v chunks of layers a pipeline apart and takes p micro-batches through
// one chunk before it turns to the next, so that filling the pipeline costs a v-th of the time.
#include <algorithm>

#include <fmt/format.h>

#include "models/llm/pipeline/order.hpp"

namespace weft {
namespace {

using pipeline::Order;
using pipeline::Work;

std::string refuse(const PipelineShape& shape, std::string& cure) {
  const std::int64_t p = shape.stages, m = shape.micro_batches;
  if (p == 1) {
    cure = "\"schedule\": \"1f1b\" with \"vpp\": 1";
    return "interleaving needs at least two stages";
  }
  if (shape.chunks == 1) {
    cure = "\"vpp\": 2 or more, or \"schedule\": \"1f1b\"";
    return "interleaving needs at least two chunks of layers per stage";
  }
  if (m % p == 0) return {};
  const std::int64_t above = (m / p + 1) * p;
  cure = m < p ? fmt::format("{} micro-batches per replica", above)
               : fmt::format("{} or {} micro-batches per replica", above - p, above);
  return fmt::format(
      "interleaving takes micro-batches in groups of one per stage: {} is not a multiple of {}", m,
      p);
}

// The i-th of the chunk passes of one direction.
PipelineSlot pass(const PipelineShape& shape, Work work, std::int64_t i) {
  const std::int64_t p = shape.stages, v = shape.chunks;
  const std::int64_t chunk = i / p % v;
  return {work, static_cast<std::int32_t>(i / (p * v) * p + i % p),
          static_cast<std::int32_t>(work == Work::forward ? chunk : v - 1 - chunk)};
}

Order order(const PipelineShape& shape, std::int64_t stage) {
  const std::int64_t p = shape.stages, v = shape.chunks, total = shape.micro_batches * v;
  const std::int64_t ahead = std::min(2 * (p - 1 - stage) + (v - 1) * p, total);
  Order out;
  for (std::int64_t i = 0; i < ahead; ++i) out.push_back(pass(shape, Work::forward, i));
  for (std::int64_t i = 0; i < total; ++i) {
    if (ahead + i < total) out.push_back(pass(shape, Work::forward, ahead + i));
    out.push_back(pass(shape, Work::backward, i));
  }
  return out;
}

}  // namespace

const PipelineEntry kInterleaved{
    .name = "1f1b-interleaved",
    .summary = "1F1B over several chunks of layers per stage, the bubble divided by their number",
    .reference = "Narayanan et al., arXiv 2104.04473",
    .schedule = PipelineSchedule::interleaved,
    .refuse = refuse,
    .order = order,
    .idle =
        [](const PipelineShape& shape, const StageTimes& t) {
          return static_cast<double>(shape.stages - 1) * (t.forward + t.backward) /
                 static_cast<double>(shape.chunks);
        },
    .in_flight =
        [](const PipelineShape& shape, std::int64_t stage) {
          const std::int64_t p = shape.stages, v = shape.chunks;
          return std::min(shape.micro_batches * v, 2 * (p - 1 - stage) + (v - 1) * p + 1);
        }};

}  // namespace weft
