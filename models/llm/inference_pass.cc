// SPDX-License-Identifier: Apache-2.0
#include "models/llm/inference_pass.hpp"

#include <algorithm>
#include <utility>

#include "sim/core/random.hpp"

namespace weft {
namespace {

// Experts of `all` that `tokens` touch, each with `chosen` of them.
double touched(double all, double chosen, double tokens) {
  if (chosen >= all || tokens <= 0) return tokens <= 0 ? 0 : all;
  return all * (1 - portable_exp(tokens * portable_log(1 - chosen / all)));
}

}  // namespace

void Iteration::cover(const Iteration& other) {
  for (double Iteration::*const part :
       {&Iteration::prompts, &Iteration::prompt_tokens, &Iteration::prompt_context,
        &Iteration::first_tokens, &Iteration::decodes, &Iteration::decode_context,
        &Iteration::started, &Iteration::started_context, &Iteration::decode_prompts})
    this->*part = std::max(this->*part, other.*part);
}

struct InferencePasses::Part {
  double compute = 0, kernels = 0, tp = 0, ep = 0;
  void add(const Part& other, double times) {
    compute += times * other.compute;
    kernels += times * other.kernels;
    tp += times * other.tp;
    ep += times * other.ep;
  }
};

InferencePasses::InferencePasses(const Architecture& model, const InferenceSpec& spec,
                                 const KernelTimes& kernels, const StageLayout& layout,
                                 InferenceComms comms)
    : model_(model),
      spec_(spec),
      kernels_(kernels),
      comms_(std::move(comms)),
      tp_(real(spec.plan.tp)),
      ep_(real(spec.plan.ep)),
      etp_(real(spec.plan.expert_tp())),
      bytes_(std::max(2.0, bytes_of(spec.dtype.compute))),
      weight_bytes_(bytes_of(spec.dtype.param)),
      kv_bytes_(bytes_of(spec.kv_precision())),
      exact_(bytes_of(spec.dtype.compute) < 2 ? Precision::bf16 : spec.dtype.compute) {
  for (const std::vector<Chunk>& chunks : layout) {
    Stage& stage = stages_.emplace_back();
    stage.embedding = std::ranges::any_of(chunks, &Chunk::embedding);
    stage.joins = std::ranges::any_of(chunks, &Chunk::joins);
    stage.loss = std::ranges::any_of(chunks, &Chunk::loss);
    stage.decodes = !model.has_encoder() ||
                    chunks.back().first + chunks.back().count > model.spec().encoder_layers;
    stage.layers = count_layers(model, chunks);
    for (const LayerCount& layers : stage.layers) {
      if (std::ranges::find(kinds_, layers.kind) == kinds_.end()) kinds_.push_back(layers.kind);
    }
  }
}

void InferencePasses::product(Part& part, double tokens, double in, double out,
                              double groups) const {
  part.compute += kernels_.gemm({.m = tokens,
                                 .n = out,
                                 .k = in,
                                 .groups = groups,
                                 .precision = spec_.dtype.compute,
                                 .output_bytes = bytes_,
                                 .weight_bytes = weight_bytes_,
                                 .splits = true});
  part.kernels += 1;
}

void InferencePasses::memory(Part& part, double elements, double moves) const {
  const MemoryPass pass{elements * moves * bytes_, 1};
  part.compute += kernels_.memory(pass);
  part.kernels += kernels_.launches(pass);
}

void InferencePasses::reduce(Part& part, double tokens) const {
  if (tp_ > 1)
    part.tp += comms_.collective(Dimension::tp, CollectiveKind::all_reduce,
                                 tokens * real(model_.spec().hidden) * bytes_);
}

// ---- attention

double InferencePasses::heads() const { return real(model_.spec().heads) / tp_; }
double InferencePasses::query_width() const { return heads() * real(model_.head_dim()); }
double InferencePasses::key_width() const {
  return std::max(1.0, real(model_.kv_heads()) / tp_) *
         real(model_.head_dim() + model_.value_dim());
}

// What an encoder or the decoder behind it works on, as a model of one stack does.
Iteration InferencePasses::seen_by(const LayerKind& kind, const Iteration& it) const {
  if (kind.encoder)
    return {.prompts = it.prompts,
            .prompt_tokens = it.prompt_tokens,
            .prompt_context = it.prompt_context};
  if (!kind.cross) return it;
  return {.prompts = it.prompts,
          .prompt_tokens = it.started,
          .prompt_context = it.started_context,
          .decodes = it.decodes,
          .decode_context = it.decode_context - it.decode_prompts};
}

AttentionCall InferencePasses::read_prompts(const Iteration& it, bool causal, bool biased) const {
  AttentionCall call;
  call.batch = it.prompts;
  call.queries = it.prompt_tokens / it.prompts;
  // So that the pairs under the mask add up: queries (keys - (queries + 1) / 2 + 1) = context + queries. Without a mask
  // each token has those behind it too.
  const double before = it.prompt_context / it.prompt_tokens;
  call.keys = std::max(causal ? before + (call.queries + 1) / 2 : 2 * before + 1, call.queries);
  call.causal = causal;
  call.biased = biased;
  call.heads = heads();
  call.kv_heads = std::max(1.0, real(model_.kv_heads()) / tp_);
  call.head_dim = real(model_.head_dim());
  call.value_dim = real(model_.value_dim());
  call.kernel = spec_.software.attention;
  return call;
}

void InferencePasses::decode_attention(const Iteration& it, bool windowed, Part& part) const {
  if (it.decodes <= 0) return;
  const LlmSpec& m = model_.spec();
  AttentionCall call;
  call.batch = it.decodes;
  call.queries = 1;
  call.keys = it.decode_context / it.decodes + 1;
  call.heads = heads();
  call.head_dim = real(model_.head_dim());
  call.value_dim = real(model_.value_dim());
  double cached = key_width();
  if (m.latent) {
    call.head_dim = real(m.latent->kv_rank + m.latent->rope_dim);
    call.value_dim = real(m.latent->kv_rank);
    cached = call.head_dim;
  }
  if (windowed) call.keys = std::min(call.keys, real(*m.window));
  call.kernel = spec_.software.attention;
  const double reading = kernels_.memory({it.decodes * call.keys * cached * kv_bytes_, 1});
  const bool fused =
      call.kernel != AttentionKernel::unfused && call.kernel != AttentionKernel::fused_softmax;
  part.compute += fused ? std::max(reading, kernels_.attention(call)) : reading;
  part.kernels += 1;
}

void InferencePasses::latent_attention(const Iteration& it, Part& part) const {
  const LlmSpec& m = model_.spec();
  const LatentAttention& latent = *m.latent;
  const double tokens = it.prompt_tokens + it.decodes, heads = real(m.heads) / tp_;
  const double hidden = real(m.hidden), rank = real(latent.kv_rank);
  const double down = rank + real(latent.rope_dim) + real(latent.q_rank);
  product(part, tokens, hidden, down);
  memory(part, tokens * down, 2);
  product(part, tokens, latent.q_rank > 0 ? real(latent.q_rank) : hidden,
          heads * real(model_.head_dim()));
  if (it.decodes > 0) {  // into the compressed space and out of it, head by head
    product(part, it.decodes, real(latent.nope_dim), rank, heads);
    decode_attention(it, false, part);
    product(part, it.decodes, rank, real(latent.value_dim), heads);
  }
  if (it.prompt_tokens > 0) {  // keys and values of all heads, of what was cached before too
    const double keys = it.prompt_tokens + it.prompts * (it.prompt_context / it.prompt_tokens);
    product(part, keys, rank, heads * real(latent.nope_dim + latent.value_dim));
  }
}

void InferencePasses::attention(const Iteration& it, const LayerKind& kind, Part& part) const {
  const LlmSpec& m = model_.spec();
  const double tokens = it.prompt_tokens + it.decodes, hidden = real(m.hidden);
  const double query = query_width(), keys = key_width();
  memory(part, tokens * hidden, 2);
  if (m.latent) {
    latent_attention(it, part);
  } else {
    product(part, tokens, hidden, query + keys);
    memory(part, tokens * (query + keys), 2);  // rotation, into the cache
    decode_attention(it, kind.windowed, part);
  }
  if (it.prompt_tokens > 0) {
    AttentionCall call = read_prompts(it, !kind.encoder, is_biased());
    if (kind.windowed) call.window = real(*m.window);
    part.compute += kernels_.attention(call);
    part.kernels += 1;
  }
  product(part, tokens, heads() * real(model_.value_dim()), hidden);
  if (!m.parallel_block) reduce(part, tokens);
}

// Keys and values of a prompt are made with it; answers find them in the cache.
void InferencePasses::cross(const Iteration& it, Part& part) const {
  const double tokens = it.started + it.decodes, hidden = real(model_.spec().hidden);
  memory(part, tokens * hidden, 2);
  product(part, tokens, hidden, query_width());
  if (it.prompts > 0) {
    product(part, it.prompt_tokens, hidden, key_width());
    memory(part, it.prompt_tokens * key_width(), 2);
    AttentionCall call = read_prompts(it, false, false);
    call.queries = it.started / it.prompts;
    part.compute += kernels_.attention(call);
    part.kernels += 1;
  }
  decode_attention({.decodes = it.decodes, .decode_context = it.decode_prompts - it.decodes}, false,
                   part);
  product(part, tokens, heads() * real(model_.value_dim()), hidden);
  reduce(part, tokens);
}

// The scan of a prompt as products of chunks, that of one token as reading and writing the state in FP32.
void InferencePasses::mamba(const Iteration& it, Part& part) const {
  const LlmSpec& m = model_.spec();
  const MambaSpec& s = *m.mamba;
  const double tokens = it.prompt_tokens + it.decodes, hidden = real(m.hidden);
  const double inner = real(s.heads * s.head_dim) / tp_, state = real(s.state),
               mixed = inner + 2 * real(s.groups) * state / tp_;
  memory(part, tokens * hidden, 2);
  product(part, tokens, hidden, inner + mixed + real(s.heads) / tp_);
  memory(part, tokens * mixed, 2);
  if (it.prompt_tokens > 0) product(part, it.prompt_tokens, inner, 3 * state);
  if (it.decodes > 0) memory(part, it.decodes * inner * state * 4 / bytes_, 2);
  memory(part, tokens * inner, 3);
  product(part, tokens, inner, hidden);
  reduce(part, tokens);
}

// ---- feed-forward

void InferencePasses::dense(double tokens, double inner, Part& part) const {
  const double hidden = real(model_.spec().hidden);
  const double inputs = real(model_.spec().mlp_inputs());
  product(part, tokens, hidden, inputs * inner);
  memory(part, tokens * inner, inputs + 1);
  product(part, tokens, inner, hidden);
}

void InferencePasses::experts(double tokens, Part& part) const {
  const LlmSpec& m = model_.spec();
  const ExpertsSpec& e = *m.experts;
  const double hidden = real(m.hidden), chosen = real(e.top_k), all = real(e.count);
  const double width = e.latent_size > 0 ? real(e.latent_size) : hidden;
  const double inputs = real(model_.spec().mlp_inputs());
  product(part, tokens, hidden, all);
  memory(part, tokens * all, 2);
  if (e.shared_size > 0) dense(tokens, real(e.shared_size) / tp_, part);
  if (e.latent_size > 0) product(part, tokens, hidden, width);
  // Ranks that share experts hold the tokens of so many replicas.
  const double replicas = std::max(1.0, ep_ * etp_ / tp_), everyone = tokens * replicas;
  const bool travels = ep_ * etp_ > tp_;
  const double sent = tokens / tp_ * chosen * width;
  if (travels)
    part.ep += comms_.collective(Dimension::ep, CollectiveKind::all_to_all,
                                 sent * bytes_of(spec_.dtype.compute));
  const double groups = std::max(1.0, touched(all, chosen, everyone) / ep_);
  const double rows = everyone * chosen / ep_ * spec_.plan.expert_skew;
  memory(part, rows * width, 2);
  product(part, rows / groups, width, inputs * real(e.size) / etp_, groups);
  memory(part, rows * real(e.size) / etp_, inputs + 1);
  product(part, rows / groups, real(e.size) / etp_, width, groups);
  memory(part, rows * width, 2);
  if (travels) {
    part.ep += comms_.collective(Dimension::ep, CollectiveKind::all_to_all, sent * bytes_);
    if (tp_ > 1)
      part.tp +=
          comms_.collective(Dimension::tp, CollectiveKind::all_gather, tokens * width * bytes_);
  }
  if (e.latent_size > 0) product(part, tokens, width, hidden);
}

// ---- layers

// A host that cannot issue as fast as the GPU works sets the pace.
InferencePasses::Part InferencePasses::layer(const LayerKind& kind, const Iteration& all) const {
  Part part;
  const Iteration it = seen_by(kind, all);
  const double tokens = it.prompt_tokens + it.decodes;
  if (tokens <= 0) return part;
  for (std::int64_t i = 0; i < model_.further_norms(kind); ++i)
    memory(part, tokens * real(model_.spec().hidden), 2);
  if (kind.mixer == Mixer::attention) attention(it, kind, part);
  if (kind.cross) cross(all, part);
  if (kind.mixer == Mixer::mamba) mamba(it, part);
  if (kind.feed_forward != FeedForward::none) {
    if (!model_.spec().parallel_block) memory(part, tokens * real(model_.spec().hidden), 2);
    if (kind.feed_forward == FeedForward::dense)
      dense(tokens, real(model_.spec().intermediate) / tp_, part);
    const bool travels = kind.feed_forward == FeedForward::experts && ep_ * etp_ > tp_;
    if (kind.feed_forward == FeedForward::experts) experts(tokens, part);
    if (!travels || model_.spec().experts->shared_size > 0) reduce(part, tokens);
  }
  part.compute = std::max(part.compute, part.kernels * kernels_.launch());
  return part;
}

InferencePasses::Part InferencePasses::embedding(double tokens) const {
  Part part;
  if (tokens <= 0) return part;
  memory(part, tokens * real(model_.spec().hidden), 2);
  reduce(part, tokens);
  return part;
}

// Where tokens come in and where the next ones go out. A decoder behind an encoder comes after a norm of what that made.
InferencePasses::Part InferencePasses::ends(const Stage& stage, const Iteration& it) const {
  Part part;
  const double encoded = model_.has_encoder() ? it.prompt_tokens : 0;
  const double decoded = it.started + it.prompt_tokens + it.decodes - encoded;
  if (stage.embedding) part.add(embedding(model_.has_encoder() ? encoded : decoded), 1);
  if (stage.joins) {
    memory(part, encoded * real(model_.spec().hidden), 2);
    part.add(embedding(decoded), 1);
  }
  if (stage.loss) part.add(logits(it), 1);
  return part;
}

InferencePasses::Part InferencePasses::logits(const Iteration& it) const {
  Part part;
  const double rows = it.first_tokens + it.decodes;
  if (rows <= 0) return part;
  const LlmSpec& m = model_.spec();
  memory(part, rows * real(m.hidden), 2);
  part.compute += kernels_.gemm({.m = rows,
                                 .n = real(m.vocabulary) / tp_,
                                 .k = real(m.hidden),
                                 .precision = exact_,
                                 .output_bytes = bytes_,
                                 .splits = true});
  part.kernels += 1;
  if (tp_ > 1)
    part.tp += comms_.collective(Dimension::tp, CollectiveKind::all_gather,
                                 rows * real(m.vocabulary) * bytes_);
  memory(part, rows * real(m.vocabulary), 3);  // sampling
  part.compute = std::max(part.compute, part.kernels * kernels_.launch());
  return part;
}

IterationTime InferencePasses::operator()(const Iteration& it) const {
  IterationTime out;
  out.stages.reserve(stages_.size());
  const double tokens = it.prompt_tokens + it.decodes;
  if (tokens <= 0) {
    out.stages.assign(stages_.size(), 0);
    return out;
  }
  std::vector<Part> kinds;
  kinds.reserve(kinds_.size());
  for (const LayerKind& kind : kinds_) kinds.push_back(layer(kind, it));
  const double vector = real(model_.spec().hidden) * bytes_;
  const double decoded = it.started + it.decodes;
  for (std::size_t s = 0; s < stages_.size(); ++s) {
    Part part;
    for (const LayerCount& layers : stages_[s].layers) {
      const auto known = std::ranges::find(kinds_, layers.kind) - kinds_.begin();
      part.add(kinds[static_cast<std::size_t>(known)], real(layers.count));
    }
    part.add(ends(stages_[s], it), 1);
    const double sent = (it.prompt_tokens + (stages_[s].decodes ? decoded : 0)) * vector;
    double send = 0;
    if (s + 1 < stages_.size()) {  // each rank its part, put together behind
      send = comms_.send(s, sent / tp_);
      if (tp_ > 1) send += comms_.collective(Dimension::tp, CollectiveKind::all_gather, sent);
    }
    out.compute += part.compute;
    out.tp += part.tp;
    out.ep += part.ep;
    out.pp += send;
    out.stages.push_back(part.compute + part.tp + part.ep + send);
  }
  return out;
}

}  // namespace weft
