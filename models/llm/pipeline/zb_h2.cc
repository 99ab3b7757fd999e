// SPDX-License-Identifier: Apache-2.0
// ZB-H1 with twice the forwards ahead and twice the delay of the weights' gradients. No stage idles between its first and its
// last slot when the three parts take equal time, (p - 1)(F + B - 2W) in general. Later stages start and end later: the step is
// that much longer unless the optimizer of a stage starts without waiting for all.
#include <algorithm>

#include "models/llm/pipeline/order.hpp"

namespace weft {

const PipelineEntry kZeroBubbleH2{
    .name = "zb-h2",
    .summary = "no bubble at equal times, with twice 1F1B's activations: 2p - 1 micro-batches",
    .reference = "Qi et al., arXiv 2401.10241",
    .schedule = PipelineSchedule::zb_h2,
    .splits_backward = true,
    .refuse = pipeline::refuse_chunks,
    .order =
        [](const PipelineShape& shape, std::int64_t stage) {
          return pipeline::one_forward_one_backward(shape.micro_batches,
                                                    2 * (shape.stages - 1 - stage), 2 * stage);
        },
    .idle =
        [](const PipelineShape& shape, const StageTimes& t) {
          const double inside = std::max(t.forward + t.backward - 2 * t.weights, 0.0);
          return static_cast<double>(shape.stages - 1) * (t.forward + inside);
        },
    .in_flight = [](const PipelineShape& shape,
                    std::int64_t) { return std::min(shape.micro_batches, 2 * shape.stages - 1); }};

}  // namespace weft
