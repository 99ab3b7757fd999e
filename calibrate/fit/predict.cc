// SPDX-License-Identifier: Apache-2.0
#include "calibrate/fit/predict.hpp"

#include <algorithm>
#include <bit>
#include <utility>

#include <fmt/format.h>

#include "calibrate/probe/hidden_transfers.hpp"
#include "models/catalog.hpp"
#include "models/compute/kernels.hpp"
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

// Where the data of a name lie: the memory of a socket, or the device itself.
NodeId find_end(const Fabric& fabric, const std::string& name) {
  auto node = fabric.find_node(name);
  if (!node && name.find('/') == std::string::npos) node = fabric.find_node("server0/" + name);
  if (!node) throw InputError(fmt::format("error: the fabric has no \"{}\"\n", name));
  if (fabric.node(*node).kind != NodeKind::cpu) return *node;
  for (const LinkId id : fabric.out_links(*node))
    if (fabric.node(fabric.link(id).to).kind == NodeKind::dram) return fabric.link(id).to;
  return *node;
}

// Transfers that start together, as fluids: from the common start to the end of each, in us.
class Together {
 public:
  explicit Together(const Fabric& fabric) : fabric_(fabric), routes_(fabric), ways_(fabric) {}

  std::vector<double> times(std::span<const FitCopy> copies) {
    std::vector<Transfer> transfers;
    for (const FitCopy& copy : copies) transfers.push_back(way(copy));
    const auto network = make_network(Fidelity::fluid, fabric_.capacities(), {});
    std::vector<std::size_t> leg(copies.size(), 0);
    std::vector<double> out(copies.size(), 0);
    const auto start = [&](std::size_t i, Time now) {
      const Leg& next = transfers[i].legs[leg[i]];
      FlowRequest request;
      request.shares = next.route.shares;
      request.size = copies[i].bytes;
      request.latency = next.route.latency + next.startup;
      request.cap = next.cap;
      request.tag = i;
      network->start(request, now);
    };
    for (std::size_t i = 0; i < copies.size(); ++i) start(i, Time{0});
    std::vector<FlowDone> done;
    for (std::size_t running = copies.size(); running > 0;) {
      const Time now = network->next_event();
      if (now >= Time::never())
        throw InputError(
            fmt::format("error: {} from {} to {} takes longer than weft's clock runs\n",
                        to_text(copies[0].bytes), copies[0].from, copies[0].to));
      network->advance(now, done);
      for (const FlowDone& end : done) {
        const std::size_t i = end.tag;
        if (++leg[i] < transfers[i].legs.size()) {
          start(i, now);
          continue;
        }
        out[i] = end.when.us();
        --running;
      }
      done.clear();
    }
    return out;
  }

 private:
  Transfer way(const FitCopy& copy) {
    if (copy.from == kHost || copy.to == kHost) {
      const bool up = copy.from == kHost;
      auto leg = routes_.host_copy(find_gpu(fabric_, up ? copy.to : copy.from),
                                   up ? HostWay::to_gpu : HostWay::to_host);
      if (!leg)
        throw InputError(fmt::format("error: there is no way from {} to {} on this machine\n",
                                     copy.from, copy.to));
      Transfer out;
      out.via = Via::host;
      out.legs.push_back(std::move(*leg));
      return out;
    }
    const NodeId from = find_end(fabric_, copy.from), to = find_end(fabric_, copy.to);
    const bool gpus =
        fabric_.node(from).kind == NodeKind::gpu && fabric_.node(to).kind == NodeKind::gpu;
    if (gpus) {
      auto found = routes_.transfer(from, to,
                                    {.peer_access = copy.peer_access,
                                     .copy_call = copy.copy_call,
                                     .routing = fabric_.routing()});
      if (found) return std::move(*found);
    } else if (auto route = ways_.shortest(from, to)) {
      const NodeId gpu = fabric_.node(from).kind == NodeKind::gpu ? from : to;
      Transfer out;
      out.via = Via::host;
      out.legs.push_back({.route = std::move(*route),
                          .startup = fabric_.type_of(fabric_.node(gpu).server).spec.copy.latency});
      return out;
    }
    throw InputError(
        fmt::format("error: there is no way from {} to {} on this machine\n", copy.from, copy.to));
  }

  const Fabric& fabric_;
  Routes routes_;
  HiddenTransfers ways_;
};

// In GB/s, of one direction.
double predict_host_copy(Together& together, const FitCopy& copy) {
  std::vector<FitCopy> copies{copy};
  if (copy.both_ways) {
    copies.push_back(copy);
    std::swap(copies.back().from, copies.back().to);
  }
  return copy.bytes.value() / together.times(copies).front() * 1e-3;
}

double predict_kernel(const Fabric& fabric, const FitKernel& kernel) {
  GpuSpec spec = fabric.gpu_spec(find_gpu(fabric, kernel.gpu));
  if (spec.compute) spec.compute->sustained = 1;  // one kernel alone is not throttled
  const KernelTimes times(spec, SoftwareSpec{});
  if (kernel.test != KernelTest::matmul) return times.memory({.bytes = kernel.bytes.value()}) * 1e6;
  Gemm gemm{.m = static_cast<double>(kernel.m),
            .n = static_cast<double>(kernel.n),
            .k = static_cast<double>(kernel.k)};
  for (const auto& precision : enum_names(Precision{}))
    if (precision.name == kernel.type) gemm.precision = precision.value;
  return times.gemm(gemm) * 1e6;
}

// Large enough that starts at their lower bound are a small part: 16 MiB take 700 us over PCIe 4 and 37 us over NVLink 4. What a GPU's cache could hold (128 MiB on B200) is no measure of its memory. 100 us at 1 PFLOP/s.
// Source: assumed, from rates and caches of configs/gpus.
constexpr Bytes kBulk = 16_MiB, kUncached = 1_GiB;
constexpr double kLongProduct = 1e11;

// Places in a document that was read before are those of other diagnostics, which know its file.
void throw_without_places(const Diagnostics& problems) {
  Diagnostics out;
  for (const Problem& problem : problems.problems())
    if (problem.severity == Problem::Severity::error)
      out.error({}, problem.pointer, problem.fact, problem.cure);
  out.throw_if_errors();
}

double flops(const FitKernel& kernel) {
  return 2.0 * static_cast<double>(kernel.m) * static_cast<double>(kernel.n) *
         static_cast<double>(kernel.k);
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
                     .bulk = row.bytes >= kBulk,
                     .measured = row.us,
                     .spread = row.spread,
                     .refused = row.refused});
    }
  }
  for (const FitCopy& copy : data.copies) {
    out.push_back(
        {.id = fmt::format("{} {} {}-{}", copy.group, to_text(copy.bytes), copy.from, copy.to),
         .group = copy.group,
         .kind = copy.quantity == CopyQuantity::latency ? PointKind::latency : PointKind::copy,
         .bytes = copy.bytes,
         .across = false,
         .rate = copy.quantity == CopyQuantity::rate,
         .bulk = copy.bytes >= kBulk,
         .measured = copy.value,
         .spread = copy.spread,
         .refused = copy.refused});
  }
  for (const FitKernel& kernel : data.kernels) {
    const std::string what =
        kernel.test == KernelTest::matmul
            ? fmt::format("{} {} x {} x {}", kernel.type, kernel.m, kernel.n, kernel.k)
            : fmt::format("{} of {}", write_config(kernel.test).text, to_text(kernel.bytes));
    out.push_back({.id = fmt::format("{} on {}", what, kernel.gpu),
                   .group = what,
                   .kind = PointKind::kernel,
                   .bytes = kernel.bytes,
                   .bulk = kernel.bytes >= kUncached || flops(kernel) >= kLongProduct,
                   .measured = kernel.us,
                   .spread = kernel.spread,
                   .refused = kernel.refused});
  }
  // Rows of one table share its errors over a factor of some sixteen in size, copies and kernels those of their kind and size.
  std::map<std::pair<std::string, std::int64_t>, double> alike;
  const auto kind_of = [](const MeasuredPoint& point) {
    const bool table = point.kind == PointKind::collective;
    return std::pair{point.group,
                     table ? std::bit_width(static_cast<std::uint64_t>(point.bytes.count)) / 4
                           : point.bytes.count};
  };
  for (const MeasuredPoint& point : out) ++alike[kind_of(point)];
  for (MeasuredPoint& point : out) point.alike = alike[kind_of(point)];
  return out;
}

ParameterQuestion parameter_question(const FitData& data) {
  ParameterQuestion out;
  out.collectives = !data.tables.empty();
  if (out.collectives) out.harness = data.tables.front().setup.harness;
  out.copies = !data.copies.empty();
  out.kernels = !data.kernels.empty();
  return out;
}

std::shared_ptr<const Fabric> FitMachine::build(const std::vector<ParameterChange>& changes,
                                                std::int64_t servers) const {
  Json document = document_;
  for (const ParameterChange& change : changes) {
    for (const std::string& pointer : change.parameter->pointers)
      set_value(document, pointer, parameter_value(change.parameter->unit, change.value));
  }
  if (document.find("network") != nullptr && servers > 0) document.set("servers", servers);
  Diagnostics problems;
  FabricSpec spec = read_fabric(document, {}, problems);
  throw_without_places(problems);
  if (tweak) tweak(spec);
  auto fabric =
      std::make_shared<const Fabric>(build_fabric(std::move(spec), link_classes(), problems));
  throw_without_places(problems);
  return fabric;
}

std::vector<double> FitMachine::predict(const FitData& data,
                                        const std::vector<ParameterChange>& changes) const {
  return Predictor(*this, data).predict(changes);
}

std::vector<double> Predictor::predict(const std::vector<ParameterChange>& changes) const {
  std::vector<double> out;
  for (const ParameterReach reach :
       {ParameterReach::collectives, ParameterReach::copies, ParameterReach::kernels}) {
    std::vector<ParameterChange> some;
    std::string key;
    for (const ParameterChange& change : changes) {
      if (!change.parameter->reaches(reach)) continue;
      some.push_back(change);
      key += fmt::format("{}={:a};", change.parameter->name, change.value);
    }
    auto& known = known_[reach];
    auto found = known.find(key);
    if (found == known.end()) {
      constexpr std::size_t kMostKnown = 256;
      if (known.size() >= kMostKnown) known.clear();
      found = known.emplace(std::move(key), part(reach, some)).first;
    }
    out.insert(out.end(), found->second.begin(), found->second.end());
  }
  return out;
}

std::vector<double> Predictor::part(ParameterReach reach,
                                    const std::vector<ParameterChange>& changes) const {
  std::map<std::int64_t, std::shared_ptr<const Fabric>> fabrics;
  const auto of = [&](std::int64_t servers) -> const Fabric& {
    auto& entry = fabrics[servers];
    if (!entry) entry = machine_.build(changes, servers);
    return *entry;
  };
  std::vector<double> out;
  if (reach == ParameterReach::kernels) {
    for (const FitKernel& kernel : data_.kernels)
      out.push_back(predict_kernel(of(data_.servers), kernel));
    return out;
  }
  if (reach == ParameterReach::collectives) {
    for (const FitTable& table : data_.tables) {
      const Fabric& fabric = of(table.nodes);
      std::vector<Bytes> sizes;
      for (const FitRow& row : table.rows) sizes.push_back(row.bytes);
      const std::vector<NodeId> gpus = ranks_of(fabric, table);
      for (const NcclRow& row : predict_nccl(fabric, gpus, table.collective, sizes, table.setup,
                                             machine_.topology(fabric, table, gpus)))
        out.push_back(row.time.us());
    }
    return out;
  }
  if (data_.copies.empty()) return out;
  const Fabric& fabric = of(data_.servers);
  Routes routes(fabric);
  Together together(fabric);
  for (std::size_t i = 0; i < data_.copies.size();) {
    const FitCopy& copy = data_.copies[i];
    if (copy.quantity != CopyQuantity::time || copy.both_ways) {
      out.push_back(copy.from == kHost || copy.to == kHost ? predict_host_copy(together, copy)
                                                           : predict_copy(routes, fabric, copy));
      ++i;
      continue;
    }
    std::size_t end = i + 1;
    while (copy.together > 0 && end < data_.copies.size() &&
           data_.copies[end].together == copy.together)
      ++end;
    const std::vector<double> times = together.times(std::span(data_.copies).subspan(i, end - i));
    out.insert(out.end(), times.begin(), times.end());
    i = end;
  }
  return out;
}

const NcclTopology& FitMachine::topology(const Fabric& fabric, const FitTable& table,
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
  for (const std::string& name : table.gpus) out.push_back(find_gpu(fabric, name));
  if (!out.empty()) return out;
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
