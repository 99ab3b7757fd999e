// SPDX-License-Identifier: Apache-2.0
#include "calibrate/fit/predict.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "models/catalog.hpp"
#include "sim/run/p2p.hpp"

namespace weft {
namespace {

NodeId find_gpu(const Fabric& fabric, const std::string& name) {
  auto node = fabric.find_node(name);
  if (!node && name.find('/') == std::string::npos) node = fabric.find_node("server0/" + name);
  if (!node || fabric.node(*node).kind != NodeKind::gpu)
    throw InputError(fmt::format("error: the fabric has no GPU \"{}\"\n", name));
  return *node;
}

double predict_copy(Routes& routes, const Fabric& fabric, const FitCopy& copy) {
  CopyQuestion question;
  question.size = copy.bytes.count > 0 ? copy.bytes : Bytes{1};
  question.bidirectional = copy.both_ways;
  question.transfer.copy_call = copy.copy_call;
  question.transfer.peer_access = copy.peer_access;
  question.transfer.routing = fabric.routing();
  const auto answer = time_copy(routes, find_gpu(fabric, copy.from), find_gpu(fabric, copy.to),
                                question, [](std::span<const Bandwidth> capacities) {
                                  return make_network(Fidelity::fluid, capacities, {});
                                });
  if (!answer) {
    throw InputError(
        fmt::format("error: there is no way from {} to {} on this machine\n", copy.from, copy.to));
  }
  switch (copy.quantity) {
    case CopyQuantity::rate:
      return answer->bandwidth_gbs / (copy.both_ways ? 2 : 1);
    case CopyQuantity::time:
      return answer->time.us();
    case CopyQuantity::latency:
      return answer->latency.us();
  }
  return 0;
}

}  // namespace

std::vector<MeasuredPoint> measured_points(const FitData& data) {
  std::vector<MeasuredPoint> out;
  for (const FitTable& table : data.tables) {
    for (const FitRow& row : table.rows) {
      out.push_back({.id = fmt::format("{}@{}", table.name, to_text(row.bytes)),
                     .group = table.name,
                     .kind = PointKind::collective,
                     .bytes = row.bytes,
                     .across = table.nodes > 1,
                     .measured = row.us,
                     .spread = row.spread,
                     .refused = row.refused});
    }
  }
  for (const FitCopy& copy : data.copies) {
    out.push_back(
        {.id = fmt::format("{} {}-{}", copy.group, copy.from, copy.to),
         .group = copy.group,
         .kind = copy.quantity == CopyQuantity::latency ? PointKind::latency : PointKind::copy,
         .bytes = copy.bytes,
         .across = false,
         .measured = copy.value,
         .spread = copy.spread,
         .refused = copy.refused});
  }
  return out;
}

ParameterQuestion parameter_question(const FitData& data) {
  ParameterQuestion out;
  out.collectives = !data.tables.empty();
  if (out.collectives) out.harness = data.tables.front().setup.harness;
  for (const FitCopy& copy : data.copies) {
    out.copies = true;
    if (copy.quantity == CopyQuantity::latency && !copy.copy_call) out.latencies = true;
  }
  return out;
}

std::shared_ptr<const Fabric> Machine::build(const std::vector<ParameterChange>& changes,
                                             std::int64_t servers) const {
  Json document = document_;
  for (const ParameterChange& change : changes) {
    for (const std::string& pointer : change.parameter->pointers)
      set_value(document, pointer, parameter_value(change.parameter->unit, change.value));
  }
  if (document.find("network") != nullptr && servers > 0) document.set("servers", servers);
  Diagnostics problems;
  FabricSpec spec = read_fabric(document, {}, problems);
  problems.throw_if_errors();
  auto fabric =
      std::make_shared<const Fabric>(build_fabric(std::move(spec), link_classes(), problems));
  problems.throw_if_errors();
  return fabric;
}

std::vector<double> Machine::predict(const FitData& data,
                                     const std::vector<ParameterChange>& changes) const {
  std::map<std::int64_t, std::shared_ptr<const Fabric>> fabrics;
  const auto of = [&](std::int64_t servers) -> const Fabric& {
    auto& entry = fabrics[servers];
    if (!entry) entry = build(changes, servers);
    return *entry;
  };
  std::vector<double> out;
  for (const FitTable& table : data.tables) {
    const Fabric& fabric = of(table.nodes);
    std::vector<Bytes> sizes;
    for (const FitRow& row : table.rows) sizes.push_back(row.bytes);
    const std::vector<NodeId> gpus = ranks_of(fabric, table);
    for (const NcclRow& row : predict_nccl(fabric, gpus, table.collective, sizes, table.setup,
                                           topology(fabric, table, gpus)))
      out.push_back(row.time.us());
  }
  if (data.copies.empty()) return out;
  const Fabric& fabric = of(1);
  Routes routes(fabric);
  for (const FitCopy& copy : data.copies) out.push_back(predict_copy(routes, fabric, copy));
  return out;
}

const NcclTopology& Machine::topology(const Fabric& fabric, const FitTable& table,
                                      const std::vector<NodeId>& gpus) const {
  std::string key = fmt::format("{} {}", table.nodes, version_text(table.setup.version));
  for (const NodeId gpu : gpus) key += fmt::format(" {}", gpu.v);
  for (const auto& [name, value] : table.setup.environment.variables)
    key += fmt::format(" {}={}", name, value);
  auto found = topologies_.find(key);
  if (found == topologies_.end()) {
    found =
        topologies_
            .emplace(key, nccl_topology(fabric, gpus, table.setup.version, table.setup.environment))
            .first;
  }
  return found->second;
}

std::vector<NodeId> ranks_of(const Fabric& fabric, const FitTable& table) {
  if (static_cast<std::size_t>(table.nodes) > fabric.server_count()) {
    throw InputError(fmt::format("error: {}: {} servers took part, the fabric has {}\n", table.name,
                                 table.nodes, fabric.server_count()));
  }
  std::vector<NodeId> out;
  for (std::uint32_t s = 0; s < static_cast<std::uint32_t>(table.nodes); ++s) {
    const ServerId server{s};
    const std::vector<std::uint32_t>& gpus = fabric.type_of(server).gpus;
    std::vector<std::int64_t> wanted = table.positions;
    if (wanted.empty()) {
      std::int64_t each = table.per_node.value_or(static_cast<std::int64_t>(gpus.size()));
      if (table.ranks > 0 && !table.per_node) each = (table.ranks + table.nodes - 1) / table.nodes;
      for (std::int64_t i = 0; i < each; ++i) wanted.push_back(i);
    }
    for (const std::int64_t position : wanted) {
      if (position < 0 || static_cast<std::size_t>(position) >= gpus.size()) {
        throw InputError(fmt::format("error: {}: GPU {} of a server took part, it has {}\n",
                                     table.name, position, gpus.size()));
      }
      if (table.ranks > 0 && static_cast<std::int64_t>(out.size()) == table.ranks) break;
      out.push_back(fabric.local_node(server, gpus[static_cast<std::size_t>(position)]));
    }
  }
  return out;
}

}  // namespace weft
