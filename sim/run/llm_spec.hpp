// SPDX-License-Identifier: Apache-2.0
// A language model as a file of the catalogue (configs/llms): what its layers are made of, nothing about how it is run.
// A config.json as Hugging Face publishes it is understood too (read_llm).
#pragma once

#include <optional>
#include <string>

#include "sim/core/config.hpp"
#include "sim/fabric/software.hpp"

namespace weft {

enum class MlpKind { gated, plain };
constexpr auto enum_names(MlpKind) {
  using enum MlpKind;
  return std::array<EnumName<MlpKind>, 2>{{{gated, "gated"}, {plain, "plain"}}};
}

enum class Positions { rotary, learned, alibi, relative, none };
constexpr auto enum_names(Positions) {
  using enum Positions;
  return std::array<EnumName<Positions>, 5>{{{rotary, "rotary"},
                                             {learned, "learned"},
                                             {alibi, "alibi"},
                                             {relative, "relative"},
                                             {none, "none"}}};
}

// Keys and values from one small vector per token (DeepSeek-V2, arXiv 2405.04434).
struct LatentAttention {
  std::int64_t q_rank = 0, kv_rank = 512, rope_dim = 64, nope_dim = 128, value_dim = 128;
  template <class V>
  void visit(V&& v) {
    v("q_rank", q_rank, "of the queries' compression; 0: none", between(0, 1'000'000));
    v("kv_rank", kv_rank, "of the keys' and values' compression", between(1, 1'000'000));
    v("rope_dim", rope_dim, "part of a query head that is rotated", between(0, 100'000));
    v("nope_dim", nope_dim, "part of a query head that is not", between(1, 100'000));
    v("value_dim", value_dim, "of a value head", between(1, 100'000));
  }
};

struct ExpertsSpec {
  std::int64_t count = 8, top_k = 2, size = 0, shared_size = 0, latent_size = 0, dense_layers = 0,
               step = 1;
  bool routing_bias = false, shared_gate = false;
  template <class V>
  void visit(V&& v) {
    v("count", count, "routed experts of a layer", between(1, 100'000));
    v("top_k", top_k, "of them, per token", between(1, 100'000));
    v("size", size, "inner width of one routed expert", required, between(1, 10'000'000));
    v("shared_size", shared_size, "inner width of all shared experts together; 0: none",
      between(0, 10'000'000));
    v("latent_size", latent_size,
      "routed experts work on vectors of this width, with one projection down and one up per "
      "layer; 0: on the hidden ones",
      between(0, 10'000'000));
    v("dense_layers", dense_layers, "so many first layers have a dense MLP instead",
      between(0, 100'000));
    v("step", step, "2: every second layer after those has experts, the first of the two is dense",
      between(1, 1000));
    v("routing_bias", routing_bias, "one trained number per expert beside the router's matrix");
    v("shared_gate", shared_gate, "a gate on the shared expert");
  }
};

// State space layers of Mamba 2 (arXiv 2405.21060).
struct MambaSpec {
  std::int64_t heads = 128, head_dim = 64, groups = 8, state = 128, convolution = 4;
  template <class V>
  void visit(V&& v) {
    v("heads", heads, "", between(1, 100'000));
    v("head_dim", head_dim, "", between(1, 100'000));
    v("groups", groups, "of heads that share B and C", between(1, 100'000));
    v("state", state, "numbers of state per channel", between(1, 100'000));
    v("convolution", convolution, "width of the causal convolution", between(1, 1000));
  }
};

struct LlmSpec : ComponentHead {
  std::int64_t layers = 0, hidden = 0, heads = 0, vocabulary = 0, intermediate = 0;
  std::optional<std::int64_t> kv_heads, head_dim, context, window, norms, segments;
  std::int64_t window_every = 1, prediction_layers = 0, encoder_layers = 0, position_buckets = 0;
  MlpKind mlp = MlpKind::gated;
  Positions positions = Positions::rotary;
  bool tied = false, qkv_bias = false, output_bias = false, mlp_bias = false, norm_bias = false,
       head_norms = false, sinks = false, embedding_norm = false, parallel_block = false,
       masked = false, sentence_head = false, position_biases_everywhere = false;
  std::optional<LatentAttention> latent;
  std::optional<ExpertsSpec> experts;
  std::optional<MambaSpec> mamba;
  std::string pattern, prediction_pattern;
  Place place;
  std::string pointer;

  // Kinds of segments that are embedded.
  std::int64_t segment_kinds() const { return masked ? segments.value_or(2) : 0; }
  // Matrices into an MLP.
  std::int64_t mlp_inputs() const { return mlp == MlpKind::gated ? 2 : 1; }
  template <class V>
  void visit(V&& v) {
    visit_head(v);
    v("layers", layers, "decoder layers", required, between(1, 100'000));
    v("encoder_layers", encoder_layers,
      "layers that read the input before the decoder's, each of which then attends to what they "
      "made of it (T5); 0: a decoder alone",
      between(0, 100'000));
    v("hidden", hidden, "width of the residual stream", required, between(1, 10'000'000));
    v("heads", heads, "attention heads", required, between(1, 1'000'000));
    v("kv_heads", kv_heads, "heads of keys and values; default: all", between(1, 1'000'000));
    v("head_dim", head_dim, "width of a head; default: hidden / heads", between(1, 1'000'000));
    v("vocabulary", vocabulary, "rows of the embedding", required, between(1, 100'000'000));
    v("intermediate", intermediate, "inner width of a dense MLP", between(0, 100'000'000));
    v("context", context, "longest sequence", between(1, 1'000'000'000));
    v("window", window, "attention reaches so many tokens back", between(1, 1'000'000'000));
    v("window_every", window_every,
      "1: all layers have the window; n: all but every n-th, which sees everything",
      between(1, 1000));
    v("prediction_layers", prediction_layers,
      "extra layers that predict further tokens (DeepSeek-V3); not in the parameter counts",
      between(0, 100));
    v("mlp", mlp, "gated: three matrices; plain: two");
    v("positions", positions,
      "rotary, learned (a trained matrix), alibi, relative (a trained number per head and range of "
      "distances), none");
    v("position_buckets", position_buckets, "of relative positions: ranges of distances",
      between(0, 1'000'000));
    v("position_biases_everywhere", position_biases_everywhere,
      "relative positions are trained in every layer, not once for all of a stack");
    v("tied", tied, "the output matrix is the embedding");
    v("qkv_bias", qkv_bias, "biases of the query, key and value projections");
    v("output_bias", output_bias, "bias of the attention's output projection");
    v("mlp_bias", mlp_bias, "biases of the MLP and of experts");
    v("norm_bias", norm_bias, "LayerNorm: a shift beside the scale");
    v("norms", norms,
      "of a layer with attention and an MLP; default: one before each, in a parallel block one",
      between(1, 8));
    v("head_norms", head_norms, "a norm on every query and key head");
    v("sinks", sinks, "one trained number per head that takes part in the softmax");
    v("embedding_norm", embedding_norm, "a norm on the embedding");
    v("parallel_block", parallel_block, "attention and MLP side by side, by default from one norm");
    v("masked", masked,
      "fills gaps, as BERT does: attention sees both sides, kinds of segments are embedded, a "
      "dense layer and a bias of the vocabulary stand at the output");
    v("segments", segments, "kinds of segments that a masked model embeds; default: 2",
      between(0, 1000));
    v("sentence_head", sentence_head,
      "a masked model that also says whether two sentences follow each other: a dense layer on the "
      "first token, and a choice of two");
    v("latent", latent, "latent attention in place of heads of keys and values");
    v("experts", experts, "mixture of experts in place of the MLP");
    v("mamba", mamba, "state space layers, placed by `pattern`");
    v("pattern", pattern,
      "one letter per layer of a hybrid: M Mamba, * attention, - MLP, E experts; default: "
      "attention "
      "and MLP in every layer");
    v("prediction_pattern", prediction_pattern,
      "letters of one prediction layer of a hybrid; default: the last of `pattern`");
  }
};

// A component of kind llm, or a config.json with "model_type" or "architectures". Problems go to `out`, among them families
// whose layers are not known here; use the result only when out.ok().
LlmSpec read_llm(const Json& document, const std::string& pointer, Diagnostics& out);
// What differs from the defaults, in the form that read_llm takes.
Json write_llm(const LlmSpec& spec);

}  // namespace weft
