// SPDX-License-Identifier: Apache-2.0
#include "models/llm/layer_writer.hpp"

#include <algorithm>

namespace weft {
namespace {

// Kernels of an unfused framework.
constexpr double kRmsNorm = 6, kRotation = 8, kGatedActivation = 2, kLoss = 5;

}  // namespace

LayerWriter::LayerWriter(const Architecture& model, const TrainingSpec& training,
                         const PassSizes& sizes, const KernelTimes& kernels, PassKind pass)
    : model_(model),
      spec_(model.spec()),
      training_(training),
      s_(sizes),
      kernels_(kernels),
      w_(sizes, kernels, pass),
      heads_(real(model.heads()) / sizes.tp),
      kv_heads_(std::max(1.0, real(model.kv_heads()) / sizes.tp)) {}

// ---- a layer

void LayerWriter::layer(LayerKind kind, bool recomputes) {
  if (w_.forward()) {
    if (kind.joins()) join();
    return layer_forward(kind);
  }
  const Recompute recompute = recomputes ? training_.plan.recompute : Recompute::none;
  if (recompute == Recompute::full && w_.inputs()) layer_forward(kind);
  layer_back(kind, recompute == Recompute::selective);
  if (kind.joins()) join_back();
}

void LayerWriter::layer_forward(LayerKind kind) {
  const bool attends = kind.mixer == Mixer::attention;
  for (std::int64_t i = 0; i < model_.further_norms(kind); ++i) norm(s_.local * s_.hidden);
  if (spec_.parallel_block && attends && kind.feed_forward == FeedForward::dense) {
    const double inner = real(spec_.intermediate);
    norm(s_.local * s_.hidden);
    w_.column({attention_columns(), mlp_columns(inner)}, s_.hidden);
    shape_heads();
    core(kind, false);
    activation(s_.tokens, inner / s_.tp, false);
    w_.row({attention_row(), mlp_row(inner)});
    add();
    add();
    return;
  }
  if (attends) {
    attention_in();
    position_biases(kind, false);
    core(kind, false);
    w_.row({attention_row()});
    add();
  }
  if (kind.cross) cross(kind);
  if (kind.mixer == Mixer::mamba) mamba();
  if (kind.feed_forward == FeedForward::dense) {
    norm(s_.local * s_.hidden);
    mlp(real(spec_.intermediate));
    add();
  }
  if (kind.feed_forward == FeedForward::experts) experts();
}

void LayerWriter::layer_back(LayerKind kind, bool selective) {
  const bool attends = kind.mixer == Mixer::attention;
  for (std::int64_t i = 0; i < model_.further_norms(kind); ++i) norm_back(s_.local * s_.hidden);
  if (spec_.parallel_block && attends && kind.feed_forward == FeedForward::dense) {
    const double inner = real(spec_.intermediate);
    add_back();
    w_.row_back({attention_row(), mlp_row(inner)});
    activation(s_.tokens, inner / s_.tp, true);
    core_back(kind, selective);
    if (w_.inputs()) shape_heads();
    w_.column_back({attention_columns(), mlp_columns(inner)}, s_.hidden);
    norm_back(s_.local * s_.hidden);
    return;
  }
  if (kind.feed_forward == FeedForward::experts) experts_back();
  if (kind.feed_forward == FeedForward::dense) {
    add_back();
    mlp_back(real(spec_.intermediate));
    norm_back(s_.local * s_.hidden);
  }
  if (kind.cross) cross_back(kind, selective);
  if (kind.mixer == Mixer::mamba) mamba_back();
  if (attends) {
    add_back();
    w_.row_back({attention_row()});
    core_back(kind, selective);
    position_biases(kind, true);
    attention_in_back();
  }
  if (exchange_pending_) exchange_tokens(false, experts_step_);
  exchange_pending_ = false;
}

// ---- element-wise work

// LayerNorm is one kernel in every framework; RMSNorm, which models with gated MLPs have, is not.
double LayerWriter::norm_kernels() const {
  return spec_.norm_bias || spec_.mlp == MlpKind::plain ? 1 : kRmsNorm;
}
void LayerWriter::norm(double elements) { w_.memory(elements, 2, norm_kernels()); }
void LayerWriter::norm_back(double elements) {
  if (w_.inputs()) w_.memory(elements, 3, norm_kernels());
}
// Read two, write one; dropout has a byte of mask.
double LayerWriter::add_moves() const {
  return 3 + (training_.software.dropout ? 1 / s_.bytes : 0);
}
void LayerWriter::add() { w_.memory(s_.local * s_.hidden, add_moves()); }
void LayerWriter::add_back() {
  if (w_.inputs()) w_.memory(s_.local * s_.hidden, add_moves());
}

// Of so many tokens; width of the result.
void LayerWriter::activation(double tokens, double width, bool backward) {
  if (backward && !w_.inputs()) return;
  const bool gated = spec_.mlp == MlpKind::gated;
  const double moves = gated ? (backward ? 5 : 3) : (backward ? 3 : 2);
  w_.memory(tokens * width, moves, gated ? kGatedActivation : 1);
}

void LayerWriter::shape_heads() {
  const double elements = s_.tokens * (heads_ + kv_heads_) * real(model_.head_dim());
  if (spec_.head_norms) w_.memory(elements, 2, kRmsNorm);
  if (spec_.positions == Positions::rotary) w_.memory(elements, 2, kRotation);
}

// ---- MLP

Linear LayerWriter::mlp_columns(double inner) const {
  return linear(s_.hidden, mlp_inputs() * inner / s_.tp);
}
Linear LayerWriter::mlp_row(double inner) const { return linear(inner / s_.tp, s_.hidden); }

void LayerWriter::mlp(double inner) {
  w_.column({mlp_columns(inner)}, s_.hidden);
  activation(s_.tokens, inner / s_.tp, false);
  w_.row({mlp_row(inner)});
}

void LayerWriter::mlp_back(double inner) {
  w_.row_back({mlp_row(inner)});
  activation(s_.tokens, inner / s_.tp, true);
  w_.column_back({mlp_columns(inner)}, s_.hidden);
}

// ---- ends of the model

// Rows of a vocabulary split over tp; what lies elsewhere comes in by a reduction.
void LayerWriter::embedding() {
  const double elements = s_.tokens * s_.hidden;
  if (w_.forward()) {
    w_.memory(elements, 2);
    if (spec_.positions == Positions::learned) w_.memory(elements, 3);
    if (spec_.segment_kinds() > 0) w_.memory(elements, 3);
    w_.after(Dimension::tp, s_.sp ? CollectiveKind::reduce_scatter : CollectiveKind::all_reduce,
             elements * s_.bytes);
    if (spec_.embedding_norm) norm(s_.local * s_.hidden);
    return;
  }
  if (spec_.embedding_norm) norm_back(s_.local * s_.hidden);
  if (!w_.weights() || s_.lora > 0) return;
  if (s_.sp) w_.after(Dimension::tp, CollectiveKind::all_gather, elements * s_.bytes);
  w_.memory(elements, 1 + s_.gradient_bytes / s_.bytes);
}

void LayerWriter::loss_head() {
  Linear output{s_.tokens, s_.hidden, real(spec_.vocabulary) / s_.tp};
  output.adapted = false;
  output.exact = true;
  if (spec_.masked) {
    w_.product({s_.local, s_.hidden, s_.hidden, 1, false});
    activation(s_.local, s_.hidden, false);
  }
  norm(s_.local * s_.hidden);
  w_.column({output}, s_.hidden);
  // Read in 16 bits, softmax kept in 32.
  w_.memory(s_.tokens * output.out, 1 + 4 / s_.bytes + 4 / s_.bytes, kLoss);
  // Largest logit, the one asked for, sum of exponentials.
  for (int i = 0; i < 3; ++i) w_.after(Dimension::tp, CollectiveKind::all_reduce, s_.tokens * 4);
}

void LayerWriter::loss_head_back() {
  Linear output{s_.tokens, s_.hidden, real(spec_.vocabulary) / s_.tp};
  output.adapted = false;
  output.exact = true;
  if (w_.inputs()) w_.memory(s_.tokens * output.out, 4 / s_.bytes + 1, 2);
  w_.column_back({output}, s_.hidden);
  norm_back(s_.local * s_.hidden);
  if (!spec_.masked) return;
  const Linear dense{s_.local, s_.hidden, s_.hidden, 1, false};
  activation(s_.local, s_.hidden, true);
  if (w_.inputs()) w_.input_gradient(dense);
  if (w_.weights()) w_.weight_gradient(dense);
}

// Each prediction layer joins the hidden vector with the next token's embedding, then is a layer and an output of its own.
void LayerWriter::loss() {
  const Linear join{s_.local, 2 * s_.hidden, s_.hidden, 1, false};
  const bool forward = w_.forward();
  if (forward) loss_head();
  for (std::int64_t i = 0; i < spec_.prediction_layers; ++i) {
    if (forward) {
      norm(2 * s_.local * s_.hidden);
      w_.product(join);
      for (const LayerKind kind : model_.prediction_kinds()) layer_forward(kind);
      loss_head();
      continue;
    }
    loss_head_back();
    for (const LayerKind kind : model_.prediction_kinds())
      layer(kind, !training_.plan.recompute_layers);
    if (w_.inputs()) w_.input_gradient(join);
    if (w_.weights()) w_.weight_gradient(join);
    norm_back(2 * s_.local * s_.hidden);
  }
  if (!forward) loss_head_back();
}

}  // namespace weft
