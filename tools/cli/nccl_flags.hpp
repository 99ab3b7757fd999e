// SPDX-License-Identifier: Apache-2.0
// What the verbs that ask about NCCL share: the flags that say which NCCL, on how many GPUs, started how.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "models/nccl/predict.hpp"
#include "sim/core/diagnostics.hpp"

namespace CLI {
class App;
}

namespace weft {

struct NcclFlags {
  std::optional<std::int64_t> nodes, per_node;
  std::string algorithm, protocol, release, harness;
  std::vector<std::string> variables;  // NAME=VALUE
};

// --nodes --gpus-per-node --algo --proto --nccl --env --harness. The texts say what holds when a flag is left out.
void add_nccl_flags(CLI::App& app, NcclFlags& flags, const std::string& release_default,
                    const std::string& harness_text);

// Of --nccl; nullopt when it was left out or, with the problem reported, is not modelled.
std::optional<NcclVersion> read_nccl_release(const std::string& text, Diagnostics& diagnostics);

// Of --env, --algo and --proto, which win over variables; told when the two contradict each other. What --algo names is checked
// by who runs it, as not every GPU is driven by NCCL.
void read_nccl_choices(const NcclFlags& flags, NcclSetup& setup, Diagnostics& diagnostics);

// Of --env; what is not NAME=VALUE, and what is wrong with a name or a value, is reported: names that NCCL has but weft does not
// model are warnings.
NcclEnvironment read_nccl_variables(std::span<const std::string> variables,
                                    Diagnostics& diagnostics);

// The first `most` GPUs in rank order, no more than `per_node` of each server.
std::vector<NodeId> first_gpus(const Fabric& fabric, std::optional<std::int64_t> per_node,
                               std::optional<std::int64_t> most);

}  // namespace weft
