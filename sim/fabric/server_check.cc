// SPDX-License-Identifier: Apache-2.0
#include "sim/fabric/server_check.hpp"

#include <cstdint>
#include <numeric>
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

// Every GPU must be able to reach every other node of interest, else a run would hang on it.
void check_reach(const ServerType& type, bool networked, Diagnostics& out) {
  const Place place = type.spec.place;
  const std::string at = type.spec.pointer + "/nodes";
  if (type.gpus.empty()) {
    out.error(place, at, "a server without GPUs", "add a node of kind gpu");
    return;
  }
  std::vector<std::uint32_t> group(type.nodes.size());
  std::iota(group.begin(), group.end(), 0U);
  const auto root = [&](std::uint32_t x) {
    while (group[x] != x) x = group[x] = group[group[x]];
    return x;
  };
  for (const Link& link : type.links) group[root(link.from.v)] = root(link.to.v);
  const auto check = [&](std::uint32_t local, std::string_view what) {
    if (root(local) == root(type.gpus.front())) return;
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
  check_nvlinks(type, out);
}

}  // namespace weft
