// SPDX-License-Identifier: Apache-2.0
#include "models/llm/activations.hpp"

#include <algorithm>

namespace weft {
namespace {

bool keeps_scores(AttentionKernel kernel) {
  return kernel == AttentionKernel::unfused || kernel == AttentionKernel::fused_softmax;
}

}  // namespace

Activations::Activations(const Architecture& model, const TrainingSpec& training)
    : model_(model), training_(training) {
  const PlanSpec& plan = training.plan;
  const double compute = bytes_of(training.dtype.compute);
  element_ = std::max(compute, 2.0);
  operand_ = compute;
  tokens_ = real(decoder_tokens(model, training)) / real(plan.cp) * real(plan.micro_batch);
  if (model.has_encoder()) encoder_tokens_ = real(training.seq) * real(plan.micro_batch);
  tp_ = real(plan.tp);
  inputs_per_mlp_ = real(model.spec().mlp_inputs());
}

double Activations::hidden_share() const {
  const double hidden = real(model_.spec().hidden);
  return training_.plan.sp ? hidden / tp_ : hidden;
}

double Activations::inputs() const {
  const double kept =
      training_.plan.overlap.tp_backward ? hidden_share() : real(model_.spec().hidden);
  return element_ * hidden_share() + operand_ * kept;
}

// `keys`: of one sequence that each query sees.
double Activations::attention(bool scores, double keys) const {
  const LlmSpec& m = model_.spec();
  const double heads = real(m.heads) / tp_;
  const double kv_heads = m.latent ? heads : std::max(real(model_.kv_heads()) / tp_, 1.0);
  const double query = heads * real(model_.head_dim()), key = kv_heads * real(model_.head_dim()),
               value = kv_heads * real(model_.value_dim()),
               output = heads * real(model_.value_dim());
  double out = inputs() + element_ * (query + key + value + output);
  if (operand_ < element_) out += operand_ * output;
  if (m.head_norms) out += element_ * (query + key);
  if (m.latent) out += latent_attention();
  if (training_.software.dropout) out += hidden_share();
  if (!keeps_scores(training_.software.attention)) return out + 4 * heads;  // sums of the softmax
  if (!scores) return out;
  const double per_score = training_.software.dropout ? 2 * element_ + 1 : element_;
  return out + per_score * heads * keys;
}

// Beside its own queries and result: keys and values of the encoder's tokens, per token of the decoder.
double Activations::cross(bool scores) const {
  const double kept = std::max(real(model_.kv_heads()) / tp_, 1.0) *
                      real(model_.head_dim() + model_.value_dim()) * element_;
  return attention(scores, real(training_.seq)) + kept * (encoder_tokens_ / tokens_ - 1);
}

double Activations::latent_attention() const {
  const LatentAttention& latent = *model_.spec().latent;
  const double ranks = real(latent.q_rank + latent.kv_rank);
  return (element_ + operand_) * ranks + element_ * real(latent.rope_dim);
}

double Activations::mamba() const {
  const MambaSpec& s = *model_.spec().mamba;
  constexpr double kChunk = 256;  // tokens per state that is kept
  const double inner = real(s.heads * s.head_dim) / tp_;
  const double mixed = 2 * inner + (real(2 * s.groups * s.state) + real(s.heads)) / tp_;
  return inputs() + element_ * (mixed + inner) + operand_ * inner +
         4 * inner * real(s.state) / kChunk;
}

// Inner tensors: before and after the activation function.
double Activations::mlp(std::int64_t inner) const {
  return (inputs_per_mlp_ * element_ + operand_) * real(inner) / tp_;
}

double Activations::experts() const {
  const ExpertsSpec& e = *model_.spec().experts;
  const PlanSpec& plan = training_.plan;
  const double etp = real(plan.expert_tp());
  // Copies of tokens on this rank, per token of the micro-batch.
  const double copies = real(e.top_k) * plan.expert_load() * etp / tp_;
  const double width = real(e.latent_size > 0 ? e.latent_size : model_.spec().hidden);
  const double inner = real(e.size) / etp;
  const double share = hidden_share() / real(model_.spec().hidden);
  double out = inputs() + 2 * 4 * real(e.count) * share;  // scores of the router, 32 bit
  out += copies * (operand_ * width + (inputs_per_mlp_ * element_ + operand_) * inner);
  if (e.latent_size > 0) out += 2 * element_ * real(e.latent_size) * share;
  if (e.shared_size > 0) out += mlp(e.shared_size);
  return out;
}

double Activations::layer(LayerKind kind, Recompute recompute) const {
  if (recompute == Recompute::full) return tokens(kind) * element_ * hidden_share();
  const bool scores = recompute == Recompute::none;
  double out = 0;
  if (kind.mixer == Mixer::attention)
    out +=
        attention(scores, real(kind.encoder ? training_.seq : decoder_tokens(model_, training_)));
  if (kind.cross) out += cross(scores);
  if (kind.mixer == Mixer::mamba) out += mamba();
  if (kind.feed_forward == FeedForward::dense) {
    out += inputs() + mlp(model_.spec().intermediate);
    if (training_.software.dropout) out += hidden_share();
  }
  if (kind.feed_forward == FeedForward::experts) out += experts();
  out += real(model_.further_norms(kind)) * element_ * hidden_share();
  out *= tokens(kind);
  if (kind.joins()) out += encoded() + dropped(tokens_);
  return out;
}

double Activations::embedding() const {
  return dropped(model_.has_encoder() ? encoder_tokens_ : tokens_);
}

// Masks of dropout.
double Activations::dropped(double tokens) const {
  return training_.software.dropout ? tokens * hidden_share() : 0;
}

double Activations::boundary(const Chunk& chunk) const {
  if (!model_.has_encoder()) return boundary();
  const bool decodes = chunk.first + chunk.count > model_.spec().encoder_layers;
  return encoded() + (decodes ? boundary() : 0);
}

double Activations::loss() const {
  const double vocabulary = real(model_.spec().vocabulary) / tp_;
  constexpr double kCopies = 2;  // scores and their gradient
  return tokens_ * (inputs() + kCopies * element_ * vocabulary);
}

double Activations::gradients(LayerKind kind) const {
  const LlmSpec& m = model_.spec();
  double widest = real((m.heads + 2 * model_.kv_heads()) * model_.head_dim()) / tp_;
  if (kind.feed_forward == FeedForward::dense)
    widest = std::max(widest, (inputs_per_mlp_ + 1) * real(m.intermediate) / tp_);
  if (kind.feed_forward == FeedForward::experts)
    widest = std::max(widest, experts() / element_ / 2);
  return tokens(kind) * element_ * (2 * hidden_share() + widest);
}

}  // namespace weft
