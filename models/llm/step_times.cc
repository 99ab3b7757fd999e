// SPDX-License-Identifier: Apache-2.0
// Where the time of a step went.
#include <algorithm>

#include "models/llm/step.hpp"

namespace weft {

StreamTimes StepBuilder::times(const Executor& executor, const Timeline& timeline, Time start,
                               Time end) const {
  StreamTimes out;
  Time reached = start;
  // A gap is followed backwards along what it waited for: communication is its dimension's, up to the work of another stage or
  // what that stage sent; the rest is the schedule's.
  const auto attribute = [&](Time until, OpId cause) {
    bool sent = false;
    for (Time from = until; from > reached && cause.valid();) {
      const OperationTimes& times = executor.times(cause);
      const std::uint32_t what = workload_->operations[cause].label - first_label_;
      const bool meets = times.started == times.finished;  // barriers: what they waited for counts
      if (!meets && (what >= kDimensions || (sent && what != label_of(Dimension::pp)))) break;
      if (!meets) {
        const Time began = std::max(times.started, reached);
        out.exposed[what] += (from - began).seconds();
        from = until = began;
        sent = sent || what == label_of(Dimension::pp);
      }
      cause = times.cause;
    }
    if (until > reached) out.bubble += (until - reached).seconds();
  };
  for (const OpId op : timeline.computing) {
    const OperationTimes& times = executor.times(op);
    attribute(times.started, times.cause);
    out.compute += (times.finished - times.started).seconds();
    reached = times.finished;
  }
  // Behind the last of it: gradients, weights or a checkpoint of its own on their way, then other stages.
  const OpId last = streams_[static_cast<std::size_t>(&timeline - timelines_.data())].compute;
  const Time done = std::max(executor.times(last).finished, reached);
  attribute(done, last);
  out.bubble += (end - done).seconds();
  return out;
}

std::string StepBuilder::algorithm(Dimension dimension) const {
  const auto found = largest_.find(dimension);
  return found == largest_.end() ? std::string{} : lockstep_->algorithm(found->second.second);
}

}  // namespace weft
