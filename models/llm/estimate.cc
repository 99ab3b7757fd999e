// SPDX-License-Identifier: Apache-2.0
#include "models/llm/estimate.hpp"

#include <algorithm>

#include "models/llm/activations.hpp"
#include "models/llm/host.hpp"
#include "models/llm/pipeline/pipeline.hpp"

namespace weft {
namespace {

std::size_t index(Dimension dimension) { return static_cast<std::size_t>(dimension); }
std::size_t index(PassKind pass) { return static_cast<std::size_t>(pass); }

double replicas(const PlanSpec& plan) { return real(*plan.dp * plan.cp); }

}  // namespace

Estimator::Estimator(const Architecture& model, const KernelTimes& kernels, CollectiveTimes& times)
    : model_(model), kernels_(kernels), times_(times) {
  for (std::int64_t i = 0; i < model.layers(); ++i) {
    const auto found = std::ranges::find(kinds_, model.layer(i));
    kind_of_.push_back(static_cast<std::size_t>(found - kinds_.begin()));
    if (found == kinds_.end()) kinds_.push_back(model.layer(i));
  }
}

void Estimator::Cost::add(const Cost& more, double times) {
  compute += times * more.compute;
  total += times * more.total;
  for (std::size_t d = 0; d < kDimensions; ++d) exposed[d] += times * more.exposed[d];
}

// ---- passes

double Estimator::call(const CollectiveCall& one, const PlanSpec& plan) {
  const GroupSpan span = one.dimension == Dimension::tp   ? GroupSpan{plan.tp, 1}
                         : one.dimension == Dimension::cp ? GroupSpan{plan.cp, plan.tp}
                                                          : GroupSpan{plan.ep, plan.expert_tp()};
  if (span.ranks < 2) return 0;
  return one.rounds * times_.collective(span, one.kind, one.bytes);
}

// While both last, computing takes `factor` times as long.
double Estimator::slowed(double computing, double busy) const {
  const double factor = kernels_.slowdown_beside_collectives();
  return std::min(computing * (factor - 1), std::max(0.0, busy) * (1 - 1 / factor));
}

Estimator::Cost Estimator::cost(const LayerPass& pass, const PlanSpec& plan) {
  Cost out;
  for (const PassStep& step : pass.steps) {
    double beside = 0, under = 0;
    Dimension longest = Dimension::tp;
    for (const CollectiveCall& one : step.calls) {
      if (one.beside <= 0) {
        const double seconds = call(one, plan);
        out.exposed[index(one.dimension)] += seconds;
        out.total += seconds;
        continue;
      }
      under = std::max(under, one.beside);
      const double seconds = call(one, plan);
      if (seconds > beside) longest = one.dimension;
      beside = std::max(beside, seconds);
    }
    const double slower = slowed(step.compute_s * under, beside);
    const double waited = std::max(0.0, beside - step.compute_s * under - slower);
    out.exposed[index(longest)] += waited;
    out.compute += step.compute_s + slower;
    out.total += step.compute_s + slower + waited;
  }
  return out;
}

const Estimator::Passes& Estimator::passes(const TrainingSpec& training) {
  const PlanSpec& plan = training.plan;
  const Key key{plan.tp, plan.cp,        plan.ep,      plan.expert_tp(), plan.micro_batch,
                plan.sp, plan.recompute, plan.context, plan.dispatcher};
  const auto [found, fresh] = passes_.try_emplace(key);
  Passes& out = found->second;
  if (!fresh) return out;
  const LayerPasses layers(model_, training, kernels_);
  out.layers.resize(kinds_.size());
  for (std::size_t p = 0; p < kPasses; ++p) {
    const auto pass = static_cast<PassKind>(p);
    for (std::size_t k = 0; k < kinds_.size(); ++k) {
      for (const bool again : {false, true}) {
        if (again && plan.recompute == Recompute::none) continue;
        out.layers[k][again ? 1 : 0][p] = cost(layers.layer(kinds_[k], pass, again), plan);
      }
    }
    out.embedding[p] = cost(layers.embedding(pass), plan);
    out.loss[p] = cost(layers.loss(pass), plan);
  }
  return out;
}

// ---- stages

void Estimator::shape(Stage& stage, const TrainingSpec& training,
                      const std::vector<Chunk>& chunks) const {
  const PlanSpec& plan = training.plan;
  stage.counts.assign(2 * kinds_.size(), 0);
  stage.embeddings = stage.losses = stage.joins = 0;
  for (const Chunk& chunk : chunks) {
    for (std::int64_t i = 0; i < chunk.count; ++i) {
      const std::size_t kind = kind_of_[static_cast<std::size_t>(chunk.first + i)];
      ++stage.counts[kind + (plan.recomputes(i) ? kinds_.size() : 0)];
    }
    stage.embeddings += chunk.embedding ? 1 : 0;
    stage.joins += chunk.joins ? 1 : 0;
    stage.losses += chunk.loss ? 1 : 0;
  }
}

// One micro-batch. `share`: of the stage's chunks that one micro-batch passes.
void Estimator::fill(Stage& stage, const TrainingSpec& training, const Passes& passes, bool split,
                     double share) {
  stage.forward = stage.backward = stage.weights = {};
  stage.begin = stage.end = 0;
  const auto add = [&](const ByPass& by_pass, double times) {
    stage.forward.add(by_pass[index(PassKind::forward)], times);
    if (!split) return stage.backward.add(by_pass[index(PassKind::backward)], times);
    stage.backward.add(by_pass[index(PassKind::backward_inputs)], times);
    stage.weights.add(by_pass[index(PassKind::backward_weights)], times);
  };
  for (std::size_t i = 0; i < stage.counts.size(); ++i) {
    const bool again = i >= kinds_.size();
    if (stage.counts[i] > 0)
      add(passes.layers[i % kinds_.size()][again ? 1 : 0], share * real(stage.counts[i]));
  }
  add(passes.embedding, share * real(stage.embeddings));
  add(passes.loss, share * real(stage.losses));
  if (training.plan.sharded()) shard(stage, training);
}

// Weights on their way beside the passes, gradients behind them.
void Estimator::shard(Stage& stage, const TrainingSpec& training) {
  const FsdpSpec fsdp = training.plan.fsdp.value_or(FsdpSpec{});
  const double gather = bytes_of(training.dtype.gathered());
  const auto gathered = [&](StageParameters parameters) {
    return over_replicas(training, parameters, CollectiveKind::all_gather, gather);
  };
  double gathers = 0, reductions = 0, first = 0, layers = 0;
  RankParameters ends = stage.parameters;
  for (std::size_t i = 0; i < stage.counts.size(); ++i) {
    if (stage.counts[i] == 0) continue;
    const RankParameters layer = layer_parameters(model_, training, kinds_[i % kinds_.size()]);
    const double count = real(stage.counts[i]);
    first = gathered(layer.held);
    gathers += count * first;
    reductions += count * reduction(training, layer.trained);
    ends.add(layer, -count);
    layers += count;
  }
  ends.held.experts = ends.trained.experts = 0;
  const auto wait = [&](Cost& pass, double seconds) {
    pass.total += std::max(0.0, seconds);
    pass.exposed[index(Dimension::dp)] += std::max(0.0, seconds);
  };
  // Nothing runs ahead without prefetching. What a pass begins with, the embedding or the output matrix and the first layer, is
  // gathered under one layer of the pass before.
  const auto beside = [&](const Cost& pass, double busy) {
    return fsdp.prefetch > 0 ? busy - pass.total : busy;
  };
  const auto slow_down = [&](Cost& pass, double busy) {
    const double slower = slowed(pass.compute, busy);
    pass.compute += slower;
    pass.total += slower;
  };
  if (fsdp.prefetch > 0) {
    slow_down(stage.forward, gathers);
    slow_down(stage.backward, (fsdp.reshard ? gathers : 0) + reductions);
  }
  const double begins = (ends.held.dense > 1 ? gathered(ends.held) : 0) + first;
  const double under = stage.backward.total / std::max(layers, 1.0);
  wait(stage.forward, beside(stage.forward, gathers));
  if (fsdp.prefetch > 0) wait(stage.forward, begins - under);
  stage.begin = fsdp.prefetch > 0 ? std::min(begins, under) : 0;
  const double last = ends.trained.dense > 1 ? reduction(training, ends.trained) : 0;
  stage.end = last + reductions / std::max(layers, 1.0);
  reductions += last;
  wait(stage.backward,
       beside(stage.backward,
              (fsdp.reshard ? gathers : 0) + (fsdp.reduce_every_micro_batch ? reductions : 0)));
}

// Parameters of one rank over those that hold the same.
double Estimator::over_replicas(const TrainingSpec& training, StageParameters parameters,
                                CollectiveKind kind, double bytes) {
  const PlanSpec& plan = training.plan;
  const std::int64_t dense = plan.shard_ranks(*plan.dp * plan.cp),
                     experts = plan.shard_ranks(expert_replicas(plan));
  double out = 0;
  if (dense > 1 && parameters.dense > 0)
    out += times_.collective({dense, plan.tp}, kind, parameters.dense * bytes);
  if (experts > 1 && parameters.experts > 0)
    out +=
        times_.collective({experts, plan.expert_tp() * plan.ep}, kind, parameters.experts * bytes);
  return out;
}

double Estimator::reduction(const TrainingSpec& training, StageParameters parameters) {
  const PlanSpec& plan = training.plan;
  const double bytes = bytes_of(training.dtype.reduced());
  const bool scatter = plan.sharded() || plan.zero > 0;
  double out =
      over_replicas(training, parameters,
                    scatter ? CollectiveKind::reduce_scatter : CollectiveKind::all_reduce, bytes);
  const std::int64_t all = *plan.dp * plan.cp, shard = plan.shard_ranks(all);
  if (plan.fsdp && shard < all)
    out += times_.collective({all / shard, plan.tp * shard}, CollectiveKind::all_reduce,
                             parameters.dense * bytes / real(shard));
  return out;
}

double Estimator::layer_bytes(const TrainingSpec& training) const {
  return layer_parameters(model_, training, kinds_[kind_of_.back()]).trained.total() *
         bytes_of(training.dtype.reduced());
}

// ---- the step

// What the last backward passes leave to do, to the end of the optimizer, on the stage that is last.
double Estimator::finish(const TrainingSpec& training, StepEstimate& out) {
  const PlanSpec& plan = training.plan;
  const LayerPasses passes(model_, training, kernels_);
  const double gather = bytes_of(training.dtype.gathered());
  const bool shards = plan.sharded() || plan.zero > 0;
  const double shard = real(plan.shard_ranks(*plan.dp * plan.cp)),
               expert_shard = real(plan.shard_ranks(expert_replicas(plan)));
  const double chunks = real(plan.schedule == PipelineSchedule::interleaved ? plan.vpp : 1);
  const FsdpSpec fsdp = plan.fsdp.value_or(FsdpSpec{});
  double waited = 0, optimizer = 0, gathered = 0, first = 0, host = 0, slower = 0;
  for (std::size_t s = 0; s < stages_.size(); ++s) {
    const Stage& stage = stages_[s];
    const StageParameters& trained = stage.parameters.trained;
    if (s > 0 && stage == stages_[s - 1]) continue;  // the earlier one ends later
    // Bucket by bucket, and at least a layer. Those of later chunks are reduced under what is left of the others.
    const double all = trained.total() * bytes_of(training.dtype.reduced());
    const double bucket = std::min(all, std::max(real(plan.bucket.count), layer_bytes(training)));
    const double part = all > 0 ? (plan.sharded() ? layer_bytes(training) : bucket) / all : 1;
    if (replicas(plan) > 1 && trained.total() > 0) {
      const StageParameters one{part * trained.dense, part * trained.experts};
      const double last = reduction(training, one);
      const double busy = last / part;
      const double backward = stage.backward.total + stage.weights.total;
      const double window =
          backward / chunks * (1 + (chunks - 1) * real(std::ssize(stages_)));  // all chunks' last
      const bool under = plan.overlap.grad_reduce;
      const double early = real(static_cast<std::int64_t>(s)) * stage.backward.total / chunks;
      double rest = busy;
      if (plan.sharded() && fsdp.reduce_every_micro_batch)
        rest = stage.end;
      else if (under)
        rest = std::max({busy - window, (busy - backward) / chunks, last});
      waited = std::max(waited, rest - early);
      if (!plan.sharded()) slower = std::max(slower, slowed(window, busy - rest));
    }
    const double updated =
        shards ? trained.dense / shard + trained.experts / expert_shard : trained.total();
    optimizer = std::max(optimizer, passes.optimizer_s(updated));
    if (plan.offload) {
      const double down = host_copy_s(training, updated * bytes_of(training.dtype.grad));
      const double left = plan.overlap.grad_reduce || plan.sharded()
                              ? std::max(part * down, down - stage.backward.total)
                              : down;
      host = std::max(host, left + host_step_s(training, updated) +
                                host_copy_s(training, updated * bytes_of(training.dtype.param)));
    }
    if (plan.sharded() && s == 0) first = stage.begin;
    if (plan.sharded() || plan.zero == 0) continue;
    const double weights = over_replicas(training, trained, CollectiveKind::all_gather, gather);
    gathered = std::max(gathered, weights);
    if (s == 0) first = weights / chunks;
  }
  // Weights of later stages and chunks arrive while the first ones work.
  const double weights = plan.sharded() || plan.overlap.param_gather ? first : gathered;
  out.exposed_s[index(Dimension::dp)] += waited + weights;
  out.exposed_s[index(Dimension::host)] += host;
  out.compute_s += optimizer + slower;
  double embed = 0;
  if (copies_.size() > 1 && !training.lora_rank) {
    const std::int64_t stride = copies_.back() / (std::ssize(copies_) - 1);
    embed = times_.collective(
        {std::ssize(copies_), stride * plan.tp * plan.cp * *plan.dp}, CollectiveKind::all_reduce,
        model_.embedding() / real(plan.tp) * bytes_of(training.dtype.reduced()));
    out.exposed_s[index(Dimension::embed)] += embed;
  }
  return waited + weights + optimizer + host + slower + embed;
}

// From a stage to the next. All are alike unless an encoder's output goes along from some stage on.
double Estimator::mean_hop(const TrainingSpec& training, const StageLayout& layout) {
  const PlanSpec& plan = training.plan;
  const Activations activations(model_, training);
  const auto hop = [&](double bytes) {
    const double sent = bytes / (plan.scatters() ? real(plan.tp) : 1);
    double out = times_.send(plan.tp * plan.cp * *plan.dp, sent);
    if (plan.scatters()) out += call({Dimension::tp, CollectiveKind::all_gather, bytes}, plan);
    return out;
  };
  if (!model_.has_encoder()) return hop(activations.boundary());
  double sum = 0;
  for (std::size_t s = 0; s + 1 < layout.size(); ++s)
    sum += hop(activations.boundary(layout[s].back()));
  return sum / real(std::ssize(layout) - 1);
}

StepEstimate Estimator::step(const TrainingSpec& training, const StageLayout& layout) {
  const PlanSpec& plan = training.plan;
  const PipelineEntry& entry = pipeline_entry(plan.schedule);
  const Passes& table = passes(training);
  stages_.resize(layout.size());
  copies_ = embedding_stages(model_, layout);
  for (std::size_t s = 0; s < layout.size(); ++s) {
    Stage& stage = stages_[s];
    shape(stage, training, layout[s]);
    if (s > 0 && stage == stages_[s - 1]) {
      stage = stages_[s - 1];
      continue;
    }
    stage.parameters = stage_parameters(model_, training, layout[s]);
    fill(stage, training, table, entry.splits_backward, entry.bidirectional ? 0.5 : 1);
  }
  const auto length = [](const Stage& stage) {
    return stage.forward.total + stage.backward.total + stage.weights.total;
  };
  const Stage& longest = *std::ranges::max_element(stages_, {}, length);
  const double m = real(micro_batches(training)), p = real(plan.pp);

  StepEstimate out;
  const double slow = training.software.slowest_of(training.gpus) - 1;
  out.compute_s =
      m * (longest.forward.compute + longest.backward.compute + longest.weights.compute);
  out.step_s = m * length(longest) + slow * out.compute_s;
  out.compute_s *= 1 + slow;
  for (std::size_t d = 0; d < kDimensions; ++d)
    out.exposed_s[d] =
        m * (longest.forward.exposed[d] + longest.backward.exposed[d] + longest.weights.exposed[d]);
  if (plan.pp > 1) {
    StageTimes others{0, 0, 0};
    for (const Stage& stage : stages_) {
      others.forward += stage.forward.total;
      others.backward += stage.backward.total;
      others.weights += stage.weights.total;
    }
    others.forward = (others.forward - longest.forward.total) / (p - 1);
    others.backward = (others.backward - longest.backward.total) / (p - 1);
    others.weights = (others.weights - longest.weights.total) / (p - 1);
    out.bubble_s = entry.idle({plan.pp, plan.vpp, micro_batches(training)}, others);
    const double hop = mean_hop(training, layout);
    double sends = 2 * (p - 1) * hop;
    if (!plan.overlap.pp)
      sends += 2 * m * hop * real(entry.bidirectional ? 1 : plan.vpp);
    else if (plan.schedule == PipelineSchedule::one_f_one_b)
      sends *= std::max(1.0, m / p);
    out.exposed_s[index(Dimension::pp)] += sends;
    out.step_s += out.bubble_s + sends;
  }
  const double written = checkpoint_s(model_, training);
  out.exposed_s[index(Dimension::other)] += written;
  out.step_s += finish(training, out) + written;
  return out;
}

}  // namespace weft
