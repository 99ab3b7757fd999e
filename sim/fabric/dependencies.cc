// SPDX-License-Identifier: Apache-2.0
// Dependency cycles of a network under its routing; see analysis.hpp.
#include <algorithm>
#include <utility>

#include <boost/graph/compressed_sparse_row_graph.hpp>
#include <boost/graph/strong_components.hpp>

#include "sim/fabric/analysis.hpp"

namespace weft {
namespace {

std::uint32_t u32(std::size_t v) { return static_cast<std::uint32_t>(v); }

bool is_switch(const Fabric& fabric, NodeId id) {
  return fabric.node(id).kind == NodeKind::network_switch;
}

// The graph "link a must be able to hand on to link b", for links between switches. Links are numbered switch by switch.
class Dependencies {
 public:
  Dependencies(const Fabric& fabric, NetworkRoutes& routes) : routes_(routes), fabric_(fabric) {
    const auto switches = fabric_.switches();
    begin_.push_back(0);
    for (const NodeId s : switches) {
      bool hosts = false;
      for (const LinkId l : fabric_.out_links(s)) {
        if (is_switch(fabric_, fabric_.link(l).to)) {
          out_.push_back(l);
        } else {
          hosts = true;
        }
      }
      begin_.push_back(u32(out_.size()));
      if (hosts) leaves_.push_back(s);
    }
    head_.resize(out_.size());
    for (std::size_t i = 0; i < out_.size(); ++i) head_[i] = index(fabric_.link(out_[i]).to);
  }

  std::size_t steps() const { return leaves_.size() * std::max<std::size_t>(1, out_.size()); }

  // True when every way first climbs and then descends the levels: then there is no cycle.
  bool up_then_down() {
    for (const NodeId s : fabric_.switches()) {
      for (std::uint32_t i = begin_[index(s)]; i < begin_[index(s) + 1]; ++i) {
        if (level(index(s)) == level(head_[i])) return false;
      }
    }
    bool valley = false;
    for (const NodeId leaf : leaves_) {
      // Descended: a switch that some way enters from above.
      std::vector<std::uint8_t> descended(fabric_.switches().size(), 0);
      each_way(leaf, [&](std::uint32_t at, std::uint32_t i) {
        const bool down = level(head_[i]) < level(at);
        if (!down && descended[at] != 0) valley = true;
        if (down) descended[head_[i]] = 1;
      });
      if (valley) return false;
    }
    return true;
  }

  std::vector<LinkId> find_cycle() {
    // Both ends of a dependency meet at a switch: one bit per pair of its incoming and outgoing links.
    const std::size_t switches = fabric_.switches().size();
    std::vector<std::uint32_t> rank(out_.size(), 0), degree_in(switches, 0);
    for (std::size_t i = 0; i < out_.size(); ++i) rank[i] = degree_in[head_[i]]++;
    std::vector<std::size_t> base(switches + 1, 0);
    for (std::size_t s = 0; s < switches; ++s)
      base[s + 1] = base[s] + std::size_t{degree_in[s]} * (begin_[s + 1] - begin_[s]);
    std::vector<bool> depends(base.back(), false);
    std::vector<std::vector<std::uint32_t>> entered(switches);
    for (const NodeId leaf : leaves_) {
      for (auto& links : entered) links.clear();
      each_way(leaf, [&](std::uint32_t at, std::uint32_t i) {
        const std::size_t width = begin_[at + 1] - begin_[at];
        for (const std::uint32_t in : entered[at])
          depends[base[at] + rank[in] * width + (i - begin_[at])] = true;
        entered[head_[i]].push_back(i);
      });
    }
    std::vector<std::pair<std::uint32_t, std::uint32_t>> edges;
    for (std::uint32_t in = 0; in < out_.size(); ++in) {
      const std::uint32_t at = head_[in];
      const std::size_t width = begin_[at + 1] - begin_[at];
      for (std::uint32_t o = 0; o < width; ++o) {
        if (depends[base[at] + rank[in] * width + o]) edges.emplace_back(in, begin_[at] + o);
      }
    }
    return shortest_cycle(edges);
  }

 private:
  std::uint32_t index(NodeId s) const { return fabric_.node(s).index; }
  std::uint8_t level(std::uint32_t s) const { return fabric_.node(fabric_.switches()[s]).level; }

  // Calls visit(switch, link) for every link that data from some leaf to `leaf` may take; all links into a switch come
  // before those out of it.
  template <class F>
  void each_way(NodeId leaf, F&& visit) {
    const std::vector<std::uint16_t>& distance = routes_.distances(leaf);
    order_.clear();
    used_.assign(distance.size(), 0);
    for (const NodeId source : leaves_) {
      if (distance[index(source)] != NetworkRoutes::kFar) used_[index(source)] = 1;
    }
    // Farthest first, by counting.
    counts_.assign(1, 0);
    for (const std::uint16_t d : distance) {
      if (d == NetworkRoutes::kFar) continue;
      if (counts_.size() <= std::size_t{d} + 1) counts_.resize(std::size_t{d} + 2, 0);
      ++counts_[d];
    }
    std::size_t sum = 0;
    for (std::size_t d = counts_.size(); d-- > 0;) sum += std::exchange(counts_[d], sum);
    order_.resize(sum);
    for (std::uint32_t s = 0; s < distance.size(); ++s) {
      if (distance[s] != NetworkRoutes::kFar) order_[counts_[distance[s]]++] = s;
    }
    for (const std::uint32_t at : order_) {
      if (used_[at] == 0 || distance[at] == 0) continue;
      for (std::uint32_t i = begin_[at]; i < begin_[at + 1]; ++i) {
        if (distance[head_[i]] + 1 != distance[at] || routes_.is_down(out_[i])) continue;
        used_[head_[i]] = 1;
        visit(at, i);
      }
    }
  }

  std::vector<LinkId> shortest_cycle(
      const std::vector<std::pair<std::uint32_t, std::uint32_t>>& edges) const {
    using Graph = boost::compressed_sparse_row_graph<boost::directedS>;
    const Graph graph(boost::edges_are_sorted, edges.begin(), edges.end(), out_.size());
    std::vector<std::uint32_t> component(out_.size(), 0);
    const auto id = get(boost::vertex_index, graph);
    boost::strong_components(graph, boost::make_iterator_property_map(component.begin(), id));
    std::vector<std::uint32_t> size(out_.size(), 0);
    for (const std::uint32_t c : component) ++size[c];
    for (std::uint32_t start = 0; start < out_.size(); ++start) {
      if (size[component[start]] < 2) continue;
      std::vector<std::uint32_t> by(out_.size(), kNoResource), queue{start};
      for (std::size_t head = 0; head < queue.size(); ++head) {
        for (auto [edge, end] = out_edges(std::size_t{queue[head]}, graph); edge != end; ++edge) {
          const auto to = u32(target(*edge, graph));
          if (component[to] != component[start] || by[to] != kNoResource) continue;
          by[to] = queue[head];
          if (to != start) {
            queue.push_back(to);
            continue;
          }
          std::vector<LinkId> cycle;
          for (std::uint32_t at = by[start]; at != start; at = by[at]) cycle.push_back(out_[at]);
          cycle.push_back(out_[start]);
          std::ranges::reverse(cycle);
          return cycle;
        }
      }
    }
    return {};
  }

  NetworkRoutes& routes_;
  const Fabric& fabric_;
  std::vector<NodeId> leaves_;        // switches with hosts
  std::vector<LinkId> out_;           // links between switches, by switch
  std::vector<std::uint32_t> begin_;  // of a switch's links in out_
  std::vector<std::uint32_t> head_;   // switch that a link leads to
  std::vector<std::uint32_t> order_;
  std::vector<std::size_t> counts_;
  std::vector<std::uint8_t> used_;
};

}  // namespace

DependencyCycle find_dependency_cycle(const Fabric& fabric, NetworkRoutes& routes) {
  DependencyCycle out;
  if (uses_lanes(fabric.routing())) return out;  // lanes and links come in one order on every way
  Dependencies dependencies(fabric, routes);
  if (dependencies.steps() > DependencyCycle::kMostSteps) {
    out.searched = false;
    return out;
  }
  if (!dependencies.up_then_down()) out.links = dependencies.find_cycle();
  return out;
}

}  // namespace weft
