// SPDX-License-Identifier: Apache-2.0
// Attention and Mamba of LayerWriter.
#include <algorithm>

#include "models/llm/layer_writer.hpp"

namespace weft {
namespace {

constexpr double kScanChunk = 256;  // tokens that Mamba 2 treats like attention at a time
constexpr double kScanFlops = 7;    // per element of the state, as Megatron-LM counts
constexpr double kMerge = 3;        // partial results of ring attention: read two, write one

}  // namespace

// ---- into and out of attention

Linear LayerWriter::attention_columns() const {
  const double keys = kv_heads_ * real(model_.head_dim() + model_.value_dim());
  return linear(s_.hidden, heads_ * real(model_.head_dim()) + keys);
}

Linear LayerWriter::attention_row() const {
  return linear(heads_ * real(model_.value_dim()), s_.hidden);
}

void LayerWriter::attention_in() {
  norm(s_.local * s_.hidden);
  if (spec_.latent)
    latent_in();
  else
    w_.column({attention_columns()}, s_.hidden);
  shape_heads();
}

void LayerWriter::attention_in_back() {
  if (w_.inputs()) shape_heads();
  if (spec_.latent)
    latent_in_back();
  else
    w_.column_back({attention_columns()}, s_.hidden);
  norm_back(s_.local * s_.hidden);
}

// Every rank compresses its own tokens with whole matrices; the compressed vectors are gathered and expanded to the rank's heads.
// Queries that are not compressed come from the hidden vector, which is gathered instead.
void LayerWriter::latent_in() {
  const LatentAttention& l = *spec_.latent;
  const double queries = heads_ * real(model_.head_dim()), rank = real(l.q_rank);
  const double compressed = rank + real(l.kv_rank + l.rope_dim);
  w_.product({s_.local, s_.hidden, compressed});
  norm(s_.local * compressed);
  const double from = rank > 0 ? rank : s_.hidden;
  w_.column(
      {linear(from, queries), linear(real(l.kv_rank), heads_ * real(l.nope_dim + l.value_dim))},
      from + real(l.kv_rank + l.rope_dim));
}

void LayerWriter::latent_in_back() {
  const LatentAttention& l = *spec_.latent;
  const double queries = heads_ * real(model_.head_dim()), rank = real(l.q_rank);
  const double compressed = rank + real(l.kv_rank + l.rope_dim);
  const double from = rank > 0 ? rank : s_.hidden;
  w_.column_back(
      {linear(from, queries), linear(real(l.kv_rank), heads_ * real(l.nope_dim + l.value_dim))},
      from + real(l.kv_rank + l.rope_dim));
  norm_back(s_.local * compressed);
  if (w_.inputs()) w_.input_gradient({s_.local, s_.hidden, compressed});
  if (w_.weights()) w_.weight_gradient({s_.local, s_.hidden, compressed});
}

// ---- behind an encoder

Linear LayerWriter::cross_queries() const {
  return linear(s_.hidden, heads_ * real(model_.head_dim()));
}

Linear LayerWriter::cross_keys() const {
  return {s_.encoder_tokens(), s_.hidden, kv_heads_ * real(model_.head_dim() + model_.value_dim())};
}

void LayerWriter::join() {
  norm(s_.encoder_local() * s_.hidden);
  embedding();
}

void LayerWriter::join_back() {
  embedding();
  norm_back(s_.encoder_local() * s_.hidden);
}

void LayerWriter::cross(LayerKind kind) {
  norm(s_.local * s_.hidden);
  w_.column({cross_queries()}, s_.hidden);
  w_.column({cross_keys()}, s_.hidden * s_.encoder_seq / s_.seq);  // per token of the decoder
  core(kind, false, true);
  w_.row({attention_row()});
  add();
}

// The gradient of the encoder's output is added to that of the layers behind.
void LayerWriter::cross_back(LayerKind kind, bool selective) {
  add_back();
  w_.row_back({attention_row()});
  core_back(kind, selective, true);
  w_.column_back({cross_keys()}, s_.hidden * s_.encoder_seq / s_.seq);
  if (w_.inputs()) w_.memory(s_.encoder_local() * s_.hidden, 3);
  w_.column_back({cross_queries()}, s_.hidden);
  norm_back(s_.local * s_.hidden);
}

// ---- the core

AttentionCall LayerWriter::core_call(LayerKind kind, bool backward, bool cross) const {
  AttentionCall call;
  call.batch = s_.batch;
  call.queries = s_.seq;
  call.keys = cross ? s_.encoder_seq : s_.seq;
  call.heads = heads_;
  call.kv_heads = kv_heads_;
  call.head_dim = real(model_.head_dim());
  call.value_dim = real(model_.value_dim());
  call.window = kind.windowed ? real(spec_.window.value_or(0)) : 0;
  call.causal = !spec_.masked && !kind.encoder && !cross;
  call.backward = backward;
  call.biased = spec_.positions == Positions::relative && !cross;
  call.kernel = training_.software.attention;
  return call;
}

// Context parallel ranks hold the first and the last of 2 cp pieces, and so on inwards: all have the same share of the causal
// half. A ring meets it in cp parts; ulysses has whole sequences of fewer heads.
void LayerWriter::core(LayerKind kind, bool backward, bool cross) {
  AttentionCall call = core_call(kind, backward, cross);
  const ContextParallel context = training_.plan.context;
  w_.open();
  core_step_ = w_.here();
  if (exchange_pending_) exchange_tokens(false, core_step_);
  exchange_pending_ = false;
  if (s_.cp <= 1) {
    w_.attention(call);
    return w_.open();
  }
  if (context == ContextParallel::ulysses) {
    call.heads /= s_.cp;
    call.kv_heads = std::max(1.0, call.kv_heads / s_.cp);
    exchange_heads(true, backward);
    w_.attention(call);
    exchange_heads(false, backward);
    return;
  }
  const double parts = context == ContextParallel::ring ? s_.cp : 1;
  call.keys = attention_pairs(call) / call.queries / parts;
  call.queries /= s_.cp;
  call.causal = false;
  call.window = 0;
  exchange_keys(backward, training_.plan.overlap.cp ? (s_.cp - 1) / s_.cp : 0);
  w_.attention(call, parts);
  if (parts > 1) w_.memory((parts - 1) * s_.tokens * heads_ * call.value_dim, kMerge);
  w_.open();
}

// Of a stack, or of every layer: numbers of ranges of distances become a matrix per head that all sequences share.
void LayerWriter::position_biases(LayerKind kind, bool backward) {
  if (spec_.positions != Positions::relative) return;
  if (!kind.first && !spec_.position_biases_everywhere) return;
  const double pairs = heads_ * s_.seq * s_.seq / s_.cp;
  if (!backward)
    w_.memory(pairs, 3, 3);  // looked up, and turned so that heads come first
  else if (w_.weights())
    w_.memory(pairs, 3, 3);
}

void LayerWriter::core_back(LayerKind kind, bool selective, bool cross) {
  if (!w_.inputs()) return;
  if (selective) core(kind, false, cross);
  core(kind, true, cross);
}

// Keys and values go around; going back their gradients go with them.
void LayerWriter::exchange_keys(bool backward, double share) {
  const double bytes =
      s_.tokens * kv_heads_ * real(model_.head_dim() + model_.value_dim()) * s_.bytes;
  if (training_.plan.context == ContextParallel::ring)
    return w_.beside(Dimension::cp, CollectiveKind::send_recv, bytes * (backward ? 2 : 1), share,
                     s_.cp - 1);
  w_.after(Dimension::cp, CollectiveKind::all_gather, bytes * s_.cp);
  if (backward) w_.after(Dimension::cp, CollectiveKind::reduce_scatter, bytes * s_.cp);
}

// From parts of a sequence to parts of the heads, and back.
void LayerWriter::exchange_heads(bool into, bool backward) {
  const double queries = heads_ * real(model_.head_dim());
  const double keys = std::max(kv_heads_, s_.cp) * real(model_.head_dim() + model_.value_dim());
  const double results = heads_ * real(model_.value_dim());
  const double width = into != backward ? queries + keys : results;
  w_.after(Dimension::cp, CollectiveKind::all_to_all, s_.tokens * width * s_.bytes);
}

// ---- Mamba 2

void LayerWriter::scan(bool backward) {
  const MambaSpec& m = *spec_.mamba;
  const double heads = real(m.heads) / s_.tp, groups = real(m.groups) / s_.tp;
  const double width = real(m.head_dim), state = real(m.state);
  const double chunk = std::min(kScanChunk, s_.tokens);
  const double chunks = s_.tokens / chunk;
  const double times = backward ? 2 : 1;
  const auto product = [&](double m_, double n, double k, double each) {
    w_.scan_product({.m = m_, .n = n, .k = k, .groups = chunks * each, .precision = s_.exact},
                    times);
  };
  w_.memory(s_.tokens * (heads * width + 2 * groups * state), backward ? 4 : 2, 3);  // convolution
  product(chunk, chunk, state, groups);                                              // C B
  product(chunk, width, chunk, heads);  // within a chunk
  product(state, width, chunk, heads);  // the chunk's state
  product(chunk, width, state, heads);  // from earlier chunks
  w_.flops(times * kScanFlops * s_.tokens * heads * width * state);
  w_.memory(s_.tokens * heads * width, backward ? 5 : 3, 6);  // gated norm
}

void LayerWriter::mamba() {
  const MambaSpec& m = *spec_.mamba;
  const double inner = real(m.heads * m.head_dim) / s_.tp;
  const double in = 2 * inner + real(2 * m.groups * m.state + m.heads) / s_.tp;
  norm(s_.local * s_.hidden);
  w_.column({linear(s_.hidden, in)}, s_.hidden);
  w_.after(Dimension::cp, CollectiveKind::all_to_all, s_.tokens * in * s_.bytes);
  scan(false);
  w_.after(Dimension::cp, CollectiveKind::all_to_all, s_.tokens * inner * s_.bytes);
  w_.row({linear(inner, s_.hidden)});
  add();
}

void LayerWriter::mamba_back() {
  const MambaSpec& m = *spec_.mamba;
  const double inner = real(m.heads * m.head_dim) / s_.tp;
  const double in = 2 * inner + real(2 * m.groups * m.state + m.heads) / s_.tp;
  add_back();
  w_.row_back({linear(inner, s_.hidden)});
  if (w_.inputs()) {
    w_.after(Dimension::cp, CollectiveKind::all_to_all, s_.tokens * inner * s_.bytes);
    scan(true);
    w_.after(Dimension::cp, CollectiveKind::all_to_all, s_.tokens * in * s_.bytes);
  }
  w_.column_back({linear(s_.hidden, in)}, s_.hidden);
  norm_back(s_.local * s_.hidden);
}

}  // namespace weft
