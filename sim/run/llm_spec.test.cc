// SPDX-License-Identifier: Apache-2.0
#include "sim/run/llm_spec.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace weft {
namespace {

using ::testing::HasSubstr;

struct Read {
  LlmSpec spec;
  Diagnostics out;
  Read() = default;
  explicit Read(const std::string& text) {
    const Json json = parse_json(text, "model.json", out);
    if (out.ok()) spec = read_llm(json, {}, out);
  }
};

std::string problems_of(const std::string& text) { return Read(text).out.text(); }

// A small model, with `more` keys.
std::string own(const std::string& more) {
  return R"({"kind": "llm", "layers": 4, "hidden": 64, "heads": 8, "vocabulary": 100)" +
         (more.empty() ? "" : ", " + more) + "}";
}

TEST(LlmSpec, ReadsItsOwnForm) {
  const Read read(own(R"("intermediate": 256, "kv_heads": 2)"));
  ASSERT_TRUE(read.out.ok()) << read.out.text();
  EXPECT_EQ(read.spec.layers, 4);
  EXPECT_EQ(read.spec.kv_heads, 2);
  EXPECT_EQ(read.spec.mlp, MlpKind::gated);
}

TEST(LlmSpec, WritesWhatItReads) {
  const Read read(own(R"("intermediate": 0, "window": 8, "window_every": 2, "prediction_layers": 1,
      "latent": {"q_rank": 8, "kv_rank": 16, "rope_dim": 4, "nope_dim": 4, "value_dim": 4},
      "experts": {"count": 8, "top_k": 2, "size": 16, "shared_size": 16},
      "sources": {"": "assumed: a test"})"));
  ASSERT_TRUE(read.out.ok()) << read.out.text();
  const Json written = write_llm(read.spec);
  const Read again(to_text(written));
  ASSERT_TRUE(again.out.ok()) << again.out.text();
  EXPECT_EQ(to_text(write_config(again.spec)), to_text(write_config(read.spec)));
  EXPECT_EQ(written.find("mlp"), nullptr);  // defaults are left out
  EXPECT_EQ(written.find("latent")->find("q_rank")->integer, 8);
}

TEST(LlmSpec, WritesAZeroThatIsNoDefault) {
  const Read read(own(R"("intermediate": 1, "latent": {"rope_dim": 0})"));
  EXPECT_EQ(write_llm(read.spec).find("latent")->find("rope_dim")->integer, 0);
  EXPECT_EQ(write_llm(read.spec).find("latent")->find("q_rank"), nullptr);
}

TEST(LlmSpec, RefusesWhatDoesNotGoTogether) {
  EXPECT_THAT(problems_of(own(R"("intermediate": 1, "kv_heads": 3)")),
              HasSubstr("/kv_heads: 3 heads of keys and values do not divide 8 heads"));
  EXPECT_THAT(
      problems_of(R"({"layers": 1, "hidden": 65, "heads": 8, "vocabulary": 9, "intermediate": 1})"),
      HasSubstr("add \"head_dim\""));
  EXPECT_THAT(problems_of(own("")), HasSubstr("add \"intermediate\""));
  EXPECT_THAT(problems_of(own(R"("experts": {"count": 2, "top_k": 3, "size": 4})")),
              HasSubstr("3 experts per token of 2"));
  EXPECT_THAT(
      problems_of(own(R"("experts": {"count": 2, "top_k": 1, "size": 4, "dense_layers": 9})")),
      HasSubstr("9 dense layers of 4"));
  EXPECT_THAT(problems_of(own(R"("intermediate": 1, "positions": "learned")")),
              HasSubstr("add \"context\""));
  EXPECT_THAT(problems_of(own(R"("intermediate": 1, "window_every": 2)")),
              HasSubstr("add \"window\""));
  EXPECT_THAT(problems_of(own(R"("intermediate": 1, "pattern": "M*-")")),
              HasSubstr("3 letters for 4 layers"));
  EXPECT_THAT(problems_of(own(R"("intermediate": 1, "pattern": "M*-x")")),
              HasSubstr("letter 4 is none of M, *, - and E"));
  EXPECT_THAT(problems_of(own(R"("intermediate": 1, "pattern": "*-*E")")),
              HasSubstr("E needs \"experts\""));
  EXPECT_THAT(problems_of(own(R"("intermediate": 1, "mamba": {})")), HasSubstr("add \"pattern\""));
  EXPECT_THAT(problems_of(own(R"("intermediate": 1, "norms": 1)")),
              HasSubstr("/norms: 1 in a layer that has 2 at least"));
  EXPECT_THAT(problems_of(own(R"("intermediate": 1, "pattern": "*-*-", "norms": 2)")),
              HasSubstr("/norms: each layer of a hybrid has one"));
  EXPECT_THAT(problems_of(R"({"kind": "gpu", "layers": 1, "hidden": 8, "heads": 1, "vocabulary": 9,
      "intermediate": 1})"),
              HasSubstr("a gpu where an llm is needed"));
}

TEST(LlmSpec, ReportsEveryProblemAtOnce) {
  EXPECT_EQ(Read(own(R"("kv_heads": 3, "pattern": "*x")")).out.error_count(), 3U);
}

// ---- config.json

constexpr std::string_view kLlama =
    R"({"model_type": "llama", "num_hidden_layers": 2, "hidden_size": 64,
    "num_attention_heads": 8, "num_key_value_heads": 2, "vocab_size": 100, "intermediate_size": 128,
    "max_position_embeddings": 512)";

TEST(HfConfig, IsKnownByItsModelTypeOrArchitecture) {
  const Read typed(std::string(kLlama) + "}");
  ASSERT_TRUE(typed.out.ok()) << typed.out.text();
  EXPECT_EQ(typed.spec.kv_heads, 2);
  EXPECT_EQ(typed.spec.context, 512);
  std::string text(kLlama);
  text.replace(text.find(R"("model_type": "llama")"), 21,
               R"("architectures": ["LlamaForCausalLM"])");
  const Read named(text + "}");
  ASSERT_TRUE(named.out.ok()) << named.out.text();
  EXPECT_EQ(to_text(write_config(named.spec.layers)), "2");
}

TEST(HfConfig, RefusesFamiliesThatItDoesNotKnow) {
  const std::string text = problems_of(R"({"model_type": "gemma9"})");
  EXPECT_THAT(text,
              HasSubstr("model.json:1:16: error: /model_type: the layers of \"gemma9\" are not"));
  EXPECT_THAT(text, HasSubstr("known: llama, mistral"));
}

TEST(HfConfig, RefusesLayersThatItDoesNotKnow) {
  EXPECT_THAT(problems_of(std::string(kLlama) + R"(, "mlp_only_layers": [0]})"),
              HasSubstr("dense and expert layers alternate"));
  EXPECT_THAT(problems_of(std::string(kLlama) + R"(, "use_sliding_window": true})"),
              HasSubstr("some of its layers have a window"));
}

TEST(HfConfig, NamesMissingAndSillyKeys) {
  const std::string text = problems_of(R"({"model_type": "llama", "num_hidden_layers": -3})");
  EXPECT_THAT(text, HasSubstr("/num_hidden_layers: num_hidden_layers is no count"));
  EXPECT_THAT(text, HasSubstr("the key \"hidden_size\" is missing or 0"));
  std::string odd(kLlama);
  odd.replace(odd.find("\"num_key_value_heads\": 2"), 24, "\"num_key_value_heads\": 3");
  EXPECT_THAT(problems_of(odd + "}"), HasSubstr("3 heads of keys and values do not divide 8"));
}

TEST(HfConfig, KeepsToTheRangesOfTheCatalogue) {
  EXPECT_THAT(problems_of(R"({"model_type": "gpt2", "n_layer": 1, "n_embd": 90000000, "n_head": 1,
      "vocab_size": 9, "n_positions": 9})"),
              HasSubstr("intermediate is 360000000, not from 0 to 100000000"));
}

TEST(HfConfig, MistralHasAWindowAndQwenBiases) {
  std::string text(kLlama);
  text.replace(text.find("llama"), 5, "mistral");
  EXPECT_EQ(Read(text + R"(, "sliding_window": 64})").spec.window, 64);
  EXPECT_EQ(Read(text + R"(, "sliding_window": null})").spec.window, std::nullopt);
  text.replace(text.find("mistral"), 7, "qwen2");
  const Read qwen(text + "}");
  EXPECT_TRUE(qwen.spec.qkv_bias);
  EXPECT_FALSE(qwen.spec.output_bias);
}

TEST(HfConfig, GptFamiliesAreTiedAndBiased) {
  const Read gpt(
      R"({"model_type": "gpt2", "n_layer": 12, "n_embd": 768, "n_head": 12, "vocab_size": 50257,
      "n_positions": 1024})");
  ASSERT_TRUE(gpt.out.ok()) << gpt.out.text();
  EXPECT_TRUE(gpt.spec.tied && gpt.spec.norm_bias && gpt.spec.mlp_bias);
  EXPECT_EQ(gpt.spec.intermediate, 3072);
  EXPECT_EQ(gpt.spec.positions, Positions::learned);
  const Read mpt(
      R"({"model_type": "mpt", "n_layers": 32, "d_model": 4096, "n_heads": 32, "vocab_size": 50432,
      "max_seq_len": 2048, "expansion_ratio": 4, "no_bias": true, "attn_config": {"alibi": true}})");
  ASSERT_TRUE(mpt.out.ok()) << mpt.out.text();
  EXPECT_EQ(mpt.spec.positions, Positions::alibi);
  EXPECT_FALSE(mpt.spec.qkv_bias || mpt.spec.norm_bias);
  EXPECT_EQ(mpt.spec.intermediate, 16384);
}

TEST(HfConfig, NemotronHybridsFollowTheirPattern) {
  const Read read(R"({"model_type": "nemotron_h", "num_hidden_layers": 4, "hidden_size": 64,
      "num_attention_heads": 4, "num_key_value_heads": 2, "head_dim": 16, "vocab_size": 100,
      "hybrid_override_pattern": "ME*E", "mamba_num_heads": 8, "mamba_head_dim": 16, "n_groups": 2,
      "ssm_state_size": 16, "conv_kernel": 4, "n_routed_experts": 8, "num_experts_per_tok": 2,
      "moe_intermediate_size": 32, "n_shared_experts": 1, "moe_shared_expert_intermediate_size": 64,
      "moe_latent_size": 24, "num_nextn_predict_layers": 1, "mtp_hybrid_override_pattern": "*E"})");
  ASSERT_TRUE(read.out.ok()) << read.out.text();
  EXPECT_EQ(read.spec.mlp, MlpKind::plain);
  EXPECT_EQ(read.spec.mamba->heads, 8);
  EXPECT_EQ(read.spec.experts->latent_size, 24);
  EXPECT_EQ(read.spec.experts->shared_size, 64);
  EXPECT_EQ(read.spec.prediction_pattern, "*E");
}

TEST(HfConfig, ReadsTheTextPartOfLlama4) {
  const Read read(
      R"({"model_type": "llama4", "text_config": {"num_hidden_layers": 4, "hidden_size": 64,
      "num_attention_heads": 8, "num_key_value_heads": 2, "head_dim": 8, "vocab_size": 100,
      "intermediate_size": 128, "intermediate_size_mlp": 256, "num_local_experts": 4,
      "num_experts_per_tok": 1, "interleave_moe_layer_step": 2, "attention_chunk_size": 32}})");
  ASSERT_TRUE(read.out.ok()) << read.out.text();
  EXPECT_EQ(read.spec.intermediate, 256);
  EXPECT_EQ(read.spec.experts->size, 128);
  EXPECT_EQ(read.spec.experts->step, 2);
}

}  // namespace
}  // namespace weft
