// SPDX-License-Identifier: Apache-2.0
#include "sim/run/llm_hf.hpp"

#include <utility>

#include <fmt/format.h>

#include "sim/run/llm_hf_families.hpp"
#include "sim/run/llm_hf_keys.hpp"

namespace weft {
namespace {

const HfFamily* family_of(const Json& document) {
  const std::string type = hf_type(document);
  for (const HfFamily& family : hf_families()) {
    if (type == family.type || type == family.architecture) return &family;
  }
  return nullptr;
}

std::string known_types() {
  std::string out;
  std::string_view last;
  for (const HfFamily& family : hf_families()) {
    if (family.type != last) out += fmt::format("{}{}", out.empty() ? "" : ", ", family.type);
    last = family.type;
  }
  return out;
}

// Which layers have a window, where the file lists them.
void check_layer_types(const HfConfig& c, const LlmSpec& m) {
  const Json* list = c.find_json("layer_types");
  if (list == nullptr || !list->is_array() || !m.pattern.empty()) return;
  if (m.window_every < 1) return;  // out of its range, which is told of every key
  bool same = std::ssize(list->items) == m.layers;
  for (std::int64_t i = 0; same && i < m.layers; ++i) {
    const bool windowed = m.window && (m.window_every == 1 || (i + 1) % m.window_every != 0);
    same = windowed == (list->items[static_cast<std::size_t>(i)].text != "full_attention");
  }
  if (!same)
    c.error("layer_types", "other layers have a window than in the models of this family",
            "describe the model as kind llm, see configs/llms");
}

void warn_of_unread(const Json& document, const HfFamily& family, const std::string& pointer,
                    const HfConfig::Names& read, Diagnostics& out) {
  const std::vector<const JsonMember*> unread = hf_unread(document, family.type, read);
  if (unread.empty()) return;
  std::string names;
  for (std::size_t i = 0; i < unread.size() && i < 8; ++i)
    names += fmt::format("{}\"{}\"", names.empty() ? "" : ", ", unread[i]->key);
  if (unread.size() > 8) names += fmt::format(" and {} more", unread.size() - 8);
  out.warning(unread.front()->place, pointer + std::string(hf_layers_pointer(document)),
              fmt::format("not read: {}", names),
              "a model whose layers it changes is counted wrong: describe it as kind llm");
}

}  // namespace

bool is_hf_config(const Json& document) {
  return document.find("model_type") != nullptr || document.find("architectures") != nullptr;
}

std::string unknown_in_hf_config(const Json& document) {
  const HfFamily* family = family_of(document);
  if (family == nullptr && hf_type(document).empty()) return "no name of a family of models";
  if (family == nullptr)
    return fmt::format("the layers of \"{}\" are not known here", hf_type(document));
  const std::vector<HfProblem> problems = hf_contradictions(document, family->type);
  if (problems.empty()) return {};
  return fmt::format("{}: {}", problems.front().pointer, problems.front().fact);
}

LlmSpec read_hf_config(const Json& document, const std::string& pointer, Diagnostics& out) {
  LlmSpec spec;
  spec.kind = "llm";
  spec.place = document.place;
  spec.pointer = pointer;
  const HfFamily* family = family_of(document);
  if (family == nullptr) {
    const Json* type = document.find("model_type");
    out.error(type != nullptr ? type->place : document.place,
              pointer + (type != nullptr ? "/model_type" : "/architectures"),
              unknown_in_hf_config(document),
              "known: " + known_types() + "; or describe the model as kind llm, see configs/llms");
    return spec;
  }
  const std::size_t before = out.error_count();
  for (HfProblem& problem : hf_contradictions(document, family->type))
    out.error(problem.place, pointer + problem.pointer, std::move(problem.fact),
              std::move(problem.cure));
  HfConfig::Names read;
  const HfConfig config(hf_layers(document), pointer + std::string(hf_layers_pointer(document)),
                        read, out);
  family->read(config, spec);
  if (out.error_count() == before) check_layer_types(config, spec);
  if (out.error_count() == before) warn_of_unread(document, *family, pointer, read, out);
  spec.summary = hf_type(document) + ", from its config.json";
  spec.sources[""] = "datasheet: config.json of the model";
  return spec;
}

}  // namespace weft
