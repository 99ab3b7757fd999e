// SPDX-License-Identifier: Apache-2.0
// From specs to the frozen graph: each kind of server is expanded and checked once, then copied to every place, then the
// network is planned and joined to the NICs.
#include <algorithm>
#include <limits>
#include <map>

#include <fmt/format.h>

#include "sim/core/check.hpp"
#include "sim/core/text.hpp"
#include "sim/fabric/fabric.hpp"
#include "sim/fabric/generators.hpp"
#include "sim/fabric/server_check.hpp"

namespace weft {
namespace {

std::uint32_t u32(std::size_t v) { return static_cast<std::uint32_t>(v); }

// Routes keep a table of all pairs of nodes of a server.
constexpr std::size_t kMostServerNodes = 4096;
constexpr std::size_t kMostServerPairs = 1'000'000;  // joined ones
constexpr std::size_t kMostSuggested = 1000;         // names among which the nearest is looked for

using NodeNames = std::map<std::string, std::uint32_t, std::less<>>;

// What a name may hold: "/" and ":" put names together, "#" counts parallel links.
bool is_plain_name(std::string_view text) {
  return !text.empty() && std::ranges::all_of(text, [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
           c == '-' || c == '.' || c == '+';
  });
}

bool is_scale_up(NodeKind kind) { return kind == NodeKind::gpu || kind == NodeKind::nvswitch; }

}  // namespace

class FabricBuilder {
 public:
  FabricBuilder(FabricSpec spec, LinkClasses classes, Diagnostics& out)
      : classes_(classes), out_(out) {
    fabric_.spec_ = std::move(spec);
  }

  Fabric build() {
    for (const ServerGroup& group : fabric_.spec_.groups) add_type(group.server);
    if (!out_.ok()) return {};
    if (!place_servers()) return {};
    join_network();
    if (!out_.ok()) return {};
    index();
    return std::move(fabric_);
  }

 private:
  // ---- one kind of server

  void add_type(const ServerSpec& spec) {
    ServerType type;
    type.spec = spec;
    NodeNames names;
    const std::size_t before = out_.error_count();
    for (const NodeEntry& entry : spec.nodes) add_nodes(entry, type, names);
    all_nodes_known_ = out_.error_count() == before;
    for (const LinkEntry& entry : spec.links) add_links(entry, type, names);
    if (out_.error_count() ==
        before) {  // else a node or a link is missing for a reason already told
      check_server(type, fabric_.spec_.network.has_value(), out_);
    }
    fabric_.types_.push_back(std::move(type));
  }

  void add_nodes(const NodeEntry& entry, ServerType& type, NodeNames& names) {
    const auto ids = expand_range(entry.id);
    if (!ids || !is_plain_name(ids->front())) {
      out_.error(entry.place, entry.pointer + "/id",
                 fmt::format("\"{}\" is not a name or a range", entry.id),
                 "write e.g. \"cpu0\" or \"gpu[0-7]\"; names hold letters, digits, _ - . and +");
      return;
    }
    if (type.nodes.size() + ids->size() > kMostServerNodes) {
      out_.error(entry.place, entry.pointer + "/id",
                 fmt::format("a server of more than {} nodes", kMostServerNodes),
                 "join smaller servers by a network");
      return;
    }
    Node node;
    node.kind = entry.kind;
    GpuSpec gpu;
    NicSpec nic;
    if (entry.kind == NodeKind::gpu) {
      read_model(entry, gpu, "the GPU's model");
    } else if (entry.kind == NodeKind::nic) {
      read_model(entry, nic, "the NIC's model");
      node.latency = nic.latency;
    } else if (entry.kind == NodeKind::nvswitch && entry.model.is_object()) {
      SwitchSpec model;
      read_config(entry.model, entry.pointer + "/model", model, out_);
      node.latency = model.latency;
      type.reduction = model.reduction;
    } else if (entry.kind == NodeKind::network_switch) {
      out_.error(entry.place, entry.pointer + "/kind", "a network switch is not part of a server",
                 "put it into \"network\"");
    }
    if (entry.latency) node.latency = *entry.latency;
    if (entry.role != "compute" && entry.role != "storage") {
      out_.error(entry.place, entry.pointer + "/role",
                 fmt::format("\"{}\" is not a role", entry.role), "compute or storage");
    }
    for (const std::string& id : *ids) {
      if (!names.emplace(id, u32(type.nodes.size())).second) {
        out_.error(entry.place, entry.pointer + "/id",
                   fmt::format("the id \"{}\" is used twice", id), "give each node its own id");
        continue;
      }
      const std::uint32_t local = u32(type.nodes.size());
      node.index = local;
      type.nodes.push_back(node);
      type.node_names.push_back(id);
      if (entry.kind == NodeKind::gpu) {
        type.gpus.push_back(local);
        type.gpu_specs.push_back(gpu);
      }
      if (entry.kind == NodeKind::nic && entry.role == "compute") {
        type.nics.push_back(local);
        type.nic_specs.push_back(nic);
      }
    }
  }

  template <class Spec>
  void read_model(const NodeEntry& entry, Spec& spec, std::string_view what) {
    if (!entry.model.is_object()) {
      out_.error(entry.place, entry.pointer, fmt::format("{} is missing", what),
                 "\"model\": a name of the catalogue");
      return;
    }
    read_config(entry.model, entry.pointer + "/model", spec, out_);
  }

  std::vector<std::uint32_t> find_nodes(const std::string& range, const LinkEntry& entry,
                                        const ServerType& type, const NodeNames& names) {
    std::vector<std::uint32_t> out;
    const auto ids = expand_range(range);
    if (!ids) {
      out_.error(entry.place, entry.pointer, fmt::format("\"{}\" is not a name or a range", range),
                 "write e.g. \"gpu[0-7]\"");
      return out;
    }
    for (const std::string& id : *ids) {
      const auto found = names.find(id);
      if (found == names.end()) {
        if (!all_nodes_known_) return {};  // it may be one that could not be read
        const std::string hint =
            names.size() <= kMostSuggested ? did_you_mean(id, type.node_names) : std::string{};
        out_.error(entry.place, entry.pointer, fmt::format("there is no node \"{}\"{}", id, hint),
                   "nodes are listed under \"nodes\"");
        return {};
      }
      out.push_back(found->second);
    }
    return out;
  }

  void add_links(const LinkEntry& entry, ServerType& type, const NodeNames& names) {
    const auto a = find_nodes(entry.a, entry, type, names);
    const auto b = find_nodes(entry.b, entry, type, names);
    if (a.empty() || b.empty()) return;
    const std::size_t pairs = entry.pair == Pairing::all ? a.size() * b.size() : a.size();
    if (type.links.size() / 2 + pairs > kMostServerPairs) {
      out_.error(entry.place, entry.pointer,
                 fmt::format("more than {} joined pairs in one server", kMostServerPairs),
                 "join smaller servers by a network");
      return;
    }
    const Link model = make_link(entry.link, entry.count);
    switch (entry.pair) {
      case Pairing::each:
        if (a.size() != b.size()) {
          out_.error(entry.place, entry.pointer,
                     fmt::format("\"each\" pairs {} nodes with {}", a.size(), b.size()),
                     "both ranges need the same length");
          return;
        }
        for (std::size_t i = 0; i < a.size(); ++i) add_pair(entry, type, model, a[i], b[i]);
        break;
      case Pairing::block:
        if (a.size() % b.size() != 0) {
          out_.error(
              entry.place, entry.pointer,
              fmt::format("{} nodes cannot be split into {} equal blocks", a.size(), b.size()),
              "the length of a must be a multiple of the length of b");
          return;
        }
        for (std::size_t i = 0; i < a.size(); ++i)
          add_pair(entry, type, model, a[i], b[i / (a.size() / b.size())]);
        break;
      case Pairing::all:
        if (a == b) {
          for (std::size_t i = 0; i < a.size(); ++i) {
            for (std::size_t j = i + 1; j < a.size(); ++j) add_pair(entry, type, model, a[i], a[j]);
          }
        } else {
          for (const std::uint32_t x : a) {
            for (const std::uint32_t y : b) add_pair(entry, type, model, x, y);
          }
        }
        break;
    }
  }

  void add_pair(const LinkEntry& entry, ServerType& type, Link model, std::uint32_t a,
                std::uint32_t b) {
    if (a == b) {
      out_.error(entry.place, entry.pointer,
                 fmt::format("a link from \"{}\" to itself", type.node_names[a]), "name two nodes");
      return;
    }
    const bool scale_up = is_scale_up(type.nodes[a].kind) && is_scale_up(type.nodes[b].kind);
    model.tier = scale_up ? Tier::scale_up : Tier::host;
    append_duplex(type.links, type.duplex_capacity, model, NodeId{a}, NodeId{b});
  }

  void append_duplex(std::vector<Link>& links, std::vector<Bandwidth>& duplex, Link model, NodeId a,
                     NodeId b) const {
    const LinkLaw& law = fabric_.laws_[model.law];
    model.from = a;
    model.to = b;
    model.reverse = LinkId{links.size() + 1};
    if (law.duplex_factor < 1) {
      model.duplex = u32(duplex.size());
      duplex.push_back(scaled(model.rate, 2 * law.duplex_factor));
    }
    links.push_back(model);
    std::swap(model.from, model.to);
    model.reverse = LinkId{links.size() - 1};
    links.push_back(model);
  }

  // A link of this spec without ends.
  Link make_link(const LinkSpec& spec, std::int64_t count) {
    const LinkLaw law = link_law(spec, classes_, out_);
    Link link;
    link.link_class = spec.link_class;
    link.count = static_cast<std::uint16_t>(count);
    link.raw = law.raw * count;
    link.rate = scaled(link.raw, law.efficiency());
    link.delay = spec.delay;
    if (fabric_.laws_.size() > std::numeric_limits<std::uint16_t>::max()) {
      out_.error(spec.place, spec.pointer, "more than 65536 cables with links of their own",
                 "leave \"link\" out where it is the usual one");
    }
    link.law = static_cast<std::uint16_t>(fabric_.laws_.size());
    fabric_.laws_.push_back(law);
    return link;
  }

  // ---- all servers

  bool place_servers() {
    const FabricSpec& spec = fabric_.spec_;
    std::size_t nodes = 0, links = 0;
    for (std::size_t t = 0; t < spec.groups.size(); ++t) {
      nodes += static_cast<std::size_t>(spec.groups[t].count) * fabric_.types_[t].nodes.size();
      links += static_cast<std::size_t>(spec.groups[t].count) * fabric_.types_[t].links.size();
    }
    if (links > kMostLinks || nodes > kMostLinks) {
      out_.error(spec.place, spec.pointer + "/servers",
                 fmt::format("{} links in the servers alone, more than the {} that can be held",
                             links, kMostLinks),
                 "simulate fewer servers");
      return false;
    }
    fabric_.nodes_.reserve(nodes);
    fabric_.links_.reserve(links);
    for (std::size_t t = 0; t < spec.groups.size(); ++t) {
      for (std::int64_t i = 0; i < spec.groups[t].count; ++i) place_server(u32(t));
    }
    return true;
  }

  void place_server(std::uint32_t t) {
    const ServerType& type = fabric_.types_[t];
    const ServerId id{fabric_.servers_.size()};
    const ServerPlace place{t, u32(fabric_.nodes_.size()), u32(fabric_.links_.size()),
                            u32(fabric_.duplex_capacity_.size())};
    fabric_.servers_.push_back(place);
    for (Node node : type.nodes) {
      node.server = id;
      fabric_.nodes_.push_back(node);
    }
    for (Link link : type.links) {
      link.from.v += place.node_base;
      link.to.v += place.node_base;
      link.reverse.v += place.link_base;
      if (link.duplex != kNoResource) link.duplex += place.duplex_base;
      fabric_.links_.push_back(link);
    }
    for (const Bandwidth capacity : type.duplex_capacity)
      fabric_.duplex_capacity_.push_back(capacity);
    for (const std::uint32_t gpu : type.gpus)
      fabric_.gpus_.push_back(NodeId{place.node_base + gpu});
    for (const std::uint32_t nic : type.nics)
      fabric_.nics_.push_back(NodeId{place.node_base + nic});
  }

  // ---- the network

  void join_network() {
    const std::optional<NetworkSpec>& network = fabric_.spec_.network;
    if (!network) {
      if (fabric_.server_count() > 1) {
        out_.error(fabric_.spec_.place, fabric_.spec_.pointer + "/servers",
                   fmt::format("{} servers and no network", fabric_.server_count()),
                   "add \"network\", or use one server");
      }
      return;
    }
    std::vector<HostPort> ports;
    std::vector<NodeId> port_nic;
    std::vector<const LinkSpec*> port_link;
    for (std::size_t s = 0; s < fabric_.server_count(); ++s) {
      const ServerType& type = fabric_.type_of(ServerId{s});
      for (std::size_t n = 0; n < type.nics.size(); ++n) {
        const NicSpec& nic = type.nic_specs[n];
        const NodeId node = fabric_.local_node(ServerId{s}, type.nics[n]);
        for (int p = 0; p < nic.ports; ++p) {
          ports.push_back({u32(s), u32(n), u32(static_cast<std::size_t>(p)), raw_rate(nic.link),
                           fabric_.name(node)});
          port_nic.push_back(node);
          port_link.push_back(&nic.link);
        }
      }
    }
    const LinkSpec* between = network->link                ? &*network->link
                              : network->switch_model.link ? &*network->switch_model.link
                                                           : nullptr;
    if (between == nullptr) {
      out_.error(network->place, network->pointer,
                 "neither the network nor its switch names a link", "add \"link\"");
      return;
    }
    const Link trunk = make_link(*between, 1);
    if (!out_.ok()) return;
    const NetworkPlan plan = plan_network(*network, ports, trunk.raw, out_);
    if (!out_.ok()) return;
    if (fabric_.links_.size() + 2 * plan.cables.size() > kMostLinks) {
      out_.error(network->place, network->pointer,
                 fmt::format("{} cables, more than can be held", plan.cables.size()),
                 "simulate fewer servers");
      return;
    }
    if (!check_switch_names(*network, plan)) return;
    fabric_.links_.reserve(fabric_.links_.size() + 2 * plan.cables.size());
    const NodeId first{fabric_.nodes_.size()};
    for (std::size_t i = 0; i < plan.switches.size(); ++i) {
      Node node;
      node.kind = NodeKind::network_switch;
      node.level = plan.switches[i].level;
      node.index = u32(i);
      node.latency = network->switch_model.latency;
      fabric_.switches_.push_back(fabric_.nodes_.push_back(node));
      fabric_.switch_names_.push_back(plan.switches[i].name);
    }
    const Link global = network->link_global ? make_link(*network->link_global, 1) : trunk;
    std::map<const LinkSpec*, Link> made;  // one law per distinct spec
    std::map<std::int32_t, Link> custom;
    std::vector<std::uint8_t> attached(ports.size(), 0);
    for (const PlannedCable& cable : plan.cables) {
      const bool host = (cable.a & PlannedCable::kHost) != 0;
      const std::uint32_t a = cable.a & ~PlannedCable::kHost;
      Link link = cable.tier == Tier::global ? global : trunk;
      if (host) {
        const LinkSpec* spec = port_link[a];
        const auto found = made.find(spec);
        link = found != made.end() ? found->second
                                   : made.emplace(spec, make_link(*spec, 1)).first->second;
        attached[a] = 1;
      }
      if (cable.custom_link >= 0) {
        const auto found = custom.find(cable.custom_link);
        link = found != custom.end()
                   ? found->second
                   : custom
                         .emplace(
                             cable.custom_link,
                             make_link(
                                 *network->cables[static_cast<std::size_t>(cable.custom_link)].link,
                                 1))
                         .first->second;
      }
      link.tier = cable.tier;
      append_cable(link, host ? port_nic[a] : NodeId{first.v + a}, NodeId{first.v + cable.b});
    }
    for (std::size_t i = 0; i < ports.size(); ++i) {
      if (attached[i] != 0) continue;
      out_.error(network->place, network->pointer, fmt::format("{} has no cable", ports[i].name),
                 "list a cable for every NIC");
      return;
    }
  }

  // Names of switches share a space with server3/gpu5, or gpu5 where there is one server.
  bool check_switch_names(const NetworkSpec& network, const NetworkPlan& plan) {
    const bool one_server = fabric_.server_count() == 1;
    const std::vector<std::string>& nodes = fabric_.types_.front().node_names;
    for (const PlannedSwitch& planned : plan.switches) {
      const bool taken = one_server ? std::ranges::find(nodes, planned.name) != nodes.end()
                                    : planned.name.starts_with("server");
      if (!taken) continue;
      out_.error(
          network.place, network.pointer,
          fmt::format("the switch \"{}\" has a name that a server's node may have", planned.name),
          "rename one of them");
      return false;
    }
    return true;
  }

  Bandwidth raw_rate(const LinkSpec& spec) {
    Diagnostics quiet;  // make_link reports the same problem with the cable
    return link_law(spec, classes_, quiet).raw;
  }

  void append_cable(Link link, NodeId a, NodeId b) {
    link.from = a;
    link.to = b;
    link.reverse = LinkId{fabric_.links_.size() + 1};
    fabric_.links_.push_back(link);
    std::swap(link.from, link.to);
    link.reverse = LinkId{fabric_.links_.size() - 1};
    fabric_.links_.push_back(link);
  }

  // ---- freezing

  void index() {
    const std::uint32_t links = u32(fabric_.links_.size());
    for (Link& link : fabric_.links_) {
      if (link.duplex != kNoResource) link.duplex += links;
    }
    for (ServerPlace& place : fabric_.servers_) place.duplex_base += links;
    std::vector<std::uint32_t>& begin = fabric_.out_begin_;
    begin.assign(fabric_.nodes_.size() + 1, 0);
    for (const Link& link : fabric_.links_) ++begin[link.from.v + 1];
    for (std::size_t i = 1; i < begin.size(); ++i) begin[i] += begin[i - 1];
    fabric_.out_.resize(links);
    std::vector<std::uint32_t> next(begin.begin(), begin.end() - 1);
    for (std::uint32_t l = 0; l < links; ++l)
      fabric_.out_[next[fabric_.links_[LinkId{l}].from.v]++] = LinkId{l};
  }

  LinkClasses classes_;
  Diagnostics& out_;
  Fabric fabric_;
  bool all_nodes_known_ = true;  // of the server at hand
};

Fabric build_fabric(FabricSpec spec, LinkClasses classes, Diagnostics& out) {
  return FabricBuilder(std::move(spec), classes, out).build();
}

}  // namespace weft
