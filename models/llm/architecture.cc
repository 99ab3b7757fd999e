// SPDX-License-Identifier: Apache-2.0
#include "models/llm/architecture.hpp"

#include <algorithm>
#include <initializer_list>
#include <utility>

#include "sim/core/check.hpp"

namespace weft {
namespace {

double product(std::initializer_list<std::int64_t> factors) {
  double out = 1;
  for (const std::int64_t f : factors) out *= static_cast<double>(f);
  return out;
}

double latent_attention(const LlmSpec& m, const LatentAttention& latent) {
  const std::int64_t query_dim = latent.nope_dim + latent.rope_dim;
  const double query = latent.q_rank > 0
                           ? product({m.hidden, latent.q_rank}) + product({latent.q_rank}) +
                                 product({latent.q_rank, m.heads, query_dim})
                           : product({m.hidden, m.heads, query_dim});
  return query + product({m.hidden, latent.kv_rank + latent.rope_dim}) + product({latent.kv_rank}) +
         product({latent.kv_rank, m.heads, latent.nope_dim + latent.value_dim}) +
         product({m.heads, latent.value_dim, m.hidden});
}

// Keys and values, of every head.
double key_values(const Architecture& a) {
  return product({a.kv_heads(), a.head_dim() + a.value_dim()});
}

double attention(const Architecture& a) {
  const LlmSpec& m = a.spec();
  const double sinks = m.sinks ? product({m.heads}) : 0;
  if (m.latent) return latent_attention(m, *m.latent) + sinks;
  const double query = product({m.heads, a.head_dim()}),
               keys = product({a.kv_heads(), a.head_dim()});
  double out = product({m.hidden}) * (2 * query + 2 * keys) + sinks;
  if (m.qkv_bias) out += query + 2 * keys;
  if (m.output_bias) out += product({m.hidden});
  if (m.head_norms) out += 2 * product({a.head_dim()});
  return out;
}

// Inputs, convolution, then per head the decay, the step's bias and the skip; a gated norm; output.
double mamba(const LlmSpec& m, const MambaSpec& s) {
  const std::int64_t inner = s.heads * s.head_dim, mixed = inner + 2 * s.groups * s.state;
  return product({m.hidden, inner + mixed + s.heads}) + product({mixed, s.convolution + 1}) +
         product({3, s.heads}) + product({inner}) + product({inner, m.hidden});
}

double mlp(const LlmSpec& m, std::int64_t outer, std::int64_t inner) {
  const std::int64_t inputs = m.mlp_inputs();
  const double biases = m.mlp_bias ? product({inputs, inner}) + product({outer}) : 0;
  return product({inputs + 1, outer, inner}) + biases;
}

LayerKind default_kind(const LlmSpec& m, std::int64_t index) {
  LayerKind kind;
  kind.encoder = index < m.encoder_layers;
  kind.cross = m.encoder_layers > 0 && !kind.encoder;
  if (m.encoder_layers > 0 || m.positions == Positions::relative)
    kind.first = index == 0 || index == m.encoder_layers;
  if (!m.experts) return kind;
  const std::int64_t after = index - m.experts->dense_layers;
  if (after >= 0 && (after + 1) % m.experts->step == 0) kind.feed_forward = FeedForward::experts;
  return kind;
}

std::int64_t least_norms(const LlmSpec& m, const LayerKind& kind) {
  return kind.mixes_and_feeds() && !m.parallel_block ? 2 : 1;
}

LayerKind kind_of(char letter) {
  switch (letter) {
    case 'M':
      return {Mixer::mamba, FeedForward::none, false};
    case '*':
      return {Mixer::attention, FeedForward::none, false};
    case 'E':
      return {Mixer::none, FeedForward::experts, false};
    default:
      return {Mixer::none, FeedForward::dense, false};
  }
}

}  // namespace

Architecture::Architecture(LlmSpec spec) : spec_(std::move(spec)) {
  WEFT_CHECK(spec_.layers > 0 && spec_.heads > 0 && spec_.hidden > 0, spec_.layers, spec_.heads);
  kv_heads_ = spec_.latent ? spec_.heads : spec_.kv_heads.value_or(spec_.heads);
  head_dim_ = spec_.latent ? spec_.latent->nope_dim + spec_.latent->rope_dim
                           : spec_.head_dim.value_or(spec_.hidden / spec_.heads);
  value_dim_ = spec_.latent ? spec_.latent->value_dim : head_dim_;
  kinds_.reserve(static_cast<std::size_t>(layers()));
  for (std::int64_t i = 0; i < layers(); ++i) {
    LayerKind kind = spec_.pattern.empty() ? default_kind(spec_, i)
                                           : kind_of(spec_.pattern[static_cast<std::size_t>(i)]);
    kind.windowed = kind.mixer == Mixer::attention && spec_.window &&
                    (spec_.window_every == 1 || (i + 1) % spec_.window_every != 0);
    kinds_.push_back(kind);
  }
  total_ = active_ = embedding() + output() + head();
  for (const LayerKind kind : kinds_) {
    const LayerParameters layer = parameters(kind);
    total_ += layer.total();
    active_ += layer.active();
  }
}

LayerParameters Architecture::parameters(LayerKind kind) const {
  LayerParameters out;
  if (kind.mixer == Mixer::attention) out.mixer = attention(*this);
  if (kind.mixer == Mixer::mamba) out.mixer = mamba(spec_, *spec_.mamba);
  if (kind.feed_forward == FeedForward::dense)
    out.dense = mlp(spec_, spec_.hidden, spec_.intermediate);
  if (kind.feed_forward == FeedForward::experts) {
    const ExpertsSpec& e = *spec_.experts;
    out.router = product({spec_.hidden, e.count});
    if (e.routing_bias) out.router += product({e.count});
    if (e.shared_gate) out.router += product({spec_.hidden});
    if (e.shared_size > 0) out.shared = mlp(spec_, spec_.hidden, e.shared_size);
    out.shared += product({2, spec_.hidden, e.latent_size});
    const double one = mlp(spec_, e.latent_size > 0 ? e.latent_size : spec_.hidden, e.size);
    out.experts = product({e.count}) * one;
    out.active_experts = product({e.top_k}) * one;
  }
  if (kind.cross) {
    out.cross = attention(*this);
    out.cross_inputs = product({spec_.hidden}) * key_values(*this);
  }
  if (kind.mixer == Mixer::attention && (kind.first || spec_.position_biases_everywhere))
    out.mixer += product({spec_.heads, spec_.position_buckets});
  const std::int64_t norms = least_norms(spec_, kind) + further_norms(kind) + (kind.cross ? 1 : 0) +
                             (kind.joins() ? 1 : 0);
  out.norms = real(norms) * norm();
  return out;
}

double Architecture::embedding() const {
  const std::int64_t positions = spec_.positions == Positions::learned ? *spec_.context : 0;
  return product({spec_.vocabulary + positions + spec_.segment_kinds(), spec_.hidden}) +
         (spec_.embedding_norm ? norm() : 0);
}

double Architecture::output() const {
  return spec_.tied ? 0 : product({spec_.vocabulary, spec_.hidden});
}

double Architecture::norm() const { return product({spec_.norm_bias ? 2 : 1, spec_.hidden}); }

std::int64_t Architecture::further_norms(LayerKind kind) const {
  if (!spec_.norms || !kind.mixes_and_feeds()) return 0;
  return *spec_.norms - least_norms(spec_, kind);
}

double Architecture::head() const {
  if (!spec_.masked) return norm();
  const double dense = product({spec_.hidden + 1, spec_.hidden});
  const double sentences = spec_.sentence_head ? dense + product({2, spec_.hidden + 1}) : 0;
  return norm() + dense + product({spec_.vocabulary}) + sentences;
}

std::vector<LayerKind> Architecture::prediction_kinds() const {
  if (spec_.prediction_pattern.empty()) return {kinds_.back()};
  std::vector<LayerKind> out;
  for (const char letter : spec_.prediction_pattern) out.push_back(kind_of(letter));
  return out;
}

double Architecture::encoder_parameters() const {
  double out = 0;
  for (const LayerKind kind : kinds_)
    out += kind.encoder ? parameters(kind).total() : parameters(kind).cross_inputs;
  return out;
}

// Norms of the hidden vector and of the next token's embedding, the matrix that joins the two, the layers, a norm.
double Architecture::prediction_layer() const {
  double out = 3 * norm() + product({2, spec_.hidden, spec_.hidden});
  for (const LayerKind kind : prediction_kinds()) out += parameters(kind).total();
  return out;
}

double Architecture::kv_bytes_per_token(double bytes_per_element) const {
  const double one =
      spec_.latent ? product({spec_.latent->kv_rank + spec_.latent->rope_dim}) : key_values(*this);
  return one * real(cached_layers()) * bytes_per_element;
}

double Architecture::cross_kv_bytes_per_token(double bytes_per_element) const {
  return key_values(*this) * real(std::ranges::count(kinds_, true, &LayerKind::cross)) *
         bytes_per_element;
}

std::int64_t Architecture::cached_layers() const {
  return std::ranges::count(kinds_, Mixer::attention, &LayerKind::mixer) - spec_.encoder_layers;
}

double Architecture::kv_bytes(std::int64_t tokens, double bytes_per_element) const {
  const std::int64_t attention_layers = cached_layers();
  const auto windowed = std::ranges::count(kinds_, true, &LayerKind::windowed);
  const auto mamba_layers = std::ranges::count(kinds_, Mixer::mamba, &LayerKind::mixer);
  double out = 0;
  if (attention_layers > 0) {
    const double per_layer =
        kv_bytes_per_token(bytes_per_element) / static_cast<double>(attention_layers);
    const std::int64_t within = spec_.window ? std::min(tokens, *spec_.window) : tokens;
    out =
        per_layer * (product({attention_layers - windowed, tokens}) + product({windowed, within}));
  }
  if (mamba_layers > 0) {
    const MambaSpec& s = *spec_.mamba;
    const std::int64_t inner = s.heads * s.head_dim, mixed = inner + 2 * s.groups * s.state;
    out += bytes_per_element * product({mamba_layers}) *
           (product({inner, s.state}) + product({mixed, s.convolution - 1}));
  }
  return out;
}

}  // namespace weft
