// SPDX-License-Identifier: Apache-2.0
#include "models/llm/stage_parameters.hpp"

#include <algorithm>

namespace weft {
namespace {

// What goes into and comes out of the adapted matrices of a layer, on all ranks; of all experts.
struct Ends {
  double dense = 0, experts = 0;
};

double attention_ends(const Architecture& model) {
  const LlmSpec& m = model.spec();
  const double hidden = real(m.hidden), query = real(m.heads * model.head_dim()),
               value = real(m.heads * model.value_dim());
  const double row = value + hidden;
  if (!m.latent) {
    const double keys = real(model.kv_heads() * (model.head_dim() + model.value_dim()));
    return hidden + query + keys + row;
  }
  const LatentAttention& l = *m.latent;
  const double compressed = real(l.q_rank + l.kv_rank + l.rope_dim);
  const double from = l.q_rank > 0 ? real(l.q_rank) : hidden;
  return hidden + compressed + from + query + real(l.kv_rank) +
         real(m.heads * (l.nope_dim + l.value_dim)) + row;
}

// Queries; keys and values; output.
double cross_ends(const Architecture& model) {
  const LlmSpec& m = model.spec();
  const double query = real(m.heads * model.head_dim()),
               keys = real(model.kv_heads() * (model.head_dim() + model.value_dim()));
  return 3 * real(m.hidden) + 2 * query + keys;
}

double mamba_ends(const LlmSpec& m) {
  const MambaSpec& s = *m.mamba;
  const double inner = real(s.heads * s.head_dim);
  return real(m.hidden) + 2 * inner + real(2 * s.groups * s.state + s.heads) + inner +
         real(m.hidden);
}

Ends adapted_ends(const Architecture& model, LayerKind kind) {
  const LlmSpec& m = model.spec();
  const double hidden = real(m.hidden);
  const auto mlp = [&](double outer, double inner) {
    return 2 * outer + (real(m.mlp_inputs()) + 1) * inner;
  };
  Ends out;
  if (kind.mixer == Mixer::attention) out.dense += attention_ends(model);
  if (kind.mixer == Mixer::mamba) out.dense += mamba_ends(m);
  if (kind.cross) out.dense += cross_ends(model);
  if (kind.feed_forward == FeedForward::dense) out.dense += mlp(hidden, real(m.intermediate));
  if (kind.feed_forward == FeedForward::experts) {
    const ExpertsSpec& e = *m.experts;
    const bool narrow = e.latent_size > 0;
    if (e.shared_size > 0) out.dense += mlp(hidden, real(e.shared_size));
    if (narrow) out.dense += 2 * (hidden + real(e.latent_size));
    out.experts = real(e.count) * mlp(narrow ? real(e.latent_size) : hidden, real(e.size));
  }
  return out;
}

StageParameters layer_adapters(const Architecture& model, const PlanSpec& plan, LayerKind kind,
                               std::int64_t rank) {
  const Ends ends = adapted_ends(model, kind);
  return {real(rank) * ends.dense / real(plan.tp),
          real(rank) * ends.experts / real(plan.ep * plan.expert_tp())};
}

RankParameters with_adapters(const StageParameters& frozen, const StageParameters& adapters) {
  RankParameters out{frozen, adapters};
  out.held.add(adapters);
  return out;
}

}  // namespace

StageParameters layer_parameters(const Architecture& model, const PlanSpec& plan, LayerKind kind) {
  const LayerParameters p = model.parameters(kind);
  return {(p.mixer + p.cross + p.dense + p.shared) / real(plan.tp) + p.router + p.norms,
          p.experts / real(plan.ep * plan.expert_tp())};
}

StageParameters end_parameters(const Architecture& model, const PlanSpec& plan, const Chunk& chunk,
                               bool stage_has_embedding) {
  const LlmSpec& m = model.spec();
  const double tp = real(plan.tp);
  StageParameters out;
  if (chunk.embedding) out.dense += model.embedding() / tp;
  const double matrix = real(m.vocabulary) * real(m.hidden) / tp;
  if (chunk.joins && !stage_has_embedding) out.dense += matrix;
  if (!chunk.loss) return out;
  const bool copy = m.tied && !stage_has_embedding && !chunk.joins;
  out.dense += (copy ? matrix : model.output() / tp) + model.head();
  for (std::int64_t i = 0; i < m.prediction_layers; ++i) {
    out.dense += 2 * real(m.hidden) * real(m.hidden) / tp + 3 * model.norm();
    for (const LayerKind kind : model.prediction_kinds())
      out.add(layer_parameters(model, plan, kind));
  }
  return out;
}

StageParameters stage_parameters(const Architecture& model, const PlanSpec& plan,
                                 const std::vector<Chunk>& chunks) {
  const bool has_embedding = std::ranges::any_of(chunks, &Chunk::embedding);
  StageParameters out;
  for (const auto& [kind, count] : count_layers(model, chunks))
    out.add(layer_parameters(model, plan, kind), real(count));
  for (const Chunk& chunk : chunks) out.add(end_parameters(model, plan, chunk, has_embedding));
  return out;
}

RankParameters layer_parameters(const Architecture& model, const TrainingSpec& training,
                                LayerKind kind) {
  const StageParameters own = layer_parameters(model, training.plan, kind);
  if (!training.lora_rank) return {own, own};
  return with_adapters(own, layer_adapters(model, training.plan, kind, *training.lora_rank));
}

RankParameters end_parameters(const Architecture& model, const TrainingSpec& training,
                              const Chunk& chunk, bool stage_has_embedding) {
  const StageParameters own = end_parameters(model, training.plan, chunk, stage_has_embedding);
  if (!training.lora_rank) return {own, own};
  StageParameters adapters;
  for (std::int64_t i = 0; chunk.loss && i < model.spec().prediction_layers; ++i) {
    for (const LayerKind kind : model.prediction_kinds())
      adapters.add(layer_adapters(model, training.plan, kind, *training.lora_rank));
  }
  return with_adapters(own, adapters);
}

RankParameters stage_parameters(const Architecture& model, const TrainingSpec& training,
                                const std::vector<Chunk>& chunks) {
  const bool has_embedding = std::ranges::any_of(chunks, &Chunk::embedding);
  RankParameters out;
  for (const auto& [kind, count] : count_layers(model, chunks))
    out.add(layer_parameters(model, training, kind), real(count));
  for (const Chunk& chunk : chunks) out.add(end_parameters(model, training, chunk, has_embedding));
  return out;
}

double trained_parameters(const Architecture& model, const TrainingSpec& training) {
  if (!training.lora_rank) return model.total();
  const PlanSpec one;  // one rank holds all
  double out = 0;
  for (std::int64_t i = 0; i < model.layers(); ++i)
    out += layer_adapters(model, one, model.layer(i), *training.lora_rank).total();
  return out;
}

}  // namespace weft
