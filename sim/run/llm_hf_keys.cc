// SPDX-License-Identifier: Apache-2.0
#include "sim/run/llm_hf_keys.hpp"

#include <algorithm>
#include <array>

#include <fmt/format.h>

namespace weft {
namespace {

// null, false, 0, "", an empty list or object.
bool is_off(const Json& value) {
  switch (value.kind) {
    case Json::Kind::null:
      return true;
    case Json::Kind::boolean:
      return !value.boolean;
    case Json::Kind::integer:
    case Json::Kind::number:
      return value.number == 0;
    case Json::Kind::string:
      return value.text.empty();
    default:
      return value.items.empty() && value.members.empty();
  }
}

bool is_none(const Json& value) {
  return is_off(value) || (value.kind == Json::Kind::integer && value.integer < 0);
}
bool is_on(const Json& value) { return value.kind == Json::Kind::null || !is_off(value); }
bool is_one(const Json& value) {
  return value.kind == Json::Kind::null || (value.is_number() && value.number == 1);
}
bool is_absolute(const Json& value) {
  return value.kind == Json::Kind::null || value.text == "absolute";
}
bool is_plain_mlp(const Json& value) { return value.text == "mptmlp"; }
bool is_layer_norm(const Json& value) {
  return value.text.ends_with("layernorm") || value.text == "layer_norm";
}
bool is_default(const Json& value) { return value.text == "default"; }

// ---- keys that are legal with one value alone

struct Rule {
  std::string_view types;  // between blanks; empty: every family
  std::string_view inner;  // object that the key is in
  std::string_view key;
  bool (*legal)(const Json&);
  std::string_view fact;
};
constexpr std::string_view kBert = " bert roberta xlm-roberta camembert distilbert ",
                           kMpt = " mpt ", kT5 = " t5 mt5 umt5 ", kHybrid = " nemotron_h ",
                           kDeepseek = " deepseek_v2 deepseek_v3 kimi_k2 ",
                           kGemma = " gemma gemma2 gemma3 gemma3_text ",
                           kCohere = " cohere cohere2 ", kCohere2 = " cohere2 ", kOpt = " opt ",
                           kStarcoder = " starcoder2 ";
constexpr Rule kRules[] = {
    {"", "", "add_cross_attention", is_off, "its layers also attend to an encoder's output"},
    {"", "", "tie_encoder_decoder", is_off, "encoder and decoder share their weights"},
    {"", "", "pruned_heads", is_off, "some of its heads are gone"},
    {"", "", "mlp_only_layers", is_off, "dense and expert layers alternate"},
    {"", "", "moe_layer_freq", is_one, "dense and expert layers alternate"},
    {"", "", "use_sliding_window", is_off, "some of its layers have a window"},
    {kT5, "", "is_encoder_decoder", is_on, "it is an encoder alone"},
    {kT5, "", "is_decoder", is_off, "it is a decoder alone"},
    {kBert, "", "is_decoder", is_off, "it sees the words before a gap alone"},
    {kBert, "", "position_embedding_type", is_absolute, "positions are not one per place"},
    {kMpt, "attn_config", "qk_ln", is_off, "queries and keys have norms"},
    {kMpt, "attn_config", "qk_gn", is_off, "queries and keys have norms"},
    {kMpt, "attn_config", "prefix_lm", is_off, "a part of its sequence is seen from both sides"},
    {kMpt, "attn_config", "sliding_window_size", is_none, "its layers have a window"},
    {kMpt, "ffn_config", "ffn_type", is_plain_mlp, "its MLP is not two matrices"},
    {kMpt, "", "norm_type", is_layer_norm, "its norms have no shift"},
    {kMpt, "", "block_overrides", is_off, "its layers differ"},
    {kStarcoder, "", "norm_type", is_layer_norm, "its norms have no shift"},
    {kStarcoder, "", "mlp_type", is_default, "its MLP is not two matrices"},
    {kHybrid, "", "use_bias", is_off, "its state space layers have biases"},
    {kHybrid, "", "mamba_proj_bias", is_off, "its state space layers have biases"},
    {kHybrid, "", "use_conv_bias", is_on, "its convolutions have no bias"},
    {kHybrid, "", "sliding_window", is_off, "its attention has a window"},
    {kDeepseek, "", "attention_bias", is_off, "its latent attention has biases"},
    {kGemma, "", "use_bidirectional_attention", is_off, "it sees what comes after a token too"},
    {kCohere, "", "use_qk_norm", is_off, "every head has a norm of its own"},
    {kCohere2, "", "use_gated_activation", is_on, "its MLP has no gate"},
    {kCohere2, "", "use_parallel_block", is_on, "its MLP stands behind attention"},
    {kOpt, "", "do_layer_norm_before", is_on, "its norms stand behind attention and MLP"},
    {kOpt, "", "_remove_final_layer_norm", is_off, "the last norm is missing"},
    {kOpt, "", "layer_norm_elementwise_affine", is_on, "its norms have no scale"},
    {"", "", "lm_head_bias", is_off, "the output has a bias"}};

bool holds_for(std::string_view types, std::string_view type) {
  return types.empty() || types.find(fmt::format(" {} ", type)) != std::string_view::npos;
}

// Functions of one number, whose cost is the same. Others take part in the shape of an MLP (gates).
constexpr std::string_view kActivations[] = {
    "gelu",  "gelu_new", "gelu_fast", "gelu_python", "gelu_pytorch_tanh", "quick_gelu", "relu",
    "relu2", "silu",     "swish",     "tanh",        "sigmoid",           "mish",       "gelu_10"};
constexpr std::string_view kActivationKeys[] = {
    "hidden_act", "activation_function", "hidden_activation", "mlp_hidden_act", "activation"};
constexpr std::string_view kLayerTypes[] = {"full_attention", "sliding_attention",
                                            "chunked_attention"};
// Ends of the names of what predicts tokens; everything else with "For" in it has another output.
constexpr std::string_view kHeads[] = {"ForCausalLM", "ForMaskedLM", "ForPreTraining",
                                       "ForConditionalGeneration"};

template <std::size_t n>
bool is_among(const std::string_view (&list)[n], std::string_view text) {
  return std::ranges::find(list, text) != std::end(list);
}

class Contradictions {
 public:
  Contradictions(const Json& document, std::string_view type)
      : document_(document),
        layers_(hf_layers(document)),
        pointer_(hf_layers_pointer(document)),
        type_(type) {}

  std::vector<HfProblem> find() {
    architecture();
    for (const Rule& rule : kRules) check(rule);
    if (!holds_for(kT5, type_)) {
      check({"", "", "is_encoder_decoder", is_off, "an encoder stands before its decoder"});
      activations();
    }
    layer_types();
    return std::move(out_);
  }

 private:
  void add(const Json& value, std::string pointer, std::string fact, std::string cure = {}) {
    if (cure.empty())
      cure =
          "only a config.json without it can be counted; or describe the model as kind llm, see "
          "configs/llms";
    out_.push_back({value.place, std::move(pointer), std::move(fact), std::move(cure)});
  }

  void check(const Rule& rule) {
    if (!holds_for(rule.types, type_)) return;
    const Json* object = rule.inner.empty() ? &layers_ : layers_.find(rule.inner);
    const Json* value = object == nullptr ? nullptr : object->find(rule.key);
    if (value == nullptr || rule.legal(*value)) return;
    const std::string inner = rule.inner.empty() ? "" : fmt::format("/{}", rule.inner);
    add(*value, fmt::format("{}{}/{}", pointer_, inner, rule.key), std::string(rule.fact));
  }

  void architecture() {
    const Json* names = document_.find("architectures");
    if (names == nullptr || names->items.empty() || !names->items.front().is_string()) return;
    const std::string_view name = names->items.front().text;
    const bool predicts =
        std::ranges::any_of(kHeads, [&](std::string_view head) { return name.ends_with(head); });
    const bool other =
        (name.find("For") != std::string_view::npos && !predicts) ||
        (holds_for(kBert, type_) && (name.ends_with("Model") || name.ends_with("Embeddings")));
    if (other || name.ends_with("EncoderModel"))
      add(names->items.front(), "/architectures/0",
          other ? fmt::format("the output of \"{}\" predicts no tokens", name)
                : "it is an encoder alone",
          "give the config.json of the language model that it was made from");
  }

  void activations() {
    for (const std::string_view key : kActivationKeys) {
      const Json* value = layers_.find(key);
      if (value == nullptr || is_off(*value)) continue;
      if (value->is_string() && is_among(kActivations, value->text)) continue;
      std::string known;
      for (const std::string_view name : kActivations)
        known += fmt::format("{}{}", known.empty() ? "" : ", ", name);
      add(*value, fmt::format("{}/{}", pointer_, key),
          "whether this activation function has a gate is not known", "known: " + known);
    }
  }

  void layer_types() {
    const Json* list = layers_.find("layer_types");
    if (list == nullptr || holds_for(kHybrid, type_)) return;
    for (std::size_t i = 0; i < list->items.size(); ++i) {
      const Json& item = list->items[i];
      if (item.is_string() && is_among(kLayerTypes, item.text)) continue;
      add(item, fmt::format("{}/layer_types/{}", pointer_, i), "a layer that is not known here",
          "known: full_attention, sliding_attention, chunked_attention");
      return;
    }
  }

  const Json& document_;
  const Json& layers_;
  std::string_view pointer_, type_;
  std::vector<HfProblem> out_;
};

// ---- keys that change nothing that is counted

constexpr std::string_view kIdleEnds[] = {"_token_id", "_token_index", "_pdrop",      "_eps",
                                          "_coef",     "_penalty",     "_ngram_size", "_version"};
constexpr std::string_view kIdleParts[] = {"dropout",     "rope",      "rotary", "epsilon",
                                           "initializer", "time_step", "pooler", "summary_"};
constexpr std::string_view kIdle[] = {
    // about the file and how it is run
    "_attn_implementation_autoset", "_name_or_path", "architectures", "attn_implementation",
    "auto_map", "cache_implementation", "dtype", "finetuning_task", "for_llm_compressor",
    "gradient_checkpointing", "id2label", "init_config", "init_device", "label2id", "model_type",
    "name_or_path", "pretraining_tp", "problem_type", "quantization_config", "return_dict",
    "task_specific_params", "tf_legacy_loss", "tie_weights_", "tokenizer_class", "tokenizer_name",
    "torch_dtype", "torchscript", "use_bfloat16", "use_cache", "verbose",
    // answers
    "bad_words_ids", "begin_suppress_tokens", "do_sample", "early_stopping", "max_length",
    "min_length", "num_beam_groups", "num_beams", "num_logits_to_keep", "num_return_sequences",
    "output_attentions", "output_hidden_states", "output_past", "output_router_logits",
    "output_scores", "prefix", "remove_invalid_values", "return_dict_in_generate",
    "suppress_tokens", "temperature", "top_k", "top_p", "typical_p",
    // numbers within a layer: scales, limits, precisions, how experts are chosen
    "attention_multiplier", "attn_logit_softcapping", "embedding_multiplier",
    "final_logit_softcapping", "logits_scaling", "query_pre_attn_scalar", "residual_multiplier",
    "full_attn_mod", "interpolate_factor", "layerdrop", "order_of_interleaved_layers",
    "original_max_position_embeddings", "position_embedding_type", "use_embedding_sharing",
    "use_parallel_embedding", "apply_residual_connection_post_layernorm",
    "attention_softmax_in_fp32", "attn_scale", "attn_temperature_tuning", "aux_loss_alpha",
    "bias_dropout_fusion", "chunk_size", "chunk_size_feed_forward", "cross_attention_hidden_size",
    "directionality", "embedding_fraction", "expand", "fc_type", "floor_scale",
    "initial_context_length", "layer_norm_eps", "logit_scale", "mamba_hidden_act",
    "mamba_ssm_cache_dtype", "masked_softmax_fusion", "moe_shared_expert_overlap", "n_group",
    "norm_topk_prob", "offset_alibi", "relative_attention_max_distance", "reorder_and_upcast_attn",
    "rescale_prenorm_residual", "residual_in_fp32", "router_jitter_noise", "routed_scaling_factor",
    "scalable_attention", "scale_attn_by_inverse_layer_idx", "scale_attn_weights", "scoring_func",
    "seq_aux", "sinusoidal_pos_embds", "skip_bias_add", "skip_bias_add_qkv", "slow_but_exact",
    "swiglu_limit", "topk_group", "topk_method", "use_mamba_kernels", "use_pad_tok_in_ffn",
    "use_qk_norm",
    // said again, or checked, elsewhere
    "dense_act_fn", "ep_size", "is_gated_act", "layer_types", "max_window_layers", "n_ctx",
    "no_rope_layer_interval", "no_rope_layers", "n_positions", "unk_index"};

bool is_idle(std::string_view key) {
  return is_among(kIdle, key) || is_among(kActivationKeys, key) ||
         std::ranges::any_of(kIdleEnds, [&](std::string_view end) { return key.ends_with(end); }) ||
         std::ranges::any_of(kIdleParts, [&](std::string_view part) {
           return key.find(part) != std::string_view::npos;
         });
}

bool has_rule(std::string_view key, std::string_view type) {
  return key == "is_encoder_decoder" || std::ranges::any_of(kRules, [&](const Rule& rule) {
           return (rule.inner.empty() ? rule.key : rule.inner) == key &&
                  holds_for(rule.types, type);
         });
}

}  // namespace

std::string hf_type(const Json& document) {
  if (const Json* type = document.find("model_type"); type != nullptr && type->is_string())
    return type->text;
  const Json* names = document.find("architectures");
  if (names == nullptr || names->items.empty()) return {};
  return names->items.front().text;
}

const Json& hf_layers(const Json& document) {
  const std::string type = hf_type(document);
  const bool sees = type.starts_with("llama4") || type.starts_with("Llama4") || type == "gemma3" ||
                    type == "Gemma3ForConditionalGeneration";
  const Json* text = sees ? document.find("text_config") : nullptr;
  return text != nullptr && text->is_object() ? *text : document;
}

std::string_view hf_layers_pointer(const Json& document) {
  return &hf_layers(document) == &document ? "" : "/text_config";
}

bool is_hf_activation(std::string_view name) { return is_among(kActivations, name); }

std::vector<HfProblem> hf_contradictions(const Json& document, std::string_view type) {
  return Contradictions(document, type).find();
}

HfProblem hf_problem(const Json& document, std::string_view key) {
  struct Alias {
    std::string_view own, theirs;
  };
  constexpr Alias kAliases[] = {{"kv_heads", "num_key_value_heads"},
                                {"kv_heads", "num_kv_heads"},
                                {"kv_heads", "n_head_kv"},
                                {"head_dim", "head_dim"},
                                {"head_dim", "attention_head_dim"},
                                {"layers", "num_decoder_layers"},
                                {"intermediate", "n_inner"},
                                {"intermediate", "ffn_hidden_size"},
                                {"context", "max_position_embeddings"},
                                {"window", "sliding_window"},
                                {"window_every", "sliding_window_pattern"},
                                {"window_every", "_sliding_window_pattern"},
                                {"prediction_layers", "num_nextn_predict_layers"},
                                {"position_buckets", "relative_attention_num_buckets"},
                                {"segments", "type_vocab_size"},
                                {"step", "decoder_sparse_step"},
                                {"step", "interleave_moe_layer_step"},
                                {"dense_layers", "first_k_dense_replace"},
                                {"heads", "num_attention_heads"},
                                {"heads", "n_head"},
                                {"heads", "n_heads"},
                                {"heads", "num_heads"},
                                {"experts", "num_experts_per_tok"},
                                {"experts", "experts_per_token"},
                                {"pattern", "hybrid_override_pattern"},
                                {"prediction_pattern", "mtp_hybrid_override_pattern"}};
  const Json& layers = hf_layers(document);
  HfProblem out{layers.place,
                std::string(hf_layers_pointer(document)),
                {},
                "compare it with the config.json as it was published"};
  for (const Alias& alias : kAliases) {
    const Json* value = alias.own == key ? layers.find(alias.theirs) : nullptr;
    if (value == nullptr) continue;
    out.place = value->place;
    out.pointer += fmt::format("/{}", alias.theirs);
    break;
  }
  return out;
}

std::vector<const JsonMember*> hf_unread(const Json& document, std::string_view type,
                                         const std::set<std::string, std::less<>>& read) {
  std::vector<const JsonMember*> out;
  for (const JsonMember& member : hf_layers(document).members) {
    if (!read.contains(member.key) && !is_idle(member.key) && !has_rule(member.key, type) &&
        !is_off(member.value))
      out.push_back(&member);
  }
  return out;
}

}  // namespace weft
