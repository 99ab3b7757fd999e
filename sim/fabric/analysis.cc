// SPDX-License-Identifier: Apache-2.0
#include "sim/fabric/analysis.hpp"

#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC diagnostic ignored \
    "-Wmaybe-uninitialized"  // g++ 12 suspects boost::optional inside edges(graph)
#endif
#include <algorithm>
#include <map>
#include <numeric>

#include <boost/graph/adjacency_list.hpp>
#include <boost/graph/biconnected_components.hpp>
#include <boost/graph/boykov_kolmogorov_max_flow.hpp>
#include <boost/iterator/function_output_iterator.hpp>

#include "sim/core/check.hpp"

namespace weft {
namespace {

std::uint32_t u32(std::size_t v) { return static_cast<std::uint32_t>(v); }

bool is_switch(const Fabric& fabric, NodeId id) {
  return fabric.node(id).kind == NodeKind::network_switch;
}
bool is_scale_up(NodeKind kind) { return kind == NodeKind::gpu || kind == NodeKind::nvswitch; }

}  // namespace

Counts count_components(const Fabric& fabric) {
  Counts out;
  out.servers = fabric.server_count();
  out.gpus = fabric.gpus().size();
  out.nics = fabric.nics().size();
  out.nodes = fabric.node_count();
  out.links = fabric.link_count() / 2;
  for (const NodeId id : fabric.switches()) {
    const std::size_t level = fabric.node(id).level;
    ++out.switches[std::clamp<std::size_t>(level, 1, out.switches.size()) - 1];
  }
  std::map<std::pair<Tier, LinkClass>, LinkGroup> groups;
  for (std::size_t i = 0; i < fabric.link_count(); ++i) {
    const Link& link = fabric.link(LinkId{i});
    if (link.reverse < LinkId{i}) continue;
    LinkGroup& group = groups[{link.tier, link.link_class}];
    group.tier = link.tier;
    group.link_class = link.link_class;
    ++group.links;
    group.cables += link.count;
    group.raw = group.raw + link.raw;
  }
  for (const auto& [key, group] : groups) out.groups.push_back(group);
  return out;
}

// ---- bisection

namespace {

constexpr std::uint32_t kSource = 0, kSink = 1;

// Contracts each half to one vertex: whole servers, or in a fabric of one server its GPUs.
struct Halves {
  std::vector<std::uint32_t> vertex;  // by node
  std::size_t vertices = 2;
  Bandwidth source_rate{0}, sink_rate{0};  // what each half can send
  bool exist = false;
};

Halves split(const Fabric& fabric) {
  Halves out;
  out.vertex.resize(fabric.node_count());
  const bool one = fabric.server_count() == 1;
  const std::size_t half = one ? fabric.gpus().size() / 2 : fabric.server_count() / 2;
  out.exist = half > 0;
  std::size_t seen_gpus = 0;
  for (std::size_t i = 0; i < fabric.node_count(); ++i) {
    const Node& node = fabric.node(NodeId{i});
    if (one ? node.kind == NodeKind::gpu : node.server.valid()) {
      const std::size_t position = one ? seen_gpus++ : node.server.v;
      out.vertex[i] = position < half ? kSource : kSink;
    } else {
      out.vertex[i] = u32(out.vertices++);
    }
  }
  for (std::size_t i = 0; i < fabric.link_count(); ++i) {
    const Link& link = fabric.link(LinkId{i});
    const std::uint32_t side = out.vertex[link.from.v];
    if (side > kSink || (!one && !is_switch(fabric, link.to))) continue;
    Bandwidth& rate = side == kSource ? out.source_rate : out.sink_rate;
    rate = rate + link.raw;
  }
  return out;
}

using FlowTraits = boost::adjacency_list_traits<boost::vecS, boost::vecS, boost::directedS>;
struct FlowVertex {
  FlowTraits::edge_descriptor predecessor{};
  boost::default_color_type colour{};
  long distance = 0;
};
struct FlowEdge {
  std::int64_t capacity = 0, residual = 0;
  FlowTraits::edge_descriptor reverse{};
};
using FlowGraph =
    boost::adjacency_list<boost::vecS, boost::vecS, boost::directedS, FlowVertex, FlowEdge>;

}  // namespace

Bisection compute_bisection(const Fabric& fabric) {
  Bisection out;
  const Halves halves = split(fabric);
  out.formula = std::min(halves.source_rate, halves.sink_rate);
  if (!halves.exist) return out;

  // One edge per pair of vertices that are joined, with the sum of their cables.
  struct Pair {
    std::uint32_t a, b;
    std::int64_t raw;
  };
  std::vector<Pair> pairs;
  for (std::size_t i = 0; i < fabric.link_count(); ++i) {
    const Link& link = fabric.link(LinkId{i});
    const std::uint32_t a = halves.vertex[link.from.v], b = halves.vertex[link.to.v];
    if (a < b) pairs.push_back({a, b, link.raw.bps});
  }
  if (pairs.size() > Bisection::kMostLinks) return out;
  std::ranges::sort(pairs, {}, [](const Pair& p) { return std::pair{p.a, p.b}; });
  FlowGraph graph(halves.vertices);
  for (std::size_t i = 0; i < pairs.size();) {
    std::int64_t sum = 0;
    std::size_t j = i;
    while (j < pairs.size() && pairs[j].a == pairs[i].a && pairs[j].b == pairs[i].b)
      sum += pairs[j++].raw;
    const auto there = add_edge(pairs[i].a, pairs[i].b, graph).first;
    const auto back = add_edge(pairs[i].b, pairs[i].a, graph).first;
    graph[there] = {sum, 0, back};
    graph[back] = {sum, 0, there};
    i = j;
  }
  out.flow = Bandwidth{boost::boykov_kolmogorov_max_flow(
      graph, get(&FlowEdge::capacity, graph), get(&FlowEdge::residual, graph),
      get(&FlowEdge::reverse, graph), get(&FlowVertex::predecessor, graph),
      get(&FlowVertex::colour, graph), get(&FlowVertex::distance, graph),
      get(boost::vertex_index, graph), kSource, kSink)};

  // The smallest cut nearest to the source.
  std::vector<std::uint8_t> near(halves.vertices, 0);
  std::vector<std::uint32_t> queue{kSource};
  near[kSource] = 1;
  for (std::size_t head = 0; head < queue.size(); ++head) {
    for (auto [edge, end] = out_edges(queue[head], graph); edge != end; ++edge) {
      const std::uint32_t to = u32(target(*edge, graph));
      if (graph[*edge].residual == 0 || near[to] != 0) continue;
      near[to] = 1;
      queue.push_back(to);
    }
  }
  std::map<Tier, Bandwidth> crossings;
  std::int64_t sum = 0;
  for (std::size_t i = 0; i < fabric.link_count(); ++i) {
    const Link& link = fabric.link(LinkId{i});
    if (near[halves.vertex[link.from.v]] == 0 || near[halves.vertex[link.to.v]] != 0) continue;
    Bandwidth& raw = crossings[link.tier];
    raw = raw + link.raw;
    sum += link.raw.bps;
  }
  WEFT_CHECK(sum == out.flow->bps, sum, out.flow->bps);
  for (const auto& [tier, raw] : crossings) out.crossings.push_back({tier, raw});
  return out;
}

Oversubscription find_oversubscription(const Fabric& fabric) {
  Oversubscription out;
  for (const NodeId id : fabric.switches()) {
    Bandwidth hosts{0}, higher{0}, others{0};
    for (const LinkId l : fabric.out_links(id)) {
      const Link& link = fabric.link(l);
      if (!is_switch(fabric, link.to)) {
        hosts = hosts + link.raw;
      } else if (fabric.node(link.to).level > fabric.node(id).level) {
        higher = higher + link.raw;
      } else {
        others = others + link.raw;
      }
    }
    const Bandwidth up = higher.bps > 0 ? higher : others;
    if (hosts.bps == 0 || up.bps == 0) continue;
    const double ratio = static_cast<double>(hosts.bps) / static_cast<double>(up.bps);
    out.least = std::min(out.least.value_or(ratio), ratio);
    if (!out.most || ratio > *out.most) {
      out.most = ratio;
      out.worst = id;
    }
  }
  return out;
}

// ---- weak spots

WeakSpots find_weak_spots(const Fabric& fabric) {
  using Graph =
      boost::adjacency_list<boost::vecS, boost::vecS, boost::undirectedS, boost::no_property,
                            boost::property<boost::edge_index_t, std::size_t>>;
  const std::size_t n = fabric.node_count();
  std::vector<std::pair<std::uint32_t, std::uint32_t>> pairs;  // joined nodes, parallel cables once
  std::vector<std::size_t> indices;
  pairs.reserve(fabric.link_count() / 2);
  for (std::size_t i = 0; i < fabric.link_count(); ++i) {
    const Link& link = fabric.link(LinkId{i});
    if (link.from < link.to) pairs.emplace_back(link.from.v, link.to.v);
  }
  std::ranges::sort(pairs);
  pairs.erase(std::unique(pairs.begin(), pairs.end()), pairs.end());
  indices.resize(pairs.size());
  std::iota(indices.begin(), indices.end(), std::size_t{0});
  Graph graph(pairs.begin(), pairs.end(), indices.begin(), n);

  // Tarjan's numbers: a child whose subtree reaches nothing above its parent hangs on the parent alone.
  std::vector<std::size_t> order(n, 0), low(n, 0), parent(n);
  std::iota(parent.begin(), parent.end(), std::size_t{0});
  const auto ignore = boost::make_function_output_iterator([](auto&&) {});
  boost::biconnected_components(graph, boost::dummy_property_map{}, ignore,
                                boost::discover_time_map(order.data())
                                    .lowpoint_map(low.data())
                                    .predecessor_map(parent.data()));
  std::vector<std::uint32_t> by_order(n);
  std::iota(by_order.begin(), by_order.end(), 0U);
  std::ranges::sort(by_order, {}, [&](std::uint32_t v) { return order[v]; });

  const std::size_t total = fabric.gpus().size();
  std::vector<std::size_t> below(n, 0);    // GPUs in the subtree
  std::vector<std::size_t> cut_off(n, 0);  // of them, in subtrees that hang on this node alone
  std::vector<std::uint32_t> parts(n, 0);  // such subtrees with GPUs
  WeakSpots out;
  for (std::size_t i = n; i-- > 0;) {
    const std::uint32_t v = by_order[i];
    if (fabric.node(NodeId{v}).kind == NodeKind::gpu) ++below[v];
    const auto p = static_cast<std::uint32_t>(parent[v]);
    if (p == v) continue;
    below[p] += below[v];
    if (below[v] == 0) continue;
    if (low[v] >= order[p]) {
      ++parts[p];
      cut_off[p] += below[v];
    }
    if (low[v] > order[p] && below[v] < total) {
      std::size_t cables = 0;
      LinkId only;
      for (const LinkId l : fabric.out_links(NodeId{p})) {
        if (fabric.link(l).to != NodeId{v}) continue;
        cables += fabric.link(l).count;
        only = l;
      }
      if (cables == 1) out.links.push_back(std::min(only, fabric.link(only).reverse));
    }
  }
  for (std::size_t v = 0; v < n; ++v) {
    const std::size_t self = fabric.node(NodeId{v}).kind == NodeKind::gpu ? 1 : 0;
    const std::size_t rest = total - cut_off[v] - self > 0 ? 1 : 0;
    if (parts[v] + rest >= 2) out.nodes.push_back(NodeId{v});
  }
  std::ranges::sort(out.links);
  return out;
}

// ---- affinity

namespace {

std::string_view scale_up_word(LinkClass link_class) {
  switch (link_class) {
    case LinkClass::nvlink:
      return "NV";
    case LinkClass::xgmi:
      return "XGMI";
    case LinkClass::hccs:
      return "HCCS";
    case LinkClass::ualink:
      return "UAL";
    default:
      return "LINK";
  }
}

struct Reachability {
  const ServerType& type;
  std::vector<std::vector<std::uint32_t>> out;

  explicit Reachability(const ServerType& t) : type(t), out(t.nodes.size()) {
    for (std::size_t l = 0; l < t.links.size(); ++l) out[t.links[l].from.v].push_back(u32(l));
  }
  bool scale_up(const Link& link) const {
    return is_scale_up(type.nodes[link.from.v].kind) && is_scale_up(type.nodes[link.to.v].kind);
  }

  // Shortest way through nodes that `passes`, over links of the scale-up or the host world; the nodes between the ends.
  template <class F>
  std::optional<std::vector<std::uint32_t>> way(std::uint32_t from, std::uint32_t to, bool scaled,
                                                F&& passes) const {
    std::vector<std::uint32_t> by(type.nodes.size(), kNoResource), queue{from};
    by[from] = from;
    for (std::size_t head = 0; head < queue.size() && by[to] == kNoResource; ++head) {
      const std::uint32_t at = queue[head];
      if (at != from && !passes(type.nodes[at].kind)) continue;
      for (const std::uint32_t l : out[at]) {
        const std::uint32_t next = type.links[l].to.v;
        if (scale_up(type.links[l]) != scaled || by[next] != kNoResource) continue;
        by[next] = at;
        queue.push_back(next);
      }
    }
    if (by[to] == kNoResource) return std::nullopt;
    std::vector<std::uint32_t> between;
    for (std::uint32_t at = by[to]; at != from; at = by[at]) between.push_back(at);
    return between;
  }

  std::string cell(std::uint32_t a, std::uint32_t b) const {
    if (a == b) return "X";
    std::size_t direct = 0, from_a = 0, from_b = 0;
    LinkClass link_class = LinkClass::nvlink;
    const bool gpus = type.nodes[a].kind == NodeKind::gpu && type.nodes[b].kind == NodeKind::gpu;
    for (const Link& link : type.links) {
      if (!gpus || !scale_up(link)) continue;
      if (link.from.v == a && link.to.v == b) direct += link.count;
      const bool to_switch = type.nodes[link.to.v].kind == NodeKind::nvswitch;
      if (link.from.v == a && to_switch) from_a += link.count;
      if (link.from.v == b && to_switch) from_b += link.count;
      if (link.from.v == a && (to_switch || link.to.v == b)) link_class = link.link_class;
    }
    const auto word = [&](std::size_t n) {
      return std::string(scale_up_word(link_class)) + std::to_string(n);
    };
    if (direct > 0) return word(direct);
    if (gpus && way(a, b, true, [](NodeKind kind) { return kind == NodeKind::nvswitch; }))
      return word(std::min(from_a, from_b));
    const auto host = way(a, b, false, [](NodeKind kind) {
      return kind == NodeKind::cpu || kind == NodeKind::pcie_switch;
    });
    if (!host) return "-";
    const auto sockets = std::ranges::count_if(
        *host, [&](std::uint32_t v) { return type.nodes[v].kind == NodeKind::cpu; });
    if (sockets > 1) return "SYS";
    if (sockets == 1) return "PHB";
    return host->size() > 1 ? "PXB" : "PIX";
  }
};

}  // namespace

AffinityMatrix affinity_matrix(const ServerType& type) {
  AffinityMatrix out;
  out.locals = type.gpus;
  out.locals.insert(out.locals.end(), type.nics.begin(), type.nics.end());
  const Reachability reach(type);
  for (const std::uint32_t row : out.locals) {
    auto& cells = out.cells.emplace_back();
    for (const std::uint32_t column : out.locals) cells.push_back(reach.cell(row, column));
  }
  return out;
}

}  // namespace weft
