// SPDX-License-Identifier: Apache-2.0
// What the forward pass of one micro-batch keeps for its backward pass on one GPU, tensor by tensor, after Korthikanti et al.
// (arXiv 2205.05198): a GPT layer with dropout keeps s b h (34 + 5 a s / h) bytes at 16 bit, of which tensor parallelism
// divides all but 10, and sequence parallelism those too.
//
// Counted:   inputs of norms and matrices, queries, keys, values, the output of attention, both sides of the activation
//            function, masks of dropout where there is dropout. Inputs of matrices take the bytes of their precision (FP8: 1).
// Attention: without a flash kernel the matrix of scores too; selective recompute drops it.
// Experts:   what arrives at one rank when tokens are spread evenly, times the skew or at most the capacity. Outputs are not
//            kept: the router's weights are applied with the activation function (Megatron-Core).
// Full recompute keeps the layer's input alone.
// Encoder:   its layers keep what its own tokens need. A decoder layer behind it keeps keys and values of the encoder's output,
//            whose own vector every decoder layer of a stage shares.
#pragma once

#include "models/llm/architecture.hpp"
#include "models/llm/plan.hpp"
#include "sim/run/training_spec.hpp"

namespace weft {

class Activations {
 public:
  Activations(const Architecture& model, const TrainingSpec& training);

  // Bytes of one micro-batch.
  double layer(LayerKind kind, Recompute recompute) const;
  double embedding() const;
  // The encoder's output, which a stage with decoder layers holds.
  double encoded() const { return encoder_tokens_ * element_ * hidden_share(); }
  // Input of the output matrix, scores and their gradient: 4 s b v at 16 bit. Loss kernels that widen the scores take more.
  double loss() const;
  // Gradients that exist while a layer's backward pass runs, beside what was kept.
  double gradients(LayerKind kind) const;
  // One hidden vector per token, as stages send it behind a chunk; from the decoder on the encoder's output goes along.
  double boundary() const { return tokens_ * element_ * hidden_share(); }
  double boundary(const Chunk& chunk) const;

 private:
  double tokens(LayerKind kind) const { return kind.encoder ? encoder_tokens_ : tokens_; }
  double attention(bool scores, double keys) const;
  double cross(bool scores) const;
  double dropped(double tokens) const;
  double latent_attention() const;
  double mamba() const;
  double mlp(std::int64_t inner) const;
  double experts() const;
  // Per token: the input of a norm and of the matrix behind it.
  double inputs() const;
  // Of the hidden width on one rank: its part of the sequence with sequence parallelism, all of it without.
  double hidden_share() const;

  const Architecture& model_;
  const TrainingSpec& training_;
  // Of one micro-batch on one context parallel rank: the decoder's, and what an encoder before it reads.
  double tokens_ = 0, encoder_tokens_ = 0;
  double element_ = 2;  // bytes of an activation
  double operand_ = 2;  // bytes of a matrix product's input
  double tp_ = 1, inputs_per_mlp_ = 2;
};

}  // namespace weft
