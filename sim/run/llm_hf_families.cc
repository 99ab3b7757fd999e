// SPDX-License-Identifier: Apache-2.0
#include "sim/run/llm_hf_families.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "sim/run/llm_hf_keys.hpp"

namespace weft {
namespace {

using Keys = HfConfig::Keys;

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

// All layers have a window but every n-th; `n`: where the file does not say.
void read_window_but_every(const HfConfig& c, LlmSpec& m, std::int64_t n) {
  m.window = c.find({"sliding_window"}).value_or(4096);
  m.window_every = c.find({"sliding_window_pattern", "_sliding_window_pattern"}).value_or(n);
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
  m.qkv_bias = c.flag("qkv_bias", true);
  c.find({"sliding_window"});  // of no meaning without "use_sliding_window"
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
  c.find({"sliding_window"});  // of no meaning without "use_sliding_window"
}

void read_qwen3_moe(const HfConfig& c, LlmSpec& m) {
  read_qwen3(c, m);
  read_experts(c, m, {"num_experts"}, {"moe_intermediate_size"});
  m.experts->step = c.find({"decoder_sparse_step"}).value_or(1);
}

// As DeepSeek-V2 names them: some first layers are dense, some experts take every token.
void read_experts_behind_dense_layers(const HfConfig& c, LlmSpec& m) {
  read_experts(c, m, {"n_routed_experts"}, {"moe_intermediate_size"});
  m.experts->shared_size = c.count({"n_shared_experts"}) * m.experts->size;
  m.experts->dense_layers = c.count({"first_k_dense_replace"});
}

void read_deepseek(const HfConfig& c, LlmSpec& m) {
  read_decoder(c, m);
  m.intermediate = c.required({"intermediate_size"});
  c.count({"num_key_value_heads", "head_dim", "qk_head_dim"});  // of no meaning here
  m.prediction_layers = c.count({"num_nextn_predict_layers"});
  m.latent = LatentAttention{.q_rank = c.count({"q_lora_rank"}),
                             .kv_rank = c.required({"kv_lora_rank"}),
                             .rope_dim = c.count({"qk_rope_head_dim"}),
                             .nope_dim = c.required({"qk_nope_head_dim"}),
                             .value_dim = c.required({"v_head_dim"})};
  if (c.count({"n_routed_experts"}) == 0) return;
  read_experts_behind_dense_layers(c, m);
}

void read_deepseek_v3(const HfConfig& c, LlmSpec& m) {
  read_deepseek(c, m);
  if (m.experts) m.experts->routing_bias = true;
}

void read_gpt_oss(const HfConfig& c, LlmSpec& m) {
  read_decoder(c, m);
  read_grouped_heads(c, m);
  m.qkv_bias = m.output_bias = c.flag("attention_bias", true);
  m.mlp_bias = m.sinks = true;
  m.window = c.required({"sliding_window"});
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
  m.context = c.required({"n_positions", "max_position_embeddings"});
  m.positions = Positions::learned;
}

void read_bloom(const HfConfig& c, LlmSpec& m) {
  read_biased(c, m);
  m.positions = Positions::alibi;
  m.embedding_norm = true;
}

void read_masked(const HfConfig& c, LlmSpec& m) {
  m.mlp = MlpKind::plain;
  m.context = c.required({"max_position_embeddings"});
  m.positions = Positions::learned;
  m.masked = m.embedding_norm = true;
  m.tied = c.flag("tie_word_embeddings", true);
  m.qkv_bias = m.output_bias = m.mlp_bias = m.norm_bias = true;
}

// Its matrix of positions holds what a row of padding and its neighbour take: max_position_embeddings are all rows.
void read_roberta(const HfConfig& c, LlmSpec& m) {
  read_decoder(c, m);
  m.intermediate = c.required({"intermediate_size"});
  read_masked(c, m);
  m.segments = c.find({"type_vocab_size"}).value_or(2);
}

void read_distilbert(const HfConfig& c, LlmSpec& m) {
  m.layers = c.required({"n_layers"});
  m.hidden = c.required({"dim"});
  m.heads = c.required({"n_heads"});
  m.intermediate = c.required({"hidden_dim"});
  m.vocabulary = c.required({"vocab_size"});
  read_masked(c, m);
  m.segments = 0;
}

void read_bert(const HfConfig& c, LlmSpec& m) {
  read_roberta(c, m);
  const Json* names = c.find_json("architectures");
  m.sentence_head = names != nullptr && !names->items.empty() &&
                    names->items.front().text == "BertForPreTraining";
}

void read_mpt(const HfConfig& c, LlmSpec& m) {
  read_biased(c, m);
  const HfConfig attention = c.inner("attn_config");
  m.intermediate = c.find({"expansion_ratio"}).value_or(4) * m.hidden;
  m.kv_heads = attention.find({"kv_n_heads"});
  if (attention.text("attn_type") == "multiquery_attention") m.kv_heads = 1;
  const bool biases = !c.flag("no_bias");
  m.qkv_bias = m.output_bias = m.mlp_bias = m.norm_bias = biases;
  m.positions = attention.flag("alibi")           ? Positions::alibi
                : attention.flag("rope")          ? Positions::rotary
                : c.flag("learned_pos_emb", true) ? Positions::learned
                                                  : Positions::none;
  if (m.positions == Positions::learned) m.context = c.required({"max_seq_len"});
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
  m.mlp = MlpKind::plain;
  m.mlp_bias = c.flag("mlp_bias");
  m.positions = Positions::none;
  m.pattern = c.required_text("hybrid_override_pattern");
  m.prediction_layers = c.count({"num_nextn_predict_layers"});
  m.prediction_pattern = c.text("mtp_hybrid_override_pattern");
  const bool dense = (m.pattern + m.prediction_pattern).find('-') != std::string::npos;
  m.intermediate = dense ? c.required({"intermediate_size"}) : c.count({"intermediate_size"});
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

// A list of the layers with experts must be what the step says.
void check_expert_layers(const HfConfig& c, const LlmSpec& m) {
  const Json* list = c.find_json("moe_layers");
  if (list == nullptr || list->items.empty()) return;
  std::size_t next = 0;
  bool same = true;
  for (std::int64_t i = m.experts->step - 1; i < m.layers;
       i += std::max(m.experts->step, std::int64_t{1}))
    same = same && next < list->items.size() && list->items[next++].integer == i;
  if (!same || next != list->items.size())
    c.error("moe_layers", "not every n-th layer, as \"interleave_moe_layer_step\" says",
            "describe the model as kind llm, see configs/llms");
}

// The text part of a model that also sees.
void read_llama4(const HfConfig& c, LlmSpec& m) {
  read_decoder(c, m);
  read_grouped_heads(c, m);
  m.window = c.find({"attention_chunk_size"});
  if (m.window == 0) m.window.reset();
  if (m.window) m.window_every = 4;
  m.intermediate = c.required({"intermediate_size_mlp"});
  read_experts(c, m, {"num_local_experts"}, {"intermediate_size"});
  m.experts->shared_size = m.experts->size;
  m.experts->step = c.find({"interleave_moe_layer_step"}).value_or(1);
  check_expert_layers(c, m);
}

// Gemma 2 and 3 have norms behind attention and MLP too (arXiv 2408.00118, 2503.19786).
void read_gemma(const HfConfig& c, LlmSpec& m) {
  read_llama(c, m);
  if (!m.head_dim) m.head_dim = 256;
  m.tied = c.flag("tie_word_embeddings", true);
}

void read_gemma2(const HfConfig& c, LlmSpec& m) {
  read_gemma(c, m);
  m.norms = 4;
  m.window = c.find({"sliding_window"}).value_or(4096);
  m.window_every = 2;
}

// A file may leave out what is as in Gemma 3 4B.
void read_gemma3(const HfConfig& c, LlmSpec& m) {
  m.layers = c.required({"num_hidden_layers"});
  m.hidden = c.required({"hidden_size"});
  m.intermediate = c.required({"intermediate_size"});
  m.heads = c.find({"num_attention_heads"}).value_or(8);
  m.kv_heads = c.find({"num_key_value_heads"}).value_or(4);
  m.head_dim = c.find({"head_dim"}).value_or(256);
  m.vocabulary = c.find({"vocab_size"}).value_or(262'208);
  m.context = c.find({"max_position_embeddings"}).value_or(131'072);
  m.qkv_bias = m.output_bias = c.flag("attention_bias");
  m.tied = c.flag("tie_word_embeddings", true);
  m.head_norms = true;
  m.norms = 4;
  read_window_but_every(c, m, 6);
}

// Attention and MLP side by side, each behind a norm of its own.
void read_gpt_neox(const HfConfig& c, LlmSpec& m) {
  read_decoder(c, m);
  m.mlp = MlpKind::plain;
  m.intermediate = c.required({"intermediate_size"});
  m.qkv_bias = m.output_bias = c.flag("attention_bias", true);
  m.mlp_bias = m.norm_bias = true;
  m.parallel_block = c.flag("use_parallel_residual", true);
  if (m.parallel_block) m.norms = 2;
}

void read_falcon(const HfConfig& c, LlmSpec& m) {
  read_decoder(c, m);
  const bool grouped = c.flag("new_decoder_architecture");
  const auto kv_heads = c.find({"num_kv_heads", "n_head_kv"});
  const bool one = c.flag("multi_query", true);  // of no meaning with groups
  if (grouped) {
    m.kv_heads = kv_heads;
  } else if (one) {
    m.kv_heads = 1;
  }
  m.mlp = MlpKind::plain;
  m.intermediate = c.find({"ffn_hidden_size"}).value_or(4 * m.hidden);
  m.qkv_bias = m.output_bias = m.mlp_bias = c.flag("bias");
  m.norm_bias = true;
  m.positions = c.flag("alibi") ? Positions::alibi : Positions::rotary;
  m.tied = c.flag("tie_word_embeddings", true);
  m.parallel_block = c.flag("parallel_attn", true) || grouped;
  const auto norms = c.find({"num_ln_in_parallel_attn"});
  if (m.parallel_block && norms.value_or(grouped ? 2 : 1) == 2) m.norms = 2;
}

// Its matrix of positions has two rows before the first place.
void read_opt(const HfConfig& c, LlmSpec& m) {
  read_decoder(c, m);
  m.context = c.required({"max_position_embeddings"}) + 2;
  m.positions = Positions::learned;
  m.mlp = MlpKind::plain;
  m.intermediate = c.required({"ffn_dim"});
  m.qkv_bias = m.output_bias = m.mlp_bias = c.flag("enable_bias", true);
  m.norm_bias = true;
  m.tied = c.flag("tie_word_embeddings", true);
  if (c.find({"word_embed_proj_dim"}).value_or(m.hidden) != m.hidden)
    c.error("word_embed_proj_dim", "tokens are embedded in fewer numbers than the layers work on",
            "describe a model without it");
}

void read_cohere(const HfConfig& c, LlmSpec& m) {
  read_llama(c, m);
  m.parallel_block = true;
  m.tied = c.flag("tie_word_embeddings", true);
}

void read_cohere2(const HfConfig& c, LlmSpec& m) {
  read_cohere(c, m);
  read_window_but_every(c, m, 4);
}

void read_starcoder2(const HfConfig& c, LlmSpec& m) {
  read_decoder(c, m);
  m.kv_heads = c.find({"num_key_value_heads"});
  m.intermediate = c.required({"intermediate_size"});
  m.mlp = MlpKind::plain;
  m.qkv_bias = m.output_bias = m.mlp_bias = c.flag("use_bias", true);
  m.norm_bias = true;
  m.tied = c.flag("tie_word_embeddings", true);
  read_window(c, m);
}

void read_internlm2(const HfConfig& c, LlmSpec& m) {
  read_llama(c, m);
  m.qkv_bias = m.output_bias = m.mlp_bias = c.flag("bias");
}

void read_glm(const HfConfig& c, LlmSpec& m) {
  read_llama(c, m);
  m.output_bias = false;
}

void read_glm4(const HfConfig& c, LlmSpec& m) {
  read_glm(c, m);
  m.norms = 4;
}

void read_glm4_moe(const HfConfig& c, LlmSpec& m) {
  read_glm(c, m);
  m.head_norms = c.flag("use_qk_norm");
  m.prediction_layers = c.count({"num_nextn_predict_layers"});
  read_experts_behind_dense_layers(c, m);
  m.experts->routing_bias = true;
}

void read_dbrx(const HfConfig& c, LlmSpec& m) {
  read_decoder(c, m);
  m.kv_heads = c.inner("attn_config").find({"kv_n_heads"});
  const HfConfig experts = c.inner("ffn_config");
  m.experts.emplace();
  m.experts->count = experts.required({"moe_num_experts"});
  m.experts->top_k = experts.required({"moe_top_k"});
  m.experts->size = experts.required({"ffn_hidden_size"});
}

// An encoder and a decoder that attends to it (arXiv 1910.10683); 1.1, flan and mT5 have gated MLPs and an output of their own.
void read_t5_layers(const HfConfig& c, LlmSpec& m) {
  m.encoder_layers = c.required({"num_layers"});
  m.layers = c.find({"num_decoder_layers"}).value_or(m.encoder_layers);
  m.hidden = c.required({"d_model"});
  m.heads = c.required({"num_heads"});
  m.head_dim = c.required({"d_kv"});
  m.intermediate = c.required({"d_ff"});
  m.vocabulary = c.required({"vocab_size"});
  m.positions = Positions::relative;
  m.position_buckets = c.find({"relative_attention_num_buckets"}).value_or(32);
}

// `otherwise`: what a file without the key means.
void read_t5_mlp(const HfConfig& c, LlmSpec& m, std::string_view otherwise) {
  constexpr std::string_view kKey = "feed_forward_proj", kGated = "gated-";
  const std::string text = c.text(kKey);
  std::string_view name = text.empty() ? otherwise : text;
  m.mlp = name.starts_with(kGated) ? MlpKind::gated : MlpKind::plain;
  if (name.starts_with(kGated)) name.remove_prefix(kGated.size());
  if (!is_hf_activation(name))
    c.error(kKey, fmt::format("\"{}\" is no MLP that is known here", text),
            "e.g. \"relu\" (two matrices) or \"gated-gelu\" (three)");
}

void read_t5(const HfConfig& c, LlmSpec& m) {
  read_t5_layers(c, m);
  read_t5_mlp(c, m, "relu");
  m.tied = c.flag("tie_word_embeddings", true);
}

void read_mt5(const HfConfig& c, LlmSpec& m) {
  read_t5_layers(c, m);
  read_t5_mlp(c, m, "gated-gelu");
  m.tied = c.flag("tie_word_embeddings");
}

void read_umt5(const HfConfig& c, LlmSpec& m) {
  read_t5_layers(c, m);
  read_t5_mlp(c, m, "gated-gelu");
  m.tied = c.flag("tie_word_embeddings", true);
  m.position_biases_everywhere = true;
}

constexpr HfFamily kFamilies[] = {{"llama", "LlamaForCausalLM", read_llama},
                                  {"mistral", "MistralForCausalLM", read_mistral},
                                  {"mixtral", "MixtralForCausalLM", read_mixtral},
                                  {"qwen2", "Qwen2ForCausalLM", read_qwen2},
                                  {"qwen2_moe", "Qwen2MoeForCausalLM", read_qwen2_moe},
                                  {"qwen3", "Qwen3ForCausalLM", read_qwen3},
                                  {"qwen3_moe", "Qwen3MoeForCausalLM", read_qwen3_moe},
                                  {"deepseek_v2", "DeepseekV2ForCausalLM", read_deepseek},
                                  {"deepseek_v3", "DeepseekV3ForCausalLM", read_deepseek_v3},
                                  {"kimi_k2", "KimiK2ForCausalLM", read_deepseek_v3},
                                  {"gpt_oss", "GptOssForCausalLM", read_gpt_oss},
                                  {"gemma", "GemmaForCausalLM", read_gemma},
                                  {"gemma2", "Gemma2ForCausalLM", read_gemma2},
                                  {"gemma3", "Gemma3ForConditionalGeneration", read_gemma3},
                                  {"gemma3_text", "Gemma3ForCausalLM", read_gemma3},
                                  {"phi3", "Phi3ForCausalLM", read_mistral},
                                  {"granite", "GraniteForCausalLM", read_llama},
                                  {"internlm2", "InternLM2ForCausalLM", read_internlm2},
                                  {"glm", "GlmForCausalLM", read_glm},
                                  {"glm4", "Glm4ForCausalLM", read_glm4},
                                  {"glm4_moe", "Glm4MoeForCausalLM", read_glm4_moe},
                                  {"dbrx", "DbrxForCausalLM", read_dbrx},
                                  {"cohere", "CohereForCausalLM", read_cohere},
                                  {"cohere2", "Cohere2ForCausalLM", read_cohere2},
                                  {"starcoder2", "Starcoder2ForCausalLM", read_starcoder2},
                                  {"falcon", "FalconForCausalLM", read_falcon},
                                  {"gpt_neox", "GPTNeoXForCausalLM", read_gpt_neox},
                                  {"opt", "OPTForCausalLM", read_opt},
                                  {"gpt2", "GPT2LMHeadModel", read_gpt2},
                                  {"bloom", "BloomForCausalLM", read_bloom},
                                  {"mpt", "MPTForCausalLM", read_mpt},
                                  {"bert", "BertForMaskedLM", read_bert},
                                  {"bert", "BertForPreTraining", read_bert},
                                  {"roberta", "RobertaForMaskedLM", read_roberta},
                                  {"xlm-roberta", "XLMRobertaForMaskedLM", read_roberta},
                                  {"camembert", "CamembertForMaskedLM", read_roberta},
                                  {"distilbert", "DistilBertForMaskedLM", read_distilbert},
                                  {"t5", "T5ForConditionalGeneration", read_t5},
                                  {"t5", "T5WithLMHeadModel", read_t5},
                                  {"mt5", "MT5ForConditionalGeneration", read_mt5},
                                  {"umt5", "UMT5ForConditionalGeneration", read_umt5},
                                  {"nemotron", "NemotronForCausalLM", read_nemotron},
                                  {"nemotron_h", "NemotronHForCausalLM", read_nemotron_h},
                                  {"llama4", "Llama4ForConditionalGeneration", read_llama4},
                                  {"llama4_text", "Llama4ForCausalLM", read_llama4}};

}  // namespace

std::span<const HfFamily> hf_families() { return kFamilies; }

}  // namespace weft
