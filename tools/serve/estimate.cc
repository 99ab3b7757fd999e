// SPDX-License-Identifier: Apache-2.0
#include "tools/serve/estimate.hpp"

#include <algorithm>

namespace weft {
namespace {

// measured: 17 questions, Llama 3 8B to 405B, Mixtral and DeepSeek-V3, on 64 to 16,384 GPUs, one core at 2.5 GHz, not optimised. Counts
// are within a factor of 2, times within 3, but for racks of 72 GPUs, which plan 20 times as long.
constexpr double kOperationsWithTp = 165, kOperationsWithExperts = 67, kOperationsAlone = 12;
constexpr double kSecondsOfOperation = 3e-7, kSecondsOfGpu = 1.7e-4;
constexpr double kWholeOverQuick = 1.5;

}  // namespace

Estimate estimate(const Question& question, std::int64_t layers) {
  const auto real = [](std::int64_t count) { return static_cast<double>(count); };
  const double micro_batches =
      std::max(1.0, real(question.global_batch) / (real(question.dp) * real(question.micro_batch)));
  const double of_layer = question.tp > 1   ? kOperationsWithTp
                          : question.ep > 1 ? kOperationsWithExperts
                                            : kOperationsAlone;
  Estimate out;
  out.operations = real(layers) * micro_batches * of_layer;
  out.seconds = (out.operations * kSecondsOfOperation + real(question.gpus) * kSecondsOfGpu) *
                (question.quick ? 1 : kWholeOverQuick);
  return out;
}

}  // namespace weft
