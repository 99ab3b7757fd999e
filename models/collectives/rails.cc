// SPDX-License-Identifier: Apache-2.0
#include "models/collectives/rails.hpp"

#include <algorithm>
#include <numeric>
#include <utility>

#include "sim/core/check.hpp"

namespace weft::collectives {

Rails::Rails(const GroupShape& shape)
    : servers(shape.servers), server_of(shape.ranks, kSwitch), index_of(shape.ranks) {
  if (servers.empty()) {
    servers.emplace_back(shape.ranks);
    std::iota(servers[0].begin(), servers[0].end(), 0U);
  }
  lanes = shape.ranks;
  std::size_t seen = 0;
  for (std::uint32_t m = 0; m < count(); ++m) {
    WEFT_CHECK(!servers[m].empty(), m);
    lanes = std::min(lanes, size_of(m));
    seen += servers[m].size();
    for (std::uint32_t j = 0; j < size_of(m); ++j) {
      const std::uint32_t rank = servers[m][j];
      WEFT_CHECK(rank < shape.ranks && server_of[rank] == kSwitch, rank, shape.ranks);
      server_of[rank] = m;
      index_of[rank] = j;
    }
  }
  WEFT_CHECK(seen == shape.ranks, seen, shape.ranks);
}

bool Rails::any_server_above(std::uint32_t ranks) const {
  return std::any_of(servers.begin(), servers.end(),
                     [ranks](const Ranks& server) { return server.size() > ranks; });
}

void Rails::promote(std::uint32_t rank) {
  const std::uint32_t m = server_of[rank], from = index_of[rank], to = from % lanes;
  std::swap(servers[m][from], servers[m][to]);
  index_of[servers[m][from]] = from;
  index_of[servers[m][to]] = to;
}

Channel counted(Channel::Form form, const std::vector<CountedEdge>& edges, Bytes size,
                std::uint64_t all) {
  std::uint64_t most = 1;
  for (const CountedEdge& edge : edges) most = std::max(most, edge.units);
  Channel channel{.form = form, .bytes = fraction(size, most, all)};
  channel.edges.reserve(edges.size());
  for (const CountedEdge& edge : edges) {
    channel.edges.push_back(
        {edge.src, edge.dst, static_cast<double>(edge.units) / static_cast<double>(most)});
  }
  return channel;
}

}  // namespace weft::collectives
