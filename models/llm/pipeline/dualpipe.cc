// SPDX-License-Identifier: Apache-2.0
// Micro-batches enter at both ends of the pipeline: stage s holds layers s of one copy and layers p-1-s of a second one, and
// pairs the forward of one direction with the backward of the other, whose communication can then hide under computing.
// Seen from a stage, `near` is the direction whose first stage is closer. Eight phases, by the distance h of the stage from
// its end: fill near, fill both, drain the first far backwards without delay, the steady pairs, and the same backwards.
#include <algorithm>

#include <fmt/format.h>

#include "models/llm/pipeline/order.hpp"

namespace weft {
namespace {

using pipeline::Order;
using pipeline::Work;

std::string refuse(const PipelineShape& shape, std::string& cure) {
  const std::int64_t p = shape.stages, m = shape.micro_batches;
  if (std::string broken = pipeline::refuse_chunks(shape, cure); !broken.empty()) return broken;
  if (p % 2 != 0) {
    cure = p == 1 ? "\"pp\": 2" : fmt::format("\"pp\": {} or {}", p - 1, p + 1);
    return fmt::format("DualPipe pairs stages from both ends: {} stages are odd", p);
  }
  if (m >= 2 * p && m % 2 == 0) return {};
  cure = m < 2 * p ? fmt::format("{} micro-batches per replica", 2 * p)
                   : fmt::format("{} or {} micro-batches per replica", m - 1, m + 1);
  return fmt::format(
      "DualPipe needs an even number of micro-batches, two for every stage: {} with {} stages", m,
      p);
}

class Writer {
 public:
  Writer(const PipelineShape& shape, std::int64_t stage)
      : half_(static_cast<std::int32_t>(shape.micro_batches / 2)),
        near_(2 * stage < shape.stages ? 0 : 1) {}

  void forward(bool far) { order_.push_back(next(Work::forward, far, forwards_)); }
  // Both parts at once, or the inputs' part alone with the weights' put off.
  void backward(bool far) {
    inputs(far);
    order_.push_back(late_.back());
    late_.pop_back();
  }
  void inputs(bool far) {
    PipelineSlot slot = next(Work::backward_inputs, far, backwards_);
    order_.push_back(slot);
    slot.work = Work::backward_weights;
    late_.push_back(slot);
  }
  void weights() {
    order_.push_back(late_.front());
    late_.erase(late_.begin());
  }
  Order take() { return std::move(order_); }

 private:
  PipelineSlot next(Work work, bool far, std::int32_t (&count)[2]) const {
    const std::int32_t chunk = far ? 1 - near_ : near_;
    return {work, count[chunk]++ + chunk * half_, chunk};
  }

  std::int32_t half_, near_;
  std::int32_t forwards_[2] = {0, 0}, backwards_[2] = {0, 0};
  std::vector<PipelineSlot> late_;
  Order order_;
};

Order order(const PipelineShape& shape, std::int64_t stage) {
  constexpr bool near = false, far = true;
  const std::int64_t p = shape.stages, h = std::min(stage, p - 1 - stage);
  const std::int64_t inner = p / 2 - 1 - h;  // stages between this one and the middle
  Writer out(shape, stage);
  const auto repeat = [](std::int64_t times, auto&& what) {
    for (std::int64_t i = 0; i < times; ++i) what(i);
  };
  repeat(2 * inner, [&](auto) { out.forward(near); });
  repeat(h + 1, [&](auto) {
    out.forward(near);
    out.forward(far);
  });
  repeat(inner, [&](auto) {
    out.inputs(far);
    out.weights();
    out.forward(far);
  });
  repeat(shape.micro_batches / 2 - p + h + 1, [&](auto) {
    out.forward(near);
    out.backward(far);
    out.forward(far);
    out.backward(near);
  });
  repeat(inner, [&](auto) {
    out.backward(far);
    out.forward(far);
    out.backward(near);
  });
  // From the middle of this phase on the weights are put off, so that the ends of the pipeline are not kept waiting.
  repeat(2 * (h + 1), [&](std::int64_t i) {
    const bool direction = i % 2 == 0 ? far : near;
    if (i < h + 1)
      out.backward(direction);
    else
      out.inputs(direction);
  });
  repeat(inner, [&](auto) {
    out.weights();
    out.inputs(near);
  });
  repeat(h + 1, [&](auto) { out.weights(); });
  return out.take();
}

}  // namespace

const PipelineEntry kDualPipe{
    .name = "dualpipe",
    .summary =
        "micro-batches from both ends over two copies of the model; pairs of forward and "
        "backward hide communication",
    .reference = "DeepSeek-V3, arXiv 2412.19437, section 3.2.1",
    .schedule = PipelineSchedule::dualpipe,
    .splits_backward = true,
    .bidirectional = true,
    .refuse = refuse,
    .order = order,
    // The paper's (p/2 - 1)(F&B + B - 3W) takes a pair F&B as one indivisible piece. Here the next stage starts when its part of
    // the pair is done, which leaves F + B - W.
    .idle =
        [](const PipelineShape& shape, const StageTimes& t) {
          return (static_cast<double>(shape.stages) / 2 - 1) *
                 std::max(t.forward + t.backward - t.weights, 0.0);
        },
    .in_flight = [](const PipelineShape& shape, std::int64_t) { return shape.stages + 1; }};

}  // namespace weft
