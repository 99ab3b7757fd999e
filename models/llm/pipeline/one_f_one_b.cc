// SPDX-License-Identifier: Apache-2.0
// A stage runs ahead by as many micro-batches as stages follow it, then alternates: the bubble of GPipe with at most one
// micro-batch per remaining stage in memory.
#include <algorithm>

#include "models/llm/pipeline/order.hpp"

namespace weft {

const PipelineEntry kOneForwardOneBackward{
    .name = "1f1b",
    .summary = "one forward and one backward in turn; stage s of p holds p - s micro-batches",
    .reference = "Narayanan et al., arXiv 2006.09503 (PipeDream-Flush)",
    .schedule = PipelineSchedule::one_f_one_b,
    .refuse = pipeline::refuse_chunks,
    .order =
        [](const PipelineShape& shape, std::int64_t stage) {
          return pipeline::one_forward_one_backward(shape.micro_batches, shape.stages - 1 - stage);
        },
    .idle =
        [](const PipelineShape& shape, const StageTimes& t) {
          return static_cast<double>(shape.stages - 1) * (t.forward + t.backward);
        },
    .in_flight =
        [](const PipelineShape& shape, std::int64_t stage) {
          return std::min(shape.micro_batches, shape.stages - stage);
        }};

}  // namespace weft
