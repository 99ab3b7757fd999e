// SPDX-License-Identifier: Apache-2.0
// NCCL's environment variables as the search reads them.
#pragma once

#include "models/nccl/graph.hpp"
#include "models/nccl/paths.hpp"
#include "models/nccl/search.hpp"

namespace weft::nccl {

struct Variables {
  Policy policy;
  SearchSettings search;
  std::optional<std::int64_t> min_channels, max_channels, nvls_channels, min_p2p, max_p2p, net_peer,
      collnet_nodes;
  bool nvls = true, collnet = false, mnnvl = true;
};

// Throws InputError that lists every value NCCL could not read.
Variables read_variables(const NcclEnvironment& environment);

}  // namespace weft::nccl
