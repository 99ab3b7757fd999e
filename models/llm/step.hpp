// SPDX-License-Identifier: Apache-2.0
// The operations of one training step on a fabric.
//
//   streams    A timeline is one stage of a class of replicas that do the same at the same time. Its compute stream runs the
//              slots of the pipeline's order one after the other; weights are gathered and gradients reduced on streams of their
//              own; sends to the next stage leave the compute stream free where the plan overlaps them. Copies to the host and
//              back have a stream too, that of the copy engines.
//   collective One call is one pattern of Lockstep over all groups of the timeline; those over replicas of several classes
//              start when the last class is there.
//   pace       Where the GPU says so (ComputeSpec::beside_collectives), computing takes longer while a collective of its timeline
//              runs; copies slow nothing down.
//   folding    All replicas are one class unless something tells them apart: a slow GPU. Groups of experts that span replicas
//              keep these in one class. `models.fold` false: none is folded.
//
// Where the time went is read off the compute stream afterwards: it worked, or it waited for what ended its gap.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <tuple>
#include <vector>

#include "models/llm/layer_pass.hpp"
#include "models/llm/memory.hpp"
#include "models/llm/pipeline/pipeline.hpp"
#include "models/llm/plan.hpp"
#include "sim/run/executor.hpp"
#include "sim/run/library.hpp"
#include "sim/run/lockstep.hpp"

namespace weft {

// Labels of operations beyond those of the dimensions.
enum : std::uint32_t { kForward = kDimensions, kBackward, kOptimizer, kAllStages, kLabels };
constexpr std::uint32_t label_of(Dimension dimension) {
  return static_cast<std::uint32_t>(dimension);
}

// Seconds of one timeline's compute stream; everything adds up to the step.
struct StreamTimes {
  double compute = 0, bubble = 0;
  std::array<double, kDimensions> exposed{};
};

// Of all steps of a job together; each takes some 150 bytes and a microsecond.
inline constexpr std::int64_t kMostOperations = 20'000'000;

struct StepInputs {
  const Architecture& model;
  const TrainingSpec& training;
  const LayerPasses& passes;
  const StageLayout& layout;
  RankLayout ranks;
  std::vector<NodeId> gpus;      // by rank
  std::vector<double> slowness;  // by rank: time over that of a sound GPU; empty when all are
  std::string name;              // of the job
  bool fold = true;              // false: every replica is a class of its own
  // Called now and then while a step is put together, with slots of the schedule done so far; may be empty.
  std::function<void(std::uint64_t slots)> progress = {};
};

class StepBuilder {
 public:
  explicit StepBuilder(StepInputs inputs);

  // Everything that append() will send, so that it can be folded.
  void register_patterns(Lockstep& lockstep);
  // A step behind `start`; returns what ends it. `measured`: times() tells of it. Throws LimitReached.
  OpId append(Workload& workload, Lockstep& lockstep, OpId start, bool measured = true);

  struct Timeline {
    std::int64_t stage = 0;
    std::vector<std::int64_t> replicas;
    double slowness = 1;
    std::vector<OpId> computing;  // in order
  };
  const std::vector<Timeline>& timelines() const { return timelines_; }
  // Of all measured steps together, which lie from `start` to `end`.
  StreamTimes times(const Executor& executor, const Timeline& timeline, Time start, Time end) const;
  // Of one checkpoint's share of a step, mean of the measured steps.
  double checkpoint_s(const Executor& executor) const;
  // What one rank hands to collectives of a dimension in one step, all timelines' mean.
  const std::array<double, kDimensions>& bytes_by_dimension() const { return bytes_; }
  std::string algorithm(
      Dimension dimension) const;  // of its largest call; empty when there is none
  std::size_t classes() const { return classes_.size(); }

 private:
  struct Streams {
    OpId compute, gather, reduce, forward_sends, backward_sends, host;
    std::deque<OpId> layers;  // ends of the last ones computed: how far gathers may run ahead
    double pending = 0;       // seconds of compute not yet an operation
  };
  std::size_t timeline(std::size_t replica_class, std::int64_t stage) const {
    return replica_class * static_cast<std::size_t>(stages_) + static_cast<std::size_t>(stage);
  }
  // What a call moves: which replicas of a stage, and how.
  struct Call {
    std::size_t replica_class = 0;
    bool all_classes = false;
    std::int64_t stage = 0;
    Dimension dimension = Dimension::tp;
    enum class Over : std::uint8_t { all, shard, copies } over = Over::all;  // of dp and edp
    CollectiveKind kind = CollectiveKind::all_reduce;
    double bytes = 0;
    auto operator<=>(const Call&) const = default;
  };

  void split_classes();
  std::vector<Lockstep::Group> groups(const Call& call) const;
  double slowness_of(std::int64_t replica, std::int64_t stage) const;
  double boundary(std::int64_t a, std::int64_t b) const {
    return boundaries_[static_cast<std::size_t>(std::min(a, b))];
  }
  RankParameters parameters_of(std::int64_t layer) const;
  RankParameters parameters_of(std::int64_t stage, const Chunk& chunk) const;
  RankParameters ends_of(std::int64_t stage, const Chunk& chunk) const;  // embedding, output
  void run_step();
  void run_slot(const SlotAt& at);
  void run_forward(const SlotAt& at, const Chunk& chunk);
  void run_backward(const SlotAt& at, const Chunk& chunk, PassKind kind);
  void run_pass(std::int64_t stage, const LayerPass& pass, std::uint32_t label);
  double shard_ranks(bool experts) const;
  void count(Dimension dimension, CollectiveKind kind, double bytes);
  void receive(const SlotAt& at);
  void send(const SlotAt& at);
  void gather_early(std::int64_t stage);
  void gather(std::int64_t stage, StageParameters parameters, std::uint32_t label);
  OpId gather_now(std::int64_t stage, StageParameters parameters, const std::vector<OpId>& start);
  OpId over_replicas(std::int64_t stage, bool experts, Call::Over over, CollectiveKind kind,
                     double bytes, const std::vector<OpId>& start);
  // `last`: nothing more is added to these gradients in this step.
  void reduce(std::int64_t stage, StageParameters parameters, bool last);
  void flush_reduce(std::int64_t stage, bool last);
  void reduce_embeddings();
  void finish_step();
  StageParameters own_part(const StageParameters& all) const;  // of one rank, after sharding
  OpId host_copy(std::int64_t stage, double bytes, HostWay way, OpId start);
  void offload_gradients(std::int64_t stage, const StageParameters& reduced, OpId start);
  void step_on_host(std::int64_t stage, double parameters, OpId start);
  void write_checkpoint();

  OpId delay(double seconds, OpId after, std::uint32_t label);
  OpId flush(std::size_t t, std::uint32_t label);
  // Over all groups of a timeline, or of all classes of a stage; `ready` of each class.
  OpId communicate(const Call& call, const std::vector<OpId>& ready);
  OpId append_slowing(std::uint32_t pattern, OpId start, std::uint32_t label,
                      const std::vector<std::size_t>& timelines);
  std::vector<OpId> ready(std::int64_t stage, std::uint32_t label);
  OpId barrier(const std::vector<OpId>& before, std::uint32_t label);
  void wait(OpId before, OpId after);

  StepInputs in_;
  std::int64_t stages_, chunks_, micro_batches_;
  const PipelineEntry& entry_;
  PipelineShape shape_;
  std::vector<double> boundaries_;                  // bytes from a stage to the next one
  std::vector<std::int64_t> embedding_stages_;      // that hold a copy of the embedding
  std::vector<std::vector<std::int64_t>> classes_;  // replicas
  std::vector<Timeline> timelines_;
  std::vector<Streams> streams_;
  std::map<Call, std::uint32_t> patterns_;
  std::map<std::tuple<std::size_t, std::int64_t, std::int64_t>, std::uint32_t> sends_;
  std::map<std::tuple<std::int64_t, std::int64_t, HostWay>, std::uint32_t>
      copies_;                        // by stage, bytes
  std::vector<std::uint32_t> paces_;  // by timeline; empty: none
  std::optional<std::uint32_t> checkpoint_copies_;
  std::vector<std::pair<OpId, OpId>> checkpoints_;  // measured ones: begin, end

  // Of the running pass.
  std::map<SlotAt, std::int64_t> consumers_;  // another stage that works on a slot's result
  std::map<std::tuple<std::size_t, std::int64_t, PipelineSlot>, OpId> arrivals_;
  std::map<std::pair<std::int64_t, std::int64_t>, OpId> early_;  // weights by stage and chunk
  std::vector<StageParameters> unreduced_;                       // by stage
  std::map<std::pair<std::int64_t, std::int64_t>, std::int64_t> backwards_;  // by stage and chunk
  Lockstep* lockstep_ = nullptr;
  Workload* workload_ = nullptr;  // null while patterns are registered
  std::uint32_t first_label_ = 0;
  bool measured_ = true;
  std::uint64_t slots_ = 0;
  std::array<double, kDimensions> bytes_{};
  std::map<Dimension, std::pair<double, std::uint32_t>> largest_;
};

}  // namespace weft
