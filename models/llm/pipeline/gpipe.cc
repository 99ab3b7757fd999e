// SPDX-License-Identifier: Apache-2.0
// All forwards, then all backwards: simple, and every micro-batch's activations are held at once.
#include "models/llm/pipeline/order.hpp"

namespace weft {

const PipelineEntry kGpipe{
    .name = "gpipe",
    .summary = "all forwards, then all backwards; activations of every micro-batch are held",
    .reference = "Huang et al., arXiv 1811.06965",
    .schedule = PipelineSchedule::gpipe,
    .refuse = pipeline::refuse_chunks,
    .order =
        [](const PipelineShape& shape, std::int64_t) {
          return pipeline::one_forward_one_backward(shape.micro_batches, shape.micro_batches);
        },
    .idle =
        [](const PipelineShape& shape, const StageTimes& t) {
          return static_cast<double>(shape.stages - 1) * (t.forward + t.backward);
        },
    .in_flight = [](const PipelineShape& shape, std::int64_t) { return shape.micro_batches; }};

}  // namespace weft
