// SPDX-License-Identifier: Apache-2.0
// A parallel plan on a number of GPUs: whether it is legal, which rank is which, and which layers lie on which stage.
#pragma once

#include <cstdint>
#include <vector>

#include "models/llm/architecture.hpp"
#include "sim/core/diagnostics.hpp"
#include "sim/run/training_spec.hpp"

namespace weft {

// Reports every broken rule at its key with the nearest legal values; fills in dp. `spec.gpus` is the number of GPUs.
void check_plan(const Architecture& model, TrainingSpec& spec, Diagnostics& out);

std::int64_t micro_batches(const TrainingSpec& spec);  // per replica and step

// Ranks as Megatron lays them out: tp fastest, then cp, dp, pp ("tp", "cp", "dp", "pp" is the default order, fastest first).
// ep and its replicas split dp x cp.
class RankLayout {
 public:
  RankLayout(const PlanSpec& plan, std::vector<std::string> order = {"tp", "cp", "dp", "pp"});
  struct At {
    std::int64_t tp = 0, cp = 0, dp = 0, pp = 0;
  };
  std::int64_t rank(At at) const;
  std::int64_t size() const;
  // Members of one group in the order of its dimension.
  std::vector<std::int64_t> tp_group(At at) const;
  std::vector<std::int64_t> cp_group(At at) const;
  std::vector<std::int64_t> dp_group(At at,
                                     bool with_cp) const;  // over which gradients are reduced
  std::vector<std::int64_t> ep_group(At at) const;
  std::vector<std::int64_t> edp_group(At at) const;  // replicas of the same experts
};

// Layers of one chunk of one stage.
struct Chunk {
  std::int64_t first = 0, count = 0;
  bool embedding = false, loss = false;
};
// [stage][chunk], chunk c of stage s follows chunk c of stage s-1; chunk 0 of stage 0 has the embedding.
using StageLayout = std::vector<std::vector<Chunk>>;
StageLayout stage_layout(const Architecture& model, const PlanSpec& plan, Diagnostics& out);

}  // namespace weft
