// SPDX-License-Identifier: Apache-2.0
// What a step moves between GPUs and the memory of their hosts, over the links that lie there.
#include <algorithm>

#include "models/llm/host.hpp"
#include "models/llm/step.hpp"
#include "sim/core/check.hpp"

namespace weft {

// Of every GPU of a stage at once.
OpId StepBuilder::host_copy(std::int64_t stage, double bytes, HostWay way, OpId start) {
  const auto whole = static_cast<std::int64_t>(bytes + 0.5);
  const auto key = std::tuple{stage, whole, way};
  auto found = copies_.find(key);
  if (found == copies_.end()) {
    WEFT_CHECK(workload_ == nullptr, copies_.size());
    const PlanSpec& plan = in_.training.plan;
    std::vector<NodeId> gpus;
    for (std::int64_t dp = 0; dp < *plan.dp; ++dp) {
      for (std::int64_t cp = 0; cp < plan.cp; ++cp) {
        for (std::int64_t tp = 0; tp < plan.tp; ++tp)
          gpus.push_back(in_.gpus[static_cast<std::size_t>(in_.ranks.rank({tp, cp, dp, stage}))]);
      }
    }
    found = copies_.emplace(key, lockstep_->host_copies(Bytes{whole}, gpus, way)).first;
  }
  if (way != HostWay::within)
    bytes_[label_of(Dimension::host)] += bytes / static_cast<double>(stages_);
  if (workload_ == nullptr) return {};
  return lockstep_->append(found->second, start, first_label_ + label_of(Dimension::host));
}

// Behind those before, beside what is computed.
void StepBuilder::offload_gradients(std::int64_t stage, const StageParameters& reduced,
                                    OpId start) {
  std::vector<OpId> before{start};
  for (std::size_t c = 0; c < classes_.size(); ++c)
    before.push_back(streams_[timeline(c, stage)].host);
  const double bytes = own_part(reduced).total() * bytes_of(in_.training.dtype.grad);
  const OpId done =
      host_copy(stage, bytes, HostWay::to_host, barrier(before, label_of(Dimension::host)));
  for (std::size_t c = 0; c < classes_.size(); ++c) streams_[timeline(c, stage)].host = done;
}

void StepBuilder::step_on_host(std::int64_t stage, double parameters, OpId start) {
  const OpId stepped =
      host_copy(stage, parameters * step_bytes(in_.training), HostWay::within, start);
  const OpId back =
      host_copy(stage, parameters * bytes_of(in_.training.dtype.param), HostWay::to_gpu, stepped);
  for (std::size_t c = 0; c < classes_.size(); ++c) streams_[timeline(c, stage)].compute = back;
}

// A part of a checkpoint in every step; to storage through the host, where there is one.
void StepBuilder::write_checkpoint() {
  const auto& checkpoint = in_.training.checkpoint;
  if (!checkpoint) return;
  std::vector<OpId> before;
  for (const Streams& streams : streams_) before.push_back(streams.compute);
  const OpId start = barrier(before, label_of(Dimension::other));
  std::vector<OpId> ends;
  const double bytes =
      checkpoint_bytes(in_.model, in_.training) / static_cast<double>(checkpoint->every_steps);
  if (in_.training.host.link > 0) {
    if (!checkpoint_copies_)
      checkpoint_copies_ = lockstep_->host_copies(Bytes{static_cast<std::int64_t>(bytes + 0.5)},
                                                  in_.gpus, HostWay::to_host);
    if (workload_ != nullptr)
      ends.push_back(
          lockstep_->append(*checkpoint_copies_, start, first_label_ + label_of(Dimension::other)));
  }
  if (workload_ == nullptr) return;
  if (const double seconds = storage_s(in_.model, in_.training); seconds > 0)
    ends.push_back(delay(seconds, start, label_of(Dimension::other)));
  const OpId end = barrier(ends, label_of(Dimension::other));
  for (Streams& streams : streams_) streams.compute = end;
  if (measured_) checkpoints_.emplace_back(start, end);
}

double StepBuilder::checkpoint_s(const Executor& executor) const {
  double sum = 0;
  for (const auto& [start, end] : checkpoints_)
    sum += (executor.times(end).finished - executor.times(start).finished).seconds();
  return checkpoints_.empty() ? 0 : sum / static_cast<double>(checkpoints_.size());
}

}  // namespace weft
