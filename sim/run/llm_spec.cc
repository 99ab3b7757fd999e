// SPDX-License-Identifier: Apache-2.0
#include "sim/run/llm_spec.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "sim/run/llm_hf.hpp"
#include "sim/run/llm_hf_keys.hpp"

namespace weft {
namespace {

constexpr std::string_view kLetters = "M*-E";

// Rules between keys. Those of a config.json have other names: see hf_problem.
class Rules {
 public:
  Rules(const LlmSpec& spec, const Json& document, Diagnostics& out)
      : m_(spec), document_(document), own_(!is_hf_config(document)), out_(out) {}

  void check() {
    heads();
    experts();
    pattern();
    if (m_.positions == Positions::learned && !m_.context)
      error("positions", "learned positions need a longest sequence", "add \"context\"");
    if (needs_dense() && m_.intermediate == 0)
      error("intermediate", "there are layers with a dense MLP, whose inner width is missing",
            "add \"intermediate\"");
    if (m_.window_every > 1 && !m_.window)
      error("window_every", "there is no window", "add \"window\"");
    relative();
    norms();
    if (m_.encoder_layers > 0) encoder();
    if (m_.sentence_head && !m_.masked)
      error("sentence_head", "the model fills no gaps", "add \"masked\": true");
    if (m_.segments && !m_.masked)
      error("segments", "the model fills no gaps", "add \"masked\": true");
  }

 private:
  void error(std::string_view key, std::string fact, std::string cure = {}) {
    if (!own_) {
      HfProblem at = hf_problem(document_, key);
      return out_.error(at.place, m_.pointer + at.pointer, std::move(fact), std::move(at.cure));
    }
    const Json* value = document_.find(key);
    out_.error(value != nullptr ? value->place : m_.place,
               value != nullptr ? m_.pointer + "/" + std::string(key) : m_.pointer, std::move(fact),
               std::move(cure));
  }

  void relative() {
    const bool has = m_.positions == Positions::relative;
    if (has && m_.position_buckets == 0)
      error("positions", "relative positions need ranges of distances",
            "add \"position_buckets\", e.g. 32");
    if (!has && m_.position_buckets > 0)
      error("position_buckets", "positions are not relative", "add \"positions\": \"relative\"");
    if (!has && m_.position_biases_everywhere)
      error("position_biases_everywhere", "positions are not relative",
            "add \"positions\": \"relative\"");
    if (has && !m_.pattern.empty())
      error("positions", "not yet: relative positions of a hybrid", "leave \"pattern\" out");
  }

  void norms() {
    if (!m_.norms) return;
    const std::int64_t least = m_.parallel_block ? 1 : 2;
    if (*m_.norms < least)
      error("norms", fmt::format("{} in a layer that has {} at least", *m_.norms, least),
            "leave it out");
    if (!m_.pattern.empty())
      error("norms", "each layer of a hybrid has one", "leave it out, or \"pattern\"");
  }

  // Its layers and those behind it are attention and an MLP.
  void encoder() {
    const auto alone = [&](bool unset, std::string_view key) {
      if (!unset)
        error(key, "not yet: in a model with an encoder", "leave it out, or \"encoder_layers\"");
    };
    alone(!m_.experts, "experts");
    alone(!m_.latent, "latent");
    alone(!m_.mamba && m_.pattern.empty(), m_.mamba ? "mamba" : "pattern");
    alone(!m_.window, "window");
    alone(!m_.masked, "masked");
    alone(!m_.parallel_block, "parallel_block");
    alone(!m_.norms, "norms");
    alone(m_.prediction_layers == 0, "prediction_layers");
    alone(m_.positions != Positions::learned, "positions");
    alone(!m_.embedding_norm, "embedding_norm");
  }

  void heads() {
    const std::int64_t kv = m_.kv_heads.value_or(m_.heads);
    if (kv < 1 || m_.heads % kv != 0)
      error("kv_heads",
            fmt::format("{} heads of keys and values do not divide {} heads", kv, m_.heads));
    if (m_.latent) return;
    if (m_.head_dim ? *m_.head_dim < 1 : m_.hidden % m_.heads != 0)
      error("heads", fmt::format("{} heads do not divide a width of {}", m_.heads, m_.hidden),
            "add \"head_dim\"");
  }

  void experts() {
    if (!m_.experts) return;
    if (m_.experts->top_k > m_.experts->count)
      error("experts",
            fmt::format("{} experts per token of {}", m_.experts->top_k, m_.experts->count));
    if (m_.experts->dense_layers > m_.layers)
      error("experts", fmt::format("{} dense layers of {}", m_.experts->dense_layers, m_.layers));
    if (m_.experts->step < 1) error("experts", "a step of 0 layers");
  }

  void pattern() {
    if (m_.mamba && m_.pattern.empty())
      error("mamba", "nothing says which layers are Mamba's", "add \"pattern\"");
    if (m_.pattern.empty()) {
      if (!m_.prediction_pattern.empty())
        error("prediction_pattern", "the model is no hybrid", "add \"pattern\"");
      return;
    }
    if (static_cast<std::int64_t>(m_.pattern.size()) != m_.layers)
      error("pattern", fmt::format("{} letters for {} layers", m_.pattern.size(), m_.layers));
    letters("pattern", m_.pattern);
    letters("prediction_pattern", m_.prediction_pattern);
  }

  void letters(std::string_view key, const std::string& text) {
    const std::size_t odd = text.find_first_not_of(kLetters);
    if (odd != std::string::npos)
      error(key, fmt::format("letter {} is none of M, *, - and E", odd + 1));
    if (text.find('M') != std::string::npos && !m_.mamba) error(key, "M needs \"mamba\"");
    if (text.find('E') != std::string::npos && !m_.experts) error(key, "E needs \"experts\"");
  }

  bool needs_dense() const {
    if (!m_.pattern.empty())
      return (m_.pattern + m_.prediction_pattern).find('-') != std::string::npos;
    return !m_.experts || m_.experts->dense_layers > 0 || m_.experts->step > 1;
  }

  const LlmSpec& m_;
  const Json& document_;
  const bool own_;
  Diagnostics& out_;
};

// The ranges of our own form hold for a config.json too, whose keys have other names.
class Ranges {
 public:
  Ranges(const LlmSpec& spec, const Json& document, Diagnostics& out)
      : spec_(spec), document_(document), out_(out) {}

  template <class T, class... Constraints>
  void operator()([[maybe_unused]] std::string_view name, T& field, std::string_view,
                  Constraints... constraints) {
    (check(name, field, constraints), ...);
  }
  template <class T>
  requires Visitable<T>
  void operator()(std::string_view, std::optional<T>& field, std::string_view) {
    if (field) field->visit(*this);
  }

 private:
  template <class T, class Constraint>
  void check(std::string_view, const T&, Constraint) {}
  void check(std::string_view name, const std::optional<std::int64_t>& value, Range range) {
    if (value) check(name, *value, range);
  }
  void check(std::string_view name, std::int64_t value, Range range) {
    const auto v = static_cast<double>(value);
    if (v >= range.low && v <= range.high) return;
    const HfProblem at = hf_problem(document_, name);
    out_.error(at.place, spec_.pointer + at.pointer,
               fmt::format("{} is {}, not from {} to {}",
                           at.pointer.empty() ? name : at.pointer.substr(at.pointer.rfind('/') + 1),
                           value, range.low, range.high),
               at.cure);
  }

  const LlmSpec& spec_;
  const Json& document_;
  Diagnostics& out_;
};

bool is_zero(const Json& value) {
  return value.kind == Json::Kind::boolean ? !value.boolean
                                           : value.is_number() && value.number == 0;
}

// The defaults of an object within a model.
Json inner_defaults(std::string_view key) {
  if (key == "latent") return write_config(LatentAttention{});
  if (key == "experts") return write_config(ExpertsSpec{});
  if (key == "mamba") return write_config(MambaSpec{});
  return {};
}

bool is_same(const Json* a, const Json& b) { return a != nullptr && to_text(*a) == to_text(b); }

// What `json` says beyond `plain`. Objects within it are written whole, but for zeros that are defaults.
Json beyond(const Json& json, const Json& plain) {
  Json out = Json::object();
  for (const JsonMember& member : json.members) {
    if (is_same(plain.find(member.key), member.value)) continue;
    Json& value = out.set(member.key, member.value);
    const Json defaults = inner_defaults(member.key);
    std::erase_if(value.members, [&](const JsonMember& inner) {
      return is_zero(inner.value) && is_same(defaults.find(inner.key), inner.value);
    });
  }
  return out;
}

}  // namespace

LlmSpec read_llm(const Json& document, const std::string& pointer, Diagnostics& out) {
  LlmSpec spec;
  const std::size_t before = out.error_count();
  if (is_hf_config(document)) {
    spec = read_hf_config(document, pointer, out);
    if (out.error_count() == before) spec.visit(Ranges(spec, document, out));
  } else {
    read_config(document, pointer, spec, out);
    if (out.error_count() == before && !spec.kind.empty() && spec.kind != "llm")
      out.error(document.find("kind")->place, pointer + "/kind",
                fmt::format("a {} where an llm is needed", spec.kind), "see `weft list llms`");
  }
  if (out.error_count() == before) Rules(spec, document, out).check();
  return spec;
}

Json write_llm(const LlmSpec& spec) {
  Json out = Json::object();
  const Json written = write_config(spec);
  for (const std::string_view key : {"weft", "kind", "name", "summary"})
    out.set(key, *written.find(key));
  const Json body = beyond(written, write_config(LlmSpec{}));
  for (const JsonMember& member : body.members) {
    if (member.key != "sources") out.set(member.key, member.value);
  }
  out.set("sources", *written.find("sources"));
  return out;
}

}  // namespace weft
