// SPDX-License-Identifier: Apache-2.0
#include "tools/cli/explain_llm.hpp"

#include <algorithm>
#include <vector>

#include <fmt/format.h>

#include "models/llm/flops.hpp"

namespace weft {
namespace {

constexpr double kBytes = 2;              // of an element of the cache
constexpr std::int64_t kSequence = 4096;  // for FLOPs, unless the model's longest is shorter

std::string name_of(LayerKind kind) {
  std::string out = kind.mixer == Mixer::attention ? "attention"
                    : kind.mixer == Mixer::mamba   ? "Mamba"
                                                   : "";
  if (kind.windowed) out += " with a window";
  if (kind.encoder) out = "encoder: " + out;
  if (kind.cross) out = "decoder: " + out + " + attention to the encoder";
  if (kind.first) out = "first of the " + out;
  if (kind.feed_forward == FeedForward::none) return out;
  if (!out.empty()) out += " + ";
  return out + (kind.feed_forward == FeedForward::experts ? "experts" : "MLP");
}

struct Group {
  LayerKind kind;
  std::int64_t count = 0;
};

std::vector<Group> groups_of(const Architecture& model) {
  std::vector<Group> out;
  for (std::int64_t i = 0; i < model.layers(); ++i) {
    auto found = std::ranges::find(out, model.layer(i), &Group::kind);
    if (found == out.end()) found = out.insert(out.end(), {model.layer(i), 0});
    ++found->count;
  }
  return out;
}

// 13,015,864,320 as "13.02 billion".
std::string amount(double value) {
  return value >= 1e12  ? fmt::format("{:.4g} trillion", value / 1e12)
         : value >= 1e9 ? fmt::format("{:.4g} billion", value / 1e9)
                        : fmt::format("{:.4g} million", value / 1e6);
}

Json whole(double value) { return Json(static_cast<std::int64_t>(value)); }

}  // namespace

std::string explain_llm(const Json& document, Diagnostics& diagnostics, Json& entry) {
  const std::size_t before = diagnostics.error_count();
  LlmSpec spec = read_llm(document, {}, diagnostics);
  if (diagnostics.error_count() != before) return {};
  const Architecture model(std::move(spec));
  // Behind an encoder a sequence is read and another as long is written.
  const double ends = model.has_encoder() ? 2 : 1;
  const std::int64_t sequence = std::min(model.spec().context.value_or(kSequence), kSequence);
  Json& out = entry.set("llm", Json::object());
  out.set("parameters", whole(model.total()));
  out.set("active_parameters", whole(model.active()));
  const double read = model.encoder_parameters();
  if (model.has_encoder()) out.set("encoder_parameters", whole(read));
  std::string text =
      model.has_encoder()
          ? fmt::format("  parameters: {}, {} per token read, {} per token written\n",
                        amount(model.total()), amount(read), amount(model.total() - read))
          : fmt::format("  parameters: {}, {} per token\n", amount(model.total()),
                        amount(model.active()));
  Json& layers = out.set("layers", Json::array());
  for (const Group& group : groups_of(model)) {
    const LayerParameters parameters = model.parameters(group.kind);
    Json& layer = layers.items.emplace_back(Json::object());
    layer.set("kind", name_of(group.kind));
    layer.set("count", group.count);
    layer.set("parameters", whole(parameters.total()));
    layer.set("active_parameters", whole(parameters.active()));
    text += fmt::format("  layers: {} of {}, {} each\n", group.count, name_of(group.kind),
                        amount(parameters.total()));
  }
  out.set("kv_bytes_per_token", whole(model.kv_bytes_per_token(kBytes)));
  text += fmt::format("  cache: {:.0f} B per token at 16 bit\n", model.kv_bytes_per_token(kBytes));
  if (model.has_encoder()) {
    const double kept = model.cross_kv_bytes_per_token(kBytes);
    out.set("cross_kv_bytes_per_token", whole(kept));
    text += fmt::format("  cache of the input: {:.0f} B per token that the encoder read\n", kept);
  }
  Json& flops = out.set("training_flops_per_token", Json::object());
  flops.set("sequence", sequence);
  text += fmt::format("  training at {} tokens:", sequence);
  for (const auto& [convention, name] : enum_names(FlopsConvention{})) {
    const double per_token =
        training_flops(model, convention, sequence, 1, true) / real(sequence) / ends;
    flops.set(name, per_token);
    text += fmt::format("{} {:.4g} GFLOP per token ({})",
                        convention == FlopsConvention::palm ? "" : ",", per_token / 1e9, name);
  }
  return text + "\n";
}

}  // namespace weft
