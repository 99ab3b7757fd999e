// SPDX-License-Identifier: Apache-2.0
#include "models/llm/architecture.hpp"

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
}

}  // namespace
}  // namespace weft
