// SPDX-License-Identifier: Apache-2.0
#include "calibrate/import/hf_config.hpp"

#include <algorithm>
#include <initializer_list>
#include <optional>
#include <string>

#include <fmt/format.h>

namespace weft {
namespace {

using Kind = ImportNote::Kind;

// The families whose layers are known here. Others may share the keys and still have other layers.
struct Family {
  std::string_view name;
  bool qkv_bias = false, head_norms = false, routing_bias = false;
};
constexpr Family kFamilies[] = {{"llama"},
                                {"mistral"},
                                {"mixtral"},
                                {"qwen2", true},
                                {"qwen2_moe", true},
                                {"qwen3", false, true},
                                {"qwen3_moe", false, true},
                                {"deepseek_v2"},
                                {"deepseek_v3", false, false, true}};

constexpr std::int64_t kMost = 100'000'000;  // of any count in the file: products below stay exact

class Config {
 public:
  Config(const Json& json, Diagnostics& out) : json_(json), out_(out) {}

  // The first of `keys` that is there; null counts as absent.
  std::optional<std::int64_t> find(std::initializer_list<std::string_view> keys) {
    for (const std::string_view key : keys) {
      const Json* value = json_.find(key);
      if (value == nullptr || value->kind == Json::Kind::null) continue;
      if (value->kind == Json::Kind::integer && value->integer >= 0 && value->integer <= kMost)
        return value->integer;
      out_.error(value->place, "/" + std::string(key),
                 fmt::format("{} is no count from 0 to {}", key, kMost));
      return std::nullopt;
    }
    return std::nullopt;
  }
  std::int64_t required(std::string_view key) {
    const std::size_t before = out_.error_count();
    const auto value = find({key});
    if (value && *value > 0) return *value;
    if (out_.error_count() == before)
      out_.error(json_.place, {}, fmt::format("the key \"{}\" is missing or 0", key),
                 "give the config.json of a language model with a decoder");
    return 1;
  }
  bool flag(std::string_view key, bool otherwise) const {
    const Json* value = json_.find(key);
    return value != nullptr && value->kind == Json::Kind::boolean ? value->boolean : otherwise;
  }
  std::string text(std::initializer_list<std::string_view> keys) const {
    for (const std::string_view key : keys) {
      const Json* value = json_.find(key);
      if (value != nullptr && value->is_string()) return value->text;
    }
    return {};
  }
  bool has_items(std::string_view key) const {
    const Json* value = json_.find(key);
    return value != nullptr && !value->items.empty();
  }

 private:
  const Json& json_;
  Diagnostics& out_;
};

// Everything that is counted, in elements; double is exact up to 2^53 and cannot overflow.
struct Model {
  std::int64_t layers, hidden, heads, kv_heads, head_dim, vocabulary, intermediate;
  std::int64_t experts, experts_per_token, expert_size, shared_size, dense_layers, expert_step;
  std::int64_t q_rank, kv_rank, rope_dim, nope_dim, value_dim;
  bool tied, attention_bias;

  bool latent() const { return kv_rank > 0; }
};

Model model_of(Config& config) {
  Model m{};
  m.layers = config.required("num_hidden_layers");
  m.hidden = config.required("hidden_size");
  m.heads = config.required("num_attention_heads");
  m.vocabulary = config.required("vocab_size");
  m.kv_heads = config.find({"num_key_value_heads"}).value_or(m.heads);
  m.head_dim = config.find({"head_dim"}).value_or(m.hidden / m.heads);
  m.intermediate = config.required("intermediate_size");
  m.experts = config.find({"num_experts", "num_local_experts", "n_routed_experts"}).value_or(0);
  m.experts_per_token = config.find({"num_experts_per_tok"}).value_or(0);
  m.expert_size = config.find({"moe_intermediate_size"}).value_or(m.intermediate);
  m.shared_size = config.find({"shared_expert_intermediate_size"})
                      .value_or(config.find({"n_shared_experts"}).value_or(0) * m.expert_size);
  m.dense_layers = m.experts > 0 ? config.find({"first_k_dense_replace"}).value_or(0) : m.layers;
  m.expert_step = config.find({"decoder_sparse_step", "moe_layer_freq"}).value_or(1);
  m.q_rank = config.find({"q_lora_rank"}).value_or(0);
  m.kv_rank = config.find({"kv_lora_rank"}).value_or(0);
  m.rope_dim = config.find({"qk_rope_head_dim"}).value_or(0);
  m.nope_dim = config.find({"qk_nope_head_dim"}).value_or(0);
  m.value_dim = config.find({"v_head_dim"}).value_or(0);
  m.tied = config.flag("tie_word_embeddings", false);
  m.attention_bias = config.flag("attention_bias", false);
  return m;
}

double product(std::initializer_list<std::int64_t> factors) {
  double out = 1;
  for (const std::int64_t f : factors) out *= static_cast<double>(f);
  return out;
}

double attention_parameters(const Model& m, const Family& family) {
  if (m.latent()) {
    const std::int64_t query_dim = m.nope_dim + m.rope_dim;
    const double query = m.q_rank > 0 ? product({m.hidden, m.q_rank}) + product({m.q_rank}) +
                                            product({m.q_rank, m.heads, query_dim})
                                      : product({m.hidden, m.heads, query_dim});
    return query + product({m.hidden, m.kv_rank + m.rope_dim}) + product({m.kv_rank}) +
           product({m.kv_rank, m.heads, m.nope_dim + m.value_dim}) +
           product({m.heads, m.value_dim, m.hidden});
  }
  const double query = product({m.heads, m.head_dim}), keys = product({m.kv_heads, m.head_dim});
  const double hidden = product({m.hidden});
  double out = hidden * (2 * query + 2 * keys);
  if (family.qkv_bias || m.attention_bias) out += query + 2 * keys;
  if (m.attention_bias) out += hidden;  // of the output projection
  if (family.head_norms) out += 2 * product({m.head_dim});
  return out;
}

struct Counts {
  double total = 0, active = 0;
};

Counts parameters_of(const Model& m, const Family& family) {
  const double norms = product({2, m.hidden});
  const double attention = attention_parameters(m, family);
  const double dense = product({3, m.hidden, m.intermediate});
  const double expert = product({3, m.hidden, m.expert_size});
  const double shared = product({3, m.hidden, m.shared_size});
  double router = product({m.hidden, m.experts});
  if (family.routing_bias) router += product({m.experts});
  if (family.name == "qwen2_moe") router += product({m.hidden});  // gate of the shared expert
  const double embedding = product({m.vocabulary, m.hidden}) * (m.tied ? 1 : 2);
  Counts out;
  out.total = out.active = embedding + product({m.hidden});
  const double layers = product({m.layers}),
               dense_layers = product({std::min(m.dense_layers, m.layers)});
  const double expert_layers = layers - dense_layers;
  const double common =
      layers * (norms + attention) + dense_layers * dense + expert_layers * (router + shared);
  out.total += common + expert_layers * product({m.experts}) * expert;
  out.active += common + expert_layers * product({m.experts_per_token}) * expert;
  return out;
}

Json whole(double value) {
  constexpr double kExact = 9007199254740992.0;
  return value < kExact ? Json(static_cast<std::int64_t>(value)) : Json{};
}

Imported read_hf_config(std::string_view text, const std::string& file, const ImportOptions&,
                        Diagnostics& diagnostics) {
  Imported imported;
  imported.kind = "hf-config";
  const Json json = parse_json(text, file, diagnostics);
  if (!diagnostics.ok()) return imported;
  Config config(json, diagnostics);
  const Model m = model_of(config);
  const std::string type = config.text({"model_type"});
  Json& facts = imported.facts = Json::object();
  facts.set("model_type", type);
  facts.set("layers", m.layers);
  facts.set("hidden", m.hidden);
  facts.set("heads", m.heads);
  facts.set("kv_heads", m.kv_heads);
  facts.set("head_dim", m.head_dim);
  facts.set("vocabulary", m.vocabulary);
  facts.set("dtype", config.text({"torch_dtype", "dtype"}));
  if (const auto context = config.find({"max_position_embeddings"})) facts.set("context", *context);
  if (m.experts > 0) {
    facts.set("experts", m.experts);
    facts.set("experts_per_token", m.experts_per_token);
  }
  if (!diagnostics.ok()) return imported;
  const auto family = std::ranges::find(kFamilies, type, &Family::name);
  // Layers that mix dense and experts in other ways than "the first k are dense" are not counted.
  std::string unknown;
  if (family == std::end(kFamilies)) {
    unknown = fmt::format("the layers of \"{}\" are not known here", type);
  } else if (m.experts > 0 && (m.expert_step != 1 || config.has_items("mlp_only_layers"))) {
    unknown = "dense and expert layers alternate";
  } else if (config.flag("mlp_bias", false)) {
    unknown = "its MLP has biases";
  }
  if (!unknown.empty()) {
    imported.note(Kind::unknown, "how many parameters: " + unknown);
    for (const std::string_view key : {"parameters", "active_parameters", "kv_bytes_per_token"})
      facts.set(key, Json{});
    return imported;
  }
  const Counts counts = parameters_of(m, *family);
  constexpr std::int64_t kBytes = 2;
  const double cache = m.latent() ? product({m.kv_rank + m.rope_dim, m.layers, kBytes})
                                  : product({2, m.kv_heads, m.head_dim, m.layers, kBytes});
  facts.set("parameters", whole(counts.total));
  facts.set("active_parameters", whole(counts.active));
  facts.set("kv_bytes_per_token", whole(cache));
  imported.note(Kind::read, fmt::format("{}: {:.4g} billion parameters, {:.4g} billion per token",
                                        type, counts.total / 1e9, counts.active / 1e9));
  imported.note(Kind::read, fmt::format("{:.0f} B of keys and values per token at 16 bit", cache));
  imported.open_questions.push_back("a model is neither a machine nor a measurement");
  return imported;
}

}  // namespace

extern const Importer kHfConfigImporter;
const Importer kHfConfigImporter{"hf-config", "config.json of a language model",
                                 "huggingface.co/docs/transformers, model configurations", "",
                                 read_hf_config};

}  // namespace weft
