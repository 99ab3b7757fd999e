// SPDX-License-Identifier: Apache-2.0
#include "models/llm/search.hpp"

#include <algorithm>
#include <array>

#include "models/llm/pipeline/pipeline.hpp"

namespace weft {
namespace {

constexpr std::int64_t kLeastTokens = 512, kMostMicroBatch = 64, kMostChunks = 16;
constexpr std::uint64_t kProgressEvery = 4096;

struct Sharding {
  std::int64_t zero = 0;
  std::optional<FsdpSpec> fsdp;
};

class Search {
 public:
  Search(const Architecture& model, const TrainingSpec& training, const KernelTimes& kernels,
         CollectiveTimes& times, const SearchLimits& limits)
      : model_(model),
        spec_(training),
        limits_(limits),
        estimator_(model, kernels, times),
        plan_(spec_.plan),
        fixed_dp_(spec_.plan.dp) {
    result_.smallest.memory_bytes = -1;
  }

  SearchResult run() {
    each(plan_.tp, "tp", divisors(spec_.gpus, most_tp()), [&] {
      each(plan_.cp, "cp",
           divisors(spec_.gpus / plan_.tp, std::max<std::int64_t>(spec_.seq / kLeastTokens, 1)),
           [&] { experts(); });
    });
    std::ranges::sort_heap(result_.best, faster);
    for (std::optional<PlanCandidate>& kind : kinds_)
      if (kind) result_.kinds.push_back(std::move(*kind));
    std::ranges::stable_sort(result_.kinds, faster);
    return std::move(result_);
  }

 private:
  static bool faster(const PlanCandidate& a, const PlanCandidate& b) {
    if (a.time.step_s != b.time.step_s) return a.time.step_s < b.time.step_s;
    return a.memory_bytes < b.memory_bytes;
  }

  // Sets a key of the plan to each of its choices in turn, unless it is fixed.
  template <class T, class Body>
  void each(T& field, const char* key, const std::vector<T>& choices, Body&& body) {
    if (limits_.fixed.contains(key)) return body();
    const T before = field;
    for (const T& choice : choices) {
      field = choice;
      body();
    }
    field = before;
  }

  std::int64_t most_tp() const {
    return limits_.tp_across_servers ? spec_.gpus : limits_.gpus_per_server;
  }

  void experts() {
    const bool fixed_sp = limits_.fixed.contains("sp");
    if (!fixed_sp)
      plan_.sp = plan_.tp > 1 && spec_.seq % (plan_.tp * plan_.cp) == 0 &&
                 decoder_tokens(model_, spec_) % plan_.tp == 0;
    const auto& experts = model_.spec().experts;
    const std::int64_t count = experts ? experts->count : 1;
    each(plan_.ep, "ep", divisors(count, spec_.gpus), [&] {
      std::vector<std::int64_t> tensor{0};
      if (experts && plan_.tp > 1) tensor.push_back(1);
      each(plan_.etp, "etp", tensor, [&] { stages(); });
    });
  }

  void stages() {
    const std::int64_t rest = spec_.gpus / (plan_.tp * plan_.cp);
    if (rest * plan_.tp * plan_.cp != spec_.gpus) return;
    each(plan_.pp, "pp", divisors(rest, model_.layers() + 2), [&] {
      const std::int64_t dp = rest / plan_.pp;
      if (dp * plan_.pp != rest || spec_.global_batch % dp != 0) return;
      if (limits_.fixed.contains("dp") && dp != fixed_dp_) return;
      plan_.dp = dp;
      each(plan_.micro_batch, "micro_batch", divisors(spec_.global_batch / dp, kMostMicroBatch),
           [&] { schedules(); });
    });
  }

  void schedules() {
    using enum PipelineSchedule;
    std::vector<PipelineSchedule> choices{one_f_one_b};
    if (plan_.pp > 1) choices = {one_f_one_b, interleaved, zb_h1, zb_h2, dualpipe};
    each(plan_.schedule, "schedule", choices, [&] {
      std::vector<std::int64_t> chunks{1};
      if (plan_.schedule == interleaved) {
        chunks.clear();
        for (std::int64_t v = 2; v <= std::min(kMostChunks, model_.layers() / plan_.pp); ++v) {
          if (model_.layers() % (plan_.pp * v) == 0 || (model_.layers() + 2) % (plan_.pp * v) == 0)
            chunks.push_back(v);
        }
      }
      each(plan_.vpp, "vpp", chunks, [&] { layouts(); });
    });
  }

  void layouts() {
    const std::int64_t parts = plan_.pp * plan_.vpp;
    const bool even = model_.layers() % parts == 0;
    const bool with_ends = plan_.pp > 1 && parts <= model_.layers() + 2 &&
                           ((model_.layers() + 2) % parts == 0 || !even);
    if (limits_.fixed.contains("layout")) return layout(plan_.layout);
    if (parts <= model_.layers()) layout({});
    if (with_ends) layout(Json("with-ends"));
  }

  void layout(Json value) {
    plan_.layout = std::move(value);
    if (!legal_plan(model_, spec_)) {
      ++result_.illegal;
      return;
    }
    Diagnostics ignored;  // it is legal
    layout_ = stage_layout(model_, plan_, ignored);
    each(plan_.recompute, "recompute", {Recompute::none, Recompute::selective, Recompute::full},
         [&] { sharding(); });
  }

  void sharding() {
    if (limits_.fixed.contains("zero") || limits_.fixed.contains("fsdp")) return candidate();
    std::vector<Sharding> choices{{}};
    if (*plan_.dp * plan_.cp > 1) {
      choices.push_back({.zero = 1});
      if (plan_.pp == 1) choices.push_back({.zero = 2});
      choices.push_back({.fsdp = FsdpSpec{}});
      FsdpSpec kept;
      kept.reshard = kept.reduce_every_micro_batch = false;
      choices.push_back({.fsdp = kept});
    }
    for (const Sharding& choice : choices) {
      plan_.zero = choice.zero;
      plan_.fsdp = choice.fsdp;
      candidate();
    }
    plan_.zero = 0;
    plan_.fsdp.reset();
  }

  void candidate() {
    // The first stages hold the most micro-batches, the last one the loss.
    const std::size_t last = layout_.size() - 1;
    double memory = stage_memory(model_, spec_, layout_, 0).total();
    if (last > 0) memory = std::max(memory, stage_memory(model_, spec_, layout_, last).total());
    if (last > 1 && plan_.layout.kind != Json::Kind::null)  // the first stage may hold fewer layers
      memory = std::max(memory, stage_memory(model_, spec_, layout_, 1).total());
    PlanCandidate& smallest = result_.smallest;
    if (smallest.memory_bytes < 0 || memory < smallest.memory_bytes) smallest = {plan_, {}, memory};
    if (memory > limits_.memory_bytes) {
      ++result_.too_large;
      return;
    }
    const StepEstimate time = estimator_.step(spec_, layout_);
    if (++result_.evaluated % kProgressEvery == 0 && limits_.progress)
      limits_.progress(result_.evaluated);
    const std::size_t sharded = !plan_.fsdp ? static_cast<std::size_t>(plan_.zero)
                                            : kZeroes + (plan_.fsdp->reshard ? 0 : 1);
    auto& kind = kinds_[static_cast<std::size_t>(plan_.schedule) * kShardings + sharded];
    if (!kind || time.step_s < kind->time.step_s) kind = {plan_, time, memory};
    auto& best = result_.best;
    if (best.size() >= limits_.keep) {
      if (time.step_s > best.front().time.step_s) return;
      std::ranges::pop_heap(best, faster);
      best.pop_back();
    }
    best.push_back({plan_, time, memory});
    std::ranges::push_heap(best, faster);
  }

  const Architecture& model_;
  TrainingSpec spec_;
  const SearchLimits& limits_;
  Estimator estimator_;
  PlanSpec& plan_;
  std::optional<std::int64_t> fixed_dp_;
  StageLayout layout_;
  static constexpr std::size_t kZeroes = 4, kShardings = kZeroes + 2;
  std::array<std::optional<PlanCandidate>, enum_names(PipelineSchedule{}).size() * kShardings>
      kinds_;
  SearchResult result_;
};

}  // namespace

std::vector<std::int64_t> divisors(std::int64_t of, std::int64_t most) {
  std::vector<std::int64_t> out;
  for (std::int64_t d = 1; d <= std::min(of, most); ++d) {
    if (of % d == 0) out.push_back(d);
  }
  return out;
}

BrokenRules broken_rules(const Architecture& model, const TrainingSpec& training,
                         const SearchLimits& limits) {
  BrokenRules out(model, training);
  PlanSpec plan = training.plan;
  const auto fixed = [&](const char* key) { return limits.fixed.contains(key); };
  const auto choices = [&](const char* key, std::int64_t given, std::vector<std::int64_t> free) {
    return fixed(key) ? std::vector{given} : std::move(free);
  };
  const std::int64_t most_tp = limits.tp_across_servers ? training.gpus : limits.gpus_per_server;
  std::vector<std::int64_t> chunks{1};
  if (plan.schedule == PipelineSchedule::interleaved) chunks = {2, 3, 4};
  for (const std::int64_t tp : choices("tp", plan.tp, divisors(training.gpus, most_tp))) {
    const std::int64_t rest = std::max<std::int64_t>(training.gpus / (tp * plan.cp), 1);
    for (const std::int64_t pp : choices("pp", plan.pp, divisors(rest, model.layers()))) {
      for (const std::int64_t vpp : choices("vpp", plan.vpp, chunks)) {
        plan.tp = tp, plan.pp = pp, plan.vpp = vpp;
        out.try_plan(plan);
      }
    }
  }
  return out;
}

SearchResult search_plans(const Architecture& model, const TrainingSpec& training,
                          const KernelTimes& kernels, CollectiveTimes& times,
                          const SearchLimits& limits) {
  return Search(model, training, kernels, times, limits).run();
}

}  // namespace weft
