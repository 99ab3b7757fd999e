// SPDX-License-Identifier: Apache-2.0
// Encoders and decoders, masked models, and keys of a config.json that change what is counted.
#include "sim/run/llm_hf.hpp"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace weft {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

struct Read {
  LlmSpec spec;
  Diagnostics out;
  explicit Read(const std::string& text) {
    const Json json = parse_json(text, "model.json", out);
    if (out.ok()) spec = read_llm(json, {}, out);
  }
};

// A small model of a family, with `more` keys.
std::string t5(const std::string& more = {}, const std::string& type = "t5") {
  return R"({"model_type": ")" + type +
         R"(", "d_model": 64, "d_kv": 16, "d_ff": 128, "num_layers": 3, "num_heads": 8,
      "vocab_size": 100)" +
         (more.empty() ? "" : ", " + more) + "}";
}
std::string bert(const std::string& more = {}) {
  return R"({"model_type": "bert", "num_hidden_layers": 2, "hidden_size": 64,
      "num_attention_heads": 8, "vocab_size": 100, "intermediate_size": 128)" +
         (more.empty() ? "" : ", " + more) + "}";
}
std::string decoder(const std::string& type, const std::string& more = {}) {
  return R"({"model_type": ")" + type + R"(", "num_hidden_layers": 4, "hidden_size": 64,
      "num_attention_heads": 8, "num_key_value_heads": 2, "vocab_size": 100,
      "intermediate_size": 128)" +
         (more.empty() ? "" : ", " + more) + "}";
}

std::string problems_of(const std::string& text) { return Read(text).out.text(); }

TEST(HfT5, HasAnEncoderAsLongAsItsDecoder) {
  const Read read(t5());
  ASSERT_TRUE(read.out.ok()) << read.out.text();
  EXPECT_EQ(read.out.text(), "");
  EXPECT_EQ(read.spec.encoder_layers, 3);
  EXPECT_EQ(read.spec.layers, 3);
  EXPECT_EQ(read.spec.head_dim, 16);
  EXPECT_EQ(read.spec.position_buckets, 32);
  EXPECT_EQ(read.spec.positions, Positions::relative);
  EXPECT_EQ(read.spec.mlp, MlpKind::plain);
  EXPECT_TRUE(read.spec.tied);
  EXPECT_EQ(
      Read(t5(R"("num_decoder_layers": 5, "relative_attention_num_buckets": 16)")).spec.layers, 5);
}

// 1.1 and flan name a gate and an output; those who came after mean them when they say nothing.
TEST(HfT5, SaysWhetherItsMlpIsGatedAndItsOutputIsItsOwn) {
  const Read flan(t5(R"("feed_forward_proj": "gated-gelu", "tie_word_embeddings": false)"));
  EXPECT_EQ(flan.spec.mlp, MlpKind::gated);
  EXPECT_FALSE(flan.spec.tied);
  const Read multilingual(t5({}, "mt5"));
  EXPECT_EQ(multilingual.spec.mlp, MlpKind::gated);
  EXPECT_FALSE(multilingual.spec.tied);
  EXPECT_FALSE(multilingual.spec.position_biases_everywhere);
  EXPECT_TRUE(Read(t5({}, "umt5")).spec.position_biases_everywhere);
  EXPECT_THAT(problems_of(t5(R"("feed_forward_proj": "gated-mixture")")),
              HasSubstr("/feed_forward_proj: \"gated-mixture\" is no MLP that is known here"));
}

TEST(HfT5, RefusesHalfOfItself) {
  EXPECT_THAT(problems_of(t5(R"("is_encoder_decoder": false)")),
              HasSubstr("/is_encoder_decoder: it is an encoder alone"));
  EXPECT_THAT(problems_of(t5(R"("architectures": ["T5EncoderModel"])")),
              HasSubstr("/architectures/0: it is an encoder alone"));
  EXPECT_THAT(problems_of(t5(R"("tie_encoder_decoder": true)")),
              HasSubstr("encoder and decoder share their weights"));
  EXPECT_THAT(problems_of(R"({"model_type": "t5", "num_layers": 2})"),
              HasSubstr("the key \"d_model\" is missing or 0\n    add \"d_model\""));
}

TEST(HfT5, IsWrittenAndReadBack) {
  const Read read(t5({}, "umt5"));
  const Read again(to_text(write_llm(read.spec)));
  ASSERT_TRUE(again.out.ok()) << again.out.text();
  EXPECT_EQ(to_text(write_config(again.spec)), to_text(write_config(read.spec)));
}

TEST(HfBert, RefusesWhatMakesItAnotherModel) {
  const std::string context = R"("max_position_embeddings": 512)";
  ASSERT_EQ(problems_of(bert(context)), "");
  const auto with = [&](const std::string& more) {
    return problems_of(bert(context + ",\n" + more));
  };
  EXPECT_THAT(
      with(R"("is_decoder": true)"),
      HasSubstr("model.json:3:15: error: /is_decoder: it sees the words before a gap alone"));
  EXPECT_THAT(with(R"("position_embedding_type": "relative_key")"),
              HasSubstr("/position_embedding_type: positions are not one per place"));
  EXPECT_THAT(with(R"("add_cross_attention": true)"),
              HasSubstr("/add_cross_attention: its layers also attend to an encoder's output"));
  for (const char* name : {"BertForSequenceClassification", "BertModel", "RobertaModel"})
    EXPECT_THAT(with(fmt::format(R"("architectures": ["{}"])", name)),
                HasSubstr("predicts no tokens"))
        << name;
  EXPECT_EQ(with(R"("is_decoder": false, "add_cross_attention": false, "type_vocab_size": 2,
      "position_embedding_type": "absolute", "architectures": ["BertForMaskedLM"],
      "hidden_act": "gelu", "hidden_dropout_prob": 0.1, "pad_token_id": 0)"),
            "");
}

TEST(HfBert, ReadsItsEnds) {
  const std::string context = R"("max_position_embeddings": 512)";
  EXPECT_TRUE(Read(bert(context)).spec.tied);
  EXPECT_FALSE(Read(bert(context + R"(, "tie_word_embeddings": false)")).spec.tied);
  EXPECT_FALSE(Read(bert(context)).spec.sentence_head);
  EXPECT_EQ(Read(bert(context)).spec.segment_kinds(), 2);
  EXPECT_EQ(Read(bert(context + R"(, "type_vocab_size": 1)")).spec.segment_kinds(), 1);
  EXPECT_TRUE(
      Read(bert(context + R"(, "architectures": ["BertForPreTraining"])")).spec.sentence_head);
}

// What is missing is named as this file names it.
TEST(HfConfigKeys, CuresAreKeysOfTheFile) {
  EXPECT_THAT(problems_of(bert()), HasSubstr("add \"max_position_embeddings\""));
  EXPECT_THAT(problems_of(R"({"model_type": "gpt2", "n_layer": 1, "n_embd": 8, "n_head": 1,
      "vocab_size": 9})"),
              HasSubstr("add \"n_positions\""));
  const std::string odd = problems_of(R"({"model_type": "gpt2", "n_layer": 1, "n_embd": 9,
      "n_head": 2, "vocab_size": 9, "n_positions": 4})");
  EXPECT_THAT(odd, HasSubstr("/n_head: 2 heads do not divide a width of 9"));
  EXPECT_THAT(odd, Not(HasSubstr("head_dim")));
}

// Numbers that may be left out, but not be anything.
TEST(HfConfigKeys, NumbersOutOfRangeStandWhereTheFileHasThem) {
  EXPECT_THAT(problems_of(decoder("llama", R"("head_dim": 0)")),
              HasSubstr("model.json:3:45: error: /head_dim: head_dim is 0, not from 1 to 1000000"));
  EXPECT_THAT(problems_of(R"({"model_type": "llama", "num_hidden_layers": 4, "hidden_size": 64,
      "num_attention_heads": 8, "vocab_size": 9, "intermediate_size": 9, "num_key_value_heads": 0})"),
              HasSubstr("/num_key_value_heads: num_key_value_heads is 0, not from 1"));
  EXPECT_THAT(problems_of(t5(R"("num_decoder_layers": 0)")),
              HasSubstr("/num_decoder_layers: num_decoder_layers is 0, not from 1"));
  EXPECT_THAT(problems_of(bert(R"("max_position_embeddings": 9, "type_vocab_size": 1001)")),
              HasSubstr("/type_vocab_size: type_vocab_size is 1001, not from 0 to 1000"));
}

TEST(HfConfigKeys, AFamilyHasAName) {
  EXPECT_THAT(problems_of(R"({"model_type": 7})"), HasSubstr("/model_type: no name of a family"));
  EXPECT_THAT(problems_of(R"({"architectures": []})"),
              HasSubstr("/architectures: no name of a family"));
}

TEST(HfConfigKeys, AWindowInNoLayerIsRefusedEvenWhereLayersAreListed) {
  const std::string text = problems_of(decoder(
      "cohere2",
      R"("sliding_window_pattern": 0, "layer_types": ["full_attention", "full_attention", "full_attention", "full_attention"])"));
  EXPECT_THAT(
      text, HasSubstr("/sliding_window_pattern: sliding_window_pattern is 0, not from 1 to 1000"));
}

TEST(HfConfigKeys, KnownTypesAreNamedOnce) {
  const std::string text = problems_of(R"({"model_type": "gemma9"})");
  EXPECT_THAT(
      text,
      HasSubstr("mpt, bert, roberta, xlm-roberta, camembert, distilbert, t5, mt5, umt5, nemotron"));
}

TEST(HfConfigKeys, WindowsMustBeWhereTheFamilyHasThem) {
  const std::string oss =
      R"("sliding_window": 8, "num_local_experts": 4, "num_experts_per_tok": 2)";
  const auto layers = [&](const std::string& list) {
    return problems_of(decoder("gpt_oss", oss + R"(, "layer_types": [)" + list + "]"));
  };
  const std::string s = R"("sliding_attention")", f = R"("full_attention")";
  EXPECT_EQ(layers(s + ", " + f + ", " + s + ", " + f), "");
  EXPECT_THAT(layers(f + ", " + s + ", " + f + ", " + s),
              HasSubstr("/layer_types: other layers have a window"));
  EXPECT_THAT(layers(s + ", " + f), HasSubstr("/layer_types: other layers have a window"));
  EXPECT_THAT(layers(s + R"(, "linear_attention", )" + s + ", " + f),
              HasSubstr("/layer_types/1: a layer that is not known here"));
}

TEST(HfConfigKeys, ShapesOfOtherKindsAreRefused) {
  EXPECT_THAT(problems_of(decoder("llama", R"("hidden_act": "geglu")")),
              HasSubstr("/hidden_act: whether this activation function has a gate"));
  EXPECT_THAT(problems_of(decoder("qwen2", R"("mlp_only_layers": [1])")),
              HasSubstr("/mlp_only_layers: dense and expert layers alternate"));
  EXPECT_THAT(problems_of(decoder("llama", R"("attention_bias": "yes")")),
              HasSubstr("/attention_bias: attention_bias is neither true nor false"));
  const std::string mpt = R"({"model_type": "mpt", "n_layers": 2, "d_model": 64, "n_heads": 8,
      "vocab_size": 100, "max_seq_len": 16)";
  EXPECT_THAT(problems_of(mpt + R"(, "attn_config": {"qk_ln": true}})"),
              HasSubstr("/attn_config/qk_ln: queries and keys have norms"));
  EXPECT_THAT(problems_of(mpt + R"(, "ffn_config": {"ffn_type": "mptglu"}})"),
              HasSubstr("/ffn_config/ffn_type: its MLP is not two matrices"));
  EXPECT_EQ(Read(mpt + R"(, "attn_config": {"attn_type": "multiquery_attention"}})").spec.kv_heads,
            1);
}

TEST(HfConfigKeys, AKeyThatIsNotKnownIsSaidToBeIgnored) {
  const Read read(decoder("llama", R"("attention_biases": true, "rms_norm_eps": 1e-5)"));
  EXPECT_TRUE(read.out.ok());
  EXPECT_THAT(read.out.text(),
              HasSubstr("model.json:3:33: warning: not read: \"attention_biases\""));
  EXPECT_THAT(read.out.text(), Not(HasSubstr("rms_norm_eps")));
}

// Keys of published files, two names for one thing among them.
TEST(HfConfigKeys, PublishedFilesPassWithoutAWord) {
  EXPECT_EQ(problems_of(decoder("qwen2", R"("architectures": ["Qwen2ForCausalLM"],
      "attention_dropout": 0.0, "bos_token_id": 151643, "hidden_act": "silu", "initializer_range": 0.02,
      "max_position_embeddings": 131072, "max_window_layers": 28, "rms_norm_eps": 1e-06, "rope_theta": 1e6,
      "sliding_window": 131072, "tie_word_embeddings": false, "torch_dtype": "bfloat16",
      "transformers_version": "4.40.1", "use_cache": true, "use_mrope": false, "use_sliding_window": false)")),
            "");
  EXPECT_EQ(problems_of(decoder("gpt_oss", R"("architectures": ["GptOssForCausalLM"],
      "attention_bias": true, "attention_dropout": 0.0, "eos_token_id": 200002, "experts_per_token": 4,
      "head_dim": 64, "hidden_act": "silu", "initial_context_length": 4096, "num_experts_per_tok": 4,
      "num_local_experts": 32, "output_router_logits": false, "quantization_config": {"bits": 4},
      "rope_scaling": {"factor": 32.0}, "router_aux_loss_coef": 0.9, "sliding_window": 128,
      "swiglu_limit": 7.0)")),
            "");
  EXPECT_EQ(
      problems_of(
          R"({"model_type": "mpt", "architectures": ["MPTForCausalLM"], "n_layers": 2, "d_model": 64,
      "n_heads": 8, "vocab_size": 100, "max_seq_len": 16, "expansion_ratio": 4, "no_bias": true, "emb_pdrop": 0,
      "attn_config": {"alibi": true, "attn_impl": "torch", "attn_type": "multihead_attention", "qk_ln": false,
      "prefix_lm": false, "sliding_window_size": -1, "softmax_scale": null}, "ffn_config": {"ffn_type": "mptmlp"},
      "norm_type": "low_precision_layernorm", "init_device": "cpu", "logit_scale": null, "verbose": 0})"),
      "");
}

}  // namespace
}  // namespace weft
