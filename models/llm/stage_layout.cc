// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <numeric>

#include <fmt/format.h>

#include "models/llm/plan.hpp"

namespace weft {
namespace {

// Layers of each chunk in the order of the model. What does not divide goes to the first ones.
std::vector<std::int64_t> divide(std::int64_t layers, std::int64_t chunks) {
  std::vector<std::int64_t> out(static_cast<std::size_t>(chunks), layers / chunks);
  for (std::int64_t i = 0; i < layers % chunks; ++i) ++out[static_cast<std::size_t>(i)];
  return out;
}

class LayoutReader {
 public:
  LayoutReader(const Architecture& model, const PlanSpec& plan, Diagnostics& out)
      : layers_(model.layers()),
        plan_(plan),
        chunks_(plan.schedule == PipelineSchedule::dualpipe ? 1 : plan.vpp),
        out_(out) {}

  // Layers of chunk c of stage s at c * pp + s: the order of the model. Empty when the layout cannot be read.
  std::vector<std::int64_t> counts() const {
    const Json& layout = plan_.layout;
    const std::int64_t total = plan_.pp * chunks_;
    if (layout.kind == Json::Kind::null || (layout.is_string() && layout.text == "even"))
      return total <= layers_ ? divide(layers_, total) : too_many(layers_);
    if (layout.is_string() && layout.text == "with-ends") {
      if (total > layers_ + 2) return too_many(layers_ + 2);
      std::vector<std::int64_t> counts = divide(layers_ + 2, total);
      --counts.front();
      --counts.back();
      return counts;
    }
    if (layout.is_array()) return listed();
    out_.error(layout.place, plan_.pointer + "/layout", "not a layout of layers over stages",
               R"("even", "with-ends", or layers per stage as a list)");
    return {};
  }

 private:
  std::vector<std::int64_t> too_many(std::int64_t most) const {
    out_.error(plan_.place, plan_.pointer + "/pp",
               fmt::format("{} of layers, the model has {} layers",
                           chunks_ == 1 ? fmt::format("{} stages", plan_.pp)
                                        : fmt::format("{} stages of {} chunks", plan_.pp, chunks_),
                           layers_),
               chunks_ == 1 ? fmt::format("at most \"pp\": {}", most)
                            : fmt::format("\"pp\" times \"vpp\" of at most {}", most));
    return {};
  }

  std::vector<std::int64_t> listed() const {
    const Json& layout = plan_.layout;
    const std::string pointer = plan_.pointer + "/layout";
    const std::string shape =
        chunks_ == 1
            ? fmt::format("a list of {} numbers", plan_.pp)
            : fmt::format("a list of {} lists of {} numbers, a list per stage", plan_.pp, chunks_);
    if (std::ssize(layout.items) != plan_.pp) {
      out_.error(layout.place, pointer,
                 fmt::format("{} entries for {} stages", layout.items.size(), plan_.pp), shape);
      return {};
    }
    std::vector<std::int64_t> counts(static_cast<std::size_t>(plan_.pp * chunks_));
    std::int64_t sum = 0;
    bool good = true;
    for (std::int64_t s = 0; s < plan_.pp; ++s) {
      const Json& stage = layout.items[static_cast<std::size_t>(s)];
      const bool list = stage.is_array();
      if (list ? std::ssize(stage.items) != chunks_ : chunks_ != 1) {
        out_.error(stage.place, fmt::format("{}/{}", pointer, s),
                   "not the layers of each chunk of the stage", shape);
        good = false;
        continue;
      }
      for (std::int64_t c = 0; c < chunks_; ++c) {
        const Json& value = list ? stage.items[static_cast<std::size_t>(c)] : stage;
        if (value.kind != Json::Kind::integer || value.integer < 0 || value.integer > layers_) {
          out_.error(value.place, fmt::format("{}/{}", pointer, s),
                     fmt::format("not a number of layers from 0 to {}", layers_), shape);
          good = false;
          continue;
        }
        counts[static_cast<std::size_t>(c * plan_.pp + s)] = value.integer;
        sum += value.integer;
      }
    }
    if (good && sum != layers_) {
      out_.error(layout.place, pointer,
                 fmt::format("the stages hold {} layers, the model has {}", sum, layers_),
                 fmt::format("{} {} somewhere", sum < layers_ ? "add" : "take away",
                             sum < layers_ ? layers_ - sum : sum - layers_));
      good = false;
    }
    return good ? counts : std::vector<std::int64_t>{};
  }

  std::int64_t layers_;
  const PlanSpec& plan_;
  std::int64_t chunks_;
  Diagnostics& out_;
};

}  // namespace

StageLayout stage_layout(const Architecture& model, const PlanSpec& plan, Diagnostics& out) {
  const std::vector<std::int64_t> counts = LayoutReader(model, plan, out).counts();
  if (counts.empty()) return {};
  const auto stages = static_cast<std::size_t>(plan.pp);
  StageLayout layout(stages);
  std::int64_t first = 0;
  for (std::size_t i = 0; i < counts.size(); ++i) {
    const std::int64_t join = model.spec().encoder_layers;
    const bool joins = join > 0 && first <= join && join < first + counts[i];
    layout[i % stages].push_back({first, counts[i], i == 0, i + 1 == counts.size(), joins});
    first += counts[i];
  }
  if (plan.schedule != PipelineSchedule::dualpipe) return layout;
  StageLayout both(stages);
  for (std::size_t s = 0; s < stages; ++s)
    both[s] = {layout[s].front(), layout[stages - 1 - s].front()};
  return both;
}

std::vector<std::int64_t> embedding_stages(const Architecture& model, const StageLayout& layout) {
  std::vector<std::int64_t> out;
  for (std::size_t s = 0; s < layout.size(); ++s) {
    const bool tied = model.spec().tied && s + 1 == layout.size();
    if (s == 0 || tied || std::ranges::any_of(layout[s], &Chunk::joins))
      out.push_back(static_cast<std::int64_t>(s));
  }
  return out;
}

std::vector<LayerCount> count_layers(const Architecture& model, const std::vector<Chunk>& chunks) {
  std::vector<LayerCount> out;
  for (const Chunk& chunk : chunks) {
    for (std::int64_t i = chunk.first; i < chunk.first + chunk.count; ++i) {
      auto found = std::ranges::find(out, model.layer(i), &LayerCount::kind);
      if (found == out.end()) found = out.insert(out.end(), {model.layer(i), 0});
      ++found->count;
    }
  }
  return out;
}

}  // namespace weft
