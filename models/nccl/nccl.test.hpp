// SPDX-License-Identifier: Apache-2.0
// Machines and shorthand for the tests of NCCL's channels. Logs of real runs are the oracle where they exist; each names the
// issue thread it was read from.
#pragma once

#include <map>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "models/catalog.hpp"
#include "models/nccl/graph.hpp"
#include "tests/support/fabric_text.hpp"

namespace weft::nccl::testing {

using Order = std::vector<std::uint32_t>;

// A fabric or server as JSON; components of the catalogue may be named.
inline Fabric machine(const std::string& text) {
  Diagnostics out;
  weft::testing::MemoryFiles files;
  files.catalogue = true;
  files.files["machine.json"] = text;
  const Json document = Loader(files, out).load_file("machine.json");
  FabricSpec spec = read_fabric(document, {}, out);
  EXPECT_TRUE(out.ok()) << out.text();
  Fabric fabric = build_fabric(std::move(spec), link_classes(), out);
  EXPECT_TRUE(out.ok()) << out.text();
  return fabric;
}

// One server of the catalogue, or several on one large switch.
inline Fabric servers(const std::string& name, int count = 1) {
  return machine(fmt::format(
      R"({{"weft": {{"schema": 1}}, "kind": "fabric", "name": "test", "summary": "for a test", "servers": {}, "server": "{}",
          {} "sources": {{"": "assumed: a test"}}}})",
      count, name,
      count == 1
          ? ""
          : R"("network": {"generator": "single-switch", "switch": {"use": "qm9700", "set": {"/ports": 4096}}},)"));
}

// `nodes` and `links` of a server as JSON lists.
inline Fabric box(const std::string& nodes, const std::string& links, int count = 1,
                  const std::string& peers = R"({"nvlink": true, "pcie": "socket"})") {
  return machine(fmt::format(
      R"({{"weft": {{"schema": 1}}, "kind": "fabric", "name": "test", "summary": "for a test", "servers": {},
          "server": {{"weft": {{"schema": 1}}, "kind": "server", "name": "box", "summary": "for a test", "nodes": [{}],
                     "links": [{}], "peer_access": {}, "gpudirect_rdma": "switch", "sources": {{"": "assumed: a test"}}}},
          {} "sources": {{"": "assumed: a test"}}}})",
      count, nodes, links, peers,
      count == 1
          ? ""
          : R"("network": {"generator": "single-switch", "switch": {"use": "qm9700", "set": {"/ports": 4096}}},)"));
}

inline std::vector<NodeId> gpus_of(const Fabric& fabric,
                                   const std::vector<std::size_t>& picked = {}) {
  if (picked.empty()) return {fabric.gpus().begin(), fabric.gpus().end()};
  std::vector<NodeId> out;
  for (const std::size_t g : picked) out.push_back(fabric.gpus()[g]);
  return out;
}

inline NcclTopology study(const Fabric& fabric, NcclVersion version,
                          const std::vector<std::size_t>& picked = {},
                          std::map<std::string, std::string> variables = {}) {
  return nccl_topology(fabric, gpus_of(fabric, picked), version, {std::move(variables)});
}

inline const NcclGraph& ring(const NcclTopology& topology) {
  return topology.graphs.at(NcclPattern::ring);
}
inline const NcclGraph& tree(const NcclTopology& topology) {
  return topology.graphs.at(NcclPattern::tree);
}
inline std::vector<Order> orders(const NcclGraph& graph) {
  std::vector<Order> out;
  for (const NcclChannel& channel : graph.channels) out.push_back(channel.gpus);
  return out;
}
// A ring from rank 0 on.
inline Order from_zero(const Order& ring) {
  Order out = ring;
  std::rotate(out.begin(), std::find(out.begin(), out.end(), 0U), out.end());
  return out;
}

}  // namespace weft::nccl::testing
