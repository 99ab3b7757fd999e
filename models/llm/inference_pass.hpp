// SPDX-License-Identifier: Apache-2.0
// One iteration of an inference engine through all layers: kernels and collectives of a rank, forward only.
//
//   products   With few rows every weight is read once whatever the rows: time is bytes of weights over memory bandwidth.
//              Weights may be narrower than what is computed (weight-only quantisation).
//   prefill    Attention as in training, of new tokens over what the cache holds of their prompt.
//   decode     Attention reads the cache of every request once. Latent attention computes on the compressed vectors, all heads
//              over one of them (the absorbed form of DeepSeek-V2, arXiv 2405.04434).
//   experts    Only those that some token chose are read: of E experts T tokens with k each touch E (1 - (1 - k/E)^T).
//   encoder    Reads prompts, every token of them. A decoder behind it starts with one token of its own, attends to its own tokens
//              and to the prompt, whose keys and values it makes once and keeps.
//   tp         Two all-reduces per layer, three of a decoder behind an encoder. ep: tokens travel to the experts and back where replicas share them; where the experts
//              lie within the ranks of tp nothing travels, as these have the tokens already.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "models/llm/layer_pass.hpp"
#include "models/llm/plan.hpp"
#include "sim/run/inference_spec.hpp"

namespace weft {

// What one iteration works on.
struct Iteration {
  double prompts = 0;         // prompts that are read, or pieces of them
  double prompt_tokens = 0;   // of these together
  double prompt_context = 0;  // sum over these tokens of the tokens before them
  double first_tokens = 0;    // prompts that end here: each gives a token
  double decodes = 0;         // requests that get one token each
  double decode_context = 0;  // sum of their contexts
  // Behind an encoder: tokens that decoders start with (beside prompts, which encoders read), the sum of those before them, and
  // that part of decode_context which is prompts.
  double started = 0, started_context = 0, decode_prompts = 0;
  void cover(const Iteration& other);  // each the larger of both
};

// Seconds on one replica. `stages`: what each stage of the pipeline is busy for, its send to the next included.
struct IterationTime {
  double compute = 0, tp = 0, ep = 0, pp = 0;
  std::vector<double> stages;
  double total() const { return compute + tp + ep + pp; }
};

// How long what an iteration sends takes, alone on the fabric.
struct InferenceComms {
  std::function<double(Dimension, CollectiveKind, double bytes)> collective;
  std::function<double(std::size_t stage, double bytes)> send;  // to the stage behind it
};

class InferencePasses {
 public:
  InferencePasses(const Architecture& model, const InferenceSpec& spec, const KernelTimes& kernels,
                  const StageLayout& layout, InferenceComms comms);

  IterationTime operator()(const Iteration& iteration) const;

 private:
  struct Part;  // of an iteration: seconds and launches
  struct Stage {
    std::vector<LayerCount> layers;
    bool embedding = false, joins = false, loss = false;
    bool decodes = false;  // sends vectors of the decoder
  };
  Iteration seen_by(const LayerKind& kind, const Iteration& it) const;
  void attention(const Iteration& it, const LayerKind& kind, Part& part) const;
  void cross(const Iteration& it, Part& part) const;
  double heads() const;  // of a rank
  double query_width() const;
  double key_width() const;  // of keys and values
  AttentionCall read_prompts(const Iteration& it, bool causal, bool biased) const;
  bool is_biased() const { return model_.spec().positions == Positions::relative; }
  void latent_attention(const Iteration& it, Part& part) const;
  void decode_attention(const Iteration& it, bool windowed, Part& part) const;
  void mamba(const Iteration& it, Part& part) const;
  void dense(double tokens, double inner, Part& part) const;
  void experts(double tokens, Part& part) const;
  Part layer(const LayerKind& kind, const Iteration& it) const;
  Part embedding(double tokens) const;
  Part ends(const Stage& stage, const Iteration& it) const;
  Part logits(const Iteration& it) const;
  void product(Part& part, double tokens, double in, double out, double groups = 1) const;
  void memory(Part& part, double elements, double moves) const;
  void reduce(Part& part, double tokens) const;

  const Architecture& model_;
  const InferenceSpec& spec_;
  const KernelTimes& kernels_;
  InferenceComms comms_;
  std::vector<Stage> stages_;
  std::vector<LayerKind> kinds_;
  double tp_, ep_, etp_, bytes_, weight_bytes_, kv_bytes_;
  Precision exact_;
};

}  // namespace weft
