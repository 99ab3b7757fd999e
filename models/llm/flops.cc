// SPDX-License-Identifier: Apache-2.0
#include "models/llm/flops.hpp"

#include <algorithm>
#include <utility>

namespace weft {
namespace {

// The same model without what is added and not multiplied.
Architecture matrices_of(LlmSpec m) {
  m.qkv_bias = m.output_bias = m.mlp_bias = m.norm_bias = m.head_norms = m.sinks = false;
  if (m.experts) m.experts->routing_bias = false;
  return Architecture(std::move(m));
}

// Forward operations of one token, by what a convention may count otherwise.
struct TokenFlops {
  double layers = 0;     // weights of the layers
  double output = 0;     // weights of the output
  double attention = 0;  // scores and weighted sum, all of the sequence
  double causal = 0;     // of those, what a causal mask and windows leave
  double scan = 0;       // state space of Mamba
  void add(const TokenFlops& other) {
    layers += other.layers;
    output += other.output;
    attention += other.attention;
    causal += other.causal;
    scan += other.scan;
  }
};

// Keys that a query sees on average.
double average_reach(std::int64_t seq, std::int64_t window) {
  const double s = real(seq), w = real(window);
  return window < seq ? w - w * (w - 1) / (2 * s) : s / 2;
}

TokenFlops layer_flops(const Architecture& matrices, LayerKind kind, std::int64_t seq) {
  constexpr double kScan = 7;  // of one element of the state (Megatron-LM)
  const LlmSpec& m = matrices.spec();
  const LayerParameters parameters = matrices.parameters(kind);
  TokenFlops out;
  out.layers = 2 * (parameters.active() - parameters.norms);
  if (kind.mixer == Mixer::attention) {
    const double per_key = 2 * real(m.heads) * real(matrices.head_dim() + matrices.value_dim());
    out.attention = per_key * real(seq);
    const bool whole = m.masked && !kind.windowed;
    out.causal =
        whole ? out.attention : per_key * average_reach(seq, kind.windowed ? *m.window : seq);
  }
  if (kind.mixer == Mixer::mamba)
    out.scan = kScan * real(m.mamba->heads * m.mamba->head_dim) * real(m.mamba->state);
  return out;
}

TokenFlops decoder_flops(const Architecture& matrices, std::int64_t seq) {
  TokenFlops out;
  for (std::int64_t i = 0; i < matrices.layers(); ++i)
    out.add(layer_flops(matrices, matrices.layer(i), seq));
  const double dense = matrices.spec().masked ? real(matrices.spec().hidden) : 0;
  out.output = 2 * real(matrices.spec().hidden) * (real(matrices.spec().vocabulary) + dense);
  return out;
}

// Of all prediction layers; each has the model's output matrix once more.
TokenFlops prediction_flops(const Architecture& matrices, std::int64_t seq) {
  const LlmSpec& m = matrices.spec();
  TokenFlops out;
  for (std::int64_t i = 0; i < m.prediction_layers; ++i) {
    for (const LayerKind kind : matrices.prediction_kinds())
      out.add(layer_flops(matrices, kind, seq));
    out.layers += 4 * real(m.hidden) * real(m.hidden);
    out.output += 2 * real(m.hidden) * real(m.vocabulary);
  }
  return out;
}

}  // namespace

double training_flops(const Architecture& model, FlopsConvention convention, std::int64_t seq,
                      std::int64_t sequences, bool recompute, bool frozen) {
  const LlmSpec& m = model.spec();
  const double tokens = real(seq) * real(sequences);
  const double weights = frozen ? 2 : 3;  // passes over weights, in forward passes
  if (convention == FlopsConvention::six_n) return tokens * weights * 2 * model.active();
  const Architecture matrices = matrices_of(m);
  TokenFlops token = decoder_flops(matrices, seq);
  switch (convention) {
    case FlopsConvention::palm: {
      const double looked_up = m.tied ? 0 : real(m.vocabulary) * real(m.hidden);
      return tokens * (weights * 2 * (model.active() - looked_up) + 3 * token.attention);
    }
    case FlopsConvention::causal:
      token.add(prediction_flops(matrices, seq));
      return tokens * (weights * (token.layers + token.output) + 3 * (token.causal + token.scan));
    default: {
      const double again = recompute ? 1 : 0;
      return tokens * ((weights + again) * token.layers + weights * token.output +
                       (3 + again) * token.attention);
    }
  }
}

double hardware_flops(const Architecture& model, std::int64_t seq, std::int64_t sequences,
                      Recompute recompute, bool frozen) {
  const Architecture matrices = matrices_of(model.spec());
  TokenFlops token = decoder_flops(matrices, seq);
  token.add(prediction_flops(matrices, seq));
  const double weights = frozen ? 2 : 3;
  const double all_again = recompute == Recompute::full ? 1 : 0;
  const double attention_again = recompute == Recompute::none ? 0 : 1;
  return real(seq) * real(sequences) *
         ((weights + all_again) * token.layers + weights * token.output +
          (3 + attention_again) * token.causal + (3 + all_again) * token.scan);
}

}  // namespace weft
