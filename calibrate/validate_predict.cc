// SPDX-License-Identifier: Apache-2.0
#include "calibrate/validate_predict.hpp"

#include <algorithm>
#include <map>

#include <fmt/format.h>

#include "calibrate/validate_roce.hpp"
#include "calibrate/validate_train.hpp"
#include "models/catalog.hpp"
#include "models/nccl/predict.hpp"
#include "sim/core/check.hpp"
#include "sim/run/p2p.hpp"
#include "sim/run/run.hpp"

namespace weft {
namespace {

constexpr std::size_t kMostPairs = 100'000;  // of GPUs in one record

// The GPUs of a row in rank order: of the first `nodes` servers, those of `positions` or the first `per_node`.
std::vector<NodeId> pick_gpus(const Fabric& fabric, std::int64_t nodes,
                              std::optional<std::int64_t> per_node,
                              const std::vector<std::int64_t>& positions) {
  if (static_cast<std::size_t>(nodes) > fabric.server_count()) {
    throw InputError(
        fmt::format("{} servers are wanted, the fabric has {}", nodes, fabric.server_count()));
  }
  std::vector<NodeId> out;
  for (std::uint32_t s = 0; s < static_cast<std::uint32_t>(nodes); ++s) {
    const ServerId server{s};
    const std::vector<std::uint32_t>& gpus = fabric.type_of(server).gpus;
    const auto take = [&](std::int64_t position) {
      if (position < 0 || static_cast<std::size_t>(position) >= gpus.size()) {
        throw InputError(
            fmt::format("GPU {} of a server is wanted, it has {}", position, gpus.size()));
      }
      out.push_back(fabric.local_node(server, gpus[static_cast<std::size_t>(position)]));
    };
    if (!positions.empty()) {
      for (const std::int64_t position : positions) take(position);
    } else {
      const std::int64_t count = per_node.value_or(static_cast<std::int64_t>(gpus.size()));
      for (std::int64_t position = 0; position < count; ++position) take(position);
    }
  }
  return out;
}

std::string networks_of(const Fabric& fabric, std::span<const NodeId> gpus) {
  const ServerId first = fabric.node(gpus.front()).server;
  const bool one =
      std::ranges::all_of(gpus, [&](NodeId gpu) { return fabric.node(gpu).server == first; });
  if (one) return "one server";
  const ServerType& type = fabric.type_of(first);
  return type.nic_specs.empty() ? "none" : type.nic_specs.front().transport;
}

std::string architecture_of(const Fabric& fabric) {
  const ServerType& type = fabric.types().front();
  return type.gpu_specs.empty() ? "unknown" : type.gpu_specs.front().architecture;
}

void predict_nccl_rows(const ValidationRecord& record, const ValidationContext& context,
                       RecordResult& out) {
  const NcclCase& ask = record.nccl;
  NcclSetup setup;
  if (const auto version = parse_nccl_version(ask.nccl)) setup.version = *version;
  setup.harness = ask.harness;
  setup.algorithm = ask.algorithm;
  setup.protocol = ask.protocol;
  for (const auto& [name, value] : ask.env) setup.environment.variables[name] = value;
  std::map<std::pair<std::int64_t, std::int64_t>, std::vector<const CaseRow*>> groups;
  for (const CaseRow& row : record.rows)
    groups[{row.nodes, row.gpus_per_node.value_or(-1)}].push_back(&row);
  std::map<const CaseRow*, RowResult> results;
  for (const auto& [shape, rows] : groups) {
    const auto fabric = context.fabric(ask.fabric, ask.set, shape.first);
    const std::vector<NodeId> gpus =
        pick_gpus(*fabric, shape.first, rows.front()->gpus_per_node, ask.gpus);
    out.gpu = architecture_of(*fabric);
    out.network = networks_of(*fabric, gpus);
    std::vector<Bytes> sizes;
    for (const CaseRow* row : rows) sizes.push_back(row->bytes);
    const std::vector<NcclRow> predicted =
        predict_nccl(*fabric, gpus, ask.collective, sizes, setup);
    WEFT_CHECK(predicted.size() == rows.size(), predicted.size(), rows.size());
    const double factor = busbw_factor(ask.collective, gpus.size());
    for (std::size_t i = 0; i < rows.size(); ++i) {
      const CaseRow& row = *rows[i];
      RowResult& result = results[&row];
      const double bits = record.quantity == Quantity::busbw ? factor : 1;
      const double bytes = row.bytes.value();
      result.measured =
          record.quantity == Quantity::time ? row.measured : bits * bytes / row.measured * 1e-3;
      result.predicted = predicted[i].time.us();
      result.bytes = row.bytes;
      result.measured_gbs = factor * bytes / result.measured * 1e-3;
      result.predicted_gbs = factor * bytes / result.predicted * 1e-3;
      result.how = fmt::format("{} {} x{}", predicted[i].algorithm, predicted[i].protocol,
                               predicted[i].channels);
    }
  }
  for (const CaseRow& row : record.rows) out.rows.push_back(std::move(results[&row]));
}

NodeId find_gpu(const Fabric& fabric, const std::string& name) {
  auto node = fabric.find_node(name);
  if (!node && name.find('/') == std::string::npos) node = fabric.find_node("server0/" + name);
  if (!node || fabric.node(*node).kind != NodeKind::gpu)
    throw InputError(fmt::format("the fabric has no GPU \"{}\"", name));
  return *node;
}

void predict_copies(const ValidationRecord& record, const ValidationContext& context,
                    RecordResult& out) {
  const P2pCase& ask = record.p2p;
  const auto fabric = context.fabric(ask.fabric, ask.set, 1);
  Routes routes(*fabric);
  out.gpu = architecture_of(*fabric);
  CopyQuestion question;
  question.bidirectional = ask.bidirectional;
  question.transfer.copy_call = ask.copy_call;
  question.transfer.peer_access = ask.peer_access;
  question.transfer.routing = fabric->routing();
  const auto network = [](std::span<const Bandwidth> capacities) {
    return make_network(Fidelity::fluid, capacities, {});
  };
  const auto predict = [&](const CaseRow& row, NodeId src, NodeId dst) {
    question.size = row.bytes.count > 0 ? row.bytes : Bytes{1};
    std::optional<CopyAnswer> answer;
    if (record.via.empty()) {
      question.transfer.via = std::nullopt;
      answer = time_copy(routes, src, dst, question, network);
    }
    for (const Via via : record.via) {
      question.transfer.via = via;
      answer = time_copy(routes, src, dst, question, network);
      if (answer) break;
    }
    if (!answer) {
      throw InputError(
          fmt::format("there is no such way from {} to {}", fabric->name(src), fabric->name(dst)));
    }
    const NodeId ends[] = {src, dst};
    out.network = networks_of(*fabric, ends);
    RowResult& result = out.rows.emplace_back();
    result.bytes = row.bytes;
    result.measured = row.measured;
    result.how = write_config(answer->via).text;
    if (ask.quantity == Quantity::bandwidth) {
      result.predicted = answer->bandwidth_gbs;
    } else {
      result.predicted = row.bytes.count > 0 ? answer->time.us() : answer->latency.us();
    }
    result.predicted_gbs = answer->bandwidth_gbs;
    const double ways = ask.bidirectional ? 2 : 1;
    result.measured_gbs = ask.quantity == Quantity::bandwidth
                              ? row.measured
                              : ways * row.bytes.value() / row.measured * 1e-3;
  };
  for (const CaseRow& row : record.rows) {
    if (!row.src.empty()) {
      predict(row, find_gpu(*fabric, row.src), find_gpu(*fabric, row.dst));
      out.rows.back().id = row.label;
      continue;
    }
    const std::size_t n = fabric->gpus().size();
    if (n * n > kMostPairs)
      throw LimitReached(
          fmt::format("{}: {} GPUs have more than {} pairs", record.id, n, kMostPairs));
    for (const NodeId src : fabric->gpus()) {
      for (const NodeId dst : fabric->gpus()) {
        if (src == dst) continue;
        predict(row, src, dst);
        out.rows.back().id = fmt::format("{}{}-{}", row.label.empty() ? "" : row.label + ",",
                                         fabric->name(src), fabric->name(dst));
      }
    }
  }
}

}  // namespace

RecordResult predict_record(const ValidationRecord& record, const ValidationContext& context) {
  RecordResult out;
  out.record = &record;
  if (record.kind == CaseKind::train) return predict_training(record, context);
  if (record.kind == CaseKind::roce) return predict_roce(record, context);
  const bool bandwidth = record.kind == CaseKind::p2p && record.p2p.quantity == Quantity::bandwidth;
  out.unit = bandwidth ? "GB/s" : "us";
  try {
    if (record.kind == CaseKind::nccl)
      predict_nccl_rows(record, context, out);
    else
      predict_copies(record, context, out);
  } catch (const InputError& problem) {
    out.failure = problem.what();
    out.rows.clear();
  }
  for (std::size_t i = 0; i < out.rows.size(); ++i) {
    RowResult& row = out.rows[i];
    const std::string label =
        record.kind == CaseKind::nccl ? record.rows[i].label : std::move(row.id);
    row.id = label.empty() ? record.id : record.id + "@" + label;
    row.error = row.predicted / row.measured - 1;
  }
  return out;
}

}  // namespace weft
