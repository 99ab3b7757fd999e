// SPDX-License-Identifier: Apache-2.0
// The backward pass is split: gradients of inputs, for which the stage before waits, and gradients of weights, for which
// nobody does. Stage s puts the latter off by s micro-batches: they fill the bubble at the end, and every stage holds as many
// micro-batches as the first one of 1F1B does.
#include <algorithm>

#include "models/llm/pipeline/order.hpp"

namespace weft {

const PipelineEntry kZeroBubbleH1{
    .name = "zb-h1",
    .summary = "weights' gradients fill the bubble; a third of 1F1B's idle time in its memory",
    .reference = "Qi et al., arXiv 2401.10241",
    .schedule = PipelineSchedule::zb_h1,
    .splits_backward = true,
    .refuse = pipeline::refuse_chunks,
    .order =
        [](const PipelineShape& shape, std::int64_t stage) {
          return pipeline::one_forward_one_backward(shape.micro_batches, shape.stages - 1 - stage,
                                                    stage);
        },
    .idle =
        [](const PipelineShape& shape, const StageTimes& t) {
          return static_cast<double>(shape.stages - 1) * (t.forward + t.backward - t.weights);
        },
    .in_flight = [](const PipelineShape& shape,
                    std::int64_t) { return std::min(shape.micro_batches, shape.stages); }};

}  // namespace weft
