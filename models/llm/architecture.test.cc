// SPDX-License-Identifier: Apache-2.0
#include "models/llm/architecture.hpp"

#include <fmt/format.h>

#include "tests/support/llms.hpp"

namespace weft {
namespace {

using testing::llm;

Architecture read(const std::string& text) {
  Diagnostics out;
  LlmSpec spec = read_llm(parse_json(text, "llm.json", out), {}, out);
  EXPECT_TRUE(out.ok()) << out.text();
  return Architecture(std::move(spec));
}

TEST(Architecture, AGptLayerIsTwelveSquaresAndThirteenVectors) {
  const Architecture model = llm("gpt-768x12");
  const double h = 768;
  EXPECT_EQ(model.parameters(model.layer(0)).total(), 12 * h * h + 13 * h);
  EXPECT_EQ(model.embedding(), (51200 + 2048) * h);
  EXPECT_EQ(model.output(), 0);
  EXPECT_EQ(model.total(), 12 * (12 * h * h + 13 * h) + 2 * h + (51200 + 2048) * h);
}

// Every row of the benchmark tables of LLM Foundry that has a size or a length of its own.
TEST(Architecture, MptHasTheParametersOfItsBenchmark) {
  struct Row {
    const char* model;
    std::int64_t context;
    double parameters;
  };
  const Row rows[] = {{"mpt-125m", 512, 124131840},  {"mpt-125m", 65536, 174070272},
                      {"mpt-350m", 512, 354412544},  {"mpt-350m", 65536, 420997120},
                      {"mpt-760m", 512, 758111232},  {"mpt-760m", 65536, 857988096},
                      {"mpt-1b", 512, 1312804864},   {"mpt-1b", 65536, 1445974016},
                      {"mpt-7b", 512, 6652567552},   {"mpt-7b", 65536, 6918905856},
                      {"mpt-13b", 512, 12846090240}, {"mpt-13b", 32768, 13011240960},
                      {"mpt-70b", 2048, 64862437376}};
  for (const Row& row : rows)
    EXPECT_EQ(llm(row.model, {{"/context", row.context}}).total(), row.parameters)
        << row.model << " " << row.context;
}

// The counts of BertForMaskedLM as it is published.
TEST(Architecture, AMaskedModelHasSegmentsAndADenseLayerAtItsOutput) {
  EXPECT_EQ(llm("bert-base").total(), 109514298);
  EXPECT_EQ(llm("bert-large").total(), 335174458);
}

TEST(Architecture, BertBeforeItsTrainingEndsHasAChoiceOfTwo) {
  const std::string text = R"({"model_type": "bert", "num_hidden_layers": 12, "hidden_size": 768,
      "num_attention_heads": 12, "vocab_size": 30522, "intermediate_size": 3072,
      "max_position_embeddings": 512, "architectures": ["BertForPreTraining"]})";
  EXPECT_EQ(read(text).total(), 109514298 + 769 * 768 + 2 * 769);
}

// What is published is the model under a head: without the dense layer, the norm and the bias of the vocabulary that fill gaps, with
// BERT's "pooler", a dense layer on the first token (the last of the four has none): num_parameters() of BertModel, RobertaModel
// and DistilBertModel, 12 layers of 12 heads, 24 of 16, 12 of 12 and 6 of 12.
TEST(Architecture, MaskedModelsHaveThePublishedParametersUnderTheirHeads) {
  const auto check = [](const std::string& keys, double hidden, double vocabulary, bool pooler,
                        double published) {
    const Architecture model = read("{" + keys + "}");
    const double dense = hidden * (hidden + 1), head = dense + 2 * hidden + vocabulary;
    EXPECT_EQ(model.head(), head) << keys;
    EXPECT_EQ(model.total() - head + (pooler ? dense : 0), published) << keys;
  };
  const auto keys = [](const char* type, int layers, int hidden, int heads, int vocabulary,
                       int positions, int segments) {
    return fmt::format(
        R"("model_type": "{}", "num_hidden_layers": {}, "hidden_size": {}, "num_attention_heads": {},
           "vocab_size": {}, "intermediate_size": {}, "max_position_embeddings": {}, "type_vocab_size": {})",
        type, layers, hidden, heads, vocabulary, 4 * hidden, positions, segments);
  };
  check(keys("bert", 12, 768, 12, 30522, 512, 2), 768, 30522, true, 109'482'240);
  check(keys("bert", 24, 1024, 16, 30522, 512, 2), 1024, 30522, true, 335'141'888);
  check(keys("roberta", 12, 768, 12, 50265, 514, 1), 768, 50265, true, 124'645'632);
  check(keys("roberta", 24, 1024, 16, 50265, 514, 1), 1024, 50265, true, 355'359'744);
  check(R"("model_type": "distilbert", "n_layers": 6, "dim": 768, "n_heads": 12, "hidden_dim": 3072,
           "vocab_size": 30522, "max_position_embeddings": 512)",
        768, 30522, false, 66'362'880);
}

// Published: t5-small to t5-11b, flan-t5 and mt5-small. By hand: embedding and output V h; an encoder layer 4 h q for
// attention, its MLP and two norms; a decoder layer 8 h q and three norms; of each stack a norm and 32 ranges of distances per
// head.
TEST(Architecture, AnEncoderAndADecoderHaveThePublishedParameters) {
  struct Row {
    const char* type;
    std::int64_t layers, hidden, heads, head, inner, vocabulary;
    bool gated, tied;
    double total;
  };
  const Row rows[] = {{"t5", 6, 512, 8, 64, 2048, 32128, false, true, 60506624},
                      {"t5", 12, 768, 12, 64, 3072, 32128, false, true, 222903552},
                      {"t5", 24, 1024, 16, 64, 4096, 32128, false, true, 737668096},
                      {"t5", 24, 1024, 32, 128, 16384, 32128, false, true, 2851598336},
                      {"t5", 24, 1024, 128, 128, 65536, 32128, false, true, 11307321344},
                      {"t5", 8, 512, 6, 64, 1024, 32128, true, false, 76961152},
                      {"t5", 12, 768, 12, 64, 2048, 32128, true, false, 247577856},
                      {"t5", 24, 1024, 16, 64, 2816, 32128, true, false, 783150080},
                      {"t5", 24, 2048, 32, 64, 5120, 32128, true, false, 2849757184},
                      {"t5", 24, 4096, 64, 64, 10240, 32128, true, false, 11135332352},
                      {"mt5", 8, 512, 6, 64, 1024, 250112, true, false, 300176768}};
  for (const Row& row : rows) {
    const Architecture model = read(fmt::format(
        R"({{"model_type": "{}", "num_layers": {}, "d_model": {}, "num_heads": {}, "d_kv": {},
        "d_ff": {}, "vocab_size": {}, "feed_forward_proj": "{}", "tie_word_embeddings": {}}})",
        row.type, row.layers, row.hidden, row.heads, row.head, row.inner, row.vocabulary,
        row.gated ? "gated-gelu" : "relu", row.tied));
    EXPECT_EQ(model.total(), row.total);
    EXPECT_EQ(model.active(), row.total);
    const double h = real(row.hidden), l = real(row.layers), q = real(row.heads * row.head);
    const double mlp = (row.gated ? 3 : 2) * h * real(row.inner);
    const double ends = (row.tied ? 1 : 2) * real(row.vocabulary) * h;
    const double stacks = 2 * (h + 32 * real(row.heads));
    EXPECT_EQ(row.total,
              ends + stacks + l * (4 * h * q + mlp + 2 * h) + l * (8 * h * q + mlp + 3 * h));
  }
}

TEST(Architecture, AnEncodersLayersComeFirstAndKeepNoCache) {
  const Architecture model = llm("t5-11b");
  ASSERT_EQ(model.layers(), 48);
  EXPECT_TRUE(model.layer(0).encoder && model.layer(0).first && !model.layer(0).cross);
  EXPECT_TRUE(model.layer(24).joins() && !model.layer(24).encoder);
  EXPECT_TRUE(model.layer(47).cross && !model.layer(47).first);
  // 24 decoder layers, keys and values of 16,384 numbers at 2 bytes.
  EXPECT_EQ(model.kv_bytes_per_token(2), 24 * 2 * 16384 * 2);
  EXPECT_EQ(model.cross_kv_bytes_per_token(2), 24 * 2 * 16384 * 2);
  EXPECT_EQ(model.kv_bytes(10, 2), 10 * model.kv_bytes_per_token(2));
}

// umT5 trains its positions in every layer (by hand; its config.json is published, its count is not).
TEST(Architecture, PositionsMayBeTrainedInEveryLayer) {
  const std::string text = R"({"model_type": "umt5", "num_layers": 8, "d_model": 512,
      "num_heads": 6, "d_kv": 64, "d_ff": 1024, "vocab_size": 256384,
      "tie_word_embeddings": false})";
  std::string once = text;
  once.replace(once.find("umt5"), 4, "t5\", \"feed_forward_proj\": \"gated-gelu");
  EXPECT_EQ(read(text).total() - read(once).total(), 14 * 32 * 6);
}

TEST(Architecture, AHybridHasOneNormPerLayer) {
  const Architecture model = read(R"({"kind": "llm", "layers": 3, "hidden": 8, "heads": 2,
      "vocabulary": 10, "intermediate": 16, "mlp": "plain", "pattern": "M*-",
      "mamba": {"heads": 4, "head_dim": 4, "groups": 2, "state": 3, "convolution": 4}})");
  // Inner 16, B and C 12: inputs 8 x (2 x 16 + 12 + 4), convolution 28 x (4 + 1), 3 per head, norm 16, output 16 x 8.
  EXPECT_EQ(model.parameters(model.layer(0)).mixer, 384 + 140 + 12 + 16 + 128);
  EXPECT_EQ(model.parameters(model.layer(1)).mixer, 4 * 64);
  EXPECT_EQ(model.parameters(model.layer(2)).dense, 2 * 8 * 16);
  for (std::int64_t i = 0; i < 3; ++i) EXPECT_EQ(model.parameters(model.layer(i)).norms, 8);
  // One attention layer of 2 x 8, and the state of Mamba whatever the length.
  EXPECT_EQ(model.kv_bytes_per_token(2), 32);
  EXPECT_EQ(model.kv_bytes(100, 2), 100 * 32 + 2 * (16 * 3 + 28 * 3));
}

TEST(Architecture, HybridsHaveTheirNominalSizes) {
  const std::pair<const char*, double> nominal[] = {{"nemotron-h-8b", 8.1e9},
                                                    {"nemotron-h-47b", 47e9},
                                                    {"nemotron-h-56b", 56e9},
                                                    {"nemotron-nano-v2-9b", 8.9e9},
                                                    {"nemotron-nano-v2-12b", 12.3e9},
                                                    {"nemotron-3-nano-30b-a3b", 31.6e9},
                                                    {"nemotron-3-super-120b-a12b", 120e9}};
  for (const auto& [name, parameters] : nominal)
    EXPECT_NEAR(llm(name).total(), parameters, 0.02 * parameters) << name;
  EXPECT_NEAR(llm("nemotron-3-super-120b-a12b").active(), 12e9, 0.1 * 12e9);
  EXPECT_NEAR(llm("nemotron-3-nano-30b-a3b").active(), 3.5e9, 0.05 * 3.5e9);
}

TEST(Architecture, AWindowKeepsTheCacheShort) {
  const Architecture model = llm("gpt-oss-20b");
  EXPECT_TRUE(model.layer(0).windowed);
  EXPECT_FALSE(model.layer(1).windowed);
  const double layer = 2 * 8 * 64 * 2;
  EXPECT_EQ(model.kv_bytes_per_token(2), 24 * layer);
  EXPECT_EQ(model.kv_bytes(100, 2), 100 * 24 * layer);
  EXPECT_EQ(model.kv_bytes(1000, 2), 1000 * 12 * layer + 128 * 12 * layer);
}

TEST(Architecture, APredictionLayerIsNotInTheTotal) {
  const Architecture model = llm("deepseek-v3");
  // The published files of the extra layer hold 11.51e9 parameters beside the shared embedding and output.
  EXPECT_NEAR(model.prediction_layer(), 11.5e9, 0.01 * 11.5e9);
  EXPECT_EQ(llm("deepseek-v3", {{"/prediction_layers", 0}}).total(), model.total());
  EXPECT_EQ(llm("nemotron-3-super-120b-a12b").prediction_kinds().size(), 2U);
}

TEST(Architecture, StepsPlaceExpertsInEverySecondLayer) {
  const Architecture model = read(R"({"layers": 5, "hidden": 8, "heads": 2, "vocabulary": 10,
      "intermediate": 16, "experts": {"count": 4, "top_k": 1, "size": 8, "dense_layers": 1, "step": 2}})");
  std::string kinds;
  for (std::int64_t i = 0; i < 5; ++i)
    kinds += model.layer(i).feed_forward == FeedForward::experts ? 'e' : 'd';
  EXPECT_EQ(kinds, "ddede");
}

TEST(Architecture, AParallelBlockHasOneNorm) {
  const std::string text = R"({"layers": 1, "hidden": 8, "heads": 2, "vocabulary": 10,
      "intermediate": 16, "parallel_block": )";
  EXPECT_EQ(read(text + "false}").total() - read(text + "true}").total(), 8);
  EXPECT_EQ(read(text + R"(false, "norms": 4})").total() - read(text + "true}").total(), 24);
}

}  // namespace
}  // namespace weft
