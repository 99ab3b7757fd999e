// SPDX-License-Identifier: Apache-2.0
// Language models of the catalogue against parameter counts that were published with their weights or measurements.
#include <algorithm>

#include <gtest/gtest.h>

#include "models/llm/architecture.hpp"
#include "sim/core/loader.hpp"
#include "tools/cli/file_source.hpp"

namespace weft {
namespace {

LlmSpec llm(const std::string& name) {
  Configs configs(WEFT_SOURCE_DIR "/configs");
  Diagnostics out;
  Loader loader(configs, out);
  const LlmSpec spec = read_llm(loader.load_component("model", name), {}, out);
  EXPECT_TRUE(out.ok()) << out.text();
  return spec;
}

TEST(Llms, HaveThePublishedParameters) {
  const std::pair<const char*, double> published[] = {
      {"llama-2-7b", 6738415616},
      {"llama-2-13b", 13015864320},
      {"llama-2-70b", 68976648192},
      {"llama-3-8b", 8030261248},
      {"llama-3-70b", 70553706496},
      {"llama-3.1-405b", 405853388800},
      {"mistral-7b", 7241732096},
      {"mixtral-8x7b", 46702792704},
      {"mixtral-8x22b", 140620634112},
      {"qwen2-57b-a14b", 57408658944},
      {"qwen2-72b", 72706203648},
      {"qwen2.5-7b", 7615616512},
      {"qwen2.5-32b", 32763876352},
      {"qwen3-30b-a3b", 30532122624},
      {"qwen3-235b-a22b", 235093634560},
      {"deepseek-v2-lite", 15706484224},
      {"deepseek-v3", 671026419200},
      {"gpt-oss-20b", 20914757184},
      {"gpt-oss-120b", 116829156672},
      {"bloom-176b", 176247271424},
      {"t5-base", 222903552},
      {"t5-11b", 11307321344},
      {"flan-t5-xxl", 11135332352},
  };
  for (const auto& [name, parameters] : published)
    EXPECT_EQ(Architecture(llm(name)).total(), parameters) << name;
}

// Sizes in the names: total and per token.
TEST(Llms, HaveTheSizesOfTheirNames) {
  struct Size {
    const char* name;
    double total, active;
  };
  const Size sizes[] = {{"llama-4-scout", 108e9, 17e9},
                        {"llama-4-maverick", 400e9, 17e9},
                        {"gpt3-5b", 5e9, 5e9},
                        {"gpt3-20b", 20e9, 20e9},
                        {"gpt3-175b", 175e9, 175e9},
                        {"nemotron-8b", 8.5e9, 8.5e9},
                        {"nemotron-4-15b", 15.6e9, 15.6e9},
                        {"nemotron-4-340b", 341e9, 341e9},
                        {"internlm-7b", 7.3e9, 7.3e9},
                        {"megatron-1.7b", 1.7e9, 1.7e9},
                        {"megatron-145.6b", 145.6e9, 145.6e9},
                        {"megatron-529.6b", 529.6e9, 529.6e9},
                        {"megatron-1008b", 1008e9, 1008e9}};
  for (const Size& size : sizes) {
    const Architecture model(llm(size.name));
    EXPECT_NEAR(model.total(), size.total, 0.03 * size.total) << size.name;
    EXPECT_NEAR(model.active(), size.active, 0.03 * size.active) << size.name;
  }
}

// What a published config.json says is what the catalogue says, beside names and sources.
TEST(Llms, AreTheirPublishedConfigs) {
  const std::string folder = WEFT_SOURCE_DIR "/tests/import_logs/data/hf/";
  const auto facts = [](const LlmSpec& spec) {
    Json out = Json::object();
    for (const JsonMember& member : write_llm(spec).members) {
      static constexpr std::string_view kHead[] = {"weft", "kind", "name", "summary", "sources"};
      if (std::ranges::find(kHead, member.key) == std::end(kHead))
        out.set(member.key, member.value);
    }
    return to_text(out);
  };
  for (const char* name :
       {"llama-2-7b", "llama-2-70b", "llama-3-8b", "llama-3-70b", "llama-3.1-405b", "mixtral-8x7b",
        "qwen2-57b-a14b", "qwen3-30b-a3b", "deepseek-v3"}) {
    Configs configs(WEFT_SOURCE_DIR "/configs");
    Diagnostics out;
    const std::string path = folder + name + ".json";
    const LlmSpec published = read_llm(parse_json(configs.read(path).value(), path, out), {}, out);
    ASSERT_TRUE(out.ok()) << out.text();
    LlmSpec ours = llm(name);
    if (published.experts && ours.intermediate == 0) ours.intermediate = published.intermediate;
    EXPECT_EQ(facts(ours), facts(published)) << name;
  }
}

}  // namespace
}  // namespace weft
