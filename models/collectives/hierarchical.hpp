// SPDX-License-Identifier: Apache-2.0
// The parts of hierarchical.cc: one builder per family of kinds.
#pragma once

#include "models/collectives/parts.hpp"

namespace weft::collectives {

// all_reduce, reduce_scatter, all_gather.
Schedule build_hierarchical_vector(const CollectiveRequest& request, const GroupShape& shape);
// broadcast, reduce.
Schedule build_hierarchical_rooted(const CollectiveRequest& request, const GroupShape& shape);
Schedule build_hierarchical_all_to_all(const CollectiveRequest& request, const GroupShape& shape);

}  // namespace weft::collectives
