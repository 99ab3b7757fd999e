// SPDX-License-Identifier: Apache-2.0
// What a layer of each kind does in a pass: attention over heads or latent vectors, Mamba, MLP, experts, the two ends of the model.
//
//   attention  norm, column (queries, keys, values), rotation, core, row, add          latent: see latent_in
//   cross      behind an encoder: norm, column of queries, column of keys and values over the encoder's tokens, core, row, add
//   MLP        norm, column, activation, row, add
//   experts    norm, router, dispatch over ep, gather over etp, grouped products, scatter, combine, add; shared experts as an MLP
//   parallel   one norm, one gather, both, one scatter
//
// Going back is the same in reverse; what is recomputed comes before it.
#pragma once

#include "models/llm/pass_writer.hpp"

namespace weft {

class LayerWriter {
 public:
  LayerWriter(const Architecture& model, const TrainingSpec& training, const PassSizes& sizes,
              const KernelTimes& kernels, PassKind pass);

  void layer(LayerKind kind, bool recomputes);
  void embedding();
  void loss();
  LayerPass finish() { return w_.finish(); }

 private:
  void layer_forward(LayerKind kind);
  void layer_back(LayerKind kind, bool selective);

  double norm_kernels() const;
  void norm(double elements);
  void norm_back(double elements);
  double add_moves() const;
  void add();
  void add_back();

  void attention_in();
  void attention_in_back();
  void latent_in();
  void latent_in_back();
  void shape_heads();  // rotation and norms of heads, in both directions
  void core(LayerKind kind, bool backward, bool cross = false);
  void exchange_keys(bool backward, double share);
  void exchange_heads(bool into, bool backward);
  AttentionCall core_call(LayerKind kind, bool backward, bool cross) const;

  // Behind an encoder: its last norm and the embedding of the decoder's tokens, then attention to its output in every layer.
  void join();
  void join_back();
  void cross(LayerKind kind);
  void cross_back(LayerKind kind, bool selective);
  void position_biases(LayerKind kind, bool backward);
  void core_back(LayerKind kind, bool selective, bool cross = false);

  void mamba();
  void mamba_back();
  void scan(bool backward);

  void activation(double tokens, double width, bool backward);
  void mlp(double inner);
  void mlp_back(double inner);

  void experts();
  void experts_back();
  void exchange_tokens(bool into, std::size_t beside);
  void share_tokens(bool into);
  void permute(bool backward);

  void loss_head();
  void loss_head_back();

  Linear linear(double in, double out) const { return {s_.tokens, in, out}; }
  Linear attention_columns() const;
  Linear cross_queries() const;
  Linear cross_keys() const;
  Linear attention_row() const;
  Linear mlp_columns(double inner) const;
  Linear mlp_row(double inner) const;
  double mlp_inputs() const { return real(model_.spec().mlp_inputs()); }

  struct ExpertSizes {
    double width = 0, inner = 0;  // of one expert on this rank
    double routed = 0;            // tokens times experts of this rank, the busiest one's
    double copies = 0;            // of a token that travel
    double worked = 0;            // routed tokens of all that share an expert's columns
    double groups = 0, rows = 0;
  };
  ExpertSizes expert_sizes() const;
  double distinct_copies() const;

  const Architecture& model_;
  const LlmSpec& spec_;
  const TrainingSpec& training_;
  const PassSizes& s_;
  const KernelTimes& kernels_;
  PassWriter w_;
  double heads_, kv_heads_;                       // of this rank
  std::size_t core_step_ = 0, experts_step_ = 0;  // beside which tokens of others may travel
  bool exchange_pending_ = false;
};

}  // namespace weft
