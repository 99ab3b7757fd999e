// SPDX-License-Identifier: Apache-2.0
// A parallel plan on a number of GPUs: whether it is legal, which rank is which, and which layers lie on which stage.
//
// The rules are those of the frameworks that run such plans (Megatron-LM, DeepSpeed, PyTorch FSDP), so that what weft accepts
// can be started. Where they differ the looser one counts: layers that do not divide by the stages go to the first stages, as
// torchtitan does; heads of keys and values that are fewer than tp are copied.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "models/llm/architecture.hpp"
#include "sim/core/diagnostics.hpp"
#include "sim/run/training_spec.hpp"

namespace weft {

// Reports every broken rule at its key with the nearest legal values; fills in dp. `spec.gpus` is the number of GPUs.
void check_plan(const Architecture& model, TrainingSpec& spec, Diagnostics& out);
// The same without words, for searches: true when legal, with dp filled in.
bool legal_plan(const Architecture& model, TrainingSpec& spec);

// Of one sequence: what a decoder behind an encoder writes, and all of it without one.
std::int64_t decoder_tokens(const Architecture& model, const TrainingSpec& spec);
std::int64_t micro_batches(const TrainingSpec& spec);  // per replica and step
std::int64_t expert_replicas(const PlanSpec& plan);  // ranks of a stage that hold the same experts

// Ranks as Megatron lays them out: tp fastest, then cp, dp, pp ("tp", "cp", "dp", "pp" is the default order, fastest first).
// Experts divide the ranks of a stage anew, in rank order: etp fastest, then ep, then their replicas.
class RankLayout {
 public:
  RankLayout(const PlanSpec& plan, std::vector<std::string> order = {"tp", "cp", "dp", "pp"});
  struct At {
    std::int64_t tp = 0, cp = 0, dp = 0, pp = 0;
    bool operator==(const At&) const = default;
  };
  std::int64_t rank(At at) const;
  At at(std::int64_t rank) const;
  std::int64_t size() const;
  // Members of one group in the order of its dimension.
  std::vector<std::int64_t> tp_group(At at) const;
  std::vector<std::int64_t> cp_group(At at) const;
  std::vector<std::int64_t> dp_group(At at,
                                     bool with_cp) const;  // over which gradients are reduced
  std::vector<std::int64_t> pp_group(At at) const;
  std::vector<std::int64_t> etp_group(At at) const;
  std::vector<std::int64_t> ep_group(At at) const;
  std::vector<std::int64_t> edp_group(At at) const;  // replicas of the same experts

 private:
  enum Dimension : std::size_t { kTp, kCp, kDp, kPp, kCount };
  using Index = std::array<std::int64_t, kCount>;
  // Position among the ranks of its stage, in rank order, and back.
  std::int64_t inside(At at) const;
  std::int64_t from_inside(std::int64_t position, std::int64_t pp) const;
  std::vector<std::int64_t> expert_group(At at, std::int64_t stride, std::int64_t count) const;

  Index size_{}, stride_{};
  std::array<Dimension, kCount> order_{};  // fastest first
  std::int64_t etp_ = 1, ep_ = 1;
};

// Layers of one chunk of one stage.
struct Chunk {
  std::int64_t first = 0, count = 0;
  bool embeds() const { return embedding || joins; }
  bool embedding = false, loss = false;
  bool joins = false;  // begins a decoder behind an encoder, which embeds its tokens too
  bool operator==(const Chunk&) const = default;
};
// [stage][chunk], chunk c of stage s follows chunk c of stage s-1; chunk 0 of stage 0 has the embedding. DualPipe: chunk 0
// of stage s holds the layers of stage s, chunk 1 those of stage pp-1-s.
using StageLayout = std::vector<std::vector<Chunk>>;
StageLayout stage_layout(const Architecture& model, const PlanSpec& plan, Diagnostics& out);

// Stages that hold a copy of the embedding, whose gradients they add up: the first, that of a tied output, that which begins a
// decoder behind an encoder.
std::vector<std::int64_t> embedding_stages(const Architecture& model, const StageLayout& layout);

// Layers that are alike, in the order of the first of each kind.
struct LayerCount {
  LayerKind kind;
  std::int64_t count = 0;
};
std::vector<LayerCount> count_layers(const Architecture& model, const std::vector<Chunk>& chunks);

}  // namespace weft
