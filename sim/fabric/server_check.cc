// SPDX-License-Identifier: Apache-2.0
#include "sim/fabric/server_check.hpp"

#include <cstdint>
#include <numeric>
#include <set>
#include <string>
#include <vector>

#include <fmt/format.h>

namespace weft {
namespace {

// More NVLinks than the part has is most likely a mistake, though nothing stops the simulation.
void check_nvlinks(const ServerType& type, Diagnostics& out) {
  std::vector<std::int64_t> links(type.nodes.size(), 0);
  for (const Link& link : type.links) {
    if (link.link_class == LinkClass::nvlink) links[link.from.v] += link.count;
  }
  for (std::size_t g = 0; g < type.gpus.size(); ++g) {
    const GpuSpec& gpu = type.gpu_specs[g];
    const std::int64_t has = gpu.nvlink ? gpu.nvlink->links : 0;
    if (links[type.gpus[g]] <= has) continue;
    out.warning(type.spec.place, type.spec.pointer + "/links",
                fmt::format("\"{}\" is joined by {} NVLinks, its model {} has {}",
                            type.node_names[type.gpus[g]], links[type.gpus[g]], gpu.name, has),
                "check the model and the links");
    return;
  }
}

// Which nodes hang together (union-find).
class Groups {
 public:
  explicit Groups(std::size_t nodes) : parent_(nodes) {
    std::iota(parent_.begin(), parent_.end(), 0U);
  }
  std::uint32_t of(std::uint32_t x) {
    while (parent_[x] != x) x = parent_[x] = parent_[parent_[x]];
    return x;
  }
  void join(std::uint32_t a, std::uint32_t b) { parent_[of(a)] = of(b); }

 private:
  std::vector<std::uint32_t> parent_;
};

// With access control a switch sends what could turn round in it up to a root complex.
void check_acs(const ServerType& type, Diagnostics& out) {
  if (!type.spec.acs) return;
  const auto passes = [&](NodeId node) {
    const NodeKind kind = type.nodes[node.v].kind;
    return kind == NodeKind::cpu || kind == NodeKind::pcie_switch;
  };
  Groups groups(type.nodes.size());
  for (const Link& link : type.links) {
    if (passes(link.from) && passes(link.to)) groups.join(link.from.v, link.to.v);
  }
  std::set<std::uint32_t> rooted;
  for (std::uint32_t i = 0; i < type.nodes.size(); ++i) {
    if (type.nodes[i].kind == NodeKind::cpu) rooted.insert(groups.of(i));
  }
  for (std::uint32_t i = 0; i < type.nodes.size(); ++i) {
    if (type.nodes[i].kind != NodeKind::pcie_switch || rooted.contains(groups.of(i))) continue;
    out.error(type.spec.place, type.spec.pointer + "/acs",
              fmt::format("no way from \"{}\" to a root complex, where access control would send "
                          "its traffic",
                          type.node_names[i]),
              "link it to a node of kind cpu, or leave \"acs\" out");
  }
}

// Every GPU must be able to reach every other node of interest, else a run would hang on it.
void check_reach(const ServerType& type, bool networked, Diagnostics& out) {
  const Place place = type.spec.place;
  const std::string at = type.spec.pointer + "/nodes";
  if (type.gpus.empty()) {
    out.error(place, at, "a server without GPUs", "add a node of kind gpu");
    return;
  }
  Groups groups(type.nodes.size());
  for (const Link& link : type.links) groups.join(link.from.v, link.to.v);
  const auto check = [&](std::uint32_t local, std::string_view what) {
    if (groups.of(local) == groups.of(type.gpus.front())) return;
    out.error(place, at,
              fmt::format("{} \"{}\" is not connected to \"{}\"", what, type.node_names[local],
                          type.node_names[type.gpus.front()]),
              "add the missing links");
  };
  for (const std::uint32_t gpu : type.gpus) check(gpu, "the GPU");
  if (networked) {
    for (const std::uint32_t nic : type.nics) check(nic, "the NIC");
    if (type.nics.empty()) {
      out.error(place, at, "a server without a compute NIC cannot join the network",
                "add a node of kind nic");
    }
  }
}

}  // namespace

void check_server(const ServerType& type, bool networked, Diagnostics& out) {
  check_reach(type, networked, out);
  check_acs(type, out);
  check_nvlinks(type, out);
}

}  // namespace weft
