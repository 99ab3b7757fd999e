// SPDX-License-Identifier: Apache-2.0
#include "sim/run/llm_hf.hpp"

#include <initializer_list>
#include <optional>
#include <string_view>

#include <fmt/format.h>

namespace weft {
namespace {

using Keys = std::initializer_list<std::string_view>;

constexpr std::int64_t kMost =
    100'000'000;  // of any count in the file: products of three stay below 2^80

class HfConfig {
 public:
  HfConfig(const Json& json, const std::string& pointer, Diagnostics& out)
      : json_(json), pointer_(pointer), out_(out) {}

  // The first of `keys` that is there; null counts as absent.
  std::optional<std::int64_t> find(Keys keys) const {
    for (const std::string_view key : keys) {
      const Json* value = json_.find(key);
      if (value == nullptr || value->kind == Json::Kind::null) continue;
      if (value->kind == Json::Kind::integer && value->integer >= 0 && value->integer <= kMost)
        return value->integer;
      out_.error(value->place, pointer_ + "/" + std::string(key),
                 fmt::format("{} is no count from 0 to {}", key, kMost));
      return std::nullopt;
    }
    return std::nullopt;
  }
  std::int64_t count(Keys keys) const { return find(keys).value_or(0); }
  std::int64_t required(Keys keys) const {
    const std::size_t before = out_.error_count();
    const auto value = find(keys);
    if (value && *value > 0) return *value;
    if (out_.error_count() == before)
      out_.error(json_.place, pointer_,
                 fmt::format("the key \"{}\" is missing or 0", *keys.begin()),
                 "give the config.json of a language model with a decoder");
    return 1;
  }
  bool flag(std::string_view key, bool otherwise = false) const {
    const Json* value = json_.find(key);
    return value != nullptr && value->kind == Json::Kind::boolean ? value->boolean : otherwise;
  }
  std::string text(std::string_view key) const {
    const Json* value = json_.find(key);
    return value != nullptr && value->is_string() ? value->text : std::string{};
  }
  const Json* find_json(std::string_view key) const { return json_.find(key); }
  HfConfig inner(std::string_view key) const {
    static const Json kNone = Json::object();
    const Json* value = json_.find(key);
    return {value != nullptr ? *value : kNone, pointer_, out_};
  }

 private:
  const Json& json_;
  const std::string& pointer_;
  Diagnostics& out_;
};

// ---- what families share

void read_decoder(const HfConfig& c, LlmSpec& m) {
  m.layers = c.required({"num_hidden_layers", "n_layer", "n_layers"});
  m.hidden = c.required({"hidden_size", "n_embd", "d_model", "n_embed"});
  m.heads = c.required({"num_attention_heads", "n_head", "n_heads"});
  m.vocabulary = c.required({"vocab_size"});
  m.context = c.find({"max_position_embeddings", "n_positions", "max_seq_len", "seq_length"});
  if (m.context == 0) m.context.reset();
  m.tied = c.flag("tie_word_embeddings");
}

void read_grouped_heads(const HfConfig& c, LlmSpec& m) {
  m.kv_heads = c.find({"num_key_value_heads"});
  m.head_dim = c.find({"head_dim"});
  m.qkv_bias = m.output_bias = c.flag("attention_bias");
}

void read_window(const HfConfig& c, LlmSpec& m) {
  m.window = c.find({"sliding_window"});
  if (m.window == 0) m.window.reset();
}

void read_experts(const HfConfig& c, LlmSpec& m, Keys count, Keys size) {
  m.experts.emplace();
  m.experts->count = c.required(count);
  m.experts->top_k = c.required({"num_experts_per_tok", "experts_per_token"});
  m.experts->size = c.required(size);
}

// ---- families

void read_llama(const HfConfig& c, LlmSpec& m) {
  read_decoder(c, m);
  read_grouped_heads(c, m);
  m.intermediate = c.required({"intermediate_size"});
  m.mlp_bias = c.flag("mlp_bias");
}

void read_mistral(const HfConfig& c, LlmSpec& m) {
  read_llama(c, m);
  read_window(c, m);
}

void read_mixtral(const HfConfig& c, LlmSpec& m) {
  read_mistral(c, m);
  read_experts(c, m, {"num_local_experts"}, {"intermediate_size"});
}

void read_qwen2(const HfConfig& c, LlmSpec& m) {
  read_llama(c, m);
  m.qkv_bias = true;
}

void read_qwen2_moe(const HfConfig& c, LlmSpec& m) {
  read_qwen2(c, m);
  read_experts(c, m, {"num_experts"}, {"moe_intermediate_size"});
  m.experts->shared_size = c.required({"shared_expert_intermediate_size"});
  m.experts->shared_gate = true;
  m.experts->step = c.find({"decoder_sparse_step"}).value_or(1);
}

void read_qwen3(const HfConfig& c, LlmSpec& m) {
  read_llama(c, m);
  m.head_norms = true;
}

void read_qwen3_moe(const HfConfig& c, LlmSpec& m) {
  read_qwen3(c, m);
  read_experts(c, m, {"num_experts"}, {"moe_intermediate_size"});
  m.experts->step = c.find({"decoder_sparse_step"}).value_or(1);
}

void read_deepseek(const HfConfig& c, LlmSpec& m) {
  read_decoder(c, m);
  m.intermediate = c.required({"intermediate_size"});
  m.prediction_layers = c.count({"num_nextn_predict_layers"});
  m.latent = LatentAttention{.q_rank = c.count({"q_lora_rank"}),
                             .kv_rank = c.required({"kv_lora_rank"}),
                             .rope_dim = c.count({"qk_rope_head_dim"}),
                             .nope_dim = c.required({"qk_nope_head_dim"}),
                             .value_dim = c.required({"v_head_dim"})};
  if (c.count({"n_routed_experts"}) == 0) return;
  read_experts(c, m, {"n_routed_experts"}, {"moe_intermediate_size"});
  m.experts->shared_size = c.count({"n_shared_experts"}) * m.experts->size;
  m.experts->dense_layers = c.count({"first_k_dense_replace"});
}

void read_deepseek_v3(const HfConfig& c, LlmSpec& m) {
  read_deepseek(c, m);
  if (m.experts) m.experts->routing_bias = true;
}

void read_gpt_oss(const HfConfig& c, LlmSpec& m) {
  read_decoder(c, m);
  read_grouped_heads(c, m);
  read_window(c, m);
  m.qkv_bias = m.output_bias = m.mlp_bias = m.sinks = true;
  m.window_every = 2;
  read_experts(c, m, {"num_local_experts", "num_experts"}, {"intermediate_size"});
  m.experts->routing_bias = true;
}

void read_biased(const HfConfig& c, LlmSpec& m) {
  read_decoder(c, m);
  m.mlp = MlpKind::plain;
  m.intermediate = c.find({"n_inner"}).value_or(4 * m.hidden);
  m.qkv_bias = m.output_bias = m.mlp_bias = m.norm_bias = true;
  m.tied = c.flag("tie_word_embeddings", true);
}

void read_gpt2(const HfConfig& c, LlmSpec& m) {
  read_biased(c, m);
  m.positions = Positions::learned;
}

void read_bloom(const HfConfig& c, LlmSpec& m) {
  read_biased(c, m);
  m.positions = Positions::alibi;
  m.embedding_norm = true;
}

void read_bert(const HfConfig& c, LlmSpec& m) {
  read_decoder(c, m);
  m.mlp = MlpKind::plain;
  m.intermediate = c.required({"intermediate_size"});
  m.positions = Positions::learned;
  m.tied = m.masked = m.embedding_norm = true;
  m.qkv_bias = m.output_bias = m.mlp_bias = m.norm_bias = true;
}

void read_mpt(const HfConfig& c, LlmSpec& m) {
  read_biased(c, m);
  const HfConfig attention = c.inner("attn_config");
  m.intermediate = c.find({"expansion_ratio"}).value_or(4) * m.hidden;
  m.kv_heads = attention.find({"kv_n_heads"});
  const bool biases = !c.flag("no_bias");
  m.qkv_bias = m.output_bias = m.mlp_bias = m.norm_bias = biases;
  m.positions = attention.flag("alibi")           ? Positions::alibi
                : attention.flag("rope")          ? Positions::rotary
                : c.flag("learned_pos_emb", true) ? Positions::learned
                                                  : Positions::none;
}

void read_nemotron(const HfConfig& c, LlmSpec& m) {
  read_llama(c, m);
  m.mlp = MlpKind::plain;
  m.norm_bias = true;
}

void read_nemotron_h(const HfConfig& c, LlmSpec& m) {
  read_decoder(c, m);
  read_grouped_heads(c, m);
  if (!m.head_dim) m.head_dim = c.find({"attention_head_dim"});
  m.intermediate = c.count({"intermediate_size"});
  m.mlp = MlpKind::plain;
  m.mlp_bias = c.flag("mlp_bias");
  m.positions = Positions::none;
  m.pattern = c.text("hybrid_override_pattern");
  m.prediction_layers = c.count({"num_nextn_predict_layers"});
  m.prediction_pattern = c.text("mtp_hybrid_override_pattern");
  m.mamba = MambaSpec{.heads = c.required({"mamba_num_heads"}),
                      .head_dim = c.required({"mamba_head_dim"}),
                      .groups = c.required({"n_groups"}),
                      .state = c.required({"ssm_state_size"}),
                      .convolution = c.required({"conv_kernel"})};
  if (m.pattern.find('E') == std::string::npos) return;
  read_experts(c, m, {"n_routed_experts"}, {"moe_intermediate_size"});
  m.experts->shared_size =
      c.find({"moe_shared_expert_intermediate_size"}).value_or(m.experts->size) *
      c.count({"n_shared_experts"});
  m.experts->latent_size = c.count({"moe_latent_size"});
  m.experts->routing_bias = true;
}

// The text part of a model that also sees.
void read_llama4(const HfConfig& c, LlmSpec& m) {
  const HfConfig text = c.find_json("text_config") != nullptr ? c.inner("text_config") : c;
  read_decoder(text, m);
  read_grouped_heads(text, m);
  m.window = text.find({"attention_chunk_size"});
  m.window_every = 4;
  m.intermediate = text.required({"intermediate_size_mlp"});
  read_experts(text, m, {"num_local_experts"}, {"intermediate_size"});
  m.experts->shared_size = m.experts->size;
  m.experts->step = text.find({"interleave_moe_layer_step"}).value_or(1);
}

struct Family {
  std::string_view type, architecture;
  void (*read)(const HfConfig&, LlmSpec&);
};
constexpr Family kFamilies[] = {{"llama", "LlamaForCausalLM", read_llama},
                                {"mistral", "MistralForCausalLM", read_mistral},
                                {"mixtral", "MixtralForCausalLM", read_mixtral},
                                {"qwen2", "Qwen2ForCausalLM", read_qwen2},
                                {"qwen2_moe", "Qwen2MoeForCausalLM", read_qwen2_moe},
                                {"qwen3", "Qwen3ForCausalLM", read_qwen3},
                                {"qwen3_moe", "Qwen3MoeForCausalLM", read_qwen3_moe},
                                {"deepseek_v2", "DeepseekV2ForCausalLM", read_deepseek},
                                {"deepseek_v3", "DeepseekV3ForCausalLM", read_deepseek_v3},
                                {"gpt_oss", "GptOssForCausalLM", read_gpt_oss},
                                {"gpt2", "GPT2LMHeadModel", read_gpt2},
                                {"bloom", "BloomForCausalLM", read_bloom},
                                {"mpt", "MPTForCausalLM", read_mpt},
                                {"bert", "BertForMaskedLM", read_bert},
                                {"bert", "BertForPreTraining", read_bert},
                                {"nemotron", "NemotronForCausalLM", read_nemotron},
                                {"nemotron_h", "NemotronHForCausalLM", read_nemotron_h},
                                {"llama4", "Llama4ForConditionalGeneration", read_llama4},
                                {"llama4_text", "Llama4ForCausalLM", read_llama4}};

// What the file calls itself: its model_type, else its first architecture.
std::string type_of(const Json& document) {
  if (const Json* type = document.find("model_type"); type != nullptr && type->is_string())
    return type->text;
  const Json* names = document.find("architectures");
  if (names == nullptr || names->items.empty()) return {};
  return names->items.front().text;
}

const Family* family_of(const Json& document) {
  const std::string type = type_of(document);
  for (const Family& family : kFamilies) {
    if (type == family.type || type == family.architecture) return &family;
  }
  return nullptr;
}

bool holds(const Json& document, std::string_view key) {
  const Json* value = document.find(key);
  if (value == nullptr) return false;
  return value->kind == Json::Kind::boolean ? value->boolean : !value->items.empty();
}

}  // namespace

bool is_hf_config(const Json& document) {
  return document.find("model_type") != nullptr || document.find("architectures") != nullptr;
}

std::string unknown_in_hf_config(const Json& document) {
  const std::string type = type_of(document);
  const Family* family = family_of(document);
  if (family == nullptr) return fmt::format("the layers of \"{}\" are not known here", type);
  const Json* step = document.find("moe_layer_freq");
  const bool every = step == nullptr || !step->is_number() || step->integer == 1;
  if (!every || holds(document, "mlp_only_layers")) return "dense and expert layers alternate";
  if (holds(document, "use_sliding_window")) return "some of its layers have a window";
  if (type.starts_with("deepseek") && holds(document, "attention_bias"))
    return "its latent attention has biases";
  return {};
}

LlmSpec read_hf_config(const Json& document, const std::string& pointer, Diagnostics& out) {
  LlmSpec spec;
  spec.kind = "llm";
  spec.place = document.place;
  spec.pointer = pointer;
  if (const std::string unknown = unknown_in_hf_config(document); !unknown.empty()) {
    std::string known;
    for (const Family& family : kFamilies)
      known += (known.empty() ? "" : ", ") + std::string(family.type);
    const Json* type = document.find("model_type");
    out.error(type != nullptr ? type->place : document.place, pointer + "/model_type", unknown,
              "known: " + known + "; or describe the model as kind llm, see configs/llms");
    return spec;
  }
  family_of(document)->read(HfConfig(document, pointer, out), spec);
  spec.summary = type_of(document) + ", from its config.json";
  spec.sources[""] = "datasheet: config.json of the model";
  return spec;
}

}  // namespace weft
