// SPDX-License-Identifier: Apache-2.0
// What a language model consists of, counted: parameters of every layer, what one token uses of them, its cache.
//
//   const Architecture llama(read_llm(...));
//   llama.total();                       // 8,030,261,248 for Llama 3 8B
//   llama.kv_bytes_per_token(2);         // 131,072
#pragma once

#include <cstdint>
#include <vector>

#include "sim/run/llm_spec.hpp"

namespace weft {

// A count, in the type of seconds and bytes.
constexpr double real(std::int64_t count) { return static_cast<double>(count); }

enum class Mixer : std::uint8_t { none, attention, mamba };
enum class FeedForward : std::uint8_t { none, dense, experts };

struct LayerKind {
  Mixer mixer = Mixer::attention;
  FeedForward feed_forward = FeedForward::dense;
  bool windowed = false;
  bool encoder = false;  // reads the input, every token of it
  bool cross = false;    // attends to the encoder's output behind its own attention
  // Of its stack: has the stack's relative positions. That of a decoder behind an encoder comes after the encoder's last norm
  // and the embedding of the decoder's tokens.
  bool first = false;
  bool joins() const { return cross && first; }
  bool mixes_and_feeds() const { return mixer != Mixer::none && feed_forward != FeedForward::none; }
  bool operator==(const LayerKind&) const = default;
};

// Elements, not bytes. double: exact to 2^53. Biases and inner norms count with what they belong to; shared: the shared expert
// and the projections around routed experts that work on narrower vectors.
struct LayerParameters {
  double mixer = 0, cross = 0, dense = 0, router = 0, shared = 0, experts = 0, norms = 0;
  double active_experts = 0;  // of `experts`, per token
  double cross_inputs = 0;    // of `cross`: keys and values, which work on the encoder's tokens
  double total() const { return mixer + cross + dense + router + shared + experts + norms; }
  double active() const { return total() - experts + active_experts; }
};

class Architecture {
 public:
  explicit Architecture(LlmSpec spec);

  const LlmSpec& spec() const { return spec_; }
  // The encoder's, then the decoder's.
  std::int64_t layers() const { return spec_.encoder_layers + spec_.layers; }
  bool has_encoder() const { return spec_.encoder_layers > 0; }
  std::int64_t heads() const { return spec_.heads; }
  std::int64_t kv_heads() const { return kv_heads_; }
  std::int64_t head_dim() const { return head_dim_; }    // of queries and keys
  std::int64_t value_dim() const { return value_dim_; }  // of values; other than head_dim if latent
  LayerKind layer(std::int64_t index) const { return kinds_[static_cast<std::size_t>(index)]; }

  LayerParameters parameters(LayerKind kind) const;
  double embedding() const;  // with learned positions
  double output() const;     // 0 when tied
  double norm() const;       // one of the hidden width
  // Of a layer, beside those that every model has: behind attention or the MLP, or one more before a parallel block.
  std::int64_t further_norms(LayerKind kind) const;
  // Between the last layer and the output matrix: a norm, and what a masked model has there.
  double head() const;
  // What one of spec().prediction_layers consists of, in no total. Its output matrix is that of the model.
  std::vector<LayerKind> prediction_kinds() const;
  double prediction_layer() const;
  double total() const { return total_; }
  double active() const { return active_; }
  // Of the total, what meets the tokens that an encoder reads: its layers, and keys and values that decoder layers make of them.
  double encoder_parameters() const;
  // Of all attention layers, per token of the sequence while no window is full; Mamba's state does not grow (see kv_bytes).
  // An encoder keeps none of its own.
  double kv_bytes_per_token(double bytes_per_element) const;
  // What the decoder keeps of the encoder's output, per token that the encoder read.
  double cross_kv_bytes_per_token(double bytes_per_element) const;
  // Of one sequence of `tokens`.
  double kv_bytes(std::int64_t tokens, double bytes_per_element) const;

 private:
  std::int64_t cached_layers() const;

  LlmSpec spec_;
  std::int64_t kv_heads_ = 0, head_dim_ = 0, value_dim_ = 0;
  double total_ = 0, active_ = 0;
  std::vector<LayerKind> kinds_;
};

}  // namespace weft
