// SPDX-License-Identifier: Apache-2.0
#include "tools/cli/fabric_view.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <tuple>
#include <utility>
#include <vector>

#include "sim/run/executor.hpp"

namespace weft {
namespace {

constexpr std::size_t kFirstServers = 16, kBusiestServers = 48;
constexpr std::size_t kMostCables = 40'000;

double rounded(double share) { return std::round(share * 1e4) / 1e4; }

class View {
 public:
  explicit View(const RunTrail& trail)
      : fabric_(trail.fabric), seconds_(trail.executor.simulated().seconds()) {
    load_.resize(fabric_.link_count());
    for (std::uint32_t l = 0; l < load_.size(); ++l) {
      const double rate = fabric_.link(LinkId{l}).rate.bytes_per_s();
      if (seconds_ <= 0 || rate <= 0) continue;
      load_[l] = trail.network.carried_bytes(trail.representative(l)) / rate / seconds_;
    }
  }

  Json json() {
    Json out = Json::object();
    out.set("gpus", std::uint64_t{fabric_.gpus().size()});
    out.set("nodes", std::uint64_t{fabric_.node_count()});
    out.set("links", std::uint64_t{fabric_.link_count()});
    if (fabric_.network()) out.set("generator", write_config(fabric_.network()->generator).text);
    out.set("types", types());
    out.set("servers", servers());
    out.set("switches", switches());
    out.set("cables", cables());
    Json& kinds = out.set("kinds", Json::array());
    kinds.items.resize(kinds_.size());
    for (const auto& [key, index] : kinds_) {
      const auto& [tier, link_class, rate, delay] = key;
      Json kind = Json::object();
      kind.set("tier", write_config(tier).text);
      kind.set("class", write_config(link_class).text);
      kind.set("rate_gbs", static_cast<double>(rate) / 8e9);
      kind.set("delay_s", Time{delay}.seconds());
      kinds.items[index] = std::move(kind);
    }
    return out;
  }

 private:
  using Kind = std::tuple<Tier, LinkClass, std::int64_t, std::int64_t>;

  std::size_t kind_of(const Link& link) {
    const std::int64_t each = link.rate.bps / std::max<std::int64_t>(1, link.count);
    return kinds_.emplace(Kind{link.tier, link.link_class, each, link.delay.ps}, kinds_.size())
        .first->second;
  }

  Json types() {
    Json out = Json::array();
    for (const ServerType& type : fabric_.types()) {
      Json t = Json::object();
      t.set("name", type.spec.name);
      Json& nodes = t.set("nodes", Json::array());
      for (std::size_t i = 0; i < type.nodes.size(); ++i) {
        Json node = Json::array();
        node.push(type.node_names[i]);
        node.push(write_config(type.nodes[i].kind).text);
        nodes.push(std::move(node));
      }
      // [a, b, parallel links, kind]
      Json& cables = t.set("cables", Json::array());
      for (std::uint32_t l = 0; l < type.links.size(); ++l) {
        const Link& link = type.links[l];
        if (link.reverse.valid() && link.reverse.v < l) continue;
        Json cable = Json::array();
        cable.push(link.from.v);
        cable.push(link.to.v);
        cable.push(std::uint32_t{link.count});
        cable.push(std::uint64_t{kind_of(link)});
        cables.push(std::move(cable));
      }
      out.push(std::move(t));
    }
    return out;
  }

  double busiest_link(std::uint32_t first, std::size_t count) const {
    double most = 0;
    for (std::uint32_t l = first; l < first + count; ++l) most = std::max(most, load_[l]);
    return most;
  }

  Json servers() {
    Json kinds = Json::array(), heat = Json::array();
    std::vector<std::pair<double, std::uint32_t>> order;
    for (std::uint32_t s = 0; s < fabric_.server_count(); ++s) {
      const ServerPlace& place = fabric_.server(ServerId{s});
      const double load = busiest_link(place.link_base, fabric_.types()[place.type].links.size());
      kinds.push(place.type);
      heat.push(rounded(load));
      order.emplace_back(-load, s);
    }
    std::vector<std::uint32_t> chosen;
    for (std::uint32_t s = 0; s < std::min(kFirstServers, order.size()); ++s) chosen.push_back(s);
    std::ranges::sort(order);
    for (std::size_t i = 0; i < std::min(kBusiestServers, order.size()); ++i)
      chosen.push_back(order[i].second);
    std::ranges::sort(chosen);
    chosen.erase(std::unique(chosen.begin(), chosen.end()), chosen.end());
    Json out = Json::object();
    out.set("type", std::move(kinds));
    out.set("load", std::move(heat));
    Json& details = out.set("details", Json::array());
    for (const std::uint32_t s : chosen) {
      const ServerPlace& place = fabric_.server(ServerId{s});
      Json detail = Json::object();
      detail.set("server", s);
      Json& up = detail.set("up", Json::array());
      Json down = Json::array();
      const std::vector<Link>& links = fabric_.types()[place.type].links;
      for (std::uint32_t l = 0; l < links.size(); ++l) {
        const LinkId reverse = links[l].reverse;
        if (reverse.valid() && reverse.v < l) continue;
        up.push(rounded(load_[place.link_base + l]));
        down.push(reverse.valid() ? rounded(load_[place.link_base + reverse.v]) : 0.0);
      }
      detail.set("down", std::move(down));
      details.push(std::move(detail));
    }
    return out;
  }

  Json switches() {
    Json names = Json::array(), levels = Json::array(), heat = Json::array();
    for (const NodeId id : fabric_.switches()) {
      double most = 0;
      for (const LinkId l : fabric_.out_links(id)) {
        most = std::max(most, load_[l.v]);
        if (const LinkId back = fabric_.link(l).reverse; back.valid())
          most = std::max(most, load_[back.v]);
      }
      names.push(fabric_.name(id));
      levels.push(std::uint32_t{fabric_.node(id).level});
      heat.push(rounded(most));
    }
    Json out = Json::object();
    out.set("name", std::move(names));
    out.set("level", std::move(levels));
    out.set("load", std::move(heat));
    return out;
  }

  // An end: a server, or a switch counted on behind the servers.
  std::uint32_t end_of(NodeId id) const {
    const Node& node = fabric_.node(id);
    return node.server.valid() ? node.server.v
                               : static_cast<std::uint32_t>(fabric_.server_count()) + node.index;
  }

  Json cables() {
    struct Bundle {
      std::uint32_t a = 0, b = 0, count = 0;
      std::size_t kind = 0;
      double up = 0, down = 0;
    };
    std::map<std::tuple<std::uint32_t, std::uint32_t, std::size_t>, Bundle> bundles;
    for (std::uint32_t l = 0; l < fabric_.link_count(); ++l) {
      const Link& link = fabric_.link(LinkId{l});
      const std::uint32_t a = end_of(link.from), b = end_of(link.to);
      if (a >= b || (a == b && fabric_.node(link.from).server.valid())) continue;
      const std::size_t kind = kind_of(link);
      Bundle& bundle = bundles[{a, b, kind}];
      bundle.a = a;
      bundle.b = b;
      bundle.kind = kind;
      bundle.count += link.count;
      bundle.up = std::max(bundle.up, load_[l]);
      if (link.reverse.valid()) bundle.down = std::max(bundle.down, load_[link.reverse.v]);
    }
    std::vector<Bundle> kept;
    for (const auto& [key, bundle] : bundles) kept.push_back(bundle);
    const std::size_t left_out = kept.size() > kMostCables ? kept.size() - kMostCables : 0;
    if (left_out > 0) {
      std::ranges::stable_sort(kept, std::ranges::greater{},
                               [](const Bundle& b) { return std::max(b.up, b.down); });
      kept.resize(kMostCables);
    }
    Json out = Json::object();
    const auto column = [&](std::string_view name, auto value) {
      Json& cells = out.set(name, Json::array());
      for (const Bundle& bundle : kept) cells.push(value(bundle));
    };
    column("a", [](const Bundle& b) { return b.a; });
    column("b", [](const Bundle& b) { return b.b; });
    column("count", [](const Bundle& b) { return b.count; });
    column("kind", [](const Bundle& b) { return std::uint64_t{b.kind}; });
    column("up", [](const Bundle& b) { return rounded(b.up); });
    column("down", [](const Bundle& b) { return rounded(b.down); });
    out.set("left_out", std::uint64_t{left_out});
    return out;
  }

  const Fabric& fabric_;
  double seconds_;
  std::vector<double> load_;  // by link
  std::map<Kind, std::size_t> kinds_;
};

}  // namespace

Json fabric_view(const RunTrail& trail) { return View(trail).json(); }

}  // namespace weft
