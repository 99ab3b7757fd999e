// SPDX-License-Identifier: Apache-2.0
// Where the time of a step went.
#include <algorithm>

#include "models/llm/host.hpp"
#include "models/llm/step.hpp"

namespace weft {

StreamTimes StepBuilder::times(const Executor& executor, const Timeline& timeline, Time start,
                               Time end) const {
  StreamTimes out;
  Time reached = start;
  // A gap belongs to the dimension of what ended it, as far as that was under way; the rest was waiting for others.
  const auto attribute = [&](Time until, OpId cause) {
    const double gap = (until - reached).seconds();
    if (gap <= 0) return;
    const auto label = [&](OpId op) {
      return cause.valid() ? workload_->operations[op].label - first_label_ : kAllStages;
    };
    // Where all stages meet, it is what the last of them waited for.
    while (cause.valid() && label(cause) == kAllStages) cause = executor.times(cause).cause;
    const std::uint32_t what = label(cause);
    if (what >= kDimensions) {
      out.bubble += gap;
      return;
    }
    Time began = executor.times(cause).started;
    for (OpId op = cause; op.valid() && label(op) == what; op = executor.times(op).cause)
      began = executor.times(op).started;
    const double under_way = std::min(gap, (until - began).seconds());
    out.exposed[what] += under_way;
    out.bubble += gap - under_way;
  };
  for (const OpId op : timeline.computing) {
    const OperationTimes& times = executor.times(op);
    attribute(times.started, times.cause);
    out.compute += (times.finished - times.started).seconds();
    reached = times.finished;
  }
  const double written = std::min(checkpoint_s(in_.model, in_.training), (end - reached).seconds());
  out.exposed[label_of(Dimension::other)] += written;
  const double rest = (end - reached).seconds() - written;
  // What is left behind the optimizer is weights on their way, or other stages' optimizers.
  const bool gathers = in_.training.plan.zero > 0 && !in_.training.plan.overlap.param_gather;
  (gathers ? out.exposed[label_of(Dimension::dp)] : out.bubble) += std::max(0.0, rest);
  return out;
}

std::string StepBuilder::algorithm(Dimension dimension) const {
  const auto found = largest_.find(dimension);
  return found == largest_.end() ? std::string{} : lockstep_->algorithm(found->second.second);
}

}  // namespace weft
