// SPDX-License-Identifier: Apache-2.0
// The config.json of published models and how many parameters they have, one model for every way in which the layers of a family
// differ. Gemma, GLM-4 and Pythia: as their checkpoints and READMEs say to the last one. Of the others a rounded figure is published
// (Falcon 7B and 40B, Command R 35B, DBRX 132B, ...): theirs are counted from the layers by hand.
#include <gtest/gtest.h>

#include "models/llm/architecture.hpp"

namespace weft {
namespace {

struct Published {
  const char* name;
  double parameters;
  const char* keys;
};

constexpr Published kPublished[] = {
    {"gemma-2b", 2'506'172'416,
     R"("model_type": "gemma", "hidden_size": 2048, "num_hidden_layers": 18, "intermediate_size": 16384,
        "num_attention_heads": 8, "num_key_value_heads": 1, "head_dim": 256, "vocab_size": 256000)"},
    {"gemma-2-9b", 9'241'705'984,
     R"("model_type": "gemma2", "hidden_size": 3584, "num_hidden_layers": 42, "intermediate_size": 14336,
        "num_attention_heads": 16, "num_key_value_heads": 8, "head_dim": 256, "vocab_size": 256000,
        "query_pre_attn_scalar": 256, "attn_logit_softcapping": 50.0, "sliding_window": 4096)"},
    {"gemma-3-1b", 999'885'952,
     R"("model_type": "gemma3_text", "hidden_size": 1152, "num_hidden_layers": 26,
        "intermediate_size": 6912, "num_attention_heads": 4, "num_key_value_heads": 1, "head_dim": 256,
        "vocab_size": 262144, "sliding_window": 512, "sliding_window_pattern": 6)"},
    {"phi-3-mini", 3'821'079'552,
     R"("model_type": "phi3", "hidden_size": 3072, "num_hidden_layers": 32, "intermediate_size": 8192,
        "num_attention_heads": 32, "num_key_value_heads": 32, "vocab_size": 32064,
        "sliding_window": 2047)"},
    {"granite-3.1-8b", 8'170'848'256,
     R"("model_type": "granite", "hidden_size": 4096, "num_hidden_layers": 40,
        "intermediate_size": 12800, "num_attention_heads": 32, "num_key_value_heads": 8,
        "vocab_size": 49155, "tie_word_embeddings": true, "logits_scaling": 16.0)"},
    {"internlm2-7b", 7'737'708'544,
     R"("model_type": "internlm2", "hidden_size": 4096, "num_hidden_layers": 32,
        "intermediate_size": 14336, "num_attention_heads": 32, "num_key_value_heads": 8,
        "vocab_size": 92544, "bias": false)"},
    {"glm-4-9b-0414", 9'400'279'040,
     R"("model_type": "glm4", "hidden_size": 4096, "num_hidden_layers": 40, "intermediate_size": 13696,
        "num_attention_heads": 32, "num_key_value_heads": 2, "head_dim": 128, "vocab_size": 151552,
        "attention_bias": true)"},
    {"dbrx", 131'596'523'520,
     R"("model_type": "dbrx", "d_model": 6144, "n_layers": 40, "n_heads": 48, "vocab_size": 100352,
        "attn_config": {"kv_n_heads": 8, "clip_qkv": 8, "rope_theta": 500000},
        "ffn_config": {"ffn_hidden_size": 10752, "moe_num_experts": 16, "moe_top_k": 4})"},
    {"command-r", 34'980'831'232,
     R"("model_type": "cohere", "hidden_size": 8192, "num_hidden_layers": 40,
        "intermediate_size": 22528, "num_attention_heads": 64, "num_key_value_heads": 64,
        "vocab_size": 256000, "logit_scale": 0.0625, "use_qk_norm": false)"},
    {"starcoder2-3b", 3'030'371'328,
     R"("model_type": "starcoder2", "hidden_size": 3072, "num_hidden_layers": 30,
        "intermediate_size": 12288, "num_attention_heads": 24, "num_key_value_heads": 2,
        "vocab_size": 49152, "sliding_window": 4096, "use_bias": true, "norm_type": "layer_norm",
        "mlp_type": "default")"},
    {"falcon-7b", 6'921'720'704,
     R"("model_type": "falcon", "hidden_size": 4544, "num_hidden_layers": 32,
        "num_attention_heads": 71, "vocab_size": 65024, "multi_query": true, "parallel_attn": true,
        "new_decoder_architecture": false, "bias": false, "alibi": false)"},
    {"falcon-40b", 41'303'293'952,
     R"("model_type": "falcon", "hidden_size": 8192, "num_hidden_layers": 60,
        "num_attention_heads": 128, "num_kv_heads": 8, "vocab_size": 65024, "parallel_attn": true,
        "multi_query": true, "new_decoder_architecture": true, "bias": false, "alibi": false)"},
    {"pythia-6.9b", 6'857'302'016,
     R"("model_type": "gpt_neox", "hidden_size": 4096, "num_hidden_layers": 32,
        "intermediate_size": 16384, "num_attention_heads": 32, "vocab_size": 50432,
        "rotary_pct": 0.25, "use_parallel_residual": true)"},
    {"opt-6.7b", 6'658'473'984,
     R"("model_type": "opt", "hidden_size": 4096, "num_hidden_layers": 32, "ffn_dim": 16384,
        "num_attention_heads": 32, "vocab_size": 50272, "max_position_embeddings": 2048,
        "word_embed_proj_dim": 4096, "do_layer_norm_before": true)"}};

TEST(Published, ModelsHaveTheirParameters) {
  for (const Published& model : kPublished) {
    Diagnostics out;
    const Json json =
        parse_json("{" + std::string(model.keys) + "}", std::string(model.name) + ".json", out);
    LlmSpec spec = read_llm(json, {}, out);
    ASSERT_EQ(out.text(), "");
    EXPECT_EQ(Architecture(std::move(spec)).total(), model.parameters) << model.name;
  }
}

}  // namespace
}  // namespace weft
