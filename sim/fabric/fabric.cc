// SPDX-License-Identifier: Apache-2.0
#include "sim/fabric/fabric.hpp"

#include <algorithm>
#include <charconv>

#include <fmt/format.h>

namespace weft {
namespace {

// "server12/gpu3" -> 12 and "gpu3"; nullopt for other shapes.
std::optional<std::pair<std::size_t, std::string_view>> split_server(std::string_view name) {
  constexpr std::string_view kPrefix = "server";
  const auto slash = name.find('/');
  if (!name.starts_with(kPrefix) || slash == std::string_view::npos) return std::nullopt;
  std::size_t server = 0;
  const char* begin = name.data() + kPrefix.size();
  const auto [end, error] = std::from_chars(begin, name.data() + slash, server);
  if (error != std::errc{} || end != name.data() + slash) return std::nullopt;
  return std::pair{server, name.substr(slash + 1)};
}

std::optional<std::size_t> parse_index(std::string_view text) {
  std::size_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || end != text.data() + text.size()) return std::nullopt;
  return value;
}

}  // namespace

std::vector<Bandwidth> Fabric::capacities() const {
  std::vector<Bandwidth> out;
  out.reserve(resource_count());
  for (const Link& link : links_) out.push_back(link.rate);
  out.insert(out.end(), duplex_capacity_.begin(), duplex_capacity_.end());
  return out;
}

Bandwidth Fabric::capacity(std::uint32_t resource) const {
  return resource < links_.size() ? links_[LinkId{resource}].rate
                                  : duplex_capacity_[resource - links_.size()];
}

void Fabric::speed_up(Tier tier, LinkClass link_class, std::int64_t factor) {
  const auto speed = [&](Link& link) {
    if (link.tier != tier || link.link_class != link_class) return;
    link.rate = link.rate * factor;
    link.raw = link.raw * factor;
  };
  for (Link& link : links_) speed(link);
  for (ServerType& type : types_) std::ranges::for_each(type.links, speed);
  for (std::size_t i = 0; i < links_.size(); ++i) {
    const Link& link = links_[LinkId{i}];
    if (link.duplex == kNoResource || link.tier != tier || link.link_class != link_class ||
        link.from > link.to)
      continue;
    Bandwidth& budget = duplex_capacity_[link.duplex - links_.size()];
    budget = budget * factor;
  }
}

std::size_t Fabric::gpu_position(NodeId gpu) const {
  const auto& gpus = type_of(node(gpu).server).gpus;
  return static_cast<std::size_t>(std::ranges::find(gpus, node(gpu).index) - gpus.begin());
}

std::string Fabric::name(NodeId id) const {
  const Node& node = nodes_[id];
  if (!node.server.valid()) return switch_names_[node.index];
  const std::string& local = type_of(node.server).node_names[node.index];
  return servers_.size() == 1 ? local : fmt::format("server{}/{}", node.server.v, local);
}

std::string Fabric::name(LinkId id) const {
  const Link& link = links_[id];
  std::size_t before = 0, all = 0;
  for (const LinkId other : out_links(link.from)) {
    if (links_[other].to != link.to) continue;
    ++all;
    if (other < id) ++before;
  }
  const std::string plain = name(link.from) + ":" + name(link.to);
  return all > 1 ? fmt::format("{}#{}", plain, before) : plain;
}

std::string Fabric::resource_name(std::uint32_t resource) const {
  if (resource < links_.size()) return name(LinkId{resource});
  for (std::size_t i = 0; i < links_.size(); ++i) {
    if (links_[LinkId{i}].duplex == resource) return name(LinkId{i}) + " both ways";
  }
  return fmt::format("resource {}", resource);
}

std::optional<NodeId> Fabric::find_node(std::string_view name) const {
  std::size_t server = 0;
  std::string_view local = name;
  if (const auto split = split_server(name)) {
    server = split->first;
    local = split->second;
  }
  if ((local != name || servers_.size() == 1) && server < servers_.size()) {
    const ServerType& type = type_of(ServerId{server});
    const auto found = std::ranges::find(type.node_names, local);
    if (found != type.node_names.end()) {
      return local_node(ServerId{server},
                        static_cast<std::uint32_t>(found - type.node_names.begin()));
    }
  }
  const auto found = std::ranges::find(switch_names_, name);
  if (found == switch_names_.end()) return std::nullopt;
  return switches_[static_cast<std::size_t>(found - switch_names_.begin())];
}

std::optional<LinkId> Fabric::find_link(std::string_view name) const {
  if (const auto colon = name.find(':'); colon != std::string_view::npos) {
    const auto hash = name.find('#', colon);
    std::optional<std::size_t> nth = 0;
    if (hash != std::string_view::npos) nth = parse_index(name.substr(hash + 1));
    const auto from = find_node(name.substr(0, colon));
    const auto to =
        find_node(name.substr(colon + 1, hash == std::string_view::npos ? hash : hash - colon - 1));
    if (!from || !to || !nth) return std::nullopt;
    for (const LinkId id : out_links(*from)) {
      if (links_[id].to == *to && (*nth)-- == 0) return id;
    }
    return std::nullopt;
  }
  const auto up = name.rfind("/up");
  if (up == std::string_view::npos) return std::nullopt;
  const auto from = find_node(name.substr(0, up));
  auto nth = parse_index(name.substr(up + 3));
  if (!from || !nth) return std::nullopt;
  for (const LinkId id : out_links(*from)) {
    const Node& to = nodes_[links_[id].to];
    if (to.kind == NodeKind::network_switch && to.level > nodes_[*from].level && (*nth)-- == 0)
      return id;
  }
  return std::nullopt;
}

}  // namespace weft
