// SPDX-License-Identifier: Apache-2.0
#include "models/llm/flops.hpp"

#include <algorithm>
#include <utility>

namespace weft {
namespace {

// The same model without what is added and not multiplied.
Architecture matrices_of(LlmSpec m) {
  m.position_buckets = 0;
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
double average_reach(double seq, double window) {
  return window < seq ? window - window * (window - 1) / (2 * seq) : seq / 2;
}

// A sequence: what each of the decoder's tokens costs, or of the only ones, and each that an encoder reads.
struct SequenceFlops {
  explicit SequenceFlops(Lengths lengths)
      : read(real(lengths.seq)),
        written(real(lengths.decoder > 0 ? lengths.decoder : lengths.seq)) {}
  double read, written;  // tokens
  TokenFlops encoder, decoder;
};

double per_key(const Architecture& matrices) {
  return 2 * real(matrices.spec().heads) * real(matrices.head_dim() + matrices.value_dim());
}

TokenFlops layer_flops(const Architecture& matrices, LayerKind kind, double seq) {
  constexpr double kScan = 7;  // of one element of the state (Megatron-LM)
  const LlmSpec& m = matrices.spec();
  const LayerParameters parameters = matrices.parameters(kind);
  TokenFlops out;
  out.layers = 2 * (parameters.active() - parameters.norms - parameters.cross_inputs);
  if (kind.mixer == Mixer::attention) {
    out.attention = per_key(matrices) * seq;
    const bool whole = (m.masked || kind.encoder) && !kind.windowed;
    out.causal =
        whole ? out.attention
              : per_key(matrices) * average_reach(seq, kind.windowed ? real(*m.window) : seq);
  }
  if (kind.mixer == Mixer::mamba)
    out.scan = kScan * real(m.mamba->heads * m.mamba->head_dim) * real(m.mamba->state);
  return out;
}

// Of the decoder's tokens, and keys and values of those that the encoder read.
void add_cross(const Architecture& matrices, LayerKind kind, SequenceFlops& out) {
  TokenFlops scores;
  scores.attention = scores.causal = per_key(matrices) * out.read;
  out.decoder.add(scores);
  out.encoder.layers += 2 * matrices.parameters(kind).cross_inputs;
}

SequenceFlops model_flops(const Architecture& matrices, Lengths lengths) {
  SequenceFlops out(lengths);
  for (std::int64_t i = 0; i < matrices.layers(); ++i) {
    const LayerKind kind = matrices.layer(i);
    if (kind.encoder)
      out.encoder.add(layer_flops(matrices, kind, out.read));
    else
      out.decoder.add(layer_flops(matrices, kind, out.written));
    if (kind.cross) add_cross(matrices, kind, out);
  }
  const double dense = matrices.spec().masked ? real(matrices.spec().hidden) : 0;
  out.decoder.output =
      2 * real(matrices.spec().hidden) * (real(matrices.spec().vocabulary) + dense);
  return out;
}

// Of all prediction layers; each has the model's output matrix once more.
TokenFlops prediction_flops(const Architecture& matrices, double seq) {
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

// Both kinds of tokens, each by what it costs one.
template <class Cost>
double all_tokens(const SequenceFlops& sequence, std::int64_t sequences, Cost&& cost) {
  return sequence.written * real(sequences) * cost(sequence.decoder) +
         sequence.read * real(sequences) * cost(sequence.encoder);
}

}  // namespace

double training_flops(const Architecture& model, FlopsConvention convention, Lengths lengths,
                      std::int64_t sequences, bool recompute, bool frozen) {
  const LlmSpec& m = model.spec();
  const double weights = frozen ? 2 : 3;  // passes over weights, in forward passes
  SequenceFlops sequence = model_flops(matrices_of(m), lengths);
  if (convention == FlopsConvention::six_n || convention == FlopsConvention::palm) {
    const bool palm = convention == FlopsConvention::palm;
    const double looked_up = palm && !m.tied ? real(m.vocabulary) * real(m.hidden) : 0;
    sequence.encoder.layers = model.encoder_parameters();
    sequence.decoder.layers = model.active() - sequence.encoder.layers - looked_up;
    return all_tokens(sequence, sequences, [&](const TokenFlops& token) {
      return weights * 2 * token.layers + (palm ? 3 * token.attention : 0);
    });
  }
  if (convention == FlopsConvention::causal) {
    sequence.decoder.add(prediction_flops(matrices_of(m), sequence.written));
    return all_tokens(sequence, sequences, [&](const TokenFlops& token) {
      return weights * (token.layers + token.output) + 3 * (token.causal + token.scan);
    });
  }
  const double again = recompute ? 1 : 0;
  return all_tokens(sequence, sequences, [&](const TokenFlops& token) {
    return (weights + again) * token.layers + weights * token.output +
           (3 + again) * token.attention;
  });
}

double hardware_flops(const Architecture& model, Lengths lengths, std::int64_t sequences,
                      Recompute recompute, bool frozen) {
  const Architecture matrices = matrices_of(model.spec());
  SequenceFlops sequence = model_flops(matrices, lengths);
  sequence.decoder.add(prediction_flops(matrices, sequence.written));
  const double weights = frozen ? 2 : 3;
  const double all_again = recompute == Recompute::full ? 1 : 0;
  const double attention_again = recompute == Recompute::none ? 0 : 1;
  return all_tokens(sequence, sequences, [&](const TokenFlops& token) {
    return (weights + all_again) * token.layers + weights * token.output +
           (3 + attention_again) * token.causal + (3 + all_again) * token.scan;
  });
}

}  // namespace weft
