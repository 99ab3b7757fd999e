// SPDX-License-Identifier: Apache-2.0
// NCCL's environment variables as the search reads them.
#pragma once

#include <span>
#include <string_view>

#include "models/nccl/graph.hpp"
#include "models/nccl/paths.hpp"
#include "models/nccl/search.hpp"
#include "sim/core/diagnostics.hpp"

namespace weft::nccl {

struct Variables {
  Policy policy;
  SearchSettings search;
  std::optional<std::int64_t> min_channels, max_channels, nvls_channels, min_p2p, max_p2p, net_peer,
      collnet_nodes;
  bool nvls = true, collnet = false, mnnvl = true;
};

// Values NCCL could not read are reported under their variable's name.
Variables read_variables(const NcclEnvironment& environment, Diagnostics& out);
// Throws InputError that lists them all.
Variables read_variables(const NcclEnvironment& environment);

// Every variable that changes something here, in the order of the alphabet.
std::span<const std::string_view> variable_names();

}  // namespace weft::nccl
