// SPDX-License-Identifier: Apache-2.0
#include "models/llm/train.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "models/llm/flops.hpp"
#include "models/llm/host.hpp"
#include "models/llm/inference.hpp"
#include "models/llm/memory.hpp"
#include "models/llm/site.hpp"
#include "models/llm/step.hpp"
#include "sim/core/check.hpp"
#include "sim/run/report.hpp"
#include "sim/run/scenario.hpp"

namespace weft {
namespace {

// Time over that of a sound GPU, by rank: GPUs that a fault slows down, and the slowest of all when they vary.
std::vector<double> slowness(const JobSite& site, const SoftwareSpec& software) {
  const double worst = software.slowest_of(std::ssize(site.gpus));
  const std::vector<SlowGpu> slow = slow_gpus(site);
  if (worst <= 1 && slow.empty()) return {};
  std::vector<double> out(site.gpus.size(), worst);
  for (const auto& [rank, factor] : slow) out[static_cast<std::size_t>(rank)] /= factor;
  return out;
}

// A step is put together pass by pass, some microseconds each, whatever is folded.
constexpr double kMostPasses = 10e6;
void refuse_too_much(const Architecture& model, const TrainingSpec& training) {
  const double passes =
      2 * real(micro_batches(training)) * real(model.layers() + 2 * training.plan.pp);
  if (passes <= kMostPasses) return;
  throw LimitReached(fmt::format(
      "{} micro-batches through {} layers, forward and back, are {:.3g} passes, and {:.0e} is the "
      "most: take larger micro-batches ({}/plan/micro_batch) or a smaller global_batch",
      micro_batches(training), model.layers(), passes, kMostPasses, training.pointer));
}

class TrainingJob : public ModelledJob {
 public:
  TrainingJob(const JobSite& site, const GpuSpec& gpu, TrainingSpec training, StageLayout layout)
      : gpu_(gpu),
        training_(std::move(training)),
        layout_(std::move(layout)),
        model_(training_.model),
        kernels_(gpu_, training_.software),
        passes_(model_, training_, kernels_),
        step_({model_, training_, passes_, layout_, RankLayout(training_.plan, training_.order),
               site.gpus, slowness(site, training_.software), site.spec.name,
               site.scenario.models.fold, [show = site.progress](std::uint64_t slots) {
                 if (show) show(Time{0}, slots);
               }}) {
    step_.register_patterns(site.lockstep);
  }

  // Other jobs and faults may meet some of the steps: every one is simulated.
  void append(Workload& workload, Lockstep& lockstep, OpId start) override {
    const StepsSpec& steps = training_.steps;
    const std::size_t before = workload.operations.size();
    start_ = start;
    for (std::int64_t i = 0; i < steps.warmup + steps.measure; ++i) {
      start = step_.append(workload, lockstep, start, i >= steps.warmup);
      const std::size_t made = workload.operations.size() - before;
      if (i == 0) refuse_too_many(made);
      if (i + 1 == steps.warmup) start_ = start;
    }
    end_ = start;
  }

  void report(const Executor& executor, const Report&, JobReport& out) const override;
  std::vector<Track> tracks() const override;

 private:
  void refuse_too_many(std::size_t of_one) const {
    const std::int64_t steps = training_.steps.warmup + training_.steps.measure;
    if (steps == 1 || static_cast<double>(of_one) * real(steps) <= real(kMostOperations)) return;
    throw LimitReached(fmt::format(
        "{} steps of {} operations are {:.3g}, and {:.0e} is the most: take {} steps or fewer "
        "({}/steps); they are alike unless other jobs or faults meet them",
        steps, of_one, real(steps) * static_cast<double>(of_one), real(kMostOperations),
        std::max<std::int64_t>(1, kMostOperations / static_cast<std::int64_t>(of_one)),
        training_.pointer));
  }

  GpuSpec gpu_;
  TrainingSpec training_;
  StageLayout layout_;
  Architecture model_;
  KernelTimes kernels_;
  LayerPasses passes_;
  StepBuilder step_;
  OpId start_, end_;  // of the measured steps
};

std::string share(double part, double whole) {
  return fmt::format("{:.3g} s ({:.1f} %)", part, whole > 0 ? 100 * part / whole : 0);
}

Json plan_json(const TrainingSpec& training) {
  Json out = Json::object();
  const PlanSpec& plan = training.plan;
  for (const auto& [name, value] :
       {std::pair{"tp", plan.tp}, std::pair{"pp", plan.pp}, std::pair{"dp", *plan.dp},
        std::pair{"ep", plan.ep}, std::pair{"etp", plan.expert_tp()}, std::pair{"cp", plan.cp},
        std::pair{"vpp", plan.vpp}, std::pair{"zero", plan.zero},
        std::pair{"micro_batch", plan.micro_batch},
        std::pair{"microbatches", micro_batches(training)}})
    out.set(name, value);
  out.set("sp", plan.sp);
  out.set("layout", plan.layout.kind == Json::Kind::null ? Json("even") : plan.layout);
  out.set("schedule", write_config(plan.schedule));
  out.set("fsdp", plan.fsdp ? write_config(*plan.fsdp) : Json{});
  out.set("recompute", write_config(plan.recompute));
  out.set("overlap", write_config(plan.overlap));
  out.set("dtype", write_config(training.dtype));
  return out;
}

std::vector<Track> TrainingJob::tracks() const {
  std::vector<Track> out;
  for (const StepBuilder::Timeline& timeline : step_.timelines()) {
    const std::size_t replicas = timeline.replicas.size();
    std::string name =
        fmt::format("stage {}, {} replica{}", timeline.stage, replicas, replicas == 1 ? "" : "s");
    if (timeline.slowness > 1) name += fmt::format(", {:.2f} times as slow", timeline.slowness);
    out.push_back({std::move(name), timeline.computing});
  }
  return out;
}

void TrainingJob::report(const Executor& executor, const Report&, JobReport& out) const {
  const Time start = executor.times(start_).started, end = executor.times(end_).finished;
  const double steps = real(training_.steps.measure);
  const double step = (end - start).seconds() / steps;
  const std::int64_t sequences = training_.global_batch;
  const std::int64_t decoded = model_.has_encoder() ? decoder_tokens(model_, training_) : 0;
  const double tokens = static_cast<double>(sequences * (training_.seq + decoded));
  const double gpus = static_cast<double>(training_.gpus);
  const bool full = training_.plan.recompute == Recompute::full;
  const Lengths lengths(training_.seq, decoded);
  const bool frozen = training_.lora_rank.has_value();
  const double model_flops =
      training_flops(model_, training_.flops, lengths, sequences, full, frozen);
  const double hardware =
      hardware_flops(model_, lengths, sequences, training_.plan.recompute, frozen);
  const double peak = kernels_.peak_flops(training_.dtype.compute);

  // All replicas' mean; a class counts as often as it has members.
  StreamTimes mean;
  double weight = 0;
  for (const StepBuilder::Timeline& timeline : step_.timelines()) {
    const double members = static_cast<double>(timeline.replicas.size());
    const StreamTimes times = step_.times(executor, timeline, start, end);
    mean.compute += members * times.compute;
    mean.bubble += members * times.bubble;
    for (std::size_t d = 0; d < kDimensions; ++d) mean.exposed[d] += members * times.exposed[d];
    weight += members;
  }
  mean.compute /= weight * steps;
  mean.bubble /= weight * steps;
  for (double& exposed : mean.exposed) exposed /= weight * steps;

  const std::vector<MemoryUse> stages = training_memory(model_, training_, layout_);
  const MemoryUse& fullest = *std::ranges::max_element(stages, {}, &MemoryUse::total);
  const double capacity = gpu_.memory.value_or(Bytes{0}).value();

  Json& j = out.details = Json::object();
  j.set("step_time_s", step);
  j.set("tokens_per_s", tokens / step);
  j.set("tokens_per_s_per_gpu", tokens / step / gpus);
  j.set("mfu", model_flops / step / gpus / peak);
  j.set("model_flops_per_s_per_gpu", model_flops / step / gpus);
  j.set("bubble_fraction", mean.bubble / step);
  j.set("compute_s", mean.compute);
  Json exposed = Json::object(), bytes = Json::object();
  for (std::size_t d = 0; d < kDimensions; ++d) {
    const auto name = dimension_name(static_cast<Dimension>(d));
    exposed.set(name, mean.exposed[d]);
    bytes.set(name, step_.bytes_by_dimension()[d]);
  }
  j.set("exposed_comm_s", std::move(exposed));
  j.set("comm_bytes", std::move(bytes));
  Json& flops = j.set("flops", Json::object());
  flops.set("model", model_flops);
  flops.set("hardware", hardware);
  flops.set("convention", write_config(training_.flops));
  flops.set("peak_flops", peak);
  flops.set("peak_precision", write_config(training_.dtype.compute));
  Json& memory = j.set("memory_bytes_per_gpu", Json::object());
  memory.set("weights", fullest.weights);
  memory.set("gradients", fullest.gradients);
  memory.set("optimizer", fullest.optimizer);
  memory.set("activations", fullest.activations);
  memory.set("buffers", fullest.buffers + fullest.reserve);
  memory.set("kv_cache", 0.0);
  memory.set("total", fullest.total());
  memory.set("capacity", capacity);
  j.set("fits", fullest.total() <= capacity);
  Json& folded = j.set("folded", Json::object());
  folded.set("replicas", *training_.plan.dp);
  folded.set("classes", std::uint64_t{step_.classes()});
  Json& algorithms = j.set("algorithms", Json::object());
  for (std::size_t d = 0; d < kDimensions; ++d) {
    const std::string name = step_.algorithm(static_cast<Dimension>(d));
    if (!name.empty()) algorithms.set(dimension_name(static_cast<Dimension>(d)), name);
  }
  if (training_.checkpoint) {
    Json& written = j.set("checkpoint", Json::object());
    written.set("bytes_per_gpu", checkpoint_bytes(model_, training_));
    written.set("s_per_step", step_.checkpoint_s(executor));
  }
  j.set("plan", plan_json(training_));

  const auto line = [&](std::string what, std::string value) {
    out.lines.emplace_back(std::move(what), std::move(value));
  };
  line("tokens",
       fmt::format("{:.4g} tokens/s, {:.4g} per GPU", tokens / step, tokens / step / gpus));
  line("model FLOPs",
       fmt::format("{:.1f} TFLOP/s per GPU, MFU {:.1f} % of {:.0f} ({}, {})",
                   model_flops / step / gpus / 1e12, 100 * model_flops / step / gpus / peak,
                   peak / 1e12, write_config(training_.dtype.compute).text,
                   write_config(training_.flops).text));
  line("computing", share(mean.compute, step));
  for (std::size_t d = 0; d < kDimensions; ++d) {
    if (mean.exposed[d] > 0.0005 * step)
      line(fmt::format("waiting for {}", dimension_name(static_cast<Dimension>(d))),
           share(mean.exposed[d], step));
  }
  line("bubble", share(mean.bubble, step));
  line("memory", explain(fullest, capacity));
  line("folded", fmt::format("{} replicas in {} class{}", *training_.plan.dp, step_.classes(),
                             step_.classes() == 1 ? "" : "es"));
  if (fullest.total() > capacity)
    out.notes.push_back("does not fit: " + explain(fullest, capacity));
}

}  // namespace

std::unique_ptr<ModelledJob> make_training(const JobSite& site, Diagnostics& out) {
  if (!has_one_kind_of_gpu(site, out)) return nullptr;
  const GpuSpec& gpu = site.fabric.gpu_spec(site.gpus.front());
  TrainingSpec training = *site.spec.training;
  training.gpus = static_cast<std::int64_t>(site.gpus.size());
  training.host = host_facts(site.fabric, site.gpus);
  const Architecture model(training.model);
  check_plan(model, training, out);
  check_host(training, out);
  check_kernels(gpu, training.software, training.dtype, site.spec.place, site.spec.pointer, out);
  if (!out.ok()) return nullptr;
  StageLayout layout = stage_layout(model, training.plan, out);
  if (!out.ok()) return nullptr;
  refuse_too_much(model, training);
  return std::make_unique<TrainingJob>(site, gpu, std::move(training), std::move(layout));
}

JobLibrary llm_jobs() { return {make_training, make_inference}; }

}  // namespace weft
