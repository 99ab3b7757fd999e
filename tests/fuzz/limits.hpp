// SPDX-License-Identifier: Apache-2.0
// Inputs that are large on purpose are no finding: a fuzzer leaves them out by what they say, before anything is built.
#pragma once

#include "sim/core/text.hpp"
#include "sim/fabric/spec.hpp"

namespace weft::fuzz {

struct FabricSize {
  std::size_t gpus = 0, nodes = 0, pairs = 0;
};

inline FabricSize size_of(const FabricSpec& spec) {
  FabricSize out;
  for (const ServerGroup& group : spec.groups) {
    const auto count = static_cast<std::size_t>(group.count);
    for (const NodeEntry& node : group.server.nodes) {
      const auto names = expand_range(node.id);
      const std::size_t n = names ? names->size() : 0;
      out.nodes += count * n;
      if (node.kind == NodeKind::gpu) out.gpus += count * n;
    }
    for (const LinkEntry& link : group.server.links) {
      const auto a = expand_range(link.a), b = expand_range(link.b);
      if (a && b) out.pairs += count * a->size() * (link.pair == Pairing::all ? b->size() : 1);
    }
  }
  return out;
}

}  // namespace weft::fuzz
