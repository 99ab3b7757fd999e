// SPDX-License-Identifier: Apache-2.0
#include "tools/serve/estimate.hpp"

#include <algorithm>

namespace weft {
namespace {

// Counted and timed on two cores of 2.5 GHz: Llama 3 8B, 70B and 405B, Mixtral and DeepSeek-V3 on 64 to 16,384 GPUs.
constexpr double kOperationsOfLayer = 27, kOfQuietLayer = 3;
constexpr double kRuns = 5;
constexpr double kSecondsOfOperation = 3e-7, kSecondsOfGpu = 5e-5;

}  // namespace

Estimate estimate(const Question& question, std::int64_t layers) {
  const auto real = [](std::int64_t count) { return static_cast<double>(count); };
  const double micro_batches =
      std::max(1.0, real(question.global_batch) / (real(question.dp) * real(question.micro_batch)));
  const bool talks = question.tp > 1 || question.ep > 1;
  const double runs = question.quick ? 1 : kRuns;
  Estimate out;
  out.operations =
      runs * real(layers) * micro_batches * (talks ? kOperationsOfLayer : kOfQuietLayer);
  out.seconds = out.operations * kSecondsOfOperation + runs * real(question.gpus) * kSecondsOfGpu;
  return out;
}

}  // namespace weft
