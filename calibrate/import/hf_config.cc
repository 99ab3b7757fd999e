// SPDX-License-Identifier: Apache-2.0
#include "calibrate/import/hf_config.hpp"

#include <string>

#include <fmt/format.h>

#include "models/llm/architecture.hpp"
#include "sim/run/llm_hf.hpp"

namespace weft {
namespace {

using Kind = ImportNote::Kind;

Json whole(double value) {
  constexpr double kExact = 9007199254740992.0;
  return value < kExact ? Json(static_cast<std::int64_t>(value)) : Json{};
}

// Copies the first of `keys` that holds a count or a text.
void copy(const Json& from, std::initializer_list<std::string_view> keys, Json& facts,
          std::string_view name) {
  for (const std::string_view key : keys) {
    const Json* value = from.find(key);
    if (value == nullptr || (value->kind != Json::Kind::integer && !value->is_string())) continue;
    facts.set(name, *value);
    return;
  }
}

void describe(const Architecture& model, Json& facts) {
  const LlmSpec& spec = model.spec();
  facts.set("layers", spec.layers);
  if (model.has_encoder()) facts.set("encoder_layers", spec.encoder_layers);
  facts.set("hidden", spec.hidden);
  facts.set("heads", spec.heads);
  facts.set("kv_heads", model.kv_heads());
  facts.set("head_dim", model.head_dim());
  facts.set("vocabulary", spec.vocabulary);
  if (spec.context) facts.set("context", *spec.context);
  if (spec.experts) {
    facts.set("experts", spec.experts->count);
    facts.set("experts_per_token", spec.experts->top_k);
  }
}

// A family whose layers are not known: what every decoder has under a usual key.
void describe_unknown(const Json& json, Json& facts) {
  copy(json, {"num_hidden_layers", "n_layer"}, facts, "layers");
  copy(json, {"hidden_size", "n_embd"}, facts, "hidden");
  copy(json, {"num_attention_heads", "n_head"}, facts, "heads");
  copy(json, {"num_key_value_heads"}, facts, "kv_heads");
  copy(json, {"vocab_size"}, facts, "vocabulary");
  for (const std::string_view key : {"parameters", "active_parameters", "kv_bytes_per_token"})
    facts.set(key, Json{});
}

Imported import_hf_config(std::string_view text, const std::string& file,
                          const ImportOptions& options, Diagnostics& diagnostics) {
  Imported imported;
  imported.kind = "hf-config";
  const Json json = parse_json(text, file, diagnostics);
  if (!diagnostics.ok()) return imported;
  Json& facts = imported.facts = Json::object();
  copy(json, {"model_type"}, facts, "model_type");
  copy(json, {"torch_dtype", "dtype"}, facts, "dtype");
  if (!is_hf_config(json)) {
    diagnostics.error(json.place, {}, "neither \"model_type\" nor \"architectures\" is there",
                      "give the config.json of a language model with a decoder");
    return imported;
  }
  if (const std::string unknown = unknown_in_hf_config(json); !unknown.empty()) {
    describe_unknown(json, facts);
    imported.note(Kind::unknown, "how many parameters: " + unknown);
    imported.open_questions.push_back("describe the model by hand, see configs/llms");
    return imported;
  }
  LlmSpec spec = read_llm(json, {}, diagnostics);
  if (!diagnostics.ok()) return imported;
  spec.name = options.name;
  const Architecture model(spec);
  describe(model, facts);
  constexpr double kBytes = 2;
  const double cache = model.kv_bytes_per_token(kBytes);
  facts.set("parameters", whole(model.total()));
  facts.set("active_parameters", whole(model.active()));
  facts.set("kv_bytes_per_token", whole(cache));
  if (model.has_encoder())
    facts.set("cross_kv_bytes_per_token", whole(model.cross_kv_bytes_per_token(kBytes)));
  imported.note(Kind::read, fmt::format("{:.4g} billion parameters, {:.4g} billion per token",
                                        model.total() / 1e9, model.active() / 1e9));
  imported.note(Kind::read, fmt::format("{:.0f} B of keys and values per token at 16 bit", cache));
  imported.llm = write_llm(spec);
  return imported;
}

}  // namespace

extern const Importer kHfConfigImporter;
const Importer kHfConfigImporter{"hf-config", "config.json of a language model",
                                 "huggingface.co/docs/transformers, model configurations", "",
                                 import_hf_config};

}  // namespace weft
