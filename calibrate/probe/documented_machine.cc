// SPDX-License-Identifier: Apache-2.0
#include "calibrate/probe/documented_machine.hpp"

#include <algorithm>
#include <map>
#include <set>

#include <fmt/format.h>

#include "sim/core/text.hpp"
#include "sim/fabric/routing.hpp"

namespace weft {
namespace {

// The PCIe switch and the socket above a device.
struct Above {
  NodeId pcie_switch, socket;
};

class Describer {
 public:
  explicit Describer(const Fabric& fabric) : fabric_(fabric), routes_(fabric) {}

  ProbeMachine run() {
    gpus();
    hosts();
    paths();
    return std::move(out_);
  }

 private:
  Above above(NodeId device) const {
    Above out;
    NodeId at = device;
    for (int steps = 0; steps < 8 && !out.socket.valid(); ++steps) {
      NodeId next;
      for (const LinkId id : fabric_.out_links(at)) {
        const NodeId to = fabric_.link(id).to;
        const NodeKind kind = fabric_.node(to).kind;
        if (kind == NodeKind::cpu) out.socket = to;
        if (kind == NodeKind::pcie_switch && to != out.pcie_switch && !next.valid()) next = to;
      }
      if (out.socket.valid() || !next.valid()) break;
      if (!out.pcie_switch.valid()) out.pcie_switch = next;
      at = next;
    }
    return out;
  }

  // Sockets that are reached through sockets.
  std::vector<NodeId> sockets_beside(NodeId socket) const {
    std::vector<NodeId> out{socket};
    for (std::size_t i = 0; i < out.size(); ++i) {
      for (const LinkId id : fabric_.out_links(out[i])) {
        const NodeId to = fabric_.link(id).to;
        if (fabric_.node(to).kind == NodeKind::cpu && std::ranges::find(out, to) == out.end())
          out.push_back(to);
      }
    }
    out.erase(out.begin());
    return out;
  }

  int nvlinks(NodeId from, NodeId to) const {
    int direct = 0, switched = 0;
    for (const LinkId id : fabric_.out_links(from)) {
      const Link& link = fabric_.link(id);
      if (link.to == to) direct += link.count;
      if (fabric_.node(link.to).kind == NodeKind::nvswitch) switched += link.count;
    }
    return direct > 0 ? direct : switched;
  }

  void gpus() {
    for (const NodeId id : fabric_.gpus()) {
      const GpuSpec& spec = fabric_.gpu_spec(id);
      ProbeGpu gpu;
      gpu.name = fabric_.name(id);
      gpu.server = static_cast<int>(fabric_.node(id).server.v);
      if (const Above up = above(id); up.socket.valid()) {
        gpu.near = fabric_.name(up.socket);
        for (const NodeId other : sockets_beside(up.socket)) gpu.far.push_back(fabric_.name(other));
      }
      gpu.memory = spec.memory.value_or(Bytes{0});
      for (const char* type : {"bf16", "fp16", "fp8", "tf32", "fp32"}) {
        if (spec.compute && spec.peak.contains(type)) gpu.types.emplace_back(type);
      }
      if (!spec.compute) out_.no_products = "nothing is known about the kernels of " + spec.name;
      if (!spec.kernels) out_.no_collectives = "nothing is known about NCCL on " + spec.name;
      out_.gpus.push_back(std::move(gpu));
    }
  }

  void hosts() {
    const std::size_t nodes = fabric_.node_count();
    for (std::size_t s = 0; s < fabric_.server_count(); ++s) {
      out_.hosts.emplace_back().server = static_cast<int>(s);
      out_.hosts.back().host = fmt::format("{}-{}", fabric_.spec().name, s);
    }
    std::vector<int> devices(fabric_.server_count(), 0);
    for (std::size_t i = 0; i < nodes; ++i) {
      const NodeId id{i};
      const Node& node = fabric_.node(id);
      if (!node.server.valid()) continue;
      MeasuredHost& host = out_.hosts[node.server.v];
      if (node.kind == NodeKind::cpu) {
        ++host.sockets;
      } else if (node.kind == NodeKind::gpu) {
        const GpuSpec& spec = fabric_.gpu_spec(id);
        MeasuredGpu gpu;
        gpu.device = devices[node.server.v]++;
        gpu.product = spec.name;
        gpu.compute_capability = spec.compute_capability;
        gpu.sms = spec.sms;
        gpu.copy_engines = spec.copy_engines;
        gpu.memory = spec.memory;
        gpu.l2_cache = spec.l2_cache;
        gpu.clock = spec.clock;
        if (const Above up = above(id); up.socket.valid()) gpu.numa = numa(up.socket);
        host.gpus.push_back(std::move(gpu));
      }
    }
    for (const NodeId id : fabric_.nics()) {
      MeasuredNic nic;
      nic.name = fabric_.name(id);
      if (const Above up = above(id); up.socket.valid()) nic.numa = numa(up.socket);
      for (const LinkId link : fabric_.out_links(id)) {
        const NodeKind to = fabric_.node(fabric_.link(link).to).kind;
        if (to == NodeKind::network_switch || to == NodeKind::nic)
          nic.rate = fabric_.link(link).raw;
      }
      out_.hosts[fabric_.node(id).server.v].nics.push_back(nic);
      out_.nics.push_back(nic.name);
    }
    if (fabric_.server_count() < 2) out_.nics.clear();
    if (out_.nics.empty()) out_.no_messages = "no two NICs that are joined";
  }

  // Position among the sockets of its server.
  int numa(NodeId socket) const {
    int out = 0;
    for (std::size_t i = 0; i < socket.v; ++i) {
      const Node& node = fabric_.node(NodeId{i});
      out += node.kind == NodeKind::cpu && node.server == fabric_.node(socket).server ? 1 : 0;
    }
    return out;
  }

  void paths() {
    const auto gpus = fabric_.gpus();
    out_.paths.assign(gpus.size(), std::vector<ProbePath>(gpus.size()));
    for (std::size_t i = 0; i < gpus.size(); ++i) {
      for (std::size_t j = 0; j < gpus.size(); ++j) {
        if (i != j && fabric_.node(gpus[i]).server == fabric_.node(gpus[j]).server)
          out_.paths[i][j] = path(gpus[i], gpus[j]);
        if (i >= j || out_.paths[i][j].kind.empty()) continue;
        MeasuredHost& host = out_.hosts[fabric_.node(gpus[i]).server.v];
        const auto bare = [&](std::size_t k) {
          return out_.gpus[k].name.substr(out_.gpus[k].name.find('/') + 1);
        };
        host.paths[fmt::format("{}-{}", bare(i), bare(j))] = out_.paths[i][j].kind;
      }
    }
  }

  ProbePath path(NodeId from, NodeId to) {
    const auto transfer = routes_.transfer(from, to, {.routing = fabric_.routing()});
    if (!transfer) return {};
    const bool direct = transfer->via == Via::direct;
    if (direct && routes_.peers_over_scale_up(from, to))
      return {fmt::format("NV{}", nvlinks(from, to)), true};
    const Above a = above(from), b = above(to);
    const bool one_switch = a.pcie_switch.valid() && a.pcie_switch == b.pcie_switch;
    return {one_switch ? "PIX" : a.socket == b.socket ? "PHB" : "SYS", direct};
  }

  const Fabric& fabric_;
  Routes routes_;
  ProbeMachine out_;
};

}  // namespace

ProbeMachine documented_machine(const Fabric& fabric) { return Describer(fabric).run(); }

}  // namespace weft
