// SPDX-License-Identifier: Apache-2.0
#include "models/llm/inference_memory.hpp"

#include <algorithm>

#include "models/llm/memory.hpp"

namespace weft {
InferenceMemory::InferenceMemory(const Architecture& model, const InferenceSpec& spec,
                                 const StageLayout& layout) {
  const LlmSpec& m = model.spec();
  const double tp = real(spec.plan.tp);
  const double etp = real(spec.plan.expert_tp());
  const double kv_heads = std::max(1.0, real(model.kv_heads()) / tp);
  // Of one layer, elements.
  const double copied = m.latent ? 0
                                 : (kv_heads - real(model.kv_heads()) / tp) * real(m.hidden) *
                                       real(model.head_dim() + model.value_dim());
  const double cached = m.latent ? real(m.latent->kv_rank + m.latent->rope_dim)
                                 : kv_heads * real(model.head_dim() + model.value_dim());
  double state = 0;
  if (m.mamba) {
    const double inner = real(m.mamba->heads * m.mamba->head_dim);
    const double mixed = inner + 2 * real(m.mamba->groups * m.mamba->state);
    state = (inner * real(m.mamba->state) + mixed * real(m.mamba->convolution - 1)) / tp;
  }
  window_ = real(m.window.value_or(0));
  const double kv = bytes_of(spec.kv_precision());
  double most = -1;
  for (const std::vector<Chunk>& chunks : layout) {
    double weights = 0, full = 0, windowed = 0, states = 0;
    bool looks_up = false;
    for (const Chunk& chunk : chunks) {
      looks_up = looks_up || chunk.embedding || chunk.joins || (chunk.loss && m.tied);
      if (chunk.loss) weights += model.output() / tp;
      for (std::int64_t l = chunk.first; l < chunk.first + chunk.count; ++l) {
        const LayerKind kind = model.layer(l);
        weights += layer_parameters(model, spec.plan, kind).total();
        if (kind.mixer == Mixer::attention) {
          weights += copied * (kind.cross ? 2 : 1);
          if (!kind.encoder) (kind.windowed ? windowed : full) += cached;
        }
        if (kind.mixer == Mixer::mamba) states += state;
      }
    }
    if (looks_up) weights += model.embedding() / tp;  // a tied output is the same matrix
    weights_ = std::max(weights_, weights * bytes_of(spec.dtype.param));
    if (full + windowed + states <= most) continue;
    most = full + windowed + states;
    full_ = full * kv;
    windowed_ = windowed * kv;
    state_ = states * kv;
  }
  const double inputs = real(model.spec().mlp_inputs());
  const double chosen = m.experts ? real(m.experts->top_k * m.experts->size) / etp : 0;
  const double widest =
      std::max({inputs * real(m.intermediate) / tp, inputs * chosen,
                real(m.heads * model.head_dim()) / tp + 2 * kv_heads * real(model.head_dim())});
  const double tokens = spec.serving.chunk
                            ? real(*spec.serving.chunk)
                            : std::max(real(kWholePrompts), real(spec.requests.prompt));
  workspace_ = tokens * (2 * real(m.hidden) + widest) * 2 +
               real(spec.serving.max_batch) * real(m.vocabulary) / tp * 4;
}

double InferenceMemory::cache(double tokens) const {
  const double within = window_ > 0 ? std::min(tokens, window_) : tokens;
  return full_ * tokens + windowed_ * within + state_;
}

std::int64_t InferenceMemory::tokens_in(double bytes, double typical) const {
  const double each = cache(typical) / typical;
  if (bytes <= 0) return 0;
  if (each <= 0) return std::int64_t{1} << 40;
  return static_cast<std::int64_t>(std::min(bytes / each, 1e12));
}

}  // namespace weft
