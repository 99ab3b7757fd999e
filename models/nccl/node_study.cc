// SPDX-License-Identifier: Apache-2.0
#include "models/nccl/node_study.hpp"

#include <algorithm>

#include "models/nccl/notes.hpp"

namespace weft::nccl {
namespace {

std::uint32_t channels_between_gpus(const Machine& machine, const Paths& paths,
                                    const Rules& rules) {
  std::uint32_t least = ~0U;
  for (std::size_t g = 0; g < machine.count(DeviceKind::gpu); ++g) {
    const Speed one =
        nvlink_speed(rules.version, machine.at(DeviceKind::gpu, g).compute_capability);
    for (std::size_t p = 0; p < machine.count(DeviceKind::gpu); ++p) {
      if (p == g) continue;
      const Path& path = paths.between(DeviceKind::gpu, p, DeviceKind::gpu, g);
      const bool nvlink = path.type == NcclPath::nvl ||
                          (rules.version >= NcclVersion{2, 30, 0} && path.type == NcclPath::nvb);
      const auto links =
          static_cast<std::uint32_t>(nvlink ? std::max<Speed>(path.speed / one, 1) : 1);
      least = std::min(least, 2 * links);
    }
  }
  return least;
}

void count_nets(const Machine& machine, const Paths& paths, const Rules& rules, NodeStudy& kind) {
  bool first = true;
  for (std::size_t g = 0; g < machine.count(DeviceKind::gpu); ++g) {
    Speed target = 0;
    const std::uint32_t gpu = machine.of(DeviceKind::gpu)[g];
    for (const std::uint32_t cpu : machine.of(DeviceKind::cpu)) {
      if (rules.peer_channels_by_network || paths.between(gpu, cpu).hops() == 1)
        target = std::max(target, paths.between(gpu, cpu).speed);
    }
    const auto nets = paths.nearest(DeviceKind::gpu, g, DeviceKind::net);
    std::uint32_t count = 0;
    Speed total = 0;
    // Newer releases count the NICs a GPU takes in turn; older ones all that are near.
    std::size_t reachable = nets.size();
    if (rules.peer_channels_by_network && !nets.empty()) {
      const std::size_t sharers = paths.nearest(DeviceKind::net, nets[0], DeviceKind::gpu).size();
      reachable = sharers == 0 ? 1 : (nets.size() + sharers - 1) / sharers;
    }
    for (std::size_t i = 0; i < reachable && total < target; ++i, ++count)
      total += paths.between(DeviceKind::gpu, g, DeviceKind::net, nets[i]).speed;
    if (first || count < kind.nets_by_speed) {
      kind.nets_by_speed = count;
      kind.net_speed = total;
    }
    first = false;
  }
}

}  // namespace

std::unique_ptr<NodeStudy> study_node(const ServerType& type,
                                      const std::vector<std::uint32_t>& positions,
                                      const NicPorts& ports, const Rules& rules,
                                      const Variables& variables, std::size_t nodes) {
  auto kind = std::make_unique<NodeStudy>();
  Machine machine = build_machine(type, positions, ports, rules);
  const Paths paths(machine, rules, variables.policy);
  kind->cpu = machine.cpu;
  kind->hosts = machine.hosts;
  kind->nvs = machine.count(DeviceKind::nvs) > 0;
  kind->multicast = kind->nvs && type.reduction.has_value();
  kind->least_capability = 999;
  for (std::size_t g = 0; g < machine.count(DeviceKind::gpu); ++g) {
    const Device& gpu = machine.at(DeviceKind::gpu, g);
    kind->channels.rank_of.push_back(gpu.rank);
    kind->least_capability = std::min(kind->least_capability, gpu.compute_capability);
    kind->most_capability = std::max(kind->most_capability, gpu.compute_capability);
  }
  for (std::size_t n = 0; n < machine.count(DeviceKind::net); ++n) {
    const Device& net = machine.at(DeviceKind::net, n);
    kind->channels.nic_of.push_back(net.nic);
    if (n == 0 || net.speed < kind->least_nic) kind->least_nic = net.speed;
  }
  kind->peers_inside = channels_between_gpus(machine, paths, rules);
  count_nets(machine, paths, rules, *kind);

  const std::size_t most = rules.most_channels;
  const auto find = [&](Shape shape, std::size_t least, std::size_t limit, bool collnet = false) {
    return find_channels(machine, paths, rules, variables.search, {shape, least, limit, collnet});
  };
  NodeChannels& c = kind->channels;
  c.ring = find(Shape::ring, 1, most / 2);
  Shape tree = Shape::balanced_tree;
  if (rules.split_always) tree = Shape::split_tree;
  if (rules.tree_by_nodes && nodes <= 2) tree = Shape::chain;
  c.tree = find(tree, rules.tree_as_many_as_ring ? c.ring.count : 1, c.ring.count);
  if (variables.collnet && nodes > 1) {
    c.chain = find(Shape::chain, c.ring.count, c.ring.count, true);
    if (rules.collnet_direct) c.direct = find(Shape::collnet_direct, 1, most, true);
  }
  if (rules.nvls_graph && variables.nvls && kind->multicast &&
      machine.count(DeviceKind::gpu) >= rules.nvls_least_gpus)
    c.nvls = find(Shape::nvls, 1, most);
  note_node(type, machine, paths, rules, c, kind->notes);
  return kind;
}

}  // namespace weft::nccl
