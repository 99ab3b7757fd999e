// SPDX-License-Identifier: Apache-2.0
// What the schedules are written with.
#pragma once

#include <string>
#include <vector>

#include "models/llm/pipeline/pipeline.hpp"

namespace weft::pipeline {

using Order = std::vector<PipelineSlot>;
using Work = PipelineSlot::Work;

// `warm_up` forwards, then one forward and one backward in turn, then what is left. With a weight delay the backward is
// split, and the weights' part follows so many micro-batches after the inputs'.
Order one_forward_one_backward(std::int64_t micro_batches, std::int64_t warm_up);
Order one_forward_one_backward(std::int64_t micro_batches, std::int64_t warm_up,
                               std::int64_t weight_delay);

// Rules.
std::string refuse_chunks(const PipelineShape& shape, std::string& cure);

}  // namespace weft::pipeline
