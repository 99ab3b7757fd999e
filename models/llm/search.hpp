// SPDX-License-Identifier: Apache-2.0
// All legal plans of a model on so many GPUs, those that do not fit the memory left out, in the order of their estimated time.
//
// Enumerated: tp, cp, ep, etp, pp, vpp, the schedule, the layout of layers, micro_batch, recompute, and how states are sharded (none,
// ZeRO-1, ZeRO-2, FSDP with and without resharding); dp is what the GPUs leave. Left out because something listed is never
// worse: GPipe (1F1B holds less), ZeRO-3 (FSDP), tensor parallelism without sequence parallelism where the sequence divides.
// Bounds: tp within a server unless asked for; at least 512 tokens per context parallel rank; micro_batch up to 64; up to 16
// chunks per stage, in equal parts.
#pragma once

#include <cstdint>
#include <functional>
#include <set>
#include <string>
#include <vector>

#include "models/llm/broken_rules.hpp"
#include "models/llm/estimate.hpp"

namespace weft {

std::vector<std::int64_t> divisors(std::int64_t of, std::int64_t most);  // ascending

struct SearchLimits {
  std::int64_t gpus_per_server = 8;
  bool tp_across_servers = false;
  double memory_bytes = 0;      // of a GPU
  std::set<std::string> fixed;  // keys of the plan that stay as they are given
  std::size_t keep = 16;
  std::function<void(std::uint64_t evaluated)> progress;  // now and then
};

struct PlanCandidate {
  PlanSpec plan;
  StepEstimate time;
  double memory_bytes = 0;  // of the fullest GPU
};

struct SearchResult {
  std::vector<PlanCandidate> best;  // fastest first
  // The best of every schedule with every way of sharding, fastest first: an estimate that is off for one of these kinds as a
  // whole misleads only where kinds are compared.
  std::vector<PlanCandidate> kinds;
  // With time and memory computed; too large for the memory (time not computed); against a rule.
  std::uint64_t evaluated = 0, too_large = 0, illegal = 0;
  PlanCandidate smallest;  // the least memory of all; its time only when it fits
};

// `training` holds the model, seq, global_batch, gpus, what is fixed of the plan, and everything else.
SearchResult search_plans(const Architecture& model, const TrainingSpec& training,
                          const KernelTimes& kernels, CollectiveTimes& times,
                          const SearchLimits& limits);

// What keeps every plan from being legal, after a search that found none.
BrokenRules broken_rules(const Architecture& model, const TrainingSpec& training,
                         const SearchLimits& limits);

}  // namespace weft
